"""Between which bounds factors stay on a box: as given, by a formula, or found.

A function that nobody has bounds for is interpolated by Chebyshev polynomials in all of its sites, of more
and more points until the interpolant agrees with it at random places to a part in 10^9 of its range. The
extremes of the interpolant on a finer grid, widened by what a polynomial of that degree can rise between two
points of the grid, then enclose it. That is safe for functions that are analytic on the box, and refused
for others, whose interpolants do not converge. What is met while sampling is checked anyway.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._foreign import Foreign, call_at
from gibbsite._jit import compiled
from gibbsite.errors import ModelError
from gibbsite.model.functions import FunctionFactors

Floats = NDArray[np.float64]

_POINTS = (9, 17, 33, 65, 129)
_MOST_POINTS = 300_000  # evaluations of one factor, at most
_AGREEMENT = 1e-9
_PLACES = 64


def bound_group(group: FunctionFactors, code: Foreign, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return smallest and largest value of every factor of a group on the boxes of their sites.

    Raises
    ------
    ModelError
        If the bounds make no sense, a function has a value that is not a number, or none are found.
    """
    scopes = np.broadcast_to(np.atleast_2d(group.scopes), (group.size, group.arity))
    box = low[scopes], high[scopes]
    if group.bounds is None:
        least, most = find_bounds(group, code, *box)
    else:
        given: Any = group.bounds
        pair = given(group.parameters, *box) if callable(given) else given
        try:
            least, most = (np.broadcast_to(np.asarray(part, float), (group.size,)) for part in pair)
        except (TypeError, ValueError):
            raise ModelError(
                f"the bounds of the factors {group.name!r} must be two numbers or arrays ({group.size},)."
            ) from None
    bad = ~(np.isfinite(least) & np.isfinite(most) & (least <= most))
    if bad.any():
        f = int(np.argmax(bad))
        raise ModelError(
            f"the bounds of factor {f} of {group.name!r} are {least[f]:g} and {most[f]:g}; they must be "
            "finite, the smaller one first."
        )
    # a little wider than computed, so that rounding is no violation
    slack = 1e-12 * (np.abs(least) + np.abs(most) + (most - least))
    return group.weight * (least - slack), group.weight * (most + slack)


@compiled
def _evaluate(address: int, places: Floats, parameters: Floats, out: Floats) -> None:
    words = np.zeros(4, np.uint64)
    for k in range(len(places)):
        out[k] = call_at(
            address, places, k * places.shape[1], places.shape[1], parameters, 0, parameters.size, words
        )


def _values(code: Foreign, places: Floats, parameters: Floats, name: str, f: int) -> Floats:
    out = np.empty(len(places))
    _evaluate(code.address, places.ravel().reshape(places.shape), parameters, out)
    bad = ~np.isfinite(out)
    if bad.any():
        where = ", ".join(f"{v:.6g}" for v in places[int(np.argmax(bad))])
        said = "NaN" if np.isnan(out[bad][0]) else "infinite"
        raise ModelError(
            f"factor {f} of {name!r} is {said} at x = ({where}); it must be finite on its whole box."
        )
    return out


def find_bounds(group: FunctionFactors, code: Foreign, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Find the bounds of all factors of a group; see above."""
    least, most = np.empty(group.size), np.empty(group.size)
    known: dict[bytes, int] = {}
    rng = np.random.default_rng(0)
    for f in range(group.size):
        key = group.parameters[f].tobytes() + low[f].tobytes() + high[f].tobytes()
        if key in known:
            least[f], most[f] = least[known[key]], most[known[key]]
            continue
        known[key] = f
        least[f], most[f] = _enclose(group, code, f, low[f], high[f], rng)
    return least, most


def _enclose(
    group: FunctionFactors, code: Foreign, f: int, low: Floats, high: Floats, rng: np.random.Generator
) -> tuple[float, float]:
    dims, parameters = low.size, group.parameters[f]
    unit = rng.random((_PLACES, dims))
    places = low + unit * (high - low)
    truth = _values(code, places, parameters, group.name, f)
    for points in _POINTS:
        if points**dims > _MOST_POINTS:
            break
        nodes = 0.5 * (1.0 - np.cos(np.pi * np.arange(points) / (points - 1)))
        grid = np.stack(np.meshgrid(*[nodes] * dims, indexing="ij"), axis=-1).reshape(-1, dims)
        values = _values(code, low + grid * (high - low), parameters, group.name, f).reshape((points,) * dims)
        spread = float(values.max() - values.min())
        guess = np.array([_interpolate(values, nodes, place) for place in unit])
        miss = float(np.abs(guess - truth).max())
        if miss <= _AGREEMENT * max(spread, 1e-300) + 1e-13 * float(np.abs(values).max()):
            return _widened(values, points, dims, miss)
    raise ModelError(
        f"no safe bounds were found for factor {f} of {group.name!r}: it is not smooth enough on its box, or "
        "has too many sites; give bounds=(low, high)."
    )


def _interpolate(values: Floats, nodes: Floats, place: Floats) -> float:
    """Return the Chebyshev interpolant at a place of the unit box (barycentric, axis by axis)."""
    weights = (-1.0) ** np.arange(nodes.size)
    weights[[0, -1]] *= 0.5
    for coordinate in place:
        distance = coordinate - nodes
        if (distance == 0).any():
            values = values[int(np.argmax(distance == 0))]
        else:
            share = weights / distance
            values = np.tensordot(share, values, axes=1) / share.sum()
    return float(values)


def _widened(values: Floats, points: int, dims: int, miss: float) -> tuple[float, float]:
    """Return bounds of an interpolant from its values on a finer grid.

    In the angle, a polynomial of degree d is a trigonometric one. Near a place where its absolute value has
    its maximum m it is at least m cos(d t) at a distance t (Bernstein and Szegoe), so a grid of step
    pi / (k d) sees at least m cos(pi / (2 k)) of it, on every axis.
    """
    finer = 16 if dims <= 2 else 4
    angles = np.pi * np.arange(finer * (points - 1) + 1) / (finer * (points - 1))
    transform = _to_finer(points, angles)
    for axis in range(dims):
        values = np.moveaxis(np.tensordot(transform, np.moveaxis(values, axis, 0), axes=1), 0, axis)
    least, most = float(values.min()), float(values.max())
    middle, half = 0.5 * (least + most), 0.5 * (most - least)
    half = half / np.cos(np.pi / (2 * finer)) ** dims + miss
    return middle - half, middle + half


def _to_finer(points: int, angles: Floats) -> Floats:
    """Return the matrix from values at Chebyshev points to values of the interpolant at other angles."""
    degree = points - 1
    own = np.pi * np.arange(points) / degree
    # nodes run from low to high: cos of the mirrored angle
    cosines = np.cos(np.outer(np.pi - own, np.arange(points)))
    coefficients = np.linalg.inv(cosines)
    transform: Floats = np.cos(np.outer(np.pi - angles, np.arange(points))) @ coefficients
    return transform
