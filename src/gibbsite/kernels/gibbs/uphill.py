"""Compiled hill climbing, one site at a time, and the best combination of two states.

Both use log-weights only, on every kind of graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints, Words32
from gibbsite._numba.jit import compiled_loop
from gibbsite.graphs.local import log_potential, log_weights

# Log-weights are considered equal if they differ by less than this, relative to their size.
_ROUNDING = 1e-12


@compiled_loop
def go_uphill(arrays: Any, x: Array, work: Floats) -> float:
    """Move single sites to their best states until none can be improved; return the log-potential.

    Like all results of compiled code, it does not include ``Graph.log_offset``.
    """
    better = True
    while better:
        better = False
        for site in range(x.size):
            i = np.uintp(site)
            size = log_weights(arrays, x, i, work)
            best: Any = np.int64(x[i])
            now = work[best]
            for a in range(size):
                if work[a] > work[best]:
                    best = a
            if work[best] > now and not work[best] - now <= _ROUNDING * (1.0 + abs(now)):
                x[i] = best
                better = True
    return log_potential(arrays, x)


@compiled_loop
def measure_drops(arrays: Any, x: Array, work: Floats, nearest: Floats, farthest: Floats) -> None:
    """Write the gaps of log-weight between the best state of each site and its second best and worst possible states.

    The gaps are infinite if a site has no other possible state.
    """
    for site in range(x.size):
        size = log_weights(arrays, x, np.uintp(site), work)
        best = 0
        for a in range(size):
            if work[a] > work[best]:
                best = a
        second, last = -np.inf, np.inf
        for a in range(size):
            if a != best and work[a] > -np.inf:
                second, last = max(second, work[a]), min(last, work[a])
        nearest[site] = work[best] - second
        farthest[site] = work[best] - last if last < np.inf else np.inf


class Neighbourhood(NamedTuple):
    """The graph that joins sites sharing a factor, in compressed rows, and buffers to traverse it."""

    start: Words32
    neighbour: Words32
    queue: Ints
    open: Bools


@compiled_loop
def recombine(arrays: Any, near: Neighbourhood, best: Array, other: Array, work: Floats) -> float:
    """Give ``best`` the states of ``other`` where they are better; return the gain of log-potential.

    The sites at which the two states differ form connected parts. No factor contains sites of two parts, so whether a
    part is better in one state or in the other does not depend on the other parts, and the best of all combinations is
    found (partition crossover: Whitley, Hains and Howe 2009). Afterwards, ``other`` has the states that ``best`` had
    there. Log-weights must be finite.
    """
    total = 0.0
    for site in range(best.size):
        near.open[site] = best[site] != other[site]
    for first in range(best.size):
        if not near.open[first]:
            continue
        near.open[first] = False
        near.queue[0] = first
        head, tail = 0, 1
        gain, scale = 0.0, 0.0
        while head < tail:
            i = np.uintp(near.queue[head])
            head += 1
            for k in range(np.uintp(near.start[i]), np.uintp(near.start[i + np.uintp(1)])):
                j = np.uintp(near.neighbour[k])
                if near.open[j]:
                    near.open[j] = False
                    near.queue[tail] = j
                    tail += 1
            log_weights(arrays, best, i, work)
            old, new = best[i], other[i]
            gain += work[new] - work[old]
            scale = max(scale, max(abs(work[new]), abs(work[old])))
            best[i], other[i] = new, old
        if gain > _ROUNDING * scale * tail:
            total += gain
        else:
            for k in range(tail):
                i = np.uintp(near.queue[k])
                old = best[i]
                best[i], other[i] = other[i], old
    return total
