"""Potts lattices in checkerboard order: the weights of a stretch of a row are products of stretches.

For each state in turn: where a neighbour is in that state, its factor counts, elsewhere one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, called, generic, implement, inlined
from gibbsite._random import BLOCK, chain_key
from gibbsite.graph.checkered_potts import PlanePotts, UniformPotts
from gibbsite.kernel._local import log_potential
from gibbsite.kernel.board import (
    NOWHERE,
    Row,
    find_row,
    left_of,
    or_own,
    right_of,
    settle_block,
    sum_inside,
    sum_single,
)
from gibbsite.kernel.colored import keyed_memory
from gibbsite.kernel.heatbath import settle_states

_ONE = np.uintp(1)
F = np.float32
State = NDArray[np.int16]
Weights = NDArray[np.float32]


class PottsMemory(NamedTuple):
    """The key of a chain; for each member of a team random words, and room for weights and their sums."""

    key: NDArray[np.uint32]
    words: NDArray[np.uint32]
    room: NDArray[np.float32]
    total: NDArray[np.float64]
    left: NDArray[np.float64]


@implement(keyed_memory, UniformPotts)
@implement(keyed_memory, PlanePotts)
def _potts_memory(graph: Any, stream: NDArray[np.uint64], team: int) -> PottsMemory:
    return PottsMemory(
        key=chain_key(stream),
        words=np.zeros((team, BLOCK), np.uint32),
        room=np.zeros((team, graph.weight.all.size, BLOCK), np.float32),
        total=np.zeros((team, BLOCK)),
        left=np.zeros((team, BLOCK)),
    )


@implement(settle_block, UniformPotts)
@implement(settle_block, PlanePotts)
def _settle_block(
    graph: Any,
    memory: PottsMemory,
    member: Integer,
    at: Integer,
    x: State,
    first: Integer,
    count: Integer,
    sums: NDArray[np.float64],
    keep: bool,
) -> None:
    room, words = memory.room[member], memory.words[member]
    total, left = memory.total[member], memory.left[member]
    settle_states(room, total, left, words, at, x, first, count, sums, keep)


# Directions, as in ``PlaneBoard.coupling``.
_LEFT, _RIGHT, _ABOVE, _BELOW, _FRONT, _BACK = range(6)


@generic
def factor_of(graph: Any, row: Row, direction: int, p: Integer) -> Any:
    """Return the factor of a neighbour in the same state, seen from position p of a row; 1 if it is missing.

    The first and the last site of a row may have no neighbour on one side: the caller knows.
    """
    raise NotImplementedError


@implement(factor_of, PlanePotts)
def _factor_plane(graph: PlanePotts, row: Row, direction: int, p: Integer) -> Any:
    return graph.factor[direction, p]


@implement(factor_of, UniformPotts)
def _factor_uniform(graph: UniformPotts, row: Row, direction: int, p: Integer) -> float:
    if direction < _ABOVE:
        return graph.factor_2
    if direction == _ABOVE:
        return _unless_missing(row.above, graph.factor_1)
    if direction == _BELOW:
        return _unless_missing(row.below, graph.factor_1)
    return _unless_missing(row.front if direction == _FRONT else row.back, graph.factor_0)


@inlined
def _unless_missing(place: Integer, factor: float) -> float:
    return 1.0 if place == NOWHERE else factor


@inlined
def _where(agree: bool, factor: Any) -> Any:
    """Return what a neighbour contributes."""
    return F(factor) if agree else F(1.0)


@implement(sum_inside, UniformPotts)
@implement(sum_inside, PlanePotts)
def _weigh_inside(
    graph: Any, row: Row, j: Integer, count: Integer, x: State, weight: Weights, at: Integer
) -> None:
    p = row.own + j
    left = row.beside + j + row.shift - _ONE
    right, above, below = left + _ONE, or_own(row.above, row) + j, or_own(row.below, row) + j
    front, back = or_own(row.front, row) + j, or_own(row.back, row) + j
    single = graph.weight
    for q in range(np.uintp(single.all.size)):
        plane, state, every = weight[q], np.int16(q), F(single.all[q])
        for i in range(count):
            sides = _where(x[left + i] == state, factor_of(graph, row, _LEFT, p + i)) * _where(
                x[right + i] == state, factor_of(graph, row, _RIGHT, p + i)
            )
            lines = _where(x[above + i] == state, factor_of(graph, row, _ABOVE, p + i)) * _where(
                x[below + i] == state, factor_of(graph, row, _BELOW, p + i)
            )
            plane[at + i] = every * sides * lines
        if graph.board.size_0 > 1:
            for i in range(count):
                planes = _where(x[front + i] == state, factor_of(graph, row, _FRONT, p + i)) * _where(
                    x[back + i] == state, factor_of(graph, row, _BACK, p + i)
                )
                plane[at + i] *= planes
        if single.own.shape[1] > 0:
            own = single.own[q]
            for i in range(count):
                plane[at + i] *= own[p + i]


@inlined
def _neighbour(graph: Any, row: Row, direction: int, j: Integer) -> Integer:
    """Return where the neighbour of site j of a row in a direction is, or NOWHERE."""
    if direction == _LEFT:
        return left_of(row, graph.board.wrap_2, j)
    if direction == _RIGHT:
        return right_of(row, graph.board.wrap_2, j)
    place = row.above
    if direction == _BELOW:
        place = row.below
    elif direction == _FRONT:
        place = row.front
    elif direction == _BACK:
        place = row.back
    return NOWHERE if place == NOWHERE else place + j


@implement(sum_single, UniformPotts)
@implement(sum_single, PlanePotts)
def _weigh_single(graph: Any, row: Row, j: Integer, x: State, weight: Weights, at: Integer) -> None:
    p = row.own + j
    for q in range(np.uintp(graph.weight.all.size)):
        weight[q, at] = F(single_weight(graph, p, q))
    for direction in range(6):
        place = _neighbour(graph, row, direction, j)
        if place != NOWHERE:
            weight[np.uintp(x[place]), at] *= F(factor_of(graph, row, direction, p))


@inlined
def single_weight(graph: Any, p: Integer, q: Integer) -> float:
    """Return the weight of state q at position p without neighbours."""
    weight = graph.weight.all[q]
    if graph.weight.own.shape[1] > 0:
        weight *= graph.weight.own[q, p]
    return weight  # type: ignore[no-any-return]


@implement(log_potential, UniformPotts)
@implement(log_potential, PlanePotts)
def _log_potential(graph: Any, x: State) -> float:
    # every pair has one even site; odd ones are left with their own weights
    board = graph.board
    total = 0.0
    for row in range(board.start.shape[1] - 1):
        for color in range(2):
            here = find_row(board, color, row)
            for j in range(here.size):
                p = here.own + j
                total += math.log(single_weight(graph, p, np.uintp(x[p])))
                if color == 0:
                    total += _log_pairs(graph, here, j, x)
    return total


@called
def _log_pairs(graph: Any, row: Row, j: Integer, x: State) -> float:
    """Return the log-potential of site j of a row with its neighbours."""
    product = 1.0
    for direction in range(6):
        place = _neighbour(graph, row, direction, j)
        if place != NOWHERE and x[place] == x[row.own + j]:
            product *= factor_of(graph, row, direction, row.own + j)
    return math.log(product)
