"""Slice sampling: a level below the present density, then uniform draws from the interval, which shrinks.

The interval is that of the site, so there is no width to be chosen [1]_; a draw below the level becomes the
new end on its side, and some tens of evaluations find a slice however narrow.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31 (section 4.1, shrinkage).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gibbsite._jit import Integer, implement
from gibbsite._random import Words, uniform
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.continuous_energy import FINE, ContinuousMemory, Floats, energy_at
from gibbsite.kernel.continuous_interpolated import move_number


class Slice(NamedTuple):
    """Slices have no parameters."""

    unused: int = 0


@implement(move_number, Slice)
def _move_slice(
    method: Slice, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Any]:
    low, high = graph.low[i], graph.high[i]
    rng, u = uniform(rng)
    level = energy_at(graph, memory, x, i, x[i]) + math.log(1.0 - u)
    while memory.fault[0] == FINE:
        rng, u = uniform(rng)
        v = min(max(low + u * (high - low), low), high)
        if energy_at(graph, memory, x, i, v) >= level or v == x[i]:
            return rng, v
        if v < x[i]:
            low = v
        else:
            high = v
    return rng, x[i]
