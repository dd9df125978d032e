"""Two ladders whose replicas exchange clusters: the product of all laws is stationary, and U follows."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.inference.exact import enumerate_states
from gibbsite.kernels.base import alone
from gibbsite.kernels.tempered import exchange
from gibbsite.kernels.tempered.paired import exchange_memory
from gibbsite.kernels.tempered.side_by_side import lanes_for
from gibbsite.models.tempered import blend
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import start_chain, sweep_chain
from gibbsite.testing import law_p_value
from tests.proofs.naive import exchange_around
from tests.proofs.test_tempered import joint_chain

pytestmark = pytest.mark.long

#: A frustrated cycle with fields.
GLASS = gs.ising((np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.1, -0.7, 0.9])), np.array([0.3, -0.2, 0.1]))


def pair_model() -> gs.FactorGraph:
    """Two sites, so that two ladders of two rungs have 256 states."""
    return gs.ising((np.array([0]), np.array([1]), np.array([0.8])), np.array([0.4, -0.3]))


def exchanges(model: gs.FactorGraph, first: int, second: int) -> np.ndarray:
    """Return the matrix of an exchange between two of four states, of which each of two ladders has two."""
    exact, memory = enumerate_states(model), exchange_memory(gs.graphs.compile_graph(model))
    states = exact.states.astype(np.int8)
    n = len(states)
    number = np.arange(n**4).reshape((n,) * 4)
    matrix = np.zeros((n**4, n**4))
    for at in itertools.product(range(n), repeat=4):
        apart = np.flatnonzero(states[at[first]] != states[at[second]])
        for seed in apart:
            x, y = states[at[first]].copy(), states[at[second]].copy()
            exchange_around(memory, x, y, int(seed))
            there = list(at)
            there[first], there[second] = int(exact.number(x)), int(exact.number(y))
            matrix[number[at], number[tuple(there)]] += 1.0 / apart.size
        if not apart.size:
            matrix[number[at], number[at]] = 1.0
    return matrix


@pytest.mark.parametrize("betas", [(0.0, 1.0), (0.3, 1.0)], ids=str)
def test_the_product_law_of_both_ladders_is_stationary(betas: tuple[float, float]) -> None:
    """States are (hot, cold) of the first ladder, then of the second; the cold ones exchange clusters."""
    model = pair_model()
    law, matrices = joint_chain(model, gs.Tempered(ladder=betas))
    both = np.kron(law, law)
    for matrix in matrices:
        whole = np.kron(matrix, matrix) @ exchanges(model, 1, 3)
        assert np.abs(whole.sum(axis=1) - 1.0).max() < 1e-12
        assert np.abs(both @ whole - both).max() < 1e-12


def test_exchanges_between_temperatures_are_caught() -> None:
    """A cold replica with the hot one of the other ladder: their laws differ."""
    law, _ = joint_chain(pair_model(), gs.Tempered(ladder=(0.3, 1.0)))
    both = np.kron(law, law)
    assert np.abs(both @ exchanges(pair_model(), 1, 2) - both).max() > 1e-3


def start(kernel: Any, model: gs.FactorGraph, chain: int, x0: Any) -> tuple[Any, ...]:
    graph = gs.graphs.compile_graph(model)
    state = start_chain(graph, kernel, gs.Systematic(), x0, stream(1, chain), False)
    tape = lay_out(model, graph, kernel, None).empty_tape(graph)
    return graph, state, tape


# one after another is what `Tempered` does, too (`test_tempered.py`)
@pytest.mark.parametrize("rule", ["heat-bath", pytest.param("metropolised", marks=pytest.mark.campaign)])
def test_exact_draws_stay_in_the_joint_law(rule: str) -> None:
    """The compiled loop, side by side or one after another; the two targets stay independent."""
    n, betas = 3, np.array([0.0, 0.4, 1.0])
    kernel, lanes = gs.kernels.PairedTempered(gs.Gibbs(rule), ladder=betas), lanes_for(3)
    graph = gs.graphs.compile_graph(GLASS)
    logs, parameters = kernel.start_ladder(graph).log_reference, kernel.parameters(graph)
    laws = [enumerate_states(blend(GLASS, b, 1 - b, logs)) for b in betas.tolist()]
    schedule, rng = gs.Systematic().schedule(graph), np.random.default_rng(3)
    middle, target = np.zeros((3000, 2 * n), np.int8), np.zeros((3000, 2 * n), np.int8)
    for c in range(len(target)):
        _, state, tape = start(kernel, GLASS, c, laws[-1].draw(1, rng)[0])
        memory = state.memory
        memory.state[:] = laws[-1].draw(1, rng)[0]
        rows = []
        for ladder in (memory.one, memory.other):
            side = rule == "heat-bath"
            many = ladder.states.reshape(n, lanes).T if side else ladder.states.reshape(2, n)
            many[:2] = [law.draw(1, rng)[0] for law in laws[:-1]]
            if side:
                many[2] = state.x if ladder is memory.one else memory.state
            ladder.counts[exchange.BEGUN] = 1
            rows.append(many)
        sweep_chain(parameters, graph.arrays, schedule, state, tape, 4, n, False, alone())
        target[c] = *state.x, *memory.state
        middle[c] = *rows[0][memory.one.place[1]], *rows[1][memory.other.place[1]]
        assert memory.tally[0] > 0 or (target[c, :n] == target[c, n:]).all()
    for law, seen in ((laws[1], middle), (laws[2], target)):
        assert law_p_value(twice(law), seen)[0] > 1e-6


def twice(law: Any) -> Any:
    """Return the law of two independent states of three sites."""
    table = law.probabilities.reshape(2, 2, 2)
    return enumerate_states(
        gs.FactorGraph(dict.fromkeys("abcdef", 2), [(("a", "b", "c"), table), (("d", "e", "f"), table)])
    )


def test_u_is_kept_up_to_date() -> None:
    rng = np.random.default_rng(2)
    model = gs.ising(np.triu(rng.normal(size=(16, 16)) * (rng.random((16, 16)) < 0.25), 1), np.full(16, 0.3))
    kernel = gs.kernels.PairedTempered(ladder=np.linspace(0.0, 1.0, 6))
    graph, state, tape = start(kernel, model, 0, np.zeros(16))
    parameters, memory = kernel.parameters(graph), state.memory
    for sweeps in (1, 5, 60, 200):
        schedule = gs.Systematic().schedule(graph)
        sweep_chain(parameters, graph.arrays, schedule, state, tape, sweeps, 16, False, alone())
        for ladder, x in ((memory.one, state.x), (memory.other, memory.state)):
            states = ladder.states.reshape(16, -1).T[ladder.place].copy()
            states[-1] = x  # its lane takes it over at the next sweep
            u = [model.log_potential(each) + 16 * np.log(2.0) for each in states]
            assert ladder.work.gain[ladder.place] == pytest.approx(u, abs=1e-9)
    assert memory.tally[1] > memory.tally[0] > 0


def test_a_run_finds_marginals_and_log_z_and_continues_bit_for_bit(tmp_path: Path) -> None:
    model = gs.ising_grid((4, 4), coupling=1.5 * np.random.default_rng(4).normal(size=(2, 4, 4)), field=0.1)
    exact, path = gs.solve_exact(model), tmp_path / "run.chk"
    run: dict[str, Any] = {"rng": 1, "progress": False, "warmup": 400}
    whole = gs.sample(model, gs.kernels.PairedTempered(), sweeps=6000, threads=1, **run)
    assert whole.diagnostics.converged, whole.diagnostics.reasons
    for site in model.sites:
        assert abs(whole.marginals[site][1] - exact.marginals[site][1]) < 6 * whole.mcse[site][1] + 1e-6
    assert abs(whole.log_z - exact.log_z) < 6 * whole.log_z_error
    assert whole.report["sites_per_cluster"] > 1.0
    gs.sample(model, gs.kernels.PairedTempered(), sweeps=2000, threads=1, checkpoint=path, **run)
    rest = gs.sample(
        model, gs.kernels.PairedTempered(), sweeps=6000, threads=2, checkpoint=gs.Checkpoint(path, resume=True), **run
    )
    assert (rest.totals == whole.totals).all()
    assert all((rest.kept[name] == whole.kept[name]).all() for name in whole.kept)


def test_infer_takes_pairs_where_they_pay() -> None:
    """Few neighbours, frustrated, two states, and nothing said about the ladder."""
    rng = np.random.default_rng(1)
    glass = gs.graphs.compile_graph(gs.ising_grid((4, 4), coupling=rng.normal(size=(2, 4, 4))))
    others = (
        gs.ising_grid((4, 4), coupling=1.0),
        gs.ising(np.triu(rng.normal(size=(8, 8)), 1)),
        gs.potts_grid((3, 3), states=3, coupling=-1.0),
    )
    assert gs.Tempered().candidates(glass) == (gs.kernels.PairedTempered(),)
    assert gs.kernels.PairedTempered().candidates(glass) == (gs.kernels.PairedTempered(),)
    given = gs.Tempered(ladder=np.linspace(0.0, 1.0, 5))
    assert given.candidates(glass)[0] is given
    for model in others:
        assert gs.Tempered().candidates(gs.graphs.compile_graph(model)) == (gs.Tempered(),)
