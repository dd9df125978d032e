"""The derived conditional distributions as formulas, in text and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.choices import SCALE, Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.distributions import find_distribution
from gibbsite.applications.bugs.language.syntax import Call, Empty, Expression, Logical, Number, Stochastic, Variable
from gibbsite.applications.bugs.language.wording import to_latex, unparse
from gibbsite.applications.bugs.values import as_expression, substituted, variables_of

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel


_MOST = 200  # unknowns of a relation whose dependents are counted


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
    elif choice.update in (units.PREDICTOR_BLOCK, units.FINITE):
        sizes = _block_sizes(model, choice)
        if sizes:
            kind = "blocks" if choice.update == units.PREDICTOR_BLOCK else "chains"
            update += f", jointly in {kind} of {max(sizes)}" if max(sizes) > 1 else ""
    parts = _formula(model, choice, relation)
    latex = f"{to_latex(relation.target)} \\mid \\cdot \\sim {parts[1]}"
    return Conditional(unparse(relation.target), many, parts[0], update, latex)


def _block_sizes(model: BugsModel, choice: Choice) -> list[int]:
    mine = model.assembly.compiled[choice.rule].targets.ravel()
    joint = [block.members for block in model.derived.blocks] + [chain.members for chain in model.derived.chains]
    return [members.size for members in joint if np.isin(members, mine).any()]


def _formula(model: BugsModel, choice: Choice, relation: Stochastic) -> tuple[str, str]:
    """Return the distribution as text and in LaTeX."""
    given = [as_expression(each) for each in relation.distribution.arguments]
    if choice.update == units.SCALED_GAMMA and choice.power == 1.0:
        first, second = _gamma_prior(choice, given)
        shapes, rates = _shapes_and_rates(model, choice)
        found = _distribution("Gamma", [[first, *shapes], [second, *rates]])
        return _within(found, *_bounds(choice, relation, given))
    if choice.update == units.CONJUGATE_BETA:
        prior: list[Expression] = given if relation.distribution.function == "dbeta" else [Number(1.0), Number(1.0)]
        hits, misses = _trials(model, choice)
        return _distribution("Beta", [[prior[0], *hits], [prior[1], *misses]])
    if choice.update == units.CONJUGATE_DIRICHLET:
        children = _children(model, choice, [0] * len(choice.dependence.parameters))
        counts = [each.sum(Call("counts", (each.relation.target,)), within="counts") for each in children]
        return _distribution("Dirichlet", [[given[0], *counts]])
    if choice.update == units.CONJUGATE_WISHART:
        children = _children(model, choice, [1] * len(choice.dependence.parameters))
        outer = [each.sum(Call("outer", (each.away,))) for each in children]
        return _distribution("Wishart", [[given[0], *outer], [given[1], *[each.count for each in children]]])
    own = find_distribution(relation.distribution.function)
    assert own is not None
    text, latex = _within(_distribution(own.symbol, [[each] for each in given]), relation.lower, relation.upper)
    for rule in choice.dependence.parameters:
        child = model.assembly.compiled[rule].rule.relation
        assert isinstance(child, Stochastic)
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


def _within(found: tuple[str, str], low: Expression | None, high: Expression | None) -> tuple[str, str]:
    """Return a distribution restricted to an interval."""
    if low is None and high is None:
        return found
    text = ", ".join("" if end is None else unparse(end) for end in (low, high))
    least, most = (empty if end is None else to_latex(end) for end, empty in ((low, r"-\infty"), (high, r"\infty")))
    return f"{found[0]} T({text})", f"{found[1]}_{{[{least}, {most}]}}"


def _gamma_prior(choice: Choice, given: list[Expression]) -> tuple[Expression, Expression]:
    family = choice.extra[units.EXTRA_A]
    if family == units.GAMMA_PRIOR:
        return given[0], given[1]
    if family == units.EXPONENTIAL_PRIOR:
        return Number(1.0), given[0]
    if family == units.CHI_SQUARED_PRIOR:
        return Call("/", (given[0], Number(2.0))), Number(0.5)
    return (Call("neg", (given[0],)) if family == units.PARETO_PRIOR else Number(1.0)), Number(0.0)


def _bounds(
    choice: Choice, relation: Stochastic, given: list[Expression]
) -> tuple[Expression | None, Expression | None]:
    """Return the ends of the interval of an unknown with a gamma distribution."""
    family = choice.extra[units.EXTRA_A]
    if family == units.UNIFORM_PRIOR:
        return given[0], given[1]
    return (given[1], None) if family == units.PARETO_PRIOR else (relation.lower, relation.upper)


@dataclass(frozen=True)
class _Child:
    """A dependent relation: what the unknown is multiplied by in its parameter, and which instances have it."""

    relation: Stochastic
    code: int
    counts: Ints
    factor: Expression | None
    tests: tuple[Expression, ...]
    constants: frozenset[str]

    def argument(self, k: int) -> Expression:
        """Return a parameter of the distribution."""
        return as_expression(self.relation.distribution.arguments[k])

    @property
    def away(self) -> Expression:
        """The distance from the mean."""
        mean = self.argument(0)
        zero = isinstance(mean, Number) and mean.value == 0.0
        return self.relation.target if zero else Call("-", (self.relation.target, mean))

    @property
    def count(self) -> Expression:
        """The number of instances that depend on an unknown."""
        if self.counts.max(initial=0) <= 1 or not self.tests:
            same = self.counts.size and self.counts.min() == self.counts.max()
            return Number(float(self.counts[0])) if same else Call("length", (self.relation.target,))
        return Call("sum", (_product(self.tests),))

    def sum(self, one: Expression, within: str = "") -> Expression:
        """Return the sum of an expression over these instances."""
        most = self.counts.max(initial=0)
        if most <= 1:
            return one
        if self.tests:
            return Call("sum", (_product([*self.tests, one]),))
        if isinstance(one, Number):
            return Number(one.value * float(most))
        if within:
            return one
        varies = any(each.indices is not None or each.name not in self.constants for each in variables_of(one))
        return Call("sum", (one,)) if varies else Call("*", (self.count, one))


def _product(factors: Sequence[Expression]) -> Expression:
    found = factors[0]
    for each in factors[1:]:
        found = Call("*", (found, each))
    return found


def _children(model: BugsModel, choice: Choice, columns: Sequence[int]) -> list[_Child]:
    """Return the dependent relations, each with what concerns one of its parameters."""
    table = model.derived.unit.reshape(-1, units.UNIT_WIDTH)
    rows = table[np.flatnonzero(model.derived.unit_rule == choice.rule)[:_MOST]]
    segment = model.derived.segment[: model.derived.segment.size // 4 * 4].reshape(-1, 4)
    own = model.assembly.compiled[choice.rule].rule.relation.target
    found = []
    for rule, column in zip(choice.dependence.parameters, columns, strict=True):
        relation = model.assembly.compiled[rule].rule.relation
        assert isinstance(relation, Stochastic)
        counts = []
        for row in rows:
            mine = segment[row[units.MIDDLE] : row[units.END]]
            counts.append(int(mine[mine[:, 0] == rule, 3].sum()))
        given = as_expression(relation.distribution.arguments[column])
        factor, place = _split(model, given, own.name) or (Call("/", (given, own)), own)
        pairs = zip(place.indices or (), own.indices or (), strict=False)
        tests = [Call("equals", (mine, theirs)) for mine, theirs in pairs if _differ(mine, theirs)]
        code, constants = model.assembly.compiled[rule].row[6], frozenset(model.assembly.values.arrays)
        found.append(_Child(relation, code, np.array(counts, np.int64), factor, tuple(tests), constants))
    return found


def _differ(mine: Expression | Empty, theirs: Expression | Empty) -> bool:
    """Whether two indices select different elements; those of ranges do not select one."""
    ranges = any(
        isinstance(each, Empty) or (isinstance(each, Call) and each.function == ":") for each in (mine, theirs)
    )
    return not ranges and unparse(mine) != unparse(theirs)


def _split(model: BugsModel, given: Expression | Empty, name: str) -> tuple[Expression | None, Variable] | None:
    """Return the other factors of a product with a variable, and that variable; None if it is no such product."""
    if isinstance(given, Variable):
        if given.name == name:
            return None, given
        for compiled in model.assembly.compiled:
            relation = compiled.rule.relation
            if isinstance(relation, Logical) and compiled.rule.name == given.name and relation.link is None:
                counters = zip(relation.target.indices or (), given.indices or (), strict=False)
                names = {one.name: as_expression(other) for one, other in counters if isinstance(one, Variable)}
                if found := _split(model, substituted(relation.value, names), name):
                    return found
    if isinstance(given, Call) and given.function in ("*", "/"):
        first, second = (as_expression(each) for each in given.arguments)
        if found := _split(model, first, name):
            return Call(given.function, (found[0] or Number(1.0), second)) if (
                found[0] is not None or given.function == "/"
            ) else second, found[1]
        if given.function == "*" and (found := _split(model, second, name)):
            return first if found[0] is None else Call("*", (first, found[0])), found[1]
    return None


def _half(one: Expression) -> Expression:
    return Call("/", (one, Number(2.0)))


def _shapes_and_rates(model: BugsModel, choice: Choice) -> tuple[list[Expression], list[Expression]]:
    """Return what the dependents add to the parameters of a gamma distribution."""
    shapes: list[Expression] = []
    rates: list[Expression] = []
    codes = [model.assembly.compiled[rule].row[6] for rule in choice.dependence.parameters]
    for child in _children(model, choice, [SCALE[code] for code in codes]):
        y, code = child.relation.target, child.code
        shape: Expression = child.count
        one: Expression = y
        if code in (dist.NORMAL, dist.LOGNORMAL):
            away = child.away if code == dist.NORMAL else Call("-", (Call("log", (y,)), child.argument(0)))
            shape, one = _half(shape), Call("^", (away, Number(2.0)))
        elif code == dist.POISSON:
            shape, one = child.sum(y), Number(1.0)
        elif code == dist.GAMMA:
            shape = child.sum(child.argument(0))
        elif code == dist.WEIBULL:
            one = Call("^", (y, child.argument(0)))
        elif code == dist.DOUBLE_EXPONENTIAL:
            one = Call("abs", (child.away,))
        elif code == dist.PARETO:
            one = Call("log", (Call("/", (y, child.argument(1))),))
        if child.factor is not None:
            one = child.factor if code == dist.POISSON else Call("*", (child.factor, one))
        rate = child.sum(one) if code != dist.POISSON or child.factor is not None else child.count
        shapes.append(shape)
        rates.append(_half(rate) if code in (dist.NORMAL, dist.LOGNORMAL) else rate)
    return shapes, rates


def _trials(model: BugsModel, choice: Choice) -> tuple[list[Expression], list[Expression]]:
    hits: list[Expression] = []
    misses: list[Expression] = []
    rules = list(choice.dependence.parameters)
    for rule, child in zip(rules, _children(model, choice, [0] * len(rules)), strict=True):
        y: Expression = child.relation.target
        pair: tuple[Expression, Expression]
        if child.code == dist.BERNOULLI:
            pair = (y, Call("-", (Number(1.0), y)))
        elif child.code == dist.BINOMIAL:
            pair = (y, Call("-", (child.argument(1), y)))
        elif child.code == dist.GEOMETRIC:
            pair = (Number(1.0), Call("-", (y, Number(1.0))))
        else:
            pair = (child.argument(1), y)
        if choice.extra[units.EXTRA_A] >> rule & 1:
            pair = pair[::-1]
        hits.append(child.sum(pair[0]))
        misses.append(child.sum(pair[1]))
    return hits, misses
