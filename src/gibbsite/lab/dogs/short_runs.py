"""Independent short runs: the same few steps over and over, each time from the same start.

The law of a chain after T steps is seen from many chains that are stopped there. Only sites that a scan visits differ
from the start, so only these are put back: a run of 16 steps among a million sites costs 16 steps.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Ints, Ints16
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.kernels.base import Team, alone, visit
from gibbsite.sampling.sweep import State, start_chain
from gibbsite.scans.base import period, refresh

_THREADS, _PARTS = 2, 8  # parts have their own random numbers, so that threads change nothing


@compiled_loop
def _start_over(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    state: State,
    team: Team,
    start: Array,
    visited: Ints,
    lengths: Ints,
    sites: Ints,
    out: Ints16,
) -> None:
    """Fill ``out`` (lengths, chains, sites); each chain is one run that is looked at after each length."""
    x, order, memory = state.x, state.order, state.memory
    rng, cycle = load(state.rng), np.uintp(period(schedule))
    for c in range(out.shape[1]):
        for i in visited:
            x[i] = start[i]
        where, done = np.uintp(0), 0
        for k in range(lengths.size):
            left = np.uintp(lengths[k] - done)
            while left > 0:
                if where == 0:
                    rng = refresh(schedule, order, rng)
                stop = min(where + left, cycle)
                rng = visit(
                    parameters, arrays, schedule, memory, x, order, where, stop, 0, rng, state.cond, False, team
                )
                left -= stop - where
                where = stop if stop < cycle else np.uintp(0)
            done = lengths[k]
            for s in range(sites.size):
                out[k, c, s] = x[sites[s]]
    store(state.rng, rng)


def run_short(
    model: gs.FactorGraph, scan: gs.scans.Scan, lengths: Ints, sites: Ints, *, chains: int, start: Array, rng: int
) -> Ints16:
    """Return the states of some sites after each number of steps, in many independent chains.

    ``model``, ``scan``: what to run, by the heat bath; ``lengths``: numbers of steps, increasing; ``sites``: the
    sites looked at; ``start``: where all chains start. The state codes have the shape (lengths, chains, sites).
    """
    graph, kernel = gs.graphs.compile_graph(model), gs.Gibbs()
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, model)
    moving = np.ones(graph.n_sites, bool)
    moving[scan.left_out(graph, model)] = False
    visited = np.flatnonzero(moving)
    x0 = np.asarray(start, graph.state_dtype)
    out = np.empty((lengths.size, chains, sites.size), np.int16)
    bounds = np.linspace(0, chains, _PARTS + 1).round().astype(int)

    def make(part: int) -> None:
        state = start_chain(graph, kernel, scan, x0, stream(rng, part), False)
        mine = out[:, bounds[part] : bounds[part + 1]]
        _start_over(parameters, graph.arrays, schedule, state, alone(), x0, visited, lengths, sites, mine)

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(make, range(_PARTS)))
    return out
