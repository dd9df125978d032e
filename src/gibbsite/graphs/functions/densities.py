"""Log-densities in compiled code: the value, the gradient, and the part that depends on a single coordinate.

A *workspace* has 2 n numbers: a place and the gradient at it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.foreign import call_at, stack_room
from gibbsite._numba.jit import Integer, compiled, generic, implement, inlined
from gibbsite.graphs.kinds.conditionals import ConditionalsGraph
from gibbsite.graphs.kinds.density import DataGraph, DensityGraph
from gibbsite.graphs.kinds.functions import ContinuousGraph, factor_value
from gibbsite.graphs.local import log_potential

_LARGE = 100_000  # bytes of a graph above which its density is compiled for a single call


@inlined
def inside(arrays: Any, x: Floats) -> bool:
    """Return whether a place is in the box; NaN and infinity are not."""
    for k in range(arrays.low.size):
        if not (arrays.low[k] <= x[k] <= arrays.high[k]) or abs(x[k]) == math.inf:
            return False
    return True


@generic
def period_of(arrays: Any, i: Integer) -> float:
    """Return the length of a turn of a site that is an angle, otherwise 0."""
    raise NotImplementedError


@implement(period_of)
def _straight(arrays: Any, i: Integer) -> float:
    return 0.0


@implement(period_of, ContinuousGraph)
def _period(arrays: ContinuousGraph, i: Integer) -> float:
    return float(arrays.period[i])


@implement(period_of, ConditionalsGraph)
def _period_of_drawn(arrays: ConditionalsGraph, i: Integer) -> float:
    return float(arrays.period[i])


@inlined
def wrapped(low: Any, period: Any, v: Any) -> Any:
    """Return the value of an angle in the turn that begins at ``low``; return other numbers unchanged."""
    if period == 0.0 or low <= v < low + period:
        return v
    v -= np.floor((v - low) / period) * period
    return v if v < low + period else low  # after rounding up to a whole turn


@inlined
def density_at(arrays: Any, x: Floats) -> float:
    """Return the log-density at a place, minus infinity outside the box."""
    return log_potential(arrays, x) if inside(arrays, x) else -math.inf


@generic
def gradient_at(arrays: Any, workspace: Floats) -> float:
    """Write the gradient at the place of a workspace into it; return NaN if that fails, otherwise 0."""
    raise NotImplementedError


@implement(gradient_at)
def _no_gradient(arrays: Any, workspace: Floats) -> float:
    return math.nan


@implement(gradient_at, DensityGraph)
def _gradient(arrays: DensityGraph, workspace: Floats) -> float:
    n = arrays.low.size
    return call_at(arrays.gradient, workspace, 0, n, workspace, n, n, arrays.nothing)


@implement(gradient_at, DataGraph)
def _gradient_of_data(arrays: DataGraph, workspace: Floats) -> float:
    n, width = arrays.low.size, arrays.width
    failed = 0.0
    for k in range(n):
        workspace[n + k] = 0.0
    if arrays.prior != 0:
        failed = call_at(arrays.prior_gradient, workspace, 0, n, workspace, n, n, arrays.nothing)
    for row in range(arrays.rows):
        failed += call_at(arrays.gradient, workspace, 0, n, arrays.data, row * width, width, arrays.nothing)
    return failed


@compiled
def _value_of_rows(arrays: DataGraph, x: Floats) -> float:
    return log_potential(arrays, x)


@compiled
def _gradient_of_rows(arrays: DataGraph, workspace: Floats) -> float:
    return gradient_at(arrays, workspace)


@compiled
def evaluate_places(arrays: Any, places: Floats, out: Floats) -> None:
    """Write the log-densities of places (rows) to ``out``, minus infinity for NaN and outside the box."""
    for k in range(out.size):
        value = density_at(arrays, places[k])
        out[k] = value if value < math.inf else -math.inf


@compiled
def evaluate_gradients(arrays: Any, workspaces: Floats) -> None:
    """Write the gradients of workspaces (rows) into them; NaN if that fails."""
    for k in range(len(workspaces)):
        failed = gradient_at(arrays, workspaces[k])
        workspaces[k, -1] += failed


def value_once(graph: Any, x: Floats) -> float:
    """Return the log-density, for callers in Python; it is compiled only for large graphs."""
    return float(_value_of_rows(graph, x) if _is_large(graph) else log_potential(graph, x))


def gradient_once(graph: Any, workspace: Floats) -> float:
    """Write the gradient into a workspace, for callers in Python; return NaN if that fails."""
    return float(_gradient_of_rows(graph, workspace) if _is_large(graph) else gradient_at(graph, workspace))


def _is_large(graph: Any) -> bool:
    return sum(part.nbytes for part in graph if isinstance(part, np.ndarray)) > _LARGE


@generic
def part_of(arrays: Any, x: Floats, i: Integer) -> float:
    """Return a part of the log-density such that the rest does not depend on coordinate i."""
    raise NotImplementedError


@implement(part_of)
def _everything(arrays: Any, x: Floats, i: Integer) -> float:
    return log_potential(arrays, x)


@implement(part_of, ContinuousGraph)
def _factors_of(arrays: ContinuousGraph, x: Floats, i: Integer) -> float:
    work = stack_room()
    total = 0.0
    row = arrays.row[i]
    for k in range(arrays.start[row], arrays.start[row + 1]):
        total += factor_value(arrays, arrays.factor[k], x, -1, 0.0, work)
    return total


@generic
def is_whole(arrays: Any) -> bool:
    """Return whether :func:`part_of` is the whole log-density, the same for all coordinates."""
    raise NotImplementedError


@implement(is_whole)
def _whole(arrays: Any) -> bool:
    return True


@implement(is_whole, ContinuousGraph)
def _parts(arrays: ContinuousGraph) -> bool:
    return False
