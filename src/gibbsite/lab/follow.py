"""Averages of a chain at many lengths, from one run, and how their errors fall."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import alone
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import start_chain, sweep_chain

_THREADS = 2


def follow(
    model: gs.FactorGraph,
    kernel: gs.kernels.Kernel,
    lengths: Ints,
    record: Any,
    *,
    start: Array | None = None,
    scan: gs.scans.Scan | None = None,
    rng: int = 1,
    chains: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Floats:
    """Return the averages of all recorded cells after each number of sweeps.

    ``model``, ``kernel``, ``scan``: what to run; ``Systematic()`` by default; ``lengths``: numbers of sweeps,
    increasing; ``record``: as in :func:`gibbsite.sample`; conditionals cannot be averaged, so
    ``gs.Marginals(rao_blackwell=False)`` or ``gs.recorders.Joint``; ``start``: where all chains start; the first
    states by default; ``rng``, ``chains``: seed, and number of chains; ``tick``: called at the end of every chain.
    The result has the shape (chains, lengths, cells).
    """
    scan = gs.Systematic() if scan is None else scan
    graph = gs.graphs.compile_graph(model)
    layout = lay_out(model, graph, kernel, record)
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, model)
    x0 = np.zeros(graph.n_sites, graph.state_dtype) if start is None else start
    found = np.empty((chains, lengths.size, layout.n_cells))

    def make(chain: int) -> None:
        state = start_chain(graph, kernel, scan, x0, stream(rng, chain), layout.conditional)
        tape, done = layout.empty_tape(graph), 0
        for k, sweeps in enumerate(lengths.tolist()):
            sweep_chain(parameters, graph.arrays, schedule, state, tape, sweeps - done, graph.n_sites, True, alone())
            done = sweeps
            found[chain, k] = (tape.total + tape.open_batch) / sweeps
        tick()

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(make, range(chains)))
    return found


def space_lengths(most: int, least: int = 100, per_decade: int = 20) -> Ints:
    """Return numbers of sweeps, evenly spaced on a logarithmic scale, ``most`` included."""
    decades = np.log10(most / least)
    return np.unique(np.logspace(0.0, decades, round(per_decade * decades) + 1) * least).astype(np.int64)


def envelope(errors: Floats) -> Floats:
    """Return the largest error from each length on."""
    return np.maximum.accumulate(errors[::-1])[::-1]


def fit_slope(lengths: Array, errors: Floats) -> float:
    """Return the slope of errors against lengths in logarithms: -1 is 1 / T, -1/2 is chance."""
    return float(np.polyfit(np.log(lengths), np.log(errors), 1)[0])
