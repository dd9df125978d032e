"""Faults of users' functions: exceptions that compiled code turned into NaN, and wrong gradients.

Gradients are compared with central differences of the function at random places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.foreign import Foreign, call_at
from gibbsite.errors import ModelError
from gibbsite.graphs.graph import Graph
from gibbsite.models.base import Model

_WORDS = np.zeros(4, np.uint64)


def cause_at(graph: Graph, x: Floats) -> BaseException | None:
    """Return the exception of the first function of a graph that fails at a place, or None."""
    raised = graph.take_raised()
    if raised is not None:
        return raised
    for number, code in enumerate(graph.functions):
        if code.key == "draw":
            continue
        for first, second in _arguments(graph, number, code, x):
            if _fails(code, first, second):
                found: BaseException | None = code.cause_at(first, second)
                if found is not None:
                    return found
    return None


def cause_text(raised: BaseException | None) -> str:
    """Return a sentence about an exception of a function, to be appended to another; empty without exception."""
    if raised is None:
        return ""
    hint = "; its argument has the values of its own sites, in order" if isinstance(raised, IndexError) else ""
    return f" The function raised {raised!r}{hint}."


def _arguments(graph: Graph, number: int, code: Foreign, x: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield the arrays that a function of a graph is called with at a place."""
    arrays: Any = graph.arrays
    if graph.kind == "functions":
        yield from arrays.calls_of(number, x)
    elif code.key in ("value2", "adding"):
        for row in arrays.data.reshape(arrays.rows, arrays.width):
            yield x, row
    else:
        yield x, np.zeros(x.size if code.key == "array" else 0)


def _fails(code: Foreign, first: Floats, second: Floats) -> bool:
    workspace = np.concatenate([first, np.zeros(first.size)])  # gradients of rows are written after the place
    value = call_at(code.address, workspace, 0, first.size, second.copy(), 0, second.size, _WORDS)
    return math.isnan(value) or value == math.inf


PLACES = 5
_TRIES = 200
_MOST_COORDINATES = 100  # that are checked at each place
_WIDTH = float(np.finfo(float).eps ** (1 / 3))  # of a difference; it balances rounding and truncation errors
_CLOSE = 1e-3  # relative; wrong formulas differ by more at some place


def random_places(model: Model, value: Callable[[Floats], float]) -> list[Floats]:
    """Return a few random places at which a function is finite."""
    rng = np.random.default_rng(0)
    drawn = (model.draw_start(rng) for _ in range(_TRIES))
    found: list[Floats] = []
    for place in drawn:
        if math.isfinite(value(place)):
            found.append(place)
        if len(found) == PLACES:
            break
    return found


def check_gradient(
    model: Model,
    value: Callable[[Floats], float],
    gradient: Callable[[Floats], Floats],
    places: Iterable[Floats],
    what: str,
) -> None:
    """Refuse a gradient that differs from central differences."""
    rng = np.random.default_rng(1)
    for place in places:
        given = gradient(place)
        some = np.arange(given.size)
        if given.size > _MOST_COORDINATES:
            some = rng.choice(given.size, _MOST_COORDINATES, replace=False)
        for k in some.tolist():
            found = _difference(model, value, place, k)
            if found is None:
                continue
            slope, doubt = found
            size = max(abs(given[k]), abs(slope))
            if not abs(given[k] - slope) <= _CLOSE * size + doubt:
                raise ModelError(
                    f"the gradient of {what} is wrong: at {model.place_text(place)} its entry for "
                    f"{model.domains.names[k]!r} is {given[k]:.8g}, but finite differences of the function "
                    f"give {slope:.8g}."
                )


def _difference(model: Model, value: Callable[[Floats], float], place: Floats, k: int) -> tuple[float, float] | None:
    """Return a central difference and a bound of its error; None where the function is not finite."""
    low, high = model.domains.bounds
    h = _WIDTH * max(1.0, abs(place[k]))
    if not low[k] <= place[k] - 2 * h <= place[k] + 2 * h <= high[k]:
        return None
    seen = []
    for shift in (-2 * h, -h, h, 2 * h):
        moved = place.copy()
        moved[k] += shift
        seen.append(value(moved))
    if not np.isfinite(seen).all():
        return None
    near, wide = (seen[2] - seen[1]) / (2 * h), (seen[3] - seen[0]) / (4 * h)
    rounding = 100 * np.finfo(float).eps * max(map(abs, seen)) / h
    return near, 10.0 * abs(near - wide) + rounding
