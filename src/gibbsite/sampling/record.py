"""Recorders of the state, and the layout of the tape: what each cell records.

:func:`lay_out` turns a list of recorders into the empty tape of a chain; what open recorders keep
(:mod:`.recorders`) is a block of their own on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbsite._common.arguments import check_flags
from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError, IncompatibleError, SamplingError
from gibbsite.sampling.named_sites import find_strides, read_chosen_sites, read_pairs, read_sets, read_sites
from gibbsite.sampling.observed import NOTHING_OBSERVED, Observed, ObservedCode
from gibbsite.sampling.recorders.base import (
    MeetingRecorder,
    OpenRecorder,
    Prepared,
    Recorder,
    labels_as_numbers,
    named_recorders,
)
from gibbsite.sampling.tape import NEVER, PULSE, Tape

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model

Site = str | int


@dataclass(frozen=True)
class Marginals(Recorder):
    """Probabilities of every state of every site; always the first thing to ask for.

    Parameters
    ----------
    rao_blackwell : bool, optional
        Average the conditional probabilities of a site instead of counting its draws: the same
        expectation, less noise. The default does so wherever the kernel computes them.
    batches : bool
        Keep means of batches of draws, which show how far draws depend on each other. Without them runs take
        less memory and time, and standard errors come from the spread of the chains alone.
    sites : sequence of sites, optional
        Only these sites, counted from draws, in memory for these alone; all by default.
    to : str or path, optional
        A folder, made where there is none, in which sums over draws are kept instead of in memory, and where
        results find their arrays: ``sums.npy`` (chains, cells) and ``marginals.npy`` (cells). Means of
        batches are not kept then.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((20, 20), coupling=0.2, field=0.1)
    >>> how = {"sweeps": 500, "rng": 1, "progress": False}
    >>> some = gs.sample(model, record=gs.Marginals(sites=["7", "21"]), **how)
    >>> list(some.marginals), some.marginals["21"][1] > 0.5
    (['7', '21'], True)
    """

    word: ClassVar[str] = "marginals"

    rao_blackwell: bool | None = None
    batches: bool = True
    sites: Sequence[Site] | None = None
    to: str | Path | None = None

    def describe(self) -> dict[str, Any]:
        """Return name and parameters; where sums are kept decides no number."""
        found: dict[str, Any] = {"name": "Marginals", "rao_blackwell": self.rao_blackwell}
        found["batches"] = self.batches and self.to is None
        if isinstance(self.sites, Iterable):
            found["sites"] = [site if isinstance(site, str) else int(site) for site in self.sites]
        return found


@dataclass(frozen=True)
class Draws(Recorder):
    """The draws themselves, of chosen sites.

    Parameters
    ----------
    sites : sequence of sites, optional
        All by default; memory is draws x sites x 2 bytes for each chain.
    """

    word: ClassVar[str] = "draws"

    sites: Sequence[Site] | None = None


@dataclass(frozen=True)
class Joint(Recorder):
    """Joint probabilities of small sets of sites.

    Parameters
    ----------
    sets : sequence of sequences of sites
        For example ``[("A", "B"), ("B", "C", "D")]``.
    """

    sets: Sequence[Sequence[Site]]


@dataclass(frozen=True)
class PairMoments(Recorder):
    """Joint probabilities of many pairs, from which means of products follow.

    Parameters
    ----------
    pairs : array (m, 2) or "edges"
        The pairs; "edges" takes every pair that shares a factor of two sites.
    """

    word: ClassVar[str] = "pairs"

    pairs: Any = "edges"


@dataclass(frozen=True)
class Energy(Recorder):
    """The energy of every draw, which is minus its log-potential (costs a sweep without random numbers)."""

    word: ClassVar[str] = "energy"
    of_law: ClassVar[bool] = False


@dataclass(frozen=True)
class BestState(Recorder):
    """The draw of largest log-potential."""

    word: ClassVar[str] = "best"
    of_law: ClassVar[bool] = False


_LIMIT_CELLS = 1 << 22  # values of the batch trace of one chain, unless it is a very large model


@dataclass(frozen=True)
class TapeLayout:
    """What each cell of the tape records.

    Attributes
    ----------
    recorders : tuple
        What was asked for.
    set_start, set_member, set_stride, set_cell
        Recorded sets of sites, Joint first, then pairs; see ``Tape``.
    n_joint : int
        How many of them stem from Joint.
    n_marginal, n_cells : int
        Number of marginal cells and of all cells.
    conditional : bool
        Whether marginals are averages of conditionals.
    batches, pulse : bool
        Whether means of batches, and log-potentials at intervals, are kept.
    to : path or None
        A folder in which sums are kept, instead of in memory.
    angular : float (n,) or empty
        What is recorded of sites that are numbers, if there are any; see ``Domains.angular``.
    open : tuple of pairs
        Open recorders, and what compiled code needs of each.
    meetings : tuple of MeetingRecorder
        Recorders that see all chains together.
    label, label_at
        States as numbers, for open recorders.
    """

    recorders: tuple[Recorder, ...]
    set_start: Ints
    set_member: Ints32
    set_stride: Ints
    set_cell: Ints
    n_joint: int
    n_marginal: int
    n_cells: int
    conditional: bool
    batches: bool
    draw_sites: Ints32
    angular: Floats
    energy: bool
    best: bool
    pulse: bool
    open: tuple[tuple[OpenRecorder, Prepared], ...] = ()
    meetings: tuple[MeetingRecorder, ...] = ()
    to: Path | None = None
    label: Floats = field(default_factory=lambda: np.zeros(0))
    label_at: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def only_marginals(self) -> bool:
        """Whether nothing but marginals is recorded."""
        others = self.draw_sites.size or self.energy or self.best or self.open or self.meetings
        return self.n_cells == self.n_marginal and not others

    def empty_tape(self, graph: Graph, *, adding: bool = False) -> Tape:
        """Make the tape of one chain, for no traced draw yet; ``adding``: walks add up conditionals themselves."""
        fewest = 32 if self.n_cells <= _LIMIT_CELLS // 2 else 16
        batches = int(np.clip(_LIMIT_CELLS // max(self.n_cells, 1), fewest, 512)) if self.batches else 0
        if self.to is None:
            sums = np.zeros(self.n_cells)
        else:
            from gibbsite.sampling.disk import zeros_on_disk

            sums = zeros_on_disk(self.to, self.n_cells)
        return Tape(
            counters=np.array([0, 0, 0, 1 if self.batches else NEVER], np.int64),
            offset=graph.offset,
            stride=1,
            n_marginal=self.n_marginal,
            set_start=self.set_start,
            set_member=self.set_member,
            set_stride=self.set_stride,
            set_cell=self.set_cell,
            # where there are no batches, this is the sum of all draws
            open_batch=sums,
            # otherwise an empty array of the type of the chain's conditionals, which stand in its state
            recent=np.zeros(self.n_marginal * self.conditional, np.float32) if adding else np.zeros(0),
            total=np.zeros(self.n_cells),
            trace=np.zeros((batches // 2 * 2, self.n_cells), np.float64 if self.angular.size else np.float32),
            angular=self.angular,
            sites=self.draw_sites,
            values=np.zeros((0, self.draw_sites.size), np.float64 if self.angular.size else np.int16),
            energy=np.zeros(0),
            best=np.full(int(self.best), -np.inf),
            best_x=np.zeros(graph.n_sites if self.best else 0, graph.state_dtype),
            pulse=np.zeros(-(-(batches // 2 * 2) // PULSE) if self.pulse else 0),
            observed=self._observed(graph) if self.open else NOTHING_OBSERVED,
        )

    def _observed(self, graph: Graph) -> Observed:
        """Return the open recorders of a chain before its first draw."""
        words = np.zeros((len(self.open), 4), np.uint64)
        words[:, 0] = [0 if made.inner is None else made.inner.address for _, made in self.open]
        code = ObservedCode(
            step=np.array([made.step.address for _, made in self.open], np.int64),
            words=words,
            label=self.label,
            label_at=self.label_at,
            site_at=np.zeros(0, np.int32),
            x=np.zeros(graph.n_sites),
        )
        return _joined(code, [made.block for _, made in self.open])

    def erase_open(self, tape: Tape) -> Tape:
        """Return the tape with open recorders as before the first draw."""
        if not self.open:
            return tape
        return tape._replace(observed=_joined(tape.observed.code, [made.block for _, made in self.open]))

    def blocks(self, tape: Tape) -> list[Floats]:
        """Return what each open recorder has kept on a tape."""
        if not self.open:
            return []
        place, block = tape.observed.place, tape.observed.block
        return [block[place[r] : place[r + 1]] for r in range(len(self.open))]

    def inspect(self, tape: Tape) -> None:
        """Refuse to go on if a function of an open recorder failed, or returned no number."""
        for (recorder, made), block in zip(self.open, self.blocks(tape), strict=True):
            draw = recorder.fault(block)
            if draw is not None:
                code = made.step if made.inner is None else made.inner
                cause = code.cause_at(tape.observed.code.x, recorder.seen(block).copy())
                why = "returned no finite number" if cause is None else f"raised {type(cause).__name__}: {cause}"
                raise SamplingError(f"the function of the recorder {recorder.key!r} {why}, at draw {draw}.")

    def grow(self, tape: Tape, draws: int) -> Tape:
        """Return the tape with space for ``draws`` traced draws in all."""
        if self.open:
            blocks = [r.grow(b, draws) for (r, _), b in zip(self.open, self.blocks(tape), strict=True)]
            if sum(block.size for block in blocks) > tape.observed.block.size:
                tape = tape._replace(observed=_joined(tape.observed.code, blocks))
        if not self.draw_sites.size and not self.energy:
            return tape
        in_use = [tape.values] * bool(self.draw_sites.size) + [tape.energy] * self.energy
        if min(map(len, in_use)) >= draws:
            return tape
        have = max(map(len, in_use))
        room = max(draws, have + have // 2)
        values = np.zeros((room, self.draw_sites.size), tape.values.dtype)
        values[: len(tape.values)] = tape.values
        energy = np.zeros(room if self.energy else 0)
        energy[: len(tape.energy)] = tape.energy
        return tape._replace(values=values, energy=energy)


def _joined(code: ObservedCode, blocks: list[Floats]) -> Observed:
    place = np.concatenate([[0], np.cumsum([block.size for block in blocks])]).astype(np.int64)
    return Observed(code, place, np.concatenate(blocks))


def read_recorders(record: Any) -> tuple[Recorder, ...]:
    """Accept one recorder, a name, or a sequence of both; the default is marginals.

    Examples
    --------
    >>> read_recorders(["marginals", Energy()])
    (Marginals(rao_blackwell=None, batches=True, sites=None, to=None), Energy())
    """
    if record is None:
        return (Marginals(),)
    if isinstance(record, str) or not isinstance(record, Iterable) or not getattr(record, "ndim", 1):
        record = [record]
    found: list[Recorder] = []
    for item in record:
        if isinstance(item, str):
            words = named_recorders()
            if item not in words:
                raise ArgumentError(unknown("Recorder", item, words, ", or give a value such as gs.Draws(['A'])"))
            item = words[item]()
        if not isinstance(item, Recorder):
            raise ArgumentError(f"{item!r} is not a recorder; use gs.Marginals(), gs.Draws(...) and so on.")
        if isinstance(item, OpenRecorder):
            if item.key in [other.key for other in found if isinstance(other, OpenRecorder)]:
                raise ArgumentError(f"Two recorders are called {item.key!r}; give them different names.")
        elif type(item) in [type(other) for other in found]:
            raise ArgumentError(f"{type(item).__name__} is asked for twice; combine both in one.")
        found.append(item)
    return tuple(found)


def keep_marginals(record: Any, kernel: Kernel | None) -> Any:
    """Add marginals to the recorders of a run that is to be judged.

    A verdict is about probabilities and means, and short chains from other starts are compared with them. Only a run
    that records nothing but the best state is judged by that state.

    Examples
    --------
    >>> keep_marginals("draws", None)
    (Draws(sites=None), Marginals(rao_blackwell=False, batches=True, sites=None, to=None))
    >>> keep_marginals("best", None)
    (BestState(),)
    """
    if record is None or (kernel is not None and not kernel.estimates):
        return record
    recorders = read_recorders(record)
    if any(isinstance(r, Marginals) for r in recorders) or all(isinstance(r, BestState) for r in recorders):
        return recorders
    # counted from draws, because errors of averages of conditionals are smaller than those of draws
    return (*recorders, Marginals(rao_blackwell=False))


def lay_out(model: Model, graph: Graph, kernel: Kernel, record: Any) -> TapeLayout:
    """Decide what each cell of the tape records."""
    recorders = read_recorders(record if record is not None or kernel.estimates else BestState())
    if not kernel.estimates:
        recorders = _for_search(recorders, kernel)
    chosen: dict[type, Any] = dict(zip(map(type, recorders), recorders, strict=True))
    sets = read_sets(model, chosen[Joint].sets) if Joint in chosen else []
    marginals = chosen.get(Marginals)
    if marginals is not None:
        check_flags(batches=marginals.batches)
        if marginals.rao_blackwell is not None:
            check_flags(rao_blackwell=marginals.rao_blackwell)
    if marginals is not None and marginals.sites is not None:
        sets = read_chosen_sites(model, graph, marginals) + sets
    all_sites = marginals is not None and marginals.sites is None
    conditional = marginals is not None and all_sites and kernel.conditional and marginals.rao_blackwell is not False
    if marginals is not None and marginals.rao_blackwell and not kernel.conditional:
        raise IncompatibleError(
            f"{type(kernel).__name__} computes no conditionals; use Marginals(rao_blackwell=False)."
        )
    n_marginal = graph.n_cells if all_sites else 0
    width = np.array(list(map(len, sets)), np.int64)
    member = np.concatenate([np.zeros(0, np.int32), *sets])
    if PairMoments in chosen:
        pairs = read_pairs(model, chosen[PairMoments].pairs)
        width = np.concatenate([width, np.full(len(pairs), 2)])
        member = np.concatenate([member, pairs.ravel()]).astype(np.int32)
    start = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    angular = np.zeros(0) if graph.discrete else model.domains.angular
    if angular.size and not np.isnan(angular[member]).all():
        site = model.domains.names[int(member[np.argmin(np.isnan(angular[member]))])]
        raise ArgumentError(
            f"Joint probabilities are of states, and the site {site!r} is a number; record 'draws' instead."
        )
    stride = size = np.ones(0, np.int64)
    if member.size:
        stride, size = find_strides(start, member, graph.cards)
    cell = n_marginal + np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    draws = chosen.get(Draws)
    opened, meetings = [], []
    label, label_at = np.zeros(0), np.zeros(0, np.int64)
    for each in recorders:
        if not isinstance(each, OpenRecorder):
            continue
        if not graph.n_sites:
            raise ArgumentError(f"There are no free sites, so {each.key!r} has nothing to observe; leave it out.")
        if isinstance(each, MeetingRecorder):
            each.check(model)
            meetings.append(each)
        else:
            opened.append((each, each.prepare(model)))
            label, label_at = labels_as_numbers(model)
    return TapeLayout(
        recorders=recorders,
        set_start=start,
        set_member=member,
        set_stride=stride,
        set_cell=cell[:-1],
        n_joint=len(sets),
        n_marginal=n_marginal,
        n_cells=int(cell[-1]),
        conditional=conditional,
        batches=marginals is None or (marginals.batches and marginals.to is None),
        draw_sites=np.zeros(0, np.int32) if draws is None else read_sites(model, draws.sites),
        angular=angular,
        energy=Energy in chosen,
        best=BestState in chosen,
        pulse=graph.discrete and kernel.estimates and kernel.reads_all,
        open=tuple(opened),
        meetings=tuple(meetings),
        to=None if marginals is None or marginals.to is None else _folder(graph, marginals),
        label=label,
        label_at=label_at,
    )


def _for_search(recorders: tuple[Recorder, ...], kernel: Kernel) -> tuple[Recorder, ...]:
    """Return the recorders of a kernel that looks for the best state: that is always kept."""
    for recorder in recorders:
        if recorder.of_law:
            raise IncompatibleError(
                f"{type(kernel).__name__} does not keep the law of the model, so there is nothing "
                f"to record as {type(recorder).__name__}; record 'best' or 'energy'."
            )
    kept = any(isinstance(recorder, BestState) for recorder in recorders)
    return recorders if kept else (*recorders, BestState())


def _folder(graph: Graph, marginals: Marginals) -> Path:
    """Return where sums are kept."""
    if not graph.discrete:
        raise IncompatibleError(
            "Marginals are written to disk for sites with states, and some sites are numbers; leave to out."
        )
    from gibbsite.sampling.disk import read_folder

    return read_folder(marginals.to)
