"""Moves of many unknowns together that leave most of the density as it is, in compiled code.

They are made in addition to the updates that derive from conditionals. Where random effects have an unknown precision,
or where a regression coefficient can be made up for by them, these take long to get from one end of the distribution
to the other, because each of them is held by all others.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.evaluator import (
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
from gibbsite.applications.bugs.compiled.normal_block import add_group, factorise, solve_lower, solve_upper
from gibbsite.applications.bugs.compiled.updates import accept, fail, log_likelihood, recompute
from gibbsite.applications.bugs.tables import FIRST
from gibbsite.models.random import exponential, normal, uniform

_WIDTH, _STEPS, _SHRINK = 0.7, 6, 100


@called
def update_scale(static: Ints, chain: Ints, unit: Integer) -> None:
    """Multiply the distances of unknowns from their means, or from 0, by powers of c.

    Random effects are multiplied by c, and their precision by c^-2; or the shape of a Weibull distribution by c, and
    with it all of the linear predictor. The logarithm of c is drawn by slice sampling (Liu and Sabatti, 2000).
    EXTRA_A: the rule of all members but the first, which has their means, or -1; EXTRA_B: the list of their instances;
    EXTRA_C: work space; EXTRA_D: the exponents; EXTRA_E: every how many updates, on average, the move is made.
    """
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    rules = array_in(static, S_RULE, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    if row[at + units.EXTRA_E] * uniform(words) > 1.0:
        return
    count, members = row[at + units.COUNT], row[at + units.LISTS]
    begin, rule = row[at + units.EXTRA_C], row[at + units.EXTRA_A]
    for k in range(count):
        work[begin + k], work[begin + count + k] = 0.0, v[lists[members + k]]
    for first in range(0, count - 1 if rule >= 0 else 0, LANES):
        m = min(LANES, count - 1 - first)
        run_rule(static, chain, rule, True, row[at + units.EXTRA_B] + first, m)
        for j in range(m):
            work[begin + 1 + first + j] = r[rules[16 * rule + FIRST] * LANES + j]
            work[begin + count + 1 + first + j] -= work[begin + 1 + first + j]
    now = _scaled_density(static, chain, unit, 0.0)
    if not now > -math.inf:
        fail(chain, unit)
        return
    height = now - exponential(words)
    low = -_WIDTH * uniform(words)
    high = low + _WIDTH
    left = np.int64(uniform(words) * _STEPS)
    right = _STEPS - 1 - left
    while left > 0 and _scaled_density(static, chain, unit, low) > height:
        low -= _WIDTH
        left -= 1
    while right > 0 and _scaled_density(static, chain, unit, high) > height:
        high += _WIDTH
        right -= 1
    for _ in range(_SHRINK):
        s = low + uniform(words) * (high - low)
        if _scaled_density(static, chain, unit, s) > height:
            accept(static, chain, unit)
            return
        if s < 0.0:
            low = s
        else:
            high = s
    _scaled_density(static, chain, unit, 0.0)


@called
def _scaled_density(static: Ints, chain: Ints, unit: Integer, s: float) -> float:
    """Return the log-density of s = log c, whose values are taken."""
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    numbers = array_in(static, S_NUMBERS, np.float64)
    v = array_in(chain, C_VALUES, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    count, members = row[at + units.COUNT], row[at + units.LISTS]
    begin, exponents, total = row[at + units.EXTRA_C], row[at + units.EXTRA_D], 0.0
    for k in range(count):
        exponent = numbers[exponents + k]
        total += exponent
        v[lists[members + k]] = work[begin + k] + math.exp(exponent * s) * work[begin + count + k]
    recompute(static, chain, unit)
    found = log_likelihood(static, chain, unit) + total * s
    return found if found < math.inf else -math.inf


@called
def update_shift(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw normal unknowns jointly while others move with them so that all predictors stay as they are.

    EXTRA_A to EXTRA_D are those of a block of normal unknowns; TUNE: how many they are; EXTRA_E: the list of which of
    the others moves with which member, behind its length and the start of the weights.
    """
    row = array_in(static, S_UNIT, np.int64)
    groups = array_in(static, S_SEGMENT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    numbers = array_in(static, S_NUMBERS, np.float64)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    size, members = row[at + units.TUNE], row[at + units.LISTS]
    entries, structure = row[at + units.EXTRA_A], row[at + units.EXTRA_B]
    for k in range(entries + size):
        work[k] = 0.0
    for group in range(row[at + units.EXTRA_D]):
        add_group(static, chain, groups, row[at + units.EXTRA_C] + units.GROUP_WIDTH * group, entries)
    if not factorise(lists, work, structure, size, entries):
        fail(chain, unit)
        return
    solve_lower(lists, work, structure, size, entries)
    for j in range(size):
        work[entries + j] += normal(words)
    solve_upper(lists, work, structure, size, entries)
    for j in range(size):
        if not abs(work[entries + j]) < math.inf:
            fail(chain, unit)
            return
        v[lists[members + j]] += work[entries + j]
    ties = row[at + units.EXTRA_E]
    many, weights = lists[ties], lists[ties + 1]
    for k in range(many):
        v[lists[ties + 2 + 2 * k]] -= numbers[weights + k] * work[entries + lists[ties + 3 + 2 * k]]
    recompute(static, chain, unit)
    accept(static, chain, unit)
