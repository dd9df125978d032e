"""The tables of a clique tree whose messages are kept, and the memory for them; see :mod:`.messages`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.graphs.elimination.rings import LogSum, Ring, Sum, join
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.blocks.filtering import LOG_SMALLEST, entry_given, fill_field, next_run
from gibbsite.kernels.blocks.tables import MOST_LOOPS, BlockTables


class CutTree(NamedTuple):
    """The trees of the sites that are summed out, one for each cutset, and the tables that each cutset site touches."""

    tables: BlockTables  # a block for each cutset: all sites outside it
    start: Ints  # (cutsets + 1,): sites of cutset number u are those from ``start[u]`` to ``start[u + 1]`` of ``site``
    first: Ints  # (tables + 1,): where the message of a table begins, in each third of the pool
    low: Floats  # for each operand, the logarithm of the smallest positive entry of the factor
    # inner, step, outer: for each operand, the offsets of its entries that belong to a run of entries of the table, in
    # compressed rows; and the number of its loops that lead from one run to the next
    inner: Ints
    step: Ints32
    outer: Ints
    site: Ints  # the cutsets, each in the order in which it is visited
    # touch, touched: tables that contain a factor of the cutset site, in compressed rows
    touch: Ints
    touched: Ints
    # span, spanned, top: the smallest subtree that contains these tables, children before parents; ``top`` is 1 for its
    # highest table
    span: Ints
    spanned: Ints
    top: Ints
    # own, own_factor, own_stride: factors of the cutset site within the cutset, with the stride of the site
    own: Ints
    own_factor: Ints
    own_stride: Ints


class CutWorkspace(NamedTuple):
    """The messages of a chain, and buffers to compute them.

    ``pool`` holds three sets of messages: upward, downward, and upward for a candidate state of a cutset site (trials).
    Every message has a ``scale`` (a logarithm), a ``low`` (the logarithm of its smallest positive entry) and a ``logs``
    (1: the entries are logarithms). Messages of the first two sets also have a ``valid``, and ``seen`` is the state of
    the cutset that they belong to.
    ``table`` is the table that is being computed; ``weight`` and ``chance`` have an entry for each state of a site,
    ``column`` for each state of a separator, and ``digit`` for each loop of an operand. ``stack`` and ``path`` serve to
    traverse the tree, ``inside`` marks a subtree, and ``codes`` is a copy of the states in a fixed type. ``marginal``
    has the resulting marginals, and ``fresh`` is 1 + the number of the cutset for which they are valid. ``words`` is
    the generator, and ``what`` the task of :func:`.messages.collapse`.
    """

    pool: Floats
    scale: Floats
    low: Floats
    logs: Ints
    valid: Ints
    seen: Ints
    table: Floats
    weight: Floats
    chance: Floats
    column: Floats
    digit: Ints
    stack: Ints
    path: Ints
    inside: Ints
    marginal: Floats
    fresh: Ints
    words: Words64
    what: Ints
    codes: Ints

    @property
    def rebuildable(self) -> bool:
        """True: recomputed messages are bit-identical, and messages of other states are detected."""
        return True


def make_messages(tree: CutTree, arrays: TableGraph) -> CutWorkspace:
    """Allocate the messages of a chain, none of which is valid."""
    tables = tree.tables
    count, most = tables.site.size, int(arrays.card.max(initial=1))
    return CutWorkspace(
        pool=np.zeros(3 * int(tree.first[-1])),
        scale=np.zeros(3 * count),
        low=np.zeros(3 * count),
        logs=np.zeros(3 * count, np.int64),
        valid=np.zeros(2 * count, np.int64),
        seen=np.zeros(tree.site.size, np.int64),
        table=np.zeros(int((tables.separator * arrays.card[tables.site]).max(initial=1))),
        weight=np.zeros(most),
        chance=np.zeros(most),
        column=np.zeros(int(tables.separator.max(initial=1))),
        digit=np.zeros(MOST_LOOPS, np.int64),
        stack=np.zeros(2 * count, np.int64),
        path=np.zeros(count, np.int64),
        inside=np.zeros(count, np.int64),
        marginal=np.zeros(int(arrays.card.sum(dtype=np.int64))),
        fresh=np.zeros(1, np.int64),
        words=np.zeros(4, np.uint64),
        what=np.zeros(4, np.int64),
        codes=np.zeros(arrays.card.size, np.int64),
    )


@inlined
def message_begin(tree: CutTree, s: Integer) -> Integer:
    """Return where message number ``s`` begins; upward messages are numbered first, then downward ones and trials."""
    count = tree.tables.site.size
    return (s // count) * tree.first[count] + tree.first[s % count]


@inlined
def _as_logs(work: CutWorkspace, s: Integer, at: Integer, many: Integer) -> None:
    """Write the logarithms of a message to ``column``."""
    for k in range(many):
        if work.logs[s] == 1:
            work.column[k] = work.pool[at + k]
        else:
            work.column[k] = math.log(work.pool[at + k]) if work.pool[at + k] > 0.0 else -np.inf


@inlined
def count_runs(tables: BlockTables, first: Integer, last: Integer, digit: Ints) -> Integer:
    """Return the number of runs of an operand, and set their counters to zero."""
    runs = np.int64(1)
    for k in range(first, last):
        runs *= tables.extent[k]
        digit[k - first] = 0
    return runs


@called
def multiply_operand(
    ring: Ring, tree: CutTree, o: Integer, digit: Ints, table: Floats, source: Floats, s: Integer
) -> None:
    """Multiply a table by an operand, which begins at ``s`` of ``source``."""
    tables = tree.tables
    first, begin = tables.loop[o], tree.inner[o]
    last, length = first + tree.outer[o], tree.inner[o + 1] - begin
    at = np.int64(0)
    for _ in range(count_runs(tables, first, last, digit)):
        for k in range(length):
            table[at + k] = join(ring, table[at + k], source[s + tree.step[begin + k]])
        at += length
        s = next_run(tables, digit, first, last, s)


@called
def project_table(tree: CutTree, o: Integer, digit: Ints, table: Floats, out: Floats) -> None:
    """Sum a table over the axes that an operand lacks."""
    tables = tree.tables
    first, begin = tables.loop[o], tree.inner[o]
    last, length = first + tree.outer[o], tree.inner[o + 1] - begin
    at, s = np.int64(0), np.int64(0)
    for _ in range(count_runs(tables, first, last, digit)):
        for k in range(length):
            out[s + tree.step[begin + k]] += table[at + k]
        at += length
        s = next_run(tables, digit, first, last, s)


@called
def fill_table(
    tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer, skip: Integer, down: Any, trial: bool
) -> tuple[bool, float]:
    """Multiply a table out, without operand ``skip``, and with the message from above if ``down`` is set.

    If ``trial`` is set, the messages of the marked subtree are its trials. Return whether the entries are logarithms,
    and the logarithm of the scale.
    """
    tables, count = tree.tables, tree.tables.site.size
    w, table = work.weight, work.table
    low, scale = fill_field(tables, arrays, x, t, w)
    size, many = np.int64(arrays.card[tables.site[t]]), tables.separator[t]
    logs = False
    for o in range(tables.operand[t], tables.operand[t + 1]):
        c = tables.child[o]
        if o == skip:
            continue
        if c >= 0:
            s = 2 * count + c if trial and work.inside[c] == 1 else c
            scale += work.scale[s]
            low += work.low[s]
            logs = logs or work.logs[s] == 1
        else:
            low += tree.low[o]
    if down:
        scale += work.scale[count + t]
        low += work.low[count + t]
        logs = logs or work.logs[count + t] == 1
    logs = logs or low < LOG_SMALLEST
    for a in range(size):
        value = w[a] if logs else math.exp(w[a])
        for k in range(many):
            table[a * many + k] = value
    nothing = np.int64(0)
    for o in range(tables.operand[t], tables.operand[t + 1]):
        c = tables.child[o]
        if o == skip:
            continue
        if c >= 0:
            s = 2 * count + c if trial and work.inside[c] == 1 else c
            at = message_begin(tree, s)
            if logs:
                _as_logs(work, s, at, tables.separator[c])
                multiply_operand(LogSum(), tree, o, work.digit, table, work.column, nothing)
            else:
                multiply_operand(Sum(), tree, o, work.digit, table, work.pool, at)
        else:
            entry = entry_given(tables, arrays, x, o)
            if logs:
                multiply_operand(LogSum(), tree, o, work.digit, table, arrays.log_value, entry)
            else:
                multiply_operand(Sum(), tree, o, work.digit, table, arrays.value, entry)
    if down:
        at = message_begin(tree, count + t)
        if logs:
            _as_logs(work, count + t, at, many)
            for a in range(size):
                for k in range(many):
                    table[a * many + k] += work.column[k]
        else:
            for a in range(size):
                for k in range(many):
                    table[a * many + k] *= work.pool[at + k]
    return logs, scale


@called
def finish_message(work: CutWorkspace, s: Integer, at: Integer, many: Integer, logs: bool, scale: float) -> None:
    """Scale a message that has been written to the pool to maximum one."""
    pool = work.pool
    top = -np.inf
    for k in range(many):
        top = max(top, pool[at + k])
    work.logs[s], work.low[s] = 0, 0.0
    if top == (-np.inf if logs else 0.0):  # no state is possible
        for k in range(many):
            pool[at + k] = 0.0
        work.scale[s] = -np.inf
        return
    low = 0.0
    if logs:
        for k in range(many):
            pool[at + k] -= top
            low = min(low, pool[at + k] if pool[at + k] > -np.inf else 0.0)
        if low < LOG_SMALLEST:
            work.logs[s] = 1
        else:
            for k in range(many):
                pool[at + k] = math.exp(pool[at + k])
        work.scale[s] = scale + top
    else:
        least, inverse = top, 1.0 / top
        for k in range(many):
            least = min(least, pool[at + k] if pool[at + k] > 0.0 else np.inf)
            pool[at + k] *= inverse
        low = math.log(least * inverse)
        work.scale[s] = scale + math.log(top)
    work.low[s] = low


# Entries of a table that are multiplied in one loop.
_RUN = 512


def lay_out_cutsets(arrays: TableGraph, tables: BlockTables) -> CutTree:
    """Return the trees of all blocks of ``tables``, with the tables that each site outside a block touches."""
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
        # in the order of a traversal of the tree, so that successive sites are close to each other
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
    """Return, for each site outside block u, the tables of the block that contain a factor of the site."""
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
    """Return the factors of a site that contain cutset sites alone, with the stride of the site."""
    found = []
    for row in range(int(arrays.start[i]), int(arrays.start[i + 1])):
        f = int(arrays.factor[row])
        if outside[arrays.member[arrays.member_start[f] : arrays.member_start[f + 1]]].all():
            found.append((f, int(arrays.own_stride[row])))
    return found


def _lay_out_runs(tables: BlockTables) -> tuple[Ints, Ints32, Ints]:
    """Unroll the inner loops of every operand, so that short loops have no overhead."""
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
    """Return the root of every table, and its rank in a depth-first traversal."""
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
    """Return the smallest subtrees that contain some tables, one in each tree, children before parents.

    The second number is 1 for the highest table of a tree.
    """
    found = []
    for tree in {root[t] for t in some}:
        heap = [t for t in some if root[t] == tree]
        heapq.heapify(heap)
        while len(heap) > 1:  # replace the lowest table by its parent until one is left
            t = heapq.heappop(heap)
            found.append((t, 0))
            while heap and heap[0] == t:
                heapq.heappop(heap)
            above = parent[t]
            if above not in heap:
                heapq.heappush(heap, above)
        found.append((heap[0], 1))
    return sorted(found)
