"""Blocked Gibbs sampling of lattices: every second strip is drawn jointly, then the others.

A strip is a set of adjacent lines along the middle axis of a two-state lattice: columns of a two-dimensional
lattice. Given the other half, strips of one half are independent, and each is a chain of rows of ``width`` sites.
T(s, s') is the weight of states of neighbouring rows: the product of exp(2 coupling) over the sites that agree. W(s)
is the weight of a state of a row, from fields, couplings within the row and neighbours outside the strip. The filter is

    A_0 = W_0,    A_t(s) = W_t(s) sum over s' of T(s, s') A_{t-1}(s'),

with A scaled to constant size, and T is applied site by site. In the backward pass, a row is drawn jointly from
A_t(s) T(s, s'), where s' is the state drawn for the next row. Sums and products of positive numbers lose no relative
accuracy by rounding. A periodic strip is cut: one of its rows keeps its states and counts as a neighbour outside.
There are then two cuts, far apart, and so four blocks.

Four strips form a *tile* and are processed at once, by vector instructions; threads share the tiles. Random numbers are
keyed by tile and row under a key that is drawn for each visit, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints8, Positions
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.pointer import call_pointer, point_at, pointed
from gibbsite._numba.quad import FOUR
from gibbsite._numba.random.generators import BLOCK, Words, bits
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.kernels.base import MOST_MEMBERS, Span, Team, step, transition, visit
from gibbsite.kernels.blocks.strip_filter import (
    STRIPS,
    StripFactors,
    StripMemory,
    StripModel,
    StripParameters,
    StripTask,
    Tile,
    buffers_of,
    calibrate,
    condition_on,
    draw_tile,
    filter_tile,
    link_rows,
    multiply_rows,
    n_tiles,
    place_tile,
)
from gibbsite.scans.base import site_at

#: Largest width of a strip: wider ones cost more than they gain.
WIDEST = 6
# Least number of sites for each of the threads that share a half.
_LEAST_SHARE = 4096
# Largest logarithm of a ratio of weights of a row for which no product can leave the range of floats.
_MOST_RANGE = 600.0
# Padding between the buffers of members of a team, so that two of them never write to one cache line.
_GAP = 16


@dataclass(frozen=True, eq=False)
class StripPlan:
    """Strips of a lattice, half of which are drawn jointly."""

    arrays: LatticeGraph
    start: Ints

    #: Strips need no pool of tables.
    pool = 0

    @property
    def width(self) -> int:
        """Largest number of columns of a strip."""
        return int(np.diff(self.start).max())

    @property
    def n_blocks(self) -> int:
        """The number of blocks: two halves, or four if strips are periodic, one for each half and cut."""
        return 4 if self.arrays.wrap_1 else 2

    @property
    def blocks(self) -> list[Ints]:
        """The sites of the blocks."""
        return [np.sort(self.sites_of(unit)).astype(np.int64) for unit in range(self.n_blocks)]

    @property
    def log2_largest(self) -> float:
        """log2 of the entries of the clique tables of a strip that is eliminated site by site."""
        return self.width + 1.0

    @property
    def total(self) -> float:
        """Number of entries of all tables, a measure of the cost of a sweep."""
        g = self.arrays
        sites = g.size_0 * g.size_1 * g.size_2
        return math.exp2(self.log2_largest) * sites * self.n_blocks / 2

    @property
    def per_half(self) -> int:
        """Largest number of strips of a half in one plane."""
        return self.start.size // 2

    @property
    def members(self) -> int:
        """The number of threads that can share a half."""
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
        """Return the parameters for compiled code."""
        return StripParameters(self.factors, _address(self.factors, self.arrays))

    def memory(self, graph: Graph) -> StripMemory:
        """Allocate buffers for the tiles of a team."""
        members, site, state = self.members, self.width * FOUR, 2**self.width * FOUR

        def ones(*shape: int) -> Floats:  # not zeros, so that loops may divide by entries of missing strips
            return np.ones((members, *shape[:-1], shape[-1] + _GAP))

        return StripMemory(
            single=ones(self.arrays.size_1 * site),
            table=ones(self.arrays.size_1 * state),
            row=ones(3, state),
            site=ones(3, site),
            lane=ones(2, FOUR),
            words=np.ones((members, BLOCK + _GAP), np.uint32),
            gate=np.zeros(1, np.int64),
        )

    @property
    def whole_log2(self) -> float:
        """About log2 of the entries of the largest table of a block of all sites.

        The treewidth of a plane is its shorter side, that of a long box is the size of its cross-section, and
        that of a cube three quarters of it.
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


@pointed
def draw_half(model: StripModel, memory: StripMemory, x: Ints8, task: StripTask) -> None:
    """Draw the tiles of a half that belong to a member of a team; write marginals if ``task.keep`` is set.

    Loops call this function by its address, so it is compiled only once.
    """
    p, g, team = model.factors, model.lattice, task.team
    buffers = buffers_of(memory, team.member)
    tiles, members, member = n_tiles(p, g), _U(team.size), _U(team.member)
    for number in range(tiles * member // members, tiles * (member + _U(1)) // members):
        tile = place_tile(p, g, task.unit, number)
        if tile.count > _U(0):
            filter_tile(p, g, x, tile, buffers)
            if task.keep:
                calibrate(p, g, tile, buffers, task.cond)
            draw_tile(p, g, x, tile, task.key, buffers)
    if team.size > 1:
        wait_for_all(team.gate, team.size)


_U = np.uintp
_ADDRESSES: list[Any] = []


def _address(p: StripFactors, g: LatticeGraph) -> Any:
    """Return the address of the function that draws half of the strips."""
    if not _ADDRESSES:
        one, two, team = np.zeros((1, 1)), np.zeros((1, 1, 1)), Team(0, 1, np.zeros(1, np.int64))
        memory = StripMemory(one, one, two, two, two, np.zeros((1, 1), np.uint32), team.gate)
        task = StripTask(np.uintp(0), np.uint64(0), np.zeros(0), False, team)
        _ADDRESSES.append(point_at(draw_half, StripModel(p, g), memory, np.zeros(0, np.int8), task))
    return _ADDRESSES[0]


@implement(visit, StripParameters, LatticeGraph)
def _visit(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Draw the halves of a span of visits, shared by the threads of a team."""
    for k in range(span.where, span.stop):
        rng, key = bits(rng)  # the same key for all members of the team
        task = StripTask(_U(site_at(schedule, span.order, k)), key, cond, keep, span.team)
        call_pointer(params.draw, StripModel(params.factors, arrays), memory, x, task)
    return rng


@implement(step, StripParameters, LatticeGraph)
def _step(
    params: Any, arrays: Any, memory: StripMemory, x: Ints8, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    rng, key = bits(rng)
    task = StripTask(_U(i), key, cond, keep, Team(0, 1, memory.gate))
    call_pointer(params.draw, StripModel(params.factors, arrays), memory, x, task)
    return rng


@implement(transition, StripParameters, LatticeGraph)
def _transition(
    parameters: StripParameters, arrays: LatticeGraph, memory: StripMemory, x: Ints8, i: Integer, row: Floats
) -> Integer:
    """Write, for all states of a block, the product of the probabilities with which its rows are drawn.

    States are numbered with the last site fastest, in the order of :meth:`StripPlan.sites_of`.
    """
    p, g = parameters.factors, arrays
    buffers = buffers_of(memory, 0)
    table, room, site, total = buffers.table, buffers.row, buffers.site, buffers.lane[0]
    size, top = STRIPS << _U(p.width), np.int64(0)
    for number in range(n_tiles(p, g)):
        tile = place_tile(p, g, i, number)
        for j in range(tile.count):
            top += np.int64(tile.rows) * _columns(p, tile, j)
    count = np.int64(1) << top
    for state in range(count):
        row[state] = 1.0
    for number in range(n_tiles(p, g)):
        tile = place_tile(p, g, i, number)
        filter_tile(p, g, x, tile, buffers)
        for j in range(tile.count):
            own = np.int64(_columns(p, tile, j))
            for state in range(count):
                for t in range(tile.rows):
                    if t + _U(1) < tile.rows:
                        link_rows(p, g, tile, t, True, site[1])
                        _read(p, state, top - np.int64(t + _U(2)) * own, own, j, site[2])
                        condition_on(p, site[1], site[2], room[0])
                    else:
                        for k in range(size):
                            room[0, k] = 1.0
                    multiply_rows(p, table, t * size, room[0], room[0], _U(0), total)
                    chance = 0.0
                    here = (np.int64(state) >> (top - np.int64(t + _U(1)) * own)) & ((1 << own) - 1)
                    for s in range(_U(1) << _U(p.width)):
                        if _reversed(np.int64(s), own) == here:
                            chance += room[0, s * STRIPS + j]
                    row[state] *= chance / total[j]
            top -= np.int64(tile.rows) * own
    return count


@inlined
def _columns(p: StripFactors, tile: Tile, j: Integer) -> Integer:
    """Return the number of columns of a strip of a tile."""
    strip = tile.first + _U(2) * j
    return np.int64(p.start[strip + _U(1)] - p.start[strip])


@inlined
def _reversed(s: Integer, own: Integer) -> Integer:
    """Return the state of a row with the order of its ``own`` bits reversed."""
    found = np.int64(0)
    for c in range(own):
        found |= ((s >> c) & 1) << (own - 1 - c)
    return found


@inlined
def _read(p: StripFactors, state: Integer, shift: Integer, own: Integer, j: Integer, after: Floats) -> None:
    """Write the states of a row of a strip, ``own`` bits of ``state`` from ``shift`` on, site by site."""
    for c in range(_U(p.width)):
        after[c * STRIPS + j] = 0.0
    for c in range(own):
        after[_U(c) * STRIPS + j] = np.float64((np.int64(state) >> (shift + own - 1 - c)) & 1)
