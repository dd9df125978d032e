"""Rejection: uniform proposals, accepted with probability exp(U(v) - bound of U).

The bound is the sum of those of the factors. Some proposals are looked at together, because a factor is
costly to find and cheap to call again; the first that is accepted is taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gibbsite._jit import Integer, implement
from gibbsite._random import Words, uniform
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.continuous_energy import CHOSEN, FACTOR, HOPELESS, ContinuousMemory, Floats
from gibbsite.kernel.continuous_method import answer, ask

#: Proposals that are looked at together, and after how many a run gives up.
TOGETHER, MOST_TRIES = 8, 1 << 20
# Of the stage of an update: the bound, the number of proposals.
_BOUND, _TRIES = 1, 2


class Rejection(NamedTuple):
    """Parameters: what a factor in a minibatch is worth at most, log(1 + 1 / tau)."""

    gain: float


@implement(ask, Rejection)
def _ask_rejection(
    method: Rejection, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    desk = memory.desk
    bound = 0.0
    begin = graph.start[graph.row[i]]
    for k in range(begin, begin + desk.reach[0]):
        bound += graph.bound[graph.factor[k]]
    for k in range(desk.reach[1]):
        bound += desk.times[k] * method.gain
    desk.stage[_BOUND], desk.stage[_TRIES] = bound, 0.0
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        desk.points[k] = graph.low[i] + u * (graph.high[i] - graph.low[i])
    return rng, TOGETHER


@implement(answer, Rejection)
def _answer_rejection(
    method: Rejection, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
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
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        desk.points[k] = graph.low[i] + u * (graph.high[i] - graph.low[i])
    return rng, TOGETHER
