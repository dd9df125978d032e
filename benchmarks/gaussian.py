"""Gaussian Gibbs on a field of sparse precision: against a plain loop in C, and two threads against one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import gibbsite as gs
from benchmarks.loop import mover
from benchmarks.measure import Contestant, Spread, race
from benchmarks.reference import NormalReference
from benchmarks.report import Section, Target


def field(side: int) -> gs.Gaussian:
    """Return a field on a square grid: differences of neighbours, and a weak pull to zero."""
    line = sp.diags([-np.ones(side - 1), -np.ones(side - 1)], [1, -1])
    edges = sp.kron(sp.eye(side), line) + sp.kron(line, sp.eye(side))
    degree = np.asarray(abs(edges).sum(axis=1)).ravel()
    return gs.Gaussian(precision=(edges + sp.diags(degree + 0.1)).tocsr())


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, repetitions = (200, 3) if quick else (1000, 7)
    model = field(side)
    reference = NormalReference(gs.graphs.compile_graph(model).arrays)
    kernel, zeros, n = gs.kernels.GaussianGibbs(), np.zeros(model.n_sites), model.n_sites

    def sweeps(scan: gs.scans.Scan, threads: int) -> Callable[[int], None]:
        move = mover(model, kernel, scan=scan, start=zeros, threads=threads)
        return lambda rounds: move(rounds * n)

    jobs: dict[str, Callable[[int], Any]] = {
        "C": reference.run,
        "in order": sweeps(gs.Systematic(), 1),
        "by color, 1 thread": sweeps(gs.Chromatic(), 1),
        "by color, 2 threads": sweeps(gs.Chromatic(), 2),
    }
    contestants = [Contestant(name, run, n, least=1) for name, run in jobs.items()]
    seen = race(contestants, repetitions=repetitions, seconds=0.2)
    rows, data = [], {}
    for name in jobs:
        found = Spread.of([1e9 * t for t in seen[name].wall])
        rows.append([name, f"{found.median:,.1f} ns", f"{found.low:,.1f} .. {found.high:,.1f}"])
        data[name] = found.to_dict()

    by_color, both = seen["by color, 1 thread"], seen["by color, 2 threads"]
    targets = [
        Target.of("Gaussian field in order, in C", seen["in order"].against(seen["C"]), 0.9),
        Target.of("Gaussian field by color, in C", by_color.against(seen["C"]), 0.9),
        Target.of("Gaussian field, 2 threads against 1", both.against(by_color, clock="wall"), 1.7),
    ]
    head = [f"{side:,} x {side:,} sites", "an update, by the clock", "range"]
    return Section("gaussian", targets, head, rows, data)
