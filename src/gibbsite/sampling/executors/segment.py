"""What a worker does: take a bundle of chains as it stands, move it on, and give it back.

A segment is a pure function of its arguments, so it can be made again, anywhere, when a worker is lost: the
chains carry their random numbers with them. States and tapes travel as the arrays of a checkpoint.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite.errors import SamplingError
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.setup import Recipe, Setup
from gibbsite.sampling.stored_tuples import flatten, restore
from gibbsite.sampling.sweep import State
from gibbsite.sampling.tape import BATCHES, DRAWS, FILL, LENGTH, Tape

Arrays = dict[str, Array]
_KEPT = 4  # runs of which a worker remembers what it has laid out


# What does not travel with a tape: what never changes, and what was recorded before.
_CONSTANT = ("offset", "set_start", "set_member", "set_stride", "set_cell", "angular", "sites")
_PAST = ("trace", "values", "energy")


class Segment(NamedTuple):
    """What to do: a bundle of ``size`` chains as arrays, and how far to move it.

    ``threads`` tells how many may share it.
    """

    size: int
    arrays: Arrays
    rounds: int
    length: int
    keep: bool
    threads: int


class Done(NamedTuple):
    """The bundle as it stands afterwards, its checksum, the seconds it took, and what went wrong."""

    arrays: Arrays
    checksum: str
    seconds: float
    wrong: SamplingError | None = None


def checksum(arrays: Arrays) -> str:
    """Return a checksum of arrays and their names.

    Examples
    --------
    >>> checksum({"a": np.zeros(2)}) == checksum({"a": np.zeros(3)})
    False
    """
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {values.dtype.str} {values.shape};".encode())
        found.update(values.data if values.size else b"")
    return found.hexdigest()


def _bare(tape: Tape) -> Tape:
    """Return a tape without what does not travel with it."""
    return tape._replace(**{name: getattr(tape, name)[:0] for name in _CONSTANT + _PAST})


def _pack(state: State, tape: Tape, past: Arrays) -> Arrays:
    return dict(flatten("state", state)) | dict(flatten("tape", _bare(tape))) | past


def _unpack(arrays: Arrays, state: State, tape: Tape) -> tuple[State, Tape]:
    """Return state and tape with the given arrays, in place where they fit; the past is left as it is."""
    found: Tape = restore("tape", _bare(tape), arrays)
    kept = {name: getattr(tape, name) for name in _CONSTANT + _PAST}
    return restore("state", state, arrays), found._replace(**kept)


def cut_segment(state: State, tape: Tape, size: int, rounds: int, length: int, keep: bool, threads: int) -> Segment:
    """Return what a worker needs to move a bundle on.

    Draws that were recorded stay here, and so do the means of batches; but for the last of them, if the
    segment will merge them with new ones.
    """
    batches, merges = int(tape.counters[BATCHES]), count_merges(tape, rounds) if keep else 0
    past = {"trace": tape.trace[batches >> merges << merges : batches]}
    return Segment(size, _pack(state, tape, past), rounds, length, keep, threads)


def count_merges(tape: Tape, rounds: int) -> int:
    """Return how often ``rounds`` further draws will halve the trace of a tape.

    Examples
    --------
    >>> import gibbsite as gs
    >>> setup = Recipe(gs.ising_grid((3, 3)), gs.Gibbs(), gs.Systematic(), None, 1).lay_out()
    >>> tape = setup.layout.tape(1)
    >>> len(tape.trace), [count_merges(tape, rounds) for rounds in (511, 512, 1023, 1024)]
    (512, [0, 1, 1, 2])
    """
    rows, merges = len(tape.trace), 0
    fill, batches, length = (int(tape.counters[which]) for which in (FILL, BATCHES, LENGTH))
    while rows:
        rounds -= (rows - batches) * length - fill
        if rounds < 0:
            break
        fill, batches, length, merges = 0, rows // 2, 2 * length, merges + 1
    return merges


def join_segment(done: Done, state: State, tape: Tape) -> tuple[State, Tape]:
    """Return a bundle as it stands after a segment; its arrays are overwritten."""
    draws, batches, before = (int(tape.counters[which]) for which in (DRAWS, BATCHES, LENGTH))
    state, tape = _unpack(done.arrays, state, tape)
    while before < int(tape.counters[LENGTH]):  # merge what was recorded here, as the worker has its own
        before, batches = 2 * before, batches // 2
        halves = tape.trace[: 2 * batches]
        tape.trace[:batches] = np.float32(0.5) * (halves[0::2] + halves[1::2])
    for name, begin in (("trace", batches), ("values", draws), ("energy", draws)):
        new = done.arrays[name]
        getattr(tape, name)[begin : begin + len(new)] = new
    return state, tape


_LAID_OUT: OrderedDict[str, Setup] = OrderedDict()
_LAYING_OUT = Lock()


def lay_out_run(run: str, recipe: Recipe) -> Setup:
    """Return the set-up of a run; the model is compiled once for all of its segments."""
    with _LAYING_OUT:
        found = _LAID_OUT.get(run)
        if found is None:
            found = _LAID_OUT[run] = recipe.lay_out()
            while len(_LAID_OUT) > _KEPT:
                _LAID_OUT.popitem(last=False)
        return found


class Marks(NamedTuple):
    """How far a tape was when a worker got it: draws, closed batches, and draws of each."""

    draws: int
    batches: int
    length: int


def open_segment(setup: Setup, segment: Segment) -> tuple[Driver, Marks]:
    """Return a driver of the bundle of a segment, with room for its draws, and how far its tape is."""
    graph = setup.graph
    blank = np.zeros(graph.n_sites, graph.state_dtype)
    driver = Driver(setup.starting_at((blank,) * segment.size), threads=segment.threads)
    state, tape = _unpack(segment.arrays, driver.states[0], driver.tapes[0])
    driver.states, driver.tapes = [state], [tape]
    marks = Marks(*(int(tape.counters[which]) for which in (DRAWS, BATCHES, LENGTH)))
    sent = segment.arrays["trace"]
    tape.trace[marks.batches - len(sent) : marks.batches] = sent
    return driver, marks


def pack_segment(state: State, tape: Tape, marks: Marks) -> Arrays:
    """Return a bundle as it stands, and what was recorded since it came."""
    now = int(tape.counters[DRAWS])
    merges = (int(tape.counters[LENGTH]) // marks.length).bit_length() - 1
    past = {
        "trace": tape.trace[marks.batches >> merges : tape.counters[BATCHES]],
        "values": tape.values[marks.draws : now],
        "energy": tape.energy[marks.draws : now],
    }
    return _pack(state, tape, past)


def find_fault(driver: Driver) -> SamplingError | None:
    """Return what a kernel, or a function of a recorder, has to say against going on."""
    try:
        driver.inspect()
    except SamplingError as wrong:
        return wrong
    return None


def move_segment(run: str, recipe: Recipe, segment: Segment) -> Done:
    """Move a bundle of chains of the run of that name."""
    driver, marks = open_segment(lay_out_run(run, recipe), segment)
    with driver.threads:
        took = driver.advance(segment.rounds, segment.length, segment.keep)
    arrays = pack_segment(driver.states[0], driver.tapes[0], marks)
    return Done(arrays, checksum(arrays), took, find_fault(driver))
