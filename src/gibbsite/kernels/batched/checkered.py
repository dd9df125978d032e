"""Binary lattices in checkerboard order: the log-odds of a stretch of a row are sums of stretches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats32, Ints8
from gibbsite._numba.jit import Integer, called, generic, implement, inlined
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.layouts.checkered import PlaneBoard, UniformBoard, pack_checkerboard
from gibbsite.graphs.layouts.site_order import PackedModel
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.batched.base import register_way
from gibbsite.kernels.batched.board import (
    NOWHERE,
    Row,
    draw_block,
    find_row,
    left_of,
    look_inside,
    look_single,
    move_board,
    or_own,
    right_of,
)
from gibbsite.kernels.batched.heatbath import draw_at_once
from gibbsite.kernels.batched.keyed import HeatBath, KeyedMemory

if TYPE_CHECKING:
    from gibbsite.models import Model

_ONE = np.uintp(1)
F = np.float32
_HALF = F(0.5)


@register_way
class Checkerboard(HeatBath):
    """The heat bath on binary lattices."""

    name, form, rank = "checkerboard", "checkered", 10
    layouts = (UniformBoard, PlaneBoard)
    move = staticmethod(move_board)

    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a lattice out, if two colors suffice for it and its couplings allow it."""
        return pack_checkerboard(graph)


@generic
def odds_at(arrays: Any, row: Row, j: Integer, x: Ints8) -> Any:
    """Return the log-odds of site j of a row, wherever it stands."""
    raise NotImplementedError


@implement(look_single, UniformBoard)
@implement(look_single, PlaneBoard)
def _odds_single(arrays: Any, row: Row, j: Integer, x: Ints8, odds: Floats32, at: Integer) -> None:
    odds[at] = odds_at(arrays, row, j, x)


@implement(draw_block, UniformBoard)
@implement(draw_block, PlaneBoard)
def _settle_block(
    arrays: Any,
    memory: KeyedMemory,
    member: Integer,
    at: Integer,
    x: Ints8,
    first: Integer,
    count: Integer,
    sums: Floats32,
    keep: bool,
) -> None:
    draw_at_once(memory.room[member], memory.words[member], at, x, first, count, sums, keep)


@implement(odds_at, PlaneBoard)
def _odds_plane(arrays: PlaneBoard, row: Row, j: Integer, x: Ints8) -> Any:
    p = row.own + j
    coupling, board = arrays.coupling, arrays.board
    total = arrays.field[p]
    side = left_of(row, board.wrap_2, j)
    if side != NOWHERE:
        total += coupling[0, p] * F(x[side])
    side = right_of(row, board.wrap_2, j)
    if side != NOWHERE:
        total += coupling[1, p] * F(x[side])
    total += coupling[2, p] * F(x[or_own(row.above, row) + j]) + coupling[3, p] * F(x[or_own(row.below, row) + j])
    if board.size_0 > 1:
        total += coupling[4, p] * F(x[or_own(row.front, row) + j])
        total += coupling[5, p] * F(x[or_own(row.back, row) + j])
    return total


@implement(look_inside, PlaneBoard)
def _sum_planes(
    arrays: PlaneBoard, row: Row, j: Integer, count: Integer, x: Ints8, odds: Floats32, at: Integer
) -> None:
    p = row.own + j
    coupling = arrays.coupling
    side = row.beside + j + row.shift - _ONE
    above, below = or_own(row.above, row) + j, or_own(row.below, row) + j
    _add_planes(odds, at, count, arrays.field, coupling, p, x, side, above, below)
    if arrays.board.size_0 > 1:
        front, back = or_own(row.front, row) + j, or_own(row.back, row) + j
        for i in range(count):
            odds[at + i] += coupling[4, p + i] * F(x[front + i]) + coupling[5, p + i] * F(x[back + i])


@inlined
def _add_planes(
    odds: Floats32,
    at: Integer,
    count: Integer,
    field: Floats32,
    coupling: Floats32,
    p: Integer,
    x: Ints8,
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
def _odds_uniform(arrays: UniformBoard, row: Row, j: Integer, x: Ints8) -> Any:
    total = F(arrays.field)
    side = left_of(row, arrays.board.wrap_2, j)
    if side != NOWHERE:
        total += F(arrays.coupling_2) * (F(x[side]) - _HALF)
    side = right_of(row, arrays.board.wrap_2, j)
    if side != NOWHERE:
        total += F(arrays.coupling_2) * (F(x[side]) - _HALF)
    total += _weight(row.above, arrays.coupling_1) * (F(x[or_own(row.above, row) + j]) - _HALF)
    total += _weight(row.below, arrays.coupling_1) * (F(x[or_own(row.below, row) + j]) - _HALF)
    total += _weight(row.front, arrays.coupling_0) * (F(x[or_own(row.front, row) + j]) - _HALF)
    total += _weight(row.back, arrays.coupling_0) * (F(x[or_own(row.back, row) + j]) - _HALF)
    return total


@implement(look_inside, UniformBoard)
def _sum_uniform(
    arrays: UniformBoard, row: Row, j: Integer, count: Integer, x: Ints8, odds: Floats32, at: Integer
) -> None:
    along = F(arrays.coupling_2)
    up, down = _weight(row.above, arrays.coupling_1), _weight(row.below, arrays.coupling_1)
    above, below = or_own(row.above, row) + j, or_own(row.below, row) + j
    side = row.beside + j + row.shift - _ONE
    base = F(arrays.field) - along - _HALF * (up + down)
    if up == along and down == along:
        _count_four(odds, at, count, base, along, x, side, above, below)
    else:
        for i in range(count):
            odds[at + i] = (
                base + along * F(x[side + i] + x[side + _ONE + i]) + up * F(x[above + i]) + down * F(x[below + i])
            )
    if arrays.board.size_0 > 1:
        ahead, behind = _weight(row.front, arrays.coupling_0), _weight(row.back, arrays.coupling_0)
        front, back = or_own(row.front, row) + j, or_own(row.back, row) + j
        rest = _HALF * (ahead + behind)
        for i in range(count):
            odds[at + i] += ahead * F(x[front + i]) + behind * F(x[back + i]) - rest


@called
def _count_four(
    odds: Floats32,
    at: Integer,
    count: Integer,
    base: Any,
    coupling: Any,
    x: Ints8,
    side: Integer,
    above: Integer,
    below: Integer,
) -> None:
    """Write log-odds that depend on the number of neighbours in state 1."""
    for i in range(count):
        ups = np.int8(x[side + i] + x[side + _ONE + i] + x[above + i] + x[below + i])
        odds[at + i] = base + coupling * F(ups)


@generic
def field_at(arrays: Any, p: Integer) -> float:
    """Return the log-odds of a site without neighbours."""
    raise NotImplementedError


@implement(field_at, UniformBoard)
def _field_uniform(arrays: UniformBoard, p: Integer) -> float:
    return arrays.field


@implement(field_at, PlaneBoard)
def _field_plane(arrays: PlaneBoard, p: Integer) -> float:
    total = np.float64(arrays.field[p])
    for d in range(arrays.coupling.shape[0]):
        total += 0.5 * arrays.coupling[d, p]
    return total


@implement(log_potential, UniformBoard)
@implement(log_potential, PlaneBoard)
def _log_potential(arrays: Any, x: Ints8) -> float:
    # in spins: every pair has one even site, the fields of odd ones are left
    board = arrays.board
    total = 0.0
    for row in range(board.start.shape[1] - 1):
        for color in range(2):
            place = find_row(board, color, row)
            for j in range(place.size):
                odds = odds_at(arrays, place, j, x) if color == 0 else field_at(arrays, place.own + j)
                total += (x[place.own + j] - 0.5) * odds
    return total
