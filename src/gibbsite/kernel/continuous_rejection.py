"""Rejection: uniform proposals, accepted with probability exp(U(v) - bound of U).

The bound is the sum of those of the factors. Going through the factors, what is missing to it only grows: as
soon as it is more than the draw allows, the rest need not be looked at.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gibbsite._jit import Integer, called, implement
from gibbsite._random import Words, uniform
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.continuous_energy import (
    CALLS,
    FINE,
    HOPELESS,
    ContinuousMemory,
    Floats,
    heights,
    note_fault,
)
from gibbsite.kernel.continuous_interpolated import move_number

#: Proposals of one update after which a run gives up.
MOST_TRIES = 1_000_000


class Rejection(NamedTuple):
    """Parameters: what a factor in a minibatch is worth at most, log(1 + 1 / tau)."""

    gain: float


@called
def _stays(
    gain: float,
    graph: ContinuousGraph,
    memory: ContinuousMemory,
    x: Floats,
    i: Integer,
    v: Any,
    spare: Any,
) -> bool:
    """Tell whether the energy at v is at most ``spare`` below its bound."""
    desk = memory.desk
    at = desk.points.size - 1
    desk.points[at] = v
    for k in range(graph.start[graph.row[i]], desk.reach[0]):
        f = graph.factor[k]
        heights(graph, memory, f, x, i, at, 1)
        memory.counts[CALLS] += 1
        spare -= graph.bound[f] - desk.height[at]
        if spare < 0.0:
            return False
    for k in range(desk.reach[1]):
        heights(graph, memory, desk.factor[k], x, i, at, 1)
        memory.counts[CALLS] += 1
        spare -= desk.count[k] * (gain - math.log1p(desk.scale[k] * desk.height[at]))
        if spare < 0.0:
            return False
    return True


@implement(move_number, Rejection)
def _move_rejection(
    method: Rejection, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Any]:
    for _ in range(MOST_TRIES):
        rng, u = uniform(rng)
        v = graph.low[i] + u * (graph.high[i] - graph.low[i])
        rng, u = uniform(rng)
        if _stays(method.gain, graph, memory, x, i, v, -math.log(1.0 - u)):
            return rng, v
        if memory.fault[0] != FINE:
            return rng, x[i]
    note_fault(memory, HOPELESS, i, 0.0, 0, 0)
    return rng, x[i]
