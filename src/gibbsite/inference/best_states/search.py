"""The search for a most probable state: independent chains are annealed repeatedly.

Chains move by single sites (:class:`gibbsite.AnnealedGibbs`) or, on sparse models, by blocks of bounded width, and
where there are zeros, by cutsets with all other sites summed out. All of these are tried, and most of the work goes to
those that improved the best states last. Schedules become longer with the number of restarts. :mod:`.searcher` is a
single chain.

If several chains arrive at the same log-potential, it is probably the largest, but this is no proof.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Bools, Floats
from gibbsite._numba.jit import announcing
from gibbsite.graphs.support.start import start_states
from gibbsite.inference.best_states.found import RankedState, SearchResult
from gibbsite.inference.best_states.moves import MOST_COVERS, MOST_CUTSETS, find_cutset_moves
from gibbsite.inference.best_states.saving import load_search, pack_search
from gibbsite.inference.best_states.searcher import BLOCKS, CUTSETS, ROUNDING, SINGLE, Searcher, Task, clock
from gibbsite.sampling.checkpoint import Checkpoint, hold_checkpoint, read_checkpoint, save_checkpoint
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.plan import as_data, describe_scan, package_version, read_entropy
from gibbsite.sampling.progress import Status, catch_interrupt, choose_progress
from gibbsite.sampling.setup import read_length
from gibbsite.scans.base import Scan

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

_FIRST = {SINGLE: 32, BLOCKS: 8, CUTSETS: 8}  # sweeps of the first schedule
_LONGEST = {SINGLE: 1 << 13, BLOCKS: 1 << 9, CUTSETS: 1 << 6}
_AT_A_LENGTH = {SINGLE: 8, BLOCKS: 8, CUTSETS: 128}  # restarts before schedules get twice as long
_ROUNDS_PER_COVER = {BLOCKS: 6, CUTSETS: 3}  # restarts before another cover, or cutset, is found
_SHARE = {SINGLE: 1.0, BLOCKS: 1.0, CUTSETS: 8.0}  # share of each kind in the work, to which _BETTER is added
_BETTER = 1.5  # for each chain whose last improvement came from these moves
_ALL_CHAINS = 16  # if time is limited, one in 16 restarts by cutsets is made by all chains
_BEFORE_CUTSETS = 2  # rounds of blocks before cutsets are looked for, which take seconds to compile,
_AGREED = 64  # and the number of rounds if all chains agree
_SURE = 24  # restarts that ended at the best log-potential, after which a search without a budget ends


class _Turns:
    """The choice of the next moves (single sites, blocks or cutsets) and of their number of sweeps."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.kinds = [SINGLE]
        if task.blocks is not None:
            self.kinds.append(BLOCKS)
        self.cuts = False  # whether cutsets have been looked for
        self.rounds = dict.fromkeys(self.kinds, 0)
        self.work = dict.fromkeys(self.kinds, 0.0)

    def choose(self, searchers: list[Searcher]) -> str:
        """Return the moves of the next restart; covers and cutsets are found when they are first needed."""
        share = {kind: _SHARE[kind] for kind in self.kinds}
        for one in searchers:
            share[one.gained] += _BETTER
        untried = [kind for kind in self.kinds if not self.rounds[kind]]
        kind = untried[0] if untried else min(self.kinds, key=lambda kind: self.work[kind] / share[kind])
        if kind != SINGLE:
            covers, cutsets = self.counts()
            self.provide(max(covers, 2), cutsets)  # climbs need covers, too
            wanted = 2 + self.rounds[kind] // _ROUNDS_PER_COVER[kind]
            if kind == BLOCKS:
                self.provide(min(wanted, MOST_COVERS, max(covers, 1) + 1), cutsets)
            else:
                self.provide(covers, min(wanted, MOST_CUTSETS, cutsets + 1))
        return kind

    def need_cutsets(self, searchers: list[Searcher]) -> bool:
        """Whether to look for cutsets, because cheaper moves have led chains to different ends."""
        rounds = self.rounds.get(BLOCKS, 0)
        if self.cuts or rounds < _BEFORE_CUTSETS:
            return False
        values = np.array([one.value for one in searchers])
        return rounds >= _AGREED or not bool(_reach(values, float(values.max())).all())

    def look_for_cutsets(self) -> None:
        """Find the first cutset, if the model has a useful one, and compile the code that draws it."""
        self.cuts = True
        self.task.cutsets = find_cutset_moves(self.task.blocks)
        if self.task.cutsets is not None:
            self.kinds.append(CUTSETS)
            self.rounds.setdefault(CUTSETS, 0)
            self.work.setdefault(CUTSETS, 0.0)

    def movers(self, kind: str, searchers: list[Searcher]) -> list[Searcher]:
        """Return the chains that restart: all of them, or for most restarts by cutsets only the best one.

        Restarts by cutsets take long. All chains make some of them, to show whether they arrive at the same state
        independently.
        """
        ahead = max(searchers, key=lambda one: one.value)
        if kind != CUTSETS or ahead.value == -math.inf or self.rounds[kind] % _ALL_CHAINS == 0:
            return searchers
        return [ahead]

    def counts(self) -> tuple[int, int]:
        """Return the numbers of covers and cutsets found."""
        blocks, cutsets = self.task.blocks, self.task.cutsets
        return 0 if blocks is None else len(blocks.covers), 0 if cutsets is None else len(cutsets.cutsets)

    def provide(self, covers: int, cutsets: int) -> None:
        """Find covers and cutsets up to these numbers."""
        while self.task.blocks is not None and len(self.task.blocks.covers) < covers:
            self.task.blocks.add_cover()
        if cutsets and not self.cuts:
            self.look_for_cutsets()
        while self.task.cutsets is not None and len(self.task.cutsets.cutsets) < cutsets:
            self.task.cutsets.add()

    def length(self, kind: str) -> int:
        """Return the sweeps of the next schedule."""
        return min(_FIRST[kind] << min(self.rounds[kind] // _AT_A_LENGTH[kind], 20), _LONGEST[kind])

    def count(self, kind: str, sweeps: int, part: float) -> None:
        """Count a restart of a part of the chains."""
        self.rounds[kind] += 1
        self.work[kind] += part * sweeps * self.task.work_of(kind)


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
    checkpoint: str | Path | Checkpoint | None = None,
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
    checkpoint : path or Checkpoint, optional
        As in :func:`gibbsite.sample`: a search that is resumed continues as if it had not been stopped.
    until_sure : bool
        End before the budget does when all chains and many restarts have ended at the same log-potential.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = search_best(gs.ising_grid((8, 8), coupling=0.5, field=0.1), sweeps=200, rng=1, progress=False)
    >>> set(found.assignment.values()), found.found
    ({1}, 4)
    """
    sweeps = None if sweeps is None else check_integer("sweeps", sweeps, 1)
    budget = read_length(sweeps, seconds, 0).budget(model.n_sites)
    limit = math.inf if budget.draws is None or (sweeps is None and seconds is not None) else budget.draws
    best, chains, threads = (check_integer("best", best, 1), check_integer("chains", chains, 1), read_threads(threads))
    entropy, show = read_entropy(rng), choose_progress(progress)
    saving = read_checkpoint(checkpoint)
    path = None if saving is None else Path(saving.path)
    with hold_checkpoint(saving):
        with announcing(show.say, "the search"):
            task = Task(model, scan)
            starts = start_states(model, task.graph, chains, start, entropy)
            given = start is not None
            searchers = [Searcher(task, c, entropy, x, given, max(best, 8)) for c, x in enumerate(starts)]
            searchers[0].compile()
            for one in searchers:
                one.pace[SINGLE] = searchers[0].pace[SINGLE]
        turns = _Turns(task)
        plan = {
            "gibbsite": package_version(),
            "model": task.graph.digest,
            "kernel": {"name": "AnnealedGibbs", "hot": task.range.hot, "cold": task.range.cold},
            "scan": describe_scan(task.scan),
            "chains": chains,
            "entropy": entropy,
            "start": None if start is None else str(as_data(start)),
        }
        done, before = 0, 0.0
        if path is not None and saving is not None and saving.resume and path.exists():
            done, before = load_search(path, plan, searchers, turns)
        begun = saved = clock()
        interrupted, packed = False, pack_search(searchers, turns, done, before)
        try:
            with Threads(threads) as executor, catch_interrupt(show.say) as interrupt:

                def over() -> bool:
                    return bool(interrupt.up) or before + clock() - begun >= budget.seconds

                while model.n_sites and done < limit and not (any(turns.rounds.values()) and over()):
                    if turns.need_cutsets(searchers):
                        paused = clock()
                        with announcing(show.say, "the search"):
                            turns.look_for_cutsets()
                        begun += clock() - paused
                    kind = turns.choose(searchers)
                    length = turns.length(kind)
                    if limit - done < 2 * length:
                        length = int(limit - done)
                    movers = searchers if limit < math.inf else turns.movers(kind, searchers)
                    rows = -(-len(movers) // threads)
                    left = budget.seconds - before - (clock() - begun)
                    pace = rows * max(searcher.pace[kind] for searcher in movers)
                    if left < 1.5 * length * pace:
                        length = max(int(left / pace), 1)
                    if path is not None:
                        packed = pack_search(searchers, turns, done, before + clock() - begun)
                        assert saving is not None
                        if clock() - saved >= saving.every:
                            save_checkpoint(path, plan, packed[0], [], packed[1])
                            saved = clock()
                    made = executor.map(partial(Searcher.restart, kind=kind, sweeps=length, over=over), movers)
                    done += max(made)
                    turns.count(kind, max(made), len(movers) / chains)
                    seconds_now = before + clock() - begun
                    total = 0 if math.isinf(limit) else int(limit)
                    show.show(Status("searching", done, total, seconds_now, budget.seconds, chains))
                    if until_sure and _is_sure(searchers):
                        break
                interrupted = bool(interrupt.up)
                if path is not None and not interrupted:
                    packed = pack_search(searchers, turns, done, before + clock() - begun)
                if path is not None:  # an interrupted restart is repeated from its beginning
                    save_checkpoint(path, plan, packed[0], [], packed[1])
        finally:
            show.close()
        seconds_taken = before + clock() - begun
        return _conclude(task, searchers, best, done, interrupted, seconds_taken, plan)


def _reach(values: Floats, top: float) -> Bools:
    """Return which log-potentials are at least ``top``, up to rounding."""
    return np.asarray(values >= top - ROUNDING * (1.0 + abs(top)))


def _is_close(values: Floats, other: float) -> Bools:
    return np.asarray(np.abs(values - other) <= ROUNDING * (1.0 + abs(other)))


def _is_sure(searchers: list[Searcher]) -> bool:
    """Whether all chains agree, and many restarts have ended at the same log-potential independently."""
    values = np.array([max(one.seen.values()) for one in searchers])
    top = float(values.max())
    ends = np.concatenate([one.ends for one in searchers])
    return bool(_reach(values, top).all() and _reach(ends, top).sum() >= _SURE)


def _conclude(
    task: Task,
    searchers: list[Searcher],
    best: int,
    sweeps: int,
    interrupted: bool,
    seconds: float,
    plan: dict[str, Any],
) -> SearchResult:
    """Combine and compare the best states of the chains."""
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
    top_chains = [one for one in searchers if _is_close(np.array(one.tie_value), highest)]
    ties = {key for one in top_chains for key in one.ties}
    return SearchResult(
        model=task.model,
        codes=codes,
        ranked=tuple(ranked),
        bests=bests + offset,
        found=int(_reach(bests, highest).sum()),
        restarts=len(ends),
        hits=int(_reach(ends, highest).sum()),
        sweeps=sweeps,
        ties=len(ties),
        ties_complete=not any(one.full for one in searchers),
        interrupted=interrupted,
        seconds=seconds,
        plan=plan,
    )
