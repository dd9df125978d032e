"""Gaussian Gibbs on a field of sparse precision: against a plain loop in C, and two threads against one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

import gibbsite as gs
from benchmarks.measure import Contestant, Spread, race
from benchmarks.reference import NormalReference
from benchmarks.report import Section, Target
from gibbsite._random import stream
from gibbsite.kernel.base import Team
from gibbsite.run.chain import advance, start_chain
from gibbsite.run.record import lay_out


def field(side: int) -> gs.Gaussian:
    """Return a field on a square grid: differences of neighbours, and a weak pull to zero."""
    line = sp.diags([-np.ones(side - 1), -np.ones(side - 1)], [1, -1])
    edges = sp.kron(sp.eye(side), line) + sp.kron(line, sp.eye(side))
    degree = np.asarray(abs(edges).sum(axis=1)).ravel()
    return gs.Gaussian(precision=(edges + sp.diags(degree + 0.1)).tocsr())


def mover(model: gs.Gaussian, scan: gs.Scan, threads: int) -> Callable[[int], None]:
    """Return a function that makes sweeps of the compiled loop, recording nothing."""
    graph, kernel = gs.compile_graph(model), gs.GaussianGibbs()
    layout = lay_out(model, graph, kernel, gs.Draws([]))
    state = start_chain(graph, kernel, scan, np.zeros(model.n_sites), stream(1, 0), layout.conditional)
    tape, parameters, schedule = (
        layout.empty_tape(graph),
        kernel.parameters(graph),
        scan.schedule(graph, model),
    )
    pool = ThreadPoolExecutor(threads)

    def move(sweeps: int) -> None:
        gate = np.zeros(1, np.int64)

        def share(member: int) -> None:
            team = Team(member, threads, gate)
            advance(parameters, graph.arrays, schedule, state, tape, 1, sweeps * model.n_sites, False, team)

        list(pool.map(share, range(threads)))

    return move


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, repetitions = (200, 3) if quick else (1000, 7)
    model = field(side)
    reference = NormalReference(gs.compile_graph(model).arrays)
    jobs: dict[str, Callable[[int], Any]] = {
        "C": reference.run,
        "in order": mover(model, gs.Systematic(), 1),
        "by color, 1 thread": mover(model, gs.Chromatic(), 1),
        "by color, 2 threads": mover(model, gs.Chromatic(), 2),
    }
    contestants = [Contestant(name, run, model.n_sites, least=1) for name, run in jobs.items()]
    seen = race(contestants, repetitions=repetitions, seconds=0.2)
    rows, data = [], {}
    for name in jobs:
        found = Spread.of([1e9 * t for t in seen[name].wall])
        rows.append([name, f"{found.median:,.1f} ns", f"{found.low:,.1f} .. {found.high:,.1f}"])
        data[name] = found.to_dict()

    def ratio(name: str, slow: str, fast: str, bound: float, clock: str) -> Target:
        times = [getattr(seen[job], clock) for job in (slow, fast)]
        found = Spread.of([a / b for a, b in zip(*times, strict=True)])
        return Target(name, found.median, bound, True, "times", f"{found.low:.3g} .. {found.high:.3g}")

    targets = [
        ratio("Gaussian field in order, in C", "C", "in order", 0.9, "cpu"),
        ratio("Gaussian field by color, in C", "C", "by color, 1 thread", 0.9, "cpu"),
        ratio(
            "Gaussian field, 2 threads against 1", "by color, 1 thread", "by color, 2 threads", 1.7, "wall"
        ),
    ]
    head = [f"{side:,} x {side:,} sites", "an update, by the clock", "range"]
    return Section("gaussian", targets, head, rows, data)
