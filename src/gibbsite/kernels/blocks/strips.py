"""Lattices by alternate strips: half of all strips are drawn jointly, then the other half.

A strip is a set of adjacent lines along the middle axis of a two-state lattice: columns of a two-dimensional
one. Given the other half, strips of one half do not depend on each other, and each is a chain of rows of
``width`` sites. With weights T(s, s') between states of neighbouring rows, products of exp(2 coupling) over
the sites that agree, and weights W of the states of a row, which have couplings within the row and the
neighbours outside the strip in them, the filter is

    A_0 = W_0,    A_t(s) = W_t(s) sum over s' of T(s, s') A_{t-1}(s'),

scaled so that it neither grows nor shrinks, and T is applied site by site. Backwards, a row is drawn at once from
A_t(s) T(s, s'), s' the state drawn for the next one. Sums and products of positive numbers lose no relative
accuracy by rounding. A periodic strip is cut: one of its rows keeps its states and is a neighbour outside.
There are two cuts, far apart, and so four blocks then.

Four strips make a *tile* and are processed at once, by vector instructions; threads share tiles. Random numbers
are keyed by tile and row under a key that is drawn for each visit, so the result does not depend on the number of
threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints8, Ints32, Positions, Words32
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, called, implement, inlined
from gibbsite._numba.pointer import call_pointer, point_at, pointed
from gibbsite._numba.quad import FOUR, logarithm, minus, over, plus, put, reached, spread, take, times
from gibbsite._numba.random.generators import BLOCK, LANES, WORDS, Words, bits, fill_keyed
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.kernels.base import MOST_MEMBERS, Team, step, transition, visit
from gibbsite.scans.base import site_at

#: Widest strips: more states of a row cost more than they are good for.
WIDEST = 6
# Least number of sites for each of the threads that share a half.
_LEAST_SHARE = 4096
# Largest logarithm of a ratio of weights of a row for which no product can leave the range of floats.
_MOST_RANGE = 600.0
# Behind the room of each member of a team, so that two of them never write to one cache line.
_GAP = 16

_U = np.uintp
# Strips of a tile.
_LANES = np.uintp(FOUR)
_TO_UNIT = 2.0**-53


class StripFactors(NamedTuple):
    """Couplings and fields as factors of weights, and where strips are.

    Attributes
    ----------
    field, along, inside
        exp(2 field); exp(2 coupling) along a strip, and along the last axis.
    across, between
        Along the last and the first axis: the factor that a neighbour in state 0 contributes to the weight of
        state 1, and one in state 1. All arrays have an entry for each site, or one for all, as the graph's.
    start : int (strips + 1,)
        First columns of the strips of a plane.
    width : int
        Most columns of a strip.
    """

    field: Floats
    along: Floats
    inside: Floats
    across: Floats
    between: Floats
    start: Ints
    width: int


class StripParameters(NamedTuple):
    """The factors, and the address of :func:`draw_half`."""

    factors: StripFactors
    draw: Any


class StripModel(NamedTuple):
    """The factors, and the lattice that they are of."""

    factors: StripFactors
    lattice: LatticeGraph


class StripMemory(NamedTuple):
    """Room for each member of a team.

    ``single`` are factors of single sites of a tile, row by row, and ``table`` the A of its rows; ``row`` are
    three tables of one row. ``site`` are three numbers for each site of a row: couplings within it, to the
    next row, and the states of the next row. ``lane`` are some numbers for each strip, ``words`` are random.
    ``gate`` is that of a team of one.
    """

    single: Floats
    table: Floats
    row: Floats
    site: Floats
    lane: Floats
    words: Words32
    gate: Ints

    @property
    def rebuildable(self) -> bool:
        """Every step begins anew."""
        return True


class StripTask(NamedTuple):
    """What is asked of :func:`draw_half`: a unit, under a key, by a member of a team; and marginals."""

    unit: Integer
    key: np.uint64
    cond: Floats
    keep: bool
    team: Team


class _Tile(NamedTuple):
    """Some strips of one half: every second one of a plane, from strip ``first`` on, ``count`` of them.

    ``base`` is the first site of the plane. Rows are counted from ``top`` on, around the lattice, and there
    are ``rows`` of them.
    """

    number: Integer
    plane: Integer
    base: Integer
    first: Integer
    count: Integer
    top: Integer
    rows: Integer


@dataclass(frozen=True, eq=False)
class StripPlan:
    """Strips of a lattice, half of which are drawn at once."""

    arrays: LatticeGraph
    start: Ints

    #: Strips have no tables that could be too large.
    pool = 0

    @property
    def width(self) -> int:
        """Most columns of a strip."""
        return int(np.diff(self.start).max())

    @property
    def n_blocks(self) -> int:
        """How many blocks there are: two halves, with each of two cuts where strips are periodic."""
        return 4 if self.arrays.wrap_1 else 2

    @property
    def blocks(self) -> list[Ints]:
        """The sites of the blocks."""
        return [np.sort(self.sites_of(unit)).astype(np.int64) for unit in range(self.n_blocks)]

    @property
    def log2_largest(self) -> float:
        """log2 of the entries of the clique tables of a strip that is taken out site by site."""
        return self.width + 1.0

    @property
    def total(self) -> float:
        """Entries of all tables, about what a sweep costs."""
        g = self.arrays
        sites = g.size_0 * g.size_1 * g.size_2
        return math.exp2(self.log2_largest) * sites * self.n_blocks / 2

    @property
    def per_half(self) -> int:
        """Strips of a half in a plane, at most."""
        return self.start.size // 2

    @property
    def members(self) -> int:
        """How many threads can share a half."""
        g = self.arrays
        tiles = g.size_0 * -(-self.per_half // FOUR)
        share = g.size_0 * g.size_1 * g.size_2 // 2 // _LEAST_SHARE
        return max(1, min(MOST_MEMBERS, tiles, share))

    def sites_of(self, unit: int) -> Positions:
        """Return the sites of a block, strip by strip and row by row."""
        g = self.arrays
        sites = np.arange(g.size_0 * g.size_1 * g.size_2).reshape(g.size_0, g.size_1, g.size_2)
        if g.wrap_1:
            sites = np.roll(sites, -1 - (unit // 2) * (g.size_1 // 2), axis=1)[:, :-1]
        start = self.start
        found = [
            sites[plane, :, start[strip] : start[strip + 1]].ravel()
            for plane in range(g.size_0)
            for strip in range((unit + plane) % 2, start.size - 1, 2)
        ]
        return np.concatenate(found)

    @cached_property
    def factors(self) -> StripFactors:
        """Couplings and fields as factors of weights."""
        g = self.arrays

        def both(coupling: Floats) -> Floats:
            return np.exp([-2.0 * coupling, 2.0 * coupling])

        field, along, inside = (np.exp(2.0 * part) for part in (g.field, g.coupling_1, g.coupling_2))
        return seal(
            StripFactors(field, along, inside, both(g.coupling_2), both(g.coupling_0), self.start.copy(), self.width)
        )

    def parameters(self, graph: Graph) -> StripParameters:
        """Return what compiled code needs to draw the halves."""
        return StripParameters(self.factors, _address(self.factors, self.arrays))

    def memory(self, graph: Graph) -> StripMemory:
        """Allocate room for the tiles of a team."""
        # ones, so that strips that are not there are harmless numbers in the loops over those of a tile
        rooms = StripMemory(*(np.ones(shape, kind) for shape, kind in self._sizes()))
        return rooms._replace(gate=np.zeros(1, np.int64))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict what :meth:`memory` allocates."""
        return sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in self._sizes())

    def _sizes(self) -> list[tuple[tuple[int, ...], Any]]:
        members, rows = self.members, self.arrays.size_1
        site, state = self.width * FOUR, 2**self.width * FOUR
        return [
            ((members, rows * site + _GAP), np.float64),
            ((members, rows * state + _GAP), np.float64),
            ((members, 3, state + _GAP), np.float64),
            ((members, 3, site + _GAP), np.float64),
            ((members, 2, FOUR + _GAP), np.float64),
            ((members, BLOCK + _GAP), np.uint32),
            ((1,), np.int64),
        ]

    @property
    def whole_log2(self) -> float:
        """About log2 of the entries of the largest table of a block of all sites.

        A plane has the treewidth of its shorter side, a long block that of its cross-section, and a cube
        three quarters of that.
        """
        g = self.arrays
        low, middle, _ = sorted((g.size_0, g.size_1, g.size_2))
        return 1.0 + (middle if low == 1 else 0.75 * low * middle)


def find_strips(graph: Graph, width: int) -> StripPlan | None:
    """Return strips of limited width, if a graph is a lattice that can be drawn by halves."""
    g = graph.arrays
    if not isinstance(g, LatticeGraph) or g.size_1 < 2 or g.size_2 < 2:
        return None
    if g.size_0 > 1 and g.wrap_0 and g.size_0 % 2:
        return None  # strips of one half would be neighbours
    reach = 2.0 * np.abs(g.field).max() + sum(
        4.0 * np.abs(coupling).max() for coupling in (g.coupling_0, g.coupling_1, g.coupling_2)
    )
    width = min(width, WIDEST, int(_MOST_RANGE / max(2.0 * reach, 1.0)))
    if width < 1:
        return None
    strips = max(2, -(-g.size_2 // width))
    if g.wrap_2:
        strips += strips % 2
        if strips > g.size_2:
            return None
    return StripPlan(g, np.arange(strips + 1) * g.size_2 // strips)


@inlined
def _n_tiles(p: StripFactors, g: LatticeGraph) -> Integer:
    """Return the number of tiles of a half."""
    return _U(g.size_0) * ((_U(p.start.size) // _U(2) + _LANES - _U(1)) // _LANES)


@called
def _place(p: StripFactors, g: LatticeGraph, unit: Integer, number: Integer) -> _Tile:
    """Return a tile of a half; it may have no strips."""
    strips = _U(p.start.size) - _U(1)
    each = (_U(p.start.size) // _U(2) + _LANES - _U(1)) // _LANES
    plane = _U(number) // each
    first = (_U(unit) + plane) % _U(2) + _U(2) * _LANES * (_U(number) - plane * each)
    count = min(_LANES, (strips - first + _U(1)) // _U(2)) if first < strips else _U(0)
    base, rows, top = plane * _U(g.size_1) * _U(g.size_2), _U(g.size_1), _U(0)
    if g.wrap_1:
        top = (_U(unit) // _U(2)) * (rows // _U(2)) + _U(1)  # the row before is cut out
        rows -= _U(1)
    return _Tile(_U(number), plane, base, first, count, top, rows)


@inlined
def _site(g: LatticeGraph, tile: _Tile, t: Integer) -> Integer:
    """Return the first site of a row of the plane."""
    row = tile.top + _U(t)
    return tile.base + (row - _U(g.size_1) if row >= _U(g.size_1) else row) * _U(g.size_2)


@inlined
def _factor(factor: Floats, x: Ints8, there: Integer, step: int, edge: Integer) -> Any:
    """Return what a neighbour contributes; the coupling is that of site ``edge`` and the next."""
    return factor[_U(x[there] != 0), _U(step) * edge]


@inlined
def _look(p: StripFactors, g: LatticeGraph, x: Ints8, tile: _Tile, t: Integer, single: Floats) -> None:
    """Write the factors of the sites of row t of a tile: fields, and neighbours outside the strip.

    A strip with fewer columns than others is padded with sites that have no effect.
    """
    row, width = _site(g, tile, t), _U(g.size_2)
    at = _U(t) * _U(p.width) * _LANES
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(_U(p.width)):
            i = row + begin + c
            single[at + c * _LANES + j] = p.field[_U(g.step_field) * i] if begin + c < end else 1.0
        if begin > _U(0) or g.wrap_2:
            there = row + (begin if begin > _U(0) else width) - _U(1)
            single[at + j] *= _factor(p.across, x, there, g.step_2, there)
        if end < width or g.wrap_2:
            there = row + (end if end < width else _U(0))
            single[at + (end - begin - _U(1)) * _LANES + j] *= _factor(p.across, x, there, g.step_2, row + end - _U(1))
    if g.size_0 > 1 or g.wrap_1:
        _look_further(p, g, x, tile, t, row, at, single)


@called
def _look_further(
    p: StripFactors, g: LatticeGraph, x: Ints8, tile: _Tile, t: Integer, row: Integer, at: Integer, single: Floats
) -> None:
    """Multiply by what neighbours in other planes contribute, and those in the row that is cut out."""
    plane = _U(g.size_1) * _U(g.size_2)
    around = (_U(g.size_0) - _U(1)) * plane
    first, last = tile.plane == _U(0), tile.plane == _U(g.size_0) - _U(1)
    cut = _site(g, tile, tile.rows)
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(end - begin):
            i, there, own = row + begin + c, cut + begin + c, at + c * _LANES + j
            if g.wrap_1 and _U(t) == _U(0):
                k = p.along[_U(g.step_1) * there]
                single[own] *= k if x[there] else 1.0 / k
            if g.wrap_1 and _U(t) == tile.rows - _U(1):
                k = p.along[_U(g.step_1) * i]
                single[own] *= k if x[there] else 1.0 / k
            if g.size_0 > 1 and (not first or g.wrap_0):
                there = i + around if first else i - plane
                single[own] *= _factor(p.between, x, there, g.step_0, there)
            if g.size_0 > 1 and (not last or g.wrap_0):
                there = i - around if last else i + plane
                single[own] *= _factor(p.between, x, there, g.step_0, i)


@called
def _link(p: StripFactors, g: LatticeGraph, tile: _Tile, t: Integer, along: bool, link: Floats) -> None:
    """Write the couplings of row t of a tile to the next row, or within the row; one where there is none."""
    row = _site(g, tile, t)
    factor, pace, less = (p.along, _U(g.step_1), _U(0)) if along else (p.inside, _U(g.step_2), _U(1))
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(_U(p.width)):
            there = begin + c + less < end
            link[c * _LANES + j] = factor[pace * (row + begin + c)] if there else 1.0


@inlined
def _weigh(p: StripFactors, single: Floats, at: Integer, inside: Floats, total: Floats, table: Floats) -> None:
    """Write the weights W of the states of a row, whose factors begin at ``at``, divided by ``total``."""
    scale = over(spread(1.0), take(total, _U(0)))
    put(table, _U(0), scale)
    put(table, _LANES, times(scale, take(single, at)))
    for c in range(_U(1), _U(p.width)):
        factor, agree, half = take(single, at + c * _LANES), take(inside, (c - _U(1)) * _LANES), _U(1) << c
        for s in range(half):
            value = take(table, s * _LANES)
            if s >= half // _U(2):  # the site before is in state 1
                put(table, (s + half) * _LANES, times(times(value, factor), agree))
            else:
                put(table, (s + half) * _LANES, times(value, factor))
                put(table, s * _LANES, times(value, agree))


@inlined
def _pass_on(p: StripFactors, link: Floats, table: Floats) -> None:
    """Apply T to a table, site by site."""
    states = _U(1) << _U(p.width)
    for c in range(_U(p.width)):
        agree, bit = take(link, c * _LANES), _U(1) << c
        for first in range(_U(0), states, _U(2) * bit):
            for s in range(first, first + bit):
                low, high = take(table, s * _LANES), take(table, (s + bit) * _LANES)
                put(table, s * _LANES, plus(times(agree, low), high))
                put(table, (s + bit) * _LANES, plus(times(agree, high), low))


@inlined
def _multiply(
    p: StripFactors, one: Floats, at_one: Integer, two: Floats, out: Floats, at: Integer, total: Floats
) -> None:
    """Write the product of two tables, and its sum over the states."""
    found = spread(0.0)
    for s in range(_U(1) << _U(p.width)):
        value = times(take(one, at_one + s * _LANES), take(two, s * _LANES))
        put(out, at + s * _LANES, value)
        found = plus(found, value)
    put(total, _U(0), found)


@called
def _filter(
    p: StripFactors,
    g: LatticeGraph,
    x: Ints8,
    tile: _Tile,
    single: Floats,
    table: Floats,
    row: Floats,
    site: Floats,
    total: Floats,
) -> None:
    """Write A of all rows of a tile."""
    size = _LANES << _U(p.width)
    weights, message, inside, link = row[0], row[1], site[0], site[1]
    for k in range(size):
        message[k] = 1.0
    put(total, _U(0), spread(1.0))
    for t in range(tile.rows):
        _look(p, g, x, tile, t, single)
        if t == _U(0) or g.step_2:
            _link(p, g, tile, t, False, inside)
        _weigh(p, single, t * _U(p.width) * _LANES, inside, total, weights)
        if t > _U(0):
            if t == _U(1) or g.step_1:
                _link(p, g, tile, t - _U(1), True, link)
            for k in range(size):
                message[k] = table[(t - _U(1)) * size + k]
            _pass_on(p, link, message)
        _multiply(p, weights, _U(0), message, table, t * size, total)


@inlined
def _condition(p: StripFactors, link: Floats, after: Floats, table: Floats) -> None:
    """Write T(s, s') for all states s of a row, given the states of the next row site by site."""
    put(table, _U(0), spread(1.0))
    for c in range(_U(p.width)):
        agree, state, half = take(link, c * _LANES), take(after, c * _LANES), _U(1) << c
        other = minus(spread(1.0), state)
        high, low = plus(times(agree, state), other), plus(times(agree, other), state)
        for s in range(half):
            value = take(table, s * _LANES)
            put(table, (s + half) * _LANES, times(value, high))
            put(table, s * _LANES, times(value, low))


@inlined
def _fill(p: StripFactors, tile: _Tile, key: np.uint64, t: Integer, words: Any) -> Integer:
    """Make the random words of the rows that share a block with row t; return the first row of them."""
    each = _U(BLOCK // 2) // _LANES
    blocks = (tile.rows + each - _U(1)) // each
    block = t // each
    first = block * each
    needed = (min(each, tile.rows - first) * _U(2) * _LANES + _U(3)) // _U(4)
    key_0, key_1 = np.uint32(key & np.uint64(0xFFFFFFFF)), np.uint32(key >> np.uint64(32))
    fill_keyed(words, key_0, key_1, 0, (tile.number * blocks + block) * _U(LANES), needed, WORDS)
    return first


@inlined
def _draw_row(
    p: StripFactors, weights: Floats, words: Words32, word: Integer, total: Floats, room: Floats, after: Floats
) -> None:
    """Draw the states of a row from weights with a sum; write them site by site to ``after``.

    The first state whose cumulated weight exceeds v times the sum is taken, v in (0, 1) of 53 bits.
    """
    for j in range(_LANES):
        high, low = np.int64(words[word + j]), np.int64(words[word + _LANES + j])
        room[j] = (np.float64((high << 21) | (low >> 11)) + 0.5) * _TO_UNIT
    left, state = times(take(room, _U(0)), take(total, _U(0))), spread(0.0)
    for s in range((_U(1) << _U(p.width)) - _U(1)):
        left = minus(left, take(weights, s * _LANES))
        state = plus(state, reached(left))
    put(room, _U(0), state)
    for c in range(_U(p.width)):
        for j in range(_LANES):
            after[c * _LANES + j] = np.float64((np.int64(room[j]) >> np.int64(c)) & 1)


@called
def _draw(
    p: StripFactors,
    g: LatticeGraph,
    x: Ints8,
    tile: _Tile,
    key: np.uint64,
    table: Floats,
    row: Floats,
    site: Floats,
    lane: Floats,
    words: Words32,
) -> None:
    """Draw the rows of a tile, the last one first."""
    size = _LANES << _U(p.width)
    weights, link, after, total, room = row[0], site[1], site[2], lane[0], lane[1]
    filled = tile.rows
    for k in range(tile.rows):
        t = tile.rows - _U(1) - k
        if t < filled:
            filled = _fill(p, tile, key, t, words)
        if k == _U(0):
            for j in range(size):
                weights[j] = 1.0  # nothing comes after the last row
        else:
            if k == _U(1) or g.step_1:
                _link(p, g, tile, t, True, link)
            _condition(p, link, after, weights)
        _multiply(p, table, t * size, weights, weights, _U(0), total)
        _draw_row(p, weights, words, (t - filled) * _U(2) * _LANES, total, room, after)
        _write(p, x, tile, _site(g, tile, t), after)


@inlined
def _write(p: StripFactors, x: Ints8, tile: _Tile, row: Integer, after: Floats) -> None:
    """Write the states of a row where they belong."""
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(end - begin):
            x[row + begin + c] = np.int8(after[c * _LANES + j])


@called
def _calibrate(
    p: StripFactors,
    g: LatticeGraph,
    tile: _Tile,
    single: Floats,
    table: Floats,
    row: Floats,
    site: Floats,
    lane: Floats,
    cond: Floats,
) -> None:
    """Write marginals of the sites of a tile: messages from both sides meet in every row."""
    states, size = _U(1) << _U(p.width), _LANES << _U(p.width)
    weights, back, joint, inside, link = row[0], row[1], row[2], site[0], site[1]
    sums, odds = lane[0], lane[1]
    for j in range(size):
        back[j] = 1.0
    put(sums, _U(0), spread(1.0))
    for k in range(tile.rows):
        t = tile.rows - _U(1) - k
        _multiply(p, table, t * size, back, joint, _U(0), odds)
        for c in range(_U(p.width)):
            bit, down, up = _U(1) << c, spread(0.0), spread(0.0)
            for first in range(_U(0), states, _U(2) * bit):
                for s in range(first, first + bit):
                    down = plus(down, take(joint, s * _LANES))
                    up = plus(up, take(joint, (s + bit) * _LANES))
            put(odds, _U(0), logarithm(over(up, down)))
            _put_odds(p, tile, _site(g, tile, t), c, odds, cond)
        if t > _U(0):
            if g.step_2:
                _link(p, g, tile, t, False, inside)
            _weigh(p, single, t * _U(p.width) * _LANES, inside, sums, weights)
            _multiply(p, weights, _U(0), back, back, _U(0), sums)
            if k == _U(0) or g.step_1:
                _link(p, g, tile, t - _U(1), True, link)
            _pass_on(p, link, back)


@inlined
def _put_odds(p: StripFactors, tile: _Tile, row: Integer, c: Integer, odds: Floats, cond: Floats) -> None:
    """Write the log-odds of the sites of column c of all strips of a tile."""
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        i = _U(p.start[strip]) + c
        if i < _U(p.start[strip + _U(1)]):
            cond[row + i] = odds[j]


@pointed
def draw_half(model: StripModel, memory: StripMemory, x: Ints8, task: StripTask) -> None:
    """Draw the strips of a half, a member of a team its share of the tiles; write marginals where wanted.

    It does not depend on the scan, so loops call it by its address, and it is compiled once.
    """
    p, g, team = model.factors, model.lattice, task.team
    single, table, row = memory.single[team.member], memory.table[team.member], memory.row[team.member]
    site, lane, words = memory.site[team.member], memory.lane[team.member], memory.words[team.member]
    tiles, members, member = _n_tiles(p, g), _U(team.size), _U(team.member)
    for number in range(tiles * member // members, tiles * (member + _U(1)) // members):
        tile = _place(p, g, task.unit, number)
        if tile.count > _U(0):
            _filter(p, g, x, tile, single, table, row, site, lane[0])
            if task.keep:
                _calibrate(p, g, tile, single, table, row, site, lane, task.cond)
            _draw(p, g, x, tile, task.key, table, row, site, lane, words)
    if team.size > 1:
        wait_for_all(team.gate, team.size)


_ADDRESSES: list[Any] = []


def _address(p: StripFactors, g: LatticeGraph) -> Any:
    """Return the address of the function that draws a half."""
    if not _ADDRESSES:
        one, two, team = np.zeros((1, 1)), np.zeros((1, 1, 1)), Team(0, 1, np.zeros(1, np.int64))
        memory = StripMemory(one, one, two, two, two, np.zeros((1, 1), np.uint32), team.gate)
        task = StripTask(np.uintp(0), np.uint64(0), np.zeros(0), False, team)
        _ADDRESSES.append(point_at(draw_half, StripModel(p, g), memory, np.zeros(0, np.int8), task))
    return _ADDRESSES[0]


@implement(visit, StripParameters, LatticeGraph)
def _visit(
    parameters: StripParameters,
    arrays: LatticeGraph,
    schedule: Any,
    memory: StripMemory,
    x: Ints8,
    order: Ints32,
    where: Integer,
    stop: Integer,
    turn: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
    team: Team,
) -> Words:
    for k in range(where, stop):
        rng, key = bits(rng)  # every member of the team draws the same one
        task = StripTask(_U(site_at(schedule, order, k)), key, cond, keep, team)
        call_pointer(parameters.draw, StripModel(parameters.factors, arrays), memory, x, task)
    return rng


@implement(step, StripParameters, LatticeGraph)
def _step(
    parameters: StripParameters,
    arrays: LatticeGraph,
    memory: StripMemory,
    x: Ints8,
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    rng, key = bits(rng)
    task = StripTask(_U(i), key, cond, keep, Team(0, 1, memory.gate))
    call_pointer(parameters.draw, StripModel(parameters.factors, arrays), memory, x, task)
    return rng


@implement(transition, StripParameters, LatticeGraph)
def _transition(
    parameters: StripParameters, arrays: LatticeGraph, memory: StripMemory, x: Ints8, i: Integer, row: Floats
) -> Integer:
    """Write the product of the probabilities with which rows would be drawn, for all states of a block.

    States are numbered with the last site fastest, in the order of :meth:`StripPlan.sites_of`.
    """
    p, g = parameters.factors, arrays
    table, room, site, total = memory.table[0], memory.row[0], memory.site[0], memory.lane[0, 0]
    size, top = _LANES << _U(p.width), np.int64(0)
    for number in range(_n_tiles(p, g)):
        tile = _place(p, g, i, number)
        for j in range(tile.count):
            top += np.int64(tile.rows) * _columns(p, tile, j)
    count = np.int64(1) << top
    for state in range(count):
        row[state] = 1.0
    for number in range(_n_tiles(p, g)):
        tile = _place(p, g, i, number)
        _filter(p, g, x, tile, memory.single[0], table, room, site, total)
        for j in range(tile.count):
            own = np.int64(_columns(p, tile, j))
            for state in range(count):
                for t in range(tile.rows):
                    if t + _U(1) < tile.rows:
                        _link(p, g, tile, t, True, site[1])
                        _read(p, state, top - np.int64(t + _U(2)) * own, own, j, site[2])
                        _condition(p, site[1], site[2], room[0])
                    else:
                        for k in range(size):
                            room[0, k] = 1.0
                    _multiply(p, table, t * size, room[0], room[0], _U(0), total)
                    chance = 0.0
                    here = (np.int64(state) >> (top - np.int64(t + _U(1)) * own)) & ((1 << own) - 1)
                    for s in range(_U(1) << _U(p.width)):
                        if _reversed(np.int64(s), own) == here:
                            chance += room[0, s * _LANES + j]
                    row[state] *= chance / total[j]
            top -= np.int64(tile.rows) * own
    return count


@inlined
def _columns(p: StripFactors, tile: _Tile, j: Integer) -> Integer:
    """Return the number of columns of a strip of a tile."""
    strip = tile.first + _U(2) * j
    return np.int64(p.start[strip + _U(1)] - p.start[strip])


@inlined
def _reversed(s: Integer, own: Integer) -> Integer:
    """Return the state of a row with its first site in the highest of ``own`` bits, not in the lowest."""
    found = np.int64(0)
    for c in range(own):
        found |= ((s >> c) & 1) << (own - 1 - c)
    return found


@inlined
def _read(p: StripFactors, state: Integer, shift: Integer, own: Integer, j: Integer, after: Floats) -> None:
    """Write the states of a row of a strip, ``own`` bits of ``state`` from ``shift`` on, site by site."""
    for c in range(_U(p.width)):
        after[c * _LANES + j] = 0.0
    for c in range(own):
        after[_U(c) * _LANES + j] = np.float64((np.int64(state) >> (shift + own - 1 - c)) & 1)
