"""Blocks as clique tables: the factors that are multiplied for each site of a block, and the layout of the products.

The sites of a block are summed out one after another (:mod:`gibbsite.graphs.elimination`). Summing out a site makes
a table over the site, which is its first axis, and its separator, the sites of the block that it is still
joined to. The table is the product of

* the *field*: all factors without another site of the block, a vector over the states of the site;
* the other factors of the site that have not been used before;
* the messages of the earlier sites whose separators begin with this site.

Axes are in order of elimination in all tables, so adjacent axes that a factor or message has, or lacks, are merged: an
operand is a short list of loops, from the outermost to the innermost, each with its extent and the operand's stride.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite.graphs.elimination.order import EliminationOrder, find_order, measure_order
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_starts

# Number of tries in the search for an elimination order of a block; many, because every sweep uses the order.
_TRIES = 60
#: Largest number of loops of an operand, and of axes of a table.
MOST_LOOPS = 64


class BlockTables(NamedTuple):
    """The tables of all blocks, for compiled code."""

    start: Ints  # (blocks + 1,): tables of block b, in order of elimination: from ``start[b]`` to ``start[b + 1]``
    # site, parent, via: the site that a table sums out, the table that its message goes to (-1 if none), and the number
    # of the operand that the message is there
    site: Ints
    parent: Ints
    via: Ints
    # place, message: where table and message lie in the pool of a chain, which all blocks share
    place: Ints
    message: Ints
    separator: Ints  # number of entries of the message
    # axis, axis_site, axis_stride: sites of the separator, with their strides, in compressed rows
    axis: Ints
    axis_site: Ints
    axis_stride: Ints
    # field, field_factor, field_stride: factors of the field, with the stride of the site
    field: Ints
    field_factor: Ints
    field_stride: Ints
    # operand, child, factor, floor: operands of each table, in compressed rows: the table whose message it is, or a
    # factor (the other one is -1), and the smallest positive entry of the factor
    operand: Ints
    child: Ints
    factor: Ints
    floor: Floats
    # rim, rim_site, rim_stride: members of a factor that are not in the block, for each operand
    rim: Ints
    rim_site: Ints
    rim_stride: Ints
    # loop, extent, stride: loops of each operand
    loop: Ints
    extent: Ints
    stride: Ints


class Interactions(NamedTuple):
    """The sites that share a factor with each site, in compressed rows without repeats."""

    start: Ints
    neighbour: Ints


def find_interactions(arrays: TableGraph) -> Interactions:
    """Return the neighbours of all sites."""
    pairs = arrays.pairs()
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    return Interactions(row_starts(np.bincount(both[:, 0], minlength=arrays.card.size)), both[:, 1].copy())


def order_block(
    near: Interactions,
    cards: Ints32,
    block: Ints,
    known: Ints | None = None,
    log2_largest: float = np.inf,
    tries: int = _TRIES,
) -> EliminationOrder:
    """Return a good order of elimination of the sites of a block, as positions in the block.

    ``known`` is an order of sites that is returned if the search finds no better one, or only one with a table of more
    than 2^log2_largest entries.
    """
    place = np.full(cards.size, -1, np.int64)
    place[block] = np.arange(block.size)
    lengths = near.start[block + 1] - near.start[block]
    rows = np.repeat(np.arange(block.size), lengths)
    first = np.repeat(near.start[block] - (np.cumsum(lengths) - lengths), lengths)
    inside = place[near.neighbour[first + np.arange(rows.size)]]
    rows, inside = rows[inside >= 0], inside[inside >= 0]
    start = row_starts(np.bincount(rows, minlength=block.size))
    sizes = np.maximum(cards[block].astype(np.int64), 2)
    order = find_order(start, inside, sizes, tries=tries)
    if known is not None:
        other = measure_order(start, inside, sizes, place[known])
        if other.total < order.total or order.log2_largest > log2_largest + 1e-9:
            return other
    return order


class _Rows:
    """A builder of compressed rows with several columns."""

    def __init__(self, columns: int) -> None:
        self.lengths: list[int] = []
        self.columns: list[list[int]] = [[] for _ in range(columns)]

    def add(self, *new: list[int]) -> None:
        self.lengths.append(len(new[0]))
        for kept, more in zip(self.columns, new, strict=True):
            kept.extend(more)

    def finish(self) -> list[Ints]:
        return [row_starts(np.array(self.lengths, np.int64)), *(np.array(c, np.int64) for c in self.columns)]


class _Writer:
    """A builder of :class:`BlockTables`, one block after another."""

    def __init__(self, arrays: TableGraph) -> None:
        self.cards: list[int] = arrays.card.tolist()
        self.start: list[int] = arrays.start.tolist()
        self.factor: list[int] = arrays.factor.tolist()
        self.own_stride: list[int] = arrays.own_stride.tolist()
        self.member_start: list[int] = arrays.member_start.tolist()
        self.member: list[int] = arrays.member.tolist()
        self.stride: list[int] = arrays.stride.tolist()
        self.lowest = smallest_entries(arrays)
        self.rank = [-1] * len(self.cards)  # in the order of elimination of the block; -1: not in it
        self.blocks, self.pool = [0], 1
        # a row for each table: site, parent, via, place, message, separator
        self.tables: list[list[int]] = []
        self.axes, self.fields, self.operands, self.rims, self.loops = (_Rows(2) for _ in range(5))
        self.floors: list[float] = []

    def add_block(self, order: list[int]) -> None:
        """Write the tables of a block, its sites given in order of elimination."""
        for k, i in enumerate(order):
            self.rank[i] = k
        base, at = len(self.tables), 0
        scopes: list[list[int]] = []
        received: list[list[int]] = [[] for _ in order]  # messages by the table that they go to
        for k, i in enumerate(order):
            field, used = self._own_factors(i, k)
            scope = {r for f in used for r, _ in self._inside(f)}
            scope = scope.union(*(scopes[c] for c in received[k])) - {k}
            axis = sorted(scope)
            scopes.append(axis)
            strides = _strides([self.cards[order[r]] for r in axis])
            many = strides[0] * self.cards[order[axis[0]]] if axis else 1
            parent = base + axis[0] if axis else -1
            self.tables.append([i, parent, -1, at, at + many * self.cards[i], many])
            at += many * (self.cards[i] + 1)
            self.axes.add([order[r] for r in axis], strides)
            self.fields.add(*field)
            self._add_operands(order, [k, *axis], used, [base + c for c in received[k]], scopes, base)
            if axis:
                received[axis[0]].append(k)
        for i in order:
            self.rank[i] = -1
        self.blocks.append(len(self.tables))
        self.pool = max(self.pool, at)

    def _inside(self, f: int) -> list[tuple[int, int]]:
        """Return the members of a factor that are in the block, as ranks, with their strides."""
        span = range(self.member_start[f], self.member_start[f + 1])
        found = [(self.rank[self.member[m]], self.stride[m]) for m in span]
        return [(r, stride) for r, stride in found if r >= 0]

    def _own_factors(self, i: int, k: int) -> tuple[tuple[list[int], list[int]], list[int]]:
        """Return the factors of the field of a site, with strides, and those used first in its table."""
        field: tuple[list[int], list[int]] = ([], [])
        used = []
        for row in range(self.start[i], self.start[i + 1]):
            f = self.factor[row]
            ranks = [r for r, _ in self._inside(f)]
            if len(ranks) == 1:
                field[0].append(f)
                field[1].append(self.own_stride[row])
            elif min(ranks) == k:
                used.append(f)
        return field, used

    def _add_operands(
        self,
        order: list[int],
        full: list[int],
        used: list[int],
        children: list[int],
        scopes: list[list[int]],
        base: int,
    ) -> None:
        """Write the factors and messages that are multiplied into a table with the axes ``full``."""
        extents = [self.cards[order[r]] for r in full]
        for f in used:
            held = dict(self._inside(f))
            span = range(self.member_start[f], self.member_start[f + 1])
            out = [m for m in span if self.rank[self.member[m]] < 0]
            self.rims.add([self.member[m] for m in out], [self.stride[m] for m in out])
            self.loops.add(*_merge(extents, [held.get(r, 0) for r in full]))
            self.floors.append(self.lowest[f])
        for c in children:
            axis = scopes[c - base]
            held = dict(zip(axis, _strides([self.cards[order[r]] for r in axis]), strict=True))
            self.rims.add([], [])
            self.loops.add(*_merge(extents, [held.get(r, 0) for r in full]))
            self.tables[c][2] = len(self.floors)
            self.floors.append(1.0)
        none = [-1]
        self.operands.add(none * len(used) + children, used + none * len(children))

    def finish(self) -> BlockTables:
        """Return the tables of all blocks as arrays."""
        columns = np.array(self.tables, np.int64).reshape(-1, 6).T.copy()
        operand, child, factor = self.operands.finish()
        parts: list[Ints] = [*self.axes.finish(), *self.fields.finish(), operand, child, factor]
        rest: list[Ints] = [*self.rims.finish(), *self.loops.finish()]
        arrays: list[Any] = [np.array(self.blocks, np.int64), *columns, *parts, np.array(self.floors), *rest]
        return BlockTables._make(arrays)


def lay_out_blocks(arrays: TableGraph, orders: list[Ints]) -> tuple[BlockTables, int]:
    """Lay out the tables of blocks, given the sites of each in the order in which they are eliminated.

    Returns the tables and the number of entries of the pool.
    """
    writer = _Writer(arrays)
    for order in orders:
        writer.add_block(order.tolist())
    return writer.finish(), writer.pool


def _strides(sizes: list[int]) -> list[int]:
    """Return the strides of a table whose last axis is the fastest."""
    steps, step = [], 1
    for size in reversed(sizes):
        steps.append(step)
        step *= size
    return steps[::-1]


def _merge(extents: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """Merge adjacent axes that an operand traverses like a single one; drop axes with one state."""
    kept: list[list[int]] = []
    for extent, stride in zip(extents, strides, strict=True):
        if extent == 1:
            continue
        if kept and kept[-1][1] == stride * extent:
            kept[-1] = [kept[-1][0] * extent, stride]
        else:
            kept.append([extent, stride])
    if not kept:
        kept = [[1, 0]]
    return [k[0] for k in kept], [k[1] for k in kept]


def smallest_entries(arrays: TableGraph) -> list[float]:
    """Return the smallest positive entry of every factor, or one if it has none."""
    if not arrays.table.size:
        return []
    first = np.unique(arrays.table)
    width = arrays.member_start.astype(np.int64)
    sizes = np.multiply.reduceat(arrays.card[arrays.member].astype(np.int64), width[:-1])
    by_place = np.searchsorted(first, arrays.table)
    longest = np.zeros(first.size, np.int64)
    np.maximum.at(longest, by_place, sizes)
    low = np.ones(first.size)
    positive = np.where(arrays.value > 0.0, arrays.value, np.inf)
    for k in range(first.size):
        low[k] = positive[first[k] : first[k] + longest[k]].min(initial=np.inf)
    low[np.isinf(low)] = 1.0
    found: list[float] = low[by_place].tolist()
    return found
