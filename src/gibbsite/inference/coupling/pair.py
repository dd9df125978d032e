"""A pair of chains, one some sweeps ahead, that visit the same sites with coupled draws until they meet.

The new values of a site are drawn from the maximal coupling of its transition probabilities in both chains: they are
equal with the largest possible probability. Chains that have met stay together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.kernels.base import transition
from gibbsite.kernels.rules import pick
from gibbsite.scans.base import period, refresh, site_at


class Times(NamedTuple):
    """The lag, and the first and last sweep whose states are averaged, in sweeps of the chain ahead."""

    lag: int
    first: int
    last: int


class Pair(NamedTuple):
    """State of a pair.

    ``order`` are the visits of a random scan, ``words`` the generator, ``row`` and ``other`` transition probabilities
    of a site in both chains. ``clock`` has the sweeps made by the chain ahead, and the one at which the chains met, or
    -1. ``average`` and ``correction`` (cells,) sum indicators of states, of the chain ahead and of differences.
    """

    ahead: Array
    behind: Array
    order: Ints32
    words: Words64
    row: Floats
    other: Floats
    clock: Ints
    average: Floats
    correction: Floats


@inlined
def draw_both(p: Floats, q: Floats, size: Integer, rng: Words) -> tuple[Words, Integer, Integer]:
    """Draw from the maximal coupling of two distributions, whose arrays are overwritten."""
    total_p, total_q, common = 0.0, 0.0, 0.0
    for a in range(size):
        total_p += p[a]
        total_q += q[a]
        common += min(p[a], q[a])
    rng, u = uniform(rng)
    level = u * max(total_p, total_q)
    rest_p, rest_q = total_p - common, total_q - common
    if level < common or rest_p <= 0.0 or rest_q <= 0.0:  # what remains is rounding error
        for a in range(size):
            p[a] = min(p[a], q[a])
        both = pick(p, size, level)
        return rng, both, both
    for a in range(size):
        least = min(p[a], q[a])
        p[a] -= least
        q[a] -= least
    rng, u = uniform(rng)
    rng, v = uniform(rng)
    return rng, pick(p, size, u * rest_p), pick(q, size, v * rest_q)


@inlined
def _sweep_ahead(parameters: Any, arrays: Any, schedule: Any, memory: Any, pair: Pair, rng: Words) -> Words:
    x, row = pair.ahead, pair.row
    for k in range(np.uintp(period(schedule))):
        i = np.uintp(site_at(schedule, pair.order, k))
        size = transition(parameters, arrays, memory, x, i, row)
        total = 0.0
        for a in range(size):
            total += row[a]
        rng, u = uniform(rng)
        x[i] = pick(row, size, u * total)
    return rng


@inlined
def _sweep_both(
    parameters: Any, arrays: Any, schedule: Any, memory: Any, memory_behind: Any, pair: Pair, rng: Words
) -> Words:
    x, y = pair.ahead, pair.behind
    for k in range(np.uintp(period(schedule))):
        i = np.uintp(site_at(schedule, pair.order, k))
        size = transition(parameters, arrays, memory, x, i, pair.row)
        transition(parameters, arrays, memory_behind, y, i, pair.other)
        rng, new, other = draw_both(pair.row, pair.other, size, rng)
        x[i] = new
        y[i] = other
    return rng


@inlined
def _have_met(pair: Pair) -> bool:
    apart = np.int64(0)
    for i in range(pair.ahead.size):
        apart += pair.ahead[i] != pair.behind[i]
    return bool(apart == 0)


@inlined
def _add(sums: Floats, offset: Ints, x: Array, weight: float) -> None:
    """Add a weight to the cells of a state."""
    for i in range(x.size):
        sums[offset[i] + x[i]] += weight


@compiled_loop
def move_pair(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    memory: Any,
    memory_behind: Any,
    pair: Pair,
    offset: Ints,
    times: Times,
    until: int,
) -> bool:
    """Move a pair until sweep ``until`` of the chain ahead; return whether it is done.

    The correction of the average over the sweeps k to m is the sum of the differences h(X_t) - h(Y_{t - lag}) before
    the meeting, each counted for every j >= 1 with k <= t - j lag <= m.
    """
    rng, clock = load(pair.words), pair.clock
    lag, first, last = times.lag, times.first, times.last
    done = False
    while not done and clock[0] < until:
        rng = refresh(schedule, pair.order, rng)
        clock[0] += 1
        t = clock[0]
        if t <= lag or clock[1] >= 0:
            rng = _sweep_ahead(parameters, arrays, schedule, memory, pair, rng)
        else:
            rng = _sweep_both(parameters, arrays, schedule, memory, memory_behind, pair, rng)
        if t >= lag and clock[1] < 0 and _have_met(pair):
            clock[1] = t
        if first <= t <= last:
            _add(pair.average, offset, pair.ahead, 1.0)
        if clock[1] < 0 and t >= first + lag:
            # -(-a // b) is a / b, rounded up
            least = np.int64(1) if t - last <= lag else -((last - t) // lag)
            often = (t - first) // lag - least + 1
            if often > 0:
                _add(pair.correction, offset, pair.ahead, float(often))
                _add(pair.correction, offset, pair.behind, -float(often))
        done = clock[1] >= 0 and t >= last
    store(pair.words, rng)
    return done
