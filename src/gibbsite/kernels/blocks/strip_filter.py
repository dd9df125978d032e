"""The compiled filter of strips of a lattice: forward weights, backward draws and marginals of a tile.

See :mod:`.strips` for the algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints8, Words32
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.quad import FOUR, logarithm, minus, over, plus, put, reached, spread, take, times
from gibbsite._numba.random.generators import BLOCK, LANES, WORDS, fill_keyed
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.kernels.base import Team

_U = np.uintp
# Number of strips in a tile.
STRIPS = np.uintp(FOUR)
_TO_UNIT = 2.0**-53


class StripFactors(NamedTuple):
    """Couplings and fields as factors of weights, and the places of the strips."""

    # field, along, inside: exp(2 field); exp(2 coupling) along a strip, and along the last axis
    field: Floats
    along: Floats
    inside: Floats
    # across, between: for neighbours along the last and the first axis, the factors that a neighbour in state 0 and a
    # neighbour in state 1 contribute to the weight of state 1. Like those of the graph, all arrays have an entry for
    # each site, or one for all.
    across: Floats
    between: Floats
    start: Ints  # (strips + 1,): first columns of the strips of a plane
    width: int  # largest number of columns of a strip


class StripParameters(NamedTuple):
    """The factors, and the address of :func:`draw_half`."""

    factors: StripFactors
    draw: Any


class StripModel(NamedTuple):
    """The factors, and their lattice."""

    factors: StripFactors
    lattice: LatticeGraph


class StripMemory(NamedTuple):
    """Buffers for each member of a team.

    ``single`` has factors of single sites of a tile, row by row, ``table`` has the weights A of its rows, and ``row``
    three tables of one row. ``site`` has three numbers for each site of a row: couplings within the row, couplings to
    the next row, and states of the next row. ``lane`` has numbers for each strip, ``words`` has random words, and
    ``gate`` is the barrier of a team of one.
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
        """True: no step reads what an earlier one has written."""
        return True


class StripBuffers(NamedTuple):
    """The buffers of one member of a team."""

    single: Floats
    table: Floats
    row: Floats
    site: Floats
    lane: Floats
    words: Words32


@inlined
def buffers_of(memory: StripMemory, member: Integer) -> StripBuffers:
    """Return the buffers of a member of a team."""
    return StripBuffers(
        memory.single[member],
        memory.table[member],
        memory.row[member],
        memory.site[member],
        memory.lane[member],
        memory.words[member],
    )


class StripTask(NamedTuple):
    """A task of :func:`draw_half`: a unit, the key of its random numbers, a team, and whether to write marginals."""

    unit: Integer
    key: np.uint64
    cond: Floats
    keep: bool
    team: Team


class Tile(NamedTuple):
    """Strips of one half that are processed together: every second one of a plane from ``first`` on, ``count`` in all.

    ``base`` is the first site of the plane. The tile has ``rows`` rows from row ``top`` of the lattice on, with
    wrap-around.
    """

    number: Integer
    plane: Integer
    base: Integer
    first: Integer
    count: Integer
    top: Integer
    rows: Integer


@inlined
def n_tiles(p: StripFactors, g: LatticeGraph) -> Integer:
    """Return the number of tiles of a half."""
    return _U(g.size_0) * ((_U(p.start.size) // _U(2) + STRIPS - _U(1)) // STRIPS)


@called
def place_tile(p: StripFactors, g: LatticeGraph, unit: Integer, number: Integer) -> Tile:
    """Return a tile of a half; it may have no strips."""
    strips = _U(p.start.size) - _U(1)
    each = (_U(p.start.size) // _U(2) + STRIPS - _U(1)) // STRIPS
    plane = _U(number) // each
    first = (_U(unit) + plane) % _U(2) + _U(2) * STRIPS * (_U(number) - plane * each)
    count = min(STRIPS, (strips - first + _U(1)) // _U(2)) if first < strips else _U(0)
    base, rows, top = plane * _U(g.size_1) * _U(g.size_2), _U(g.size_1), _U(0)
    if g.wrap_1:
        top = (_U(unit) // _U(2)) * (rows // _U(2)) + _U(1)  # the row before is cut out
        rows -= _U(1)
    return Tile(_U(number), plane, base, first, count, top, rows)


@inlined
def _site(g: LatticeGraph, tile: Tile, t: Integer) -> Integer:
    """Return the first site of a row of the plane."""
    row = tile.top + _U(t)
    return tile.base + (row - _U(g.size_1) if row >= _U(g.size_1) else row) * _U(g.size_2)


@inlined
def _factor(factor: Floats, x: Ints8, there: Integer, step: int, edge: Integer) -> Any:
    """Return the factor of a neighbour; the coupling is that between site ``edge`` and the next one."""
    return factor[_U(x[there] != 0), _U(step) * edge]


@inlined
def _look(p: StripFactors, g: LatticeGraph, x: Ints8, tile: Tile, t: Integer, single: Floats) -> None:
    """Write the factors of the sites of row t of a tile: fields, and neighbours outside the strip.

    A strip with fewer columns than others is padded with sites that have no effect.
    """
    row, width = _site(g, tile, t), _U(g.size_2)
    at = _U(t) * _U(p.width) * STRIPS
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(_U(p.width)):
            i = row + begin + c
            single[at + c * STRIPS + j] = p.field[_U(g.step_field) * i] if begin + c < end else 1.0
        if begin > _U(0) or g.wrap_2:
            there = row + (begin if begin > _U(0) else width) - _U(1)
            single[at + j] *= _factor(p.across, x, there, g.step_2, there)
        if end < width or g.wrap_2:
            there = row + (end if end < width else _U(0))
            single[at + (end - begin - _U(1)) * STRIPS + j] *= _factor(p.across, x, there, g.step_2, row + end - _U(1))
    if g.size_0 > 1 or g.wrap_1:
        _look_further(p, g, x, tile, t, row, at, single)


@called
def _look_further(
    p: StripFactors, g: LatticeGraph, x: Ints8, tile: Tile, t: Integer, row: Integer, at: Integer, single: Floats
) -> None:
    """Multiply by the contributions of neighbours in other planes and in the row that is cut out."""
    plane = _U(g.size_1) * _U(g.size_2)
    around = (_U(g.size_0) - _U(1)) * plane
    first, last = tile.plane == _U(0), tile.plane == _U(g.size_0) - _U(1)
    cut = _site(g, tile, tile.rows)
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(end - begin):
            i, there, own = row + begin + c, cut + begin + c, at + c * STRIPS + j
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
def link_rows(p: StripFactors, g: LatticeGraph, tile: Tile, t: Integer, along: bool, link: Floats) -> None:
    """Write the coupling factors of row t to the next row (``along``) or within the row; one where there is none."""
    row = _site(g, tile, t)
    factor, pace, less = (p.along, _U(g.step_1), _U(0)) if along else (p.inside, _U(g.step_2), _U(1))
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(_U(p.width)):
            there = begin + c + less < end
            link[c * STRIPS + j] = factor[pace * (row + begin + c)] if there else 1.0


@inlined
def _weigh(p: StripFactors, single: Floats, at: Integer, inside: Floats, total: Floats, table: Floats) -> None:
    """Write the weights W of the states of a row, whose factors begin at ``at``, divided by ``total``."""
    scale = over(spread(1.0), take(total, _U(0)))
    put(table, _U(0), scale)
    put(table, STRIPS, times(scale, take(single, at)))
    for c in range(_U(1), _U(p.width)):
        factor, agree, half = take(single, at + c * STRIPS), take(inside, (c - _U(1)) * STRIPS), _U(1) << c
        for s in range(half):
            value = take(table, s * STRIPS)
            if s >= half // _U(2):  # the site before is in state 1
                put(table, (s + half) * STRIPS, times(times(value, factor), agree))
            else:
                put(table, (s + half) * STRIPS, times(value, factor))
                put(table, s * STRIPS, times(value, agree))


@inlined
def _pass_on(p: StripFactors, link: Floats, table: Floats) -> None:
    """Multiply a table by T, site by site."""
    states = _U(1) << _U(p.width)
    for c in range(_U(p.width)):
        agree, bit = take(link, c * STRIPS), _U(1) << c
        for first in range(_U(0), states, _U(2) * bit):
            for s in range(first, first + bit):
                low, high = take(table, s * STRIPS), take(table, (s + bit) * STRIPS)
                put(table, s * STRIPS, plus(times(agree, low), high))
                put(table, (s + bit) * STRIPS, plus(times(agree, high), low))


@inlined
def multiply_rows(
    p: StripFactors, one: Floats, at_one: Integer, two: Floats, out: Floats, at: Integer, total: Floats
) -> None:
    """Write the product of two tables, and its sum over the states."""
    found = spread(0.0)
    for s in range(_U(1) << _U(p.width)):
        value = times(take(one, at_one + s * STRIPS), take(two, s * STRIPS))
        put(out, at + s * STRIPS, value)
        found = plus(found, value)
    put(total, _U(0), found)


@called
def filter_tile(p: StripFactors, g: LatticeGraph, x: Ints8, tile: Tile, buffers: StripBuffers) -> None:
    """Write A of all rows of a tile."""
    size, single, table, total = STRIPS << _U(p.width), buffers.single, buffers.table, buffers.lane[0]
    weights, message, inside, link = buffers.row[0], buffers.row[1], buffers.site[0], buffers.site[1]
    for k in range(size):
        message[k] = 1.0
    put(total, _U(0), spread(1.0))
    for t in range(tile.rows):
        _look(p, g, x, tile, t, single)
        if t == _U(0) or g.step_2:
            link_rows(p, g, tile, t, False, inside)
        _weigh(p, single, t * _U(p.width) * STRIPS, inside, total, weights)
        if t > _U(0):
            if t == _U(1) or g.step_1:
                link_rows(p, g, tile, t - _U(1), True, link)
            for k in range(size):
                message[k] = table[(t - _U(1)) * size + k]
            _pass_on(p, link, message)
        multiply_rows(p, weights, _U(0), message, table, t * size, total)


@inlined
def condition_on(p: StripFactors, link: Floats, after: Floats, table: Floats) -> None:
    """Write T(s, s') for all states s of a row, given the states of the next row site by site."""
    put(table, _U(0), spread(1.0))
    for c in range(_U(p.width)):
        agree, state, half = take(link, c * STRIPS), take(after, c * STRIPS), _U(1) << c
        other = minus(spread(1.0), state)
        high, low = plus(times(agree, state), other), plus(times(agree, other), state)
        for s in range(half):
            value = take(table, s * STRIPS)
            put(table, (s + half) * STRIPS, times(value, high))
            put(table, s * STRIPS, times(value, low))


@inlined
def _fill(p: StripFactors, tile: Tile, key: np.uint64, t: Integer, words: Any) -> Integer:
    """Generate the random words of the rows that share a block with row t; return the first of these rows."""
    each = _U(BLOCK // 2) // STRIPS
    blocks = (tile.rows + each - _U(1)) // each
    block = t // each
    first = block * each
    needed = (min(each, tile.rows - first) * _U(2) * STRIPS + _U(3)) // _U(4)
    key_0, key_1 = np.uint32(key & np.uint64(0xFFFFFFFF)), np.uint32(key >> np.uint64(32))
    fill_keyed(words, key_0, key_1, 0, (tile.number * blocks + block) * _U(LANES), needed, WORDS)
    return first


@inlined
def _draw_row(
    p: StripFactors, weights: Floats, words: Words32, word: Integer, total: Floats, room: Floats, after: Floats
) -> None:
    """Draw the states of a row, given weights and their sum; write them site by site to ``after``.

    The first state whose cumulative weight exceeds v times the sum is taken, where v in (0, 1) has 53 random bits.
    """
    for j in range(STRIPS):
        high, low = np.int64(words[word + j]), np.int64(words[word + STRIPS + j])
        room[j] = (np.float64((high << 21) | (low >> 11)) + 0.5) * _TO_UNIT
    left, state = times(take(room, _U(0)), take(total, _U(0))), spread(0.0)
    for s in range((_U(1) << _U(p.width)) - _U(1)):
        left = minus(left, take(weights, s * STRIPS))
        state = plus(state, reached(left))
    put(room, _U(0), state)
    for c in range(_U(p.width)):
        for j in range(STRIPS):
            after[c * STRIPS + j] = np.float64((np.int64(room[j]) >> np.int64(c)) & 1)


@called
def draw_tile(p: StripFactors, g: LatticeGraph, x: Ints8, tile: Tile, key: np.uint64, buffers: StripBuffers) -> None:
    """Draw the rows of a tile, the last one first."""
    size, table, words = STRIPS << _U(p.width), buffers.table, buffers.words
    weights, link, after = buffers.row[0], buffers.site[1], buffers.site[2]
    total, room = buffers.lane[0], buffers.lane[1]
    filled = tile.rows
    for k in range(tile.rows):
        t = tile.rows - _U(1) - k
        if t < filled:
            filled = _fill(p, tile, key, t, words)
        if k == _U(0):
            for j in range(size):
                weights[j] = 1.0  # the last row has no successor
        else:
            if k == _U(1) or g.step_1:
                link_rows(p, g, tile, t, True, link)
            condition_on(p, link, after, weights)
        multiply_rows(p, table, t * size, weights, weights, _U(0), total)
        _draw_row(p, weights, words, (t - filled) * _U(2) * STRIPS, total, room, after)
        _write(p, x, tile, _site(g, tile, t), after)


@inlined
def _write(p: StripFactors, x: Ints8, tile: Tile, row: Integer, after: Floats) -> None:
    """Write the states of a row to the state of the chain."""
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        begin, end = _U(p.start[strip]), _U(p.start[strip + _U(1)])
        for c in range(end - begin):
            x[row + begin + c] = np.int8(after[c * STRIPS + j])


@called
def calibrate(p: StripFactors, g: LatticeGraph, tile: Tile, buffers: StripBuffers, cond: Floats) -> None:
    """Write marginals of the sites of a tile: messages from both sides meet in every row."""
    states, size, single, table = _U(1) << _U(p.width), STRIPS << _U(p.width), buffers.single, buffers.table
    weights, back, joint = buffers.row[0], buffers.row[1], buffers.row[2]
    inside, link, sums, odds = buffers.site[0], buffers.site[1], buffers.lane[0], buffers.lane[1]
    for j in range(size):
        back[j] = 1.0
    put(sums, _U(0), spread(1.0))
    for k in range(tile.rows):
        t = tile.rows - _U(1) - k
        multiply_rows(p, table, t * size, back, joint, _U(0), odds)
        for c in range(_U(p.width)):
            bit, down, up = _U(1) << c, spread(0.0), spread(0.0)
            for first in range(_U(0), states, _U(2) * bit):
                for s in range(first, first + bit):
                    down = plus(down, take(joint, s * STRIPS))
                    up = plus(up, take(joint, (s + bit) * STRIPS))
            put(odds, _U(0), logarithm(over(up, down)))
            _put_odds(p, tile, _site(g, tile, t), c, odds, cond)
        if t > _U(0):
            if g.step_2:
                link_rows(p, g, tile, t, False, inside)
            _weigh(p, single, t * _U(p.width) * STRIPS, inside, sums, weights)
            multiply_rows(p, weights, _U(0), back, back, _U(0), sums)
            if k == _U(0) or g.step_1:
                link_rows(p, g, tile, t - _U(1), True, link)
            _pass_on(p, link, back)


@inlined
def _put_odds(p: StripFactors, tile: Tile, row: Integer, c: Integer, odds: Floats, cond: Floats) -> None:
    """Write the log-odds of the sites of column c of all strips of a tile."""
    for j in range(tile.count):
        strip = tile.first + _U(2) * j
        i = _U(p.start[strip]) + c
        if i < _U(p.start[strip + _U(1)]):
            cond[row + i] = odds[j]
