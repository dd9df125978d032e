"""Joint draws of chains of discrete unknowns, in compiled code: filter forward, then draw backward."""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.evaluator import C_TUNING, C_VALUES, C_WORDS, S_LIST, S_UNIT
from gibbsite.applications.bugs.compiled.segments import segment_density
from gibbsite.applications.bugs.compiled.updates import accept, fail, log_likelihood, recompute
from gibbsite.models.random import uniform


@called
def update_chain(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw all members of a chain, given everything else."""
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    logs = array_in(chain, C_TUNING, np.float64)
    at = units.UNIT_WIDTH * unit
    size, places = row[at + units.COUNT], row[at + units.LISTS]
    low, single = row[at + units.EXTRA_A], row[at + units.EXTRA_E]
    states = row[at + units.EXTRA_B] - low + 1
    filtered = row[at + units.EXTRA_C]
    moves = filtered + size * states
    for t in range(size):
        own = units.UNIT_WIDTH * (single + t)
        rule, instance = row[own + units.OWN], row[own + units.OWN_INSTANCE]
        here = filtered + t * states
        if t == 0:
            for k in range(states):
                v[lists[places]] = float(low + k)
                logs[here + k] = segment_density(static, chain, rule, False, instance, 1)
        else:
            table = moves + (t - 1) * states * states
            for i in range(states):
                v[lists[places + t - 1]] = float(low + i)
                recompute(static, chain, single + t - 1)
                for k in range(states):
                    v[lists[places + t]] = float(low + k)
                    logs[table + i * states + k] = segment_density(static, chain, rule, False, instance, 1)
            for k in range(states):
                logs[here + k] = _log_sum(logs, here - states, table + k, states)
        for k in range(states):
            if logs[here + k] > -math.inf:
                v[lists[places + t]] = float(low + k)
                recompute(static, chain, single + t)
                logs[here + k] += log_likelihood(static, chain, single + t)
    after = -1
    for t in range(size - 1, -1, -1):
        here = filtered + t * states
        if after >= 0:
            for k in range(states):
                logs[here + k] += logs[moves + t * states * states + k * states + after]
        after = draw_state(words, logs, here, states)
        if after < 0:
            fail(chain, unit)
            return
        v[lists[places + t]] = float(low + after)
        recompute(static, chain, single + t)
    accept(static, chain, unit)


@called
def _log_sum(logs: Floats, first: Integer, second: Integer, states: Integer) -> float:
    """Return the logarithm of the sum of exp(logs[first + i] + logs[second + i states])."""
    top = -math.inf
    for i in range(states):
        top = max(top, logs[first + i] + logs[second + i * states])
    if not top > -math.inf:
        return -math.inf
    total = 0.0
    for i in range(states):
        total += math.exp(logs[first + i] + logs[second + i * states] - top)
    return top + math.log(total)


@called
def draw_state(words: Array, logs: Floats, first: Integer, states: Integer) -> Integer:
    """Return a state with these log-weights, which are replaced; -1 if all are impossible."""
    top, total = -math.inf, 0.0
    for k in range(states):
        top = max(top, logs[first + k])
    if not top > -math.inf:
        return -1
    for k in range(states):
        logs[first + k] = math.exp(logs[first + k] - top)
        total += logs[first + k]
    left, last = uniform(words) * total, -1
    for k in range(states):
        if logs[first + k] > 0.0:
            last = k
            if left < logs[first + k]:
                break
        left -= logs[first + k]
    return last
