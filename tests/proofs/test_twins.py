"""Compiled loops against naive Python twins: equal bit for bit.

Scans are those of `cover.py`; the twin's own order of visits is that of the compiled loop for every scan.
"""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.graph import KINDS
from gibbsite.kernels.base import alone
from gibbsite.kernels.gibbs.lfsr import TABLES
from gibbsite.kernels.rules import RULES
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import start_chain, sweep_chain
from gibbsite.testing import tiny_models
from tests.proofs import naive
from tests.proofs.cover import cover

SWEEPS = 40
#: Weights of noisy nodes are compared with those of tables (tests/models/networks/test_causes.py), without a twin.
WITH_TWINS = [kind for kind in KINDS if kind != "causes"]


def compiled_run(
    model: gs.FactorGraph,
    graph: gs.graphs.Graph,
    kernel: gs.kernels.Kernel,
    scan: gs.scans.Scan,
    x0,
    words,
    sweeps: int = SWEEPS,
):
    layout = lay_out(model, graph, kernel, None)
    tape = layout.empty_tape(graph)
    state = start_chain(graph, kernel, scan, x0, words, layout.conditional)
    sweep_chain(
        kernel.parameters(graph), graph.arrays, scan.schedule(graph), state, tape, sweeps, graph.n_sites, True, alone()
    )
    return state, tape.total + tape.open_batch


@pytest.mark.parametrize("kind", WITH_TWINS)
@pytest.mark.parametrize("rule", RULES)
def test_sweeps_equal_their_twin(kind: str, rule: str) -> None:
    compared = 0
    for name, model in tiny_models().items():
        try:
            graph = gs.graphs.compile_graph(model, kind)
        except gs.errors.IncompatibleError:
            continue
        x0 = gs.exact.enumerate(model).draw(1, np.random.default_rng(2))[0]
        for number, scan in enumerate(cover(gs.Gibbs(rule), kind)(graph.n_sites)):
            words = stream(11, number)
            state, sums = compiled_run(model, graph, gs.Gibbs(rule), scan, x0, words)
            x, rng, twin_sums = naive.run(graph, rule, scan, x0, words, SWEEPS)
            where = f"{name} {rule} {type(scan).__name__} on {kind}"
            assert state.x.tolist() == x, where
            assert [int(word) for word in state.rng] == rng, where
            assert sums.tolist() == twin_sums, where
            compared += 1
    # one model of kind "distance", two or more of others; two types of schedules with the default rule
    assert compared >= (1 if kind == "distance" else 2) * (2 if rule == "heat-bath" else 1)


@pytest.mark.parametrize("share", [0.0, 2.0], ids=["matrix", "rows"])
@pytest.mark.parametrize("rule", RULES)
def test_running_log_weights_equal_their_twin(rule: str, share: float, monkeypatch) -> None:
    monkeypatch.setattr("gibbsite.kernels.gibbs.gibbs.running_pays", lambda graph: True)
    monkeypatch.setattr("gibbsite.graphs.kinds.potts._DENSE", share)
    sweeps = 300  # the sums are taken anew a few times
    for name in ("potts", "agreements"):
        model = tiny_models()[name]
        graph = gs.graphs.compile_graph(model, "potts")
        assert (graph.arrays.dense.size > 0) == (share == 0.0)
        x0 = gs.exact.enumerate(model).draw(1, np.random.default_rng(2))[0]
        for number, scan in enumerate((gs.Systematic(), gs.scans.Shuffled())):
            words = stream(12, number)
            state, sums = compiled_run(model, graph, gs.Gibbs(rule), scan, x0, words, sweeps)
            kept = naive.Kept(graph)
            x, rng, twin_sums = naive.run(graph, rule, scan, x0, words, sweeps, kept)
            assert state.x.tolist() == x
            assert [int(word) for word in state.rng] == rng
            assert sums.tolist() == twin_sums
            assert state.memory.left[0] == kept.left
            assert state.memory.logs.reshape(-1, graph.n_sites).T.tolist() == kept.logs


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", WITH_TWINS)
def test_driven_sweeps_equal_their_twin(kind: str, table: str) -> None:
    """More than a period, with row lengths that do and that do not divide it."""
    m, sweeps = 8, 400  # no batch of the sums is longer than one draw yet
    compared = 0
    for name, model in tiny_models().items():
        try:
            graph = gs.graphs.compile_graph(model, kind)
        except gs.errors.IncompatibleError:
            continue
        x0 = gs.exact.enumerate(model).draw(1, np.random.default_rng(2))[0]
        scans = [scan for scan in cover(gs.kernels.QuasiGibbs(), kind)(graph.n_sites) if not scan.random]
        for number, scan in enumerate(scans):
            kernel = gs.kernels.QuasiGibbs(m, table, visits=scan.cycle(graph))
            words = stream(11, number)
            state, sums = compiled_run(model, graph, kernel, scan, x0, words, sweeps)
            shift = kernel.memory(graph, words).reader.shift
            numbers = [u for row in naive.driving_rows(*TABLES[table][m], shift) for u in row]
            if graph.binary:  # the twin has state 1 below P(1); the kernel has states in order
                numbers = [1.0 - u for u in numbers]
            x, _, twin_sums = naive.run(graph, "heat-bath", scan, x0, naive.Driven(numbers), sweeps)
            where = f"{name} {type(scan).__name__} on {kind}"
            assert state.x.tolist() == x, where
            assert sums.tolist() == twin_sums, where
            compared += 1
    assert compared >= (1 if kind == "distance" else 2)


def test_twins_agree_on_three_dimensions_and_long_runs() -> None:
    model = gs.ising_grid((3, 4, 5), coupling=(0.2, 0.3, -0.1), field=0.1, periodic=(True, False, True))
    graph = gs.graphs.compile_graph(model)
    x0 = np.zeros(graph.n_sites, np.int8)
    state, sums = compiled_run(model, graph, gs.Gibbs(), gs.Systematic(), x0, stream(3, 0))
    x, _, twin_sums = naive.run(graph, "heat-bath", gs.Systematic(), x0, stream(3, 0), SWEEPS)
    assert state.x.tolist() == x
    assert sums.tolist() == twin_sums


def test_underflowing_weights_take_the_same_way() -> None:
    # forty neighbours at 1e-9 each: the product underflows and is taken again in logarithms
    n = 41
    factors = [((0, i), [[1e-9, 1.0], [1.0, 1e-9], [1e-9, 1e-9]]) for i in range(1, n)]
    model = gs.FactorGraph({str(i): 3 if i == 0 else 2 for i in range(n)}, factors)
    x0 = np.array([2] + [i % 2 for i in range(1, n)])
    for kind in ("pairwise", "table"):
        graph = gs.graphs.compile_graph(model, kind)
        state, sums = compiled_run(model, graph, gs.Gibbs(), gs.Systematic(), x0, stream(4, 0))
        x, _, twin_sums = naive.run(graph, "heat-bath", gs.Systematic(), x0, stream(4, 0), SWEEPS)
        assert state.x.tolist() == x
        assert sums.tolist() == twin_sums
