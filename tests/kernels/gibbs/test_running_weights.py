"""Running log-weights: equal to direct sums, taken anew in time, and part of a chain that can be resumed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.local import weights
from gibbsite.kernels.base import Buffer, alone
from gibbsite.kernels.gibbs.running_weights import Running, running_pays, running_weights
from gibbsite.kernels.rules import RULES
from gibbsite.sampling import executor
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import State, start_chain, sweep_chain
from gibbsite.testing import check_kernel, tiny_models


def crowd(n: int = 90, states: int = 4, scale: float = 0.3) -> gs.FactorGraph:
    """Every pair coupled, fields with zeros."""
    rng = np.random.default_rng(n)
    fields = rng.normal(size=(n, states))
    fields[rng.random((n, states)) < 0.1] = -np.inf
    fields[:, 0] = 0.0
    return gs.potts(np.triu(rng.normal(size=(n, n)) * scale, 1), states, fields)


@pytest.fixture(params=[0.0, 2.0], ids=["matrix", "rows"])
def kept_always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep log-weights on small graphs, too; with a matrix of couplings and without."""
    monkeypatch.setattr("gibbsite.kernels.gibbs.gibbs.running_pays", lambda graph: graph.kind == "potts")
    monkeypatch.setattr("gibbsite.graphs.kinds.potts._DENSE", request.param)


class Chain:
    """One chain that is moved by the compiled loop, step by step if need be."""

    def __init__(self, model: gs.FactorGraph, rule: str = "heat-bath", scan: gs.scans.Scan | None = None) -> None:
        self.graph, self.kernel, self.scan = gs.graphs.compile_graph(model), gs.Gibbs(rule), scan or gs.RandomScan()
        layout = lay_out(model, self.graph, self.kernel, [])
        x0 = np.zeros(self.graph.n_sites, np.int16)
        self.state: State = start_chain(self.graph, self.kernel, self.scan, x0, stream(7, 0), False)
        self.tape = layout.empty_tape(self.graph)
        self.parameters = self.kernel.parameters(self.graph)
        self.schedule = self.scan.schedule(self.graph, model)

    def step(self, steps: int) -> None:
        arrays = self.graph.arrays
        sweep_chain(self.parameters, arrays, self.schedule, self.state, self.tape, 1, steps, False, alone())

    @property
    def left(self) -> int:
        return int(self.state.memory.left[0])

    def difference(self) -> float:
        """Largest relative difference between kept and direct conditional probabilities."""
        worst, w = 0.0, np.zeros(int(self.graph.cards[0]))
        for i in range(self.graph.n_sites):
            site = np.uintp(i)
            total = float(_kept(self.graph.arrays, self.state.memory, self.state.x, site))
            direct = float(_direct(self.graph.arrays, self.state.x, site, w))
            kept, direct_row = self.state.memory.work / total, w / direct
            assert ((kept > 0) == (direct_row > 0)).all()
            some = direct_row > 0
            worst = max(worst, float(np.abs(kept[some] / direct_row[some] - 1).max()))
        return worst


@compiled
def _kept(graph: Any, memory: Any, x: NDArray[Any], i: Any) -> float:
    return running_weights(graph, memory, x, i)[1]


@compiled
def _direct(graph: Any, x: NDArray[Any], i: Any, w: NDArray[np.float64]) -> float:
    return weights(graph, x, i, w)[1]


@pytest.mark.usefixtures("kept_always")
@pytest.mark.parametrize("rule", RULES)
def test_thousands_of_moves_later_they_are_those_of_direct_sums(rule: str) -> None:
    chain = Chain(crowd(), rule)
    assert isinstance(chain.state.memory, Running)
    chain.step(1)
    fresh = 64 * chain.graph.n_sites
    seen = []
    for _ in range(40):
        chain.step(700)
        assert chain.left < fresh, "sums taken anew would prove nothing"
        assert chain.difference() < 1e-12
        seen.append(chain.left)
    assert min(seen) < fresh / 2
    assert sum(later > earlier for earlier, later in itertools.pairwise(seen)) >= 1


@pytest.mark.usefixtures("kept_always")
def test_changes_are_counted_and_the_sums_taken_anew_after_the_last() -> None:
    chain = Chain(crowd(6))
    assert chain.left == 0
    chain.step(1)
    before, anew = chain.left, 0
    assert 64 * 6 - 1 <= before <= 64 * 6
    for _ in range(1500):
        x = chain.state.x.copy()
        chain.step(1)
        changed = int((chain.state.x != x).any())
        if before == 0:
            anew += 1
            before = 64 * 6
        assert chain.left == before - changed
        before = chain.left
    assert anew >= 2


@pytest.mark.usefixtures("kept_always")
def test_an_error_lives_until_the_sums_are_taken_anew() -> None:
    chain = Chain(crowd(6))
    chain.step(100)
    chain.state.memory.logs[:] += 1e-3 * np.arange(chain.state.memory.logs.size)
    assert chain.difference() > 1e-3
    while chain.left > 0:
        chain.step(1)
    chain.step(1)
    assert chain.difference() < 1e-13


@pytest.mark.usefixtures("kept_always")
def test_a_state_set_from_outside_is_taken_note_of_by_forgetting() -> None:
    chain = Chain(crowd(20))
    chain.step(200)
    chain.state.x[:] = 0
    assert chain.difference() > 1e-3
    chain.kernel.forget(chain.state.memory)
    chain.step(1)
    assert chain.difference() < 1e-13
    gs.Gibbs().forget(Buffer(np.zeros(3)))  # nothing to forget


@pytest.mark.usefixtures("kept_always")
@pytest.mark.parametrize("rule", RULES)
def test_all_proofs_hold(rule: str) -> None:
    models = {name: tiny_models()[name] for name in ("potts", "agreements")}
    report = check_kernel(
        gs.Gibbs(rule),
        models=models,
        kinds=["potts"],
        scans_of=lambda n: (gs.Systematic(), gs.RandomScan(), gs.scans.Shuffled()),
        seed=2,
    )
    assert len(report.checks) >= 2 * 3 * 4
    assert report.passed, str(report)


class Killed(Exception):
    """Stands for the end of the process."""


def test_a_killed_and_resumed_run_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor.Threads, "block_seconds", 0.0)  # one sweep per block
    model = crowd()
    assert running_pays(gs.graphs.compile_graph(model))
    settings: dict[str, Any] = {"sweeps": 200, "warmup": 3, "chains": 2, "rng": 5, "threads": 1}
    place, whole, parts = tmp_path / "run.ckpt", tmp_path / "whole.npz", tmp_path / "parts.npz"
    gs.sample(model, record=["marginals", "draws"], progress=False, **settings).save(whole)
    # the sums are taken anew after about ninety sweeps: before and after that
    for blocks in (20, 50, 60):
        seen = 0

        def count(status: Any, last: int = blocks) -> None:
            nonlocal seen
            seen += 1
            if seen > last:
                raise Killed

        with pytest.raises(Killed):
            gs.sample(
                model,
                record=["marginals", "draws"],
                checkpoint=gs.Checkpoint(place, every=0.0, resume=True),
                progress=count,
                **settings,
            )
    resumed = gs.sample(
        model, record=["marginals", "draws"], checkpoint=gs.Checkpoint(place, resume=True), progress=False, **settings
    )
    resumed.save(parts)
    assert whole.read_bytes() == parts.read_bytes()


def test_it_is_chosen_where_it_pays_and_is_safe() -> None:
    rng = np.random.default_rng(1)
    pairs = np.triu(rng.random((900, 900)) < 0.08, 1)
    cases = [
        (gs.potts(np.triu(np.ones((40, 40)), 1), 3), True),
        (gs.potts(np.triu(np.ones((40, 40)), 1), 10), False),  # as many exponentials as sums
        (gs.potts(np.triu(np.ones((40, 40)), 1) * 1e6, 3), False),  # too much would be rounded away
        (gs.potts(np.triu(np.ones((12, 12)), 1), 3), False),
        (gs.potts(pairs * 0.1, 3), True),
        (gs.potts(pairs * 0.1, 10), False),
        (gs.potts_grid((20, 20), 3, 0.5), False),
        (gs.potts(np.zeros((5, 5)), 3), False),
        (gs.ising(np.triu(np.ones((80, 80)), 1)), False),
    ]
    for model, expected in cases:
        graph = gs.graphs.compile_graph(model)
        kernel = gs.Gibbs()
        memory = kernel.memory(graph, stream(1, 0))
        assert running_pays(graph) == expected
        assert isinstance(memory, Running if expected else Buffer)
        assert kernel.memory_bytes(graph) == sum(part.nbytes for part in memory)


def test_marginals_of_a_crowd() -> None:
    # field and coupling alike for all sites: what one site does, all do, and counting states is exact
    n, states, coupling = 30, 3, 0.05
    model = gs.potts(np.triu(np.full((n, n), coupling), 1), states, [0.4, 0.0, -0.2])
    graph = gs.graphs.compile_graph(model)
    assert running_pays(graph)
    result = gs.sample(model, sweeps=20_000, rng=3, progress=False)
    law = _occupation_law(n, coupling, np.array([0.4, 0.0, -0.2]))
    for site in ("0", "17"):
        for state in range(states):
            error = result.marginals[site][state] - law[state]
            assert abs(error) < 6 * result.mcse[site][state] + 1e-6  # beyond six standard errors: 2e-9


def _occupation_law(n: int, coupling: float, field: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of the states of a site, from the numbers of sites in each state."""
    from math import lgamma

    counts = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    ways = lgamma(n + 1) - np.array([[lgamma(c + 1) for c in row] for row in counts.tolist()]).sum(axis=1)
    logs = ways + coupling * (counts * (counts - 1) / 2).sum(axis=1) + counts @ field
    law = np.exp(logs - logs.max())
    return np.asarray(law @ counts / (n * law.sum()))
