"""The derived conditional distributions as formulas, in text and LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.distributions import find_distribution
from gibbsite.applications.bugs.language.syntax import Call, Expression, Number, Stochastic, Variable
from gibbsite.applications.bugs.language.wording import to_latex, unparse
from gibbsite.applications.bugs.values import as_expression

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel


@dataclass(frozen=True)
class Conditional:
    """The conditional distribution of the unknowns of a relation, and how they are drawn.

    Attributes
    ----------
    name : str
        The unknowns, as the text of the model writes them.
    unknowns : int
        How many there are.
    formula : str
        Their distribution given all others.
    update : str
        How they are drawn.
    latex : str
        The formula in LaTeX.
    """

    name: str
    unknowns: int
    formula: str
    update: str
    latex: str

    def __str__(self) -> str:
        return f"{self.name} | rest ~ {self.formula}; {self.update}"


def explain(model: BugsModel) -> list[Conditional]:
    """Return the conditional distribution of the unknowns of each relation, in the order of the text."""
    return [_explained(model, choice) for choice in model.derived.choices]


def _explained(model: BugsModel, choice: Choice) -> Conditional:
    compiled = model.assembly.compiled[choice.rule]
    relation = compiled.rule.relation
    assert isinstance(relation, Stochastic)
    many = int(model.network.unknown[compiled.targets].sum())
    update = choice.why
    if choice.update == units.NORMAL_BLOCK:
        sizes = _block_sizes(model, choice)
        update = "conjugate" if max(sizes, default=1) == 1 else f"conjugate, drawn jointly in blocks of {max(sizes)}"
        if len(sizes) == 1 and sizes[0] > 1:
            update = f"conjugate, drawn jointly with all {sizes[0]} members of its block"
    parts = _formula(model, choice, relation)
    latex = f"{to_latex(relation.target)} \\mid \\cdot \\sim {parts[1]}"
    return Conditional(unparse(relation.target), many, parts[0], update, latex)


def _block_sizes(model: BugsModel, choice: Choice) -> list[int]:
    mine = model.assembly.compiled[choice.rule].targets.ravel()
    return [block.members.size for block in model.derived.blocks if np.isin(block.members, mine).any()]


def _formula(model: BugsModel, choice: Choice, relation: Stochastic) -> tuple[str, str]:
    """Return the distribution as text and in LaTeX."""
    given = [as_expression(each) for each in relation.distribution.arguments]
    if choice.update == units.SCALED_GAMMA and choice.power == 1.0:
        first, second = _gamma_prior(choice, given)
        return _distribution("Gamma", [[first, *_shapes(model, choice)], [second, *_rates(model, choice)]])
    if choice.update == units.CONJUGATE_BETA:
        prior: list[Expression] = given if relation.distribution.function == "dbeta" else [Number(1.0), Number(1.0)]
        hits, misses = _trials(model, choice)
        return _distribution("Beta", [[prior[0], *hits], [prior[1], *misses]])
    if choice.update == units.CONJUGATE_DIRICHLET:
        return _distribution("Dirichlet", [[given[0], *_counts(model, choice)]])
    if choice.update == units.CONJUGATE_WISHART:
        vectors = [_children(model, choice, rule) for rule in choice.dependence.parameters]
        scale: list[Expression] = [given[0]]
        scale += [Call("sum", (Call("outer", (_away(child),)),)) for child, _ in vectors]
        return _distribution("Wishart", [scale, [given[1], *[Number(float(n)) for _, n in vectors]]])
    own = find_distribution(relation.distribution.function)
    assert own is not None
    text, latex = _distribution(own.symbol, [[each] for each in given])
    for rule in choice.dependence.parameters:
        child, _ = _children(model, choice, rule)
        symbol = find_distribution(child.distribution.function)
        assert symbol is not None
        inner = _distribution(symbol.symbol, [[as_expression(each)] for each in child.distribution.arguments])
        target = child.target
        text += f" * prod {symbol.symbol}({unparse(target)}; {inner[0][len(symbol.symbol) + 1 :]}"
        latex += f" \\prod p({to_latex(target)} \\mid {inner[1]})"
    return text, latex


def _distribution(symbol: str, parameters: list[list[Expression]]) -> tuple[str, str]:
    text = ", ".join(" + ".join(map(unparse, terms)) for terms in parameters)
    latex = ", ".join(" + ".join(map(to_latex, terms)) for terms in parameters)
    return f"{symbol}({text})", f"\\mathrm{{{symbol}}}\\left({latex}\\right)"


def _gamma_prior(choice: Choice, given: list[Expression]) -> tuple[Expression, Expression]:
    family = choice.extra[units.EXTRA_A]
    if family == units.GAMMA_PRIOR:
        return given[0], given[1]
    if family == units.EXPONENTIAL_PRIOR:
        return Number(1.0), given[0]
    if family == units.CHI_SQUARED_PRIOR:
        return Call("/", (given[0], Number(2.0))), Number(0.5)
    return Number(1.0), Number(0.0)


def _children(model: BugsModel, choice: Choice, rule: int) -> tuple[Stochastic, int]:
    """Return a dependent relation, and how many of its instances depend on the first of the unknowns."""
    relation = model.assembly.compiled[rule].rule.relation
    assert isinstance(relation, Stochastic)
    mine = np.flatnonzero(model.derived.unit_rule == choice.rule)
    row = model.derived.unit.reshape(-1, units.UNIT_WIDTH)[mine[0]] if mine.size else None
    many = 0
    if row is not None:
        segment = model.derived.segment.reshape(-1)
        for s in range(int(row[units.MIDDLE]), int(row[units.END])):
            if segment[4 * s] == rule:
                many += int(segment[4 * s + 3])
    return relation, many


def _away(child: Stochastic) -> Expression:
    return Call("-", (child.target, as_expression(child.distribution.arguments[0])))


def _scale(choice: Choice, child: Stochastic, column: int, name: Expression) -> Expression | None:
    """Return what the unknown is multiplied by in a parameter, or None if the parameter is the unknown."""
    given = as_expression(child.distribution.arguments[column])
    return None if isinstance(given, Variable) else Call("/", (given, name))


def _half(n: int) -> Expression:
    return Call("/", (Number(float(n)), Number(2.0)))


def _shapes(model: BugsModel, choice: Choice) -> list[Expression]:
    found: list[Expression] = []
    for rule in choice.dependence.parameters:
        child, many = _children(model, choice, rule)
        code = model.assembly.compiled[rule].row[6]
        if code in (dist.NORMAL, dist.LOGNORMAL):
            found.append(_half(many))
        elif code == dist.POISSON:
            found.append(_sum(child.target, many))
        elif code == dist.GAMMA:
            found.append(_sum(as_expression(child.distribution.arguments[0]), many))
        else:
            found.append(Number(float(many)))
    return found


def _sum(expression: Expression, many: int) -> Expression:
    return expression if many == 1 else Call("sum", (expression,))


def _rates(model: BugsModel, choice: Choice) -> list[Expression]:
    found: list[Expression] = []
    own = model.assembly.compiled[choice.rule].rule.relation.target
    for rule in choice.dependence.parameters:
        child, many = _children(model, choice, rule)
        code = model.assembly.compiled[rule].row[6]
        column = 1 if code in (dist.NORMAL, dist.LOGNORMAL, dist.GAMMA, dist.WEIBULL, dist.DOUBLE_EXPONENTIAL) else 0
        factor = _scale(choice, child, column, own)
        first = as_expression(child.distribution.arguments[0])
        one: Expression
        if code == dist.NORMAL:
            one = Call("/", (Call("^", (_away(child), Number(2.0))), Number(2.0)))
        elif code == dist.LOGNORMAL:
            one = Call("/", (Call("^", (Call("-", (Call("log", (child.target,)), first)), Number(2.0))), Number(2.0)))
        elif code == dist.POISSON:
            found.append(Number(float(many)) if factor is None else _sum(factor, many))
            continue
        elif code == dist.WEIBULL:
            one = Call("^", (child.target, first))
        elif code == dist.DOUBLE_EXPONENTIAL:
            one = Call("abs", (_away(child),))
        elif code == dist.PARETO:
            one = Call("log", (Call("/", (child.target, as_expression(child.distribution.arguments[1]))),))
        else:
            one = child.target
        found.append(_sum(one if factor is None else Call("*", (factor, one)), many))
    return found


def _trials(model: BugsModel, choice: Choice) -> tuple[list[Expression], list[Expression]]:
    hits: list[Expression] = []
    misses: list[Expression] = []
    for rule in choice.dependence.parameters:
        child, many = _children(model, choice, rule)
        code = model.assembly.compiled[rule].row[6]
        y: Expression = child.target
        pair: tuple[Expression, Expression]
        if code == dist.BERNOULLI:
            pair = (y, Call("-", (Number(1.0), y)))
        elif code == dist.BINOMIAL:
            pair = (y, Call("-", (as_expression(child.distribution.arguments[1]), y)))
        elif code == dist.GEOMETRIC:
            pair = (Number(1.0), Call("-", (y, Number(1.0))))
        else:
            pair = (as_expression(child.distribution.arguments[1]), y)
        if choice.extra[units.EXTRA_A] >> rule & 1:
            pair = pair[::-1]
        hits.append(_sum(pair[0], many))
        misses.append(_sum(pair[1], many))
    return hits, misses


def _counts(model: BugsModel, choice: Choice) -> list[Expression]:
    return [Call("counts", (_children(model, choice, rule)[0].target,)) for rule in choice.dependence.parameters]
