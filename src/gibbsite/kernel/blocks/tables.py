"""Blocks as clique tables: what is multiplied for each site of a block, and where the products lie.

The sites of a block are summed out one after another (:mod:`gibbsite.elimination`). Summing out a site makes
one table over the site, which is its first axis, and its separator, the sites of the block that it is still
joined to. The table is a product of

* the *field*: all factors that touch no other site of the block, a vector over the states of the site;
* the other factors that touch the site and have not been used before;
* the messages of earlier sites, those whose separators begin with this site.

Axes are in order of elimination in all tables, so runs of axes that a factor or message has, or lacks,
are merged: an operand is a short list of loops, from the outermost to the innermost, with the extent of each
and the operand's stride.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite.elimination.order import Order, find_order, measure_order
from gibbsite.graph.kinds.table import TableGraph
from gibbsite.graph.rows import row_starts

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# Tries of the search for an order within a block; what is found is used many times over.
_TRIES = 60
#: Largest number of loops of an operand, and of axes of a table.
MOST_LOOPS = 64


class BlockTables(NamedTuple):
    """The tables of all blocks, as compiled code sees them.

    Attributes
    ----------
    start : int (blocks + 1,)
        Tables of block b, in order of elimination: from ``start[b]`` to ``start[b + 1]``.
    site, parent, via
        The site that a table sums out; the table its message goes to, -1 if none; and as which operand.
    place, message
        Where table and message lie in the pool of a chain, which all blocks share.
    separator
        Number of entries of the message.
    axis, axis_site, axis_stride
        Sites of the separator, with their strides, in compressed rows.
    field, field_factor, field_stride
        Factors of the field, with the stride of the site.
    operand, child, factor, floor
        Operands of each table, in compressed rows: the message of a table, or a factor (the other one is -1),
        and the smallest positive entry of the factor.
    rim, rim_site, rim_stride
        Members of a factor that are not in the block, for each operand.
    loop, extent, stride
        Loops of each operand.
    """

    start: Longs
    site: Longs
    parent: Longs
    via: Longs
    place: Longs
    message: Longs
    separator: Longs
    axis: Longs
    axis_site: Longs
    axis_stride: Longs
    field: Longs
    field_factor: Longs
    field_stride: Longs
    operand: Longs
    child: Longs
    factor: Longs
    floor: Floats
    rim: Longs
    rim_site: Longs
    rim_stride: Longs
    loop: Longs
    extent: Longs
    stride: Longs


class Interactions(NamedTuple):
    """Which sites share a factor, in compressed rows without repeats."""

    start: Longs
    neighbour: Longs


def find_interactions(arrays: TableGraph) -> Interactions:
    """Return the neighbours of all sites."""
    pairs = arrays.pairs()
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    return Interactions(row_starts(np.bincount(both[:, 0], minlength=arrays.card.size)), both[:, 1].copy())


def order_block(
    near: Interactions, cards: NDArray[np.int32], block: Longs, known: Longs | None = None
) -> Order:
    """Return a good order of elimination of the sites of a block, as positions in the block.

    Parameters
    ----------
    near : Interactions
        The neighbours of all sites.
    cards : int array
        Numbers of states.
    block : int array
        The sites.
    known : int array, optional
        An order that has been found already, as sites; it is kept if the search finds nothing better.
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
    order = find_order(start, inside, sizes, tries=_TRIES)
    if known is not None:
        other = measure_order(start, inside, sizes, place[known])
        if other.total < order.total:
            return other
    return order


class _Rows:
    """Lists that become compressed rows."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.values: list[list[int]] = []

    def add(self, *columns: list[int]) -> None:
        self.lengths.append(len(columns[0]))
        if not self.values:
            self.values = [[] for _ in columns]
        for kept, new in zip(self.values, columns, strict=True):
            kept.extend(new)

    def finish(self, columns: int) -> list[Longs]:
        values = self.values or [[] for _ in range(columns)]
        return [row_starts(np.array(self.lengths, np.int64)), *(np.array(v, np.int64) for v in values)]


def lay_out_blocks(arrays: TableGraph, blocks: list[Longs], orders: list[Longs]) -> tuple[BlockTables, int]:
    """Lay out the tables of blocks, given the order in which the sites of each are eliminated.

    Returns the tables and the number of entries of the pool.
    """
    cards = arrays.card.tolist()
    member_start, members, strides = (
        arrays.member_start.tolist(),
        arrays.member.tolist(),
        arrays.stride.tolist(),
    )
    row_start, row_factor, row_stride = (
        arrays.start.tolist(),
        arrays.factor.tolist(),
        arrays.own_stride.tolist(),
    )
    lowest = smallest_entries(arrays)
    start, pool = [0], 1
    site, parent, via, place, message, separator = ([] for _ in range(6))  # type: tuple[list[int], ...]
    axes, fields, rims, loops, operands = _Rows(), _Rows(), _Rows(), _Rows(), _Rows()
    floors: list[float] = []
    rank = [-1] * len(cards)
    for order in orders:
        base, at = len(site), 0
        for k, i in enumerate(order.tolist()):
            rank[i] = k
        received: list[list[int]] = [[] for _ in order]  # messages by the table that they go to
        scopes: list[list[int]] = []
        for k, i in enumerate(order.tolist()):
            field: tuple[list[int], list[int]] = ([], [])
            used: list[int] = []
            scope: set[int] = set()
            for row in range(row_start[i], row_start[i + 1]):
                f = row_factor[row]
                ranks = [rank[members[m]] for m in range(member_start[f], member_start[f + 1])]
                inside = [r for r in ranks if r >= 0]
                if len(inside) == 1:
                    field[0].append(f)
                    field[1].append(row_stride[row])
                elif min(inside) == k:
                    used.append(f)
                    scope.update(inside)
            for c in received[k]:
                scope.update(scopes[c])
            scope.discard(k)
            axis = sorted(scope)
            scopes.append(axis)
            sizes = [cards[order[r]] for r in axis]
            step, steps = 1, []
            for size in reversed(sizes):
                steps.append(step)
                step *= size
            site.append(i)
            separator.append(step)
            place.append(at)
            message.append(at + step * cards[i])
            at += step * (cards[i] + 1)
            parent.append(base + axis[0] if axis else -1)
            via.append(-1)
            axes.add([int(order[r]) for r in axis], steps[::-1])
            fields.add(*field)
            full = [k, *axis]
            extents = [cards[i], *sizes]
            kinds: tuple[list[int], list[int]] = ([], [])
            for f in used:
                span = range(member_start[f], member_start[f + 1])
                held = {rank[members[m]]: strides[m] for m in span if rank[members[m]] >= 0}
                out = [m for m in span if rank[members[m]] < 0]
                rims.add([members[m] for m in out], [strides[m] for m in out])
                loops.add(*_merge(extents, [held.get(r, 0) for r in full]))
                kinds[0].append(-1)
                kinds[1].append(f)
                floors.append(lowest[f])
            for c in received[k]:
                held, step = {}, 1
                for r in reversed(scopes[c]):
                    held[r] = step
                    step *= cards[order[r]]
                rims.add([], [])
                loops.add(*_merge(extents, [held.get(r, 0) for r in full]))
                via[base + c] = len(floors)
                kinds[0].append(base + c)
                kinds[1].append(-1)
                floors.append(1.0)
            operands.add(*kinds)
            if axis:
                received[axis[0]].append(k)
        for i in order.tolist():
            rank[i] = -1
        start.append(len(site))
        pool = max(pool, at)
    field_rows, rim_rows, axis_rows = fields.finish(2), rims.finish(2), axes.finish(2)
    operand_rows, loop_rows = operands.finish(2), loops.finish(2)
    columns = [np.array(column, np.int64) for column in (site, parent, via, place, message, separator)]
    tables = BlockTables(
        np.array(start, np.int64),
        *columns,
        *axis_rows,
        *field_rows,
        *operand_rows,
        np.array(floors, np.float64),
        *rim_rows,
        *loop_rows,
    )
    return tables, pool


def _merge(extents: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """Merge neighbouring axes that an operand steps through as through one; drop those of one state."""
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
    """Return the smallest positive entry of every factor; one where there is none."""
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


def count_entries(cards: NDArray[np.int32], order: Longs, near: Interactions) -> tuple[float, float]:
    """Return the entries of the largest table of a block, and of all its tables and messages together."""
    rank = np.full(cards.size, -1, np.int64)
    rank[order] = np.arange(order.size)
    scopes: list[set[int]] = [set() for _ in range(order.size)]
    largest, total = 1.0, 0.0
    for k, i in enumerate(order.tolist()):
        scope = scopes[k]
        for j in near.neighbour[near.start[i] : near.start[i + 1]].tolist():
            if rank[j] > k:
                scope.add(int(rank[j]))
        entries = 1.0
        for r in scope:
            entries *= float(cards[order[r]])
        largest = max(largest, entries * float(cards[i]))
        total += entries * (float(cards[i]) + 1.0)
        if scope:
            first = min(scope)
            scopes[first] |= scope - {first}
        scopes[k] = set()
    return largest, total
