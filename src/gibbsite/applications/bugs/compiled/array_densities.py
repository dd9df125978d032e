"""Log-densities of distributions whose value or parameters are arrays, in compiled code."""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.applications.bugs import distributions as dist
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
    slice_size,
)
from gibbsite.applications.bugs.tables import CODE, ENTRIES, FIRST, SECOND, TARGET, THIRD, VALUE, WIDTH

_LOG_TWO_PI = math.log(2.0 * math.pi)


@inlined
def entry(v: Floats, index: Array, place: Integer, relative: Integer, e: Integer) -> float:
    """Return an entry of a slice."""
    value: float = v[place + index[relative + e]]
    return value


@called
def array_density(static: Ints, chain: Ints, rule: Integer, listed: bool, first: Integer, j: Integer) -> float:
    """Return the log-density of instance j of the last run of a rule."""
    rules = array_in(static, S_RULE, np.int64)
    slices = array_in(static, S_SLICES, np.int64)
    leaf = array_in(static, S_LEAF, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    row = 16 * rule
    code, k = rules[row + CODE], instance_at(lists, listed, first, j)
    if code == dist.INTERVAL:
        cuts = rules[row + SECOND]
        begin, relative = r[slices[4 * cuts] * LANES + j], slices[4 * cuts + 1]
        x, t = r[rules[row + VALUE] * LANES + j], r[rules[row + FIRST] * LANES + j]
        below = 0
        for e in range(slice_size(slices, leaf, index, cuts, k)):
            below += t > entry(v, index, np.int64(begin), relative, e)
        return 0.0 if x == below else -math.inf
    one = rules[row + FIRST]
    begin, relative = r[slices[4 * one] * LANES + j], slices[4 * one + 1]
    if not begin >= 0.0:
        return -math.inf
    place, size = np.int64(begin), slice_size(slices, leaf, index, one, k)
    if code == dist.CATEGORICAL:
        return _categorical(v, index, place, relative, size, r[rules[row + VALUE] * LANES + j])
    target, entries, width = leaf_place(leaf, index, rules[row + TARGET], k), rules[row + ENTRIES], rules[row + WIDTH]
    two = rules[row + SECOND]
    if code == dist.DIRICHLET:
        total, weights, found = 0.0, 0.0, 0.0
        for e in range(width):
            alpha, x = entry(v, index, place, relative, e), entry(v, index, target, entries, e)
            if not alpha >= 0.0 or (alpha > 0.0 and not x > 0.0) or (alpha == 0.0 and x != 0.0):
                return -math.inf
            if alpha > 0.0:
                found += (alpha - 1.0) * math.log(x) - math.lgamma(alpha)
            total += x
            weights += alpha
        return found + math.lgamma(weights) if abs(total - 1.0) < 1e-6 else -math.inf
    if code == dist.MULTINOMIAL:
        n = r[two * LANES + j]
        total, weights, found = 0.0, 0.0, math.lgamma(n + 1.0)
        for e in range(width):
            weights += entry(v, index, place, relative, e)
        for e in range(width):
            p, x = entry(v, index, place, relative, e) / weights, entry(v, index, target, entries, e)
            if not (p >= 0.0 and x >= 0.0) or (p == 0.0 and x > 0.0) or x != math.floor(x):
                return -math.inf
            if x > 0.0:
                found += x * math.log(p) - math.lgamma(x + 1.0)
            total += x
        return found if total == n else -math.inf
    work = array_in(chain, C_WORK, np.float64)
    if code == dist.WISHART:
        return _wishart(v, index, work, place, relative, target, entries, width, r[two * LANES + j])
    start, other = r[slices[4 * two] * LANES + j], slices[4 * two + 1]
    if not start >= 0.0:
        return -math.inf
    second = np.int64(start)
    if code == dist.NORMAL_MIXTURE:
        three = rules[row + THIRD]
        third, last = np.int64(r[slices[4 * three] * LANES + j]), slices[4 * three + 1]
        x, top, found, total = r[rules[row + VALUE] * LANES + j], -math.inf, 0.0, 0.0
        for e in range(size):
            tau, p = entry(v, index, second, other, e), entry(v, index, third, last, e)
            if not (tau > 0.0 and p >= 0.0):
                return -math.inf
            if p > 0.0:
                top = max(top, -0.5 * tau * (x - entry(v, index, place, relative, e)) ** 2)
            total += p
        for e in range(size):
            tau, p = entry(v, index, second, other, e), entry(v, index, third, last, e)
            if p > 0.0:
                away = x - entry(v, index, place, relative, e)
                found += p * math.sqrt(tau) * math.exp(-0.5 * tau * away * away - top)
        return top + math.log(found / total) - 0.5 * _LOG_TWO_PI if total > 0.0 else -math.inf
    # normal and Student distributions of vectors: the quadratic form and the determinant
    square = width * width
    for e in range(square):
        work[e] = entry(v, index, second, other, e)
    if code == dist.COVARIANCE_NORMAL:
        root = log_root_determinant(work, 0, width)
        quadratic = 0.0
        for i in range(width):
            value = entry(v, index, target, entries, i) - entry(v, index, place, relative, i)
            for e in range(i):
                value -= work[i * width + e] * work[square + e]
            work[square + i] = value / work[i * width + i]
            quadratic += work[square + i] ** 2
        return float(-0.5 * width * _LOG_TWO_PI - root - 0.5 * quadratic)
    quadratic = 0.0
    for i in range(width):
        mine = entry(v, index, target, entries, i) - entry(v, index, place, relative, i)
        for e in range(width):
            away = entry(v, index, target, entries, e) - entry(v, index, place, relative, e)
            quadratic += mine * work[i * width + e] * away
    root = log_root_determinant(work, 0, width)
    if code == dist.MULTIVARIATE_STUDENT:
        df = r[rules[row + THIRD] * LANES + j]
        gain = math.lgamma(0.5 * (df + width)) - math.lgamma(0.5 * df) - 0.5 * width * math.log(df * math.pi)
        return float(gain + root - 0.5 * (df + width) * math.log1p(quadratic / df))
    return float(root - 0.5 * width * _LOG_TWO_PI - 0.5 * quadratic)


@called
def _categorical(v: Floats, index: Array, place: Integer, relative: Integer, size: Integer, x: float) -> float:
    total = 0.0
    for e in range(size):
        p = entry(v, index, place, relative, e)
        if not p >= 0.0:
            return -math.inf
        total += p
    if not (1.0 <= x <= size) or x != math.floor(x) or total <= 0.0:
        return -math.inf
    p = entry(v, index, place, relative, np.int64(x) - 1)
    return math.log(p / total) if p > 0.0 else -math.inf


@called
def _wishart(
    v: Floats,
    index: Array,
    work: Floats,
    place: Integer,
    relative: Integer,
    target: Integer,
    entries: Integer,
    width: Integer,
    df: float,
) -> float:
    side = np.int64(math.sqrt(width) + 0.5)
    trace = 0.0
    if not df > side - 1:
        return -math.inf
    for e in range(width):
        trace += entry(v, index, place, relative, e) * entry(v, index, target, entries, e)
        work[e] = entry(v, index, target, entries, e)
    mine = log_root_determinant(work, 0, side)
    for e in range(width):
        work[e] = entry(v, index, place, relative, e)
    scale = log_root_determinant(work, 0, side)
    found = df * scale + (df - side - 1.0) * mine - 0.5 * trace - 0.5 * df * side * math.log(2.0)
    found -= 0.25 * side * (side - 1) * math.log(math.pi)
    for i in range(side):
        found -= math.lgamma(0.5 * (df - i))
    return found if found > -math.inf else -math.inf
