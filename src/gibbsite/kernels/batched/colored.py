"""Gibbs sampling color by color: all sites of a color at once, on any number of threads.

The random number of a site depends on the chain, the sweep and the site's position alone, so the answer is
the same on one thread or many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats32, Ints8, Ints32, Words32
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, called, implement, inlined
from gibbsite._numba.random.generators import BLOCK, BYTES, WORDS, Words, fill_keyed, single_word
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.layouts.colored import SCALE, ColoredGraph, pack_columns
from gibbsite.graphs.layouts.site_order import PackedModel
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Team
from gibbsite.kernels.batched.base import register_way
from gibbsite.kernels.batched.heatbath import draw_at_once
from gibbsite.kernels.batched.keyed import UNIT, HeatBath, KeyedMemory
from gibbsite.kernels.gibbs.gibbs import GibbsParameters

if TYPE_CHECKING:
    from gibbsite.models import Model

_U = np.uintp
_U32 = np.uint32
F = np.float32
_TO_UNIT = F(1.0 / SCALE)


@inlined
def share(low: Integer, high: Integer, size: int, team: Team) -> tuple[Integer, Integer]:
    """Return which pieces of some size, counted from zero, a member of a team takes of low to high."""
    begin, end = low // _U(size), (high + _U(size - 1)) // _U(size)
    members, member = _U(team.size), _U(team.member)
    return begin + (end - begin) * member // members, begin + (end - begin) * (member + _U(1)) // members


@inlined
def counters(base: Integer, end: Integer, most: int, each: int) -> Integer:
    """Return how many counters hold the numbers of at most ``most`` positions, ``each`` of them in one.

    They are the numbers of the first so many of these positions, so no two pieces have any in common.
    """
    return (min(_U(most), end - base) + _U(each - 1)) // _U(each)


@called
def first_without_table(arrays: ColoredGraph, c: Integer) -> Integer:
    """Return the first position of a color that has no thresholds: small degrees come first."""
    k = arrays.color_class[c]
    while k < arrays.color_class[c + 1] and arrays.table[k] >= 0:
        k += 1
    return _U(arrays.first[k])


class Columns(NamedTuple):
    """What a class has from one of its positions on: its size, the degree, first edge and threshold."""

    size: Integer
    degree: Integer
    edge: Integer
    table: Integer


@inlined
def find_columns(arrays: ColoredGraph, k: Integer, p: Integer) -> Columns:
    """Return what class k has from position p on; its threshold means nothing where there are none."""
    size, inside = _U(arrays.first[k + 1] - arrays.first[k]), p - _U(arrays.first[k])
    degree = _U(arrays.degree[k])
    return Columns(size, degree, _U(arrays.edge[k]) + inside, _U(arrays.table[k]) + (inside << degree))


# The states of neighbours as the bits of a number. They are written out for the common degrees: a fifth
# faster than what the compiler makes of the loop.


@inlined
def bits_of_three(x: Ints8, neighbour: Words32, e: Integer, size: Integer) -> Integer:
    """Return the states of three neighbours, entries e, e + size and so on, as bits."""
    low = _U(x[neighbour[e]]) + (_U(x[neighbour[e + size]]) << _U(1))
    return low + (_U(x[neighbour[e + _U(2) * size]]) << _U(2))


@inlined
def bits_of_four(x: Ints8, neighbour: Words32, e: Integer, size: Integer) -> Integer:
    """Return the states of four neighbours as bits."""
    return bits_of_three(x, neighbour, e, size) + (_U(x[neighbour[e + _U(3) * size]]) << _U(3))


@inlined
def bits_of_all(x: Ints8, neighbour: Words32, e: Integer, size: Integer, degree: Integer) -> Integer:
    """Return the states of any number of neighbours as bits."""
    bits = _U(0)
    for q in range(degree):
        bits += _U(x[neighbour[e + q * size]]) << q
    return bits


def _move_colors(
    parameters: GibbsParameters,
    arrays: ColoredGraph,
    schedule: Any,
    memory: KeyedMemory,
    x: Ints8,
    order: Ints32,
    where: Integer,
    stop: Integer,
    turn: Integer,
    rng: Words,
    cond: Floats32,
    keep: bool,
    team: Team,
) -> Words:
    words, odds, key = memory.words[team.member], memory.room[team.member], memory.key
    for c in range(arrays.color_start.size - 1):
        start, end = _U(arrays.color_start[c]), _U(arrays.color_start[c + 1])
        if max(where, start) < min(stop, end):
            split = first_without_table(arrays, c)
            low, high = max(where, start), min(stop, split)
            if low < high:
                begin, done = share(low - start, high - start, UNIT, team)
                for unit in range(begin, done):
                    base = start + unit * _U(UNIT)
                    a, b = max(low, base), min(high, base + _U(UNIT))
                    fill_keyed(words, key[0], key[1], turn, base, counters(base, split, UNIT, 16), BYTES)
                    for k in range(arrays.color_class[c], arrays.color_class[c + 1]):
                        u, v = max(a, _U(arrays.first[k])), min(b, _U(arrays.first[k + 1]))
                        if u < v:
                            _look_up(arrays, k, x, u, v, base, memory, team, turn, cond, keep)
            low, high = max(where, split), min(stop, end)
            if low < high:
                begin, done = share(low - split, high - split, BLOCK, team)
                for block in range(begin, done):
                    base = split + block * _U(BLOCK)
                    a, b = max(low, base), min(high, base + _U(BLOCK))
                    fill_keyed(words, key[0], key[1], turn, base, counters(base, end, BLOCK, 4), WORDS)
                    for k in range(arrays.color_class[c], arrays.color_class[c + 1]):
                        u, v = max(a, _U(arrays.first[k])), min(b, _U(arrays.first[k + 1]))
                        if u < v:
                            _add_up(arrays, k, x, u, v, odds)
                            draw_at_once(odds, words, u - base, x, u, v - u, cond, keep)
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    return rng


@inlined
def passes(
    arrays: ColoredGraph,
    quarter: np.uint8,
    place: Integer,
    key_0: np.uint32,
    key_1: np.uint32,
    turn: Integer,
    p: Integer,
) -> bool:
    """Return whether a random number, of which one byte is there already, is below a threshold."""
    if quarter != arrays.upper[place]:
        return bool(quarter < arrays.upper[place])
    return rest_passes(arrays, place, key_0, key_1, turn, p)


@inlined
def rest_passes(
    arrays: ColoredGraph, place: Integer, key_0: np.uint32, key_1: np.uint32, turn: Integer, p: Integer
) -> bool:
    """Return whether a random number whose first byte equals that of a threshold is below it."""
    return bool((single_word(key_0, key_1, turn, p) >> _U32(8)) < (arrays.threshold[place] & _U32(0xFFFFFF)))


@called
def _look_up(
    arrays: ColoredGraph,
    k: Integer,
    x: Ints8,
    u: Integer,
    v: Integer,
    base: Integer,
    memory: KeyedMemory,
    team: Team,
    turn: Integer,
    sums: Floats32,
    keep: bool,
) -> None:
    """Update positions u to v of a class with thresholds, which the neighbours' states select."""
    size, degree, edge, table = find_columns(arrays, k, u)
    neighbour, quarters = arrays.neighbour, memory.quarters[team.member]
    key_0, key_1 = memory.key[0], memory.key[1]
    at = u - base
    if degree == _U(4):
        for i in range(v - u):
            place = table + (i << _U(4)) + bits_of_four(x, neighbour, edge + i, size)
            x[u + i] = passes(arrays, quarters[at + i], place, key_0, key_1, turn, u + i)
            if keep:
                sums[u + i] += F(arrays.threshold[place]) * _TO_UNIT
    elif degree == _U(3):
        for i in range(v - u):
            place = table + (i << _U(3)) + bits_of_three(x, neighbour, edge + i, size)
            x[u + i] = passes(arrays, quarters[at + i], place, key_0, key_1, turn, u + i)
            if keep:
                sums[u + i] += F(arrays.threshold[place]) * _TO_UNIT
    else:
        for i in range(v - u):
            place = table + (i << degree) + bits_of_all(x, neighbour, edge + i, size, degree)
            x[u + i] = passes(arrays, quarters[at + i], place, key_0, key_1, turn, u + i)
            if keep:
                sums[u + i] += F(arrays.threshold[place]) * _TO_UNIT


@called
def _add_up(arrays: ColoredGraph, k: Integer, x: Ints8, u: Integer, v: Integer, odds: Floats32) -> None:
    """Write the log-odds of positions u to v of a class: four neighbours at a time, then one by one."""
    size, degree, edge, _ = find_columns(arrays, k, u)
    neighbour, coupling = arrays.neighbour, arrays.coupling
    count = v - u
    for i in range(count):
        odds[i] = arrays.field[u + i]
    four = degree - degree % _U(4)
    for q in range(_U(0), four, _U(4)):
        e0 = edge + q * size
        e1, e2, e3 = e0 + size, e0 + size + size, e0 + size + size + size
        for i in range(count):
            odds[i] = (
                odds[i]
                + coupling[e0 + i] * F(x[neighbour[e0 + i]])
                + coupling[e1 + i] * F(x[neighbour[e1 + i]])
                + coupling[e2 + i] * F(x[neighbour[e2 + i]])
                + coupling[e3 + i] * F(x[neighbour[e3 + i]])
            )
    for q in range(four, degree):
        e0 = edge + q * size
        for i in range(count):
            odds[i] += coupling[e0 + i] * F(x[neighbour[e0 + i]])


@implement(log_potential, ColoredGraph)
def _log_potential(arrays: ColoredGraph, x: Ints8) -> float:
    total, pairs = 0.0, 0.0
    for k in range(arrays.degree.size):
        first, size = _U(arrays.first[k]), _U(arrays.first[k + 1] - arrays.first[k])
        for i in range(size):
            if x[first + i]:
                total += arrays.field[first + i]
                for q in range(_U(arrays.degree[k])):
                    e = _U(arrays.edge[k]) + q * size + i
                    pairs += arrays.coupling[e] * x[arrays.neighbour[e]]
    return total + 0.5 * pairs  # every pair was met from both ends


@register_way
class Colors(HeatBath):
    """The heat bath on binary models, color by color."""

    name, form, rank = "colors", "arranged", 20
    layouts = (ColoredGraph,)
    move = staticmethod(_move_colors)

    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a binary model out, if its couplings allow it."""
        return pack_columns(model, graph)
