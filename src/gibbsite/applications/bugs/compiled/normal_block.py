"""Joint draws of blocks of normal unknowns, in compiled code.

Given everything else, the density of a block is exp(-1/2 sum of tau (e + d' delta)^2) over *factors*: normal
variables whose residual e is linear in the change delta of the block, with constant coefficients d. So its precision
is the sum of tau d d', and the gradient that of -tau e d. The precision is factorised as L L' by columns, in an order
of elimination for which the places of the entries of L are known (George and Liu, 1981).
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.evaluator import (
    C_REGISTERS,
    C_VALUES,
    C_WORDS,
    C_WORK,
    LANES,
    S_INDEX,
    S_LEAF,
    S_LIST,
    S_NUMBERS,
    S_RULE,
    S_SEGMENT,
    S_SLICES,
    S_UNIT,
    instance_at,
    leaf_place,
    run_rule,
)
from gibbsite.applications.bugs.compiled.updates import accept, fail, recompute
from gibbsite.applications.bugs.tables import ENTRIES, FIRST, KIND, SECOND, STOCHASTIC, TARGET, VALUE, WIDTH
from gibbsite.models.random import normal


@called
def update_block(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw all members of a block jointly."""
    row = array_in(static, S_UNIT, np.int64)
    groups = array_in(static, S_SEGMENT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    size, members = row[at + units.COUNT], row[at + units.LISTS]
    # EXTRA_A: entries of L; EXTRA_B: where its structure starts; EXTRA_C, EXTRA_D: first group and their number
    entries, structure = row[at + units.EXTRA_A], row[at + units.EXTRA_B]
    gradient = entries
    for k in range(entries + size):
        work[k] = 0.0
    first = row[at + units.EXTRA_C]
    for group in range(row[at + units.EXTRA_D]):
        group_at = first + units.GROUP_WIDTH * group
        if groups[group_at + units.GROUP_SIZE] == 0:
            _add_sums(static, chain, groups, group_at, gradient, members)
        else:
            add_group(static, chain, groups, group_at, gradient)
    if not factorise(lists, work, structure, size, entries):
        fail(chain, unit)
        return
    for j in range(size):  # kept, so that it can be checked
        work[gradient + size + j] = work[gradient + j]
    solve_lower(lists, work, structure, size, gradient)
    for j in range(size):
        work[gradient + j] += normal(words)
    solve_upper(lists, work, structure, size, gradient)
    for j in range(size):
        if not abs(work[gradient + j]) < math.inf:
            fail(chain, unit)
            return
    for j in range(size):
        v[lists[members + j]] += work[gradient + j]
    recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def add_group(static: Ints, chain: Ints, groups: Ints, at: Integer, gradient: Integer) -> None:
    """Add the factors of a group to the precision and the gradient."""
    rules = array_in(static, S_RULE, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    numbers = array_in(static, S_NUMBERS, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    rule, listed = groups[at + units.GROUP_RULE], bool(groups[at + units.GROUP_LISTED])
    begin_all, count = groups[at + units.GROUP_FIRST], groups[at + units.GROUP_COUNT]
    size, members = groups[at + units.GROUP_SIZE], groups[at + units.GROUP_MEMBERS]
    coefficients, positions = groups[at + units.GROUP_COEFFICIENTS], groups[at + units.GROUP_POSITIONS]
    pairs = size * (size + 1) // 2
    scalar = rules[16 * rule + KIND] == STOCHASTIC
    value, mean, tau = (
        rules[16 * rule + VALUE] * LANES,
        rules[16 * rule + FIRST] * LANES,
        rules[16 * rule + SECOND] * LANES,
    )
    done = 0
    for begin in range(begin_all, begin_all + count, LANES):
        m = min(LANES, begin_all + count - begin)
        run_rule(static, chain, rule, listed, begin, m)
        for j in range(m):
            if not scalar:
                _add_vector(static, chain, rule, listed, begin, j, at, groups, done + j, gradient)
                continue
            f = done + j
            residual, precision = r[value + j] - r[mean + j], r[tau + j]
            position = positions + f * pairs
            for s in range(size):
                weight = precision * numbers[coefficients + f * size + s]
                work[gradient + lists[members + f * size + s]] -= weight * residual
                for t in range(s + 1):
                    work[lists[position]] += weight * numbers[coefficients + f * size + t]
                    position += 1
        done += m


@called
def _add_sums(static: Ints, chain: Ints, groups: Ints, at: Integer, gradient: Integer, members: Integer) -> None:
    """Add factors that share a precision, by their sums."""
    rules = array_in(static, S_RULE, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    numbers = array_in(static, S_NUMBERS, np.float64)
    v = array_in(chain, C_VALUES, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    rule, count = groups[at + units.GROUP_RULE], groups[at + units.GROUP_COUNT]
    run_rule(static, chain, rule, False, groups[at + units.GROUP_FIRST], 1)
    tau = array_in(chain, C_REGISTERS, np.float64)[rules[16 * rule + SECOND] * LANES]
    rows, positions = groups[at + units.GROUP_MEMBERS], groups[at + units.GROUP_POSITIONS]
    sums = groups[at + units.GROUP_COEFFICIENTS]
    for e in range(count):
        i, j, weight = lists[rows + e], lists[rows + count + e], tau * numbers[sums + e]
        work[lists[positions + e]] += weight
        if i == j:
            work[gradient + i] -= weight * v[lists[members + i]] + tau * numbers[sums + count + e]
        else:
            work[gradient + i] -= weight * v[lists[members + j]]
            work[gradient + j] -= weight * v[lists[members + i]]


@called
def _add_vector(
    static: Ints,
    chain: Ints,
    rule: Integer,
    listed: bool,
    begin: Integer,
    j: Integer,
    at: Integer,
    groups: Ints,
    f: Integer,
    gradient: Integer,
) -> None:
    """Add a factor that is a normal vector: its residuals are weighted by a precision matrix."""
    rules = array_in(static, S_RULE, np.int64)
    slices = array_in(static, S_SLICES, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    leaf = array_in(static, S_LEAF, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    numbers = array_in(static, S_NUMBERS, np.float64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    size, members = groups[at + units.GROUP_SIZE], groups[at + units.GROUP_MEMBERS]
    pairs = size * (size + 1) // 2
    width = rules[16 * rule + WIDTH]
    coefficients = groups[at + units.GROUP_COEFFICIENTS] + f * size * width
    k = instance_at(lists, listed, begin, j)
    target, entries = leaf_place(leaf, index, rules[16 * rule + TARGET], k), rules[16 * rule + ENTRIES]
    mean, precision = rules[16 * rule + FIRST], rules[16 * rule + SECOND]
    centre, near = np.int64(r[slices[4 * mean] * LANES + j]), slices[4 * mean + 1]
    matrix, far = np.int64(r[slices[4 * precision] * LANES + j]), slices[4 * precision + 1]
    for a in range(width):
        pull = 0.0
        for b in range(width):
            away = v[target + index[entries + b]] - v[centre + index[near + b]]
            pull += v[matrix + index[far + a + width * b]] * away
        for s in range(size):
            work[gradient + lists[members + f * size + s]] -= pull * numbers[coefficients + a * size + s]
        for b in range(width):
            tau = v[matrix + index[far + a + width * b]]
            position = groups[at + units.GROUP_POSITIONS] + f * pairs
            for s in range(size):
                weight = tau * numbers[coefficients + a * size + s]
                for t in range(s + 1):
                    work[lists[position]] += weight * numbers[coefficients + b * size + t]
                    position += 1


@called
def factorise(lists: Array, work: Floats, structure: Integer, size: Integer, entries: Integer) -> bool:
    """Replace the precision by its factor L, column by column; False if it is not positive definite.

    ``lists`` holds, from ``structure`` on: the start of each column, the row of each entry, the start of each row, and
    for each entry of a row that is not on the diagonal its column and its position.
    """
    column_start, row_index = structure, structure + size + 1
    row_start = row_index + entries
    row_column = row_start + size + 1
    row_position = row_column + entries - size
    scatter = entries + size  # work space: the column that is computed
    for j in range(size):
        begin, end = lists[column_start + j], lists[column_start + j + 1]
        for p in range(begin, end):
            work[scatter + lists[row_index + p]] = work[p]
        for q in range(lists[row_start + j], lists[row_start + j + 1]):
            k = lists[row_column + q]
            p = lists[row_position + q]
            factor = work[p]
            for e in range(p, lists[column_start + k + 1]):
                work[scatter + lists[row_index + e]] -= work[e] * factor
        pivot = work[scatter + j]
        if not 0.0 < pivot < math.inf:
            return False
        root = math.sqrt(pivot)
        work[begin] = root
        for p in range(begin + 1, end):
            work[p] = work[scatter + lists[row_index + p]] / root
    return True


@called
def solve_lower(lists: Array, work: Floats, structure: Integer, size: Integer, at: Integer) -> None:
    """Replace a vector b by the solution of L y = b."""
    row_index = structure + size + 1
    for j in range(size):
        begin, end = lists[structure + j], lists[structure + j + 1]
        y = work[at + j] / work[begin]
        for p in range(begin + 1, end):
            work[at + lists[row_index + p]] -= work[p] * y
        work[at + j] = y


@called
def solve_upper(lists: Array, work: Floats, structure: Integer, size: Integer, at: Integer) -> None:
    """Replace a vector y by the solution of L' x = y."""
    row_index = structure + size + 1
    for j in range(size - 1, -1, -1):
        begin, end = lists[structure + j], lists[structure + j + 1]
        value = work[at + j]
        for p in range(begin + 1, end):
            value -= work[p] * work[at + lists[row_index + p]]
        work[at + j] = value / work[begin]
