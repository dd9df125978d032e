"""Cluster moves: exact transition matrices, mistakes that must be caught, models that must be refused."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.color import markov_graph
from gibbsite.kernels.base import alone
from gibbsite.kernels.clusters.agreement import find_agreements
from gibbsite.kernels.tempered.paired import exchange, exchange_memory
from gibbsite.sampling.layout import PlainLayout
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import sweep_chain
from gibbsite.testing import check_kernel, tiny_models
from tests.data import DATA, needs_data
from tests.proofs.naive import exchange_around

pytestmark = pytest.mark.long

RNG = np.random.default_rng(7)
CLOCK = np.zeros((3, 3))
CLOCK[[0, 1, 2], [1, 2, 0]] = 0.8  # the second site is one ahead
TILT = RNG.normal(size=3)


def potts_with_fields() -> gs.FactorGraph:
    """Three states, a cycle, parallel factors, one state that is impossible at one site."""
    pairs = gs.factors.AgreementFactors([[0, 1], [1, 0], [1, 2], [2, 3], [3, 0]], [0.9, -0.2, 0.5, 0.3, 0.9])
    fields = gs.factors.TableFactors([[0], [1], [2]], [[0, 0.5, -np.inf], [0.1, 0.9, -0.4], [0, 0.2, 0.3]])
    return gs.FactorGraph(4, groups=[pairs, fields], states=3)


def clocks() -> gs.FactorGraph:
    """Tables that ask for agreement up to a permutation, with weights of their own; an isolated site."""
    return gs.FactorGraph(
        {"a": 3, "b": 3, "c": 3, "d": 2},
        [
            (("a", "b"), np.exp(CLOCK + TILT)),
            (("c", "b"), np.exp(1.6 * CLOCK.T + TILT[:, None])),
            ("d", [1, 2]),
            ("a", [1, 2, 3]),
        ],
    )


def hard() -> gs.FactorGraph:
    """Two sites that have to differ, which single sites could never leave."""
    return gs.FactorGraph(
        {"a": 2, "b": 2, "c": 2}, [(("a", "b"), [[0, 2], [1, 0]]), (("c", "b"), [[2, 1], [1, 3]]), ("a", [1, 2])]
    )


MODELS = {
    "signs": tiny_models()["grid"],
    "tree": gs.ising(([0, 1, 1], [1, 2, 3], [0.7, -0.4, -0.9]), [0.3, -0.5, 0.0, 1.0]),
    "potts": potts_with_fields(),
    "clocks": clocks(),
    "hard": hard(),
    "no fields": gs.ising_grid((2, 2), coupling=0.5),
}
KERNELS = [gs.SwendsenWang(), gs.Wolff(1), gs.Wolff(2)]


def in_order(units: int) -> list[gs.scans.Scan]:
    return [gs.Systematic()]


@pytest.mark.parametrize("usual", [True, pytest.param(False, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_law_is_stationary(kernel: gs.kernels.Kernel, name: str, usual: bool) -> None:
    """On the kind that is the usual one of the model, or another one: clusters do not know it."""
    model = MODELS[name]
    kind = gs.graphs.compile_graph(model).kind
    if not usual:
        kind = "table" if kind == "pairwise" else "pairwise"
    report = check_kernel(kernel, models={name: model}, scans_of=in_order, kinds=[kind])
    assert {"invariance", "reversibility", "ergodicity", "law", "repeat"} == {c.name for c in report.checks}
    assert report.passed, str(report)


@dataclass(frozen=True)
class WrongClusters(gs.SwendsenWang):
    """Swendsen and Wang with a mistake in what their moves are made of."""

    mistake: str = ""

    def parameters(self, graph: Any) -> Any:
        return spoil(super().parameters(graph), self.mistake)


@dataclass(frozen=True)
class WrongCluster(gs.Wolff):
    """Wolff with a mistake."""

    mistake: str = ""

    def parameters(self, graph: Any) -> Any:
        right = super().parameters(graph)
        wrong = spoil(right.once, self.mistake)
        chance = join_too_often(right.chance) if self.mistake == "bonds" else right.chance
        return right._replace(once=wrong, chance=chance)


def join_too_often(chance: Any) -> Any:
    """Return the chances of bonds where a coupling of spins -1 and 1 is taken for a reward of agreement."""
    return as_given(1 - (1 - chance) ** 2)


def as_given(values: Any) -> Any:
    """Return an array that is read only, as those of the library: for others all is compiled once more."""
    values.setflags(write=False)
    return values


def spoil(bonds: Any, mistake: str) -> Any:
    if mistake == "field":
        return bonds._replace(field=as_given(np.zeros(0)))
    return bonds._replace(chance=join_too_often(bonds.chance))


@pytest.mark.parametrize("mistake", ["field", "bonds"])
@pytest.mark.parametrize("kernel", [WrongClusters, WrongCluster])
def test_mistakes_are_caught(kernel: Any, mistake: str) -> None:
    wrong = kernel(mistake=mistake) if kernel is WrongClusters else kernel(clusters=1, mistake=mistake)
    report = check_kernel(wrong, models={"tree": MODELS["tree"]}, scans_of=in_order, kinds=["ising"], seed=2)
    assert {"invariance", "law"} <= report.failed


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (tiny_models()["ring"], r"around the cycle '1', '0', '2' positive: it is frustrated"),
        (tiny_models()["potts"], r"'1' and '2', of more than two states each, are to disagree"),
        (tiny_models()["mixed"], r"the factor of 'a' and 'b' depends on more than whether their states agree"),
        (tiny_models()["tables"], r"the factor of 'p', 'q', 'r' has 3 sites"),
        (
            gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [1, 1]])]),
            r"the factor of 'a' and 'b' depends on more than whether their states agree",
        ),
        (
            gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 1]]), (("b", "a"), [[0, 1], [1, 0]])]),
            r"'a' and 'b' have to agree and to disagree",
        ),
    ],
)
def test_other_models_are_refused_in_one_sentence(model: gs.FactorGraph, sentence: str) -> None:
    for kernel in (gs.SwendsenWang(), gs.Wolff()):
        name = type(kernel).__name__
        with pytest.raises(
            gs.errors.IncompatibleError, match=f"^{name} joins sites that agree, and .*{sentence}; use gs"
        ):
            gs.sample(model, kernel, progress=False)


def test_a_long_frustrated_cycle_is_named_by_its_ends() -> None:
    signs = np.ones((1, 30))
    signs[0, 11] = -1
    model = gs.ising_grid((30,), coupling=signs, periodic=True)
    with pytest.raises(gs.errors.IncompatibleError, match="22 more"):
        gs.Wolff().check(gs.graphs.compile_graph(model))


def test_parallel_couplings_that_cancel_are_no_frustration() -> None:
    pairs = gs.factors.SpinFactors([[0, 1], [1, 2], [0, 2], [2, 0]], [0.5, 0.5, -0.8, 1.1])
    model = gs.FactorGraph(3, groups=[pairs], states=2)
    found = find_agreements(gs.graphs.compile_graph(model), "Wolff")
    assert np.allclose(found.strength, [1.0, 0.6, 1.0])
    assert found.plain


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many"])
def test_numbers_of_clusters_that_make_no_sense(wrong: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="clusters must be a whole number"):
        gs.sample(MODELS["tree"], gs.Wolff(wrong), progress=False)


def test_marginals_without_fields_are_right_from_the_first_draw_on() -> None:
    model = gs.potts_grid((6, 6), states=3, coupling=0.9)
    result = gs.sample(
        model,
        gs.SwendsenWang(),
        sweeps=20,
        warmup=0,
        rng=1,
        progress=False,
        criteria=gs.Criteria(dispersed_starts=False),
    )
    assert np.abs(result.marginals.cells - 1 / 3).max() < 1e-6


def test_conditionals_given_bonds_average_to_marginals() -> None:
    """A relabelled model with fields: 50 cells within six standard errors, false alarms below 1e-6."""
    rng = np.random.default_rng(3)
    gauge = rng.choice([-1, 1], (5, 5))
    across, down = gauge * np.roll(gauge, -1, 0), gauge * np.roll(gauge, -1, 1)
    model = gs.ising_grid((5, 5), coupling=0.4 * np.stack([across, down]), field=0.2 * rng.normal(size=(5, 5)))
    exact = gs.solve_exact(model).marginals
    for kernel in (gs.SwendsenWang(), gs.Wolff()):
        result = gs.sample(model, kernel, sweeps=20_000, rng=6, progress=False)
        assert result.diagnostics.converged
        for site in model.sites:
            assert abs(result.marginals[site][1] - exact[site][1]) < 6 * result.mcse[site][1]
        assert result.report["sites_per_cluster"] > 1


def test_wolff_measures_how_many_clusters_make_a_sweep() -> None:
    """With and without a warmup, and in chains that go on."""
    model = gs.ising_grid((16, 16), coupling=0.2, periodic=True)
    how: Any = {"sweeps": 200, "rng": 1, "progress": False, "criteria": gs.Criteria(dispersed_starts=False)}
    for result in (gs.sample(model, gs.Wolff(), **how), gs.sample(model, gs.Wolff(), warmup=0, **how)):
        visited = result.report["sites_per_cluster"] * result.report["clusters_per_sweep"]
        assert 0.5 < visited / model.n_sites < 2
    chains = gs.PersistentChains(model, gs.Wolff(), chains=2, rng=1)
    chains.run(200)
    made = chains._driver.states[0].memory.tally
    assert 0.5 < made[1] / (200 * model.n_sites) < 2


def test_wolff_makes_as_many_clusters_in_every_chain() -> None:
    """Where chains learned different numbers, right runs were called not converged in 7 of 10 seeds."""
    model = gs.ising_grid((8, 8), coupling=0.42, periodic=True)
    for seed in range(5):
        result = gs.sample(model, gs.Wolff(), sweeps=4000, rng=seed, progress=False)
        # by symmetry all probabilities are 1/2; a run that is off by more than its errors allow has to be refused
        right = (np.abs(result.marginals.to_array() - 0.5) <= 4.0 * result.mcse.to_array()).all()
        assert result.diagnostics.converged == right
        assert right or seed == 3


def test_the_first_sweep_of_wolff_costs_a_sweep() -> None:
    """From a random start, where clusters are small; they grow while the sweep goes on."""
    model = gs.ising_grid((128, 128), coupling=0.46, periodic=True)
    graph = gs.graphs.compile_graph(model)
    kernel = gs.Wolff()
    memory = kernel.memory(graph, np.arange(1, 5, dtype=np.uint64))
    x = np.random.default_rng(1).integers(0, 2, graph.n_sites).astype(graph.state_dtype)
    layout = lay_out(model, graph, kernel, gs.Marginals(rao_blackwell=False))
    form = PlainLayout(graph, kernel, gs.Systematic(), layout, model)
    state = form.start([x], [np.arange(1, 5, dtype=np.uint64)])
    sweep_chain(
        kernel.parameters(graph),
        form.arrays(1),
        form.schedule(),
        state,
        form.tape(1),
        1,
        1,  # a sweep is one step of the whole model
        False,
        alone(),
    )
    made, sites = state.memory.tally[:2]
    assert graph.n_sites <= sites < 2 * graph.n_sites
    assert memory.tally[2] < 100 < made


@pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")
@pytest.mark.parametrize("kernel", [gs.SwendsenWang(), gs.Wolff(), gs.kernels.Perfect()], ids=str)
def test_runs_resume_bit_for_bit_on_any_number_of_threads(kernel: gs.kernels.Kernel, tmp_path: Path) -> None:
    model = gs.ising_grid((12, 12), coupling=0.4, field=0.02)
    how: Any = {"rng": 1, "progress": False, "criteria": gs.Criteria(dispersed_starts=False), "warmup": 20, "chains": 2}
    whole = gs.sample(model, kernel, sweeps=200, threads=2, **how)
    kept = tmp_path / "kept"
    gs.sample(model, kernel, sweeps=100, threads=1, checkpoint=kept, **how)
    resumed = gs.sample(model, kernel, sweeps=200, threads=1, checkpoint=gs.Checkpoint(kept, resume=True), **how)
    assert np.array_equal(whole.totals, resumed.totals)
    assert whole.report == resumed.report


@needs_data("physics/potts_small_exact.json")
@pytest.mark.parametrize("kernel", [gs.SwendsenWang(), gs.Wolff()], ids=str)
def test_potts_models_agree_with_the_exact_energies(kernel: gs.kernels.Kernel) -> None:
    """Within 5.5 standard errors at three models for each kernel: false alarms below 1e-6."""
    rows = json.loads((DATA / "physics/potts_small_exact.json").read_text())["rows"]
    chosen = [row for row in rows if row["q"] == 3][-3:]
    assert chosen
    for row in chosen:
        model = gs.potts_grid(
            (row["L"], row["L"]), states=row["q"], coupling=row["beta"], periodic=row["boundary"] != "free"
        )
        result = gs.sample(model, kernel, sweeps=5000, rng=11, record="energy", progress=False)
        seen = result.observables["energy"]
        exact = row["energy_per_spin"] * row["L"] ** 2 * row["beta"]
        assert abs(seen.mean - exact) < 5.5 * seen.mcse


# ---- exchanges between two states


GLASS = gs.ising(np.triu(np.array([[0, 1.1, 0, -0.7], [0, 0, -0.9, 0], [0, 0, 0, 0.8], [0, 0, 0, 0]])), 0.3)


def exchange_matrix(model: gs.FactorGraph, memory: Any) -> tuple[Any, Any]:
    """Return the law of two independent states, and the transition matrix of an exchange."""
    exact = gs.exact.enumerate(model)
    states, pi = exact.states.astype(np.int8), exact.probabilities
    many = len(states)
    matrix = np.zeros((many * many, many * many))
    for a, b in itertools.product(range(many), repeat=2):
        apart = np.flatnonzero(states[a] != states[b])
        if not apart.size:
            matrix[a * many + b, a * many + b] = 1.0
        for seed in apart:
            x, y = states[a].copy(), states[b].copy()
            exchange_around(memory, x, y, int(seed))
            matrix[a * many + b, exact.number(x) * many + exact.number(y)] += 1.0 / apart.size
    return np.outer(pi, pi).ravel(), matrix


@pytest.mark.parametrize("model", [GLASS, tiny_models()["ring"], tiny_models()["tables"]])
def test_exchanges_leave_two_independent_states_independent(model: gs.FactorGraph) -> None:
    law, matrix = exchange_matrix(model, exchange_memory(gs.graphs.compile_graph(model)))
    assert np.abs(law @ matrix - law).max() < 1e-15
    flow = law[:, None] * matrix
    assert np.abs(flow - flow.T).max() < 1e-15
    assert not np.allclose(matrix, np.eye(len(matrix)))


def test_clusters_that_stop_too_early_are_caught() -> None:
    memory = exchange_memory(gs.graphs.compile_graph(GLASS))
    none = memory._replace(start=np.zeros_like(memory.start))
    law, matrix = exchange_matrix(GLASS, none)
    assert np.abs(law @ matrix - law).max() > 1e-3


def test_the_compiled_exchange_draws_every_cluster_as_often_as_it_should() -> None:
    """Two clusters of one and two sites: 3000 draws, within five standard deviations (6e-7)."""
    model = gs.ising_grid((1, 5), coupling=0.7)
    memory = exchange_memory(gs.graphs.compile_graph(model))
    words, single = stream(3, 0), 0
    for _ in range(3000):
        x, y = np.zeros(5, np.int8), np.array([1, 0, 1, 1, 0], np.int8)
        size = exchange(memory, x, y, words)
        single += size == 1
        assert (x.tolist(), y.tolist()) in [([1, 0, 0, 0, 0], [0, 0, 1, 1, 0]), ([0, 0, 1, 1, 0], [1, 0, 0, 0, 0])]
        assert not memory.mark.any()
    assert abs(single - 1000) < 5 * np.sqrt(3000 * 2 / 9)
    same = np.ones(5, np.int8)
    assert exchange(memory, same, same.copy(), words) == 0


def test_the_neighbours_of_an_exchange_are_those_of_the_model() -> None:
    graph = gs.graphs.compile_graph(tiny_models()["tables"])
    memory = exchange_memory(graph)
    assert np.array_equal(memory.neighbour, markov_graph(graph)[1])
