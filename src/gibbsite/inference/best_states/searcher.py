"""One chain of a search, which is cooled down repeatedly and keeps the best state that it has seen.

A restart cools the chain down from a random state or, every other time, from the best state warmed up to a random
temperature; then the chain climbs. It moves by single sites, by blocks, or by the sites of cutsets with all others
summed out (:mod:`.moves`). The end is recombined with the best state by partition crossover: each connected part where
the two differ is taken from the better one (:func:`gibbsite.kernels.gibbs.uphill.recombine`). Zeros have a finite price
during cooling, so that a chain may cross impossible states; the price rises if it ended in one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Words32
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.distance import DistanceGraph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import build_rows
from gibbsite.graphs.support.possible import has_zeros
from gibbsite.inference.best_states.moves import BlockMoves, CutsetMoves, find_block_moves
from gibbsite.kernels.blocks.filtering import BlockWorkspace
from gibbsite.kernels.blocks.message_tables import CutWorkspace
from gibbsite.kernels.gibbs.annealed import AnnealedGibbs, AnnealedParameters
from gibbsite.kernels.gibbs.temperature import TemperatureRange, temperature_range
from gibbsite.kernels.gibbs.uphill import Neighbourhood, go_uphill, recombine
from gibbsite.kernels.protocols import Stateful
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.setup import lay_out_plainly
from gibbsite.scans.base import Scan

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.sampling.sweep import State

_BLOCK_SECONDS = 0.15  # between two checks of the time
_LEAST_WARMTH = 0.2  # range of warmed-up states: from here to 1 on the logarithmic scale from cold to hot
_BLOCK_WARMTH = (0.4, 0.8)  # first temperatures of blocks, on the same scale
_BLOCK_COLD = 2.0  # last temperature of blocks, in units of the lowest temperature of single sites
# First and last temperature of cutsets, in units of the highest temperature of single sites.
_CUTSET_RANGE = 0.3, 0.09
_CUTSET_WARMTH = (0.3, 1.0)  # first temperatures of a restart, on the logarithmic scale between these two
_RETURN = 8  # one in 8 restarts by cutsets begins at the best state, the others at the end of the last draws
_PRICE = 3.0  # first price of a zero, in units of steep differences of log-weights
_DEARER, _CHEAPER = 1.5, 1.1  # factors by which a price is multiplied or divided after a restart
_FORBIDDING = 1e4  # price of a zero when states are compared
_MOST_TIES, _MOST_TIE_BYTES = 1 << 12, 1 << 25  # limits on the number and size of best states that a searcher stores
_MANY, _STRONGEST = 12, 3  # neighbours of a spin: if there are more than 12 on average, the 3 strongest are kept
_CLOCK = [time.monotonic]
#: How a restart moves: by single sites, by blocks, or by the sites of cutsets.
SINGLE, BLOCKS, CUTSETS = "single", "blocks", "cutsets"
ROUNDING = 1e-9  # log-potentials that differ by less, relative to their size, are equal


def clock() -> float:
    """Return the time in seconds; benchmarks on shared machines replace it by processor time."""
    return _CLOCK[0]()


class Task:
    """The data that all chains of a search share."""

    def __init__(self, model: FactorGraph, scan: Scan | None) -> None:
        self.model = model
        self.setup = lay_out_plainly(model, AnnealedGibbs("exponential"), scan)
        self.kernel, self.scan, self.graph = self.setup.kernel, self.setup.scan, self.setup.graph
        self.range: TemperatureRange = temperature_range(self.graph)
        self.zeros = bool(self.graph.n_sites) and has_zeros(self.graph)
        self.firm = self.priced(_FORBIDDING * self.range.steep)
        dense = isinstance(
            self.graph.arrays, DistanceGraph
        )  # every site depends on every other, so there is only one part
        self.rows = None if dense else _strongest(self.graph)
        self.blocks: BlockMoves | None = find_block_moves(self.graph, _FORBIDDING * self.range.steep)
        self.cutsets: CutsetMoves | None = None

    def work_of(self, kind: str) -> float:
        """Return the predicted time of a sweep in nanoseconds, which depends on the model alone."""
        n = self.graph.n_sites
        if kind == CUTSETS:
            assert self.cutsets is not None
            return self.cutsets.work
        if kind == BLOCKS:
            assert self.blocks is not None
            covers = self.blocks.covers
            return 200.0 * n + 10.0 * sum(cover.entries for cover in covers) / max(len(covers), 1)
        links = 0 if self.rows is None else self.rows[1].size
        return (10.0 if self.graph.binary else 50.0) * n + 2.0 * links

    def priced(self, price: float) -> Any:
        """Return the arrays of the graph with zeros replaced by a finite price."""
        arrays = self.graph.arrays
        if not self.zeros:
            return arrays
        changed = {}
        for name in ("log_unary", "log_value"):
            if hasattr(arrays, name):
                changed[name] = np.maximum(getattr(arrays, name), -price)
                changed[name].setflags(write=False)
        return arrays._replace(**changed)

    def work(self) -> Floats:
        """Return scratch space for the weights of a site."""
        return np.zeros(max(int(self.graph.cards.max(initial=1)), 2))


def _strongest(graph: Graph) -> tuple[Words32, Words32]:
    """Return rows of neighbours; if spins have very many, only those with the strongest couplings."""
    start, neighbour = markov_graph(graph)
    arrays = graph.arrays
    if not isinstance(arrays, IsingGraph) or neighbour.size <= _MANY * graph.n_sites:
        return start, neighbour
    site = np.repeat(np.arange(graph.n_sites), start[1:].astype(np.int64) - start[:-1])
    order = np.lexsort((-np.abs(arrays.coupling), site))
    rank = np.arange(order.size) - start[site[order]]
    kept = order[rank < _STRONGEST]
    low, high = np.minimum(site[kept], neighbour[kept]), np.maximum(site[kept], neighbour[kept])
    pairs = np.unique(np.stack([low, high], axis=1), axis=0)
    rows = build_rows(pairs.astype(np.int32), graph.n_sites)
    return rows.start, rows.neighbour


class Searcher:
    """One chain: its random numbers, the best state, and local maxima it has seen."""

    def __init__(self, task: Task, number: int, entropy: int, start: Array, given: bool, keep: int) -> None:
        self.task, self.given, self.keep = task, given, keep
        graph = task.graph
        self.rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(number, 2)))
        self.driver = Driver(replace(task.setup, starts=(start,), entropy=entropy), first=number)
        self.work = task.work()
        self.near: Neighbourhood | None = None
        if task.rows is not None:
            n = graph.n_sites
            self.near = Neighbourhood(*task.rows, np.zeros(max(n, 1), np.int64), np.zeros(n, np.bool_))
        self.price = _PRICE * task.range.steep
        self.driver.arrays = [task.priced(self.price)]
        self.seen: dict[bytes, float] = {}
        self.ends: list[float] = []
        self.gained = SINGLE  # moves that last improved the best state
        self.ties: set[bytes] = set()
        self.tie_value = -math.inf
        self.works: list[BlockWorkspace] = []
        self.cut_works: list[CutWorkspace] = []
        self.best = np.array(start, graph.state_dtype)
        self.value = -math.inf
        self.last, self.moved = self.best.copy(), False  # the last state of block draws within the support
        if task.zeros or given or not graph.n_sites:  # otherwise every state is possible
            self.value = go_uphill(task.firm, self.best, self.work)
            self.note(self.best)
        # seconds per sweep; that of single sites is set before any restart
        self.pace = {SINGLE: math.nan, BLOCKS: 1e-9, CUTSETS: 1e-9}

    @property
    def state(self) -> State:
        """The state of the chain."""
        return self.driver.states[0]

    def compile(self) -> None:
        """Compile or load what a restart calls, except for hill climbing, so that it does not count as its time."""
        self.driver.parameters = AnnealedParameters(np.ones(1), self.task.graph.n_sites)
        self.driver.advance(0)
        began = clock()
        self.driver.advance(1)
        self.pace[SINGLE] = max(clock() - began, 1e-9)
        if self.near is not None:
            recombine(self.task.firm, self.near, self.best, self.best.copy(), self.work)

    def restart(self, kind: str, sweeps: int, over: Callable[[], bool]) -> int:
        """Cool down once, over a number of sweeps or until time is over; return the sweeps made."""
        state, n = self.state, self.task.graph.n_sites
        hot, cold, _ = self.task.range
        from_best = len(self.ends) % (_RETURN if kind == CUTSETS else 2) == 1
        if not from_best and (self.ends or not self.given):
            state.x[:] = self.rng.integers(0, self.task.graph.cards, dtype=state.x.dtype)
            fresh = True
        else:
            state.x[:] = self.best
            hot, fresh = cold * (hot / cold) ** self.rng.uniform(_LEAST_WARMTH, 1.0), False
        if kind != SINGLE:
            first, last = self._block_temperatures(kind)
            return self._cool_blocks(kind, 1.0 / np.geomspace(first, last, sweeps), fresh, over)
        inverse = 1.0 / np.geomspace(hot, cold, sweeps)
        if isinstance(self.task.kernel, Stateful):
            self.task.kernel.forget(state.memory)
        state.memory.clock[:] = 0
        self.driver.parameters = AnnealedParameters(inverse, n)  # temperatures fall
        done = 0
        while done < sweeps and not over():
            block = min(int(max(_BLOCK_SECONDS / self.pace[SINGLE], 1.0)), sweeps - done)
            began = clock()
            self.driver.advance(block)
            self.pace[SINGLE] = max((clock() - began) / block, 1e-9)
            done += block
        self.finish(SINGLE, state.x.copy())
        return done

    def _cool_blocks(self, kind: str, inverse: Floats, fresh: bool, over: Callable[[], bool]) -> int:
        """Draw covers or cutsets at falling temperatures, then climb.

        From a possible state zeros stay zeros; from any other state they have a price.
        """
        blocks, x = self.task.blocks, self.state.x
        assert blocks is not None
        self._make_room()
        if fresh and self.task.zeros and self.tie_value > -math.inf:  # continue where the last draws ended
            x[:] = self.last if self.moved else self.best
            fresh = False
        price = self.price if self.task.zeros and fresh else math.inf
        done, began = 0, clock()
        for level in inverse:
            if done and over():
                break
            self._draw_once(kind, blocks.cooled(level, price), level, price)
            done += 1
        self.last[:], self.moved = x, self.moved or not fresh
        end = x.copy()
        blocks.climb(end, self.works)
        self.pace[kind] = max((clock() - began) / done, 1e-9)
        self.finish(kind, end)
        return done

    def _block_temperatures(self, kind: str) -> tuple[float, float]:
        """Return the first and last temperature of blocks or cutsets, which freeze later than single sites do."""
        hot, cold, _ = self.task.range
        if kind == BLOCKS:
            cooler = cold * (hot / cold) ** self.rng.uniform(*_BLOCK_WARMTH)
            cold *= _BLOCK_COLD
            return max(cooler, 1.5 * cold), cold
        first, last = (share * hot for share in _CUTSET_RANGE)
        first = last * (first / last) ** self.rng.uniform(*_CUTSET_WARMTH)
        last = max(last, cold)
        return max(first, 1.5 * last), last

    def _make_room(self) -> None:
        """Allocate workspaces for newly found covers and cutsets."""
        blocks, cutsets = self.task.blocks, self.task.cutsets
        assert blocks is not None
        self.works += [blocks.workspace(one) for one in blocks.covers[len(self.works) :]]
        if cutsets is not None:
            self.cut_works += [cutsets.workspace(one) for one in cutsets.cutsets[len(self.cut_works) :]]

    def _draw_once(self, kind: str, arrays: TableGraph, level: float, price: float) -> None:
        """Draw the blocks of a cover, or the sites of a cutset and all others, chosen at random."""
        blocks, cutsets, state = self.task.blocks, self.task.cutsets, self.state
        assert blocks is not None
        works: Any = self.works if kind == BLOCKS else self.cut_works
        turn = int(self.rng.integers(len(works)))
        works[turn].words[:] = state.rng
        if kind == BLOCKS or cutsets is None:
            blocks.draw_cover(blocks.covers[turn], arrays, level, price, works[turn], state.x)
        else:
            cutsets.draw(cutsets.cutsets[turn], arrays, level, price, works[turn], state.x)
        state.rng[:] = works[turn].words

    def finish(self, kind: str, x: Array) -> None:
        """Compare the end of a restart with the best state, and recombine them."""
        task = self.task
        value = go_uphill(task.firm, x, self.work)
        self.ends.append(self.note(x))
        before = self.value
        if task.zeros:
            value = go_uphill(task.firm, x, self.work)
            change = _DEARER if self.ends[-1] == -math.inf else 1.0 / _CHEAPER
            self.price = min(max(self.price * change, task.range.steep), _FORBIDDING * task.range.steep)
            self.driver.arrays = [task.priced(self.price)]
        if value > self.value:
            self.best, x, self.value = x, self.best, value
        self.merge(x)
        if self.value > before + ROUNDING * (1.0 + abs(before)) or before == -math.inf:
            self.gained = kind

    def merge(self, other: Array) -> None:
        """Adopt the better parts of another state or, if sites have two states, of its opposite."""
        if self.near is None:
            return
        others = [other, 1 - other] if self.task.graph.binary else [other]
        gain = 0.0
        for state in others:
            gain += recombine(self.task.firm, self.near, self.best, state, self.work)
        if gain > 0.0:
            if self.task.blocks is not None and self.works:
                self.task.blocks.climb(self.best, self.works)
            self.value = go_uphill(self.task.firm, self.best, self.work)
            self.note(self.best)

    def note(self, x: Array) -> float:
        """Climb in the model itself; store the end if it is possible, and return its log-potential."""
        value = go_uphill(self.task.graph.arrays, x, self.work)
        if value > -math.inf:
            self.seen[x.tobytes()] = value
            self._count(x, value)
        if len(self.seen) > 4 * self.keep:
            top = sorted(self.seen, key=lambda key: (-self.seen[key], key))[: self.keep]
            self.seen = {key: self.seen[key] for key in top}
        return value

    def _count(self, x: Array, value: float) -> None:
        """Keep the distinct states of the largest log-potential."""
        close = ROUNDING * (1.0 + abs(value))
        if value > self.tie_value + close or self.tie_value == -math.inf:
            self.ties.clear()
        elif value < self.tie_value - close:
            return
        self.tie_value = max(value, self.tie_value)
        if not self.full:
            self.ties.add(x.tobytes())

    @property
    def full(self) -> bool:
        """Whether the store of best states is full."""
        return len(self.ties) >= min(_MOST_TIES, _MOST_TIE_BYTES // max(self.best.nbytes, 1) + 1)
