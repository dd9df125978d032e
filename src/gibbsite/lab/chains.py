"""Runs of chains for experiments: without messages, with averages at many lengths, and with statistics of errors."""

from __future__ import annotations

import warnings
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


def sample_quietly(model: gs.Model, kernel: gs.kernels.Kernel, **how: Any) -> gs.Result:
    """Sample as :func:`gibbsite.sample` does, without warnings, and without progress unless it is asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, kernel, **{"progress": False} | how)


def refusal(call: Callable[[], Any]) -> str | None:
    """Return the error message of a call, or None if it succeeds."""
    try:
        call()
    except gs.GibbsiteError as error:
        return str(error)
    return None


def autocorrelations(values: Floats, lags: int) -> Floats:
    """Return the autocorrelations of zero-mean chains at lags 1, 2, ..., a row per chain."""
    n = values.shape[1]
    power = np.square(values).mean(axis=1)
    found = [(values[:, k:] * values[:, : n - k]).mean(axis=1) / power for k in range(1, lags + 1)]
    return np.stack(found, axis=1)


def mean_and_error(of_chains: Floats) -> tuple[Floats, Floats]:
    """Return the mean over chains (the first axis) and its standard error."""
    error = of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
    return of_chains.mean(axis=0), error


_THREADS = 2


def follow(
    model: gs.FactorGraph,
    kernel: gs.kernels.Kernel,
    lengths: Ints,
    record: Any,
    *,
    start: Array | None = None,
    rng: int = 1,
    chains: int = 1,
    tick: Callable[[], None] = lambda: None,
    scan: gs.scans.Scan | None = None,
) -> Floats:
    """Return the averages of all recorded cells after each number of sweeps.

    Chains make sweeps of ``kernel`` on ``model``, systematic unless ``scan`` is another scan. ``lengths`` are numbers
    of sweeps in ascending order, and ``record`` is ``gs.Marginals(rao_blackwell=False)`` or ``gs.recorders.Joint``,
    because averages of conditionals are not supported. ``start`` has the state codes at the start, by default zeros,
    and ``rng`` is the seed. ``tick`` is called at the end of each chain.
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
    """Return numbers of sweeps that are evenly spaced on a logarithmic scale, including ``most``."""
    decades = np.log10(most / least)
    return np.unique(np.logspace(0.0, decades, round(per_decade * decades) + 1) * least).astype(np.int64)


def envelope(errors: Floats) -> Floats:
    """Return the largest error at each length or any larger one."""
    return np.maximum.accumulate(errors[::-1])[::-1]


def fit_slope(lengths: Array, errors: Floats) -> float:
    """Return the slope of log errors against log lengths: -1 if errors fall like 1 / T, -1/2 for random sampling."""
    return float(np.polyfit(np.log(lengths), np.log(errors), 1)[0])
