"""Gibbs sampling of Potts lattices in checkerboard order.

The weight of a state is the product of the site's own weight for it and of exp(coupling) for every neighbour in that
state. The states of the neighbours of a block of sites are copied first, so that they are contiguous for rows of any
length; missing neighbours get a state that does not exist. Then the weights of one state after another are multiplied,
direction by direction.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Floats, Floats32, Ints16, Words32
from gibbsite._numba.jit import Integer, called, generic, implement, inlined
from gibbsite._numba.random.generators import chain_key
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import three_axes
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import MOST_MEMBERS, Kernel
from gibbsite.kernels.batched.base import PackedModel, Parity, Streams, register_batched
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
    pack_two_colors,
    right_of,
    takes_two_colors,
    toward_neighbours,
)
from gibbsite.kernels.batched.colored import MOST_ODDS
from gibbsite.kernels.batched.heatbath import ROOM, HeatBath, draw_states_at_once

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, LatticeFactors, Model


class PottsWeights(NamedTuple):
    """Weights of single sites: ``all[q]`` for state q, times ``own[q, p]`` at position p unless ``own`` is empty."""

    all: Floats
    own: Floats32


class UniformPotts(NamedTuple):
    """One factor per axis for neighbours in the same state."""

    board: BoardShape
    factor_0: float
    factor_1: float
    factor_2: float
    weight: PottsWeights


class PlanePotts(NamedTuple):
    """Factors of each site, by direction as in ``PlaneBoard``; 1 where there is no neighbour."""

    board: BoardShape
    factor: Floats32
    weight: PottsWeights


def pack_potts_checkerboard(model: FactorGraph, graph: Graph) -> PackedModel | None:
    """Lay a Potts lattice out by color; None for other graphs, odd periodic lattices, or too large couplings.

    Impossible states have weight zero, which is exact. All other products stay within exp(64) of each other,
    far inside the range of 32-bit floats.
    """
    g = graph.arrays
    lattice = _only_lattice(model) if isinstance(g, PottsGraph) else None
    if lattice is None:
        return None
    shape, wraps, couplings = three_axes(lattice)
    logs = g.log_unary.reshape(graph.n_sites, -1)
    spread = -np.min(logs, where=np.isfinite(logs), initial=0.0)  # the largest log-weight of a site is zero
    reach = spread + sum(2 * np.abs(w).max() for w in couplings)
    if not takes_two_colors(shape, wraps) or not reach <= MOST_ODDS:
        return None
    order = Parity(shape)
    board = BoardShape(*shape, *wraps, order.starts())
    weight = _weights(logs, order)
    arrays: UniformPotts | PlanePotts
    if all(w.size == 1 for w in couplings):
        f0, f1, f2 = (float(np.exp(w[0])) for w in couplings)
        arrays = UniformPotts(board, f0, f1, f2, weight)
    else:
        factor = np.empty((n_directions(shape), graph.n_sites), np.float32)
        for d, coupling in enumerate(toward_neighbours(couplings, shape, wraps)):
            factor[d] = order.pack(np.exp(coupling).ravel())
        arrays = PlanePotts(board, factor, weight)
    return pack_two_colors(graph, arrays, order)


def _only_lattice(model: FactorGraph) -> LatticeFactors | None:
    """Return the lattice of agreements that contains all pairs of a model, or None."""
    from gibbsite.models.lattice import LatticeFactors

    pairs = [g for g in model.groups if isinstance(g, LatticeFactors) or (g.size and g.arity > 1)]
    if len(pairs) != 1 or not isinstance(pairs[0], LatticeFactors):
        return None
    lattice = pairs[0]
    return None if lattice.spin or len(lattice.shape) > 3 else lattice


def _weights(logs: Floats, order: Parity) -> PottsWeights:
    """Return the weights of single sites, given their logarithms by site and state."""
    n, states = logs.shape
    if (logs == logs[:1]).all():
        return PottsWeights(np.exp(logs[0]), np.zeros((states, 0), np.float32))
    own = np.empty((states, n), np.float32)
    for q in range(states):
        own[q] = order.pack(np.exp(logs[:, q]))
    return PottsWeights(np.ones(states), own)


_ONE = np.uintp(1)
F = np.float32


# Directions, as in ``PlaneBoard.coupling``.
_LEFT, _RIGHT, _ABOVE, _BELOW, _FRONT, _BACK = range(6)
ABSENT = np.int16(-1)  # in place of the state of a missing neighbour


class PottsMemory(NamedTuple):
    """The key of a chain, and for each member of a team random words and buffers for a block of sites.

    The buffers contain the states of the neighbours by direction, the weights by state, and the sums ``total`` and
    ``left`` of :func:`gibbsite.kernels.batched.heatbath.draw_states_at_once`.
    """

    key: Words32
    words: Words32
    room: Ints16
    weight: Floats32
    total: Floats
    left: Floats


@register_batched(kernel="Gibbs", kinds=("potts",))
class PottsCheckerboard(HeatBath):
    """The heat bath on Potts lattices."""

    name, form, rank = "Potts checkerboard", "checkered", 11
    layouts = (UniformPotts, PlanePotts)
    move = staticmethod(move_board)

    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a lattice out, if two colors suffice for it and its couplings allow it."""
        return pack_potts_checkerboard(cast("FactorGraph", model), graph)

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> PottsMemory:
        """Allocate buffers for random numbers, and for states and weights of a block of sites."""
        (stream,) = streams
        states = packed.arrays.weight.all.size
        return PottsMemory(
            key=chain_key(stream),
            words=np.zeros((MOST_MEMBERS, ROOM), np.uint32),
            room=np.zeros((MOST_MEMBERS, 6, ROOM), np.int16),
            weight=np.zeros((MOST_MEMBERS, states, ROOM), np.float32),
            total=np.zeros((MOST_MEMBERS, ROOM)),
            left=np.zeros((MOST_MEMBERS, ROOM)),
        )


@implement(look_inside, UniformPotts)
@implement(look_inside, PlanePotts)
def _look_inside(arrays: Any, row: Row, j: Integer, count: Integer, x: Ints16, near: Ints16, at: Integer) -> None:
    left, right = near[_LEFT], near[_RIGHT]
    side = row.beside + j + row.shift - _ONE
    for i in range(count):
        left[at + i] = x[side + i]
        right[at + i] = x[side + _ONE + i]
    _look_along(row.above, j, count, x, near[_ABOVE], at)
    _look_along(row.below, j, count, x, near[_BELOW], at)
    if arrays.board.size_0 > 1:
        _look_along(row.front, j, count, x, near[_FRONT], at)
        _look_along(row.back, j, count, x, near[_BACK], at)


@inlined
def _look_along(place: Integer, j: Integer, count: Integer, x: Ints16, states: Ints16, at: Integer) -> None:
    """Copy the states of a neighbouring row."""
    if place == NOWHERE:
        for i in range(count):
            states[at + i] = ABSENT
    else:
        for i in range(count):
            states[at + i] = x[place + j + i]


@implement(look_single, UniformPotts)
@implement(look_single, PlanePotts)
def _look_single(arrays: Any, row: Row, j: Integer, x: Ints16, near: Ints16, at: Integer) -> None:
    for direction in range(6):
        place = _neighbour(arrays, row, direction, j)
        near[direction, at] = ABSENT if place == NOWHERE else x[place]


@inlined
def _neighbour(arrays: Any, row: Row, direction: int, j: Integer) -> Integer:
    """Return where the neighbour of site j of a row in a direction is, or NOWHERE."""
    if direction == _LEFT:
        return left_of(row, arrays.board.wrap_2, j)
    if direction == _RIGHT:
        return right_of(row, arrays.board.wrap_2, j)
    place = row.above
    if direction == _BELOW:
        place = row.below
    elif direction == _FRONT:
        place = row.front
    elif direction == _BACK:
        place = row.back
    return NOWHERE if place == NOWHERE else place + j


@generic
def factor_of(arrays: Any, direction: int, p: Integer) -> Any:
    """Return the factor of position p for a neighbour in the given direction that has the same state."""
    raise NotImplementedError


@implement(factor_of, PlanePotts)
def _factor_plane(arrays: PlanePotts, direction: int, p: Integer) -> Any:
    return arrays.factor[direction, p]


@implement(factor_of, UniformPotts)
def _factor_uniform(arrays: UniformPotts, direction: int, p: Integer) -> float:
    if direction < _ABOVE:
        return arrays.factor_2
    return arrays.factor_1 if direction < _FRONT else arrays.factor_0


@inlined
def _times(arrays: Any, direction: int, p: Integer, agree: bool) -> Any:
    """Return what a neighbour contributes to the weight of a state."""
    return F(factor_of(arrays, direction, p)) if agree else F(1.0)


@implement(draw_block, UniformPotts)
@implement(draw_block, PlanePotts)
def _settle_block(arrays: Any, memory: PottsMemory, block: Block, x: Ints16, sums: Floats32, keep: bool) -> None:
    member, at, first, count = block.member, block.at, block.first, block.count
    weight, words = memory.weight[member], memory.words[member]
    _weigh(arrays, memory.room[member], first, count, weight)
    draw_states_at_once(weight, memory.total[member], memory.left[member], words, at, x, first, count, sums, keep)


@inlined
def _weigh(arrays: Any, near: Ints16, p: Integer, count: Integer, weight: Floats32) -> None:
    """Write the weights of the sites from position p on, given the states of their neighbours."""
    left, right, above, below = near[_LEFT], near[_RIGHT], near[_ABOVE], near[_BELOW]
    front, back = near[_FRONT], near[_BACK]
    for q in range(np.uintp(arrays.weight.all.size)):
        own, state, every = weight[q], np.int16(q), F(arrays.weight.all[q])
        for k in range(count):
            sides = _times(arrays, _LEFT, p + k, left[k] == state) * _times(arrays, _RIGHT, p + k, right[k] == state)
            lines = _times(arrays, _ABOVE, p + k, above[k] == state) * _times(arrays, _BELOW, p + k, below[k] == state)
            own[k] = every * sides * lines
        if arrays.board.size_0 > 1:
            for k in range(count):
                own[k] *= _times(arrays, _FRONT, p + k, front[k] == state) * _times(
                    arrays, _BACK, p + k, back[k] == state
                )
        if arrays.weight.own.shape[1] > 0:
            single = arrays.weight.own[q]
            for k in range(count):
                own[k] *= single[p + k]


@inlined
def single_weight(arrays: Any, p: Integer, q: Integer) -> float:
    """Return the weight of state q at position p without neighbours."""
    weight = arrays.weight.all[q]
    if arrays.weight.own.shape[1] > 0:
        weight *= arrays.weight.own[q, p]
    return weight  # type: ignore[no-any-return]


@implement(log_potential, UniformPotts)
@implement(log_potential, PlanePotts)
def _log_potential(arrays: Any, x: Ints16) -> float:
    # even sites count every pair, so odd sites add only their own weights
    board = arrays.board
    total = 0.0
    for row in range(board.start.shape[1] - 1):
        for color in range(2):
            here = find_row(board, color, row)
            for j in range(here.size):
                p = here.own + j
                weight = single_weight(arrays, p, np.uintp(x[p]))
                if color == 0:
                    weight *= _pairs_at(arrays, here, j, x)
                total += math.log(weight)
    return total


@called
def _pairs_at(arrays: Any, row: Row, j: Integer, x: Ints16) -> float:
    """Return the product of the factors of site j of a row with its neighbours."""
    product = 1.0
    for direction in range(6):
        place = _neighbour(arrays, row, direction, j)
        if place != NOWHERE and x[place] == x[row.own + j]:
            product *= factor_of(arrays, direction, row.own + j)
    return product
