"""What a worker does: take a bundle of chains as it stands, move it on, and give it back.

A segment is a pure function of its arguments, so it can be made again, anywhere, when a worker is lost: the
chains carry their random numbers with them. States and tapes travel as the arrays of a checkpoint.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._random.generators import stream
from gibbsite.errors import SamplingError
from gibbsite.run.chain import State
from gibbsite.run.chain_layout import ChainLayout
from gibbsite.run.checkpoint import flatten, restore
from gibbsite.run.crew import Threads
from gibbsite.run.executor import Executor
from gibbsite.run.recipe import Recipe
from gibbsite.run.record import TapeLayout
from gibbsite.run.tape import Tape

Arrays = dict[str, NDArray[Any]]
_KEPT = 4  # runs of which a worker remembers what it has laid out


class Segment(NamedTuple):
    """What to do: a bundle of ``size`` chains as arrays, and how far to move it.

    ``room`` is the number of draws that its tape must have room for, ``threads`` how many may share it.
    """

    size: int
    arrays: Arrays
    rounds: int
    length: int
    keep: bool
    room: int
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


def pack_chain(state: State, tape: Tape) -> Arrays:
    """Return a bundle as arrays by name."""
    return dict(flatten("state", state)) | dict(flatten("tape", tape))


def unpack_chain(arrays: Arrays, state: State, tape: Tape) -> tuple[State, Tape]:
    """Return state and tape with the given arrays; what is there of them is overwritten."""
    return restore("state", state, arrays), restore("tape", tape, arrays)


@dataclass
class LaidOut:
    """What a worker knows of a run; it moves one bundle, as the engine moves all of them."""

    form: ChainLayout
    layout: TapeLayout
    kernel: Any
    schedule: Any


@dataclass
class _Bundle:
    """One bundle, for a crew of threads."""

    form: ChainLayout
    kernel: Any
    schedule: Any
    states: list[State]
    tapes: list[Tape]
    sizes: list[int]
    threads: int
    executor: Executor


_LAID_OUT: OrderedDict[str, LaidOut] = OrderedDict()
_LAYING_OUT = Lock()


def lay_out_run(run: str, recipe: Recipe) -> LaidOut:
    """Return what is known of a run; the model is compiled once for all of its segments."""
    with _LAYING_OUT:
        found = _LAID_OUT.get(run)
        if found is None:
            layout, form = recipe.lay_out()
            found = LaidOut(form, layout, recipe.kernel.parameters(form.moving), form.schedule())
            _LAID_OUT[run] = found
            while len(_LAID_OUT) > _KEPT:
                _LAID_OUT.popitem(last=False)
        return found


def move_segment(run: str, recipe: Recipe, segment: Segment) -> Done:
    """Move a bundle of chains of the run of that name."""
    worker = lay_out_run(run, recipe)
    form, graph, size = worker.form, worker.form.graph, segment.size
    blank = np.zeros(graph.n_sites, graph.state_dtype)
    words = stream(0, 0)
    state, tape = unpack_chain(
        segment.arrays, form.start([blank] * size, [words.copy() for _ in range(size)]), form.tape(size)
    )
    if segment.keep:
        tape = worker.layout.grow(tape, segment.room)
    with Executor(segment.threads) as executor:
        bundle = _Bundle(
            form, worker.kernel, worker.schedule, [state], [tape], [size], segment.threads, executor
        )
        took = Threads().move(bundle, segment.rounds, segment.length, segment.keep)
    wrong = None
    try:
        recipe.kernel.inspect(recipe.model, graph, state.memory)
        worker.layout.inspect(tape)
    except SamplingError as error:
        wrong = error
    arrays = pack_chain(state, tape)
    return Done(arrays, checksum(arrays), took, wrong)
