"""Let it run: drive the chains through warmup and sampling in blocks.

Knows no algorithm. Everything interactive (progress, interrupts, time limits, checkpoints) happens between
blocks, of about 0.15 s on threads; where blocks end has no influence on the numbers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite._common.boundary import Fail, between, check_header
from gibbsite._common.wording import argument
from gibbsite._numba.jit import clock
from gibbsite._numba.random.generators import stream
from gibbsite.errors import CheckpointError, SamplingError
from gibbsite.kernels.protocols import Adaptive, Fallible, Independent, Replicated, Tunable
from gibbsite.sampling.budget import Budget
from gibbsite.sampling.checkpoint import check_stored, failure, load_checkpoint, restore, save_checkpoint
from gibbsite.sampling.crew import Crew, Threads
from gibbsite.sampling.executor import Executor
from gibbsite.sampling.interrupt import catch_interrupt
from gibbsite.sampling.plan import Plan
from gibbsite.sampling.progress import Progress, Status
from gibbsite.sampling.record import TapeLayout
from gibbsite.sampling.tape import BATCHES, DRAWS, Tape
from gibbsite.scans.base import period

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel, KernelWarning
    from gibbsite.sampling.chain_layout import ChainLayout
    from gibbsite.scans.base import Scan

#: Names of what a kernel had found before the run, in checkpoints, begin so.
TUNED = "kernels/"
_GROWTH = 16  # of the rounds of a block, at most
_FIRST_SAVE = 2.0  # seconds until the first checkpoint, at most
_LOOKING = 0.75  # of the time that is kept for what comes after the run: for a second look
_SUMS = 2  # rows of a tape besides its batches
# The time for conclusions is foreseen from so many batches, or after such a share of the time.
_TELLING, _WAITING = 8, 0.25
# Draws before the first question whether the answer is good enough; of independent ones.
_FIRST_CHECK, _FIRST_INDEPENDENT = 256, 16


@dataclass(frozen=True)
class Setup:
    """What runs: model, kernel, scan, what is recorded, how chains are laid out, what the kernel remarks."""

    model: Any
    kernel: Kernel
    scan: Scan
    layout: TapeLayout
    form: ChainLayout
    plan: Plan
    remarks: tuple[KernelWarning, ...] = ()

    @property
    def graph(self) -> Graph:
        """The compiled model."""
        return self.form.graph


@dataclass(frozen=True)
class Recording:
    """What a run leaves behind; states and tapes by chain, sites in the model's order.

    ``memories`` are what the chains carry besides, bundle by bundle; they go on changing while the run does.
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
class _Counts:
    """How far the chains are; the same for all of them."""

    warmup: int = 0
    draws: int = 0
    rest_done: int = 0  # steps of the last, shorter round; 0 until it is made


def run_chains(
    setup: Setup,
    starts: list[Array],
    budget: Budget,
    *,
    threads: int,
    progress: Progress,
    checkpoint: Path | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    enough: Callable[[Recording], bool] | None = None,
    reserve: float = 0.0,
    foresee: Callable[[Recording], float] | None = None,
    begun: float | None = None,
    crew: Crew | None = None,
) -> Recording:
    """Run all chains to the end of the budget, an interrupt, the time limit, or until it is ``enough``.

    ``reserve`` is the share of a time limit that is left for what comes after the run; more is left where
    ``foresee``, which tells from the first chains how many seconds that takes for them, says so. ``begun`` is
    when the clock of the time limit was started; now by default. ``crew`` moves the chains; threads of this
    process by default.
    """
    run = _Run(setup, starts, budget, progress, checkpoint, checkpoint_every)
    run.enough, run.foresee = enough, foresee
    run.reserve = reserve * budget.seconds if math.isfinite(budget.seconds) else 0.0
    run.threads = threads
    run.crew = run.crew if crew is None else crew
    run.begun = run.begun if begun is None else begun
    if checkpoint is not None and resume and checkpoint.exists():
        run.resume()
    try:
        with Executor(threads) as run.executor, catch_interrupt(progress.say) as run.interrupt:
            run.compile()
            run.warm_up()
            if run.over() and not run.counts.draws:
                # Cut short in the warmup: the one draw that follows, so that there is an answer, is no
                # part of the run to be resumed.
                run.save()
                run.path = None
            run.record()
            run.save()
            return run.recording()
    finally:
        progress.close()


class _Run:
    """The state of a run and its phases."""

    def __init__(
        self,
        setup: Setup,
        starts: list[Array],
        budget: Budget,
        progress: Progress,
        checkpoint: Path | None,
        checkpoint_every: float,
    ) -> None:
        self.setup, self.budget, self.progress = setup, budget, progress
        self.path, self.every = checkpoint, checkpoint_every
        self.form, self.chains = setup.form, len(starts)
        streams = [stream(setup.plan.entropy, chain) for chain in range(self.chains)]
        width = self.form.width
        firsts = range(0, self.chains, width)
        self.states = [self.form.start(starts[a : a + width], streams[a : a + width]) for a in firsts]
        self.sizes = [min(width, self.chains - a) for a in firsts]
        self.tapes = [self.form.tape(size) for size in self.sizes]
        self.kernel = setup.kernel.parameters(self.form.moving)
        self.schedule = self.form.schedule()
        self.threads = 1
        self.counts = self.safe = _Counts()  # now; when all states and tapes were here
        self.meetings: list[list[Floats]] = [[] for _ in setup.layout.meetings]
        for recorder in setup.layout.meetings:
            recorder.meet(np.stack(starts), setup.graph.cards)  # refuses what makes no sense before any work
        self.begun = self.saved = clock()
        self.pace = math.nan  # seconds per step of all chains
        self.rounds = 1  # of the last block
        self.enough: Callable[[Recording], bool] | None = None
        self.foresee: Callable[[Recording], float] | None = None
        self.next_foresight = _TELLING
        self.reserve = 0.0  # seconds for what comes after the run, at least
        self.row_seconds = 0.0  # that it takes besides for each row of a tape
        self.executor: Executor
        self.crew: Crew = Threads()
        self.interrupt: Any = None

    def compile(self) -> None:
        """Compile or load the loop, so that this does not count as time of the run."""
        loading = clock()
        self.advance(0, 0, keep=False)
        self.begun += clock() - loading
        self.saved = clock() - max(self.every - _FIRST_SAVE, 0.0)

    def advance(self, rounds: int, length: int, keep: bool) -> None:
        """Move all chains by the same amount."""
        if keep:
            room = self.counts.draws + rounds
            self.tapes = [self.setup.layout.grow(tape, room) for tape in self.tapes]

        before = None
        if not self.crew.away:
            self.safe = replace(self.counts)
            before = self.copied() if isinstance(self.setup.kernel, Fallible) and self.setup.kernel.fallible else None
        try:
            took = self.crew.move(self, rounds, length, keep)
            self.inspect()
        except SamplingError as wrong:
            if before is not None:
                self.states, tapes = before
                self.tapes = [
                    old._replace(values=tape.values, energy=tape.energy)
                    for old, tape in zip(tapes, self.tapes, strict=True)
                ]
            self.give_up(wrong)
            raise
        steps = rounds * length
        if steps:
            self.pace, self.rounds = took / steps, rounds

    def inspect(self) -> None:
        """Refuse to go on where a kernel, or a function of a recorder, has failed."""
        for state, tape in zip(self.states, self.tapes, strict=True):
            if isinstance(self.setup.kernel, Fallible):
                self.setup.kernel.inspect(self.setup.model, self.setup.graph, state.memory)
            self.setup.layout.inspect(tape)

    def bring(self) -> None:
        """Bring states and tapes here, where a crew has left them with workers."""
        try:
            self.crew.bring(self)
            self.inspect()
        except SamplingError as wrong:
            self.give_up(wrong)
            raise

    def give_up(self, wrong: SamplingError) -> None:
        """Keep what is here of a run that cannot go on."""
        self.counts = self.safe
        wrong.recording = self.recording() if self.counts.draws else None
        self.save()

    def copied(self) -> tuple[list[Any], list[Tape]]:
        """Return a copy of all chains without draws: what stands behind the recorded ones is not read."""
        bare = [tape._replace(values=tape.values[:0], energy=tape.energy[:0]) for tape in self.tapes]
        return copy.deepcopy((self.states, bare))

    @property
    def limit(self) -> float:
        """Seconds after which to stop, so that what comes after the run is done in time."""
        after = self.row_seconds * (_SUMS + int(self.tapes[0].counters[BATCHES]))
        return self.budget.seconds - max(self.reserve, _LOOKING * self.reserve + after)

    def look_ahead(self) -> None:
        """Find out from the first chains how long what comes after the run takes for each row of a tape."""
        if self.foresee is None or not math.isfinite(self.budget.seconds):
            return
        batches = int(self.tapes[0].counters[BATCHES])
        late = not self.row_seconds and clock() - self.begun > _WAITING * self.budget.seconds
        if batches < self.next_foresight and not late:
            return
        self.next_foresight = max(_TELLING, 4 * batches)
        began = clock()
        part = self.recording(1)
        took = clock() - began + self.foresee(part)
        self.row_seconds = len(self.states) * took / (_SUMS + batches)

    def block(self, length: int, most: float, limit: float | None = None) -> int:
        """Return how many rounds of ``length`` steps fit a block, and a time limit."""
        limit = self.limit if limit is None else limit
        if math.isnan(self.pace):
            return 1
        time_left = self.begun + limit - clock()
        rounds = min(self.crew.block_seconds, max(time_left, 0.0)) / max(self.pace * length, 1e-9)
        # the first rounds say little of how long many take: blocks grow step by step
        most = min(most, self.crew.most_draws(self))
        return int(min(max(rounds, 1.0), _GROWTH * self.rounds, most))

    def until_meeting(self) -> float:
        """Return how many draws may be made before chains meet."""
        left = [each.every - self.counts.draws % each.every for each in self.setup.layout.meetings]
        return min(left, default=math.inf)

    def meet(self) -> None:
        """Let recorders that are due see all chains."""
        due = [k for k, r in enumerate(self.setup.layout.meetings) if self.counts.draws % r.every == 0]
        if due:
            self.bring()
            states = self.form.codes(self.states, self.sizes)
            for k in due:
                self.meetings[k].append(self.setup.layout.meetings[k].meet(states, self.setup.graph.cards))

    def over(self) -> bool:
        """Whether to stop early."""
        return bool(self.interrupt.up) or clock() - self.begun >= self.limit

    def warm_up(self) -> None:
        """Run the warmup; without a number of sweeps, for a tenth of the time."""
        n, asked = self.setup.graph.n_units, self.budget.warmup
        limit = (0.1 if self.budget.warms_by_time else 1.0) * self.limit
        if self.counts.draws:
            return  # resumed after the end of the warmup
        while not self.over():
            if clock() - self.begun >= limit:
                break  # a tenth of whichever limit binds
            if asked is not None and self.counts.warmup >= asked:
                break
            left = math.inf if asked is None else asked - self.counts.warmup
            rounds = self.block(n, left, limit)
            self.advance(rounds, n, keep=False)
            self.counts.warmup += rounds
            self.between("warmup")

    def record(self) -> None:
        """Record draws until the budget is used up; at least one, so that there is an answer."""
        wanted = math.inf if self.budget.draws is None else self.budget.draws
        if not self.counts.draws:
            for state in self.states:
                if isinstance(self.setup.kernel, Adaptive):
                    self.setup.kernel.freeze(state.memory)
        while self.counts.draws < wanted and (not self.over() or self.counts.draws == 0):
            # Asked before the next block, not after the last: a run killed in between must ask as well.
            if self.is_check() and self.enough is not None and self.enough(self.recording()):
                return
            left = min(min(wanted, self.next_check()) - self.counts.draws, self.until_meeting())
            rounds = self.block(self.budget.length, left)
            self.advance(rounds, self.budget.length, keep=True)
            self.counts.draws += rounds
            self.meet()
            self.look_ahead()
            self.between("sampling")
        if self.budget.rest and not self.counts.rest_done and (not self.over() or not self.counts.draws):
            self.advance(1, self.budget.rest, keep=True)
            self.counts.draws += 1
            self.counts.rest_done = self.budget.rest

    @cached_property
    def first_check(self) -> int:
        """Draws before the first question whether the answer is good enough."""
        kernel, graph = self.setup.kernel, self.setup.graph
        independent = isinstance(kernel, Independent) and kernel.independent(graph)
        return _FIRST_INDEPENDENT if independent else _FIRST_CHECK

    def is_check(self) -> bool:
        """Whether now is a moment to ask if the answer is good enough."""
        return self.counts.draws >= self.first_check and self.counts.draws.bit_count() == 1

    def next_check(self) -> float:
        """Return at how many draws to ask next whether the answer is good enough: at powers of two.

        The moments depend on draws alone, so that stopping does not depend on the speed of the machine.
        """
        if self.enough is None:
            return math.inf
        return float(max(self.first_check, 1 << self.counts.draws.bit_length()))

    def recording(self, bundles: int | None = None) -> Recording:
        """Return what there is so far, of all bundles of chains or of the first ones."""
        self.bring()
        items = list(zip(self.states, self.tapes, self.sizes, strict=True))[:bundles]
        found = self.executor.map(lambda item: self.form.release(*item), items)
        released = [pair for pairs in found for pair in pairs]
        return Recording(
            self.setup,
            [x for x, _ in released],
            [tape for _, tape in released],
            self.counts.warmup,
            clock() - self.begun,
            bool(self.interrupt.up),
            self.setup.kernel.report([state.memory for state in self.states]),
            tuple(state.memory for state in self.states),
            tuple(self.met(k) for k in range(len(self.meetings))),
            self.setup.kernel.kept([state.memory for state in self.states])
            if isinstance(self.setup.kernel, Replicated)
            else {},
        )

    def met(self, number: int) -> Floats:
        """Return what a recorder has seen at all meetings (groups, numbers)."""
        found = self.meetings[number]
        if not found:
            return np.zeros((1, 0))
        series = np.stack(found, axis=1)
        return series.reshape(len(series), -1)

    def between(self, phase: str) -> None:
        """Do what is done between two blocks."""
        n = max(self.setup.graph.n_units, 1)
        thin = max(self.budget.length // n, 1)
        total = (
            0
            if self.budget.draws is None or self.budget.warmup is None
            else self.budget.warmup + self.budget.draws * thin
        )
        self.progress.show(
            Status(
                phase=phase,
                done=self.counts.warmup + self.counts.draws * thin,
                total=total,
                seconds=clock() - self.begun,
                limit=self.limit,
                chains=self.chains,
            )
        )
        if clock() - self.saved >= self.every:
            self.save()

    def save(self) -> None:
        """Write the checkpoint, if there is to be one."""
        if self.path is not None:
            self.bring()
            kernel = self.setup.kernel
            tuned = kernel.tuned() if isinstance(kernel, Tunable) else {}
            save_checkpoint(
                self.path,
                self.setup.plan.to_dict(),
                vars(self.counts),
                list(zip(self.states, self.tapes, strict=True)),
                {f"meetings/{k}": np.array(found) for k, found in enumerate(self.meetings)}
                | {f"{TUNED}{name}": found for name, found in tuned.items()},
            )
            self.saved = clock()

    def resume(self) -> None:
        """Continue from the checkpoint; refuse one of another plan."""
        assert self.path is not None
        about, arrays = load_checkpoint(self.path)
        differences = self.setup.plan.differences(about["plan"])
        if differences:
            begun = [
                argument(name, about["plan"].get(key))
                for key, name in (("entropy", "rng"), ("warmup", "warmup"), ("chains", "chains"))
                if key in differences
            ]
            hint = f" ({', '.join(begun)} there; what is left out is taken from it)" if begun else ""
            named = ", ".join("the seed" if name == "entropy" else name for name in differences)
            verb = "differs" if len(differences) == 1 else "differ"
            raise CheckpointError(
                f"{self.path} belongs to another run: {named} {verb}{hint}; use the same "
                "arguments, or start afresh with another file."
            )
        fail = failure(self.path)
        number = between(0, 1 << 62)
        check_header(about["progress"], dict.fromkeys(vars(self.counts), number), fail)
        counts = _Counts(**{name: about["progress"][name] for name in vars(self.counts)})
        if self.budget.draws is not None and counts.draws > self.budget.draws + bool(self.budget.rest):
            raise CheckpointError(
                f"{self.path} holds {counts.draws} draws already, more than the {self.budget.draws} asked "
                "for; ask for at least as many."
            )
        if counts.rest_done and (counts.rest_done != self.budget.rest or counts.draws <= (self.budget.draws or 0)):
            raise CheckpointError(f"{self.path} ended with an incomplete sweep and cannot be extended; start afresh.")
        self.counts = counts
        cards = np.asarray(self.setup.graph.cards)
        meetings = [arrays.get(f"meetings/{k}", np.zeros(0)) for k in range(len(self.meetings))]
        for recorder, met in zip(self.setup.layout.meetings, meetings, strict=True):
            if len(met) != counts.draws // recorder.every or (len(met) and met.ndim != 3):
                raise fail("it has other meetings of chains than draws")
        for k in range(len(self.states)):
            check_stored(f"{k}/state", self.states[k], arrays, cards, fail)
            check_stored(f"{k}/tape", self.tapes[k], arrays, cards, fail)
            self.setup.layout.check_stored(f"{k}/tape/observed", self.tapes[k].observed, arrays, counts.draws, fail)
            self.states[k] = restore(f"{k}/state", self.states[k], arrays)
            self.tapes[k] = restore(f"{k}/tape", self.tapes[k], arrays)
            tape = self.tapes[k]
            if tape.counters[DRAWS] != counts.draws or (tape.counters != self.tapes[0].counters).any():
                raise fail("it has other numbers of draws in its header and on its tapes")
            for each, kept in ((tape.values, tape.sites.size), (tape.energy, self.setup.layout.energy)):
                if len(each) < counts.draws if kept else each.size:
                    raise fail("it has other numbers of recorded draws than its header says")
        self.check_states(cards, fail)
        self.meetings = [list(met) for met in meetings]

    def check_states(self, cards: Array, fail: Fail) -> None:
        """Refuse states that sites cannot have, and places where the schedule cannot stand."""
        codes = self.form.codes(self.states, self.sizes)
        numbers = np.asarray(self.setup.model.domains.numbers)
        states = codes[:, ~numbers] if numbers.any() else codes
        if not np.isfinite(codes).all() or (states < 0).any() or (states >= cards[~numbers]).any():
            raise fail("a chain is in a state that its sites do not have")
        if states.dtype.kind == "f" and (states != np.floor(states)).any():
            raise fail("a chain is in a state that its sites do not have")
        steps = int(period(self.schedule))
        for state in self.states:
            if not 0 <= state.position[0] < max(steps, 1) or not 0 <= state.position[1] < 1 << 62:
                raise fail("a chain stands beyond the end of its scan")
            fresh, order = self.setup.scan.buffer(self.form.moving), np.sort(state.order)
            shuffled = fresh.size > 1 and fresh[-1] == fresh.size - 1  # all sites, in any order
            if order.size and (
                order[0] < 0 or order[-1] >= order.size or (shuffled and not np.array_equal(order, fresh))
            ):
                raise fail("the order in which sites are visited is none")
