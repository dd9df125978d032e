"""The tables of a clique tree whose messages are kept, and the memory for them; see :mod:`.messages`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.graphs.elimination.rings import LogSum, Ring, Sum, join
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.kernels.blocks.filtering import LOG_SMALLEST, entry_given, fill_field, next_run
from gibbsite.kernels.blocks.tables import MOST_LOOPS, BlockTables


class CutTree(NamedTuple):
    """The trees of the sites that are summed out, one for each cutset, and where the cutset touches it."""

    tables: BlockTables  # a block for each cutset: all sites outside it
    start: Ints  # (cutsets + 1,): sites of cutset number u are those from ``start[u]`` to ``start[u + 1]`` of ``site``
    first: Ints  # (tables + 1,): where the message of a table begins, in each third of the pool
    low: Floats  # for each operand the logarithm of the smallest positive entry of the factor
    # inner, step, outer: for each operand, where its entries lie that belong to a run of entries of the table, in
    # compressed rows; and the number of its loops that lead from one such run to the next
    inner: Ints
    step: Ints32
    outer: Ints
    site: Ints  # the cutsets, each in the order in which it is visited
    # touch, touched: tables that hold a factor of the cutset site, in compressed rows
    touch: Ints
    touched: Ints
    # span, spanned, top: the smallest subtree that holds these, children before parents; 1 where a table is the highest
    # one
    span: Ints
    spanned: Ints
    top: Ints
    # own, own_factor, own_stride: factors of the cutset site that touch the cutset alone, with the stride of the site
    own: Ints
    own_factor: Ints
    own_stride: Ints


class CutWorkspace(NamedTuple):
    """The messages of a chain, and room to compute them.

    ``pool`` holds the messages up, those down, and those up for a state of a cutset site that is only tried. For each
    of them there are ``scale`` (a logarithm), ``low`` (the logarithm of the smallest positive entry) and ``logs`` (1:
    the entries are logarithms); for the first two ``valid``, and ``seen``, the state of the cutset that they belong to.
    ``table`` is the one table that is being made, ``weight`` and ``chance`` have room for the states of a site,
    ``column`` for a separator, ``digit`` for the loops of an operand; ``stack`` and ``path`` are for walks over the
    tree, ``inside`` marks a subtree, ``codes`` is a copy of the states, of the same type whatever theirs is.
    ``marginal`` is what comes out, ``fresh`` 1 + the number of the cutset that it still holds for; ``words`` is the
    generator, ``what`` is what is asked of :func:`.collapsed.collapse`.
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
        """Messages that are computed again are the same bit by bit; those of other states are noticed."""
        return True


def workspace_sizes(tree: CutTree, arrays: TableGraph) -> list[tuple[int, Any]]:
    """Return lengths and types of the arrays of a :class:`CutWorkspace`."""
    tables = tree.tables
    count, most = tables.site.size, int(arrays.card.max(initial=1))
    largest = int((tables.separator * arrays.card[tables.site]).max(initial=1))
    floats, longs = np.float64, np.int64
    return [
        (3 * int(tree.first[-1]), floats),
        (3 * count, floats),
        (3 * count, floats),
        (3 * count, longs),
        (2 * count, longs),
        (tree.site.size, longs),
        (largest, floats),
        (most, floats),
        (most, floats),
        (int(tables.separator.max(initial=1)), floats),
        (MOST_LOOPS, longs),
        (2 * count, longs),
        (count, longs),
        (count, longs),
        (int(arrays.card.sum(dtype=np.int64)), floats),
        (1, longs),
        (4, np.uint64),
        (4, longs),
        (arrays.card.size, longs),
    ]


@inlined
def message_begin(tree: CutTree, s: Integer) -> Integer:
    """Return where message number ``s`` begins: up, down or tried of a table."""
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
    """Return the number of runs of an operand, and begin to count them."""
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
    """Multiply a table out, without operand ``skip``; with the message from above, if ``down``.

    ``trial``: messages of the marked subtree are those that are tried. Returns whether the entries are
    logarithms, and the logarithm of the scale.
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
    if top == (-np.inf if logs else 0.0):  # nothing is possible
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
