"""Drive chains: advance them block by block, record, save and restore.

A driver knows no algorithm. Its caller decides between blocks whether the run continues; the numbers do not depend on
where blocks end. :meth:`Driver.run` makes a whole run of a budget, as a generator that yields after
each block; :meth:`Driver.advance` makes one block.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite._numba.jit import clock
from gibbsite._numba.random.generators import stream
from gibbsite.errors import SamplingError
from gibbsite.kernels.protocols import Adaptive, Fallible, Independent, Replicated
from gibbsite.sampling.executor import Executor, Threads
from gibbsite.sampling.progress import Flag, Status
from gibbsite.sampling.setup import Budget, Setup
from gibbsite.sampling.tape import BATCHES, DRAWS, NEVER, Tape

if TYPE_CHECKING:
    from gibbsite.sampling.sweep import State

_GROWTH = 16  # factor by which a block may have more rounds than the last one
_VERDICT_ROWS = 2  # rows of a tape besides its batches, for the time that a verdict takes
_CHECK_SHARE = 0.75  # share of the reserved time that the dispersed-start check takes
# The time of the verdict is predicted from this many batches, or after this share of the time.
_FORESIGHT_BATCHES, _FORESIGHT_SHARE = 8, 0.25
# Draws before the answer is first examined; of independent draws.
_FIRST_CHECK, _FIRST_INDEPENDENT = 256, 16
# The budget of runs whose length the caller decides.
_ENDLESS = Budget(0, None, 0, 0, math.inf)


@dataclass(frozen=True)
class Recording:
    """The outcome of a run: states and tapes chain by chain, sites in the model's order.

    ``memories`` are the kernel memories of the bundles of chains; they change when the run continues. ``meetings``
    has what the recorders that see all chains together have returned, and ``kept`` the arrays that a replicated kernel
    adds to the result.
    """

    setup: Setup
    states: list[Array]
    tapes: list[Tape]
    warmup: int
    seconds: float
    interrupted: bool
    report: dict[str, float]
    memories: tuple[Any, ...] = ()
    meetings: tuple[Floats, ...] = ()
    kept: dict[str, Array] = field(default_factory=dict)


@dataclass
class Counts:
    """The progress of the chains, which is the same for all of them."""

    warmup: int = 0
    draws: int = 0
    rest_done: int = 0  # steps of the last, shorter round; 0 until it is made


class Driver:
    """The chains of a set-up.

    Parameters
    ----------
    setup : Setup
        What runs.
    executor : Executor, optional
        Where the chains run; on threads of this process by default.
    threads : int
        Threads of this process.
    first : int
        Number of the random stream of the first chain.
    share : int
        If positive, only this many bundles are ever moved at the same time (see :meth:`part`): each bundle
        shares its tape, and scratch memory, with every ``share``-th one.

    Attributes
    ----------
    states, tapes, sizes, arrays : list
        State, tape, number of chains and compiled arrays of each bundle of chains.
    parameters, schedule
        Kernel and scan as compiled code sees them.
    counts : Counts
        The progress of the run.
    """

    def __init__(
        self, setup: Setup, executor: Executor | None = None, *, threads: int = 1, first: int = 0, share: int = 0
    ) -> None:
        self.threads = Threads(threads)
        self.executor: Executor = self.threads if executor is None else executor
        self.adopt(setup)
        self.place(setup.starts, first, share)
        self.tapes: list[Tape] = []
        for k, size in enumerate(self.sizes):
            self.tapes.append(self.tapes[k % share] if share and k >= share else self.layout.tape(size))
        self.counts, self._safe = Counts(), Counts()  # now; when this process last had all states and tapes
        self.meetings: tuple[list[Floats], ...] = ()
        if setup.record.meetings:
            self.meetings = tuple([] for _ in setup.record.meetings)
            for recorder in setup.record.meetings:
                recorder.meet(np.stack(setup.starts), setup.graph.cards)  # refuses bad arguments before any work
        self.begun = clock()
        self.stopped = False  # no more blocks are to be made
        self.checks = False  # whether the answer is examined during the run (:attr:`is_check`)
        self.flag = Flag()  # raised by an interrupt
        self.budget = _ENDLESS if setup.budget is None else setup.budget
        self.timed = math.isfinite(self.budget.seconds)
        self.reserve = 0.0  # seconds for the verdict, at least
        self._row_seconds = 0.0  # time of the verdict for each row of a tape
        self._next_foresight = _FORESIGHT_BATCHES
        self._pace = math.nan  # seconds per step of all chains
        self._rounds = 1  # of the last block

    # ---- chains

    def place(self, starts: Sequence[Array], first: int, share: int = 0) -> None:
        """Put the chains at their starts; their streams of random numbers are numbered from ``first``."""
        layout, entropy = self.layout, self.setup.entropy
        self.sizes: list[int] = []
        self.states: list[State] = []
        self.arrays: list[Any] = []
        for a in range(0, len(starts), layout.width):
            some = list(starts[a : a + layout.width])
            streams = list(map(partial(stream, entropy), range(first + a, first + a + len(some))))
            state = layout.start(some, streams)
            if share and len(self.states) >= share and getattr(state.memory, "rebuildable", False):
                state = state._replace(memory=self.states[len(self.states) % share].memory)
            self.states.append(state)
            self.sizes.append(len(some))
            self.arrays.append(layout.arrays(len(some)))

    def adopt(self, setup: Setup) -> None:
        """Use a set-up, or replace the present one by another of the same layout, for example with other weights."""
        kernel, record = setup.kernel, setup.record
        self.setup, self.layout = setup, setup.layout
        self.parameters, self.schedule = setup.parameters, setup.schedule
        self._grows = bool(record.open or record.energy or record.draw_sites.size)
        self._inspects = bool(record.open) or isinstance(kernel, Fallible)

    def part(self, bundles: Sequence[int]) -> Driver:
        """Return a driver of some of the bundles, which moves the same states and writes to the same tapes."""
        found = copy.copy(self)
        for name in ("states", "tapes", "sizes", "arrays"):
            setattr(found, name, [getattr(self, name)[k] for k in bundles])
        return found

    def erase(self) -> None:
        """Begin a new recording on the same tapes."""
        record = self.setup.record
        if record.open:
            self.tapes = [record.erase_open(tape) for tape in self.tapes]
        counters = np.array((0, 0, 0, 1 if record.batches else NEVER))
        for tape in self.tapes:
            tape.counters[:] = counters
            tape.best.fill(-np.inf)
            tape.open_batch.fill(0)
            tape.recent.fill(0)
            tape.total.fill(0)

    def freeze(self) -> None:
        """End the adaptation of kernels that adapt during the warmup."""
        if isinstance(self.setup.kernel, Adaptive):
            for state in self.states:
                self.setup.kernel.freeze(state.memory)

    def inspect(self) -> None:
        """Raise the error of a kernel, or of a function of a recorder, that has failed."""
        if not self._inspects:
            return
        for state, tape in zip(self.states, self.tapes, strict=True):
            if isinstance(self.setup.kernel, Fallible):
                self.setup.kernel.inspect(self.setup.model, self.setup.graph, state.memory)
            self.setup.record.inspect(tape)

    def advance(self, rounds: int, length: int | None = None, keep: bool = False) -> float:
        """Make ``rounds`` times ``length`` steps of all chains, a sweep by default; return the seconds.

        A draw is recorded after each round where ``keep`` is set.
        """
        if keep and self._grows:
            grow = self.setup.record.grow
            self.tapes = [grow(tape, int(tape.counters[DRAWS]) + rounds) for tape in self.tapes]
        steps = self.setup.graph.n_units if length is None else length
        return self.executor.advance(self, rounds, steps, keep)

    def states_by_chain(self) -> list[Array]:
        """Return the state of each chain, sites in the model's order."""
        return list(self.layout.codes(self.states, self.sizes))

    def recording(self, bundles: int | None = None) -> Recording:
        """Return what has been recorded so far, of all bundles of chains or of the first ones."""
        if self.executor.away:
            self._bring()
        kernel, memories = self.setup.kernel, list(map(attrgetter("memory"), self.states))
        states, tapes = self.layout.release_all(self.states, self.tapes, self.sizes, bundles, self.threads)
        return Recording(
            self.setup,
            states,
            tapes,
            self.counts.warmup,
            clock() - self.begun,
            self.flag.up,
            kernel.report(memories),
            tuple(memories),
            tuple(map(_join_meetings, self.meetings)),
            kernel.kept(memories) if isinstance(kernel, Replicated) else {},
        )

    # ---- a whole run

    def run(self) -> Iterator[Status]:
        """Run the budget; yield after each block, and once before the first block of a resumed run.

        The run ends early after an interrupt (``flag``), at the time limit, or when :meth:`stop` is called. At
        least one draw is recorded, so that there is an answer.
        """
        budget, counts = self.budget, self.counts
        n, asked = self.setup.graph.n_units, budget.warmup
        wanted, shown = math.inf if budget.draws is None else budget.draws, False
        loading = clock()
        self._advance(0, 0, keep=False)  # compiles or loads the loop, which does not count as time of the run
        self.begun += clock() - loading
        limit = (0.1 if budget.warms_by_time else 1.0) * self.limit if self.timed else math.inf
        while not (counts.draws or self.over() or clock() - self.begun >= limit):
            left = math.inf if asked is None else asked - counts.warmup
            if left <= 0:
                break
            rounds = self._block(n, left, limit)
            self._advance(rounds, n, keep=False)
            counts.warmup += rounds
            shown = True
            yield self._status("warmup")
        if counts.draws:
            yield self._status("sampling")
        else:
            if self.over() and not shown:  # the caller may save before the one draw of a run that was cut short
                yield self._status("warmup")
            if isinstance(self.setup.kernel, Adaptive):
                self.freeze()
        while counts.draws < wanted and not (counts.draws and self.over()):
            left = wanted - counts.draws
            if self.checks or self.meetings:
                left = min(left, self._until_check(), self._until_meeting())
            rounds = self._block(budget.length, left, self.limit if self.timed else math.inf)
            self._advance(rounds, budget.length, keep=True)
            counts.draws += rounds
            if self.meetings:
                self._meet()
            yield self._status("sampling")
        if budget.rest and not counts.rest_done and not (counts.draws and self.over()):
            self._advance(1, budget.rest, keep=True)
            counts.draws += 1
            counts.rest_done = budget.rest

    def stop(self) -> None:
        """End the run after this block."""
        self.stopped = True

    def over(self) -> bool:
        """Whether to stop early."""
        return self.stopped or self.flag.up or (self.timed and clock() - self.begun >= self.limit)

    @property
    def is_check(self) -> bool:
        """Whether the answer is to be examined now: when the number of draws is a power of two.

        That depends on draws alone, so that stopping does not depend on the speed of the machine.
        """
        draws = self.counts.draws
        if not self.checks or draws.bit_count() != 1 or draws < self._first_check:
            return False
        return not self.over() and (self.budget.draws is None or draws < self.budget.draws)

    @property
    def _first_check(self) -> int:
        kernel, graph = self.setup.kernel, self.setup.graph
        independent = isinstance(kernel, Independent) and kernel.independent(graph)
        return _FIRST_INDEPENDENT if independent else _FIRST_CHECK

    def _until_check(self) -> float:
        """Return the number of draws until the answer is examined next."""
        draws = self.counts.draws
        return max(self._first_check, 1 << draws.bit_length()) - draws if self.checks else math.inf

    @property
    def limit(self) -> float:
        """Seconds after which the run stops, so that the verdict is complete in time."""
        after = self._row_seconds * (_VERDICT_ROWS + int(self.tapes[0].counters[BATCHES]))
        return self.budget.seconds - max(self.reserve, _CHECK_SHARE * self.reserve + after)

    @property
    def wants_foresight(self) -> bool:
        """Whether the time of the verdict is to be predicted from the first chains now."""
        if not self.timed or not self.counts.draws:
            return False
        late = not self._row_seconds and clock() - self.begun > _FORESIGHT_SHARE * self.budget.seconds
        return late or int(self.tapes[0].counters[BATCHES]) >= self._next_foresight

    def foresee(self, seconds: float) -> None:
        """Predict the time of the verdict from the seconds that the first bundle takes now."""
        batches = int(self.tapes[0].counters[BATCHES])
        self._next_foresight = max(_FORESIGHT_BATCHES, 4 * batches)
        self._row_seconds = len(self.states) * seconds / (_VERDICT_ROWS + batches)

    def _block(self, length: int, most: float, limit: float) -> int:
        """Return how many rounds of ``length`` steps fit a block, and a time limit."""
        if math.isnan(self._pace):
            return 1
        time_left = self.begun + limit - clock()
        rounds = min(self.executor.block_seconds, max(time_left, 0.0)) / max(self._pace * length, 1e-9)
        # the first rounds say little about how long many take: blocks grow step by step
        if self.executor is not self.threads:
            most = min(most, self.executor.most_draws(self))
        return int(min(max(rounds, 1.0), _GROWTH * self._rounds, most))

    def _advance(self, rounds: int, length: int, keep: bool) -> None:
        """Make a block of a run; if it fails, the earlier recording is kept."""
        before = None
        if not self.executor.away:
            self._safe = replace(self.counts)
            kernel = self.setup.kernel
            if isinstance(kernel, Fallible) and kernel.fallible:  # draws that were recorded are not read again
                bare = [tape._replace(values=tape.values[:0], energy=tape.energy[:0]) for tape in self.tapes]
                before = copy.deepcopy((self.states, bare))
        try:
            took = self.advance(rounds, length, keep)
            self.inspect()
        except SamplingError as wrong:
            if before is not None:
                self.states, tapes = before
                self.tapes = [
                    old._replace(values=tape.values, energy=tape.energy)
                    for old, tape in zip(tapes, self.tapes, strict=True)
                ]
            self._give_up(wrong)
            raise
        if rounds * length:
            self._pace, self._rounds = took / (rounds * length), rounds

    def _bring(self) -> None:
        """Bring states and tapes here from workers."""
        try:
            self.executor.bring(self)
            self.inspect()
        except SamplingError as wrong:
            self._give_up(wrong)
            raise

    def _give_up(self, wrong: SamplingError) -> None:
        """Attach the recording of a run that has failed to its error."""
        vars(self.counts).update(vars(self._safe))
        wrong.recording = self.recording() if self.counts.draws else None

    def _until_meeting(self) -> float:
        """Return the number of draws until recorders see all chains together."""
        left = [each.every - self.counts.draws % each.every for each in self.setup.record.meetings]
        return min(left, default=math.inf)

    def _meet(self) -> None:
        """Show all chains to the recorders that are due."""
        meetings = self.setup.record.meetings
        due = [k for k in range(len(meetings)) if self.counts.draws % meetings[k].every == 0]
        if due:
            if self.executor.away:
                self._bring()
            states = self.layout.codes(self.states, self.sizes)
            for k in due:
                self.meetings[k].append(meetings[k].meet(states, self.setup.graph.cards))

    def _status(self, phase: str) -> Status:
        budget, thin = self.budget, self.setup.thin
        bounded = budget.draws is not None and budget.warmup is not None
        return Status(
            phase=phase,
            done=self.counts.warmup + self.counts.draws * thin,
            total=(budget.warmup or 0) + (budget.draws or 0) * thin if bounded else 0,
            seconds=clock() - self.begun,
            limit=self.limit if self.timed else math.inf,
            chains=len(self.setup.starts),
        )

    # ---- checkpoints

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        from gibbsite.sampling.checkpoint import save_driver

        if self.executor.away:
            self._bring()
        save_driver(self, path)

    def restore(self, path: Path, stored: tuple[dict[str, Any], dict[str, Array]]) -> None:
        """Continue from a checkpoint that was loaded; refuse one of another plan."""
        from gibbsite.sampling.checkpoint import restore_driver

        restore_driver(self, path, *stored)


def _join_meetings(found: list[Floats]) -> Floats:
    """Return what a recorder has seen at all meetings (groups, numbers)."""
    if not found:
        return np.zeros((1, 0))
    series = np.stack(found, axis=1)
    return series.reshape(len(series), -1)
