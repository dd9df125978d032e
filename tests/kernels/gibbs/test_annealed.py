"""Annealed Gibbs: right at every fixed temperature, greedy at zero, and it finds most probable states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.graph import KINDS
from gibbsite.inference.exact.transition import unit_matrix
from gibbsite.kernels.base import alone
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import start_chain, sweep_chain
from gibbsite.testing import check_invariance, check_law, tiny_models
from tests.proofs import naive
from tests.proofs.cover import cover

MODELS = tiny_models()
#: Weights of noisy nodes are compared with those of tables (tests/models/networks/test_causes.py), without a twin.
WITH_TWINS = [kind for kind in KINDS if kind != "causes"]


def representations(kind: str) -> list[tuple[str, gs.FactorGraph, gs.graphs.Graph]]:
    found = []
    for name, model in MODELS.items():
        try:
            found.append((name, model, gs.graphs.compile_graph(model, kind)))
        except gs.errors.IncompatibleError:
            continue
    return found


class Chain:
    """One chain, moved step by step by the compiled loop."""

    def __init__(
        self, model: gs.FactorGraph, graph: gs.graphs.Graph, kernel: gs.kernels.Kernel, scan: gs.scans.Scan, seed: int
    ):
        layout = lay_out(model, graph, kernel, "best")
        x0 = gs.exact.enumerate(model).draw(1, np.random.default_rng(seed))[0]
        self.state = start_chain(graph, kernel, scan, x0, stream(seed, 0), layout.conditional)
        self.fixed = kernel.parameters(graph), graph.arrays, scan.schedule(graph)
        self.tape = layout.empty_tape(graph)

    def step(self, steps: int) -> list[int]:
        sweep_chain(*self.fixed, self.state, self.tape, 1, steps, False, alone())
        return self.state.x.tolist()


# ---- any temperature


@pytest.mark.parametrize("kind", WITH_TWINS)
def test_sweeps_equal_their_twin(kind: str) -> None:
    temperatures = [3.0, 1.0, 0.5, 0.0, 0.25, 1e-300, 0.7]
    for name, model, graph in representations(kind):
        for number, scan in enumerate(cover(gs.AnnealedGibbs(), kind)(graph.n_sites)):
            chain = Chain(model, graph, gs.AnnealedGibbs(temperatures), scan, number)
            x0, sweeps = chain.state.x.tolist(), 25
            x, words = naive.run_annealed(graph, temperatures, scan, x0, stream(number, 0), sweeps)
            assert chain.step(sweeps * graph.n_sites) == x, f"{name} {type(scan).__name__} on {kind}"
            assert [int(word) for word in chain.state.rng] == words


@pytest.mark.parametrize("temperature", [1.0, 0.4, 5.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_temperature_keeps_the_law_to_the_power_of_its_inverse(kind: str, temperature: float) -> None:
    """In order; that other scans make the same steps is what the twin is for."""
    for _, model, graph in representations(kind):
        exact = gs.exact.enumerate(model)
        power = exact.law ** (1.0 / temperature)
        heated = replace(exact, law=power / power.sum())
        kernel, scan = gs.AnnealedGibbs([temperature]), gs.Systematic()
        checks = check_invariance(heated, graph, kernel, scan)
        checks.append(check_law(heated, graph, kernel, scan))
        assert [check for check in checks if not check.passed] == []


@pytest.mark.parametrize("kind", KINDS)
def test_temperature_one_is_gibbs(kind: str) -> None:
    for _, model, graph in representations(kind):
        exact = gs.exact.enumerate(model)
        for site in range(graph.n_sites):
            ours = unit_matrix(exact, graph, gs.AnnealedGibbs([1.0]), site)
            assert np.allclose(ours, unit_matrix(exact, graph, gs.Gibbs(), site), rtol=0, atol=1e-14)
        if graph.binary:  # the same random numbers are used alike
            kernels = (gs.AnnealedGibbs([1.0]), gs.Gibbs())
            ends = [Chain(model, graph, kernel, gs.Systematic(), 1).step(500) for kernel in kernels]
            assert ends[0] == ends[1]


def test_states_of_tiny_weight_are_reached_at_high_temperatures() -> None:
    # sixty neighbours at 1e-9 each: the product of their weights is below the smallest float
    sites = {"hub": 2, **{str(i): 3 for i in range(60)}}
    tables = [[1.0, 1.0, 1.0], [1e-9, 1e-9, 1e-9]]
    model = gs.FactorGraph(sites, [(("hub", str(i)), tables) for i in range(60)])
    hot = gs.AnnealedGibbs([60 * 9 * np.log(10)])  # there, the odds are 1 : e
    result = gs.sample(model, hot, sweeps=2000, warmup=0, chains=1, record="energy", rng=1, progress=False)
    share = np.mean(result.energy > 1.0)
    assert abs(share - 1 / (1 + np.e)) < 5 * np.sqrt(0.2 / 2000)  # false alarms: 6e-7


# ---- temperature zero


@pytest.mark.parametrize("kind", KINDS)
def test_at_zero_the_log_potential_never_falls(kind: str) -> None:
    for _, model, graph in representations(kind):
        for seed, scan in enumerate(cover(gs.AnnealedGibbs(), kind)(graph.n_sites)):
            chain = Chain(model, graph, gs.AnnealedGibbs([0.0]), scan, seed)
            values = [model.log_potential(chain.state.x)]
            values += [model.log_potential(chain.step(1)) for _ in range(60)]
            assert (np.diff(values) >= -1e-12 * np.abs(values).max()).all()
            top = chain.state.x.copy()
            for site, size in enumerate(graph.cards):
                for code in range(size):
                    top[site] = code
                    assert model.log_potential(top) <= values[-1] + 1e-9
                top[site] = chain.state.x[site]


def test_ties_go_to_the_first_state() -> None:
    flat = gs.ising_grid((2, 2), coupling=0.0)
    for kind in ("lattice", "ising", "table"):
        chain = Chain(flat, gs.graphs.compile_graph(flat, kind), gs.AnnealedGibbs([0.0]), gs.Systematic(), 3)
        assert chain.step(4) == [0, 0, 0, 0]
    three = gs.FactorGraph({"a": 3}, [("a", [1, 2, 2])])
    assert Chain(three, gs.graphs.compile_graph(three), gs.AnnealedGibbs([0.0]), gs.Systematic(), 1).step(1) == [1]


# ---- most probable states


def chain_model(seed: int, length: int = 40, states: int = 4) -> gs.FactorGraph:
    """Return a chain such as those of sequence labelling; its best state is known by dynamic programming."""
    rng = np.random.default_rng(seed)
    sites = {str(i): states for i in range(length)}
    factors: list[Any] = [(str(i), np.exp(rng.normal(size=states))) for i in range(length)]
    factors += [((str(i), str(i + 1)), np.exp(rng.normal(size=(states, states)))) for i in range(length - 1)]
    return gs.FactorGraph(sites, factors)


def test_the_best_labelling_of_a_chain_is_found() -> None:
    for seed in range(6):
        model = chain_model(seed)
        exact = gs.solve_exact(model, task="MAP")
        result = gs.sample(model, gs.AnnealedGibbs(sweeps=1000, start=1.0), rng=seed, progress=False)
        assert result.assignment == exact.assignment
        assert result.log_potential == pytest.approx(exact.log_potential, rel=1e-12)


@pytest.mark.parametrize("schedule", ["linear", "exponential", np.geomspace(2, 0.05, 400)], ids=str)
def test_every_schedule_finds_it(schedule: Any) -> None:
    model = chain_model(11, length=20)
    sweeps = 400 if isinstance(schedule, str) else None
    result = gs.sample(model, gs.AnnealedGibbs(schedule, sweeps), rng=1, progress=False)
    assert result.assignment == gs.solve_exact(model, task="MAP").assignment


def test_any_kernel_keeps_its_best_state() -> None:
    model = chain_model(3, length=8, states=2)
    exact = gs.solve_exact(model, task="MAP")
    for kernel in (gs.Gibbs(), gs.Gibbs("suwa-todo"), gs.AnnealedGibbs(sweeps=500)):
        result = gs.sample(model, kernel, record="best", rng=1, progress=False)
        assert result.assignment == exact.assignment
        assert result.diagnostics.found == 4
        assert result.diagnostics.converged


# ---- the length of a run, and what it records


def test_a_run_is_as_long_as_its_schedule() -> None:
    model = MODELS["potts"]
    result = gs.sample(model, gs.AnnealedGibbs(sweeps=7), rng=1, progress=False)
    assert (result.n_draws, result.warmup) == (7, 0)
    assert gs.sample(model, gs.AnnealedGibbs([1, 0.5, 0]), seconds=60, rng=1, progress=False).n_draws == 3
    longer = gs.sample(model, gs.AnnealedGibbs(sweeps=7), sweeps=20, warmup=2, rng=1, progress=False)
    assert (longer.n_draws, longer.warmup) == (20, 2)
    assert (longer._bests >= result._bests).all()


def test_only_the_best_state_and_energies_are_recorded() -> None:
    kernel = gs.AnnealedGibbs(sweeps=5)
    result = gs.sample(MODELS["glass"], kernel, record="energy", rng=1, progress=False)
    assert result.log_potential == -result.energy.min()
    for record in ("marginals", "draws", "pairs", gs.recorders.Joint([(0, 1)])):
        with pytest.raises(gs.errors.IncompatibleError, match="AnnealedGibbs does not keep the law"):
            gs.sample(MODELS["glass"], kernel, record=record, progress=False)
    with pytest.raises(gs.errors.IncompatibleError, match="cannot end at an accuracy"):
        gs.sample(MODELS["glass"], kernel, criteria=gs.Criteria(accuracy=0.04), progress=False)


def test_chains_that_found_different_states_have_not_converged() -> None:
    rng = np.random.default_rng(1)
    glass = gs.ising(np.triu(rng.normal(size=(60, 60)), 1))
    with pytest.warns(gs.ConvergenceWarning, match="found by one chain of 4"):
        result = gs.sample(glass, gs.AnnealedGibbs([0.0], None), sweeps=20, rng=2, progress=False)
    assert result.diagnostics.found == 1
    assert "found by 1 of 4 chains" in result.diagnostics.line()
    assert len(result._bests) == 4


def test_two_runs_are_equal() -> None:
    for schedule in ("linear", "exponential", [2.0, 0.5, 0.0]):
        sweeps = 30 if isinstance(schedule, str) else None
        runs = [
            gs.sample(
                MODELS["mixed"],
                gs.AnnealedGibbs(schedule, sweeps),
                record="energy",
                rng=5,
                threads=threads,
                progress=False,
            )
            for threads in (1, 2)
        ]
        assert runs[0].energy.tobytes() == runs[1].energy.tobytes()
        assert runs[0].plan == runs[1].plan


# ---- schedules


def test_named_schedules() -> None:
    assert gs.AnnealedGibbs(sweeps=1, start=1.0).temperatures.tolist() == [0.0]
    assert gs.AnnealedGibbs(sweeps=3, start=4.0).temperatures.tolist() == [4.0, 2.0, 0.0]
    falling = gs.AnnealedGibbs("exponential", 4, start=2.0, rate=0.5).temperatures
    assert falling.tolist() == [2.0, 1.0, 0.5, 0.25]
    default = gs.AnnealedGibbs("exponential", 50, start=1.0).temperatures
    assert default[[0, -1]] == pytest.approx([1.0, 0.01])
    assert gs.AnnealedGibbs().natural_sweeps(9) == 1000
    assert gs.AnnealedGibbs((1, 0)).natural_sweeps(9) == 2


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown schedule": ({"schedule": "slow"}, ["'slow'", "linear", "exponential"]),
    "empty schedule": ({"schedule": []}, ["at least one temperature"]),
    "negative temperature": ({"schedule": [1.0, -0.5]}, ["not negative", "sweep 1", "-0.5"]),
    "NaN temperature": ({"schedule": [np.nan]}, ["finite", "sweep 0", "nan"]),
    "endless temperature": ({"schedule": [1.0, np.inf]}, ["finite", "inf"]),
    "table of temperatures": ({"schedule": np.ones((2, 2))}, ["list", "(2, 2)"]),
    "one temperature": ({"schedule": 0.5}, ["list", "()"]),
    "words": ({"schedule": ["hot", "cold"]}, ["numbers", "'hot'"]),
    "another length": ({"schedule": [1.0, 0.0], "sweeps": 5}, ["2 temperatures", "5"]),
    "zero sweeps": ({"sweeps": 0}, ["sweeps", "at least 1"]),
    "half a sweep": ({"sweeps": 1.5}, ["sweeps", "1.5"]),
    "cold start": ({"start": 0.0}, ["start", "positive", "0.0"]),
    "NaN start": ({"start": np.nan}, ["start", "nan"]),
    "negative rate": ({"schedule": "exponential", "rate": -1.0}, ["rate", "-1.0"]),
    "heating": ({"schedule": "exponential", "rate": 1.1}, ["rate", "1.1"]),
    "linear rate": ({"rate": 0.9}, ["rate", "exponential"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_schedules(case: str) -> None:
    arguments, words = BAD[case]
    with pytest.raises(gs.errors.ModelError) as caught:
        gs.sample(MODELS["glass"], gs.AnnealedGibbs(**arguments), progress=False)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text
