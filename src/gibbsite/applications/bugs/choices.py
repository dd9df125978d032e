"""Choose an update for every unknown: conjugate where all dependents allow it, otherwise sampling.

The choice is made for all unknowns of a relation at once (:mod:`.dependence`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.dependence import COMPLEMENT, COPY, Dependence, Form
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.network import Network
from gibbsite.applications.bugs.nodes import Compiled
from gibbsite.applications.bugs.tables import BOUNDED as BOUND_KIND
from gibbsite.applications.bugs.tables import CODE, FOURTH, TRUNCATED
from gibbsite.applications.bugs.values import fail

SCALE = {
    dist.NORMAL: 1,
    dist.LOGNORMAL: 1,
    dist.GAMMA: 1,
    dist.WEIBULL: 1,
    dist.DOUBLE_EXPONENTIAL: 1,
    dist.POISSON: 0,
    dist.EXPONENTIAL: 0,
    dist.PARETO: 0,
}
_GAMMA_PRIORS = {
    dist.GAMMA: units.GAMMA_PRIOR,
    dist.EXPONENTIAL: units.EXPONENTIAL_PRIOR,
    dist.CHI_SQUARED: units.CHI_SQUARED_PRIOR,
    dist.UNIFORM: units.UNIFORM_PRIOR,
    dist.PARETO: units.PARETO_PRIOR,
}
_POWER_PRIORS = (units.UNIFORM_PRIOR, units.PARETO_PRIOR)
_PROBABILITIES = (Operation.ILOGIT, Operation.PHI, Operation.ICLOGLOG)
_TRIALS = (dist.BERNOULLI, dist.BINOMIAL, dist.GEOMETRIC, dist.NEGATIVE_BINOMIAL)
_PREDICTED = {
    **dict.fromkeys((dist.BINOMIAL, dist.BERNOULLI), _PROBABILITIES),
    **dict.fromkeys((dist.POISSON, dist.EXPONENTIAL, dist.WEIBULL, dist.GAMMA), (Operation.EXP,)),
}
_MOST_VALUES = 500  # of an unknown all of whose values are tried


@dataclass
class Choice:
    """The update of the unknowns of a rule.

    Attributes
    ----------
    rule : int
        The rule.
    update : int
        The kind of update (:mod:`.units`).
    why : str
        What the choice rests on, as explanations say it.
    dependence : Dependence
        How dependents are affected.
    extra : dict
        Further columns of the units.
    """

    rule: int
    update: int
    why: str
    dependence: Dependence
    extra: dict[int, int] = field(default_factory=dict)
    power: float = 1.0


def choose(network: Network) -> list[Choice]:
    """Return the update of each rule with unknowns, in the order of the text."""
    found = []
    for number, compiled in enumerate(network.assembly.compiled):
        if not network.stochastic[number]:
            continue
        if network.unknown[compiled.targets].any():
            found.append(_choice(network, number, compiled))
    for choice in found:
        if choice.update == units.PREDICTOR_BLOCK:
            for child, forms in choice.dependence.parameters.items():
                row = network.assembly.compiled[child].row
                row[FOURTH] = forms[1 if row[CODE] in (dist.WEIBULL, dist.GAMMA) else 0].link
    return found


def _choice(network: Network, number: int, compiled: Compiled) -> Choice:
    distribution = compiled.rule.distribution
    assert distribution is not None
    effects = Dependence(network, number)
    code, bounded = distribution.code, compiled.row[BOUND_KIND] != 0
    forms = effects.parameters
    codes = {child: network.assembly.compiled[child].row[6] for child in forms}
    plain = not any(effects.bounds.values()) and not any(
        network.assembly.compiled[child].row[BOUND_KIND] == TRUNCATED for child in forms
    )
    if (network.forward | ~network.unknown)[compiled.targets].all():
        return Choice(number, units.FORWARD, "drawn from its distribution: nothing observed depends on it", effects)
    if code == dist.MULTIVARIATE_NORMAL or (code == dist.NORMAL and not bounded):
        update = _of_normal(network, code, forms, codes) if plain else None
        if update is not None:
            return Choice(number, update, "normal, and the means of its dependents are linear in it", effects)
    if code == dist.NORMAL and bounded and plain and forms and _of_normal(network, code, forms, codes) is not None:
        return Choice(number, units.CONJUGATE_NORMAL, "normal between bounds, conjugate", effects)
    if code == dist.NORMAL and not bounded and plain and _are_predicted(forms, codes):
        return Choice(number, units.PREDICTOR_BLOCK, "proposals from a normal approximation", effects)
    if code == dist.DIRICHLET:
        if plain and all(_is_probabilities(network, number, child, forms[child], codes[child]) for child in forms):
            return Choice(number, units.CONJUGATE_DIRICHLET, "conjugate", effects)
        return Choice(number, units.SIMPLEX_SLICE, "slice sampling of pairs of entries", effects)
    if code == dist.WISHART:
        if plain and all(_is_precision(network, number, child, forms[child], codes[child]) for child in forms):
            return Choice(number, units.CONJUGATE_WISHART, "conjugate", effects)
        raise fail(
            compiled.rule.relation.at,
            f"the precision matrix {compiled.rule.name!r} must be the precision of normal vectors, and nothing else",
        )
    if distribution.value != "s":
        if code in (dist.MULTIVARIATE_NORMAL, dist.MULTIVARIATE_STUDENT, dist.COVARIANCE_NORMAL):
            return Choice(number, units.SLICE, "slice sampling of each entry", effects)
        raise fail(
            compiled.rule.relation.at, f"unknown vectors with the distribution {distribution.name!r} cannot be sampled"
        )
    if not forms and code == dist.FLAT:
        raise fail(
            compiled.rule.relation.at, f"{compiled.rule.name!r} is improper: its prior is flat and no data depend on it"
        )
    if code in _GAMMA_PRIORS and plain:
        power = _power(forms, codes)
        family = _GAMMA_PRIORS[code]
        if power is not None and forms and (power == 1.0 or family in _POWER_PRIORS):
            selects = any(form.selects for each in forms.values() for form in each)
            why = "conjugate" if power == 1.0 else f"its power {power:g} has a gamma distribution between bounds"
            extra = {units.EXTRA_A: family, units.EXTRA_C: int(selects)}
            return Choice(number, units.SCALED_GAMMA, why, effects, extra, power)
    if (
        plain
        and not bounded
        and forms
        and (code == dist.BETA or (code == dist.UNIFORM and _is_unit(network, compiled)))
    ):
        turned = _trials(forms, codes)
        if turned is not None:
            selects = any(form.selects for each in forms.values() for form in each)
            return Choice(
                number, units.CONJUGATE_BETA, "conjugate", effects, {units.EXTRA_A: turned, units.EXTRA_C: int(selects)}
            )
    if distribution.discrete:
        values = _values(network, compiled)
        if values is not None:
            low, high = values
            return Choice(
                number,
                units.FINITE,
                f"all of its {high - low + 1} values are weighed",
                effects,
                {units.EXTRA_A: low, units.EXTRA_B: high},
            )
        return Choice(number, units.WHOLE_SLICE, "slice sampling of whole numbers", effects)
    return Choice(number, units.SLICE, "slice sampling", effects)


def _of_normal(network: Network, code: int, forms: dict[int, list[Form]], codes: dict[int, int]) -> int | None:
    """Return how a normal unknown is updated, or None if dependents are not linear in it."""
    static = True
    for child, each in forms.items():
        if codes[child] not in (dist.NORMAL, dist.MULTIVARIATE_NORMAL, dist.LOGNORMAL):
            return None
        if each[0].level > 1 or any(form.level for form in each[1:]):
            return None
        static &= each[0].static and not each[0].selects and codes[child] != dist.LOGNORMAL
        if not static and codes[child] == dist.MULTIVARIATE_NORMAL:
            return None
    if static:
        return units.NORMAL_BLOCK
    return units.CONJUGATE_NORMAL if code == dist.NORMAL else None


def _are_predicted(forms: dict[int, list[Form]], codes: dict[int, int]) -> bool:
    """Whether dependents are normal with linear means, or counts with a linear predictor."""
    counts = 0
    for child, every in forms.items():
        k = 1 if codes[child] in (dist.WEIBULL, dist.GAMMA) else 0
        each = [every[k], *every[:k], *every[k + 1 :]]
        if any(form.level for form in each[1:]):
            return False
        if codes[child] == dist.NORMAL:
            if each[0].level > 1 or not each[0].static or each[0].selects:
                return False
            continue
        if each[0].link not in map(int, _PREDICTED.get(codes[child], ())):
            return False
        counts += 1
    return counts > 0


def _power(forms: dict[int, list[Form]], codes: dict[int, int]) -> float | None:
    """Return the power of an unknown that scales all dependents, or None."""
    found: float | None = None
    for child, each in forms.items():
        column = SCALE.get(codes[child])
        if column is None:
            return None
        for k, form in enumerate(each):
            if k != column and form.level:
                return None
        power = each[column].power
        if power is None or power == 0.0 or (found is not None and power != found):
            return None
        found = power
    return found


def _trials(forms: dict[int, list[Form]], codes: dict[int, int]) -> int | None:
    """Return which dependents have the probability 1 - u, as bits, or None if some have another one."""
    turned = 0
    for child, each in forms.items():
        if codes[child] not in _TRIALS or any(form.level for form in each[1:]):
            return None
        if each[0].copies not in (COPY, COMPLEMENT) or child >= 62:
            return None
        if each[0].copies == COMPLEMENT:
            turned |= 1 << child
    return turned


def _is_unit(network: Network, compiled: Compiled) -> bool:
    """Whether a uniform distribution is between 0 and 1."""
    constants = list(network.assembly.constants)
    for register, wanted in zip(compiled.parameters, (0.0, 1.0), strict=True):
        one = compiled.code[register]
        if one.operation != Operation.CONSTANT or constants[one.operands[0]] != wanted:
            return False
    return True


def _is_probabilities(network: Network, rule: int, child: int, forms: list[Form], code: int) -> bool:
    """Whether the probabilities of a dependent are a whole vector of a rule."""
    if code not in (dist.CATEGORICAL, dist.MULTINOMIAL) or any(form.level for form in forms[1:]):
        return False
    return _reads_whole(network, rule, child, 0)


def _is_precision(network: Network, rule: int, child: int, forms: list[Form], code: int) -> bool:
    if code != dist.MULTIVARIATE_NORMAL or forms[0].level:
        return False
    return _reads_whole(network, rule, child, 1)


def _reads_whole(network: Network, rule: int, child: int, parameter: int) -> bool:
    """Whether a parameter reads whole arrays that a rule defines, and nothing else."""
    compiled, mine = network.assembly.compiled[child], network.assembly.compiled[rule]
    number = compiled.parameters[parameter]
    _, begin, size, counts = network.assembly.slice_rows[number]
    if size != mine.targets.shape[1] or counts >= 0:
        return False
    reads = compiled.slice_reads.get(number)
    if reads is None:
        return False
    rows = network.owner[reads[reads >= 0]]
    moving = np.isnan(network.start[reads[reads >= 0]])
    if (rows[moving] != rule).any():
        return False
    index = np.concatenate(network.assembly.index_parts)
    relative = index[begin : begin + size]
    return bool((relative - relative[0] == mine.targets[0] - mine.targets[0, 0]).all())


def _values(network: Network, compiled: Compiled) -> tuple[int, int] | None:
    """Return the smallest and the largest value of a discrete unknown, or None if there are too many."""
    distribution = compiled.rule.distribution
    assert distribution is not None
    code = distribution.code
    if code == dist.BERNOULLI:
        return 0, 1
    if code == dist.CATEGORICAL:
        size = network.assembly.slice_rows[compiled.parameters[0]][2]
        return (1, size) if size <= _MOST_VALUES else None
    if code == dist.INTERVAL:
        return 0, network.assembly.slice_rows[compiled.parameters[1]][2]
    column = {dist.BINOMIAL: 1, dist.BETA_BINOMIAL: 2, dist.HYPERGEOMETRIC: 2}.get(code)
    if column is None:
        return None
    one = compiled.code[compiled.parameters[column]]
    if one.operation == Operation.CONSTANT:
        size = int(list(network.assembly.constants)[one.operands[0]])
        return (0, size) if size <= _MOST_VALUES else None
    if one.operation == Operation.LOAD and one.reads is None:
        return None
    return None
