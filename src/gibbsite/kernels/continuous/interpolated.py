"""Draws from Chebyshev interpolants on an interval, corrected by a Metropolis step.

A *ladder* is a list of degrees. Values at the points cos(pi j / d) give the coefficients of the interpolant of degree d
by one product with a precomputed matrix. Degrees are raised until the last two coefficients are small; each degree is
twice the one before, so every point is used again.

Draws from a series f use its exact antiderivative. Because f may be negative in places, the density of draws is
max(f, e) for a small e > 0: a proposal from f + d, where d is so large that this is at least max(f, e), is accepted
with probability max(f, e) / (f + d). To choose d, the least value of f is bounded by its values on a grid: as a
function of the angle, f is a trigonometric polynomial, and a grid of step pi / (4 d) shows at least cos(pi / 8) of the
distance between its extremes and their middle (Bernstein and Szegoe).

The method ``its`` interpolates the density exp(U) itself. ``double`` interpolates the energy U, which needs few points,
and then the exponential of the interpolant, which needs more points but no evaluations of factors. The proposal does
not depend on the current value, and it is accepted with probability min(1, exp(U(v) - U(x)) q(x) / q(v)). So the target
is exactly invariant for all degrees; they only determine how often proposals are rejected. On minibatches, these are
the algorithms PGITS and PGDA [1]_.

References
----------
.. [1] Zhang, R. and De Sa, C. (2019). Poisson-minibatching for Gibbs sampling with convergence rate
   guarantees. NeurIPS 32.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.continuous.energy import ACCEPTED, CHOSEN, EMPTY, FACTOR, PROPOSED, ContinuousMemory

_FINER = 4
_WIDER = 1.0 / math.cos(math.pi / (2 * _FINER))
_FLOOR = 1e-4  # of the mean density: the least density of a proposal, which bounds the share of wasted proposals


class Ladder(NamedTuple):
    """A list of degrees, with the nodes and matrices of each."""

    degree: Ints  # (levels,): ascending; each divides the last one
    node: Floats  # (last + 1,): the points of the last degree, from 1 down to -1
    # matrix, matrix_at: from values at the points of level l to coefficients: entry
    # ``matrix_at[l] + j * (degree + 1) + k`` is the weight of value j in coefficient k
    matrix: Floats
    matrix_at: Ints
    # grid, grid_at: from coefficients to values on a finer grid, which bound the least value: entry
    # ``grid_at[l] + k * points + g``
    grid: Floats
    grid_at: Ints


def make_ladder(degrees: list[int], gridded: bool) -> Ladder:
    """Compute the matrices of some degrees; if ``gridded``, also those of grids, for series to draw from."""
    matrices, grids = [], []
    for degree in degrees:
        j = np.arange(degree + 1)
        half = np.where((j == 0) | (j == degree), 0.5, 1.0)
        matrix = 2.0 / degree * np.cos(np.pi * np.outer(j, j) / degree) * half[:, None] * half[None, :]
        matrices.append(matrix.ravel())
        fine = np.arange(_FINER * degree + 1)
        grid = np.cos(np.pi * np.outer(j, fine) / (_FINER * degree))
        grids.append(grid.ravel() if gridded else np.zeros(0))
    return Ladder(
        degree=np.array(degrees, np.int64),
        node=np.cos(np.pi * np.arange(degrees[-1] + 1) / degrees[-1]),
        matrix=np.concatenate(matrices),
        matrix_at=row_starts([m.size for m in matrices])[:-1],
        grid=np.concatenate(grids),
        grid_at=row_starts([g.size for g in grids])[:-1],
    )


class Series(NamedTuple):
    """Buffers for series of two ladders."""

    value: Floats  # energies at the points of the last degree
    density_value: Floats  # values at the points of one degree
    # energy, density, integral: coefficients of the energy, of the density and of its antiderivative
    energy: Floats
    density: Floats
    integral: Floats
    grid: Floats  # values on the finer grid
    # (6,): for the density: the lift of proposals (d), its floor (e), the antiderivative at the left end, the rise of
    # the antiderivative over the interval, the degree, and its level in the ladder
    shape: Floats

    @property
    def rebuildable(self) -> bool:
        """True: no update reads what an earlier one has written."""
        return True


LIFT, FLOOR, BEGIN, RISE, DEGREE, LEVEL = range(6)


def make_series(energy: int, density: int) -> Series:
    """Allocate buffers for series of at most these degrees."""
    return Series(
        value=np.zeros(max(energy, density) + 1),
        density_value=np.zeros(max(energy, density) + 1),
        energy=np.zeros(energy + 1),
        density=np.zeros(density + 1),
        integral=np.zeros(density + 2),
        grid=np.zeros(_FINER * density + 1),
        shape=np.zeros(6),
    )


@inlined
def shape_of(ladder: Ladder, level: Integer) -> tuple[Integer, Integer]:
    """Return the degree of a level, and the distance of its points among those of the last degree."""
    degree = ladder.degree[level]
    return degree, ladder.degree[ladder.degree.size - 1] // degree


@inlined
def new_points(ladder: Ladder, level: Integer) -> tuple[Integer, Integer, Integer]:
    """Return which points of the last degree a level adds: the first one, the step to the next, and their number."""
    degree, stride = shape_of(ladder, level)
    if level == 0:
        return 0, stride, degree + 1
    return stride, 2 * stride, degree // 2


@inlined
def transform(ladder: Ladder, level: Integer, value: Floats, out: Floats) -> float:
    """Turn values at the points of a level into coefficients; return the absolute sum of the last two."""
    degree, at = ladder.degree[level], ladder.matrix_at[level]
    for k in range(degree + 1):
        out[k] = 0.0
    for j in range(degree + 1):
        v = value[j]
        for k in range(degree + 1):
            out[k] += v * ladder.matrix[at + k]
        at += degree + 1
    return float(abs(out[degree]) + abs(out[degree - 1]))


@inlined
def fit_density(ladder: Ladder, level: Integer, series: Series, tolerance: float) -> bool:
    """Interpolate the density from its values at the points of a level; return whether that is accurate enough."""
    series.shape[LEVEL] = level
    tail = transform(ladder, level, series.density_value, series.density)
    return tail <= tolerance * mean_of(series.density, ladder.degree[level])


@inlined
def sum_series(coefficient: Floats, degree: Integer, s: float) -> float:
    """Return the value of a series at a point of [-1, 1] (Clenshaw)."""
    a, b = 0.0, 0.0
    for k in range(degree, 0, -1):
        a, b = coefficient[k] + 2.0 * s * a - b, a
    return float(coefficient[0] + s * a - b)


@inlined
def mean_of(coefficient: Floats, degree: Integer) -> float:
    """Return the mean of a series over [-1, 1]."""
    total = 0.0
    for k in range(0, degree + 1, 2):
        total += coefficient[k] / (1.0 - k * k)
    return total


@called
def prepare_draws(ladder: Ladder, series: Series) -> None:
    """Compute floor, lift and antiderivative of the density that was fitted last."""
    level = np.int64(series.shape[LEVEL])
    degree = ladder.degree[level]
    f, grid, integral = series.density, series.grid, series.integral
    points, at = _FINER * degree + 1, ladder.grid_at[level]
    for g in range(points):
        grid[g] = 0.0
    for k in range(degree + 1):
        c = f[k]
        for g in range(points):
            grid[g] += c * ladder.grid[at + g]
        at += points
    least, most = grid[0], grid[0]
    for g in range(points):
        least, most = min(least, grid[g]), max(most, grid[g])
    least = 0.5 * (least + most) - 0.5 * _WIDER * (most - least)
    # positive, because values are exponentials and their weights in the mean are positive (Clenshaw and Curtis)
    floor = _FLOOR * mean_of(f, degree)
    lift = max(0.0, floor - least)
    # int T_0 = T_1, int T_1 = T_2 / 4, int T_k = T_{k+1} / (2 (k + 1)) - T_{k-1} / (2 (k - 1))
    f[0] += lift
    for k in range(1, degree + 2):
        above = f[k + 1] if k + 1 <= degree else 0.0
        before = f[k - 1] * (2.0 if k == 1 else 1.0)
        integral[k] = (before - above) / (2.0 * k)
    f[0] -= lift
    integral[0] = 0.0
    begin = sum_series(integral, degree + 1, -1.0)
    series.shape[LIFT], series.shape[FLOOR], series.shape[BEGIN] = lift, floor, begin
    series.shape[RISE] = sum_series(integral, degree + 1, 1.0) - begin
    series.shape[DEGREE] = degree


@called
def density_at(series: Series, s: Any) -> float:
    """Return the unnormalised density of draws at a point of [-1, 1]."""
    return float(max(sum_series(series.density, np.int64(series.shape[DEGREE]), s), series.shape[FLOOR]))


@called
def draw_from_series(series: Series, rng: Words) -> tuple[Words, Any]:
    """Draw a point of [-1, 1] from the density that :func:`prepare_draws` has prepared."""
    degree, shape = np.int64(series.shape[DEGREE]), series.shape
    lift = shape[LIFT]
    while True:
        rng, u = uniform(rng)
        goal = shape[BEGIN] + u * shape[RISE]
        low, high = -1.0, 1.0
        s = 2.0 * u - 1.0
        slope = 0.0
        for turn in range(100):
            # both series at once
            a, b, p, q = series.integral[degree + 1], 0.0, 0.0, 0.0
            twice = 2.0 * s
            for k in range(degree, 0, -1):
                a, b = series.integral[k] + twice * a - b, a
                p, q = series.density[k] + twice * p - q, p
            off = series.integral[0] + s * a - b - goal
            slope = series.density[0] + s * p - q + lift
            if off > 0.0:
                high = s
            else:
                low = s
            if off == 0.0:
                break
            move = s - off / slope if slope > 0.0 else high + 1.0
            if not low < move < high or turn % 8 == 7:  # Newton leaves the bracket, or is slow
                move = 0.5 * (low + high)
            done = abs(move - s) <= 1e-15
            s = move
            if done or high - low <= 1e-15:
                break
        if lift == 0.0:
            return rng, s
        rng, u = uniform(rng)
        f = sum_series(series.density, degree, s)
        if u * (f + lift) < max(f, shape[FLOOR]):
            return rng, s


class Interpolation(NamedTuple):
    """The ladders of both interpolants, and the bound on their last coefficients.

    ``nodes`` has the points where energies are needed. If ``double`` is set, the interpolant of the density has a
    separate ladder, and ``cross[cross_at[l] + k * (d + 1) + j]`` is T_k at point j of its level l, of degree d.
    """

    double: bool
    nodes: Ladder
    density: Ladder
    cross: Floats
    cross_at: Ints
    tolerance: float


def interpolate(energy: list[int] | None, density: list[int], tolerance: float) -> Interpolation:
    """Compute the matrices for degrees of energy and density, or of the density alone if ``energy`` is None."""
    fine = make_ladder(density, gridded=True)
    nodes = fine if energy is None else make_ladder(energy, gridded=False)
    order = np.arange(0 if energy is None else energy[-1] + 1)
    parts = [np.cos(np.pi * np.outer(order, np.arange(d + 1)) / d).ravel() for d in density]
    starts = row_starts([part.size for part in parts])[:-1]
    return Interpolation(energy is not None, nodes, fine, np.concatenate(parts), starts, float(tolerance))


# Entries of the stage: the level, the current energy, the proposal in [-1, 1], and the uniform draw for its acceptance.
_LEVEL, _NOW, _PROPOSAL, _DRAW = range(1, 5)
_PROPOSES = -1.0  # in place of a level


@inlined
def _ask_level(
    ladder: Ladder, level: Integer, arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer
) -> Integer:
    """Ask for the energies at those points of a level that no earlier level has."""
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
    """Ask for the energies at the points of the lowest degree, and at the current value."""
    many = _ask_level(method.nodes, 0, arrays, memory, i)
    memory.workspace.points[many] = x[i]
    return many + 1


@inlined
def answer_nodes(
    method: Interpolation, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Raise the degree, propose a value, or accept or reject the proposal."""
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
        if energy[k] == -math.inf:  # no polynomial interpolates it
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
