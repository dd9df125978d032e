"""Gibbs sampling of models of functions: the pieces of each method, and chains that stay in their law."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.graphs.functions.bounds import all_bounds
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.continuous.energy import CHOSEN, energies
from gibbsite.kernels.continuous.interpolated import (
    _DRAW,
    _LEVEL,
    _NOW,
    _PROPOSAL,
    _PROPOSES,
    FLOOR,
    LIFT,
    RISE,
    density_at,
    draw_from_series,
    interpolate,
    prepare_draws,
    sum_series,
)
from gibbsite.kernels.continuous.methods import answer, ask, draw_quadratic
from tests.proofs.density_laws import move_each

pytestmark = pytest.mark.long

Floats = NDArray[np.float64]
FALSE_ALARM = 1e-7  # of one chi-square; there are fewer than ten in a test


def chi_square(counts: NDArray[Any], law: Floats) -> float:
    """Return the p-value of counts in cells of known law; cells expected fewer than 10 times are pooled."""
    expected = counts.sum() * law.ravel()
    order = np.argsort(expected)
    pooled = np.cumsum(expected[order]) < 10.0
    keep = order[~pooled]
    seen = np.append(counts.ravel()[keep], counts.ravel()[order[pooled]].sum())
    due = np.append(expected[keep], expected[order[pooled]].sum())
    if due[-1] == 0.0:
        assert seen[-1] == 0
        seen, due = seen[:-1], due[:-1]
    return float(chi2.sf(((seen - due) ** 2 / due).sum(), due.size - 1))


_gauss = functools.cache(np.polynomial.legendre.leggauss)


def legendre(low: float, high: float, points: int = 400) -> tuple[Floats, Floats]:
    nodes, weights = _gauss(points)
    return low + 0.5 * (high - low) * (nodes + 1.0), 0.5 * (high - low) * weights


# --- exact draws of exponentials of polynomials ------------------------------------------------------------

QUADRATICS = [
    (0.0, 0.0),
    (1e-14, -1e-13),
    (3.0, 0.0),
    (-40.0, 0.0),
    (1e7, 0.0),
    (3.0, -5.0),
    (300.0, -250.0),
    (-30.0, -2.0),
    (60.0, -10.0),
    (2e5, -1.9e5),
    (1.0, 4.0),
    (-20.0, 20.0),
    (-50.0, 30.0),
    (5.0, 60.0),
]


@compiled
def _draw_many(b: float, c: float, words: NDArray[np.uint64], out: Floats) -> None:
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = draw_quadratic(b, c, rng)
    store(words, rng)


@pytest.mark.parametrize(("b", "c"), QUADRATICS)
def test_truncated_exponentials_and_normals(b: float, c: float) -> None:
    out = np.empty(40_000)
    _draw_many(b, c, stream(7, 0), out)
    assert out.min() >= 0.0
    assert out.max() <= 1.0
    # cells where the mass is: quantiles of a fine cumulative sum around the mode
    mode = min(max(-0.5 * b / c, 0.0), 1.0) if c < 0 else float(b + c > 0.0)
    scale = min(1.0, 40.0 / max(abs(b + 2 * c * mode), math.sqrt(max(-2 * c, 0.0)), 40.0))
    low, high = (max(mode - scale, 0.0), min(mode + scale, 1.0)) if c <= 0 else (0.0, 1.0)
    if c > 0 and abs(b + c) < 30:
        low, high = 0.0, 1.0
    edges = np.linspace(low, high, 4001)
    mass = np.empty(4000)
    for k in range(4000):
        t, w = legendre(edges[k], edges[k + 1], 8)
        mass[k] = w @ np.exp(b * (t - mode) + c * (t - mode) * (t + mode))
    cells = np.searchsorted(np.cumsum(mass) / mass.sum(), np.arange(1, 20) / 20)
    law = np.diff(np.concatenate([[0.0], np.cumsum(mass)[cells], [mass.sum()]])) / mass.sum()
    inside = out[(out >= low) & (out <= high)]
    assert inside.size >= out.size - 2  # e^-40 lies outside
    counts = np.bincount(np.searchsorted(edges[cells + 1], inside), minlength=20)
    assert chi_square(counts, law) > FALSE_ALARM


# --- interpolants ------------------------------------------------------------------------------------------


@functools.cache
def wavy(scale: float) -> gs.ContinuousModel:
    """Return one number whose energy no low degree interpolates, and its bounds."""
    return gs.ContinuousModel(
        {"v": gs.Interval(-1.0, 2.0)},
        [
            gs.factors.FunctionFactors(
                lambda x, p: p[0] * np.sin(3.0 * x[0]) - p[1] * x[0] ** 4 / 4,
                [[0], [0]],
                [[scale, 0.2 * scale], [0.3 * scale, 0.1 * scale]],
                bounds=([-1.8 * scale, -0.7 * scale], [scale, 0.3 * scale]),
            )
        ],
    )


def at_work(model: gs.ContinuousModel, kernel: gs.kernels.ContinuousGibbs) -> tuple[Graph, Any, Any]:
    """Return graph, memory and parameters for an update of site 0 with all factors."""
    graph = gs.graphs.compile_graph(model)
    memory: Any = kernel.memory(graph, stream(1, 0))
    memory.workspace.reach[:] = graph.arrays.start[1] - graph.arrays.start[0], 0
    return graph, memory, kernel.parameters(graph)


def energy_of(graph: Graph, memory: Any, values: Floats) -> Floats:
    found = np.empty(values.size)
    for k, v in enumerate(values):
        memory.workspace.points[0] = v
        assert energies(graph.arrays, all_bounds(graph, "this test"), memory, np.zeros(1), 0, 1)
        found[k] = memory.workspace.energy[0]
    return found


CORRECTED = [
    ("its", 3, None),
    ("its", 9, None),
    ("its", None, None),
    ("double", 2, 4),
    ("double", 5, 12),
    ("double", None, None),
]


@pytest.mark.parametrize(("method", "degree", "fine"), CORRECTED)
@pytest.mark.parametrize("scale", [1.0, 12.0])
@pytest.mark.parametrize("minibatch", [False, True])
def test_corrected_proposals_leave_the_conditional_as_it_is(
    method: str, degree: int | None, fine: int | None, scale: float, minibatch: bool
) -> None:
    kernel = gs.kernels.ContinuousGibbs(method, degree=degree, fine=fine)
    graph, memory, parameters = at_work(wavy(scale), kernel)
    if minibatch:  # factor 0 drawn three times, factor 1 seven times
        workspace = memory.workspace._replace(
            factor=np.array([0, 1], np.int32),
            times=np.array([3, 7], np.int32),
            scale=1.0 / (0.8 * all_bounds(graph, "this test").bound),
        )
        memory = memory._replace(workspace=workspace)
        memory.workspace.reach[:] = 0, 2
    x = np.array([0.3])
    arguments = parameters.method, graph.arrays, memory, x, 0
    rng, many = ask(*arguments, load(stream(3, 0)))
    while many > 1:
        assert energies(graph.arrays, all_bounds(graph, "this test"), memory, x, 0, many)
        rng, many = answer(*arguments, rng)
    stage = memory.workspace.stage
    assert stage[_LEVEL] == _PROPOSES
    # target and proposal density at some places, both up to a factor
    s = np.concatenate([[-1.0], legendre(-1.0, 1.0, 22)[0], [1.0]])
    v = 0.5 + 1.5 * s
    energy = energy_of(graph, memory, v)
    proposal = np.array([density_at(memory.poly, one) for one in s])
    assert proposal.min() > 0.0
    # flows are equal if moves from a to b are accepted with just this probability: draws on both sides of it
    for a, b in itertools.product(range(s.size), repeat=2):
        due = math.exp(energy[b] - energy[a]) * proposal[a] / proposal[b]
        for u, accepted in ((due * (1 - 1e-11), True), (due * (1 + 1e-11), False)):
            x[0], memory.workspace.points[0], memory.workspace.energy[0] = v[a], v[b], energy[b]
            stage[_LEVEL], stage[_NOW], stage[_PROPOSAL], stage[_DRAW] = _PROPOSES, energy[a], s[b], u
            answer(*arguments, rng)
            assert stage[CHOSEN] == (v[b] if accepted else v[a])


@compiled
def _draw_series(series: Any, words: NDArray[np.uint64], out: Floats) -> None:
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = draw_from_series(series, rng)
    store(words, rng)


@pytest.mark.parametrize("degree", [1, 3, 8, 25])
def test_series_are_drawn_from_as_they_are(degree: int) -> None:
    generator = np.random.default_rng(degree)
    method = interpolate(None, [degree], 1e-3)
    kernel = gs.kernels.ContinuousGibbs("its", degree=degree)
    memory: Any = kernel.memory(gs.graphs.compile_graph(wavy(1.0)), stream(1, 0))
    series = memory.poly
    for trial in range(3):
        values = np.exp(generator.normal(0.0, 2.0, degree + 1))  # wild: far below zero between the points
        series.density[:] = values @ method.density.matrix.reshape(degree + 1, degree + 1)
        prepare_draws(method.density, series)
        s = np.linspace(-1.0, 1.0, 20_001)
        f = np.polynomial.chebyshev.chebval(s, series.density)
        floor, lift = series.shape[FLOOR], series.shape[LIFT]
        assert (f + lift - np.maximum(f, floor)).min() >= -1e-12 * np.abs(f).max()
        nodes, weights = legendre(-1.0, 1.0, 60)
        rise = weights @ (np.polynomial.chebyshev.chebval(nodes, series.density) + lift)
        assert series.shape[RISE] == pytest.approx(rise, rel=1e-12)
        assert sum_series(series.density, degree, 0.3) == pytest.approx(
            np.polynomial.chebyshev.chebval(0.3, series.density), rel=1e-12, abs=1e-12 * np.abs(f).max()
        )
        clipped = np.maximum(f, floor)
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (clipped[1:] + clipped[:-1]))])
        law = np.diff(np.interp(np.linspace(-1, 1, 31), s, cumulative)) / cumulative[-1]
        out = np.empty(30_000)
        _draw_series(series, stream(11, trial), out)
        counts, _ = np.histogram(out, np.linspace(-1, 1, 31))
        assert chi_square(counts, law) > FALSE_ALARM


def test_without_the_correction_low_degrees_are_biased() -> None:
    graph, memory, parameters = at_work(wavy(4.0), gs.kernels.ContinuousGibbs("its", degree=3))
    x = np.array([0.3])
    arguments = parameters.method, graph.arrays, memory, x, 0
    rng, many = ask(*arguments, load(stream(3, 0)))
    assert energies(graph.arrays, all_bounds(graph, "this test"), memory, x, 0, many)
    answer(*arguments, rng)
    out = np.empty(30_000)
    _draw_series(memory.poly, stream(12, 0), out)
    counts, edges = np.histogram(out, np.linspace(-1, 1, 31))
    law = np.empty(30)
    for k in range(30):
        s, w = legendre(edges[k], edges[k + 1], 8)
        law[k] = w @ np.exp(energy_of(graph, memory, 0.5 + 1.5 * s))
    assert chi_square(counts, law / law.sum()) < 1e-12


# --- chains stay in their law ------------------------------------------------------------------------------


def mixed_model() -> gs.ContinuousModel:
    """Return two numbers and a site of three states; one group is always evaluated, bounds differ."""
    return gs.ContinuousModel(
        {"a": gs.Interval(-1.0, 1.0), "b": gs.Interval(0.0, 2.0), "s": ["x", "y", "z"]},
        [
            gs.factors.FunctionFactors(
                lambda x, p: p[0] * np.cos(2.0 * x[0] + p[1] * x[1]),
                [[0, 1], [0, 2], [1, 2], [0, 1]],
                [[1.0, 1.0], [0.7, 2.0], [0.5, -1.0], [0.4, 0.3]],
                bounds=([-1.0, -0.7, -0.5, -0.4], [1.0, 0.7, 0.5, 0.4]),
            ),
            gs.factors.normal_factors([0, 1], [0.2, 1.5], [0.8, 0.7], always=True),
        ],
    )


def mixed_energy(a: Floats, b: Floats, s: Floats) -> Floats:
    waves = np.cos(2 * a + b) + 0.7 * np.cos(2 * a + 2 * s) + 0.5 * np.cos(2 * b - s)
    return waves + 0.4 * np.cos(2 * a + 0.3 * b) - 0.5 * ((a - 0.2) / 0.8) ** 2 - 0.5 * ((b - 1.5) / 0.7) ** 2


def quadratic_model() -> gs.ContinuousModel:
    """Return three numbers with factors of degrees 1 and 2, some of equal bounds."""
    return gs.ContinuousModel(
        3,
        [
            gs.factors.product_factors([[0, 1], [1, 2]], [1.2, -1.2]),
            gs.factors.difference_factors([[0, 2]], [1.5]),
            gs.factors.normal_factors([1], 0.3, 0.6),
        ],
        states=gs.Interval(-1.0, 1.5),
    )


def quadratic_energy(x: Floats, y: Floats, z: Floats) -> Floats:
    return 1.2 * x * y - 1.2 * y * z - 0.75 * (x - z) ** 2 - 0.5 * ((y - 0.3) / 0.6) ** 2


TARGETS = {"mixed": (mixed_model, mixed_energy), "quadratic": (quadratic_model, quadratic_energy)}
SPLIT = 5  # cells of a number


class Target:
    """A model of three sites: exact draws by rejection, and the law of cells of all three together."""

    def __init__(self, name: str) -> None:
        build, self.energy = TARGETS[name]
        self.model = build()
        self.low, self.high = self.model.domains.bounds
        self.numbers = self.model.domains.numbers
        nodes, weights = legendre(0.0, 1.0, 10)
        axes, shares = [], []
        for i in range(3):
            if self.numbers[i]:
                axes.append(np.add.outer(np.arange(SPLIT), nodes).ravel() / SPLIT)
                axes[-1] = self.low[i] + (self.high[i] - self.low[i]) * axes[-1]
                shares.append(np.tile(weights, SPLIT))
            else:
                axes.append(np.arange(self.high[i] + 1.0))
                shares.append(np.ones(axes[-1].size))
        grid = np.meshgrid(*axes, indexing="ij")
        mass = np.exp(self.energy(*grid)) * np.einsum("i,j,k->ijk", *shares)
        places = np.stack(grid, axis=-1).reshape(-1, 3)
        self.law = np.bincount(self.cells(places), mass.ravel(), SPLIT**3)
        self.law /= self.law.sum()
        graph = gs.graphs.compile_graph(self.model)
        some = places[:: len(places) // 7]
        theirs = np.array([log_potential(graph.arrays, place) for place in some])
        assert np.allclose(theirs, self.energy(*some.T), atol=1e-12)

    def cells(self, x: Floats) -> NDArray[np.int64]:
        """Return the number of the cell of each place."""
        part = np.where(self.numbers, SPLIT * (x - self.low) / (self.high - self.low), x)
        at = np.minimum(np.floor(part).astype(np.int64), SPLIT - 1)
        found: NDArray[np.int64] = at @ np.array([SPLIT * SPLIT, SPLIT, 1])
        return found

    def draw(self, count: int, seed: int) -> Floats:
        """Return exact draws."""
        generator = np.random.default_rng(seed)
        found = np.empty((0, 3))
        while len(found) < count:
            unit = generator.random((200_000, 3))
            whole = self.low + np.floor(unit * (self.high - self.low + 1.0))
            x = np.where(self.numbers, self.low + unit * (self.high - self.low), whole)
            energy = self.energy(*x.T)
            assert energy.max() < 2.6
            found = np.concatenate([found, x[generator.random(len(x)) < np.exp(energy - 2.6)]])
        return found[:count]

    def p_value(self, x: Floats) -> float:
        """Return the p-value of places under the law of the cells."""
        return chi_square(np.bincount(self.cells(x), minlength=self.law.size), self.law)


@pytest.fixture(scope="module", params=sorted(TARGETS))
def target(request: pytest.FixtureRequest) -> Target:
    return Target(request.param)


KERNELS = {
    "auto": gs.kernels.ContinuousGibbs(),
    "double": gs.kernels.ContinuousGibbs("double"),
    "double, low degrees": gs.kernels.ContinuousGibbs("double", degree=2, fine=3),
    "its, low degree": gs.kernels.ContinuousGibbs("its", degree=3),
    "rejection": gs.kernels.ContinuousGibbs("rejection"),
    "slice": gs.kernels.ContinuousGibbs("slice"),
    "double, minibatch": gs.kernels.ContinuousGibbs("double", minibatch=3.0),
    "its, minibatch, low degree": gs.kernels.ContinuousGibbs("its", minibatch=1.0, degree=2),
    "rejection, minibatch": gs.kernels.ContinuousGibbs("rejection", minibatch=0.5),
    "slice, minibatch": gs.kernels.ContinuousGibbs("slice", minibatch=2.0),
}
DRAWS = 12_000


@pytest.mark.parametrize("name", KERNELS)
def test_chains_stay_in_their_law(target: Target, name: str) -> None:
    ends = move_each(target.model, KERNELS[name], target.draw(DRAWS, 5), sweeps=2)
    assert target.p_value(ends) > FALSE_ALARM


def test_the_test_sees_what_is_wrong(target: Target) -> None:
    starts = target.draw(DRAWS, 5)
    assert target.p_value(starts) > FALSE_ALARM
    kernel = TooLittleGain("rejection", minibatch=0.5)
    assert target.p_value(move_each(target.model, kernel, starts, sweeps=2)) < 1e-12


class TooLittleGain(gs.kernels.ContinuousGibbs):
    """Takes a bound of the energy for granted that is none."""

    def parameters(self, graph: Graph) -> Any:
        found = super().parameters(graph)
        return found._replace(method=found.method._replace(gain=0.3 * found.method.gain))
