"""Whether a gradient is one: compared with central differences of the function at random places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ModelError

if TYPE_CHECKING:
    from gibbsite.models.base import Model


PLACES = 5
_TRIES = 200
_MOST_COORDINATES = 100  # that are looked at in each place
_WIDTH = float(np.finfo(float).eps ** (1 / 3))  # of a difference: rounding and curvature are then alike
_CLOSE = 1e-3  # relative; a formula that is wrong is hardly ever so nearly right in all places


def random_places(model: Model, value: Callable[[Floats], float]) -> list[Floats]:
    """Return a few random places where a function is a number, as far as there are any."""
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
    """Return a central difference and how far it may be off; None where the function is not finite."""
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
