"""Herded Gibbs on lattices of one coupling: weights by the number of neighbours, a row of a color at a time.

The weights of a stretch of a row are a stretch of a plane for every number of neighbours. A plane is touched
where the number occurs, without looking anything up, so the loops compile to vector instructions. All
members of a team do their own part of a color, and as there is no chance the answer is the same for any
number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._intrinsic import wait_for_all
from gibbsite._jit import Integer, called, generic, implement, inlined
from gibbsite._random import BLOCK, Words
from gibbsite.graph.checkered import Board
from gibbsite.graph.counted import APART, CountedPlanes, CountedUniform
from gibbsite.kernel._local import log_potential
from gibbsite.kernel.base import Team, sums_up, walk
from gibbsite.kernel.board import (
    NOWHERE,
    Row,
    find_row,
    first_row,
    inner_part,
    left_of,
    or_own,
    right_of,
)
from gibbsite.kernel.colored import share
from gibbsite.kernel.herded import HerdedParameters, arranged_weights

_U, _U8, _U32 = np.uintp, np.uint8, np.uint32
F = np.float32
_ZERO, _ONE = np.uintp(0), np.uintp(1)
_TO_UNIT = F(2.0**-32)
# Sites that are looked at together: few enough that not every number of neighbours occurs.
_STRETCH = 128
State = NDArray[np.int8]


class CountedMemory(NamedTuple):
    """The weights of a chain, ``phase[c, p]`` in units of 2^-32, and room for each member of a team.

    Of a stretch: the numbers of neighbours in state 1, and the new states.
    """

    phase: NDArray[np.uint32]
    room: NDArray[np.uint8]


@implement(arranged_weights, CountedUniform)
@implement(arranged_weights, CountedPlanes)
def _counted_memory(graph: Any, first: Callable[..., NDArray[np.uint32]], team: int) -> CountedMemory:
    sites = int(graph.board.start[:, -1].sum())
    phase = first(graph.share.shape[0], sites + APART)
    # what lies behind the room of a member keeps it out of the others' cache lines
    return CountedMemory(phase, np.zeros((team, 2 * _STRETCH + 64), np.uint8))


@implement(sums_up, CountedUniform)
@implement(sums_up, CountedPlanes)
def _adds(graph: Any) -> bool:
    return True


@inlined
def _missing(row: Row) -> Integer:
    """Return how many rows a row lacks above, below, in front and behind."""
    return (
        _U(row.above == NOWHERE)
        + _U(row.below == NOWHERE)
        + _U(row.front == NOWHERE)
        + _U(row.back == NOWHERE)
    )


@inlined
def _look_around(board: Board, row: Row, j: Integer, x: State) -> tuple[Integer, Integer]:
    """Return how many neighbours of site j of a row are in state 1, and how many there are."""
    count, degree = _ZERO, _U(4) - _missing(row)
    for place in (row.above, row.below, row.front, row.back):
        if place != NOWHERE:
            count += _U(x[place + j])
    for side in (left_of(row, board.wrap_2, j), right_of(row, board.wrap_2, j)):
        if side != NOWHERE:
            count += _U(x[side])
            degree += _ONE
    return count, degree


@generic
def herd_plane(
    graph: Any,
    degree: Integer,
    c: Integer,
    p: Integer,
    count: Integer,
    memory: CountedMemory,
    room: NDArray[np.uint8],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    """Let the weights for c neighbours choose, for those of the sites p, ... that have so many."""
    raise NotImplementedError


@implement(herd_plane, CountedUniform)
def _herd_uniform(
    graph: CountedUniform,
    degree: Integer,
    c: Integer,
    p: Integer,
    count: Integer,
    memory: CountedMemory,
    room: NDArray[np.uint8],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    own: Any = graph.share[degree, c]
    _herd_alike(memory.phase[c], p, count, _U8(c), own, room)
    if keep:
        probability = F(own) * _TO_UNIT
        for i in range(count):
            sums[p + i] += probability if room[i] == _U8(c) else F(0.0)


@called
def _herd_alike(
    phase: NDArray[np.uint32],
    p: Integer,
    count: Integer,
    c: np.uint8,
    own: np.uint32,
    room: NDArray[np.uint8],
) -> None:
    for i in range(_U(count)):
        old = phase[p + i]
        new = _U32(old + (own if room[i] == c else _U32(0)))
        phase[p + i] = new
        room[_STRETCH + i] |= _U8(new < old)


@implement(herd_plane, CountedPlanes)
def _herd_planes(
    graph: CountedPlanes,
    degree: Integer,
    c: Integer,
    p: Integer,
    count: Integer,
    memory: CountedMemory,
    room: NDArray[np.uint8],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    _herd_each(memory.phase[c], p, count, _U8(c), graph.share[c], room)
    if keep:
        own = graph.share[c]
        for i in range(count):
            probability = F(own[p + i]) * _TO_UNIT
            sums[p + i] += probability if room[i] == _U8(c) else F(0.0)


@called
def _herd_each(
    phase: NDArray[np.uint32],
    p: Integer,
    count: Integer,
    c: np.uint8,
    own: NDArray[np.uint32],
    room: NDArray[np.uint8],
) -> None:
    for i in range(_U(count)):
        old, part = phase[p + i], own[p + i]
        new = _U32(old + (part if room[i] == c else _U32(0)))
        phase[p + i] = new
        room[_STRETCH + i] |= _U8(new < old)


@called
def _count_neighbours(board: Board, row: Row, j: Integer, count: Integer, x: State, room: Any) -> Integer:
    """Write how many neighbours of sites of a row are in state 1; return which numbers occur, as bits."""
    side = row.beside + j + row.shift - _ONE
    above, below = or_own(row.above, row) + j, or_own(row.below, row) + j
    up, down = np.int8(row.above != NOWHERE), np.int8(row.below != NOWHERE)
    for i in range(count):
        room[i] = _U8(x[side + i] + x[side + _ONE + i] + (x[above + i] & up) + (x[below + i] & down))
    if board.size_0 > 1:
        front, back = or_own(row.front, row) + j, or_own(row.back, row) + j
        ahead, behind = np.int8(row.front != NOWHERE), np.int8(row.back != NOWHERE)
        for i in range(count):
            room[i] += _U8((x[front + i] & ahead) + (x[back + i] & behind))
    found = _U8(0)
    for i in range(count):
        room[_STRETCH + i] = 0
        found |= _U8(_U8(1) << room[i])
    return found


@inlined
def _herd_inside(
    graph: Any,
    row: Row,
    j: Integer,
    count: Integer,
    x: State,
    memory: CountedMemory,
    room: NDArray[np.uint8],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    """Update sites of a row that have neighbours on both sides."""
    degree = _U(6) - _missing(row)
    for done in range(_ZERO, count, _U(_STRETCH)):
        many, p = min(_U(_STRETCH), count - done), row.own + j + done
        found = _count_neighbours(graph.board, row, j + done, many, x, room)
        for c in range(_U(memory.phase.shape[0])):
            if (found >> _U8(c)) & _U8(1):
                herd_plane(graph, degree, c, p, many, memory, room, sums, keep)
        for i in range(many):
            x[p + i] = room[_STRETCH + i]


@inlined
def _herd_single(
    graph: Any,
    row: Row,
    j: Integer,
    x: State,
    memory: CountedMemory,
    room: NDArray[np.uint8],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    """Update site j of a row, wherever it stands."""
    count, degree = _look_around(graph.board, row, j, x)
    room[0], room[_STRETCH] = _U8(count), _U8(0)
    herd_plane(graph, degree, count, row.own + j, _ONE, memory, room, sums, keep)
    x[row.own + j] = room[_STRETCH]


@implement(walk, HerdedParameters, CountedUniform)
@implement(walk, HerdedParameters, CountedPlanes)
def _walk_counted(
    kernel: HerdedParameters,
    graph: Any,
    schedule: Any,
    memory: CountedMemory,
    x: State,
    order: NDArray[np.int32],
    where: Integer,
    stop: Integer,
    turn: Integer,
    rng: Words,
    cond: NDArray[np.float32],
    keep: bool,
    team: Team,
) -> Words:
    room, board = memory.room[team.member], graph.board
    rows = board.start.shape[1] - 1
    even = _U(board.start[0, rows])
    for color in range(2):
        off = even * _U(color)
        low, high = max(where, off), min(stop, off + _U(board.start[color, rows]))
        if low < high:
            begin, end = share(low - off, high - off, BLOCK, team)
            at, last = max(low, off + begin * _U(BLOCK)), min(high, off + end * _U(BLOCK))
            row = first_row(board.start[color], at - off)
            while at < last:
                place = find_row(board, color, row)
                until = min(last, place.own + place.size)
                low_j, high_j = at - place.own, until - place.own
                inner, outer = inner_part(place, low_j, high_j)
                if inner < outer:
                    _herd_inside(graph, place, inner, outer - inner, x, memory, room, cond, keep)
                for j in range(low_j, min(inner, high_j)):
                    _herd_single(graph, place, j, x, memory, room, cond, keep)
                for j in range(max(inner, outer), high_j):
                    _herd_single(graph, place, j, x, memory, room, cond, keep)
                at = until
                row += 1
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    return rng


@generic
def base_at(graph: Any, degree: Integer, p: Integer) -> float:
    """Return the log-odds of a site none of whose neighbours is in state 1."""
    raise NotImplementedError


@implement(base_at, CountedUniform)
def _base_uniform(graph: CountedUniform, degree: Integer, p: Integer) -> float:
    base: Any = graph.field - 0.5 * graph.coupling * degree
    return base  # type: ignore[no-any-return]


@implement(base_at, CountedPlanes)
def _base_plane(graph: CountedPlanes, degree: Integer, p: Integer) -> float:
    base: Any = graph.base[p]
    return base  # type: ignore[no-any-return]


@implement(log_potential, CountedUniform)
@implement(log_potential, CountedPlanes)
def _log_potential(graph: Any, x: State) -> float:
    # in spins: every pair has one even site, the fields of odd ones are left
    board, total = graph.board, 0.0
    for row in range(board.start.shape[1] - 1):
        for color in range(2):
            place = find_row(board, color, row)
            for j in range(place.size):
                count, degree = _look_around(board, place, j, x)
                met = 1.0 * count if color == 0 else 0.5 * degree
                odds = base_at(graph, degree, place.own + j) + graph.coupling * met
                total += (x[place.own + j] - 0.5) * odds
    return total
