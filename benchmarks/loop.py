"""The compiled loop of a kernel with nothing around it: what benchmarks of single kernels time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import Team
from gibbsite.kernels.protocols import Adaptive, Fallible
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.setup import fit_graph
from gibbsite.sampling.sweep import start_chain, sweep_chain


def mover(
    model: gs.Model,
    kernel: gs.kernels.Kernel,
    *,
    kind: str | None = None,
    scan: gs.scans.Scan | None = None,
    start: NDArray[Any] | None = None,
    threads: int = 1,
) -> Callable[[int], None]:
    """Return a function that makes steps of one chain and records nothing; its kernel does not learn."""
    scan = gs.Systematic() if scan is None else scan
    graph = gs.graphs.compile_graph(model, kind, kernel.kinds)
    kernel.check(graph)
    graph = fit_graph(graph, kernel)
    layout = lay_out(model, graph, kernel, gs.Draws([]))
    if start is None:
        rng = np.random.default_rng(1)
        start = rng.integers(0, model.cards) if graph.discrete else model.draw_start(rng)
    state = start_chain(graph, kernel, scan, start, stream(1, 0), layout.conditional)
    if isinstance(kernel, Adaptive):
        kernel.freeze(state.memory)
    tape, parameters = layout.empty_tape(graph), kernel.parameters(graph)
    schedule: Any = scan.schedule(graph, model)
    pool = ThreadPoolExecutor(threads)

    def move(steps: int) -> None:
        gate = np.zeros(1, np.int64)

        def share(member: int) -> None:
            team = Team(member, threads, gate)
            sweep_chain(parameters, graph.arrays, schedule, state, tape, 1, steps, False, team)

        if threads == 1:
            share(0)
        else:
            list(pool.map(share, range(threads)))
        if isinstance(kernel, Fallible):
            kernel.inspect(model, graph, state.memory)

    return move
