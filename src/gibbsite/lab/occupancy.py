"""Where a chain has been, counted after every single update, and what it has cost so far.

Every site counts at every update, whether it is visited or not, as in the code of the Poisson-Gibbs paper:
how long it stayed is added up when it leaves, so that counting takes no longer for many sites. Values of
numbers are counted in cells of equal width, states one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.kernels.base import step
from gibbsite.kernels.protocols import Fallible
from gibbsite.sampling.sweep import State, start_chain
from gibbsite.scans.base import period, refresh, site_at

_THREADS = 2


class Trajectory(NamedTuple):
    """What was seen along chains: (chains, lengths) arrays, and figures of the kernel.

    ``seconds`` is time of the processor spent on updates and on counting, so other programs do not matter.
    """

    errors: Floats
    seconds: Floats
    report: Mapping[str, float]


@compiled_loop
def _dwell(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    state: State,
    low: float,
    scale: float,
    since: Ints,
    counts: Ints,
    begin: int,
    end: int,
) -> None:
    """Make updates ``begin`` to ``end``; add the times that sites spent in their cells to ``counts``."""
    x, order, memory = state.x, state.order, state.memory
    rng, cycle = load(state.rng), np.uintp(period(schedule))
    where, last = np.uintp(state.position[0]), np.int64(counts.shape[1] - 1)
    for now in range(begin, end):
        if where == 0:
            rng = refresh(schedule, order, rng)
        i = np.uintp(site_at(schedule, order, where))
        old = min(np.int64((x[i] - low) * scale), last)
        rng = step(parameters, arrays, memory, x, i, rng, state.cond, False)
        if min(np.int64((x[i] - low) * scale), last) != old:
            counts[i, old] += now - since[i]
            since[i] = now
        where = np.uintp(where + 1)
        if where == cycle:
            where = np.uintp(0)
    for site in range(x.size):
        counts[site, min(np.int64((x[site] - low) * scale), last)] += end - since[site]
        since[site] = end
    store(state.rng, rng)
    state.position[0] = where


def watch(
    model: gs.Model,
    kernel: gs.kernels.Kernel,
    lengths: Ints,
    measure: Callable[[Ints], float],
    *,
    cells: int,
    low: float = 0.0,
    width: float = 1.0,
    scan: gs.scans.Scan | None = None,
    start: float = 0.0,
    rng: int = 1,
    chains: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Trajectory:
    """Follow chains from equal values everywhere, and measure their counts after some numbers of updates.

    ``model``, ``kernel``, ``scan``: what to run; ``RandomScan()`` by default; ``lengths``: numbers of updates,
    increasing; ``measure``: makes a number of the counts (sites, cells); ``cells``, ``low``, ``width``: how many cells
    there are, where they begin, and the width of each; for states 0 and 1; ``start``: value or state code of all sites
    at the start; ``rng``, ``chains``: seed, and number of chains; ``tick``: called at the end of every chain.
    """
    scan = gs.RandomScan() if scan is None else scan
    graph = gs.graphs.compile_graph(model)
    kernel.check(graph)
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, model)
    x0 = np.full(graph.n_sites, start, graph.state_dtype)
    errors, seconds = np.zeros((2, chains, lengths.size))

    def make(chain: int) -> Any:
        state = start_chain(graph, kernel, scan, x0, stream(rng, chain), False)
        since, counts = np.zeros(graph.n_sites, np.int64), np.zeros((graph.n_sites, cells), np.int64)
        fixed = (parameters, graph.arrays, schedule, state, low, 1.0 / width, since, counts)
        _dwell(*fixed, 0, 0)  # compiles
        done, spent = 0, 0.0
        for k, updates in enumerate(lengths.tolist()):
            begun = time.thread_time()
            _dwell(*fixed, done, updates)
            spent += time.thread_time() - begun
            if isinstance(kernel, Fallible):
                kernel.inspect(model, graph, state.memory)
            errors[chain, k], seconds[chain, k], done = measure(counts), spent, updates
        tick()
        return state.memory

    with ThreadPoolExecutor(_THREADS) as threads:
        memories = list(threads.map(make, range(chains)))
    return Trajectory(errors, seconds, kernel.report(memories))
