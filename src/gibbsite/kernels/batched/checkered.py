"""Gibbs sampling of binary lattices in checkerboard order, a row of one color at a time.

All even sites come before all odd ones, each color row by row; rows run along the last axis. In this order the
neighbours of adjacent sites of a row are adjacent as well, so the log-odds of a row are sums of contiguous
arrays and no neighbour is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats32, Ints8
from gibbsite._numba.jit import Integer, called, generic, implement, inlined
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.batched.base import PackedModel, Parity, register_batched
from gibbsite.kernels.batched.board import (
    NOWHERE,
    Block,
    BoardShape,
    Row,
    draw_block,
    find_row,
    left_of,
    look_inside,
    look_single,
    move_board,
    n_directions,
    or_own,
    pack_two_colors,
    right_of,
    takes_two_colors,
    toward_neighbours,
)
from gibbsite.kernels.batched.colored import MOST_ODDS
from gibbsite.kernels.batched.heatbath import HeatBath, KeyedMemory, draw_at_once

if TYPE_CHECKING:
    from gibbsite.models import Model


class UniformBoard(NamedTuple):
    """One coupling per axis and one field for all sites; log-odds ``field + sum coupling (x - 1/2)``."""

    board: BoardShape
    coupling_0: float
    coupling_1: float
    coupling_2: float
    field: float


class PlaneBoard(NamedTuple):
    """A field and couplings for each site: log-odds ``field + sum of coupling * x``.

    Row d of ``coupling`` belongs to one direction: before and after along the last axis, then the middle and
    the first axis; zero where there is no neighbour. Sites are in checkerboard order.
    """

    board: BoardShape
    coupling: Floats32
    field: Floats32


def pack_checkerboard(graph: Graph) -> PackedModel | None:
    """Lay a lattice out by color; None if two colors do not suffice, or couplings are too large."""
    g = graph.arrays
    if not isinstance(g, LatticeGraph):
        return None
    shape, wraps = (g.size_0, g.size_1, g.size_2), (g.wrap_0, g.wrap_1, g.wrap_2)
    if not takes_two_colors(shape, wraps):
        return None
    couplings, steps = (g.coupling_0, g.coupling_1, g.coupling_2), (g.step_0, g.step_1, g.step_2)
    reach = 2 * np.abs(g.field).max() + sum(4 * np.abs(w).max() for w in couplings)
    if not reach <= MOST_ODDS:
        return None
    order = Parity(shape)
    board = BoardShape(*shape, *wraps, order.starts())
    arrays: UniformBoard | PlaneBoard
    if not any(steps) and not g.step_field:
        w0, w1, w2 = (4.0 * float(w[0]) for w in couplings)
        arrays = UniformBoard(board, w0, w1, w2, 2.0 * float(g.field[0]))
    else:
        planes = np.zeros((n_directions(shape), graph.n_sites), np.float32)
        field = np.broadcast_to(2.0 * g.field, graph.n_sites).reshape(shape).copy()
        for d, weight in enumerate(toward_neighbours([4.0 * w for w in couplings], shape, wraps)):
            field -= 0.5 * weight
            planes[d] = order.pack(weight.ravel())
        arrays = PlaneBoard(board, planes, order.pack(field.ravel()).astype(np.float32))
    return pack_two_colors(graph, arrays, order)


_ONE = np.uintp(1)
F = np.float32
_HALF = F(0.5)


@register_batched(kernel="Gibbs", kinds=("lattice",))
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
    """Return the log-odds of site j of a row, which may be at an end."""
    raise NotImplementedError


@implement(look_single, UniformBoard)
@implement(look_single, PlaneBoard)
def _odds_single(arrays: Any, row: Row, j: Integer, x: Ints8, odds: Floats32, at: Integer) -> None:
    odds[at] = odds_at(arrays, row, j, x)


@implement(draw_block, UniformBoard)
@implement(draw_block, PlaneBoard)
def _settle_block(arrays: Any, memory: KeyedMemory, block: Block, x: Ints8, sums: Floats32, keep: bool) -> None:
    member, at, first, count = block.member, block.at, block.first, block.count
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
    """Add up the fields and four neighbours; left neighbours begin at ``side``, right ones one entry later."""
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
    """Return the coupling to a row, or zero if the row is missing."""
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
    # in spins: even sites count every pair, so odd sites add only their fields
    board = arrays.board
    total = 0.0
    for row in range(board.start.shape[1] - 1):
        for color in range(2):
            place = find_row(board, color, row)
            for j in range(place.size):
                odds = odds_at(arrays, place, j, x) if color == 0 else field_at(arrays, place.own + j)
                total += (x[place.own + j] - 0.5) * odds
    return total
