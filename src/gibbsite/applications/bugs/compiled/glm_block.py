"""Joint updates of normal unknowns with a linear predictor, in compiled code: generalised linear models.

The log-density of a block is approximated at its current state by a normal one, with the gradient and the expected
information of the observations (iteratively reweighted least squares), a state is drawn from that, and accepted or
rejected (Gamerman, 1997). Where the approximation is poor, nearly all proposals may be rejected, so that every now and
then the members are updated by slice sampling one by one instead.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.evaluator import (
    C_COUNTS,
    C_REGISTERS,
    C_VALUES,
    C_WORDS,
    C_WORK,
    LANES,
    S_LIST,
    S_NUMBERS,
    S_RULE,
    S_SEGMENT,
    S_UNIT,
    run_rule,
)
from gibbsite.applications.bugs.compiled.normal_block import factorise, solve_lower, solve_upper
from gibbsite.applications.bugs.compiled.segments import scalar_density
from gibbsite.applications.bugs.compiled.special import normal_quantile
from gibbsite.applications.bugs.compiled.updates import LEARNING, MOVED, accept, fail, recompute, update_slice
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.tables import CODE, FIRST, FOURTH, SECOND, VALUE
from gibbsite.models.random import gamma, normal, uniform

_ILOGIT, _PHI, _ICLOGLOG = int(Operation.ILOGIT), int(Operation.PHI), int(Operation.ICLOGLOG)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
# Share of updates that are slices, while widths are learned and afterwards.
_EARLY, _LATE = 0.5, 0.05
_TINY = 1e-12
_DEGREES = 8.0  # of freedom of proposals
#: Distributions of positive numbers whose rate may have a linear predictor.
RATES = (dist.EXPONENTIAL, dist.WEIBULL, dist.GAMMA)


@called
def mean_column(code: Integer) -> Integer:
    """Return the column of the parameter that may have a linear predictor."""
    return SECOND if code == dist.WEIBULL or code == dist.GAMMA else FIRST


@called
def predictor_of(link: Integer, value: float) -> float:
    """Return the linear predictor of a mean or a probability."""
    if link == _ILOGIT:
        return math.log(value) - math.log1p(-value)
    if link == _PHI:
        return normal_quantile(value)
    if link == _ICLOGLOG:
        return math.log(-math.log1p(-value))
    return math.log(value)


@called
def score_and_weight(code: Integer, link: Integer, y: float, mean: float, size: float) -> tuple[float, float]:
    """Return the derivative of a log-likelihood in its linear predictor, and the expected information."""
    if code == dist.POISSON:
        return y - mean, mean
    if code in RATES:  # of "size" events, of which the mean number is expected
        return size - mean, size
    p = min(max(mean, _TINY), 1.0 - _TINY)
    if link == _ILOGIT:
        return y - size * p, size * p * (1.0 - p)
    if link == _PHI:
        z = normal_quantile(p)
        slope = math.exp(-0.5 * z * z) / _ROOT_TWO_PI
    else:
        slope = -(1.0 - p) * math.log1p(-p)
    ratio = slope / (p * (1.0 - p))
    return ratio * (y - size * p), size * ratio * slope


@called
def update_predictors(static: Ints, chain: Ints, unit: Integer) -> None:
    """Update the members of a block jointly, or now and then one by one."""
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    counts = array_in(chain, C_COUNTS, np.int64)
    at = units.UNIT_WIDTH * unit
    size, members = row[at + units.COUNT], row[at + units.LISTS]
    early = counts[LEARNING] != 0 or counts[MOVED] > 0
    counts[MOVED] = max(counts[MOVED] - 1, 0)
    if uniform(words) < (_EARLY if early else _LATE):
        for k in range(size):
            update_slice(static, chain, row[at + units.EXTRA_E] + k)
        return
    entries, structure = row[at + units.EXTRA_A], row[at + units.EXTRA_B]
    gradient, old, away = entries, entries + 2 * size, entries + 3 * size
    now = _approximate(static, chain, unit)
    if not now > -math.inf:
        fail(chain, unit)
        return
    if not factorise(lists, work, structure, size, entries):
        for k in range(size):
            update_slice(static, chain, row[at + units.EXTRA_E] + k)
        return
    solve_lower(lists, work, structure, size, gradient)
    # heavier tails than those of the target: Student's distribution
    spread = math.sqrt(0.5 * _DEGREES / gamma(words, 0.5 * _DEGREES))
    forward, square = 0.0, 0.0
    for j in range(size):
        z = spread * normal(words)
        forward += math.log(work[lists[structure + j]])
        square += z * z
        work[gradient + j] += z
    forward -= 0.5 * (_DEGREES + size) * math.log1p(square / _DEGREES)
    solve_upper(lists, work, structure, size, gradient)
    for j in range(size):
        place = lists[members + j]
        work[old + j] = v[place]
        work[away + j] = -work[gradient + j]
        v[place] += work[gradient + j]
    recompute(static, chain, unit)
    then = _approximate(static, chain, unit)
    accepted = False
    if then > -math.inf and factorise(lists, work, structure, size, entries):
        # the way back: z = L' (old - new) - L^-1 gradient
        solve_lower(lists, work, structure, size, gradient)
        backward, square = 0.0, 0.0
        for j in range(size):
            begin, end = lists[structure + j], lists[structure + j + 1]
            z = 0.0
            for p in range(begin, end):
                z += work[p] * work[away + lists[structure + size + 1 + p]]
            z -= work[gradient + j]
            backward += math.log(work[begin])
            square += z * z
        backward -= 0.5 * (_DEGREES + size) * math.log1p(square / _DEGREES)
        accepted = math.log(uniform(words)) < then + backward - now - forward
    if not accepted:
        for j in range(size):
            v[lists[members + j]] = work[old + j]
        recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def _approximate(static: Ints, chain: Ints, unit: Integer) -> float:
    """Write precision and gradient of the normal approximation to the work array; return the log-density."""
    row = array_in(static, S_UNIT, np.int64)
    groups = array_in(static, S_SEGMENT, np.int64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    entries = row[at + units.EXTRA_A]
    for k in range(entries + row[at + units.COUNT]):
        work[k] = 0.0
    total = 0.0
    for group in range(row[at + units.EXTRA_D]):
        total += _add_factors(static, chain, groups, row[at + units.EXTRA_C] + units.GROUP_WIDTH * group, entries)
    return total if total < math.inf else -math.inf


@called
def _add_factors(static: Ints, chain: Ints, groups: Ints, at: Integer, gradient: Integer) -> float:
    """Add the factors of a group; return the sum of their log-densities."""
    rules = array_in(static, S_RULE, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    numbers = array_in(static, S_NUMBERS, np.float64)
    r: Floats = array_in(chain, C_REGISTERS, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    rule, listed = groups[at + units.GROUP_RULE], bool(groups[at + units.GROUP_LISTED])
    begin_all, count = groups[at + units.GROUP_FIRST], groups[at + units.GROUP_COUNT]
    size, members = groups[at + units.GROUP_SIZE], groups[at + units.GROUP_MEMBERS]
    coefficients, positions = groups[at + units.GROUP_COEFFICIENTS], groups[at + units.GROUP_POSITIONS]
    pairs = size * (size + 1) // 2
    code, link = rules[16 * rule + CODE], rules[16 * rule + FOURTH]
    value, first, second = (
        rules[16 * rule + VALUE] * LANES,
        rules[16 * rule + FIRST] * LANES,
        rules[16 * rule + SECOND] * LANES,
    )
    total, done = 0.0, 0
    for begin in range(begin_all, begin_all + count, LANES):
        m = min(LANES, begin_all + count - begin)
        run_rule(static, chain, rule, listed, begin, m)
        for j in range(m):
            f = done + j
            total += scalar_density(static, chain, rule, j)
            if code == dist.NORMAL:
                weight = r[second + j]
                score = -weight * (r[value + j] - r[first + j])
            else:  # residuals decrease where the predictor increases, so that coefficients have the other sign
                trials, mean = r[second + j] if code == dist.BINOMIAL else 1.0, r[first + j]
                if code == dist.EXPONENTIAL:
                    mean *= r[value + j]
                elif code == dist.WEIBULL:
                    mean = r[second + j] * r[value + j] ** r[first + j]
                elif code == dist.GAMMA:
                    trials, mean = r[first + j], r[second + j] * r[value + j]
                score, weight = score_and_weight(code, link, r[value + j], mean, trials)
                score = -score
            position = positions + f * pairs
            for s in range(size):
                coefficient = numbers[coefficients + f * size + s]
                work[gradient + lists[members + f * size + s]] += score * coefficient
                for t in range(s + 1):
                    work[lists[position]] += weight * coefficient * numbers[coefficients + f * size + t]
                    position += 1
        done += m
    return total if total > -math.inf else -math.inf
