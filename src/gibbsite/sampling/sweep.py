"""One chain: its state, and the compiled loop that moves it.

This is the only loop over steps in the library. Kernel, graph and schedule are named tuples; the loop is
compiled once for each combination of their types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import compiled_loop, implement
from gibbsite._numba.pointer import call_pointer, point_at
from gibbsite._numba.random.generators import Words, load, store
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Kernel, Span, Team, alone, step, sums_up, visit
from gibbsite.sampling.observed import observed_arrays
from gibbsite.sampling.tape import (
    ADDED,
    CONDITIONAL,
    COUNT,
    DRAWS,
    Tape,
    pulse_due,
    record_numbers,
    record_states,
    rest_of_numbers,
    rest_of_states,
)
from gibbsite.scans.base import Scan, period, refresh, run_end, site_at


class State(NamedTuple):
    """The state of a chain, which is all that the next step needs; state and tape together are a checkpoint.

    Attributes
    ----------
    x : int (n,)
        State codes.
    cond : float (cells,) or empty
        The latest conditional of each site, where conditionals are recorded: log-odds on two-state kinds, otherwise
        probabilities. It has a single entry where a batched update adds them to the tape itself.
    rng : uint64 (4,)
        The generator.
    position : int64 (2,)
        The position in the current period of the schedule, and the number of completed periods.
    order : int32
        The current order of a random schedule.
    memory : NamedTuple
        The memory of the kernel.
    """

    x: Array
    cond: Array
    rng: Words64
    position: Ints
    order: Ints32
    memory: Any


def start_chain(graph: Graph, kernel: Kernel, scan: Scan, x0: Array, stream: Words64, conditional: bool) -> State:
    """Make the state of a chain that stands at ``x0`` with the given generator words."""
    words = np.array(stream, np.uint64)
    return State(
        x=np.array(x0, graph.state_dtype),
        cond=np.zeros(graph.n_cells if conditional else 0),
        rng=words,
        position=np.zeros(2, np.int64),
        order=scan.buffer(graph) if scan.random else np.zeros(0, np.int32),
        memory=kernel.memory(graph, words),
    )


# When compiled loops need log-potentials for a tape.
NEVER_NEEDED, FOR_PULSE, EVERY_DRAW = range(3)


class Writer(NamedTuple):
    """How compiled loops record draws on a tape: address of the function, its book, and when log-potentials are due."""

    address: int
    book: Ints
    potential: int


_NO_WRITER = Writer(0, np.zeros(0, np.int64), NEVER_NEEDED)
# The latest writer, with the tape and conditionals it belongs to: short loops ask for the same one again and again.
_latest: tuple[Any, Any, Writer] = (None, None, _NO_WRITER)
_LONG, _INT, _DOUBLE, _FLOAT = (np.dtype(kind) for kind in (np.int64, np.int32, np.float64, np.float32))
_NOTHING = np.zeros(0, np.float32)


def entries(*arrays: tuple[Array, np.dtype[Any]]) -> list[int]:
    """Return the entries of a pointer table, address and size of each array, after checking the types of the arrays.

    Arrays of other types are refused, because compiled code does not check what a pointer table contains.

    Examples
    --------
    >>> entries((np.zeros(3), np.dtype(float)))[1]
    3
    """
    found: list[int] = []
    for array, dtype in arrays:
        if array.dtype != dtype or not array.flags.c_contiguous:
            raise TypeError(f"the array must be contiguous and of type {dtype}, not {array.dtype}.")
        found += (array.__array_interface__["data"][0], array.size)
    return found


def find_writer(tape: Tape, x: Array, cond: Array, keep: bool) -> Writer:
    """Return how draws are recorded on a tape, if they are to be kept.

    It holds for as long as the arrays of the tape and ``cond``, the conditionals of the chain, are there.
    """
    global _latest
    if not keep:
        return _NO_WRITER
    known, of, found = _latest
    if known is tape and of is cond:
        return found
    every_draw = tape.energy.size > 0 or tape.best.size > 0
    numbers = tape.angular.size > 0
    pages = entries(
        (tape.counters, _LONG),
        (tape.offset, _LONG),
        (tape.open_batch, _DOUBLE),
        (tape.recent if tape.recent.size else _NOTHING, _FLOAT),
        (tape.total, _DOUBLE),
        (tape.trace, _DOUBLE if numbers else _FLOAT),
        (tape.pulse, _DOUBLE),
        (cond, cond.dtype),
    )
    rest = 0
    others = tape.set_cell.size or tape.sites.size or tape.observed.code.step.size
    if every_draw or numbers or others:
        rest = _address(rest_of_numbers if numbers else rest_of_states, x.dtype)
        pages += entries(
            (tape.angular, _DOUBLE),
            (tape.set_start, _LONG),
            (tape.set_member, _INT),
            (tape.set_stride, _LONG),
            (tape.set_cell, _LONG),
            (tape.sites, _INT),
            (tape.values, _DOUBLE if numbers else np.dtype(np.int16)),
            (tape.energy, _DOUBLE),
            (tape.best, _DOUBLE),
            (tape.best_x, x.dtype),
            *observed_arrays(tape.observed),
        )
    counted = int(tape.n_marginal > 0 and not numbers)
    words = [rest, tape.stride, tape.n_marginal, counted, len(tape.trace), 0]
    found = Writer(
        address=_address(record_numbers if numbers else record_states, x.dtype),
        book=np.array(words + pages, np.int64),
        potential=EVERY_DRAW if every_draw else FOR_PULSE if tape.pulse.size > 0 else NEVER_NEEDED,
    )
    _latest = (tape, cond, found)
    return found


@cache
def _address(entry: Any, states: np.dtype[Any]) -> int:
    """Return the address of a recording function, compiled for states of a type."""
    return point_at(entry, np.zeros(1, np.int64), np.zeros(1, states), 0.0, 0)


def write_indicators(tape: Tape, x: Array, cond: Floats) -> None:
    """Set ``cond`` to the indicators of the state, which are used for sites that have not been visited yet."""
    if tape.offset.size == 0:
        cond[:] = np.where(x != 0, np.inf, -np.inf)
    else:
        cond[:] = 0.0
        cond[tape.offset[: x.size] + tape.stride * x.astype(np.int64)] = 1.0


@implement(visit)
def _site_by_site(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Array, span: Span, rng: Words, cond: Floats, keep: bool
) -> Words:
    where, stop, order, team = span.where, span.stop, span.order, span.team
    begin = where
    while begin < stop:
        end = run_end(schedule, begin, stop)
        many, members, member = end - begin, np.uintp(team.size), np.uintp(team.member)
        for k in range(begin + many * member // members, begin + many * (member + np.uintp(1)) // members):
            i = np.uintp(site_at(schedule, order, k))
            rng = step(params, arrays, memory, x, i, rng, cond, keep)
        begin = end
        if team.size > 1:
            wait_for_all(team.gate, team.size)
    return rng


@compiled_loop
def sweep_sites(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    memory: Any,
    x: Array,
    order: Ints32,
    words: Words64,
    position: Ints,
    cond: Array,
    counters: Ints,
    rounds: int,
    length: int,
    keep: bool,
    team: Team,
    writer: Writer,
) -> None:
    """Make steps (see :func:`sweep_chain`); conditionals are written to ``cond``, or added to it."""
    rng = load(words)
    where, turn = np.uintp(position[0]), position[1]
    cycle = np.uintp(period(schedule))
    adding = sums_up(arrays)
    conditional = keep and cond.size > 0
    first = team.member == 0
    if team.size > 1:  # the first member prepares the conditionals that all of them write
        wait_for_all(team.gate, team.size)
    for _ in range(rounds):
        left = np.uintp(length)
        # sums are complete if the last steps of a round are exactly one period
        whole = where == 0 and left >= cycle and left % cycle == 0
        add = bool(conditional and adding and whole)
        while left > 0:
            if where == 0:
                rng = refresh(schedule, order, rng)
            stop = where + left if where + left < cycle else cycle  # ``min`` takes longer to compile
            put = bool((conditional and not adding) or (add and left == cycle))
            span = Span(order, where, stop, turn, team)
            rng = visit(parameters, arrays, schedule, memory, x, span, rng, cond, put)
            left -= stop - where
            where = stop
            if stop == cycle:
                where = np.uintp(0)
                turn += 1
        if keep:
            if first:
                due = writer.potential == EVERY_DRAW or (writer.potential == FOR_PULSE and pulse_due(counters))
                now = np.float64(log_potential(arrays, x)) if due else 0.0
                what = CONDITIONAL if conditional and not adding else ADDED if add else COUNT
                call_pointer(writer.address, writer.book, x, now, what)
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    if first:
        store(words, rng)
        position[0], position[1] = where, turn


def sweep_chain(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    state: State,
    tape: Tape,
    rounds: int,
    length: int,
    keep: bool,
    team: Team,
    call: Callable[..., Any] = sweep_sites,
) -> Any:
    """Make ``rounds`` times ``length`` steps; record a draw after each round where ``keep`` is set.

    All members of a team call this with the same arguments but their own number. They share the steps of
    visits that can be shared, and the first member does everything else.
    """
    adding = tape.recent.dtype == np.float32  # the batched update adds conditionals up itself
    cond = tape.recent if adding else state.cond
    if keep and not adding and cond.size > 0 and tape.counters[DRAWS] == 0 and team.member == 0:
        write_indicators(tape, state.x, cond)
    return call(
        parameters,
        arrays,
        schedule,
        state.memory,
        state.x,
        state.order,
        state.rng,
        state.position,
        cond,
        tape.counters,
        rounds,
        length,
        keep,
        team,
        find_writer(tape, state.x, state.cond, keep),
    )


def repeatedly(
    parameters: Any, arrays: Any, schedule: Any, state: State, tape: Tape, rounds: int, length: int
) -> Callable[[], None]:
    """Return a function that makes the same steps whenever it is called, without recording.

    For very small models, where the call itself takes most of the time.
    """
    prepared: Callable[[], None] = sweep_chain(
        parameters, arrays, schedule, state, tape, rounds, length, False, alone(), sweep_sites.prepare
    )
    return prepared
