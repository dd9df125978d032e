"""Conjugate draws of vectors of probabilities and of precision matrices, in compiled code."""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.conjugate import children
from gibbsite.applications.bugs.compiled.evaluator import (
    C_REGISTERS,
    C_VALUES,
    C_WORDS,
    C_WORK,
    LANES,
    S_INDEX,
    S_LEAF,
    S_LIST,
    S_RULE,
    S_SEGMENT,
    S_SLICES,
    S_UNIT,
    instance_at,
    leaf_place,
    run_rule,
)
from gibbsite.applications.bugs.compiled.updates import accept, fail, recompute
from gibbsite.applications.bugs.tables import CODE, ENTRIES, FIRST, SECOND, TARGET, VALUE, WIDTH
from gibbsite.models.random import gamma, normal


@called
def update_dirichlet(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw a vector of probabilities whose conditional distribution is a Dirichlet distribution."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    slices = array_in(static, S_SLICES, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    leaf = array_in(static, S_LEAF, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    count, begin_list = row[at + units.COUNT], row[at + units.LISTS]
    own = row[at + units.OWN]
    run_rule(static, chain, own, False, row[at + units.OWN_INSTANCE], 1)
    weights = rules[16 * own + FIRST]
    start, relative = np.int64(r[slices[4 * weights] * LANES]), slices[4 * weights + 1]
    for e in range(count):
        work[e] = v[start + index[relative + e]]
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed, begin_all, many = children(segment, s)
        probabilities = rules[16 * rule + FIRST]
        here = slices[4 * probabilities] * LANES
        offset = index[slices[4 * probabilities + 1]]
        value = rules[16 * rule + VALUE] * LANES
        for begin in range(begin_all, begin_all + many, LANES):
            m = min(LANES, begin_all + many - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                if r[here + j] + offset != lists[begin_list]:
                    continue
                if rules[16 * rule + CODE] == dist.CATEGORICAL:
                    work[np.int64(r[value + j]) - 1] += 1.0
                else:
                    k = instance_at(lists, listed, begin, j)
                    target, entries = leaf_place(leaf, index, rules[16 * rule + TARGET], k), rules[16 * rule + ENTRIES]
                    for e in range(count):
                        work[e] += v[target + index[entries + e]]
    total = 0.0
    for e in range(count):
        work[count + e] = work[e]
        work[e] = gamma(words, work[e]) if work[e] > 0.0 else 0.0
        total += work[e]
    if not total > 0.0:
        fail(chain, unit)
        return
    for e in range(count):
        v[lists[begin_list + e]] = work[e] / total
    recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def update_wishart(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw a precision matrix whose conditional distribution is a Wishart distribution, by the method of Bartlett."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    slices = array_in(static, S_SLICES, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    leaf = array_in(static, S_LEAF, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    count, begin_list = row[at + units.COUNT], row[at + units.LISTS]
    side = np.int64(math.sqrt(count) + 0.5)
    own = row[at + units.OWN]
    run_rule(static, chain, own, False, row[at + units.OWN_INSTANCE], 1)
    scale = rules[16 * own + FIRST]
    start, relative = np.int64(r[slices[4 * scale] * LANES]), slices[4 * scale + 1]
    df = r[rules[16 * own + SECOND] * LANES]
    for e in range(count):
        work[e] = v[start + index[relative + e]]
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed, begin_all, many = children(segment, s)
        precision, mean = rules[16 * rule + SECOND], rules[16 * rule + FIRST]
        width = rules[16 * rule + WIDTH]
        for begin in range(begin_all, begin_all + many, LANES):
            m = min(LANES, begin_all + many - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                if r[slices[4 * precision] * LANES + j] + index[slices[4 * precision + 1]] != lists[begin_list]:
                    continue
                k = instance_at(lists, listed, begin, j)
                target, entries = leaf_place(leaf, index, rules[16 * rule + TARGET], k), rules[16 * rule + ENTRIES]
                centre, near = np.int64(r[slices[4 * mean] * LANES + j]), slices[4 * mean + 1]
                df += 1.0
                for a in range(width):
                    away = v[target + index[entries + a]] - v[centre + index[near + a]]
                    for b in range(width):
                        other = v[target + index[entries + b]] - v[centre + index[near + b]]
                        work[a * side + b] += away * other
    for e in range(count):
        work[2 * count + e] = work[e]
    work[3 * count] = df
    if draw_wishart(words, work, side, df):
        for e in range(count):
            v[lists[begin_list + e]] = work[e]
        recompute(static, chain, unit)
        accept(static, chain, unit)
    else:
        fail(chain, unit)


@called
def draw_wishart(words: Array, work: Floats, side: Integer, df: float) -> bool:
    """Replace a scale matrix R by a draw of density |X|^((df - side - 1) / 2) exp(-tr(R X) / 2).

    With R = L L', X = L'^-1 A A' L^-1, where A is lower triangular with normal numbers below the diagonal and roots of
    chi-squared numbers on it (Bartlett, 1933).
    """
    square = side * side
    for i in range(side):  # the factor L, in place
        for j in range(i + 1):
            value = work[i * side + j]
            for k in range(j):
                value -= work[i * side + k] * work[j * side + k]
            if i == j:
                if not value > 0.0:
                    return False
                work[i * side + i] = math.sqrt(value)
            else:
                work[i * side + j] = value / work[j * side + j]
    for i in range(side):
        for j in range(side):
            work[square + i * side + j] = normal(words) if j < i else 0.0
        if not df - i > 0.0:
            return False
        work[square + i * side + i] = math.sqrt(2.0 * gamma(words, 0.5 * (df - i)))
    for column in range(side):  # L' B = A
        for i in range(side - 1, -1, -1):
            value = work[square + i * side + column]
            for k in range(i + 1, side):
                value -= work[k * side + i] * work[square + k * side + column]
            work[square + i * side + column] = value / work[i * side + i]
    for i in range(side):
        for j in range(i + 1):
            value = 0.0
            for k in range(side):
                value += work[square + i * side + k] * work[square + j * side + k]
            work[i * side + j] = value
    for i in range(side):
        for j in range(i + 1, side):
            work[i * side + j] = work[j * side + i]
    return True
