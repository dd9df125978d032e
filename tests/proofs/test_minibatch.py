"""Minibatch kernels: exact matrices with the minibatch summed out, and steps that have these laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

import gibbsite as gs
from gibbsite._numba.jit import compiled_loop, generic, implement
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.kernels.base import step
from gibbsite.kernels.minibatch.estimates import ENERGY, LEFT, Estimated, TrackedEstimate, sum_energy
from gibbsite.kernels.minibatch.factors import DRAWN_KINDS, MinibatchKernel, local_energies
from gibbsite.testing import KERNELS
from tests.proofs import minibatch_laws as laws

pytestmark = pytest.mark.long

FALSE_ALARM = 1e-7  # per row of a table of frequencies; there are fewer than ten of them in a test


def triangle(states: int, weights: tuple[float, float, float], seed: int) -> laws.Model:
    """Return three sites that reward or punish agreement, and their fields."""
    factors = [(scope, w * np.eye(states)) for scope, w in zip(((0, 1), (1, 2), (0, 2)), weights, strict=True)]
    return laws.Model(3, states, factors, np.random.default_rng(seed).normal(0, 0.5, (3, states)))


def tables(seed: int) -> laws.Model:
    rng = np.random.default_rng(seed)
    factors: list[Any] = [(scope, rng.normal(0, 0.7, (3, 3))) for scope in ((0, 1), (1, 2), (0, 2))]
    return laws.Model(3, 3, factors, rng.normal(0, 0.5, (3, 3)))


def larger(seed: int) -> laws.Model:
    """Return three sites with a table of all of them and one of two."""
    rng = np.random.default_rng(seed)
    factors = [((2, 0, 1), rng.normal(0, 0.7, (3, 3, 3))), ((1, 0), rng.normal(0, 0.7, (3, 3)))]
    return laws.Model(3, 3, factors, rng.normal(0, 0.5, (3, 3)))


def equal_larger() -> laws.Model:
    """Return three sites, two factors of equal weight, one of them of all sites."""
    both = np.zeros((2, 2, 2))
    both[0, 0, 0] = both[1, 1, 1] = 0.4
    return laws.Model(3, 2, [((0, 1), 0.4 * np.eye(2)), ((1, 2, 0), both)], [[0.1, 0.0]] * 3)


def cloud(at: Any, gamma: float, beta: float, states: int, seed: int) -> laws.Model:
    """Return three sites whose couplings fall with the distance of their positions."""
    weight = beta * np.exp(-gamma * ((at[:, None] - at) ** 2).sum(axis=-1))
    return triangle(states, (weight[0, 1], weight[1, 2], weight[0, 2]), seed)


POSITIONS = np.array([[0.0, 0.0], [0.7, 0.1], [0.2, 1.1]]), 0.9, 1.2
SIDES_OF_ONE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]]), 0.5, 0.4 * math.exp(0.5)
MODELS = {
    "two states": triangle(2, (0.8, 0.5, 1.1), 1),
    "rewards": triangle(3, (0.9, 0.4, 1.3), 2),
    "both signs": triangle(3, (0.9, -0.7, 0.5), 3),
    "tables": tables(4),
    "larger": larger(7),
    "positions": cloud(*POSITIONS, 3, 6),
}
EQUAL, EQUAL_LARGER = triangle(2, (0.4, 0.4, 0.4), 5), equal_larger()


def compiled_model(model: laws.Model, kind: str) -> gs.graphs.Graph:
    if kind == "distance":
        at, gamma, beta = SIDES_OF_ONE if model is EQUAL else POSITIONS
        return gs.graphs.compile_graph(gs.models.distance_potts(at, model.states, gamma, beta, model.fields), kind)
    groups: list[Any] = [gs.factors.FieldFactors(model.n, model.fields, spin=False)]
    for scope, table in model.factors:
        off = table[0, 1]
        if len(scope) == 2 and np.allclose(table, off + (table[0, 0] - off) * np.eye(model.states)):
            groups.append(gs.factors.AgreementFactors([scope], [table[0, 0] - off]))
        else:
            groups.append(gs.factors.TableFactors([scope], table[None]))
    return gs.graphs.compile_graph(gs.FactorGraph(model.n, groups=groups, states=model.states), kind)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("row", [laws.poisson_row, laws.mgpmh_row])
def test_matrices_are_reversible_and_gaps_respect_the_bound(name: str, row: Any) -> None:
    model = MODELS[name]
    plain = laws.gap(model, laws.random_scan(model, laws.gibbs_row))
    largest = model.largest
    power = 4.0 if row is laws.poisson_row else 1.0
    for size in (0.3 * largest**2, 2.0 * largest, largest**2, 4.0 * largest**2):
        flow = model.law[:, None] * laws.random_scan(model, row, size)
        assert np.abs(flow - flow.T).max() < 1e-13
        assert np.abs(flow.sum(axis=0) - model.law).max() < 1e-13
        ratio = laws.gap(model, flow / model.law[:, None]) / plain
        assert ratio < 1.0 + 1e-12
        if size >= 2.0 * largest or power == 1.0:
            assert ratio >= math.exp(-power * largest**2 / size)


BOTH_SIGNS = triangle(2, (0.5, -0.4, 0.3), 8)


@pytest.mark.parametrize("model", [EQUAL, EQUAL_LARGER, MODELS["two states"], BOTH_SIGNS])
def test_estimating_chains_have_the_target_as_marginal(model: laws.Model) -> None:
    for size in (1.0, 4.0):
        chain = laws.Estimates(model, size)
        for site in range(3):
            for moves in (chain.min_gibbs(site), chain.double_min(site, 1.5)):
                flow = chain.law[:, :, None, None] * moves
                assert np.abs(flow.sum(axis=(0, 1)) - chain.law).max() < 1e-13
                assert np.abs(flow - flow.transpose(2, 3, 0, 1)).max() < 1e-15
                assert np.abs(chain.law.sum(axis=1) - model.law).max() < 1e-13


@pytest.mark.parametrize("model", [EQUAL, EQUAL_LARGER, BOTH_SIGNS, MODELS["rewards"], MODELS["both signs"]])
def test_estimates_of_factors_with_two_values_are_poisson_numbers(model: laws.Model) -> None:
    """A tracked chain therefore has the transition matrix of a chain that draws its factors."""
    for size in (1.0, 4.0):
        chain = laws.Estimates(model, size)
        for k, x in enumerate(model.codes):
            found, chance = laws.drawn_estimates(model, x, size)
            number = np.rint(found / chain.step).astype(int)
            assert np.abs(found - chain.step * number).max() < 1e-12
            drawn = np.bincount(number, chance, chain.numbers.size)
            many = max(drawn.size, chain.numbers.size)
            both = [np.pad(p, (0, many - p.size)) for p in (drawn, chain.fresh[k])]
            assert np.abs(both[0] - both[1]).max() < 1e-13
            # the mean of exp(estimate) is exp(U), and the stationary law is the one with these weights
            weights = chain.fresh[k] * np.exp(chain.step * chain.numbers - chain.energy[k])
            assert np.abs(weights - chain.tilted[k]).max() < 1e-13


def test_local_minibatches_are_biased() -> None:
    model = MODELS["rewards"]
    matrix = laws.random_scan(model, laws.local_row, 1)
    assert np.abs(model.law @ matrix - model.law).sum() > 0.01
    # the law it does sample
    law = np.linalg.matrix_power(matrix, 1 << 12)[0]
    assert np.abs(law - model.law).sum() > 0.05
    assert not gs.kernels.LocalMinibatchGibbs.exact
    whole = laws.random_scan(model, laws.local_row, 2)
    assert np.abs(model.law @ whole - model.law).max() < 1e-15


@generic
def forget_estimate(memory: Any) -> None:
    """Let the next step draw an estimate from the stationary law."""


@implement(forget_estimate)
def _nothing(memory: Any) -> None:
    pass


@implement(forget_estimate, Estimated)
def _drop(memory: Any) -> None:
    memory.known[1] = 0.0


@compiled_loop
def _repeat(
    kernel: Any,
    graph: Any,
    memory: Any,
    x: NDArray[Any],
    i: int,
    words: NDArray[np.uint64],
    seen: NDArray[np.int64],
    cond: NDArray[np.float64],
    times: int,
) -> None:
    """Count the values that single steps at site i from state x give it."""
    rng, old = load(words), x[i]
    for _ in range(times):
        rng = step(kernel, graph, memory, x, np.uintp(i), rng, cond, False)
        seen[x[i]] += 1
        x[i] = old
        forget_estimate(memory)
    store(words, rng)


@compiled_loop
def _repeat_on(
    kernel: Any, graph: Any, memory: Any, x: NDArray[Any], i: int, words: NDArray[np.uint64], cond: NDArray[np.float64]
) -> None:
    """Make one step at site i."""
    store(words, step(kernel, graph, memory, x, np.uintp(i), load(words), cond, False))


def check_rows(graph: gs.graphs.Graph, model: laws.Model, kernel: gs.kernels.Kernel, row: Any) -> None:
    parameters, times, unused = kernel.parameters(graph), 200_000, np.zeros(1)
    for number, x in enumerate(([0, 0, 0], [1, 0, 1], [model.states - 1, 1, 0])):
        seen = np.zeros(model.states, np.int64)
        memory = kernel.memory(graph, stream(7, number))
        codes = np.array(x, graph.state_dtype)
        _repeat(parameters, graph.arrays, memory, codes, number, stream(7, number), seen, unused, times)
        for count, p in zip(seen, row(model, x, number), strict=True):
            assert binomtest(int(count), times, min(float(p), 1.0)).pvalue > FALSE_ALARM, (x, seen / times)


KINDS = {
    "two states": ("ising", "potts", "pairwise"),
    "rewards": ("potts", "pairwise"),
    "both signs": ("potts", "pairwise"),
    "tables": ("pairwise", "table"),
    "larger": ("table",),
    "positions": ("distance",),
}
CASES = [(name, kind) for name, kinds in KINDS.items() for kind in kinds]


def test_every_kind_is_here() -> None:
    assert {kind for _, kind in CASES} == DRAWN_KINDS
    assert all(type(kernel).kinds == DRAWN_KINDS for kernel in KERNELS if isinstance(kernel, MinibatchKernel))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_steps_have_the_law_of_their_matrix(name: str, kind: str) -> None:
    model, graph = MODELS[name], compiled_model(MODELS[name], kind)
    # where L is but a bound, another lambda is meant
    size = 2.0 * model.largest / local_energies(graph).largest
    check_rows(graph, model, gs.PoissonGibbs(2.0), lambda m, x, i: laws.poisson_row(m, x, i, size))
    check_rows(graph, model, gs.kernels.MGPMH(2.0), lambda m, x, i: laws.mgpmh_row(m, x, i, size))
    check_rows(graph, model, gs.kernels.LocalMinibatchGibbs(1), lambda m, x, i: laws.local_row(m, x, i, 1))
    check_rows(graph, model, gs.PoissonGibbs("auto"), laws.gibbs_row)  # so few factors that all are taken


class DrawingMinGibbs(gs.kernels.MinGibbs):
    """MIN-Gibbs that draws the factors of all estimates."""

    tracks = False


class DrawingDoubleMin(gs.kernels.DoubleMinGibbs):
    """DoubleMIN-Gibbs that draws the factors of all estimates."""

    tracks = False


def check_estimating(model: laws.Model, kind: str, tracked: bool) -> None:
    graph = compiled_model(model, kind)
    energies = local_energies(graph)
    chain = laws.Estimates(model, 4.0 * model.total / energies.total)
    first = 1.5 * model.largest / energies.largest
    double = (gs.kernels.DoubleMinGibbs if tracked else DrawingDoubleMin)(1.5, 4.0)
    assert isinstance(double.parameters(graph).energy, TrackedEstimate) == tracked
    check_rows(graph, model, double, lambda m, x, i: chain.row(chain.double_min(i, first), x, i))
    if model.states == 2:
        single = (gs.kernels.MinGibbs if tracked else DrawingMinGibbs)(4.0)
        check_rows(graph, model, single, lambda m, x, i: chain.row(chain.min_gibbs(i), x, i))


# Factors of all kinds are drawn by the functions that `test_steps_have_the_law_of_their_matrix` is about.
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in ("ising", "table") else [pytest.mark.campaign])
        for kind in sorted(DRAWN_KINDS)
    ],
)
@pytest.mark.parametrize("tracked", [True, False])
def test_steps_of_estimating_chains_have_the_law_of_their_matrix(kind: str, tracked: bool) -> None:
    check_estimating(EQUAL_LARGER if kind == "table" else EQUAL, kind, tracked)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (BOTH_SIGNS, "ising"),
        (BOTH_SIGNS, "pairwise"),
        (MODELS["both signs"], "potts"),
        (MODELS["rewards"], "potts"),
        (MODELS["positions"], "distance"),
    ],
)
def test_steps_of_chains_that_track_their_energy_have_the_law_of_their_matrix(model: laws.Model, kind: str) -> None:
    check_estimating(model, kind, tracked=True)


def test_tracked_energies_are_those_computed_anew() -> None:
    rng = np.random.default_rng(2)
    couplings = rng.normal(0.0, 0.3, (12, 12))
    couplings = np.triu(couplings, 1) + np.triu(couplings, 1).T
    potts, ising = gs.potts(couplings, 4, fields=rng.normal(size=(12, 4))), gs.ising(couplings)
    far = gs.models.distance_potts(rng.uniform(0, 3, (12, 2)), 3, 0.7, -0.5)
    for model, kind in ((potts, "potts"), (potts, "pairwise"), (ising, "ising"), (far, "distance")):
        graph = gs.graphs.compile_graph(model, kind)
        for kernel in (gs.kernels.MinGibbs(4000.0), gs.kernels.DoubleMinGibbs(40.0, 4000.0)):
            parameters, memory, words = kernel.parameters(graph), kernel.memory(graph, stream(1, 0)), stream(1, 1)
            codes, moved, sums = np.zeros(12, graph.state_dtype), 0, 0
            for update in range(6_000):
                before, left = codes.copy(), memory.known[LEFT]
                _repeat_on(parameters, graph.arrays, memory, codes, update % 12, words, np.zeros(48))
                moved += int((before != codes).any())
                sums += int(memory.known[LEFT] > left)
                if update % 37 == 0:
                    anew = sum_energy(parameters.energy.rows, codes, np.zeros(4, np.int64))
                    assert memory.known[ENERGY] == pytest.approx(anew, abs=1e-11)
            # it is checked after many changes since the sum, and after the sum of a running chain
            assert moved > 64 * 12
            assert sums >= 2


def test_energies_of_states_that_were_set_from_outside_are_computed_anew() -> None:
    graph = compiled_model(BOTH_SIGNS, "ising")
    kernel = gs.kernels.DoubleMinGibbs(1.5, 4.0)
    parameters, memory, words = kernel.parameters(graph), kernel.memory(graph, stream(1, 0)), stream(1, 1)
    for x in BOTH_SIGNS.codes:
        codes = np.array(x, graph.state_dtype)
        kernel.forget(memory)
        _repeat_on(parameters, graph.arrays, memory, codes, 0, words, np.zeros(6))
        assert memory.known[ENERGY] == pytest.approx(BOTH_SIGNS.pair_energy(codes), abs=1e-12)


def grid_kernel(side: int, gamma: float) -> NDArray[np.float64]:
    at = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    found: NDArray[np.float64] = np.exp(-gamma * ((at[:, None] - at) ** 2).sum(axis=-1))
    np.fill_diagonal(found, 0.0)
    return found


def test_constants_of_the_experiments() -> None:
    couplings = grid_kernel(20, 1.5)
    ising = local_energies(gs.graphs.compile_graph(gs.ising(couplings)))
    assert (round(ising.largest, 4), round(ising.total, 2), ising.degree) == (2.2121, 416.14, 399)
    potts = local_energies(gs.graphs.compile_graph(gs.potts(4.6 * couplings, 10)))
    assert (round(potts.largest, 4), round(potts.total, 2), potts.degree) == (5.0878, 957.13, 399)


def test_energies_do_not_depend_on_the_kind() -> None:
    for name, kind in CASES:
        seen, model = local_energies(compiled_model(MODELS[name], kind)), MODELS[name]
        if kind == "distance":  # bounds
            assert (model.local <= seen.local).all()
            assert (seen.local < 1.1 * model.local).all()
        else:
            assert np.allclose(seen.local, model.local, rtol=1e-13)
            assert seen.total == pytest.approx(model.total, rel=1e-13)
