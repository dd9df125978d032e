"""Gibbs sampling of binary pairwise graphs color by color: all sites of a color at once, on any number of threads.

The random number of a site depends only on the chain, the sweep and the site's position, so results are the
same for any number of threads.

Sites are ordered by color, then by degree. A class (equal color and degree) of small degree keeps the
conditional of every configuration of a site's neighbours as a threshold for random integers; the others keep
their couplings. Within a class, sites are ordered such that neighbours are close together, where such an order
is known (:mod:`gibbsite.graphs.nearness`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats, Floats32, Ints, Ints8, Ints32, Words32
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, called, implement, inlined
from gibbsite._numba.random.generators import BLOCK, BYTES, WORDS, Words, fill_keyed, single_word
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.nearness import rank_sites
from gibbsite.graphs.rows import row_lengths, row_starts
from gibbsite.kernels.base import Span, Team
from gibbsite.kernels.batched.base import PackedModel, Permutation, register_batched
from gibbsite.kernels.batched.heatbath import UNIT, HeatBath, KeyedMemory, draw_at_once

if TYPE_CHECKING:
    from gibbsite.models import Model

# Log-odds are added up in 32-bit floats if none can exceed this; their error is then below 1e-5.
MOST_ODDS = 64.0
# Thresholds are probabilities in units of 2^-32, and at most one unit below 1. Their upper bytes are stored
# separately: these decide 255 of 256 comparisons, and four times as many of them fit into the cache.
SCALE = 1 << 32
MOST_TABLED = 4


class ColoredGraph(NamedTuple):
    """Binary sites in compressed columns, color by color.

    Color c holds the positions from ``color_start[c]`` and the classes from ``color_class[c]`` on, up to the
    next color's; class k the positions ``first[k]`` to ``first[k + 1]``, each with ``degree[k]`` neighbours.
    Neighbour q of position p is entry ``edge[k] + q * size + p - first[k]``. The log-odds are
    ``field[p] + sum of coupling * x[neighbour]``. Where ``table[k]`` is not negative, the thresholds of
    position p begin at ``table[k] + (p - first[k]) * 2^degree``, neighbour q being bit q.
    """

    color_start: Ints
    color_class: Ints
    first: Ints
    degree: Ints
    edge: Ints
    table: Ints
    neighbour: Words32
    coupling: Floats32
    field: Floats32
    upper: Bytes
    threshold: Words32


def pack_columns(model: Model, graph: Graph, most_tabled: int = MOST_TABLED) -> PackedModel | None:
    """Lay a binary model out color by color; None for other models, or if couplings are too large.

    Sites of at most ``most_tabled`` neighbours have tables of thresholds.
    """
    if not graph.binary:
        return None
    rows = graph if isinstance(graph.arrays, IsingGraph) else compile_graph(model, "ising")
    if not _fits(rows.arrays):
        return None
    arrays, order, near = _color_rows(rows, most_tabled)
    return PackedModel(arrays, order, int(np.diff(arrays.color_start).max(initial=0)), rows.log_offset, near)


def _color_rows(graph: Graph, most_tabled: int) -> tuple[ColoredGraph, Permutation, Ints32]:
    """Turn the compressed rows of a binary graph into columns, color by color."""
    arrays: IsingGraph = graph.arrays
    start, degree = arrays.start.astype(np.int64), row_lengths(arrays.start)
    color = color_sites(graph)
    near = rank_sites(arrays.start, arrays.neighbour)
    order = np.lexsort((degree, color) if near is None else (near, degree, color))
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    keys = np.stack([color[order], degree[order]])
    new = np.ones(order.size, np.bool_)
    new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    first = np.append(np.flatnonzero(new), order.size)
    size, degree = np.diff(first), degree[order][first[:-1]]
    edge = row_starts(size * degree)
    neighbour = np.empty(int(edge[-1]), np.uint32)
    coupling = np.empty(int(edge[-1]), np.float32)
    field = arrays.field[order]
    table = np.full(size.size, -1, np.int64)
    thresholds, used = [np.zeros(0, np.uint32)], 0
    for k in range(size.size):
        sites = order[first[k] : first[k + 1]]
        rows = start[sites][:, None] + np.arange(degree[k])
        odds = arrays.coupling[rows]
        part = slice(edge[k], edge[k + 1])
        neighbour[part] = position[arrays.neighbour[rows]].T.ravel()
        coupling[part] = odds.T.ravel()
        if degree[k] <= most_tabled:
            table[k] = used
            thresholds.append(_thresholds(field[first[k] : first[k + 1]], odds))
            used += thresholds[-1].size
    # padding, so that the last table can be read as if it had full size
    limits = np.concatenate([*thresholds, np.zeros(1 << most_tabled, np.uint32)])
    colors = keys[0][first[:-1]] if order.size else np.zeros(0, np.int32)
    count = int(colors.max(initial=-1)) + 1
    arrays_out = ColoredGraph(
        color_start=np.searchsorted(keys[0], np.arange(count + 1)).astype(np.int64),
        color_class=np.searchsorted(colors, np.arange(count + 1)).astype(np.int64),
        first=first.astype(np.int64),
        degree=degree.astype(np.int64),
        edge=edge,
        table=table,
        neighbour=neighbour,
        coupling=coupling,
        field=field.astype(np.float32),
        upper=(limits >> 24).astype(np.uint8),
        threshold=limits,
    )
    rank = order if near is None else near[order]
    return arrays_out, Permutation(order.astype(np.int32)), rank.astype(np.int32)


def _fits(arrays: IsingGraph) -> bool:
    """Return whether all log-odds stay within bounds."""
    row = np.repeat(np.arange(arrays.field.size), row_lengths(arrays.start))
    reach = np.abs(arrays.field) + np.bincount(row, np.abs(arrays.coupling), arrays.field.size)
    return bool((reach <= MOST_ODDS).all())


def _thresholds(field: Floats, coupling: Floats) -> Words32:
    """Return the probabilities of state 1 for every configuration of the neighbours, as integers."""
    odds = field[:, None]
    for q in range(coupling.shape[1]):  # neighbour q is bit q
        odds = np.concatenate([odds, odds + coupling[:, q : q + 1]], axis=1)
    return np.minimum(np.rint(SCALE / (1.0 + np.exp(-odds))), SCALE - 1).astype(np.uint32).ravel()


_U = np.uintp
_U32 = np.uint32
F = np.float32
_TO_UNIT = F(1.0 / SCALE)


@inlined
def share(low: Integer, high: Integer, size: int, team: Team) -> tuple[Integer, Integer]:
    """Return the range of pieces of ``size`` positions, numbered from zero, that a member of a team takes."""
    begin, end = low // _U(size), (high + _U(size - 1)) // _U(size)
    members, member = _U(team.size), _U(team.member)
    return begin + (end - begin) * member // members, begin + (end - begin) * (member + _U(1)) // members


@inlined
def counters(base: Integer, end: Integer, most: int, each: int) -> Integer:
    """Return the number of counters for at most ``most`` positions; each counter provides ``each`` numbers.

    Counters are numbered consecutively, so no two pieces share any.
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
    """Size and degree of a class, and the first edge and threshold of one of its positions."""

    size: Integer
    degree: Integer
    edge: Integer
    table: Integer


@inlined
def find_columns(arrays: ColoredGraph, k: Integer, p: Integer) -> Columns:
    """Return the columns of class k from position p on; the threshold has no meaning in a class without thresholds."""
    size, inside = _U(arrays.first[k + 1] - arrays.first[k]), p - _U(arrays.first[k])
    degree = _U(arrays.degree[k])
    return Columns(size, degree, _U(arrays.edge[k]) + inside, _U(arrays.table[k]) + (inside << degree))


# The states of neighbours as the bits of a number. The loop is unrolled for common degrees, which is a fifth faster.


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
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Draw positions color by color: those with thresholds first, then the others."""
    where, stop, turn, team = span.where, span.stop, span.turn, span.team
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
    """Return whether a random number whose first byte is known is below a threshold."""
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
    """Update positions u to v of a class with thresholds; the states of the neighbours select the threshold."""
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
    return total + 0.5 * pairs  # every pair was counted from both ends


@register_batched(kernel="Gibbs", kinds=("binary",))
class Colors(HeatBath):
    """The heat bath on binary models, color by color."""

    name, form, rank = "colors", "arranged", 20
    layouts = (ColoredGraph,)
    move = staticmethod(_move_colors)

    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a binary model out, if its couplings allow it."""
        return pack_columns(model, graph)
