"""Slice sampling: a level below the present density, then uniform draws from the interval, which shrinks.

The interval is that of the site, so there is no width to be chosen [1]_; a draw below the level becomes the
new end on its side, and some tens of evaluations find a slice however narrow. That of an angle is a whole
turn, cut anywhere.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31 (section 4.1, shrinkage).
"""

from __future__ import annotations

import math

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.functions.densities import wrapped
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.kernels.continuous.energy import CHOSEN, ContinuousMemory

# Of the stage of an update: the level, the interval, and the place in it that is asked for.
_LEVEL, _LOW, _HIGH, _AT = 1, 2, 3, 4


@inlined
def ask_slice(arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer) -> Integer:
    """Ask for the present energy."""
    stage = memory.workspace.stage
    stage[_LEVEL], stage[_LOW], stage[_HIGH] = math.inf, arrays.low[i], arrays.high[i]
    stage[_AT] = x[i]
    memory.workspace.points[0] = x[i]
    return 1


@inlined
def answer_slice(
    arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Choose the level; then take a value above it, or shrink the interval."""
    stage, v, energy = memory.workspace.stage, memory.workspace.stage[_AT], memory.workspace.energy[0]
    rng, u = uniform(rng)
    if stage[_LEVEL] == math.inf:  # this was the present value
        stage[_LEVEL] = energy + math.log(1.0 - u)
        rng, u = uniform(rng)
        if arrays.period[i] > 0.0:  # a whole turn, cut anywhere
            stage[_LOW] = x[i] - u * arrays.period[i]
            stage[_HIGH] = stage[_LOW] + arrays.period[i]
            rng, u = uniform(rng)
    elif energy >= stage[_LEVEL] or v == x[i]:
        stage[CHOSEN] = memory.workspace.points[0]
        return rng, 0
    elif v < x[i]:
        stage[_LOW] = v
    else:
        stage[_HIGH] = v
    v = stage[_LOW] + u * (stage[_HIGH] - stage[_LOW])
    stage[_AT] = min(max(v, stage[_LOW]), stage[_HIGH])
    memory.workspace.points[0] = wrapped(arrays.low[i], arrays.period[i], stage[_AT])
    return rng, 1
