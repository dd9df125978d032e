"""Log-densities in compiled code: the value, the gradient, and what a single coordinate changes.

Gradients are written behind the place they belong to: a *desk* has 2 n numbers, the place and its gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.foreign import call_at, stack_room
from gibbsite._compile.jit import Integer, compiled, generic, implement, inlined
from gibbsite.graph.kinds.conditionals import ConditionalsGraph
from gibbsite.graph.kinds.density import DataGraph, DensityGraph
from gibbsite.graph.kinds.functions import ContinuousGraph, factor_value
from gibbsite.graph.local import log_potential

Floats = NDArray[np.float64]

_LARGE = 100_000  # bytes of a graph whose density is worth compiling


@implement(log_potential, DensityGraph)
def _log_density(graph: DensityGraph, x: NDArray[Any]) -> float:
    return call_at(graph.value, x, 0, graph.low.size, x, 0, 0, graph.nothing)


@implement(log_potential, DataGraph)
def _log_posterior(graph: DataGraph, x: NDArray[Any]) -> float:
    n, width = graph.low.size, graph.width
    total = 0.0
    if graph.prior != 0:
        total = call_at(graph.prior, x, 0, n, x, 0, 0, graph.nothing)
    if total == -math.inf:
        return total
    for row in range(graph.rows):
        total += call_at(graph.value, x, 0, n, graph.data, row * width, width, graph.nothing)
    return total


@inlined
def inside(graph: Any, x: Floats) -> bool:
    """Tell whether a place is in the box; NaN and infinity are not."""
    for k in range(graph.low.size):
        if not (graph.low[k] <= x[k] <= graph.high[k]) or abs(x[k]) == math.inf:
            return False
    return True


@generic
def period_of(graph: Any, i: Integer) -> float:
    """Return the length of a turn of a site that is an angle, otherwise 0."""
    raise NotImplementedError


@implement(period_of)
def _straight(graph: Any, i: Integer) -> float:
    return 0.0


@implement(period_of, ContinuousGraph)
def _period(graph: ContinuousGraph, i: Integer) -> float:
    return float(graph.period[i])


@implement(period_of, ConditionalsGraph)
def _period_of_drawn(graph: ConditionalsGraph, i: Integer) -> float:
    return float(graph.period[i])


@inlined
def wrapped(low: Any, period: Any, v: Any) -> Any:
    """Return a value of an angle as one from ``low`` on, less than a turn; other numbers as they are."""
    if period == 0.0 or low <= v < low + period:
        return v
    v -= np.floor((v - low) / period) * period
    return v if v < low + period else low  # where rounding made a turn of it


@inlined
def density_at(graph: Any, x: Floats) -> float:
    """Return the log-density at a place, minus infinity outside the box."""
    return log_potential(graph, x) if inside(graph, x) else -math.inf


@generic
def gradient_at(graph: Any, desk: Floats) -> float:
    """Write the gradient at the place of a desk behind it; return NaN if that fails, otherwise 0."""
    raise NotImplementedError


@implement(gradient_at)
def _no_gradient(graph: Any, desk: Floats) -> float:
    return math.nan


@implement(gradient_at, DensityGraph)
def _gradient(graph: DensityGraph, desk: Floats) -> float:
    n = graph.low.size
    return call_at(graph.gradient, desk, 0, n, desk, n, n, graph.nothing)


@implement(gradient_at, DataGraph)
def _gradient_of_data(graph: DataGraph, desk: Floats) -> float:
    n, width = graph.low.size, graph.width
    failed = 0.0
    for k in range(n):
        desk[n + k] = 0.0
    if graph.prior != 0:
        failed = call_at(graph.prior_gradient, desk, 0, n, desk, n, n, graph.nothing)
    for row in range(graph.rows):
        failed += call_at(graph.gradient, desk, 0, n, graph.data, row * width, width, graph.nothing)
    return failed


@compiled
def _value_of_rows(graph: DataGraph, x: Floats) -> float:
    return log_potential(graph, x)


@compiled
def _gradient_of_rows(graph: DataGraph, desk: Floats) -> float:
    return gradient_at(graph, desk)


def value_once(graph: Any, x: Floats) -> float:
    """Return the log-density, for callers in Python: compiled only where there is much to go through."""
    return float(_value_of_rows(graph, x) if _is_large(graph) else log_potential(graph, x))


def gradient_once(graph: Any, desk: Floats) -> float:
    """Write the gradient behind the place of a desk, for callers in Python; return NaN if that fails."""
    return float(_gradient_of_rows(graph, desk) if _is_large(graph) else gradient_at(graph, desk))


def _is_large(graph: Any) -> bool:
    return sum(part.nbytes for part in graph if isinstance(part, np.ndarray)) > _LARGE


@generic
def part_of(graph: Any, x: Floats, i: Integer) -> float:
    """Return a part of the log-density such that the rest does not depend on coordinate i."""
    raise NotImplementedError


@implement(part_of)
def _everything(graph: Any, x: Floats, i: Integer) -> float:
    return log_potential(graph, x)


@implement(part_of, ContinuousGraph)
def _factors_of(graph: ContinuousGraph, x: Floats, i: Integer) -> float:
    work = stack_room()
    total = 0.0
    row = graph.row[i]
    for k in range(graph.start[row], graph.start[row + 1]):
        total += factor_value(graph, graph.factor[k], x, -1, 0.0, work)
    return total


@generic
def is_whole(graph: Any) -> bool:
    """Whether :func:`part_of` is the whole log-density, the same for all coordinates."""
    raise NotImplementedError


@implement(is_whole)
def _whole(graph: Any) -> bool:
    return True


@implement(is_whole, ContinuousGraph)
def _parts(graph: ContinuousGraph) -> bool:
    return False
