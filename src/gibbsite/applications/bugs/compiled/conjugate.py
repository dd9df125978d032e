"""Draws from conjugate conditional distributions, in compiled code."""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.evaluator import (
    C_REGISTERS,
    C_VALUES,
    C_WORDS,
    C_WORK,
    LANES,
    S_RULE,
    S_SEGMENT,
    S_UNIT,
    run_rule,
)
from gibbsite.applications.bugs.compiled.special import normal_cdf, normal_quantile
from gibbsite.applications.bugs.compiled.updates import accept, fail, recompute
from gibbsite.applications.bugs.tables import CODE, FIRST, LOWER, SECOND, UPPER, VALUE
from gibbsite.models.random import beta as draw_beta
from gibbsite.models.random import exponential, gamma, normal, uniform

_TRIES = 20


@called
def bounds_of(static: Ints, chain: Ints, rule: Integer) -> tuple[float, float]:
    """Return the bounds of a truncated or censored distribution, after a run of its rule for one instance."""
    rules = array_in(static, S_RULE, np.int64)
    r = array_in(chain, C_REGISTERS, np.float64)
    lower, upper = rules[16 * rule + LOWER], rules[16 * rule + UPPER]
    low = -math.inf if lower < 0 else r[lower * LANES]
    high = math.inf if upper < 0 else r[upper * LANES]
    return low, high


@inlined
def children(segment: Array, s: Integer) -> tuple[Integer, bool, Integer, Integer]:
    """Return rule, whether instances are listed, first instance and number of a segment."""
    return segment[4 * s], bool(segment[4 * s + 1]), segment[4 * s + 2], segment[4 * s + 3]


@called
def note_parameters(static: Ints, chain: Ints, unit: Integer, column_of: Integer) -> None:
    """Keep the parameter of each child that may depend on a unit, in the work array."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    work = array_in(chain, C_WORK, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    at, kept = units.UNIT_WIDTH * unit, 0
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed, first, count = children(segment, s)
        register = rules[16 * rule + scale_column(rules[16 * rule + CODE], column_of)]
        for begin in range(first, first + count, LANES):
            m = min(LANES, first + count - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                work[kept] = r[register * LANES + j]
                kept += 1


@inlined
def note_claim(work: Array, first: float, second: float, low: float, high: float) -> None:
    """Leave the conditional distribution that was derived at the end of the work array, so that it can be checked."""
    end = work.size
    work[end - 4], work[end - 3], work[end - 2], work[end - 1] = first, second, low, high


@inlined
def scale_column(code: Integer, column_of: Integer) -> Integer:
    """Return the column of the parameter through which an unknown acts: a scale (0), or a probability or mean (1)."""
    if column_of == 1:
        return FIRST
    second = (
        code == dist.NORMAL
        or code == dist.LOGNORMAL
        or code == dist.GAMMA
        or code == dist.WEIBULL
        or code == dist.DOUBLE_EXPONENTIAL
    )
    return SECOND if second else FIRST


@called
def update_gamma(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw a rate, a precision, or a power of one, whose conditional distribution is a gamma distribution."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    numbers = array_in(static, 10, np.float64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    place, family = row[at + units.PLACE], row[at + units.EXTRA_A]
    power, selects = numbers[row[at + units.EXTRA_B]], row[at + units.EXTRA_C] != 0
    before = v[place]
    if selects:  # which children depend on the unknown is seen when it changes
        note_parameters(static, chain, unit, 0)
        v[place] = 2.0 * before
        recompute(static, chain, unit)
    own = row[at + units.OWN]
    run_rule(static, chain, own, False, row[at + units.OWN_INSTANCE], 1)
    shape, rate = 1.0, 0.0
    low, high = bounds_of(static, chain, own)
    first, second = r[rules[16 * own + FIRST] * LANES], r[rules[16 * own + SECOND] * LANES]
    if family == units.GAMMA_PRIOR:
        shape, rate = first, second
    elif family == units.EXPONENTIAL_PRIOR:
        rate = first
    elif family == units.CHI_SQUARED_PRIOR:
        shape, rate = 0.5 * first, 0.5
    elif family == units.UNIFORM_PRIOR:
        low, high = max(low, first), min(high, second)
    elif family == units.PARETO_PRIOR:
        shape, low = -first, max(low, second)
    low = max(low, 0.0)
    if power != 1.0:  # of t = u^power: the density of u^(s-1) becomes t^(s/power-1)
        shape /= power
        if power > 0.0:
            low, high = low**power, high**power
        else:
            low, high = (0.0 if high == math.inf else high**power), (math.inf if low == 0.0 else low**power)
    scale, kept = before**power, 0
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed, begin_all, count = children(segment, s)
        code = rules[16 * rule + CODE]
        register = rules[16 * rule + scale_column(code, 0)] * LANES
        value, one = rules[16 * rule + VALUE] * LANES, rules[16 * rule + FIRST] * LANES
        two = rules[16 * rule + SECOND] * LANES
        for begin in range(begin_all, begin_all + count, LANES):
            m = min(LANES, begin_all + count - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                parameter = r[register + j]
                if selects:
                    same = parameter == work[kept]
                    parameter = work[kept]
                    kept += 1
                    if same:
                        continue
                c, y = parameter / scale, r[value + j]
                if code == dist.NORMAL:
                    shape += 0.5
                    rate += 0.5 * c * (y - r[one + j]) ** 2
                elif code == dist.POISSON:
                    shape += y
                    rate += c
                elif code == dist.EXPONENTIAL:
                    shape += 1.0
                    rate += c * y
                elif code == dist.GAMMA:
                    shape += r[one + j]
                    rate += c * y
                elif code == dist.WEIBULL:
                    shape += 1.0
                    rate += c * y ** r[one + j]
                elif code == dist.LOGNORMAL:
                    shape += 0.5
                    rate += 0.5 * c * (math.log(y) - r[one + j]) ** 2
                elif code == dist.DOUBLE_EXPONENTIAL:
                    shape += 1.0
                    rate += c * abs(y - r[one + j])
                else:  # the shape of a Pareto distribution
                    shape += 1.0
                    rate += c * math.log(y / r[two + j])
    note_claim(work, shape, rate, low, high)
    found = draw_bounded_gamma(words, shape, rate, low, high, before**power)
    if not 0.0 < found < math.inf:
        v[place] = before
        recompute(static, chain, unit)
        fail(chain, unit)
        return
    v[place] = found if power == 1.0 else found ** (1.0 / power)
    recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def draw_bounded_gamma(words: Array, shape: float, rate: float, low: float, high: float, before: float) -> float:
    """Return a number with density t^(shape-1) exp(-rate t) between two bounds.

    Gamma numbers are drawn until one lies between the bounds; after some failures, slice sampling on the logarithmic
    scale moves the number before.
    """
    if math.isnan(shape) or math.isnan(rate) or not low <= high:
        return math.nan
    if (low <= 0.0 and shape <= 0.0) or (high == math.inf and (rate < 0.0 or (rate == 0.0 and shape >= 0.0))):
        return math.nan  # improper
    if shape > 0.0 and rate > 0.0:
        for _ in range(_TRIES if low > 0.0 or high < math.inf else 1):
            t = gamma(words, shape, 1.0 / rate)
            if low <= t <= high and t > 0.0:
                return t
        if low <= 0.0 and high == math.inf:
            return 1e-300  # too small to be represented
    # slice sampling of s = log t: the density is exp(shape s - rate e^s)
    s = math.log(min(max(before, low), high))
    bottom, top = (math.log(low) if low > 0.0 else -math.inf), math.log(high) if high < math.inf else math.inf
    for _ in range(10):
        height = shape * s - rate * math.exp(s) - exponential(words)
        left = s - uniform(words)
        right = left + 1.0
        while left > bottom and shape * left - rate * math.exp(left) > height:
            left -= 1.0
        while right < top and shape * right - rate * math.exp(right) > height:
            right += 1.0
        left, right = max(left, bottom), min(right, top)
        while True:
            candidate = left + uniform(words) * (right - left)
            if shape * candidate - rate * math.exp(candidate) > height or right - left < 1e-14:
                break
            if candidate < s:
                left = candidate
            else:
                right = candidate
        s = candidate
    return math.exp(s)


@called
def update_beta(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw a probability whose conditional distribution is a beta distribution."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    place, selects = row[at + units.PLACE], row[at + units.EXTRA_C] != 0
    before = v[place]
    if selects:
        note_parameters(static, chain, unit, 1)
        v[place] = 0.5 * before
        recompute(static, chain, unit)
    own = row[at + units.OWN]
    run_rule(static, chain, own, False, row[at + units.OWN_INSTANCE], 1)
    a, b = 1.0, 1.0
    if rules[16 * own + CODE] == dist.BETA:
        a, b = r[rules[16 * own + FIRST] * LANES], r[rules[16 * own + SECOND] * LANES]
    kept = 0
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed, begin_all, count = children(segment, s)
        code = rules[16 * rule + CODE]
        p, value = rules[16 * rule + FIRST] * LANES, rules[16 * rule + VALUE] * LANES
        two = rules[16 * rule + SECOND] * LANES
        turned = bool(row[at + units.EXTRA_A] >> rule & 1) if rule < 62 else False
        for begin in range(begin_all, begin_all + count, LANES):
            m = min(LANES, begin_all + count - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                if selects:
                    kept += 1
                    if r[p + j] == work[kept - 1]:
                        continue
                y = r[value + j]
                if code == dist.BERNOULLI:
                    hits, misses = y, 1.0 - y
                elif code == dist.BINOMIAL:
                    hits, misses = y, r[two + j] - y
                elif code == dist.GEOMETRIC:
                    hits, misses = 1.0, y - 1.0
                else:  # negative binomial
                    hits, misses = r[two + j], y
                a += misses if turned else hits
                b += hits if turned else misses
    low, high = bounds_of(static, chain, own)
    note_claim(work, a, b, low, high)
    found = draw_beta(words, a, b) if a > 0.0 and b > 0.0 else math.nan
    if math.isnan(found) or low > -math.inf or high < math.inf:
        v[place] = before
        recompute(static, chain, unit)
        fail(chain, unit)
        return
    v[place] = min(max(found, 1e-300), 1.0 - 1e-16)
    recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def draw_bounded_normal(words: Array, mean: float, sd: float, low: float, high: float) -> float:
    """Return a normal number between two bounds."""
    if low == -math.inf and high == math.inf:
        return mean + sd * normal(words)
    a, b = (low - mean) / sd, (high - mean) / sd
    turned = a > 0.0  # in the lower tail, probabilities are accurate
    if turned:
        a, b = -b, -a
    if not a <= b:
        return math.nan
    p, q = normal_cdf(a), normal_cdf(b)
    if q > 1e-290:
        z = normal_quantile(p + uniform(words) * (q - p))
    else:  # so far out that the tail is nearly exponential
        z = b
        for _ in range(_TRIES):
            z = b - math.log1p(uniform(words) * math.expm1((b - a) * b)) / b
            if uniform(words) < math.exp(-0.5 * (z - b) * (z - b)):
                break
    z = min(max(z, a), b)
    return mean - sd * z if turned else mean + sd * z


@called
def update_normal(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw a normal unknown on which the means of normal variables depend linearly, with coefficients found now."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    place = row[at + units.PLACE]
    before = v[place]
    note_parameters(static, chain, unit, 1)
    step = max(1.0, abs(before))
    v[place] = before + step
    recompute(static, chain, unit)
    own = row[at + units.OWN]
    run_rule(static, chain, own, False, row[at + units.OWN_INSTANCE], 1)
    low, high = bounds_of(static, chain, own)
    precision = r[rules[16 * own + SECOND] * LANES]
    gradient, kept = precision * (r[rules[16 * own + FIRST] * LANES] - before), 0
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed, begin_all, count = children(segment, s)
        mean, tau = rules[16 * rule + FIRST] * LANES, rules[16 * rule + SECOND] * LANES
        value = rules[16 * rule + VALUE] * LANES
        logarithm = rules[16 * rule + CODE] == dist.LOGNORMAL
        for begin in range(begin_all, begin_all + count, LANES):
            m = min(LANES, begin_all + count - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                slope = (r[mean + j] - work[kept]) / step
                if slope != 0.0:
                    y = math.log(r[value + j]) if logarithm else r[value + j]
                    precision += r[tau + j] * slope * slope
                    gradient += r[tau + j] * slope * (y - work[kept])
                kept += 1
    mean = before + gradient / precision
    note_claim(work, mean, precision, low, high)
    found = draw_bounded_normal(words, mean, 1.0 / math.sqrt(precision), low, high)
    if not abs(found) < math.inf:
        v[place] = before
        recompute(static, chain, unit)
        fail(chain, unit)
        return
    v[place] = found
    recompute(static, chain, unit)
    accept(static, chain, unit)
