"""Metropolis-Hastings for states with Poisson minibatches: exact matrices, and steps that have these laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

import gibbsite as gs
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.kernels.base import step
from gibbsite.kernels.minibatch.factors import local_energies
from tests.proofs import minibatch_laws as laws
from tests.proofs.test_minibatch import CASES, FALSE_ALARM, MODELS, check_rows, compiled_model

pytestmark = pytest.mark.long


def cyclic(x: Any, rng: Any) -> Any:
    """Add one to two neighbouring sites, modulo three, or draw a whole state with more of state 1."""
    y = x.copy()
    u = rng.random()
    if u < 0.7:
        i = int(u * 3.0 / 0.7)
        y[i] = (y[i] + 1.0) % 3.0
        y[(i + 1) % 3] = (y[(i + 1) % 3] + 1.0) % 3.0
    else:
        for i in range(3):
            v = rng.random()
            y[i] = 0.0 if v < 0.25 else 1.0 if v < 0.75 else 2.0
    return y


def cyclic_log_density(to: Any, at: Any) -> float:
    total = 0.3
    for i in range(3):
        total *= 0.5 if to[i] == 1.0 else 0.25
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        if to[i] == (at[i] + 1.0) % 3.0 and to[j] == (at[j] + 1.0) % 3.0 and to[k] == at[k]:
            total += 0.7 / 3.0
    return math.log(total)


CYCLIC = gs.kernels.Proposal(cyclic, log_density=cyclic_log_density)


def proposal_matrix(model: laws.Model) -> laws.Matrix:
    found = np.array([[math.exp(cyclic_log_density(y, x)) for y in model.codes] for x in model.codes])
    assert np.abs(found.sum(axis=1) - 1.0).max() < 1e-13
    assert np.abs(found - found.T).max() > 0.01
    return found


@pytest.mark.parametrize("name", MODELS)
def test_matrices_of_single_sites_are_reversible_and_gaps_respect_the_bound(name: str) -> None:
    model = MODELS[name]
    plain = laws.gap(model, laws.random_scan(model, laws.metropolis_row))
    largest = model.largest
    for size in (0.3, 2.0 * largest, largest**2):
        flow = model.law[:, None] * laws.random_scan(model, laws.discrete_row, size)
        assert np.abs(flow - flow.T).max() < 1e-13
        assert np.abs(flow.sum(axis=0) - model.law).max() < 1e-13
        ratio = laws.gap(model, flow / model.law[:, None]) / plain
        assert 0.5 * math.exp(-(largest**2) / (size + largest)) <= ratio < 1.0 + 1e-12


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.states == 3])
def test_matrices_of_proposals_are_reversible_and_gaps_respect_the_bound(name: str) -> None:
    model = MODELS[name]
    proposal = proposal_matrix(model)
    plain = laws.gap(model, laws.proposed_matrix(model, proposal, None))
    for size in (1.0, model.total):
        flow = model.law[:, None] * laws.proposed_matrix(model, proposal, size)
        assert np.abs(flow - flow.T).max() < 1e-13
        ratio = laws.gap(model, flow / model.law[:, None]) / plain
        assert 0.5 * math.exp(-(model.total**2) / (size + model.total)) <= ratio < 1.0 + 1e-12


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_steps_of_single_sites_have_the_law_of_their_matrix(name: str, kind: str) -> None:
    model, graph = MODELS[name], compiled_model(MODELS[name], kind)
    size = 2.0 * model.largest / local_energies(graph).largest  # where L is but a bound, another lambda is meant
    check_rows(
        graph, model, gs.kernels.DiscretePoissonMH(minibatch=2.0), lambda m, x, i: laws.discrete_row(m, x, i, size)
    )


@compiled_loop
def _repeat_whole(
    kernel: Any,
    graph: Any,
    memory: Any,
    x: NDArray[Any],
    start: NDArray[Any],
    words: NDArray[np.uint64],
    seen: NDArray[np.int64],
    cond: NDArray[np.float64],
    times: int,
) -> None:
    """Count the states of three sites with three states that single steps lead to."""
    rng = load(words)
    for _ in range(times):
        rng = step(kernel, graph, memory, x, np.uintp(0), rng, cond, False)
        seen[9 * np.int64(x[0]) + 3 * np.int64(x[1]) + np.int64(x[2])] += 1
        for k in range(3):
            x[k] = start[k]
    store(words, rng)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rewards", "potts"),
        ("both signs", "potts"),
        ("tables", "pairwise"),
        ("larger", "table"),
        ("positions", "distance"),
    ],
)
def test_steps_of_proposals_have_the_law_of_their_matrix(name: str, kind: str) -> None:
    model, graph, times = MODELS[name], compiled_model(MODELS[name], kind), 100_000
    size = 3.0 * model.total / local_energies(graph).total
    matrix = laws.proposed_matrix(model, proposal_matrix(model), size)
    kernel = gs.kernels.DiscretePoissonMH(CYCLIC, minibatch=3.0)
    parameters = kernel.parameters(graph)
    for number, x in enumerate(([0, 0, 0], [1, 0, 1], [2, 1, 0])):
        seen, memory = np.zeros(27, np.int64), kernel.memory(graph, stream(7, number))
        codes = np.array(x, graph.state_dtype)
        _repeat_whole(
            parameters, graph.arrays, memory, codes.copy(), codes, stream(7, number), seen, np.zeros(9), times
        )
        assert memory.trouble[0] == 0.0
        for count, p in zip(seen, matrix[model.number(x)], strict=True):
            # 81 tests of a model: false alarms below 1e-6 in all
            assert binomtest(int(count), times, min(max(float(p), 0.0), 1.0)).pvalue > FALSE_ALARM / 10


def test_a_run_with_a_proposal_finds_the_marginals() -> None:
    model = gs.potts([[0.0, 0.9, -0.4], [0.9, 0.0, 0.6], [-0.4, 0.6, 0.0]], 3, fields=[[0.0, 0.5, -0.5]] * 3)
    result = gs.sample(model, gs.kernels.DiscretePoissonMH(CYCLIC), sweeps=20_000, rng=1, progress=False)
    exact = gs.solve_exact(model).marginals
    for site, found in result.marginals.items():
        for a in range(3):  # false alarms of 2e-9 each
            assert abs(found[a] - exact[site][a]) < 6.0 * result.mcse[site][a]
    assert "exp(-Psi^2 / (lambda + Psi)) / 2" in result.remarks[0]
    single = gs.sample(model, gs.kernels.DiscretePoissonMH(), sweeps=2_000, rng=1, progress=False)
    assert "exp(-L^2 / (lambda + L)) / 2" in single.remarks[0]
    assert 0.0 < single.report["acceptance"] < 1.0


def wrong(x: Any, rng: Any) -> Any:
    return x + 1.0


def half(x: Any, rng: Any) -> Any:
    return x * 0.0 + 0.5


def raising(x: Any, rng: Any) -> Any:
    raise ValueError("no state here")


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (wrong, "The proposal returned 3 for site"),
        (half, "The proposal returned 0.5 for site 0, whose states have the codes 0 to 2"),
        (raising, "The proposal raised ValueError"),
    ],
)
def test_proposals_that_fail_are_errors(draw: Any, message: str) -> None:
    model = gs.potts(0.3 - 0.3 * np.eye(3), 3)
    kernel = gs.kernels.DiscretePoissonMH(gs.kernels.Proposal(draw, symmetric=True), minibatch=3.0)
    with pytest.raises(gs.errors.SamplingError, match=message):
        gs.sample(model, kernel, sweeps=200, rng=1, progress=False)


def test_what_makes_no_sense() -> None:
    with pytest.raises(gs.errors.ModelError, match=r"proposal must be 'uniform' or a gs\.kernels\.Proposal"):
        gs.kernels.DiscretePoissonMH("normal")
    with pytest.raises(gs.errors.ModelError, match="minibatch of DiscretePoissonMH"):
        gs.sample(gs.potts(0.3 - 0.3 * np.eye(3), 3), gs.kernels.DiscretePoissonMH(minibatch=-1.0), progress=False)
