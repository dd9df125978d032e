"""The loop over a lattice in checkerboard order, a row of one color at a time.

A site of one color has its neighbours in the other: those before and after it are adjacent in the
other color's part of the same row, the rest at the same position of the neighbouring rows. So adjacent sites
depend on contiguous arrays, and loops over them compile to vector instructions.

:func:`look_inside` and :func:`look_single` write what a board computes from the neighbours of up to BLOCK sites to a
buffer, from which :func:`draw_block` draws the sites. The memory of a chain has one such buffer, and as many random
words, for each member of a team. Herded boards use no random numbers and move sites while they read the neighbours
(:mod:`gibbsite.kernels.batched.herded_board`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Floats32, Ints
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, called, generic, inlined
from gibbsite._numba.random.generators import BLOCK, WORDS, Words, fill_keyed
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import Triple
from gibbsite.kernels.base import Span
from gibbsite.kernels.batched.base import PackedModel, Parity
from gibbsite.kernels.batched.colored import counters, share

_U = np.uintp
_ZERO, _ONE = np.uintp(0), np.uintp(1)


class BoardShape(NamedTuple):
    """The geometry: sizes, periodic or not, and where the rows of both colors begin (2, rows + 1)."""

    size_0: int
    size_1: int
    size_2: int
    wrap_0: int
    wrap_1: int
    wrap_2: int
    start: Ints


def pack_two_colors(graph: Graph, arrays: Any, order: Parity) -> PackedModel:
    """Return a lattice laid out like a checkerboard; its constant is that of the graph."""
    return PackedModel(arrays, order, graph.n_sites // 2, graph.log_offset)


def takes_two_colors(shape: Triple, wraps: Triple) -> bool:
    """Return whether even sites have odd neighbours only: no periodic axis has an odd size."""
    return not any(wrap and size % 2 for size, wrap in zip(shape, wraps, strict=True))


def n_directions(shape: Triple) -> int:
    """Return the number of directions in which a site of a board may have neighbours."""
    return 6 if shape[0] > 1 else 4


def toward_neighbours(couplings: Sequence[Floats], shape: Triple, wraps: Triple) -> Iterator[Floats]:
    """Yield the couplings of all sites by direction: before and after along the last axis, then the others.

    Sites are in the model's order; the coupling is zero where there is no neighbour.
    """
    for axis in range(2, 2 - n_directions(shape) // 2, -1):
        after = np.broadcast_to(couplings[axis], math.prod(shape)).reshape(shape).copy()
        if not wraps[axis]:
            np.moveaxis(after, axis, 0)[-1] = 0.0  # the last layer has no successor
        yield np.roll(after, 1, axis)
        yield after


class Row(NamedTuple):
    """Positions of one color's part of a row and of its neighbours, NOWHERE if there are none.

    ``own`` is the position of its first site, in column ``shift`` (0 or 1), ``beside`` that of the first site of the
    other color in the same row; ``size`` and ``size_beside`` are the numbers of sites.
    """

    own: Integer
    size: Integer
    shift: Integer
    beside: Integer
    size_beside: Integer
    above: Integer
    below: Integer
    front: Integer
    back: Integer


NOWHERE = np.uintp(2**64 - 1)


@inlined
def find_row(board: BoardShape, color: Integer, row: Integer) -> Row:
    """Return the positions of a row of a color and of its neighbours."""
    other = 1 - color
    here, there = board.start[color], board.start[other]
    even = _U(board.start[0, board.start.shape[1] - 1])
    off, off_other = even * _U(color), even * _U(other)
    plane = row // board.size_1
    line = row - plane * board.size_1
    above, below, front, back = NOWHERE, NOWHERE, NOWHERE, NOWHERE
    if line > 0:
        above = off_other + _U(there[row - 1])
    elif board.wrap_1:
        above = off_other + _U(there[row + board.size_1 - 1])
    if line < board.size_1 - 1:
        below = off_other + _U(there[row + 1])
    elif board.wrap_1:
        below = off_other + _U(there[row - board.size_1 + 1])
    if plane > 0:
        front = off_other + _U(there[row - board.size_1])
    elif board.wrap_0:
        front = off_other + _U(there[row + (board.size_0 - 1) * board.size_1])
    if plane < board.size_0 - 1:
        back = off_other + _U(there[row + board.size_1])
    elif board.wrap_0:
        back = off_other + _U(there[row - (board.size_0 - 1) * board.size_1])
    return Row(
        off + _U(here[row]),
        _U(here[row + 1] - here[row]),
        _U((plane + line + color) & 1),
        off_other + _U(there[row]),
        _U(there[row + 1] - there[row]),
        above,
        below,
        front,
        back,
    )


@inlined
def left_of(row: Row, wrap: int, j: Integer) -> Integer:
    """Return the position of the left neighbour of site j of a row."""
    if j + row.shift > _ZERO:
        return row.beside + j + row.shift - _ONE
    return row.beside + row.size_beside - _ONE if wrap else NOWHERE


@inlined
def right_of(row: Row, wrap: int, j: Integer) -> Integer:
    """Return the position of the right neighbour of site j of a row."""
    if j + row.shift < row.size_beside:
        return row.beside + j + row.shift
    return row.beside if wrap else NOWHERE


@inlined
def inner_part(row: Row, low: Integer, high: Integer) -> tuple[Integer, Integer]:
    """Return the range of the sites low to high that have adjacent neighbours on both sides."""
    if row.shift == _ZERO:
        low = max(low, _ONE)
    if row.size + row.shift > row.size_beside:
        high = min(high, row.size - _ONE)
    return low, max(low, high)


@inlined
def or_own(place: Integer, row: Row) -> Integer:
    """Return where a row begins, or a place to read instead if it is missing; values read there must not be used."""
    return row.own if place == NOWHERE else place


@generic
def look_inside(arrays: Any, row: Row, j: Integer, count: Integer, x: Codes, room: Any, at: Integer) -> None:
    """Read the neighbours of ``count`` sites from j on, all inside a row; write to the buffer from ``at`` on."""
    raise NotImplementedError


@generic
def look_single(arrays: Any, row: Row, j: Integer, x: Codes, room: Any, at: Integer) -> None:
    """Read the neighbours of site j of a row, which may be at an end; write entry ``at`` of the buffer."""
    raise NotImplementedError


class Block(NamedTuple):
    """The ``count`` sites of a board from ``first`` on, whose random words a member of a team has from ``at`` on."""

    member: Integer
    at: Integer
    first: Integer
    count: Integer


@generic
def draw_block(arrays: Any, memory: Any, block: Block, x: Codes, sums: Floats32, keep: bool) -> None:
    """Draw the sites of a block from a member's buffer and its random words.

    The probabilities of their states are added to ``sums``, a plane for each state, if ``keep`` is set.
    """
    raise NotImplementedError


@called
def first_row(start: Ints, position: Integer) -> Integer:
    """Return the row that a position of a color is in, by bisection."""
    low, high = 0, start.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if start[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@inlined
def look_along(arrays: Any, color: Integer, row: Integer, begin: Integer, end: Integer, x: Codes, room: Any) -> Integer:
    """Read the neighbours of the sites begin to end, the first of them in ``row``; return the row after the last.

    Entries of the buffer are counted from ``begin``.
    """
    at = begin
    while at < end:
        place = find_row(arrays.board, color, row)
        until = min(end, place.own + place.size)
        low, high = at - place.own, until - place.own
        inner, outer = inner_part(place, low, high)
        if inner < outer:
            look_inside(arrays, place, inner, outer - inner, x, room, place.own + inner - begin)
        for j in range(low, min(inner, high)):
            look_single(arrays, place, j, x, room, place.own + j - begin)
        for j in range(max(inner, outer), high):
            look_single(arrays, place, j, x, room, place.own + j - begin)
        at = until
        if at == place.own + place.size:
            row += 1
    return row


def move_board(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Codes, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Draw the sites of a board, row by row of one color; the move of every heat bath on a board."""
    where, stop, team = span.where, span.stop, span.team
    words, room = memory.words[team.member], memory.room[team.member]
    board = arrays.board
    rows = board.start.shape[1] - 1
    even = _U(board.start[0, rows])
    for color in range(2):
        off = even * _U(color)
        low, high = max(where, off), min(stop, off + _U(board.start[color, rows]))
        if low < high:
            begin, end = share(low - off, high - off, BLOCK, team)
            row = first_row(board.start[color], max(low, off + begin * _U(BLOCK)) - off)
            for block in range(begin, end):
                base = off + block * _U(BLOCK)
                a, b = max(low, base), min(high, base + _U(BLOCK))
                row = look_along(arrays, color, row, a, b, x, room)
                lanes = counters(base, off + _U(board.start[color, rows]), BLOCK, 4)
                fill_keyed(words, memory.key[0], memory.key[1], span.turn, base, lanes, WORDS)
                draw_block(arrays, memory, Block(team.member, a - base, a, b - a), x, cond, keep)
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    return rng
