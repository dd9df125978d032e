"""Inverse transform sampling from Chebyshev interpolants, corrected by a Metropolis step.

``its`` interpolates the density exp(U) itself. ``double`` interpolates the energy U, which needs few points,
and then the exponential of that, which needs more, but no factor is evaluated for them. The proposal does
not depend on the present value, and it is accepted with probability
min(1, exp(U(v) - U(x)) q(x) / q(v)): the target is exact for all degrees, which only determine how often
proposals are rejected. On minibatches these are the algorithms PGITS and PGDA [1]_.

References
----------
.. [1] Zhang, R. and De Sa, C. (2019). Poisson-minibatching for Gibbs sampling with convergence rate
   guarantees. NeurIPS 32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.continuous.chebyshev import (
    Ladder,
    Series,
    density_at,
    draw_from_series,
    fit_density,
    make_ladder,
    new_points,
    prepare_draws,
    shape_of,
    transform,
)
from gibbsite.kernels.continuous.energy import ACCEPTED, CHOSEN, EMPTY, FACTOR, PROPOSED, ContinuousMemory


class Interpolation(NamedTuple):
    """Degrees of the two interpolants, and how small their last coefficients should be.

    ``nodes`` has the points where energies are needed. ``double``: the interpolant of the density has a ladder of its
    own, and ``cross[cross_at[l] + k * (d + 1) + j]`` is T_k at point j of its level l, of degree d.
    """

    double: bool
    nodes: Ladder
    density: Ladder
    cross: Floats
    cross_at: Ints
    tolerance: float


def interpolate(energy: list[int] | None, density: list[int], tolerance: float) -> Interpolation:
    """Make the matrices for degrees of energy and density; of the density alone if the former are None."""
    fine = make_ladder(density, gridded=True)
    nodes = fine if energy is None else make_ladder(energy, gridded=False)
    order = np.arange(0 if energy is None else energy[-1] + 1)
    parts = [np.cos(np.pi * np.outer(order, np.arange(d + 1)) / d).ravel() for d in density]
    starts = row_starts([part.size for part in parts])[:-1]
    return Interpolation(energy is not None, nodes, fine, np.concatenate(parts), starts, tolerance)


# Of the stage of an update: the level, the present energy, the proposal on [-1, 1], the draw to accept it by.
_LEVEL, _NOW, _PROPOSAL, _DRAW = range(1, 5)
_PROPOSES = -1.0  # in place of a level


@inlined
def _ask_level(
    ladder: Ladder, level: Integer, arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer
) -> Integer:
    """Ask for the energies at those points of a level that are no points of a level before."""
    points = memory.workspace.points
    middle, half = 0.5 * (arrays.low[i] + arrays.high[i]), 0.5 * (arrays.high[i] - arrays.low[i])
    first, skip, many = new_points(ladder, level)
    for k in range(many):
        points[k] = middle + half * ladder.node[first + k * skip]
    memory.workspace.stage[_LEVEL] = level
    return many


@inlined
def ask_nodes(
    method: Interpolation, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer
) -> Integer:
    """Ask for the energies at the points of the lowest degree, and at the present value."""
    many = _ask_level(method.nodes, 0, arrays, memory, i)
    memory.workspace.points[many] = x[i]
    return many + 1


@inlined
def answer_nodes(
    method: Interpolation, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Raise the degree, propose a value, or accept it or not."""
    workspace, poly, counts = memory.workspace, memory.poly, memory.counts
    stage, energy = workspace.stage, workspace.energy
    low, high = arrays.low[i], arrays.high[i]
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if stage[_LEVEL] == _PROPOSES:
        present = density_at(poly, min(max((x[i] - middle) / half, -1.0), 1.0))
        proposed = density_at(poly, stage[_PROPOSAL])
        accepts = stage[_DRAW] * proposed < math.exp(energy[0] - stage[_NOW]) * present
        stage[CHOSEN] = workspace.points[0] if accepts else x[i]
        counts[PROPOSED] += 1
        counts[ACCEPTED] += accepts
        return rng, 0
    level = np.int64(stage[_LEVEL])
    first, skip, many = new_points(method.nodes, level)
    for k in range(many):
        poly.value[first + k * skip] = energy[k]
        if energy[k] == -math.inf:  # no polynomial
            memory.fault[0], memory.fault[FACTOR] = EMPTY, i
            return rng, 0
    if level == 0:
        stage[_NOW] = energy[many]
    good = _fit_energy(method, level, poly) if method.double else _fit_density(method, level, poly)
    if not good and level + 1 < method.nodes.degree.size:
        return rng, _ask_level(method.nodes, level + 1, arrays, memory, i)
    prepare_draws(method.density, poly)
    rng, stage[_PROPOSAL] = draw_from_series(poly, rng)
    rng, stage[_DRAW] = uniform(rng)
    stage[_LEVEL] = _PROPOSES
    workspace.points[0] = min(max(middle + half * stage[_PROPOSAL], low), high)
    return rng, 1


@inlined
def _fit_density(method: Interpolation, level: Integer, poly: Series) -> bool:
    """Interpolate the density from energies at the points of a level; return whether that is accurate enough."""
    ladder = method.nodes
    degree, stride = shape_of(ladder, level)
    top = -np.inf
    for j in range(degree + 1):
        top = max(top, poly.value[j * stride])
    for j in range(degree + 1):
        poly.density_value[j] = math.exp(poly.value[j * stride] - top)
    return fit_density(ladder, level, poly, method.tolerance)


@inlined
def _fit_energy(method: Interpolation, level: Integer, poly: Series) -> bool:
    """Interpolate the energy; if that is accurate enough, interpolate the density; return whether it is."""
    ladder, density, value = method.nodes, method.density, poly.density_value
    degree, stride = shape_of(ladder, level)
    for j in range(degree + 1):
        value[j] = poly.value[j * stride]
    tail = transform(ladder, level, value, poly.energy)
    if tail > method.tolerance and level + 1 < ladder.degree.size:
        return False
    for finer in range(density.degree.size):
        fine = density.degree[finer]
        at = method.cross_at[finer]
        for j in range(fine + 1):
            value[j] = 0.0
        for k in range(degree + 1):
            c = poly.energy[k]
            for j in range(fine + 1):
                value[j] += c * method.cross[at + j]
            at += fine + 1
        top = -np.inf
        for j in range(fine + 1):
            top = max(top, value[j])
        for j in range(fine + 1):
            value[j] = math.exp(value[j] - top)
        if fit_density(density, finer, poly, method.tolerance):
            break
    return True
