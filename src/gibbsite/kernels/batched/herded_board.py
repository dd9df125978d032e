"""Herded Gibbs on lattices with one coupling: weights by the number of neighbours, a row of a color at a time.

With c neighbours in state 1 the log-odds of a site are ``base + coupling * c``. The probabilities for every c
are kept as integers, in units of 2^-32, and sites are in checkerboard order.

The herding weights form one plane for each number of neighbours, and those of adjacent sites are contiguous. A
plane is only updated where its number occurs, without look-ups, so the loops compile to vector instructions.
Every member of a team moves its own part of a color; herding uses no random numbers, so the result does not
depend on the number of members.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Floats, Floats32, Ints8, Words32
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, called, compiled, generic, implement, inlined
from gibbsite._numba.random.generators import BLOCK, Words
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import LatticeGraph, Triple
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import MOST_MEMBERS, Kernel, Span
from gibbsite.kernels.batched.base import BatchedUpdate, PackedModel, Parity, Streams, register_batched
from gibbsite.kernels.batched.board import (
    NOWHERE,
    BoardShape,
    Row,
    find_row,
    first_row,
    left_of,
    look_along,
    look_inside,
    look_single,
    n_directions,
    or_own,
    pack_two_colors,
    right_of,
    takes_two_colors,
)
from gibbsite.kernels.batched.colored import share
from gibbsite.kernels.herded.herded import HerdedGibbs
from gibbsite.kernels.herded.herding import HerdedParameters
from gibbsite.kernels.herded.keys import counts_suffice

if TYPE_CHECKING:
    from gibbsite.models import Model

_SCALE = 2.0**32
# Padding between the planes of two numbers of neighbours: planes a power of two apart compete for the cache.
APART = 80
# Log-odds beyond this are the same within the resolution of the shares.
_MOST = 300.0


class CountedUniform(NamedTuple):
    """One field for all sites; ``share[d, c]`` belongs to sites with d neighbours, c of them in state 1."""

    board: BoardShape
    coupling: float
    field: float
    share: Words32


class CountedPlanes(NamedTuple):
    """A field for each site; ``base`` and every ``share[c]`` are in checkerboard order."""

    board: BoardShape
    coupling: float
    base: Floats
    share: Words32


def pack_counted(graph: Graph) -> PackedModel | None:
    """Lay a lattice with one coupling out by color; None for any other graph."""
    g = graph.arrays
    if not isinstance(g, LatticeGraph) or not counts_suffice(g):
        return None
    shape, wraps = (g.size_0, g.size_1, g.size_2), (g.wrap_0, g.wrap_1, g.wrap_2)
    if not takes_two_colors(shape, wraps):
        return None
    order = Parity(shape)
    board = BoardShape(*shape, *wraps, order.starts())
    coupling = next((4.0 * float(w[0]) for w, size in zip(g[10:13], shape, strict=True) if size > 1), 0.0)
    most = n_directions(shape)
    arrays: CountedUniform | CountedPlanes
    if g.step_field:
        base = order.pack((2.0 * g.field.reshape(shape) - 0.5 * coupling * _degrees(shape, wraps)).ravel())
        share = np.empty((most + 1, graph.n_sites + APART), np.uint32)
        _fill_shares(share, base, coupling)
        arrays = CountedPlanes(board, coupling, base, share)
    else:
        field = 2.0 * float(g.field[0])
        share = np.empty((most + 1, most + 1), np.uint32)
        _fill_shares(share.T, field - 0.5 * coupling * np.arange(most + 1.0), coupling)
        arrays = CountedUniform(board, coupling, field, share)
    return pack_two_colors(graph, arrays, order)


def _degrees(shape: Triple, wraps: Triple) -> Floats:
    """Return the number of neighbours of every site of a lattice, or an array that broadcasts to it."""
    degree = np.zeros((1, 1, 1))
    for axis, (size, wrap) in enumerate(zip(shape, wraps, strict=True)):
        if size > 1:
            along = np.full(size, 2.0)
            if not wrap:
                along[[0, -1]] = 1.0
            degree = degree + np.expand_dims(along, tuple({0, 1, 2} - {axis}))
    return degree


@compiled
def _fill_shares(share: Words32, base: Floats, coupling: float) -> None:
    """Write the probabilities of state 1 for every number of neighbours; none is rounded to zero or one.

    They are 1 / (1 + exp(-base) exp(-coupling)^c): one exponential per site.
    """
    odds = np.empty(base.size)
    for p in range(base.size):
        odds[p] = math.exp(min(max(-base[p], -_MOST), _MOST))
    factor = math.exp(min(max(-coupling, -_MOST), _MOST))
    for c in range(share.shape[0]):
        for p in range(base.size):
            part = np.rint(_SCALE / (1.0 + odds[p]))
            share[c, p] = np.uint32(np.int64(min(max(part, 1.0), _SCALE - 1.0)))
            odds[p] *= factor


_U, _U8, _U32 = np.uintp, np.uint8, np.uint32
F = np.float32
_ZERO, _ONE = np.uintp(0), np.uintp(1)
_TO_UNIT = F(2.0**-31)
# Number of sites that are updated together: small, so that often not every number of neighbours occurs among them.
_TOGETHER = 128


class Room(NamedTuple):
    """Buffers for some sites: their numbers of neighbours in state 1, new states, and probabilities of state 1.

    There is a row for each member of a team, padded so that members do not share cache lines.
    """

    seen: Bytes
    up: Bytes
    part: Words32


class CountedMemory(NamedTuple):
    """The weights of a chain, ``phase[c, p]`` in units of 2^-32, and buffers."""

    phase: Words32
    room: Room


class HerdedWorkspace(NamedTuple):
    """Weights, buffers, and the sums to which probabilities are added."""

    phase: Words32
    room: Room
    sums: Floats32
    keep: bool


@inlined
def _missing(row: Row) -> Integer:
    """Return how many of the rows above, below, in front and behind are missing."""
    return _U(row.above == NOWHERE) + _U(row.below == NOWHERE) + _U(row.front == NOWHERE) + _U(row.back == NOWHERE)


@inlined
def _look_around(board: BoardShape, row: Row, j: Integer, x: Ints8) -> tuple[Integer, Integer]:
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
def herd_plane(arrays: Any, degree: Integer, c: Integer, p: Integer, count: Integer, phase: Any, room: Room) -> None:
    """Update the weights and choose the states of those of ``count`` sites that have c neighbours in state 1."""
    raise NotImplementedError


@implement(herd_plane, CountedUniform)
def _herd_uniform(
    arrays: CountedUniform, degree: Integer, c: Integer, p: Integer, count: Integer, phase: Any, room: Room
) -> None:
    _herd_alike(phase[c], p, count, _U8(c), arrays.share[degree, c], room.seen, room.up, room.part)


@implement(herd_plane, CountedPlanes)
def _herd_planes(
    arrays: CountedPlanes, degree: Integer, c: Integer, p: Integer, count: Integer, phase: Any, room: Room
) -> None:
    _herd_each(phase[c], p, count, _U8(c), arrays.share[c], room.seen, room.up, room.part)


# There are two loops, for one probability and for a probability of each site: a test within the loop over sites would
# cost 6 %.


@called
def _herd_alike(phase: Any, p: Integer, count: Integer, c: np.uint8, own: Any, seen: Any, up: Any, part: Any) -> None:
    for i in range(_U(count)):
        mine = own if seen[i] == c else _U32(0)
        new = _U32(phase[p + i] + mine)
        phase[p + i] = new
        part[i] |= mine
        up[i] |= _U8(new < mine)


@called
def _herd_each(phase: Any, p: Integer, count: Integer, c: np.uint8, own: Any, seen: Any, up: Any, part: Any) -> None:
    for i in range(_U(count)):
        mine = own[p + i]
        mine = mine if seen[i] == c else _U32(0)
        new = _U32(phase[p + i] + mine)
        phase[p + i] = new
        part[i] |= mine
        up[i] |= _U8(new < mine)


@called
def _count_neighbours(board: BoardShape, row: Row, j: Integer, count: Integer, x: Ints8, room: Any) -> Integer:
    """Write how many neighbours of each site are in state 1; return the numbers that occur, as bits."""
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
        found |= _U8(_U8(1) << room[i])
    return found


@implement(look_inside, CountedUniform)
@implement(look_inside, CountedPlanes)
def _herd_inside(
    arrays: Any, row: Row, j: Integer, count: Integer, x: Ints8, workspace: HerdedWorkspace, at: Integer
) -> None:
    degree, phase, room = _U(6) - _missing(row), workspace.phase, workspace.room
    for done in range(_ZERO, count, _U(_TOGETHER)):
        many, p = min(_U(_TOGETHER), count - done), row.own + j + done
        found = _count_neighbours(arrays.board, row, j + done, many, x, room.seen)
        for i in range(many):
            room.up[i], room.part[i] = _U8(0), _U32(0)
        for c in range(_U(phase.shape[0])):
            if (found >> _U8(c)) & _U8(1):
                herd_plane(arrays, degree, c, p, many, phase, room)
        _settle(x, p, many, room.up, room.part, workspace.sums, workspace.keep)


@called
def _settle(x: Ints8, p: Integer, count: Integer, up: Any, part: Any, sums: Floats32, keep: bool) -> None:
    """Set sites to the chosen states; add up their probabilities."""
    for i in range(_U(count)):
        x[p + i] = up[i]
    if keep:
        for i in range(_U(count)):
            # a signed number of 31 bits, for which there are vector instructions
            sums[p + i] += F(np.int32(part[i] >> _U32(1))) * _TO_UNIT


@implement(look_single, CountedUniform)
@implement(look_single, CountedPlanes)
def _herd_single(arrays: Any, row: Row, j: Integer, x: Ints8, workspace: HerdedWorkspace, at: Integer) -> None:
    room = workspace.room
    count, degree = _look_around(arrays.board, row, j, x)
    room.seen[0], room.up[0], room.part[0] = _U8(count), _U8(0), _U32(0)
    herd_plane(arrays, degree, count, row.own + j, _ONE, workspace.phase, room)
    _settle(x, row.own + j, _ONE, room.up, room.part, workspace.sums, workspace.keep)


def _move_counted(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Herd the sites of a board, row by row of one color."""
    where, stop, team = span.where, span.stop, span.team
    board, member = arrays.board, team.member
    room = Room(memory.room.seen[member], memory.room.up[member], memory.room.part[member])
    workspace = HerdedWorkspace(memory.phase, room, cond, keep)
    rows = board.start.shape[1] - 1
    even = _U(board.start[0, rows])
    for color in range(2):
        off = even * _U(color)
        low, high = max(where, off), min(stop, off + _U(board.start[color, rows]))
        if low < high:
            begin, end = share(low - off, high - off, BLOCK, team)
            at, last = max(low, off + begin * _U(BLOCK)), min(high, off + end * _U(BLOCK))
            if at < last:
                look_along(arrays, color, first_row(board.start[color], at - off), at, last, x, workspace)
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    return rng


@generic
def base_at(arrays: Any, degree: Integer, p: Integer) -> float:
    """Return the log-odds of a site none of whose neighbours is in state 1."""
    raise NotImplementedError


@implement(base_at, CountedUniform)
def _base_uniform(arrays: CountedUniform, degree: Integer, p: Integer) -> float:
    base: Any = arrays.field - 0.5 * arrays.coupling * degree
    return base  # type: ignore[no-any-return]


@implement(base_at, CountedPlanes)
def _base_plane(arrays: CountedPlanes, degree: Integer, p: Integer) -> float:
    base: Any = arrays.base[p]
    return base  # type: ignore[no-any-return]


@implement(log_potential, CountedUniform)
@implement(log_potential, CountedPlanes)
def _log_potential(arrays: Any, x: Ints8) -> float:
    # in spins: even sites count every pair, so odd sites add only their fields
    board, total = arrays.board, 0.0
    for row in range(board.start.shape[1] - 1):
        for color in range(2):
            place = find_row(board, color, row)
            for j in range(place.size):
                count, degree = _look_around(board, place, j, x)
                met = 1.0 * count if color == 0 else 0.5 * degree
                odds = base_at(arrays, degree, place.own + j) + arrays.coupling * met
                total += (x[place.own + j] - 0.5) * odds
    return total


@register_batched(kernel="HerdedGibbs", kinds=("lattice",))
class HerdedCounts(BatchedUpdate):
    """Herding on lattices, with numbers of neighbours as keys."""

    name, form, rank = "herded counts", "counted", 10
    parameters = HerdedParameters
    layouts = (CountedUniform, CountedPlanes)
    move = staticmethod(_move_counted)
    divisible = True

    def prepare(self, kernel: Kernel, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a lattice with one coupling out, if a table of weights for every number of neighbours fits."""
        if not isinstance(kernel, HerdedGibbs) or not kernel.shareable(graph):
            return None
        return pack_counted(graph) if kernel.keys_of(graph).counts else None

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> CountedMemory:
        """Allocate the weights of a chain, and buffers."""
        assert isinstance(kernel, HerdedGibbs)
        (stream,), arrays = streams, packed.arrays
        sites, room = int(arrays.board.start[:, -1].sum()), (MOST_MEMBERS, _TOGETHER + 64)
        phase = kernel.first_weights(stream, arrays.share.shape[0], sites + APART)
        return CountedMemory(phase, Room(np.zeros(room, np.uint8), np.zeros(room, np.uint8), np.zeros(room, np.uint32)))

    def carried(self, packed: PackedModel, memory: Any, segment: int, low: int, high: int) -> Array:
        """Return the weights of some positions."""
        found: Words32 = memory.phase[:, low:high]
        return found
