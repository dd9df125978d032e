"""Forward filtering, backward sampling and marginals of a block, on its clique tables.

The forward pass multiplies the factors of each site into a table and sums it over the site's states; the sums are the
message to a later table. Afterwards, column s of a table holds the weights of the site's states given that its
separator is in state s. The backward pass draws the sites from these columns in the opposite order (Carter and Kohn
1994, on junction trees). If marginals are wanted, it also multiplies in the distributions of the separators.

Tables are computed without logarithms, and messages are scaled to maximum one. If a product could underflow, judging
by the smallest positive entries of its factors, the whole block is computed again in logarithms: a possible state is
never treated as impossible.

For the best state of a block given the rest, messages are maxima in place of sums, and the backward pass gives each
site the best state of its column. A block that is already in a best state keeps it, so that hill climbing ends.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, called, compiled_loop, inlined
from gibbsite._numba.pointer import call_pointer, pointed
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.graphs.elimination.rings import LogSum, Ring, Sum, join
from gibbsite.graphs.kinds.table import TableGraph, entry_of
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.blocks.tables import MOST_LOOPS, BlockTables

#: Smaller products may have been rounded to zero.
LOG_SMALLEST = math.log(1e-280)


class BlockWorkspace(NamedTuple):
    """Buffers for the tables of the largest block.

    ``pool`` holds tables and messages; ``weight`` the weights of a site's states; ``digit`` the loops of an operand;
    ``scratch`` the separator of a table; ``floor`` the smallest positive entry of each message; ``marginal`` the
    resulting marginals; ``words`` the generator; ``what`` the task (:func:`draw_block`).
    """

    pool: Floats
    weight: Floats
    digit: Ints
    scratch: Floats
    floor: Floats
    marginal: Floats
    words: Words64
    what: Ints

    @property
    def rebuildable(self) -> bool:
        """True: no step reads what an earlier one has written."""
        return True


def make_workspace(tables: BlockTables, arrays: TableGraph, pool: int) -> BlockWorkspace:
    """Allocate buffers for the largest block."""
    ends = np.concatenate([[0], np.cumsum(arrays.card[tables.site], dtype=np.int64)])[tables.start]
    return BlockWorkspace(
        pool=np.zeros(pool),
        weight=np.zeros(int(arrays.card.max(initial=1))),
        digit=np.zeros(MOST_LOOPS, np.int64),
        scratch=np.zeros(int(tables.separator.max(initial=1))),
        floor=np.zeros(int(np.diff(tables.start).max(initial=1))),
        marginal=np.zeros(int(np.diff(ends).max(initial=1))),
        words=np.zeros(4, np.uint64),
        what=np.zeros(3, np.int64),
    )


@inlined
def fill_field(tables: BlockTables, arrays: TableGraph, x: Array, t: Integer, w: Floats) -> tuple[float, float]:
    """Write the logarithms of the field of a table minus their maximum; return the lowest result and the maximum."""
    i = np.uintp(tables.site[t])
    cell, size = arrays.offset[i], np.int64(arrays.card[i])
    for a in range(size):
        w[a] = arrays.log_unary[cell + a]
    for k in range(tables.field[t], tables.field[t + 1]):
        own = tables.field_stride[k]
        entry = np.int64(entry_of(arrays, x, np.uintp(tables.field_factor[k]))) - own * np.int64(x[i])
        for a in range(size):
            w[a] += arrays.log_value[entry + own * a]
    top = -np.inf
    for a in range(size):
        top = max(top, w[a])
    low = 0.0
    if top > -np.inf:
        for a in range(size):
            w[a] -= top
            if w[a] > -np.inf:
                low = min(low, w[a])
    return low, top


@inlined
def next_run(tables: BlockTables, digit: Ints, first: Integer, last: Integer, s: Integer) -> Integer:
    """Advance the outer loops of an operand like an odometer; return where its next run begins."""
    k = last - 1
    while k >= first:
        s += tables.stride[k]
        digit[k - first] += 1
        if digit[k - first] < tables.extent[k]:
            break
        s -= tables.stride[k] * tables.extent[k]
        digit[k - first] = 0
        k -= 1
    return s


@called
def multiply_in(
    ring: Ring, tables: BlockTables, o: Integer, digit: Ints, pool: Floats, at: Integer, source: Any, s: Integer
) -> None:
    """Multiply a table by an operand, which begins at ``s`` of ``source``."""
    first, last = tables.loop[o], tables.loop[o + 1] - 1
    length, stride = tables.extent[last], tables.stride[last]
    outer = np.int64(1)
    for k in range(first, last):
        outer *= tables.extent[k]
        digit[k - first] = 0
    for _ in range(outer):
        if stride == 0:
            value = source[s]
            for k in range(length):
                pool[at + k] = join(ring, pool[at + k], value)
        elif stride == 1:
            for k in range(length):
                pool[at + k] = join(ring, pool[at + k], source[s + k])
        else:
            for k in range(length):
                pool[at + k] = join(ring, pool[at + k], source[s + stride * k])
        at += length
        s = next_run(tables, digit, first, last, s)


@inlined
def entry_given(tables: BlockTables, arrays: TableGraph, x: Array, o: Integer) -> Integer:
    """Return where a factor begins, given the states of its members outside the block."""
    entry = arrays.table[tables.factor[o]]
    for k in range(tables.rim[o], tables.rim[o + 1]):
        entry += tables.rim_stride[k] * np.int64(x[tables.rim_site[k]])
    return entry


@called
def filter_plain(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> bool:
    """Fill the tables from ``begin`` to ``end`` without logarithms; return False if a product may have underflowed."""
    ring = Sum()
    pool, w = work.pool, work.weight
    for t in range(begin, end):
        low, _ = fill_field(tables, arrays, x, t, w)
        size, many, place = np.int64(arrays.card[tables.site[t]]), tables.separator[t], tables.place[t]
        for a in range(size):
            value = math.exp(w[a])
            for k in range(many):
                pool[place + a * many + k] = value
        for o in range(tables.operand[t], tables.operand[t + 1]):
            c = tables.child[o]
            if c >= 0:
                low += math.log(work.floor[c - begin])
                multiply_in(ring, tables, o, work.digit, pool, place, pool, tables.message[c])
            else:
                low += math.log(tables.floor[o])
                multiply_in(ring, tables, o, work.digit, pool, place, arrays.value, entry_given(tables, arrays, x, o))
        if low < LOG_SMALLEST:
            return False
        first = tables.message[t]
        for k in range(many):
            pool[first + k] = pool[place + k]
        for a in range(1, size):
            for k in range(many):
                pool[first + k] += pool[place + a * many + k]
        top, floor = 0.0, np.inf
        for k in range(many):
            top = max(top, pool[first + k])
            floor = min(floor, pool[first + k] if pool[first + k] > 0.0 else np.inf)
        if top == 0.0:
            return False
        scale = 1.0 / top
        for k in range(many):
            pool[first + k] *= scale
        work.floor[t - begin] = floor * scale
    return True


@called
def fill_logs(tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, t: Integer) -> Integer:
    """Fill table ``t`` with the logarithm of the product of its factors and messages; return its states."""
    ring = LogSum()
    pool, w = work.pool, work.weight
    fill_field(tables, arrays, x, t, w)
    size, many, place = np.int64(arrays.card[tables.site[t]]), tables.separator[t], tables.place[t]
    for a in range(size):
        for k in range(many):
            pool[place + a * many + k] = w[a]
    for o in range(tables.operand[t], tables.operand[t + 1]):
        c = tables.child[o]
        if c >= 0:
            multiply_in(ring, tables, o, work.digit, pool, place, pool, tables.message[c])
        else:
            entry = entry_given(tables, arrays, x, o)
            multiply_in(ring, tables, o, work.digit, pool, place, arrays.log_value, entry)
    return size


@called
def filter_logs(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> bool:
    """Fill the tables in logarithms, and turn them into weights; return False if no state is possible."""
    pool = work.pool
    for t in range(begin, end):
        size = fill_logs(tables, arrays, work, x, t)
        many, place = tables.separator[t], tables.place[t]
        first = tables.message[t]
        best = -np.inf
        for k in range(many):
            top = -np.inf
            for a in range(size):
                top = max(top, pool[place + a * many + k])
            total = 0.0
            for a in range(size):
                at = place + a * many + k
                pool[at] = math.exp(pool[at] - top) if top > -np.inf else 0.0
                total += pool[at]
            pool[first + k] = top + math.log(total) if top > -np.inf else -np.inf
            best = max(best, pool[first + k])
        if best == -np.inf:
            return False
        for k in range(many):
            pool[first + k] -= best
    return True


@inlined
def find_column(tables: BlockTables, x: Array, t: Integer) -> Integer:
    """Return the column of a table that belongs to the states of its separator."""
    column = tables.place[t]
    for k in range(tables.axis[t], tables.axis[t + 1]):
        column += tables.axis_stride[k] * np.int64(x[tables.axis_site[k]])
    return column


@called
def draw_backwards(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer, rng: Words
) -> Words:
    """Draw the sites of a block, those eliminated last first; return the advanced generator."""
    pool = work.pool
    for t in range(end - 1, begin - 1, -1):
        i = tables.site[t]
        size, many, column = np.int64(arrays.card[i]), tables.separator[t], find_column(tables, x, t)
        total = 0.0
        for a in range(size):
            total += pool[column + a * many]
        rng, u = uniform(rng)
        left, chosen = u * total, 0
        for a in range(size):
            if pool[column + a * many] > 0.0:
                chosen = a  # rounding must not select an impossible state
                left -= pool[column + a * many]
                if left < 0.0:
                    break
        x[i] = chosen
    return rng


@inlined
def chance_of(tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, t: Integer) -> float:
    """Return the probability of the current state of a table's site given its separator."""
    size, many, column = np.int64(arrays.card[tables.site[t]]), tables.separator[t], find_column(tables, x, t)
    total = 0.0
    for a in range(size):
        total += work.pool[column + a * many]
    return work.pool[column + many * np.int64(x[tables.site[t]])] / total if total > 0.0 else 0.0


@called
def project(tables: BlockTables, o: Integer, digit: Ints, pool: Floats, at: Integer, out: Floats) -> None:
    """Sum a table over the axes that an operand lacks."""
    first, last = tables.loop[o], tables.loop[o + 1] - 1
    length, stride = tables.extent[last], tables.stride[last]
    outer, s = np.int64(1), np.int64(0)
    for k in range(first, last):
        outer *= tables.extent[k]
        digit[k - first] = 0
    for _ in range(outer):
        if stride == 0:
            total = 0.0
            for k in range(length):
                total += pool[at + k]
            out[s] += total
        else:
            for k in range(length):
                out[s + stride * k] += pool[at + k]
        at += length
        s = next_run(tables, digit, first, last, s)


@called
def calibrate(tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, begin: Integer, end: Integer) -> None:
    """Turn the tables into joint probabilities of site and separator given the sites outside the block."""
    pool, out = work.pool, work.scratch
    for t in range(end - 1, begin - 1, -1):
        size, many, place = np.int64(arrays.card[tables.site[t]]), tables.separator[t], tables.place[t]
        if tables.parent[t] >= 0:
            for k in range(many):
                out[k] = 0.0
            project(tables, tables.via[t], work.digit, pool, tables.place[tables.parent[t]], out)
        else:
            out[0] = 1.0
        sums = tables.message[t]  # the message has been used
        for k in range(many):
            pool[sums + k] = pool[place + k]
        for a in range(1, size):
            for k in range(many):
                pool[sums + k] += pool[place + a * many + k]
        for k in range(many):
            out[k] = out[k] / pool[sums + k] if pool[sums + k] > 0.0 else 0.0
        for a in range(size):
            for k in range(many):
                pool[place + a * many + k] *= out[k]


@called
def _write_marginals(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, begin: Integer, end: Integer
) -> None:
    """Sum the calibrated tables over their separators, one site after another."""
    at = np.int64(0)
    for t in range(begin, end):
        size, many, place = np.int64(arrays.card[tables.site[t]]), tables.separator[t], tables.place[t]
        total = 0.0
        for a in range(size):
            value = 0.0
            for k in range(many):
                value += work.pool[place + a * many + k]
            work.marginal[at + a] = value
            total += value
        for a in range(size):
            work.marginal[at + a] /= total
        at += size


@called
def filter_block(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> bool:
    """Fill the tables of a block; return False if no state is possible."""
    if filter_plain(tables, arrays, work, x, begin, end):
        return True
    return filter_logs(tables, arrays, work, x, begin, end)


#: Tasks of :func:`draw_block`.
DRAW, MARGINALS = range(2)


@pointed
def draw_block(tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array) -> None:
    """Draw block number ``work.what[0]``; if ``what[1]`` is MARGINALS, write the marginals of its sites, too.

    ``what[2]`` becomes 1 if that was possible. Loops call this function by its address, so it is compiled only once.
    """
    what = work.what
    begin, end = tables.start[what[0]], tables.start[what[0] + 1]
    what[2] = 0
    if filter_block(tables, arrays, work, x, begin, end):
        store(work.words, draw_backwards(tables, arrays, work, x, begin, end, load(work.words)))
        if what[1] == MARGINALS:
            calibrate(tables, arrays, work, begin, end)
            _write_marginals(tables, arrays, work, begin, end)
        what[2] = 1


# Log-weights are considered equal if they differ by less than this, relative to the largest of their column.
_ROUNDING = 1e-12


@called
def _fill_maxima(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> None:
    """Fill the tables from ``begin`` to ``end`` with logarithms; messages are maxima."""
    pool = work.pool
    for t in range(begin, end):
        size = fill_logs(tables, arrays, work, x, t)
        many, place = tables.separator[t], tables.place[t]
        first = tables.message[t]
        for k in range(many):
            pool[first + k] = pool[place + k]
        for a in range(1, size):
            for k in range(many):
                pool[first + k] = max(pool[first + k], pool[place + a * many + k])


@called
def maximise_block(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> None:
    """Put the sites of a block into a best state given all other sites."""
    _fill_maxima(tables, arrays, work, x, begin, end)
    pool = work.pool
    for t in range(end - 1, begin - 1, -1):
        i = tables.site[t]
        size, many, column = np.int64(arrays.card[i]), tables.separator[t], find_column(tables, x, t)
        best = np.int64(x[i])
        for a in range(size):
            value, top = pool[column + a * many], pool[column + best * many]
            if value > top and not value - top <= _ROUNDING * (1.0 + abs(top)):
                best = np.int64(a)
        x[i] = best


@compiled_loop
def climb_blocks(tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array) -> None:
    """Put one block after another into a best state given the rest."""
    for block in range(tables.start.size - 1):
        maximise_block(tables, arrays, work, x, tables.start[block], tables.start[block + 1])


@compiled_loop
def draw_blocks(draw: Any, tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array) -> None:
    """Draw one block after another given the rest; ``draw`` is the address of ``draw_block``."""
    for block in range(tables.start.size - 1):
        work.what[0], work.what[1] = block, DRAW
        call_pointer(draw, tables, arrays, work, x)


@compiled_loop
def score_state(arrays: TableGraph, x: Array) -> float:
    """Return the log-potential of a state, without ``Graph.log_offset``."""
    return log_potential(arrays, x)
