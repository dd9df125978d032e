"""Short runs: bit for bit those of a plain loop over steps, on every kind of graph and scan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import load, stream
from gibbsite.kernels.base import Buffer, step
from gibbsite.sampling.repeat import make_short_run
from gibbsite.scans.base import period, refresh, site_at
from tests.inference.influence.random_models import KINDS, random_model

SCANS = [gs.Systematic(), gs.RandomScan(), gs.scans.Shuffled(), gs.Chromatic()]


def plain_runs(run: Any, rows: Any, words: Any, x: Any) -> tuple[Any, Any, Any]:
    """Make the runs in plain Python; return end states and sums of conditionals, and of their squares."""
    graph, order, rng = run.graph, run.buffer.copy(), load(words)
    x, ends, memory = x.astype(graph.state_dtype), rows.copy(), Buffer(np.zeros(int(graph.cards.max())))
    totals: list[list[float]] = []
    for r in range(len(rows)):
        x[run.sites] = rows[r]
        cond = np.zeros(graph.n_cells)
        for i in range(graph.n_sites):
            if graph.binary:
                cond[i] = np.inf if x[i] else -np.inf
            else:
                cond[graph.offset[i] + x[i]] = 1.0
        cycle = period(run.schedule)
        for t in range(run.steps):
            if t % cycle == 0:
                rng = refresh(run.schedule, order, rng)
            i = np.uintp(site_at(run.schedule, order, np.uintp(t % cycle)))
            rng = step(run.kernel.parameters(graph), graph.arrays, memory, x, i, rng, cond, True)
        ends[r] = x[run.sites]
        if graph.binary:
            totals.append([1 / (1 + np.exp(-cond[i])) for i in run.targets])
        else:
            cells = [np.arange(graph.offset[i], graph.offset[i + 1]) for i in run.targets]
            totals.append(cond[np.concatenate(cells)].tolist())
    values = np.array(totals)
    return ends, values.sum(axis=0), (values**2).sum(axis=0)


@pytest.mark.parametrize(
    ("kind", "scan"), [(kind, gs.scans.FixedOrder([1, 0, 1])) for kind in KINDS] + [("lattice", scan) for scan in SCANS]
)
@pytest.mark.filterwarnings("ignore:(overflow|divide):RuntimeWarning")
def test_runs_are_those_of_a_plain_loop(kind: str, scan: gs.scans.Scan) -> None:
    rng = np.random.default_rng(7)
    model = random_model(kind, rng)
    while model.n_sites < 3:
        model = random_model(kind, rng)
    graph = gs.graphs.compile_graph(model)
    run = make_short_run(model, graph, gs.Gibbs(), scan, 2 * model.n_sites + 1, np.array([0, 2], np.int32))
    rows, x = run.draw_starts(20, 5, 0), rng.integers(0, graph.cards)
    ends, total, square = plain_runs(run, rows, stream(5, 0), x)
    sums = run.make(rows, stream(5, 0), x)
    assert (rows == ends).all()
    np.testing.assert_allclose(sums.total, total, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sums.square, square, rtol=0, atol=1e-12)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5)])
def test_all_neighbours_matter(shape: tuple[int, ...], periodic: bool) -> None:
    model = gs.ising_grid(shape, coupling=0.1, periodic=periodic)
    lattice, ising = gs.graphs.compile_graph(model), gs.graphs.compile_graph(model, "ising")
    for site in range(model.n_sites):
        few, exact = (
            make_short_run(model, graph, gs.Gibbs(), gs.scans.FixedOrder([site]), 1).sites for graph in (lattice, ising)
        )
        assert set(exact) <= set(few)
