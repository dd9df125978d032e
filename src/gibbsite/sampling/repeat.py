"""Many short runs: the same steps from many starts, at a cost that does not depend on the size of the model.

A run touches the sites it visits and reads their neighbours. Only these are set before it and read after it,
so that a run of 16 steps on a million sites costs 16 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import gibbsite.sampling.sweep  # noqa: F401  (the visit site by site)
from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import compiled_loop, inlined
from gibbsite._numba.random.generators import load, store
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.kernels.base import Buffer, Kernel, Span, Team, alone, sites_of, visit
from gibbsite.sampling.tape import probability
from gibbsite.scans.base import Scan, period, refresh

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

_PART = 1 << 22  # states that are set by one call, at most
_FEWEST_RUNS = 256  # by a call, so that there is work for several threads; large models take longer to set up


class Sums(NamedTuple):
    """Sums over runs of the conditional probabilities of target cells, and of their squares."""

    cell: Ints
    site: Ints32
    code: Ints32
    total: Floats
    square: Floats


@inlined
def _expect_start(sums: Sums, binary: bool, x: Array, cond: Floats) -> None:
    """Let the conditional of a target be its start state, which is right if it is never visited."""
    for k in range(sums.cell.size):
        if binary:
            cond[sums.cell[k]] = np.inf if x[sums.site[k]] else -np.inf
        else:
            cond[sums.cell[k]] = 1.0 if x[sums.site[k]] == sums.code[k] else 0.0


@compiled_loop
def _repeat(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    memory: Any,
    x: Array,
    order: Ints32,
    cond: Floats,
    sites: Ints32,
    rows: Array,
    steps: int,
    words: Words64,
    binary: bool,
    sums: Sums,
    team: Team,
) -> None:
    """Start a run from each row of states of ``sites``, and leave there where it ends."""
    rng = load(words)
    cycle = np.uintp(period(schedule))
    keep = sums.cell.size > 0
    for r in range(rows.shape[0]):
        for k in range(sites.size):
            x[sites[k]] = rows[r, k]
        _expect_start(sums, binary, x, cond)
        left, turn = np.uintp(steps), np.int64(0)
        while left > 0:
            rng = refresh(schedule, order, rng)
            stop = min(left, cycle)
            span = Span(order, np.uintp(0), stop, turn, team)
            rng = visit(parameters, arrays, schedule, memory, x, span, rng, cond, keep)
            left -= stop
            turn += 1
        for k in range(sites.size):
            rows[r, k] = x[sites[k]]
        for k in range(sums.cell.size):
            value = cond[sums.cell[k]]
            p = probability(value) if binary else value
            sums.total[k] += p
            sums.square[k] += p * p
    store(words, rng)


@dataclass(frozen=True, eq=False)
class ShortRun:
    """A number of steps of a scan, to be made again and again.

    Attributes
    ----------
    graph : Graph
        The compiled model.
    kernel : Kernel
        What makes the steps.
    schedule : NamedTuple
        The visits.
    steps, buffer : int
        Number of steps, and of entries of the order of a random schedule.
    sites : array of int
        Sites whose states matter: those visited, those that are asked for, and their neighbours.
    targets : array of int
        Sites whose conditionals are summed up.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.potts_grid((100, 100), states=3, coupling=0.2)
    >>> run = make_short_run(model, gs.graphs.compile_graph(model), gs.Gibbs(), gs.scans.FixedOrder([1, 0]), 2)
    >>> run.sites.tolist()
    [0, 1, 2, 100, 101]
    """

    graph: Graph
    kernel: Kernel
    schedule: NamedTuple
    steps: int
    buffer: Ints32
    sites: Ints32
    targets: Ints32

    @property
    def part(self) -> int:
        """Number of runs to make with one stream; it depends on nothing but numbers of sites."""
        return max(1, min(max(_FEWEST_RUNS, self.graph.n_sites // 256), _PART // max(self.sites.size, 1)))

    def draw_starts(self, runs: int, entropy: int, part: int) -> Array:
        """Return uniformly random states of the sites that matter, a row for each run of a part."""
        sequence = np.random.SeedSequence(entropy, spawn_key=(part, 1))
        rng, cards = np.random.Generator(np.random.PCG64(sequence)), self.graph.cards[self.sites]
        drawn: Array = rng.integers(0, cards, (runs, cards.size), dtype=self.graph.state_dtype)
        return drawn

    def make(self, rows: Array, words: Words64, x: Array | None = None) -> Sums:
        """Make a run from each row of start states, which end states replace; ``x`` are all other states."""
        graph = self.graph
        state = np.zeros(graph.n_sites, graph.state_dtype) if x is None else x.astype(graph.state_dtype)
        sums = self._nothing()
        _repeat(
            self.kernel.parameters(graph),
            graph.arrays,
            self.schedule,
            self._memory(),
            state,
            self.buffer.copy(),
            np.zeros(graph.n_cells if self.targets.size else 0),
            self.sites,
            rows,
            self.steps,
            np.array(words, np.uint64),
            graph.binary,
            sums,
            alone(),
        )
        return sums

    def _memory(self) -> NamedTuple:
        """Return scratch space; what a chain would remember does not pay in a few steps."""
        if self.graph.units is None:
            return Buffer(np.zeros(int(self.graph.cards.max(initial=1))))
        return self.kernel.memory(self.graph, np.zeros(4, np.uint64))

    def _nothing(self) -> Sums:
        states = np.ones_like(self.targets) if self.graph.binary else self.graph.cards[self.targets]
        site = np.repeat(self.targets, states)
        code = np.arange(site.size) - np.repeat(np.cumsum(states) - states, states)
        cell = site.astype(np.int64) if self.graph.binary else self.graph.offset[site] + code
        return Sums(cell, site, code.astype(np.int32), np.zeros(site.size), np.zeros(site.size))


def make_short_run(
    model: FactorGraph,
    graph: Graph,
    kernel: Kernel,
    scan: Scan,
    steps: int,
    targets: Ints32 | None = None,
    everywhere: bool = False,
) -> ShortRun:
    """Prepare short runs of a scan from its first visit on.

    ``everywhere`` makes all sites matter, in their order; otherwise as few as possible do.
    """
    schedule, buffer = scan.schedule(graph, model), scan.buffer(graph)
    if scan.independent:
        buffer = buffer[: max(steps, 1)]  # sites are drawn one by one: no more of them than steps
    wanted = np.zeros(0, np.int32) if targets is None else targets
    everywhere = everywhere or scan.random
    visited: Ints32 = wanted if scan.random else np.unique(scan.visits(graph, model)[:steps])
    if graph.units is not None:
        blocks = [sites_of(kernel, graph, unit) for unit in visited.tolist()]
        visited = np.unique(np.concatenate(blocks)).astype(np.int32)
    sites = np.arange(graph.n_sites, dtype=np.int32)
    if not everywhere and visited.size < graph.n_sites:
        sites = _with_neighbours(graph, np.union1d(visited, wanted).astype(np.int32))
    return ShortRun(graph, kernel, schedule, steps, buffer, sites, wanted)


def _with_neighbours(graph: Graph, sites: Ints32) -> Ints32:
    """Return sites and their neighbours; on a lattice perhaps a few more, without a look at all sites."""
    arrays = graph.arrays
    if isinstance(arrays, LatticeGraph):
        row, plane = arrays.size_2, arrays.size_1 * arrays.size_2
        around = np.array([1, row - 1, row, plane - row, plane, (arrays.size_0 - 1) * plane])
        near = (sites.astype(np.int64)[:, None] + np.concatenate([-around, around])).ravel()
        return np.union1d(sites, near[(near >= 0) & (near < graph.n_sites)]).astype(np.int32)
    start, neighbour = markov_graph(graph)
    ends = zip(start[sites].tolist(), start[sites.astype(np.int64) + 1].tolist(), strict=True)
    return np.unique(np.concatenate([sites, *(neighbour[a:b] for a, b in ends)])).astype(np.int32)
