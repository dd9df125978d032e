"""Segments of rules in compiled code: compute deterministic ones, add up the densities of stochastic ones.

A segment is a range of instances of a rule, or a list of them.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs.compiled.array_densities import array_density
from gibbsite.applications.bugs.compiled.densities import LOG_ROOT_TWO_PI, log_density, log_mass_between
from gibbsite.applications.bugs.compiled.evaluator import (
    C_REGISTERS,
    C_VALUES,
    C_WORK,
    LANES,
    S_INDEX,
    S_LEAF,
    S_LIST,
    S_RULE,
    S_SLICES,
    instance_at,
    leaf_place,
    log_root_determinant,
    run_rule,
)
from gibbsite.applications.bugs.distributions import BERNOULLI, NORMAL
from gibbsite.applications.bugs.tables import BOUNDED as BOUND_KIND
from gibbsite.applications.bugs.tables import (
    CENSORED,
    CODE,
    ENTRIES,
    FIRST,
    KIND,
    LOGICAL,
    LOWER,
    MATRIX,
    SECOND,
    STOCHASTIC,
    TARGET,
    UNBOUNDED,
    UPPER,
    VALUE,
)


@called
def compute_segment(static: Ints, chain: Ints, rule: Integer, listed: bool, first: Integer, count: Integer) -> None:
    """Compute a segment of a deterministic rule, and store its values."""
    rules = array_in(static, S_RULE, np.int64)
    leaf = array_in(static, S_LEAF, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    out, target = rules[16 * rule + VALUE] * LANES, rules[16 * rule + TARGET]
    matrix = rules[16 * rule + KIND] == MATRIX
    for begin in range(first, first + count, LANES):
        m = min(LANES, first + count - begin)
        run_rule(static, chain, rule, listed, begin, m)
        if matrix:
            for j in range(m):
                _invert(static, chain, rule, leaf_place(leaf, index, target, instance_at(lists, listed, begin, j)), j)
        else:
            for j in range(m):
                v[leaf_place(leaf, index, target, instance_at(lists, listed, begin, j))] = r[out + j]


@called
def _invert(static: Ints, chain: Ints, rule: Integer, place: Integer, j: Integer) -> None:
    """Write the inverse of a symmetric positive definite matrix, or NaN."""
    rules = array_in(static, S_RULE, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    slices = array_in(static, S_SLICES, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    number = rules[16 * rule + FIRST]
    size = slices[4 * number + 2]
    side = np.int64(math.sqrt(size) + 0.5)
    begin, relative = np.int64(r[slices[4 * number] * LANES + j]), slices[4 * number + 1]
    for e in range(size):
        work[e] = v[begin + index[relative + e]]
    fine = not math.isnan(log_root_determinant(work, 0, side))
    entries = rules[16 * rule + ENTRIES]
    for column in range(side):
        for i in range(side):  # L y = e, then L' x = y
            value = 1.0 if i == column else 0.0
            for k in range(i):
                value -= work[i * side + k] * work[size + k]
            work[size + i] = value / work[i * side + i]
        for i in range(side - 1, -1, -1):
            value = work[size + i]
            for k in range(i + 1, side):
                value -= work[k * side + i] * work[size + k]
            work[size + i] = value / work[i * side + i]
        for i in range(side):
            v[place + index[entries + i + column * side]] = work[size + i] if fine else math.nan


@called
def scalar_density(static: Ints, chain: Ints, rule: Integer, j: Integer) -> float:
    """Return the log-density of instance j of the last run of a rule whose value and parameters are numbers."""
    rules = array_in(static, S_RULE, np.int64)
    r = array_in(chain, C_REGISTERS, np.float64)
    code = rules[16 * rule + CODE]
    x = r[rules[16 * rule + VALUE] * LANES + j]
    a = r[rules[16 * rule + FIRST] * LANES + j]
    b = r[rules[16 * rule + FIRST + 1] * LANES + j]
    c = r[rules[16 * rule + FIRST + 2] * LANES + j]
    d = r[rules[16 * rule + FIRST + 3] * LANES + j]
    found = log_density(code, x, a, b, c, d)
    bounded = rules[16 * rule + BOUND_KIND]
    if bounded != UNBOUNDED:
        lower, upper = rules[16 * rule + LOWER], rules[16 * rule + UPPER]
        low = -math.inf if lower < 0 else r[lower * LANES + j]
        high = math.inf if upper < 0 else r[upper * LANES + j]
        if not low <= x <= high:
            return -math.inf
        if bounded != CENSORED:
            found -= log_mass_between(code, low, high, a, b, c, d, bool(code >= BERNOULLI))
    return found


@called
def segment_density(static: Ints, chain: Ints, rule: Integer, listed: bool, first: Integer, count: Integer) -> float:
    """Return the sum of the log-densities of a segment of a stochastic rule; minus infinity instead of NaN."""
    rules = array_in(static, S_RULE, np.int64)
    total = 0.0
    scalar = rules[16 * rule + KIND] == STOCHASTIC
    code, plain = rules[16 * rule + CODE], rules[16 * rule + BOUND_KIND] == UNBOUNDED
    for begin in range(first, first + count, LANES):
        m = min(LANES, first + count - begin)
        run_rule(static, chain, rule, listed, begin, m)
        if plain and code == NORMAL:
            total += _normal_densities(static, chain, rule, m)
        elif plain and code == BERNOULLI:
            total += _bernoulli_densities(static, chain, rule, m)
        elif scalar:
            for j in range(m):
                total += scalar_density(static, chain, rule, j)
        else:
            for j in range(m):
                total += array_density(static, chain, rule, listed, begin, j)
        if not total > -math.inf:
            return -math.inf
    return total


@called
def _normal_densities(static: Ints, chain: Ints, rule: Integer, m: Integer) -> float:
    """Return the sum of the log-densities of normal numbers; equal precisions share a logarithm."""
    rules = array_in(static, S_RULE, np.int64)
    r = array_in(chain, C_REGISTERS, np.float64)
    x, a = rules[16 * rule + VALUE] * LANES, rules[16 * rule + FIRST] * LANES
    b = a + (rules[16 * rule + SECOND] - rules[16 * rule + FIRST]) * LANES
    total, last, logarithm = 0.0, 0.0, 0.0
    for j in range(m):
        precision = r[b + j]
        if precision != last:
            if not precision > 0.0:
                return -math.inf
            last, logarithm = precision, math.log(precision)
        away = r[x + j] - r[a + j]
        total += logarithm - precision * away * away
    found: float = 0.5 * total - m * LOG_ROOT_TWO_PI
    return found


@called
def _bernoulli_densities(static: Ints, chain: Ints, rule: Integer, m: Integer) -> float:
    """Return the sum of the log-probabilities of zeros and ones; the logarithms of several are taken at once."""
    rules = array_in(static, S_RULE, np.int64)
    r = array_in(chain, C_REGISTERS, np.float64)
    value, first = rules[16 * rule + VALUE] * LANES, rules[16 * rule + FIRST] * LANES
    total, product = 0.0, 1.0
    for j in range(m):
        x, p = r[value + j], r[first + j]
        if not 0.0 <= p <= 1.0 or (x != 0.0 and x != 1.0):
            return -math.inf
        one = p if x == 1.0 else 1.0 - p
        if product * one < 1e-250:  # about to become too small for a number
            if not one > 0.0:
                return -math.inf
            total, product = total + math.log(product) + math.log(one), 1.0
        else:
            product *= one
    return total + math.log(product)


@called
def is_logical(static: Ints, rule: Integer) -> bool:
    """Whether a rule is deterministic."""
    kind = array_in(static, S_RULE, np.int64)[16 * rule + KIND]
    return bool(kind in (LOGICAL, MATRIX))
