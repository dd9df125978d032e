"""Inverse transform sampling from Chebyshev interpolants, corrected by a Metropolis step.

``its`` interpolates the density exp(U) itself. ``double`` interpolates the energy U, which needs few points,
and then the exponential of that, which needs more, but no factor is evaluated for them. The proposal does
not depend on the present value, and it is accepted with probability
min(1, exp(U(v) - U(x)) q(x) / q(v)): the target is exact whatever the degrees are, which only decide how
often proposals are rejected. On minibatches these are the algorithms PGITS and PGDA [1]_.

References
----------
.. [1] Zhang, R. and De Sa, C. (2019). Poisson-minibatching for Gibbs sampling with convergence rate
   guarantees. NeurIPS 32.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._jit import Integer, called, generic, implement
from gibbsite._random import Words, uniform
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.continuous_chebyshev import (
    Floats,
    Ladder,
    Longs,
    density_at,
    draw_from_series,
    make_ladder,
    mean_of,
    prepare_draws,
    transform,
)
from gibbsite.kernel.continuous_energy import ACCEPTED, PROPOSED, ContinuousMemory, energies, energy_at


@generic
def move_number(
    method: Any, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Any]:
    """Return the next value of site i, a number; the present one if a factor has a fault."""
    raise NotImplementedError


class Its(NamedTuple):
    """Degrees of the interpolant of the density, and how small its last coefficients should be."""

    density: Ladder
    tolerance: float


class Double(NamedTuple):
    """Degrees of both interpolants; values of polynomials at the points of the second, level by level.

    ``cross[cross_at[l] + k * (d + 1) + j]`` is T_k at point j of level l, of degree d, of the density.
    """

    energy: Ladder
    density: Ladder
    cross: Floats
    cross_at: Longs
    tolerance: float


def make_double(energy: Ladder, density: Ladder, tolerance: float) -> Double:
    """Make the matrices between two ladders."""
    order = np.arange(int(energy.degree[-1]) + 1)
    parts = [np.cos(np.pi * np.outer(order, np.arange(d + 1)) / d).ravel() for d in density.degree.tolist()]
    starts = np.cumsum([0, *(part.size for part in parts[:-1])]).astype(np.int64)
    return Double(energy, density, np.concatenate(parts), starts, tolerance)


__all__ = ["Double", "Its", "make_double", "make_ladder", "move_number"]


@called
def _visit_nodes(
    ladder: Ladder,
    level: Integer,
    graph: ContinuousGraph,
    memory: ContinuousMemory,
    x: Floats,
    i: Integer,
) -> bool:
    """Write the energies at those points of a level that are no points of a level before.

    At the first level the present value is evaluated, too; its energy stays behind those of the points.
    """
    points, value = memory.desk.points, memory.poly.value  # type: ignore[attr-defined]
    middle, half = 0.5 * (graph.low[i] + graph.high[i]), 0.5 * (graph.high[i] - graph.low[i])
    last = ladder.degree[ladder.degree.size - 1]
    stride = last // ladder.degree[level]
    first, skip = (0, stride) if level == 0 else (stride, 2 * stride)
    many = 0
    for j in range(first, last + 1, skip):
        points[many] = middle + half * ladder.node[j]
        many += 1
    if level == 0:
        points[many] = x[i]
    good = energies(graph, memory, x, i, 0, many + (level == 0))
    for k in range(many):
        value[first + k * skip] = memory.desk.energy[k]
    return good


@called
def _propose(
    graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, now: float, rng: Words
) -> tuple[Words, Any]:
    """Draw from the density that has been prepared, and accept or not; ``now`` is the present energy."""
    low, high = graph.low[i], graph.high[i]
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    rng, s = draw_from_series(memory.poly, rng)
    rng, u = uniform(rng)
    v = min(max(middle + half * s, low), high)
    energy = energy_at(graph, memory, x, i, v)
    present = density_at(memory.poly, min(max((x[i] - middle) / half, -1.0), 1.0))
    memory.counts[PROPOSED] += 1
    if u * density_at(memory.poly, s) < math.exp(energy - now) * present:
        memory.counts[ACCEPTED] += 1
        return rng, v
    return rng, x[i]


@implement(move_number, Its)
def _move_its(
    method: Its, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Any]:
    poly: Any = memory.poly
    ladder = method.density
    last = ladder.degree[ladder.degree.size - 1]
    now = 0.0
    level = 0
    while True:
        if not _visit_nodes(ladder, level, graph, memory, x, i):
            return rng, x[i]
        degree = ladder.degree[level]
        if level == 0:
            now = memory.desk.energy[degree + 1]
        top = -np.inf
        for j in range(0, last + 1, last // degree):
            top = max(top, poly.value[j])
        for j in range(0, last + 1, last // degree):
            poly.grid[j] = math.exp(poly.value[j] - top)  # the grid is free until draws are prepared
        tail = transform(ladder, level, poly.grid, poly.density)
        if tail <= method.tolerance * mean_of(poly.density, degree) or level + 1 == ladder.degree.size:
            break
        level += 1
    prepare_draws(ladder, level, poly)
    return _propose(graph, memory, x, i, now, rng)


@implement(move_number, Double)
def _move_double(
    method: Double, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Any]:
    poly: Any = memory.poly
    ladder, density = method.energy, method.density
    now = 0.0
    level = 0
    while True:
        if not _visit_nodes(ladder, level, graph, memory, x, i):
            return rng, x[i]
        if level == 0:
            now = memory.desk.energy[ladder.degree[level] + 1]
        tail = transform(ladder, level, poly.value, poly.energy)
        if tail <= method.tolerance or level + 1 == ladder.degree.size:
            break
        level += 1
    order = ladder.degree[level]
    last = density.degree[density.degree.size - 1]
    level = 0
    while True:
        degree = density.degree[level]
        at = method.cross_at[level]
        grid, value = poly.grid, poly.value  # the grid is free until draws are prepared
        for j in range(degree + 1):
            grid[j] = 0.0
        for k in range(order + 1):
            c = poly.energy[k]
            for j in range(degree + 1):
                grid[j] += c * method.cross[at + j]
            at += degree + 1
        top = -np.inf
        for j in range(degree + 1):
            top = max(top, grid[j])
        for j in range(degree + 1):
            value[j * (last // degree)] = math.exp(grid[j] - top)
        tail = transform(density, level, value, poly.density)
        if tail <= method.tolerance * mean_of(poly.density, degree) or level + 1 == density.degree.size:
            break
        level += 1
    prepare_draws(density, level, poly)
    return _propose(graph, memory, x, i, now, rng)
