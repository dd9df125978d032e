"""Occupation counts of chains after every update, times of updates, and curves of errors against both.

Every site counts at every update, whether it is visited or not, as in the code of the Poisson-Gibbs paper. The time
that a site spends in a cell is added when it leaves the cell, so that the cost of counting does not depend on the
number of sites. The values of continuous sites are counted in cells of equal width.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.kernels.base import step
from gibbsite.kernels.protocols import Fallible
from gibbsite.lab.drawing import Axes
from gibbsite.lab.findings import Rows, Table
from gibbsite.sampling.sweep import State, start_chain
from gibbsite.scans.base import period, refresh, site_at

_THREADS = 2


class Trajectory(NamedTuple):
    """Errors and times along chains."""

    errors: Floats  # (chains, lengths)
    seconds: Floats  # (chains, lengths): processor time of updates and of counting
    report: Mapping[str, float]  # of the kernel


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
    """Make updates ``begin`` to ``end``; add the numbers of updates that sites spend in each cell to ``counts``."""
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
    """Run chains from equal values at all sites, and evaluate their counts after given numbers of updates.

    ``lengths`` are increasing numbers of updates, and ``measure`` maps the counts (sites, cells) to a number. There are
    ``cells`` cells of width ``width`` from ``low`` on; the defaults are those of states. ``scan`` is ``RandomScan()``
    by default, ``start`` is the value or state code of all sites at the start, and ``rng`` is the seed. ``tick`` is
    called at the end of each chain.
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


Arrays = Mapping[str, Array]
NOTE = "Seconds are processor time and depend on the machine; everything else depends on the seed alone."


def follow_methods(
    names: Iterable[str], follow: Callable[[str], tuple[Ints, Trajectory]]
) -> tuple[dict[str, Array], Any]:
    """Run all methods; return arrays "NAME: errors", "NAME: seconds" and "NAME: updates", and their reports."""
    arrays: dict[str, Array] = {}
    reports: dict[str, dict[str, float]] = {}
    for name in names:
        lengths, seen = follow(name)
        arrays |= {f"{name}: errors": seen.errors, f"{name}: seconds": seen.seconds, f"{name}: updates": lengths}
        reports[name] = dict(seen.report)
    return arrays, reports


def seconds_of_update(arrays: Arrays, name: str) -> float:
    """Return the mean time of an update of a method."""
    return float(arrays[f"{name}: seconds"][:, -1].mean() / arrays[f"{name}: updates"][-1])


def times_of_update(arrays: Arrays, name: str) -> Array:
    """Return the mean time of an update of a method, for each chain."""
    times: Array = arrays[f"{name}: seconds"][:, -1] / arrays[f"{name}: updates"][-1]
    return times


def last_error(arrays: Arrays, name: str) -> float:
    """Return the mean error of chains at the end."""
    return float(arrays[f"{name}: errors"][:, -1].mean())


def error_at(arrays: Arrays, name: str, updates: int) -> Array | None:
    """Return the errors of all chains of a method after a number of updates, or None if it made fewer."""
    at = np.flatnonzero(arrays[f"{name}: updates"] == updates)
    return arrays[f"{name}: errors"][:, at[0]] if at.size else None


def tabulate_errors(title: str, arrays: Arrays, names: Iterable[str], shown: Iterable[int], digits: int) -> Table:
    """Return a table of mean errors and their standard deviation after some numbers of updates."""
    shown, rows = list(shown), Rows()
    for name in names:
        found = [error_at(arrays, name, updates) for updates in shown]
        cells = [None if e is None else f"{e.mean():.{digits}f} ({e.std(ddof=1):.{digits}f})" for e in found]
        rows.add(name, *cells)
    return Table(title, ("method", *(f"{updates:,} updates" for updates in shown)), rows)


def draw_courses(
    axes: Axes, arrays: Arrays, looks: Mapping[str, tuple[str, str]], what: str, band: bool = False
) -> None:
    """Draw mean errors against "updates" or "seconds", with the range of chains if ``band`` is true."""
    for name, (color, dashes) in looks.items():
        x, y = arrays[f"{name}: {what}"], arrays[f"{name}: errors"]
        at = x if what == "updates" else x.mean(axis=0)
        if band:
            axes.fill_between(at, y.min(axis=0), y.max(axis=0), color=color, alpha=0.15, lw=0)
        axes.plot(at, y.mean(axis=0), ls=dashes, color=color, lw=1.5, label=name)
    axes.set_xscale("log")
