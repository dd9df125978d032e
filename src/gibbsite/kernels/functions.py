"""The log-potential of models of functions."""

from __future__ import annotations

from gibbsite._common.arrays import Array
from gibbsite._numba.foreign import stack_room
from gibbsite._numba.jit import implement
from gibbsite.graphs.kinds.functions import ContinuousGraph, factor_value
from gibbsite.graphs.local import log_potential


@implement(log_potential, ContinuousGraph)
def _log_potential_functions(arrays: ContinuousGraph, x: Array) -> float:
    total = 0.0
    work = stack_room()
    for f in range(arrays.group.size):
        total += factor_value(arrays, f, x, -1, 0.0, work)
    return total
