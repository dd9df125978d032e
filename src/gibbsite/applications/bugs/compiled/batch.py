"""Draws of many independent unknowns with few values at once, in compiled code.

Each dependent belongs to one member, so that the densities at one value of all members are computed in one pass. What
several members share may only be a constraint, which is fulfilled or not: if a draw of all members violates it, they
are drawn one by one instead. Whether that happens does not depend on their values before, so that the distribution of
the members, which both ways keep, is kept.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.array_densities import array_density
from gibbsite.applications.bugs.compiled.chain_block import draw_state
from gibbsite.applications.bugs.compiled.evaluator import (
    C_TUNING,
    C_VALUES,
    C_WORDS,
    LANES,
    S_LIST,
    S_RULE,
    S_SEGMENT,
    S_UNIT,
    run_rule,
)
from gibbsite.applications.bugs.compiled.segments import scalar_density, segment_density
from gibbsite.applications.bugs.compiled.updates import accept, fail, recompute, update_finite
from gibbsite.applications.bugs.tables import KIND, STOCHASTIC


@called
def update_batch(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw all members of a batch."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    logs = array_in(chain, C_TUNING, np.float64)
    at = units.UNIT_WIDTH * unit
    size, members, begin = row[at + units.COUNT], row[at + units.LISTS], row[at + units.EXTRA_C]
    low = row[at + units.EXTRA_A]
    many = row[at + units.EXTRA_B] - low + 1
    old = begin + size * many
    for k in range(size):
        logs[old + k] = v[lists[members + k]]
    for k in range(size * many):
        logs[begin + k] = 0.0
    end = row[at + units.END]
    for value in range(many):
        for k in range(size):
            v[lists[members + k]] = float(low + value)
        recompute(static, chain, unit)
        _add(static, chain, row[at + units.MIDDLE], end, row[at + units.EXTRA_D], begin + value, many)
        _add(static, chain, end, end + row[at + units.EXTRA_E], -1, begin + value, many)
    for k in range(size):
        chosen = draw_state(words, logs, begin + k * many, many)
        if chosen < 0:
            fail(chain, unit)
            return
        v[lists[members + k]] = float(low + chosen)
    recompute(static, chain, unit)
    shared = end + row[at + units.EXTRA_E]
    for s in range(shared, shared + row[at + units.OWN_INSTANCE]):
        rule, listed, first, count = segment[4 * s], segment[4 * s + 1], segment[4 * s + 2], segment[4 * s + 3]
        if not segment_density(static, chain, rule, bool(listed), first, count) > -math.inf:
            for k in range(size):
                v[lists[members + k]] = logs[old + k]
            recompute(static, chain, unit)
            for k in range(size):
                update_finite(static, chain, row[at + units.TUNE] + k)
            return
    accept(static, chain, unit)


@called
def _add(
    static: Ints, chain: Ints, first_segment: Integer, end: Integer, owner: Integer, to: Integer, many: Integer
) -> None:
    """Add the log-densities of segments to those of the members they belong to: a list, or one after another (-1)."""
    segment = array_in(static, S_SEGMENT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    logs = array_in(chain, C_TUNING, np.float64)
    done = 0
    for s in range(first_segment, end):
        rule, listed = segment[4 * s], bool(segment[4 * s + 1])
        first, count = segment[4 * s + 2], segment[4 * s + 3]
        scalar = rules[16 * rule + KIND] == STOCHASTIC
        for begin in range(first, first + count, LANES):
            m = min(LANES, first + count - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                if scalar:
                    found = scalar_density(static, chain, rule, j)
                else:
                    found = array_density(static, chain, rule, listed, begin, j)
                member = done if owner < 0 else np.int64(lists[owner + done])
                logs[to + member * many] += found if found > -math.inf else -math.inf
                done += 1
