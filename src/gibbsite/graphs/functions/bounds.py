"""Bounds of factors on a box, which are given, computed by a formula, or found numerically.

Methods that draw factors at random need bounds of all of them. A function without known bounds is interpolated by
Chebyshev polynomials in its sites that are numbers, for all states of the others. The number of points grows until the
interpolant agrees with the function at random places to 10^-9 of its range. The bounds are the extremes of the
interpolant on a finer grid, widened by the largest possible rise of a polynomial of that degree between two grid
points. They are valid for functions that are analytic on the box; for other functions the interpolants do not converge,
and an error is raised. In all cases, the values that occur in a run are compared with the bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Positions
from gibbsite._numba.foreign import Foreign, call_at
from gibbsite._numba.jit import compiled
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.graphs.graph import Graph, seal
from gibbsite.models.domain import Domains
from gibbsite.models.functions.factors import FunctionFactors

_POINTS = (9, 17, 33, 65, 129)
_MOST_POINTS = 300_000  # evaluations of one factor, at most
_AGREEMENT = 1e-9
_PLACES = 64


class Bounds(NamedTuple):
    """The smallest value of each factor and its largest height above it; 0 and infinity if unknown."""

    floor: Floats
    bound: Floats


class FunctionModel(NamedTuple):
    """The factors of a model of functions, and all its sites; ``free`` are those that are not observed."""

    domains: Domains
    groups: tuple[FunctionFactors, ...]
    box: tuple[Floats, Floats]
    free: Positions
    bounds: Bounds


def given_bounds(groups: Sequence[FunctionFactors], low: Floats, high: Floats) -> Bounds:
    """Return the bounds, on the box of the sites, that were given with the factors of groups."""
    parts = []
    for group in groups:
        if group.bounds is None:
            parts.append((np.zeros(group.size), np.full(group.size, np.inf)))
            continue
        parts.append(_weighted(group, *_read_bounds(group, *_boxes(group, low, high))))
    return _joined(parts)


def factors_of(graph: Graph) -> FunctionModel:
    """Return the factors of a graph of kind "functions"."""
    if graph.factors is None:
        raise IncompatibleError(f"A graph of kind {graph.kind} has no factors that are functions.")
    return graph.factors


def known_bounds(graph: Graph) -> Bounds:
    """Return the bounds that were given with the factors of a graph."""
    return factors_of(graph).bounds


def all_bounds(graph: Graph, method: str) -> Bounds:
    """Return the bounds of all factors of a graph; those that were not given are found once and cached."""
    given = known_bounds(graph)
    if np.isfinite(given.bound).all():
        return given
    kept = graph.cache.get(Bounds)
    if kept is None:
        factors = factors_of(graph)
        states, parts = ~factors.domains.numbers, []
        for group, code in zip(factors.groups, graph.functions, strict=True):
            boxes = _boxes(group, *factors.box)
            if group.bounds is None:
                found = find_bounds(group, code, *boxes, states[_scopes(group)], method)
            else:
                found = _read_bounds(group, *boxes)
            parts.append(_weighted(group, *found))
        kept = graph.cache.put(_joined(parts))
    return kept


def _boxes(group: FunctionFactors, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    return low[_scopes(group)], high[_scopes(group)]


def _scopes(group: FunctionFactors) -> Array:
    """Return the sites of each factor, a row for each."""
    return np.broadcast_to(np.atleast_2d(group.scopes), (group.size, group.arity))


def _read_bounds(group: FunctionFactors, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    given: Any = group.bounds
    pair = given(group.parameters, low, high) if callable(given) else given
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
    return least, most


def _weighted(group: FunctionFactors, least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Return floor and height of factors, a little wider than computed, to allow for rounding."""
    slack = 1e-12 * (np.abs(least) + np.abs(most) + (most - least))
    floor = group.weight * (least - slack)
    return floor, group.weight * (most + slack) - floor


def _joined(parts: list[tuple[Floats, Floats]]) -> Bounds:
    return seal(Bounds(*(np.concatenate([np.zeros(0), *(part[k] for part in parts)]) for k in range(2))))


@compiled
def _evaluate(address: int, places: Floats, parameters: Floats, out: Floats) -> None:
    words = np.zeros(4, np.uint64)
    for k in range(len(places)):
        out[k] = call_at(address, places, k * places.shape[1], places.shape[1], parameters, 0, parameters.size, words)


def _values(code: Foreign, places: Floats, parameters: Floats, name: str, f: int) -> Floats:
    out = np.empty(len(places))
    _evaluate(code.address, places.ravel().reshape(places.shape), parameters, out)
    bad = ~np.isfinite(out)
    if bad.any():
        where = ", ".join(f"{v:.6g}" for v in places[int(np.argmax(bad))])
        said = "NaN" if np.isnan(out[bad][0]) else "infinite"
        raise IncompatibleError(
            f"factor {f} of {name!r} is {said} at x = ({where}); minibatches need factors that are finite on "
            "their whole box."
        )
    return out


def find_bounds(
    group: FunctionFactors, code: Foreign, low: Floats, high: Floats, states: Bools, method: str
) -> tuple[Floats, Floats]:
    """Find the bounds of all factors of a group by interpolation."""
    least, most = np.empty(group.size), np.empty(group.size)
    known: dict[bytes, int] = {}
    rng = np.random.default_rng(0)
    for f in range(group.size):
        key = b"".join(part[f].tobytes() for part in (group.parameters, low, high, states))
        if key in known:
            least[f], most[f] = least[known[key]], most[known[key]]
            continue
        known[key] = f
        found = _enclose(group, code, f, low[f], high[f], states[f], rng)
        if found is None:
            raise IncompatibleError(
                f"no safe bounds were found for factor {f} of {group.name!r}, which {method} needs: it is "
                "not smooth enough on its box, or has too many sites; give bounds=(low, high), or a method "
                "that needs none, such as gs.kernels.ContinuousGibbs(method='slice')."
            )
        least[f], most[f] = found
    return least, most


def _enclose(
    group: FunctionFactors, code: Foreign, f: int, low: Floats, high: Floats, states: Bools, rng: np.random.Generator
) -> tuple[float, float] | None:
    """Return bounds of one factor over all states and numbers of its sites; None if none are found."""
    fixed = states | (low == high)
    many = [int(high[k] - low[k]) + 1 for k in np.flatnonzero(fixed)]
    if np.prod(many, dtype=float) > _MOST_POINTS:
        return None
    least, most = np.inf, -np.inf
    for codes in itertools.product(*map(range, many)):
        place = low.copy()
        place[fixed] += codes
        found = _enclose_numbers(group, code, f, place, low, high, np.flatnonzero(~fixed), rng)
        if found is None:
            return None
        least, most = min(least, found[0]), max(most, found[1])
    return least, most


def _enclose_numbers(
    group: FunctionFactors,
    code: Foreign,
    f: int,
    base: Floats,
    low: Floats,
    high: Floats,
    axes: Positions,
    rng: np.random.Generator,
) -> tuple[float, float] | None:
    """Return bounds of a factor over some axes; its other values are those of ``base``."""
    dims = axes.size

    def values_at(unit: Floats) -> Floats:
        places = np.repeat(base[None], len(unit), axis=0)
        places[:, axes] = low[axes] + unit * (high - low)[axes]
        return _values(code, places, group.parameters[f], group.name, f)

    if not dims:
        value = float(values_at(np.zeros((1, 0)))[0])
        return value, value
    unit = rng.random((_PLACES, dims))
    truth = values_at(unit)
    for points in _POINTS:
        if points**dims > _MOST_POINTS:
            break
        nodes = 0.5 * (1.0 - np.cos(np.pi * np.arange(points) / (points - 1)))
        grid = np.stack(np.meshgrid(*[nodes] * dims, indexing="ij"), axis=-1).reshape(-1, dims)
        values = values_at(grid).reshape((points,) * dims)
        spread = float(values.max() - values.min())
        guess = np.array([_interpolate(values, nodes, place) for place in unit])
        miss = float(np.abs(guess - truth).max())
        if miss <= _AGREEMENT * max(spread, 1e-300) + 1e-13 * float(np.abs(values).max()):
            return _widened(values, points, dims, miss)
    return None


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

    As a function of the angle, a polynomial of degree d is trigonometric. At a distance t from the point where its
    absolute value has its maximum m, it is at least m cos(d t) (Bernstein and Szegoe). On a grid of step pi / (k d),
    its largest value is therefore at least m cos(pi / (2 k)), on every axis.
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
