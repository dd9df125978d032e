"""Rejection: uniform proposals, accepted with probability exp(U(v) - bound of U).

The bound is the sum of those of the factors. Some proposals are looked at together, because a factor is
costly to find and cheap to call again; the first that is accepted is taken.
"""

from __future__ import annotations

import math

from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.functions.bounds import Bounds
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.kernels.continuous.energy import CHOSEN, FACTOR, HOPELESS, ContinuousMemory

#: Proposals that are looked at together, and after how many a run gives up.
TOGETHER, MOST_TRIES = 8, 1 << 20
# Of the stage of an update: the bound, the number of proposals.
_BOUND, _TRIES = 1, 2


@inlined
def _try(arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words) -> tuple[Words, Integer]:
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        memory.workspace.points[k] = arrays.low[i] + u * (arrays.high[i] - arrays.low[i])
    return rng, TOGETHER


@inlined
def ask_trials(
    bounds: Bounds, gain: float, arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Ask for the energies of some proposals; ``gain`` is log(1 + 1 / tau), the most of a factor drawn."""
    workspace = memory.workspace
    bound = 0.0
    begin = arrays.start[arrays.row[i]]
    for k in range(begin, begin + workspace.reach[0]):
        bound += bounds.bound[arrays.factor[k]]
    for k in range(workspace.reach[1]):
        bound += workspace.times[k] * gain
    workspace.stage[_BOUND], workspace.stage[_TRIES] = bound, 0.0
    return _try(arrays, memory, i, rng)


@inlined
def answer_trials(arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words) -> tuple[Words, Integer]:
    """Take the first proposal that is accepted, or make further ones."""
    workspace = memory.workspace
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        if math.log(1.0 - u) <= workspace.energy[k] - workspace.stage[_BOUND]:
            workspace.stage[CHOSEN] = workspace.points[k]
            return rng, 0
    workspace.stage[_TRIES] += TOGETHER
    if workspace.stage[_TRIES] >= MOST_TRIES:
        memory.fault[0], memory.fault[FACTOR] = HOPELESS, i
        return rng, 0
    return _try(arrays, memory, i, rng)
