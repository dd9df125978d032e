"""Lattices by alternate lines: half of all lines are drawn jointly, then the other half.

A line are the sites along the middle axis of a lattice: a column of a two-dimensional one. Given the other
half, lines of one half do not depend on each other, and each is a chain of two-state sites. With
k = exp(2 coupling) between neighbours of a line and w = exp(2 field) of a site, where the field has the
neighbours outside the line in it, the odds r of state 1 given all sites before are

    r_0 = w_0,    r_t = w_t (k r_{t-1} + 1) / (r_{t-1} + k),

and backwards, given its successor, a site has odds r_t k after state 1 and r_t / k after state 0. Sums and
products of positive numbers lose nothing to rounding. A periodic line is a ring: its first site is drawn
with the others summed out (a product of transfer matrices), and the rest is a chain that it closes.

Neighbouring lines stand side by side in memory, so loops over the lines of a *tile* compile to vector
instructions, and threads share tiles. Random numbers are keyed by tile and site under a key that is drawn for
each visit: any number of threads gives the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.intrinsic import wait_for_all
from gibbsite._compile.jit import Integer, called, implement, inlined
from gibbsite._compile.pointer import call_pointer, point_at, pointed
from gibbsite._random.generators import BLOCK, LANES, WORDS, Words, bits, fill_keyed
from gibbsite.graph.graph import Graph, seal
from gibbsite.graph.kinds.lattice import LatticeGraph
from gibbsite.kernel.base import MOST_MEMBERS, Team, step, transition, visit
from gibbsite.scan.base import site_at

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
State = NDArray[np.int8]

#: Lines that are drawn side by side: those of a cache line of states.
_WIDEST = 32
# Of the threads that share a half, each has at least so many sites.
_LEAST_SHARE = 4096
# Largest sum of log-odds for which no product of odds leaves the range of floating-point numbers.
_MOST_ODDS = 300.0
# Behind the room of each member of a team, so that two of them never write to one cache line.
_GAP = 16

_U = np.uintp
_TWO = np.uintp(2)
_TO_UNIT = 2.0**-31
# What is done with odds that are marginals of a chain: their logarithm is written, or, of a ring given its
# first site, they are kept for state 0 and mixed with those for state 1.
_PUT, _KEEP, _MIX = range(3)
# Rows of numbers for each line of a tile: couplings to the next row; messages, or states, from there; of
# rings, odds and states of the first site, and four sums.
_LINK, _AFTER, _ODDS, _FIRST, _SUMS = range(5)


class LineFactors(NamedTuple):
    """Couplings and fields as factors of odds.

    Attributes
    ----------
    field, along
        exp(2 field), and exp(2 coupling) between the neighbours of a line.
    across, between
        Along the last and the first axis: the factor that a neighbour in state 0 contributes, and one in
        state 1. All arrays have an entry for each site, or one for all, as those of the graph.
    lanes : int
        Lines of a tile.
    """

    field: Floats
    along: Floats
    across: Floats
    between: Floats
    lanes: int


class LineParameters(NamedTuple):
    """The factors, and the address of :func:`draw_half`."""

    factors: LineFactors
    draw: Any


class LineMemory(NamedTuple):
    """Room for each member of a team.

    ``weight`` and ``ratio`` are w and r of a tile, row by row; ``row`` are some numbers for each of its
    lines; ``words`` are random. ``gate`` is that of a team of one.
    """

    weight: Floats
    ratio: Floats
    row: Floats
    words: NDArray[np.uint32]
    gate: Longs

    @property
    def rebuildable(self) -> bool:
        """Every step begins anew."""
        return True


class LineTask(NamedTuple):
    """What is asked of :func:`draw_half`: a half, under a key, by a member of a team; and marginals."""

    unit: Integer
    key: np.uint64
    cond: Floats
    keep: bool
    team: Team


class _Tile(NamedTuple):
    """Some lines of one half that stand next to each other in a plane.

    ``number`` of the tile, ``start``: the first site of the first line, in column ``column`` of plane
    ``plane``; ``count`` lines.
    """

    number: Integer
    start: Integer
    column: Integer
    plane: Integer
    count: Integer


@dataclass(frozen=True, eq=False)
class LinePlan:
    """The two halves of a lattice, to be drawn line by line.

    Examples
    --------
    >>> import gibbsite as gs
    >>> plan = find_lines(gs.compile_graph(gs.ising_grid((2, 3), coupling=0.4)))
    >>> [plan.sites_of(unit).tolist() for unit in range(plan.n_blocks)]
    [[0, 3, 2, 5], [1, 4]]
    """

    arrays: LatticeGraph

    #: log2 of the entries of the tables of two sites.
    log2_largest = 2.0

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return 2

    @property
    def blocks(self) -> list[Longs]:
        """The sites of the halves."""
        return [np.sort(self.sites_of(unit)).astype(np.int64) for unit in range(2)]

    @property
    def total(self) -> float:
        """Entries of all tables of two sites, about what a sweep costs."""
        return 4.0 * self.arrays.size_0 * self.arrays.size_1 * self.arrays.size_2

    @property
    def whole_width(self) -> float:
        """About how many sites the largest table of a block of all sites would have.

        A plane has the treewidth of its shorter side, a long block that of its cross-section, and a cube
        three quarters of that.
        """
        g = self.arrays
        low, middle, _ = sorted((g.size_0, g.size_1, g.size_2))
        return 1.0 + (middle if low == 1 else 0.75 * low * middle)

    @property
    def lanes(self) -> int:
        """Lines of a tile, at most."""
        return min(_WIDEST, (self.arrays.size_2 + 1) // 2)

    @property
    def members(self) -> int:
        """How many threads can share a half."""
        g = self.arrays
        tiles = g.size_0 * -(-((g.size_2 + 1) // 2) // self.lanes)
        share = g.size_0 * g.size_1 * g.size_2 // 2 // _LEAST_SHARE
        return max(1, min(MOST_MEMBERS, tiles, share))

    def sites_of(self, unit: int) -> NDArray[np.intp]:
        """Return the sites of a half, line by line."""
        g = self.arrays
        sites = np.arange(g.size_0 * g.size_1 * g.size_2).reshape(g.size_0, g.size_1, g.size_2)
        return np.concatenate([sites[d, :, (unit + d) % 2 :: 2].T.ravel() for d in range(g.size_0)])

    @cached_property
    def factors(self) -> LineFactors:
        """Couplings and fields as factors of odds."""
        g = self.arrays

        def both(coupling: Floats) -> Floats:
            return np.exp([-2.0 * coupling, 2.0 * coupling])

        along = np.exp(2.0 * g.coupling_1)
        return seal(
            LineFactors(np.exp(2.0 * g.field), along, both(g.coupling_2), both(g.coupling_0), self.lanes)
        )

    def parameters(self, graph: Graph) -> LineParameters:
        """Return what compiled code needs to draw the halves."""
        return LineParameters(self.factors, _address(self.factors, self.arrays))

    def memory(self, graph: Graph) -> LineMemory:
        """Allocate room for the tiles of a team."""
        return LineMemory(*(np.zeros(shape, kind) for shape, kind in self._sizes()))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict what :meth:`memory` allocates."""
        return sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in self._sizes())

    def _sizes(self) -> list[tuple[tuple[int, ...], Any]]:
        members, plane = self.members, self.arrays.size_1 * self.lanes + _GAP
        return [
            ((members, plane), np.float64),
            ((members, plane), np.float64),
            ((members, _SUMS + 4, _WIDEST), np.float64),
            ((members, BLOCK + _GAP), np.uint32),
            ((1,), np.int64),
        ]


def find_lines(graph: Graph) -> LinePlan | None:
    """Return the halves of a lattice, if lines of a half do not depend on each other, and odds are not extreme.

    Examples
    --------
    >>> import gibbsite as gs
    >>> find_lines(gs.compile_graph(gs.ising_grid((4, 3), coupling=0.4, periodic=(False, True)))) is None
    True
    """
    g = graph.arrays
    if not isinstance(g, LatticeGraph) or g.size_1 < 2 or g.size_2 < 2:
        return None
    if (g.wrap_2 and g.size_2 % 2) or (g.size_0 > 1 and g.wrap_0 and g.size_0 % 2):
        return None  # lines of one half would be neighbours
    reach = 2.0 * np.abs(g.field).max() + sum(
        4.0 * np.abs(coupling).max() for coupling in (g.coupling_0, g.coupling_1, g.coupling_2)
    )
    return LinePlan(g) if reach <= _MOST_ODDS else None


@called
def _place(g: LatticeGraph, lanes: Integer, unit: Integer, number: Integer) -> _Tile:
    """Return a tile of a half; it may have no lines."""
    width = _U(g.size_2)
    each = ((width + _U(1)) // _TWO + _U(lanes) - _U(1)) // _U(lanes)
    plane = _U(number) // each
    part = _U(number) - plane * each
    column = (_U(unit) + plane) % _TWO + _TWO * _U(lanes) * part
    count = min(_U(lanes), (width - column + _U(1)) // _TWO) if column < width else _U(0)
    return _Tile(_U(number), plane * _U(g.size_1) * width + column, column, plane, count)


@inlined
def _n_tiles(g: LatticeGraph, lanes: Integer) -> Integer:
    """Return the number of tiles of a half."""
    return _U(g.size_0) * (((_U(g.size_2) + _U(1)) // _TWO + _U(lanes) - _U(1)) // _U(lanes))


@inlined
def _factor(factor: Floats, x: State, there: Integer, step: int, edge: Integer) -> Any:
    """Return what a neighbour contributes to odds; the coupling is that of site ``edge`` and the next."""
    return factor[_U(x[there] != 0), _U(step) * edge]


@called
def _look(p: LineFactors, g: LatticeGraph, x: State, tile: _Tile, t: Integer, weight: Floats) -> None:
    """Write w of the sites of row t of a tile."""
    width, at = _U(g.size_2), _U(t) * _U(p.lanes)
    base = tile.start + _U(t) * width
    low, high = _U(0), tile.count
    if tile.column == _U(0):
        low = _U(1)
    if tile.column + _TWO * (tile.count - _U(1)) == width - _U(1):
        high -= _U(1)
    for j in range(tile.count):
        weight[at + j] = p.field[_U(g.step_field) * (base + _TWO * j)]
    for j in range(low, high):
        i = base + _TWO * j
        weight[at + j] *= _factor(p.across, x, i - _U(1), g.step_2, i - _U(1)) * _factor(
            p.across, x, i + _U(1), g.step_2, i
        )
    if low == _U(1):  # the first column has no neighbour on the left, or the last column
        if g.wrap_2:
            last = base + width - _U(1)
            weight[at] *= _factor(p.across, x, last, g.step_2, last)
        weight[at] *= _factor(p.across, x, base + _U(1), g.step_2, base)
    if high < tile.count:
        i = base + _TWO * high
        weight[at + high] *= _factor(p.across, x, i - _U(1), g.step_2, i - _U(1))
        if g.wrap_2:
            weight[at + high] *= _factor(p.across, x, i + _U(1) - width, g.step_2, i)
    if g.size_0 > 1:
        _look_between(p, g, x, tile, base, at, weight)


@called
def _look_between(
    p: LineFactors, g: LatticeGraph, x: State, tile: _Tile, base: Integer, at: Integer, weight: Floats
) -> None:
    """Multiply by what neighbours in other planes contribute."""
    plane, around = _U(g.size_1) * _U(g.size_2), (_U(g.size_0) - _U(1)) * _U(g.size_1) * _U(g.size_2)
    first, last = tile.plane == _U(0), tile.plane == _U(g.size_0) - _U(1)
    for j in range(tile.count):
        i = base + _TWO * j
        if not first or g.wrap_0:
            there = i + around if first else i - plane
            weight[at + j] *= _factor(p.between, x, there, g.step_0, there)
        if not last or g.wrap_0:
            there = i - around if last else i + plane
            weight[at + j] *= _factor(p.between, x, there, g.step_0, i)


@called
def _link(p: LineFactors, g: LatticeGraph, tile: _Tile, t: Integer, link: Floats) -> None:
    """Write the couplings of row t of a tile to the next."""
    if g.step_1 == 0:
        k = p.along[0]
        for j in range(tile.count):
            link[j] = k
    else:
        base = tile.start + _U(t) * _U(g.size_2)
        for j in range(tile.count):
            link[j] = p.along[base + _TWO * j]


@inlined
def _pass_on(r: Any, k: Any) -> Any:
    """Return the odds of a site of which nothing is known but its neighbour's odds."""
    return (k * r + 1.0) / (r + k)


@called
def _filter_row(weight: Floats, ratio: Floats, link: Floats, at: Integer, lanes: Integer, count: Integer) -> None:
    """Write r of the row that begins at ``at``."""
    for j in range(count):
        ratio[at + j] = weight[at + j] * _pass_on(ratio[at - lanes + j], link[j])


@called
def _filter(
    p: LineFactors, g: LatticeGraph, tile: _Tile, first: Integer, weight: Floats, ratio: Floats, link: Floats
) -> None:
    """Write r of all rows from ``first`` on."""
    lanes = _U(p.lanes)
    for j in range(tile.count):
        ratio[first * lanes + j] = weight[first * lanes + j]
    for t in range(first + _U(1), _U(g.size_1)):
        _link(p, g, tile, t - _U(1), link)
        _filter_row(weight, ratio, link, t * lanes, lanes, tile.count)


@inlined
def _odds(r: Any, k: Any, after: Any) -> tuple[Any, Any]:
    """Return weights of the states 1 and 0 of a site with a successor in state ``after``."""
    up = after > 0.5
    return r * k if up else r, 1.0 if up else k


@called
def _draw_row(
    ratio: Floats,
    link: Floats,
    after: Floats,
    words: NDArray[np.uint32],
    at: Integer,
    word: Integer,
    count: Integer,
) -> None:
    """Draw a row whose r begin at ``at``, given the states ``after``, which it replaces.

    A site takes its less probable state if v (up + down) < min(up, down), v in (0, 1) of 31 bits: both tails
    are resolved alike.
    """
    for j in range(count):
        up, down = _odds(ratio[at + j], link[j], after[j])
        v = (np.float64(np.int32(words[word + j] >> np.uint32(1))) + 0.5) * _TO_UNIT
        less = v * (up + down) < min(up, down)
        after[j] = 1.0 if less != (up >= down) else 0.0


@inlined
def _fill(p: LineFactors, g: LatticeGraph, tile: _Tile, key: np.uint64, t: Integer, words: Any) -> Integer:
    """Make the random words of the rows that share a block with row t; return the first row of them."""
    each = _U(BLOCK) // _U(p.lanes)
    blocks = (_U(g.size_1) + each - _U(1)) // each
    block = t // each
    first = block * each
    needed = (min(each, _U(g.size_1) - first) * _U(p.lanes) + _U(3)) // _U(4)
    key_0, key_1 = np.uint32(key & np.uint64(0xFFFFFFFF)), np.uint32(key >> np.uint64(32))
    fill_keyed(words, key_0, key_1, 0, (tile.number * blocks + block) * _U(LANES), needed, WORDS)
    return first


@called
def _draw(
    p: LineFactors,
    g: LatticeGraph,
    x: State,
    tile: _Tile,
    first: Integer,
    key: np.uint64,
    ratio: Floats,
    row: Floats,
    words: NDArray[np.uint32],
) -> None:
    """Draw the sites of a tile from the last row back to row ``first``."""
    link, after, lanes = row[_LINK], row[_AFTER], _U(p.lanes)
    for j in range(tile.count):
        link[j] = after[j] = 1.0  # nobody comes after the last row
    filled = _U(g.size_1)
    for k in range(_U(g.size_1) - first):
        t = _U(g.size_1) - _U(1) - k
        if t < filled:
            filled = _fill(p, g, tile, key, t, words)
        if k > _U(0):
            _link(p, g, tile, t, link)
        _draw_row(ratio, link, after, words, t * lanes, (t - filled) * lanes, tile.count)
        base = tile.start + t * _U(g.size_2)
        for j in range(tile.count):
            x[base + _TWO * j] = np.int8(after[j])


@called
def _calibrate(
    p: LineFactors,
    g: LatticeGraph,
    tile: _Tile,
    first: Integer,
    weight: Floats,
    ratio: Floats,
    row: Floats,
    cond: Floats,
    what: Integer,
) -> None:
    """Write marginals of the rows from ``first`` on: messages from both sides meet in every site."""
    link, back, lanes = row[_LINK], row[_AFTER], _U(p.lanes)
    for j in range(tile.count):
        back[j] = 1.0
    for k in range(_U(g.size_1) - first):
        t = _U(g.size_1) - _U(1) - k
        at, base = t * lanes, tile.start + t * _U(g.size_2)
        for j in range(tile.count):
            odds, i = ratio[at + j] * back[j], base + _TWO * j
            if what == _PUT:
                cond[i] = math.log(odds)
            elif what == _KEEP:
                cond[i] = odds
            else:
                cond[i] = math.log(_mix(cond[i], odds, row[_ODDS, j]))
        if t > first:
            _link(p, g, tile, t - _U(1), link)
            for j in range(tile.count):
                back[j] = _pass_on(weight[at + j] * back[j], link[j])


@inlined
def _mix(low: Any, high: Any, odds: Any) -> Any:
    """Return the odds of a site that has odds ``high`` or ``low``, the former with odds ``odds``."""
    one, two = 1.0 / (1.0 + low), odds / (1.0 + high)
    return (low * one + high * two) / (one + two)


@called
def _sum_ring(p: LineFactors, g: LatticeGraph, tile: _Tile, weight: Floats, row: Floats) -> None:
    """Write the odds of the first sites of rings, all other sites summed out.

    Sums over the sites passed so far, for both states of the last of them, are carried along for both states
    of the first site, scaled alike.
    """
    link, odds, lanes = row[_LINK], row[_ODDS], _U(p.lanes)
    high_0, high_1, low_0, low_1 = row[_SUMS], row[_SUMS + 1], row[_SUMS + 2], row[_SUMS + 3]
    for j in range(tile.count):
        high_0[j], high_1[j], low_0[j], low_1[j] = 0.0, 1.0, 1.0, 0.0
    for t in range(_U(1), _U(g.size_1)):
        _link(p, g, tile, t - _U(1), link)
        for j in range(tile.count):
            k, w = link[j], weight[t * lanes + j]
            a, b = high_0[j] * k + high_1[j], w * (high_1[j] * k + high_0[j])
            c, d = low_0[j] * k + low_1[j], w * (low_1[j] * k + low_0[j])
            scale = 1.0 / (a + b + c + d)
            high_0[j], high_1[j], low_0[j], low_1[j] = scale * a, scale * b, scale * c, scale * d
    _link(p, g, tile, _U(g.size_1) - _U(1), link)
    for j in range(tile.count):
        k = link[j]
        odds[j] = weight[j] * (high_1[j] * k + high_0[j]) / (low_0[j] * k + low_1[j])


@called
def _close_ring(
    p: LineFactors, g: LatticeGraph, x: State, tile: _Tile, weight: Floats, ratio: Floats, row: Floats
) -> None:
    """Multiply w of the neighbours of the first sites by what these contribute, and filter the rest."""
    link, state, last = row[_LINK], row[_FIRST], _U(g.size_1) - _U(1)
    _look(p, g, x, tile, _U(1), weight)
    _look(p, g, x, tile, last, weight)
    for end in range(2):
        there, edge = (last, last) if end else (_U(1), _U(0))
        _link(p, g, tile, edge, link)
        for j in range(tile.count):
            k = link[j]
            weight[there * _U(p.lanes) + j] *= k if state[j] > 0.5 else 1.0 / k
    _filter(p, g, tile, _U(1), weight, ratio, link)


@called
def _move_rings(
    p: LineFactors,
    g: LatticeGraph,
    x: State,
    tile: _Tile,
    key: np.uint64,
    weight: Floats,
    ratio: Floats,
    row: Floats,
    words: NDArray[np.uint32],
    cond: Floats,
    keep: bool,
) -> None:
    """Draw the rings of a tile: their first sites, then the rest."""
    link, odds, state = row[_LINK], row[_ODDS], row[_FIRST]
    _sum_ring(p, g, tile, weight, row)
    if keep:
        for j in range(tile.count):
            cond[tile.start + _TWO * j] = math.log(odds[j])
        for a in range(2):
            for j in range(tile.count):
                state[j] = np.float64(a)
            _close_ring(p, g, x, tile, weight, ratio, row)
            _calibrate(p, g, tile, _U(1), weight, ratio, row, cond, _MIX if a else _KEEP)
    _fill(p, g, tile, key, _U(0), words)
    for j in range(tile.count):
        link[j] = state[j] = 1.0
    _draw_row(odds, link, state, words, _U(0), _U(0), tile.count)
    for j in range(tile.count):
        x[tile.start + _TWO * j] = np.int8(state[j])
    _close_ring(p, g, x, tile, weight, ratio, row)
    _draw(p, g, x, tile, _U(1), key, ratio, row, words)


@pointed
def draw_half(p: LineFactors, g: LatticeGraph, memory: LineMemory, x: State, task: LineTask) -> None:
    """Draw the lines of a half, a member of a team its share of the tiles; write marginals where wanted.

    It does not depend on the scan, so loops call it by its address, and it is compiled once.
    """
    team, key, cond, keep = task.team, task.key, task.cond, task.keep
    weight, ratio, row = memory.weight[team.member], memory.ratio[team.member], memory.row[team.member]
    words, tiles = memory.words[team.member], _n_tiles(g, p.lanes)
    members, member = _U(team.size), _U(team.member)
    for number in range(tiles * member // members, tiles * (member + _U(1)) // members):
        tile = _place(g, p.lanes, task.unit, number)
        for t in range(_U(g.size_1)):
            _look(p, g, x, tile, t, weight)
        if g.wrap_1:
            _move_rings(p, g, x, tile, key, weight, ratio, row, words, cond, keep)
        else:
            _filter(p, g, tile, _U(0), weight, ratio, row[_LINK])
            if keep:
                _calibrate(p, g, tile, _U(0), weight, ratio, row, cond, _PUT)
            _draw(p, g, x, tile, _U(0), key, ratio, row, words)
    if team.size > 1:
        wait_for_all(team.gate, team.size)


_ADDRESSES: list[Any] = []


def _address(p: LineFactors, g: LatticeGraph) -> Any:
    """Return the address of the function that draws a half."""
    if not _ADDRESSES:
        plane, team = np.zeros((1, 1)), Team(0, 1, np.zeros(1, np.int64))
        memory = LineMemory(plane, plane, np.zeros((1, 1, 1)), np.zeros((1, 1), np.uint32), team.gate)
        task = LineTask(np.uintp(0), np.uint64(0), np.zeros(0), False, team)
        _ADDRESSES.append(point_at(draw_half, p, g, memory, np.zeros(0, np.int8), task))
    return _ADDRESSES[0]


@implement(visit, LineParameters, LatticeGraph)
def _visit(
    parameters: LineParameters,
    arrays: LatticeGraph,
    schedule: Any,
    memory: LineMemory,
    x: State,
    order: NDArray[np.int32],
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
        task = LineTask(_U(site_at(schedule, order, k)), key, cond, keep, team)
        call_pointer(parameters.draw, parameters.factors, arrays, memory, x, task)
    return rng


@implement(step, LineParameters, LatticeGraph)
def _step(
    parameters: LineParameters,
    arrays: LatticeGraph,
    memory: LineMemory,
    x: State,
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    rng, key = bits(rng)
    task = LineTask(_U(i), key, cond, keep, Team(0, 1, memory.gate))
    call_pointer(parameters.draw, parameters.factors, arrays, memory, x, task)
    return rng


@implement(transition, LineParameters, LatticeGraph)
def _transition(
    parameters: LineParameters,
    arrays: LatticeGraph,
    memory: LineMemory,
    x: State,
    i: Integer,
    row: Floats,
) -> Integer:
    """Write the product of the probabilities with which each site would be drawn, for all states of a half.

    Bit ``line * size_1 + t``, counted from the highest, is the state of site t of a line.
    """
    p, g, length = parameters.factors, arrays, np.int64(arrays.size_1)
    weight, ratio, room = memory.weight[0], memory.ratio[0], memory.row[0]
    lines = np.int64(0)
    for number in range(_n_tiles(g, p.lanes)):
        lines += np.int64(_place(g, p.lanes, i, number).count)
    count, done = np.int64(1) << (lines * length), np.int64(0)
    for state in range(count):
        row[state] = 1.0
    for number in range(_n_tiles(g, p.lanes)):
        tile = _place(g, p.lanes, i, number)
        for t in range(_U(g.size_1)):
            _look(p, g, x, tile, t, weight)
        for state in range(count):
            for j in range(tile.count):
                shift = (lines - done - np.int64(j)) * length - 1  # of the first site of the line
                room[_FIRST, j] = np.float64((np.int64(state) >> shift) & 1)
            row[state] *= _chance(p, g, x, tile, state, (lines - done) * length, weight, ratio, room)
        done += np.int64(tile.count)
    return count


@called
def _chance(
    p: LineFactors,
    g: LatticeGraph,
    x: State,
    tile: _Tile,
    state: Integer,
    top: Integer,
    weight: Floats,
    ratio: Floats,
    row: Floats,
) -> float:
    """Return the probability of the states of a tile, bits of ``state`` below bit ``top``."""
    length, first, link, chance = np.int64(g.size_1), np.int64(0), row[_LINK], 1.0
    if g.wrap_1:
        _sum_ring(p, g, tile, weight, row)
        _close_ring(p, g, x, tile, weight, ratio, row)
        first = np.int64(1)
        for j in range(tile.count):
            odds = row[_ODDS, j]
            chance *= (odds if row[_FIRST, j] > 0.5 else 1.0) / (1.0 + odds)
        _look(p, g, x, tile, _U(1), weight)
        _look(p, g, x, tile, _U(length - 1), weight)
    else:
        _filter(p, g, tile, _U(0), weight, ratio, link)
    for j in range(tile.count):
        after = 1
        for t in range(length - 1, first - 1, -1):
            _link(p, g, tile, _U(t), link)
            own = (np.int64(state) >> (top - np.int64(j) * length - 1 - t)) & 1
            k = 1.0 if t == length - 1 else link[j]
            up, down = _odds(ratio[_U(t) * _U(p.lanes) + j], k, after)
            chance *= (up if own else down) / (up + down)
            after = own
    return chance
