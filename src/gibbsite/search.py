"""The search for a most probable state: annealing, again and again, by independent chains.

Each chain keeps the best state it knows. A restart cools the chain down from a random state, or, every other
time, from that best state warmed up to a random temperature; then it goes uphill. Where the two states
differ, each connected part is taken from the better one (:func:`gibbsite.kernel.gibbs.uphill.recombine`).
Schedules get longer as restarts go on. Zeros are prices while it is hot: a chain may cross what is
impossible, and pays more the next time if it ended there.

That several chains arrive at the same log-potential is what speaks for it; it proves nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import announcing
from gibbsite._random.generators import stream
from gibbsite.graph.color import markov_graph
from gibbsite.graph.compile import compile_graph
from gibbsite.graph.graph import Graph
from gibbsite.graph.kinds.distance import DistanceGraph
from gibbsite.graph.kinds.ising import IsingGraph
from gibbsite.graph.rows import build_rows
from gibbsite.kernel.base import alone
from gibbsite.kernel.gibbs.annealed import AnnealedGibbs, AnnealedParameters
from gibbsite.kernel.gibbs.temperature import TemperatureRange, temperature_range
from gibbsite.kernel.gibbs.uphill import Neighbourhood, go_uphill, recombine
from gibbsite.run.budget import check_integer, read_budget
from gibbsite.run.chain import advance, start_chain
from gibbsite.run.executor import Executor, read_threads
from gibbsite.run.interrupt import catch_interrupt
from gibbsite.run.plan import as_data, package_version, read_entropy, start_text
from gibbsite.run.progress import Status, choose_progress
from gibbsite.run.record import lay_out
from gibbsite.scan.base import Scan
from gibbsite.scan.systematic import Systematic
from gibbsite.support.possible import has_zeros
from gibbsite.support.start import start_states

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph

_FIRST = 32  # sweeps of the first schedule
_AT_A_LENGTH = 8  # restarts before schedules get twice as long
_LONGEST = 1 << 13
_BLOCK_SECONDS = 0.15  # between two looks at the clock
_LEAST_WARMTH = 0.2  # of a warmed-up state: from here to 1 on the logarithmic scale from cold to hot
_PRICE = 3.0  # of a zero at first, in steep differences of log-weights
_DEARER, _CHEAPER = 1.5, 1.1  # what a price is multiplied with, or divided by, after a restart
_FORBIDDING = 1e4  # price of a zero where states are compared
_MANY, _STRONGEST = 12, 3  # neighbours of a spin: more than so many on average are cut down to so many
_ROUNDING = 1e-9  # log-potentials that differ by less, relative to their size, are equal
_SURE = 24  # restarts that ended at the best log-potential, after which a search without a budget ends


@dataclass(frozen=True)
class RankedState:
    """One of the best states.

    Attributes
    ----------
    assignment : dict
        The state by name and label, observed sites included.
    log_potential : float
        Its log-potential.
    found : int or None
        How many chains have seen it, or another state of the same log-potential; None if it was not found by
        chains, but solved for.
    """

    assignment: dict[str, Any]
    log_potential: float
    found: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What a search has found.

    Attributes
    ----------
    model : FactorGraph
        The model.
    codes : int array (states, sites)
        The best states as codes, the best one first; all are local maxima.
    ranked : tuple of RankedState
        The same by name and label.
    bests : float array (chains,)
        Largest log-potential each chain has reached.
    found : int
        How many chains have reached the largest log-potential; 0 if it took parts of several.
    restarts, hits : int
        Restarts of all chains, and how many of them ended at the largest log-potential by themselves.
    sweeps : int
        Sweeps of each chain.
    interrupted : bool
        Ended early by Ctrl-C.
    seconds : float
        Time taken.
    plan : dict
        What decided the numbers, as plain data.
    """

    model: FactorGraph
    codes: NDArray[Any]
    ranked: tuple[RankedState, ...]
    bests: NDArray[np.float64]
    found: int
    restarts: int
    hits: int
    sweeps: int
    interrupted: bool
    seconds: float
    plan: dict[str, Any] = field(default_factory=dict)

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.bests)

    @property
    def best_codes(self) -> NDArray[Any]:
        """State codes of the best state."""
        best: NDArray[Any] = self.codes[0]
        return best

    @property
    def best_state(self) -> dict[str, Any]:
        """The best state by name and label, observed sites included."""
        return self.ranked[0].assignment

    @property
    def log_potential(self) -> float:
        """Log-potential of the best state."""
        return self.ranked[0].log_potential

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the best state cannot be relied upon, one sentence each."""
        if self.found >= 2 or not self.model.n_sites:
            return ()
        who = "one chain" if self.found else "no chain alone, but put together from the states of several,"
        return (
            f"the best state was found by {who} of {self.chains}: there may be better ones; run longer, or "
            "use more chains.",
        )

    def line(self) -> str:
        """Return how often the best state was found."""
        return (
            f"the best state found by {self.found} of {self.chains} chains, at the end of {self.hits:,} of "
            f"{self.restarts:,} restarts"
        )

    def __repr__(self) -> str:
        return f"SearchResult({self.log_potential:.10g}, {self.line()})"


class _Task:
    """What all chains of a search have in common."""

    def __init__(self, model: FactorGraph, scan: Scan | None) -> None:
        self.model = model
        self.kernel = AnnealedGibbs("exponential")
        self.graph: Graph = compile_graph(model)
        self.kernel.check(self.graph)
        self.scan = Systematic() if scan is None else scan
        self.schedule = self.scan.schedule(self.graph, model)
        self.layout = lay_out(model, self.graph, self.kernel, None)
        self.range: TemperatureRange = temperature_range(self.graph)
        self.zeros = bool(self.graph.n_sites) and has_zeros(self.graph)
        self.firm = self.priced(_FORBIDDING * self.range.steep)
        dense = isinstance(self.graph.arrays, DistanceGraph)  # all sites depend on all: there is one part
        self.rows = None if dense else _strongest(self.graph)

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

    def work(self) -> NDArray[np.float64]:
        """Return scratch space for the weights of a site."""
        return np.zeros(max(int(self.graph.cards.max(initial=1)), 2))


def _strongest(graph: Graph) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return rows of neighbours: all of them, or where spins have very many, those coupled the strongest.

    Parts that are joined by weak couplings only are tried one after another then.
    """
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


class _Chain:
    """One searcher: its random numbers, the best state it knows, and local maxima it has seen."""

    def __init__(
        self, task: _Task, number: int, entropy: int, start: NDArray[Any], given: bool, keep: int
    ) -> None:
        self.task, self.given, self.keep = task, given, keep
        graph = task.graph
        self.rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(number, 2)))
        words = stream(entropy, number)
        self.state = start_chain(graph, task.kernel, task.scan, start, words, False)
        self.tape = task.layout.empty_tape(graph)
        self.work = task.work()
        self.near: Neighbourhood | None = None
        if task.rows is not None:
            n = graph.n_sites
            self.near = Neighbourhood(*task.rows, np.zeros(max(n, 1), np.int64), np.zeros(n, np.bool_))
        self.price = _PRICE * task.range.steep
        self.arrays = task.priced(self.price)
        self.seen: dict[bytes, float] = {}
        self.ends: list[float] = []
        self.best = np.array(start, graph.state_dtype)
        self.value = -math.inf
        if task.zeros or given or not graph.n_sites:  # otherwise any state would do, and this is one
            self.value = go_uphill(task.firm, self.best, self.work)
            self.note(self.best)
        self.pace = math.nan  # seconds per sweep, told before the first restart

    def compile(self) -> None:
        """Compile or load what a restart calls, so that it does not count as its time.

        Going uphill has been compiled for the temperatures.
        """
        hot = AnnealedParameters(np.ones(1), self.task.graph.n_sites)
        state = self.state
        advance(hot, self.arrays, self.task.schedule, state, self.tape, 0, 0, False, alone())
        began = time.monotonic()
        sites = self.task.graph.n_sites
        advance(hot, self.arrays, self.task.schedule, state, self.tape, 1, sites, False, alone())
        self.pace = max(time.monotonic() - began, 1e-9)
        if self.near is not None:
            recombine(self.task.firm, self.near, self.best, self.best.copy(), self.work)

    def restart(self, sweeps: int, over: Callable[[], bool]) -> int:
        """Cool down once, over so many sweeps or until it is over; return the sweeps made."""
        task, state, n = self.task, self.state, self.task.graph.n_sites
        hot, cold, _ = task.range
        if len(self.ends) % 2 == 0 and (self.ends or not self.given):
            state.x[:] = self.rng.integers(0, task.graph.cards, dtype=state.x.dtype)
        else:
            state.x[:] = self.best
            hot = cold * (hot / cold) ** self.rng.uniform(_LEAST_WARMTH, 1.0)
        task.kernel.forget(state.memory)
        state.memory.clock[:] = 0
        falling = AnnealedParameters(1.0 / np.geomspace(hot, cold, sweeps), n)
        done = 0
        while done < sweeps and not over():
            block = min(int(max(_BLOCK_SECONDS / self.pace, 1.0)), sweeps - done)
            began = time.monotonic()
            advance(falling, self.arrays, task.schedule, state, self.tape, block, n, False, alone())
            self.pace = max((time.monotonic() - began) / block, 1e-9)
            done += block
        self.finish(state.x.copy())
        return done

    def finish(self, x: NDArray[Any]) -> None:
        """Take in where a restart ended."""
        task = self.task
        value = go_uphill(task.firm, x, self.work)
        self.ends.append(self.note(x))
        if task.zeros:
            value = go_uphill(task.firm, x, self.work)
            change = _DEARER if self.ends[-1] == -math.inf else 1.0 / _CHEAPER
            self.price = min(max(self.price * change, task.range.steep), _FORBIDDING * task.range.steep)
            self.arrays = task.priced(self.price)
        if value > self.value:
            self.best, x, self.value = x, self.best, value
        self.merge(x)

    def merge(self, other: NDArray[Any]) -> None:
        """Take over every part of another state that is better, or of its opposite where states are two."""
        if self.near is None:
            return
        others = [other, 1 - other] if self.task.graph.binary else [other]
        gain = 0.0
        for state in others:
            gain += recombine(self.task.firm, self.near, self.best, state, self.work)
        if gain > 0.0:
            self.value = go_uphill(self.task.firm, self.best, self.work)
            self.note(self.best)

    def note(self, x: NDArray[Any]) -> float:
        """Go uphill in the model itself; remember where that ends, unless it is impossible.

        Returns the log-potential.
        """
        value = go_uphill(self.task.graph.arrays, x, self.work)
        if value > -math.inf:
            self.seen[x.tobytes()] = value
        if len(self.seen) > 4 * self.keep:
            top = sorted(self.seen, key=lambda key: (-self.seen[key], key))[: self.keep]
            self.seen = {key: self.seen[key] for key in top}
        return value


def search_best(
    model: FactorGraph,
    *,
    sweeps: int | None = None,
    seconds: float | None = None,
    best: int = 1,
    chains: int = 4,
    rng: Any = None,
    start: Any = None,
    scan: Scan | None = None,
    threads: int | None = None,
    progress: Any = None,
    until_sure: bool = False,
) -> SearchResult:
    """Look for a most probable state.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    sweeps, seconds : number, optional
        Budget: sweeps of each chain, and the time of all of them together, without that of compiling.
    best : int
        How many of the best states to return: distinct local maxima that were seen, the best one first.
    chains : int
        Independent chains.
    rng, start, scan, threads, progress : optional
        As in :func:`gibbsite.sample`; the same seed and number of sweeps give the same states.
    until_sure : bool
        End before the budget does when all chains and many restarts have ended at the same log-potential.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = search_best(gs.ising_grid((8, 8), coupling=0.5, field=0.1), sweeps=200, rng=1, progress=False)
    >>> set(found.best_state.values()), found.found
    ({1}, 4)
    """
    budget = read_budget(model.n_sites, sweeps, None, seconds, 0, 1)
    limit = math.inf if budget.draws is None or (sweeps is None and seconds is not None) else budget.draws
    best, chains, threads = (
        check_integer("best", best, 1),
        check_integer("chains", chains, 1),
        read_threads(threads),
    )
    entropy, show = read_entropy(rng), choose_progress(progress)
    with announcing(show.say):
        task = _Task(model, scan)
        starts = start_states(model, task.graph, chains, start, entropy)
        given = start is not None
        searchers = [_Chain(task, c, entropy, x, given, max(best, 8)) for c, x in enumerate(starts)]
        searchers[0].compile()
        for one in searchers:
            one.pace = searchers[0].pace
    begun = time.monotonic()
    done, restarts, interrupted = 0, 0, False
    try:
        with Executor(threads) as executor, catch_interrupt(show.say) as interrupt:

            def over() -> bool:
                return bool(interrupt.up) or time.monotonic() - begun >= budget.seconds

            while model.n_sites and done < limit and not (restarts and over()):
                length = min(_FIRST << restarts // _AT_A_LENGTH, _LONGEST)
                if limit - done < 2 * length:
                    length = int(limit - done)
                rows = -(-chains // threads)
                left = budget.seconds - (time.monotonic() - begun)
                pace = rows * max(searcher.pace for searcher in searchers)
                if left < 1.5 * length * pace:
                    length = max(int(left / pace), 1)
                made = executor.map(partial(_Chain.restart, sweeps=length, over=over), searchers)
                done, restarts = done + max(made), restarts + 1
                seconds_now = time.monotonic() - begun
                total = 0 if math.isinf(limit) else int(limit)
                show.show(Status("searching", done, total, seconds_now, budget.seconds, chains))
                if until_sure and _is_sure(searchers):
                    break
            interrupted = bool(interrupt.up)
    finally:
        show.close()
    plan = {
        "gibbsite": package_version(),
        "model": task.graph.digest,
        "kernel": {"name": "AnnealedGibbs", "hot": task.range.hot, "cold": task.range.cold},
        "scan": as_data(task.scan.describe()),
        "chains": chains,
        "entropy": entropy,
        "start": start_text(start),
    }
    seconds_taken = time.monotonic() - begun
    return _conclude(task, searchers, best, done, interrupted, seconds_taken, plan)


def _reach(values: NDArray[np.float64], top: float) -> NDArray[np.bool_]:
    """Tell which log-potentials are at least another one, up to rounding."""
    reached: NDArray[np.bool_] = values >= top - _ROUNDING * (1.0 + abs(top))
    return reached


def _is_close(values: NDArray[np.float64], other: float) -> NDArray[np.bool_]:
    close: NDArray[np.bool_] = np.abs(values - other) <= _ROUNDING * (1.0 + abs(other))
    return close


def _is_sure(searchers: list[_Chain]) -> bool:
    """Whether all chains agree, and many restarts have come to the same by themselves."""
    values = np.array([max(one.seen.values()) for one in searchers])
    top = float(values.max())
    ends = np.concatenate([one.ends for one in searchers])
    return bool(_reach(values, top).all() and _reach(ends, top).sum() >= _SURE)


def _conclude(
    task: _Task,
    searchers: list[_Chain],
    best: int,
    sweeps: int,
    interrupted: bool,
    seconds: float,
    plan: dict[str, Any],
) -> SearchResult:
    """Compare what the chains have found, and put their best states together."""
    offset = task.graph.log_offset
    bests = np.array([max(one.seen.values()) for one in searchers])
    first = searchers[int(np.argmax(bests))]
    levels = [np.array([*one.seen.values()]) for one in searchers]
    for one in searchers:
        first.merge(one.best.copy())
    seen = {key: one.seen[key] for one in searchers for key in one.seen}
    dtype = task.graph.state_dtype
    top = sorted(seen, key=lambda key: (-seen[key], key))[:best]
    codes = np.stack([np.frombuffer(key, dtype) for key in top])
    ranked = []
    for key, x in zip(top, codes, strict=True):
        named = {name: task.model.labels(i)[x[i]] for i, name in enumerate(task.model.sites)}
        value = float(task.model.log_potential(x))
        found = sum(bool(_is_close(own, seen[key]).any()) for own in levels)
        ranked.append(RankedState({**named, **task.model.evidence}, value, found))
    highest = seen[top[0]]
    ends = np.concatenate([np.zeros(0), *(one.ends for one in searchers)])
    return SearchResult(
        model=task.model,
        codes=codes,
        ranked=tuple(ranked),
        bests=bests + offset,
        found=int(_reach(bests, highest).sum()),
        restarts=len(ends),
        hits=int(_reach(ends, highest).sum()),
        sweeps=sweeps,
        interrupted=interrupted,
        seconds=seconds,
        plan=plan,
    )
