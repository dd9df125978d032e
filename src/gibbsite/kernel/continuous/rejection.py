"""Rejection: uniform proposals, accepted with probability exp(U(v) - bound of U).

The bound is the sum of those of the factors. Some proposals are looked at together, because a factor is
costly to find and cheap to call again; the first that is accepted is taken.
"""

from __future__ import annotations

import math

from gibbsite._compile.jit import Integer, inlined
from gibbsite._random.generators import Words, uniform
from gibbsite.graph.functions.bounds import Bounds
from gibbsite.graph.kinds.functions import ContinuousGraph
from gibbsite.kernel.continuous.energy import CHOSEN, FACTOR, HOPELESS, ContinuousMemory

#: Proposals that are looked at together, and after how many a run gives up.
TOGETHER, MOST_TRIES = 8, 1 << 20
# Of the stage of an update: the bound, the number of proposals.
_BOUND, _TRIES = 1, 2


@inlined
def _try(graph: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words) -> tuple[Words, Integer]:
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        memory.desk.points[k] = graph.low[i] + u * (graph.high[i] - graph.low[i])
    return rng, TOGETHER


@inlined
def ask_trials(
    bounds: Bounds, gain: float, graph: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Ask for the energies of some proposals; ``gain`` is log(1 + 1 / tau), the most of a factor drawn."""
    desk = memory.desk
    bound = 0.0
    begin = graph.start[graph.row[i]]
    for k in range(begin, begin + desk.reach[0]):
        bound += bounds.bound[graph.factor[k]]
    for k in range(desk.reach[1]):
        bound += desk.times[k] * gain
    desk.stage[_BOUND], desk.stage[_TRIES] = bound, 0.0
    return _try(graph, memory, i, rng)


@inlined
def answer_trials(
    graph: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Take the first proposal that is accepted, or make further ones."""
    desk = memory.desk
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        if math.log(1.0 - u) <= desk.energy[k] - desk.stage[_BOUND]:
            desk.stage[CHOSEN] = desk.points[k]
            return rng, 0
    desk.stage[_TRIES] += TOGETHER
    if desk.stage[_TRIES] >= MOST_TRIES:
        memory.fault[0], memory.fault[FACTOR] = HOPELESS, i
        return rng, 0
    return _try(graph, memory, i, rng)
