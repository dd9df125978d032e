"""Gibbs sampling of lattices in checkerboard order, a row of one color at a time.

A site of one color has its neighbours in the other: those before and after it stand side by side in the
other color's part of the same row, the rest at the same place of the neighbouring rows. So the log-odds of a
stretch of a row are sums of stretches, and compile to vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._intrinsic import wait_for_all
from gibbsite._jit import Integer, called, generic, implement, inlined
from gibbsite._random import BLOCK, WORDS, Words, fill_keyed
from gibbsite.graph.checkered import Board, PlaneBoard, UniformBoard
from gibbsite.kernel._local import log_potential
from gibbsite.kernel.base import Team, sums_up, walk
from gibbsite.kernel.colored import KeyedMemory, counters, share
from gibbsite.kernel.gibbs import GibbsParameters
from gibbsite.kernel.heatbath import settle

_U = np.uintp
_ZERO, _ONE = np.uintp(0), np.uintp(1)
F = np.float32
_HALF = F(0.5)
Odds = NDArray[np.float32]
State = NDArray[np.int8]


class Row(NamedTuple):
    """Where the neighbours of one color's part of a row stand; NOWHERE if there are none.

    ``own`` is the position of its first site, in column ``shift`` (0 or 1), ``beside`` the first of the other
    color in the same row, ``size`` and ``size_beside`` how many there are.
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
def find_row(board: Board, color: Integer, row: Integer) -> Row:
    """Return where a row of a color and its neighbours are."""
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


@generic
def odds_at(graph: Any, row: Row, j: Integer, x: State) -> Any:
    """Return the log-odds of site j of a row, wherever it stands."""
    raise NotImplementedError


@generic
def sum_inside(graph: Any, row: Row, j: Integer, count: Integer, x: State, odds: Odds, at: Integer) -> None:
    """Write the log-odds of ``count`` sites of a row from site j on, none of them at an end, to ``odds``."""
    raise NotImplementedError


@implement(sums_up, UniformBoard)
@implement(sums_up, PlaneBoard)
def _adds(graph: Any) -> bool:
    return True


@called
def _first_row(start: NDArray[np.int64], position: Integer) -> Integer:
    """Return the row that a position of a color is in, by bisection."""
    low, high = 0, start.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if start[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@implement(walk, GibbsParameters, UniformBoard)
@implement(walk, GibbsParameters, PlaneBoard)
def _walk_board(
    kernel: GibbsParameters,
    graph: Any,
    schedule: Any,
    memory: KeyedMemory,
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
    words, odds = memory.words[team.member], memory.odds[team.member]
    board = graph.board
    rows = board.start.shape[1] - 1
    even = _U(board.start[0, rows])
    for color in range(2):
        off = even * _U(color)
        low, high = max(where, off), min(stop, off + _U(board.start[color, rows]))
        if low < high:
            begin, end = share(low - off, high - off, BLOCK, team)
            row = _first_row(board.start[color], max(low, off + begin * _U(BLOCK)) - off)
            for block in range(begin, end):
                base = off + block * _U(BLOCK)
                a, b = max(low, base), min(high, base + _U(BLOCK))
                at = a
                while at < b:
                    place = find_row(board, color, row)
                    until = min(b, place.own + place.size)
                    low_j, high_j = at - place.own, until - place.own
                    inner, outer = inner_part(place, low_j, high_j)
                    if inner < outer:
                        sum_inside(graph, place, inner, outer - inner, x, odds, place.own + inner - a)
                    for j in range(low_j, min(inner, high_j)):
                        odds[place.own + j - a] = odds_at(graph, place, j, x)
                    for j in range(max(inner, outer), high_j):
                        odds[place.own + j - a] = odds_at(graph, place, j, x)
                    at = until
                    if at == place.own + place.size:
                        row += 1
                lanes = counters(base, off + _U(board.start[color, rows]), BLOCK, 4)
                fill_keyed(words, memory.key[0], memory.key[1], turn, base, lanes, WORDS)
                settle(odds, words, a - base, x, a, b - a, cond, keep)
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    return rng


@inlined
def _before(row: Row, wrap: int, j: Integer) -> Integer:
    """Return the neighbour of site j of a row on the left."""
    if j + row.shift > _ZERO:
        return row.beside + j + row.shift - _ONE
    return row.beside + row.size_beside - _ONE if wrap else NOWHERE


@inlined
def _after(row: Row, wrap: int, j: Integer) -> Integer:
    """Return the neighbour of site j of a row on the right."""
    if j + row.shift < row.size_beside:
        return row.beside + j + row.shift
    return row.beside if wrap else NOWHERE


@inlined
def inner_part(row: Row, low: Integer, high: Integer) -> tuple[Integer, Integer]:
    """Return which of the sites low to high have neighbours on both sides that are next to each other."""
    if row.shift == _ZERO:
        low = max(low, _ONE)
    if row.size + row.shift > row.size_beside:
        high = min(high, row.size - _ONE)
    return low, max(low, high)


@inlined
def _or_own(place: Integer, row: Row) -> Integer:
    """Return a row to read instead of a missing one; its weight is zero."""
    return row.own if place == NOWHERE else place


@implement(odds_at, PlaneBoard)
def _odds_plane(graph: PlaneBoard, row: Row, j: Integer, x: State) -> Any:
    p = row.own + j
    coupling, board = graph.coupling, graph.board
    total = graph.field[p]
    side = _before(row, board.wrap_2, j)
    if side != NOWHERE:
        total += coupling[0, p] * F(x[side])
    side = _after(row, board.wrap_2, j)
    if side != NOWHERE:
        total += coupling[1, p] * F(x[side])
    total += coupling[2, p] * F(x[_or_own(row.above, row) + j]) + coupling[3, p] * F(
        x[_or_own(row.below, row) + j]
    )
    if board.size_0 > 1:
        total += coupling[4, p] * F(x[_or_own(row.front, row) + j])
        total += coupling[5, p] * F(x[_or_own(row.back, row) + j])
    return total


@implement(sum_inside, PlaneBoard)
def _sum_planes(
    graph: PlaneBoard, row: Row, j: Integer, count: Integer, x: State, odds: Odds, at: Integer
) -> None:
    p = row.own + j
    coupling = graph.coupling
    side = row.beside + j + row.shift - _ONE
    above, below = _or_own(row.above, row) + j, _or_own(row.below, row) + j
    _add_planes(odds, at, count, graph.field, coupling, p, x, side, above, below)
    if graph.board.size_0 > 1:
        front, back = _or_own(row.front, row) + j, _or_own(row.back, row) + j
        for i in range(count):
            odds[at + i] += coupling[4, p + i] * F(x[front + i]) + coupling[5, p + i] * F(x[back + i])


@inlined
def _add_planes(
    odds: Odds,
    at: Integer,
    count: Integer,
    field: Odds,
    coupling: NDArray[np.float32],
    p: Integer,
    x: State,
    side: Integer,
    above: Integer,
    below: Integer,
) -> None:
    """Sum up fields and four neighbours; the ones before are at ``side``, those after one further."""
    before, after, up, down = coupling[0], coupling[1], coupling[2], coupling[3]
    for i in range(count):
        odds[at + i] = (
            field[p + i]
            + before[p + i] * F(x[side + i])
            + after[p + i] * F(x[side + _ONE + i])
            + up[p + i] * F(x[above + i])
            + down[p + i] * F(x[below + i])
        )


@inlined
def _weight(place: Integer, coupling: float) -> Any:
    """Return the coupling to a row, zero to a missing one."""
    return F(0.0) if place == NOWHERE else F(coupling)


@implement(odds_at, UniformBoard)
def _odds_uniform(graph: UniformBoard, row: Row, j: Integer, x: State) -> Any:
    total = F(graph.field)
    side = _before(row, graph.board.wrap_2, j)
    if side != NOWHERE:
        total += F(graph.coupling_2) * (F(x[side]) - _HALF)
    side = _after(row, graph.board.wrap_2, j)
    if side != NOWHERE:
        total += F(graph.coupling_2) * (F(x[side]) - _HALF)
    total += _weight(row.above, graph.coupling_1) * (F(x[_or_own(row.above, row) + j]) - _HALF)
    total += _weight(row.below, graph.coupling_1) * (F(x[_or_own(row.below, row) + j]) - _HALF)
    total += _weight(row.front, graph.coupling_0) * (F(x[_or_own(row.front, row) + j]) - _HALF)
    total += _weight(row.back, graph.coupling_0) * (F(x[_or_own(row.back, row) + j]) - _HALF)
    return total


@implement(sum_inside, UniformBoard)
def _sum_uniform(
    graph: UniformBoard, row: Row, j: Integer, count: Integer, x: State, odds: Odds, at: Integer
) -> None:
    along = F(graph.coupling_2)
    up, down = _weight(row.above, graph.coupling_1), _weight(row.below, graph.coupling_1)
    above, below = _or_own(row.above, row) + j, _or_own(row.below, row) + j
    side = row.beside + j + row.shift - _ONE
    base = F(graph.field) - along - _HALF * (up + down)
    if up == along and down == along:
        _count_four(odds, at, count, base, along, x, side, above, below)
    else:
        for i in range(count):
            odds[at + i] = (
                base
                + along * F(x[side + i] + x[side + _ONE + i])
                + up * F(x[above + i])
                + down * F(x[below + i])
            )
    if graph.board.size_0 > 1:
        ahead, behind = _weight(row.front, graph.coupling_0), _weight(row.back, graph.coupling_0)
        front, back = _or_own(row.front, row) + j, _or_own(row.back, row) + j
        rest = _HALF * (ahead + behind)
        for i in range(count):
            odds[at + i] += ahead * F(x[front + i]) + behind * F(x[back + i]) - rest


@called
def _count_four(
    odds: Odds,
    at: Integer,
    count: Integer,
    base: Any,
    coupling: Any,
    x: State,
    side: Integer,
    above: Integer,
    below: Integer,
) -> None:
    """Write log-odds that depend on the number of neighbours in state 1."""
    for i in range(count):
        ups = np.int8(x[side + i] + x[side + _ONE + i] + x[above + i] + x[below + i])
        odds[at + i] = base + coupling * F(ups)


@generic
def field_at(graph: Any, p: Integer) -> float:
    """Return the log-odds of a site without neighbours."""
    raise NotImplementedError


@implement(field_at, UniformBoard)
def _field_uniform(graph: UniformBoard, p: Integer) -> float:
    return graph.field


@implement(field_at, PlaneBoard)
def _field_plane(graph: PlaneBoard, p: Integer) -> float:
    total = np.float64(graph.field[p])
    for d in range(graph.coupling.shape[0]):
        total += 0.5 * graph.coupling[d, p]
    return total


@implement(log_potential, UniformBoard)
@implement(log_potential, PlaneBoard)
def _log_potential(graph: Any, x: State) -> float:
    # in spins: every pair has one even site, the fields of odd ones are left
    board = graph.board
    total = 0.0
    for row in range(board.start.shape[1] - 1):
        even, odd = find_row(board, 0, row), find_row(board, 1, row)
        for j in range(even.size):
            total += (x[even.own + j] - 0.5) * odds_at(graph, even, j, x)
        for j in range(odd.size):
            total += (x[odd.own + j] - 0.5) * field_at(graph, odd.own + j)
    return total
