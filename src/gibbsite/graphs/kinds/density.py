"""Log-densities as arrays: a box, the data, and the addresses of the functions.

Functions are first tried at random places: they must return numbers and not change their argument, and a gradient must
agree with its function.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.foreign import Foreign, adopt, call_at, take_raised
from gibbsite._numba.jit import implement
from gibbsite.errors import ModelError
from gibbsite.graphs.functions.failure import check_gradient, random_places
from gibbsite.graphs.graph import Graph, graph_of
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.registry import register
from gibbsite.models.density import DataDensity, Density, LogDensity

_ROWS = 3  # rows of the data for which the gradient of a likelihood is checked at each place


class DensityGraph(NamedTuple):
    """A function of all coordinates on a box: addresses of its value and of its gradient (0 if there is none)."""

    offset: Ints
    low: Floats
    high: Floats
    value: int
    gradient: int
    nothing: Words64


class DataGraph(NamedTuple):
    """Addresses of a log-prior, of the log-likelihood of a row of data, and of their gradients (0 if there is none).

    ``data`` contains the rows one after another.
    """

    offset: Ints
    low: Floats
    high: Floats
    prior: int
    prior_gradient: int
    value: int
    gradient: int
    data: Floats
    rows: int
    width: int
    nothing: Words64


@implement(log_potential, DensityGraph)
def _log_density(arrays: DensityGraph, x: Array) -> float:
    return call_at(arrays.value, x, 0, arrays.low.size, x, 0, 0, arrays.nothing)


@implement(log_potential, DataGraph)
def _log_posterior(arrays: DataGraph, x: Array) -> float:
    n, width = arrays.low.size, arrays.width
    total = 0.0
    if arrays.prior != 0:
        total = call_at(arrays.prior, x, 0, n, x, 0, 0, arrays.nothing)
    if total == -math.inf:
        return total
    for row in range(arrays.rows):
        total += call_at(arrays.value, x, 0, n, arrays.data, row * width, width, arrays.nothing)
    return total


def _box(model: Density) -> tuple[Ints, Floats, Floats]:
    low, high = model.domains.bounds
    return model.domains.offset, low.copy(), high.copy()


@register(name="density", model="LogDensity")
def compile_density(model: LogDensity) -> Graph:
    """Compile the functions of a density, try them, and compare the gradient with finite differences."""
    value = adopt(model.function, "value")
    slope = None if model.gradient is None else adopt(model.gradient, "array")
    arrays = DensityGraph(*_box(model), value.address, _address(slope), np.zeros(4, np.uint64))
    functions = [value] if slope is None else [value, slope]
    _try(model, value, slope, model.gradient, "the log-density")
    take_raised(functions)
    return graph_of(model, "density", arrays, functions)


@register(name="data", model="DataDensity")
def compile_data(model: DataDensity) -> Graph:
    """Compile prior and likelihood, try them, and compare the gradients with finite differences."""
    prior = None if model.prior is None else adopt(model.prior, "value")
    prior_slope = None if model.prior_gradient is None else adopt(model.prior_gradient, "array")
    value = adopt(model.likelihood, "value", arguments=2)
    slope = None if model.likelihood_gradient is None else adopt(model.likelihood_gradient, "adding")
    codes = [prior, prior_slope, value, slope]
    addresses = _address(prior), _address(prior_slope), _address(value), _address(slope)
    rows, width = model.data.shape
    arrays = DataGraph(*_box(model), *addresses, model.data.ravel(), rows, width, np.zeros(4, np.uint64))
    functions = [code for code in codes if code is not None]
    if prior is not None:
        _try(model, prior, prior_slope, model.prior_gradient, "the log-prior")
    rng = np.random.default_rng(2)
    for k in rng.integers(0, model.n_rows, _ROWS).tolist():
        _try(model, value, slope, model.likelihood_gradient, "the log-likelihood", model.data[k], f" of row {k}")
    take_raised(functions)
    return graph_of(model, "data", arrays, functions)


def _address(code: Foreign | None) -> int:
    return 0 if code is None else code.address


_NONE = np.zeros(0)
_WORDS = np.zeros(4, np.uint64)


def _try(
    model: Density, code: Foreign, slope: Foreign | None, gradient: Any, what: str, row: Floats = _NONE, which: str = ""
) -> None:
    """Call a function, and its gradient if there is one, at random places; refuse wrong ones."""
    at = _valued(code, row)
    places = random_places(model, at)
    _try_value(model, code, at, places, what, row)
    if slope is not None:
        check_gradient(model, at, _sloped(model, slope, gradient, row), places, f"{what} {code.name!r}{which}")


def _valued(code: Foreign, row: Floats = _NONE) -> Any:
    def at(place: Floats) -> float:
        return call_at(code.address, place, 0, place.size, row, 0, row.size, _WORDS)

    return at


def _sloped(model: Density, code: Foreign, function: Any, row: Floats = _NONE) -> Any:
    """Return the gradient as a function that refuses results of wrong shape, and results that are not finite."""

    def at(place: Floats) -> Floats:
        n = place.size
        workspace = np.concatenate([place, np.zeros(n)])
        if row.size:
            said = call_at(code.address, workspace, 0, n, row, 0, row.size, _WORDS)
        else:
            said = call_at(code.address, workspace, 0, n, workspace[n:], 0, n, _WORDS)
        if not (said == 0.0 and np.isfinite(workspace[n:]).all()):
            raised = code.cause_at(place, row if row.size else np.zeros(n))
            where = model.place_text(place)
            if raised is not None and not isinstance(raised, ModelError):
                raise ModelError(f"the gradient {code.name!r} raised {raised!r} at {where}.") from raised
            shape = np.shape(function(place.copy(), row) if row.size else function(place.copy()))
            if shape != (n,):
                raise ModelError(f"the gradient {code.name!r} must have shape ({n},), got {shape} at {where}.")
            raise ModelError(f"the gradient {code.name!r} is not finite at {where}.") from raised
        if not np.array_equal(workspace[:n], place):
            raise ModelError(f"the gradient {code.name!r} changes its argument; let it work on a copy.")
        return workspace[n:]

    return at


def _try_value(model: Density, code: Foreign, at: Any, places: list[Floats], what: str, row: Floats = _NONE) -> None:
    """Refuse a function that changes its argument or does not return a number at some place."""
    if not places:
        place = model.draw_start(np.random.default_rng(0))
        value = at(place)
        if math.isnan(value) or value == math.inf:
            raised = code.cause_at(place, row)
            why = "" if raised is None else f" The function raised {raised!r}."
            raise ModelError(
                f"{what} is {value} at {model.place_text(place)}; it must be a number or -inf.{why}"
            ) from raised
    for place in places:
        before = place.copy()
        at(place)
        if not np.array_equal(place, before):
            raise ModelError(f"{what} changes its argument; let it work on a copy.")
