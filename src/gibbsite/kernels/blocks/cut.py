"""Which sites to cut so that the others have small clique tables, and where the cutset touches their tree."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Ints32
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.blocks.cover import Limit, grow_block
from gibbsite.kernels.blocks.message_tables import CutTree
from gibbsite.kernels.blocks.tables import BlockTables, Interactions

# Sites that the search for a cutset looks at in all; a hundred thousand take some seconds.
_LOOKS = 100_000
_MOST_TRIES = 40
# By what factor it is worse to cut a site that another cutset has already.
_AGAIN = 4.0
# Entries of a table that are multiplied in one loop.
_RUN = 512


def choose_rest(near: Interactions, cards: Ints32, log2: float, tie: Floats, before: Bools | None = None) -> Ints:
    """Return the sites outside a cutset, in an order of elimination with tables of at most 2^log2 entries.

    Blocks are grown greedily, with noise, and the one that cuts the fewest states is kept; sites that it need
    not have cut are put back.

    Parameters
    ----------
    near : Interactions
        Neighbours.
    cards : int array
        Numbers of states.
    log2 : float
        log2 of the entries of the largest table. Sites without neighbours outside the cutset have tables of
        their own size, whatever it is.
    tie : float array
        How strongly a site depends on its neighbours; sites with weak ties are cut first.
    before : bool array, optional
        Sites outside another cutset; those are cut first, so that the two cutsets have little in common.
    """
    n, log_card, limit = cards.size, np.log2(cards), Limit(log2)
    every, inside = np.ones(n, bool), np.zeros(n, bool)
    covered = np.zeros(n, bool) if before is None else before
    cost = np.where(covered, 1.0, _AGAIN) * log_card
    best = grow_block(near, log_card, limit, every, covered, tie)
    looks = _LOOKS - n
    for seed in range(_MOST_TRIES):
        if best.size == n or looks < 2 * n:
            break
        looks -= n
        other = grow_block(near, log_card, limit, every, covered, tie, np.random.default_rng([seed, n]))
        if cost[other].sum() > cost[best].sum():
            best = other
    inside[best] = True
    for i in np.flatnonzero(~inside).tolist():
        if looks < n:
            break
        looks -= n
        inside[i] = True
        other = grow_block(near, log_card, limit, inside, covered, tie)
        if other.size > best.size:
            best = other
        else:
            inside[i] = False
    return best


def lay_out_cutsets(arrays: TableGraph, tables: BlockTables) -> CutTree:
    """Return for every block of ``tables``, and every site outside it, where the site touches its tree."""
    parent = tables.parent.tolist()
    root, turn = _walk_down(parent)
    site: list[int] = []
    start = [0]
    touches: list[list[tuple[int]]] = []
    spans: list[list[tuple[int, int]]] = []
    owns: list[list[tuple[int, int]]] = []
    for u in range(tables.start.size - 1):
        outside = np.ones(arrays.card.size, bool)
        outside[tables.site[tables.start[u] : tables.start[u + 1]]] = False
        touched = _touched(arrays, tables, u, outside)
        span = {i: _span(some, parent, root) for i, some in touched.items()}
        # in the order of a walk over the tree, so that one site follows another that is near
        last = {i: max((turn[t] for t, top in span[i] if top), default=-1) for i in span}
        order = sorted(span, key=lambda i, last=last: (last[i], i))  # type: ignore[misc]
        site += order
        start.append(len(site))
        touches += [[(t,) for t in sorted(touched[i])] for i in order]
        spans += [span[i] for i in order]
        owns += [_factors_within(arrays, i, outside) for i in order]
    touch, touched_flat = _rows(touches, 1)
    spread, spanned, top = _rows(spans, 2)
    own, own_factor, own_stride = _rows(owns, 2)
    inner, step, outer = _lay_out_runs(tables)
    return CutTree(
        tables=tables,
        start=np.array(start, np.int64),
        first=row_starts(tables.separator),
        low=np.log(tables.floor),
        inner=inner,
        step=step,
        outer=outer,
        site=np.array(site, np.int64),
        touch=touch,
        touched=touched_flat,
        span=spread,
        spanned=spanned,
        top=top,
        own=own,
        own_factor=own_factor,
        own_stride=own_stride,
    )


def _touched(arrays: TableGraph, tables: BlockTables, u: int, outside: Bools) -> dict[int, set[int]]:
    """Return the tables of block u that hold a factor of each site outside it."""
    touched: dict[int, set[int]] = {i: set() for i in np.flatnonzero(outside).tolist()}
    for t in range(tables.start[u], tables.start[u + 1]):
        for o in range(tables.operand[t], tables.operand[t + 1]):
            for i in tables.rim_site[tables.rim[o] : tables.rim[o + 1]].tolist():
                touched[i].add(t)
        for f in tables.field_factor[tables.field[t] : tables.field[t + 1]].tolist():
            for i in arrays.member[arrays.member_start[f] : arrays.member_start[f + 1]].tolist():
                if outside[i]:
                    touched[i].add(t)
    return touched


def _factors_within(arrays: TableGraph, i: int, outside: Bools) -> list[tuple[int, int]]:
    """Return the factors of a site that touch the cutset alone, with the stride of the site."""
    found = []
    for row in range(int(arrays.start[i]), int(arrays.start[i + 1])):
        f = int(arrays.factor[row])
        if outside[arrays.member[arrays.member_start[f] : arrays.member_start[f + 1]]].all():
            found.append((f, int(arrays.own_stride[row])))
    return found


def _lay_out_runs(tables: BlockTables) -> tuple[Ints, Ints32, Ints]:
    """Unroll the inner loops of every operand, so that short ones do not cost more than what they do."""
    count = tables.child.size
    steps, outer = [], np.zeros(count, np.int64)
    known: dict[bytes, Ints32] = {}
    for o in range(count):
        extent = tables.extent[tables.loop[o] : tables.loop[o + 1]]
        stride = tables.stride[tables.loop[o] : tables.loop[o + 1]]
        k = extent.size - 1
        while k > 0 and extent[k - 1 :].prod() <= _RUN:
            k -= 1
        outer[o] = k
        key = extent[k:].tobytes() + stride[k:].tobytes()
        if key not in known:
            at = np.zeros(1, np.int64)
            for length, by in zip(extent[k:].tolist(), stride[k:].tolist(), strict=True):
                at = (at[:, None] + by * np.arange(length)).ravel()
            known[key] = at.astype(np.int32)
        steps.append(known[key])
    flat = np.concatenate(steps) if steps else np.zeros(0, np.int32)
    return row_starts(np.array([one.size for one in steps], np.int64)), flat, outer


def _rows(rows: Sequence[Sequence[tuple[int, ...]]], columns: int) -> list[Ints]:
    """Return rows of tuples as compressed rows with some columns."""
    start = row_starts(np.array([len(row) for row in rows], np.int64))
    flat = np.array([entry for row in rows for entry in row], np.int64).reshape(-1, columns)
    return [start, *(flat[:, k].copy() for k in range(columns))]


def _walk_down(parent: list[int]) -> tuple[list[int], list[int]]:
    """Return the root of every table, and its turn in a walk that goes down before it goes on."""
    count = len(parent)
    children: list[list[int]] = [[] for _ in range(count)]
    for t, above in enumerate(parent):
        if above >= 0:
            children[above].append(t)
    root, turn, now = [0] * count, [0] * count, 0
    for top in (t for t in range(count) if parent[t] < 0):
        stack = [top]
        while stack:
            t = stack.pop()
            root[t], turn[t] = top, now
            now += 1
            stack.extend(children[t])
    return root, turn


def _span(some: set[int], parent: list[int], root: list[int]) -> list[tuple[int, int]]:
    """Return the smallest subtrees that hold some tables, one in each tree, children before parents.

    The second number is 1 for the highest table of a tree.
    """
    found = []
    for tree in {root[t] for t in some}:
        heap = [t for t in some if root[t] == tree]
        heapq.heapify(heap)
        while len(heap) > 1:  # the lowest of them goes up until it meets the others
            t = heapq.heappop(heap)
            found.append((t, 0))
            while heap and heap[0] == t:
                heapq.heappop(heap)
            above = parent[t]
            if above not in heap:
                heapq.heappush(heap, above)
        found.append((heap[0], 1))
    return sorted(found)
