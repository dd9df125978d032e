"""Two passes over the clique tree: messages towards the roots, and back with the marginals of all sites.

Only messages are kept. A clique's product is formed slab by slab in both passes, so the memory is that of
the separators. Messages are scaled to maximum one (zero in logarithms) and the scales are added up as
logarithms. On the way back a message is what all other tables of the clique together say, obtained by
taking the child's own message out of the clique's sum (Lauritzen and Spiegelhalter 1988; Jensen, Lauritzen
and Olesen 1990).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, called, compiled_loop
from gibbsite.exact.potentials import Operands
from gibbsite.exact.rings import Ring, cancel, gather
from gibbsite.exact.sweep import Desk, split, sweep
from gibbsite.exact.tree import Tree

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


class Summary(NamedTuple):
    """What passes over a tree tell besides the messages.

    ``log_sum`` is the logarithm of the sum over all states, minus infinity if there is none. What is lost
    in some message as too small could have grown by up to exp(``depth``) on the way to its root. ``least``
    is the smallest sum of a clique on the way back, in units of the largest product its tables could have:
    if it is not tiny, nothing that counts was too small for floating-point numbers.
    """

    log_sum: float
    depth: float
    least: float


def propagate(
    ring: Ring,
    tree: Tree,
    operands: Operands,
    desk: Desk,
    pool: Floats,
    *,
    deep: float = np.inf,
    cells: Floats | None = None,
    cell_start: Longs | None = None,
) -> Summary:
    """Pass over the tree once, or twice if marginals are wanted or the first pass went deep.

    Parameters
    ----------
    ring : Sum, Max or LogSum
        How to combine and add up.
    tree, operands, desk, pool
        The tree, its tables, and room to work. Messages are left in the pool: those towards the roots after
        one pass, those in the other direction after two.
    deep : float
        Make the second pass if ``depth`` is beyond this.
    cells, cell_start : arrays, optional
        Where the marginals of the sites go.

    Returns
    -------
    Summary
    """
    scale = np.zeros(tree.own.size)
    if cells is None or cell_start is None:
        cell_start = np.zeros(tree.card.size + 1, np.int64)
        np.cumsum(tree.card, out=cell_start[1:])
        cells = np.zeros(int(cell_start[-1]) if deep < np.inf else 0)
    else:
        deep = -1.0
    return Summary(*_pass(ring, tree, operands, desk, pool, scale, deep, cells, cell_start))


@compiled_loop
def _pass(
    ring: Ring,
    tree: Tree,
    operands: Operands,
    desk: Desk,
    pool: Floats,
    scale: Floats,
    deep: float,
    cells: Floats,
    cell_start: Longs,
) -> tuple[float, float, float]:
    """Send messages from the leaves to the roots, and back if the first pass went deeper than ``deep``."""
    log_sum = 0.0
    for c in range(tree.own.size):
        n_in, rows, first = _open(tree, operands, desk, c, False)
        size = np.int64(tree.separator[c])
        for k in range(size):
            pool[first + k] = ring.zero
        sweep(ring, desk, tree.start[c + 1] - tree.start[c], n_in, rows - n_in, pool, pool)
        scale[c] = _normalise(ring, pool, first, first + size)
        log_sum += scale[c]
        if log_sum == -np.inf:
            return log_sum, np.inf, np.inf
    depth = 0.0
    for c in range(tree.own.size - 1, -1, -1):
        scale[c] = (scale[tree.parent[c]] if tree.parent[c] >= 0 else 0.0) - scale[c]
        depth = max(depth, scale[c])
    least = np.inf
    if depth > deep:
        for c in range(tree.own.size - 1, -1, -1):
            n_in, rows, used = _open(tree, operands, desk, c, True)
            for k in range(used):
                desk.result[k] = ring.zero
            sweep(ring, desk, tree.start[c + 1] - tree.start[c], n_in, rows - n_in, pool, desk.result)
            least = min(least, _close(ring, tree, operands, desk, c, pool, cells, cell_start))
    return log_sum, depth, least


@called
def _open(tree: Tree, operands: Operands, desk: Desk, c: int, back: bool) -> tuple[Integer, Integer, Integer]:
    """Fill the desk with what is read and written for a clique.

    On the way to the roots that is the potentials and the children's messages, and the clique's own
    message. On the way back its own message is read, too; one table per child is written, and what the own
    sites need: a row for every site counted over slab by slab, and the sum of all slabs for those within.

    Returns the number of rows read, of all rows, and the entries used in ``desk.result`` (the place of the
    message on the way to the roots).
    """
    begin, d = tree.start[c], tree.start[c + 1] - tree.start[c]
    for a in range(d):
        desk.card[a] = tree.card[tree.site[begin + a]]
    own = (1 << d) - (1 << tree.own[c])
    rows = 0
    for k in range(operands.start[c], operands.start[c + 1]):
        desk.mask[rows], desk.base[rows] = operands.mask[k], np.uintp(operands.table[k])
        rows += 1
    if not back or tree.parent[c] >= 0:
        desk.mask[rows], desk.base[rows] = own, np.uintp(operands.message[c])
        rows += 1
    if not back:
        return rows - 1, rows, operands.message[c]
    n_in = rows
    used = np.int64(0)
    for k in range(operands.inner[c], operands.start[c + 1]):
        desk.mask[rows], desk.base[rows] = operands.mask[k], np.uintp(used)
        used += _table_size(desk, operands.mask[k])
        rows += 1
    high, n = split(desk.card, d)
    for a in range(min(tree.own[c], high)):
        desk.mask[rows], desk.base[rows] = 1 << a, np.uintp(used)
        used += desk.card[a]
        rows += 1
    if tree.own[c] > high:
        desk.mask[rows], desk.base[rows] = (1 << d) - (1 << high), np.uintp(used)
        used += n
        rows += 1
    return n_in, rows, used


@called
def _close(
    ring: Ring,
    tree: Tree,
    operands: Operands,
    desk: Desk,
    c: int,
    pool: Floats,
    cells: Floats,
    cell_start: Longs,
) -> float:
    """Turn the sums of a clique into messages to its children and marginals of its own sites."""
    at = np.int64(0)
    for k in range(operands.inner[c], operands.start[c + 1]):
        table, size = operands.table[k], _table_size(desk, operands.mask[k])
        for j in range(size):
            pool[table + j] = cancel(ring, desk.result[at + j], pool[table + j])
        _normalise(ring, pool, table, table + size)
        at += size
    high, n = split(desk.card, tree.start[c + 1] - tree.start[c])
    block = n
    least = np.inf
    for a in range(tree.own[c]):
        i = tree.site[tree.start[c] + a]
        first, card = cell_start[i], tree.card[i]
        if a < high:
            for x in range(card):
                cells[first + x] = desk.result[at + x]
            at += card
        else:
            block //= card
            for x in range(card):
                cells[first + x] = ring.zero
            for k in range(n):
                x = k // block % card
                cells[first + x] = gather(ring, cells[first + x], desk.result[at + k])
        least = min(least, _to_probabilities(ring, cells, first, first + card))
    return least


@called
def _table_size(desk: Desk, mask: Integer) -> Integer:
    size = np.int64(1)
    a = 0
    while mask >> a:
        if mask >> a & 1:
            size *= desk.card[a]
        a += 1
    return size


@called
def _normalise(ring: Ring, pool: Floats, first: Integer, last: Integer) -> float:
    """Scale a message to maximum one; return the logarithm of the scale, minus infinity if all is zero."""
    top = ring.zero
    for k in range(first, last):
        top = max(top, pool[k])
    if top == ring.zero:
        return -np.inf
    for k in range(first, last):
        pool[k] = cancel(ring, pool[k], top)
    return math.log(top) if ring.one > 0.0 else top


@called
def _to_probabilities(ring: Ring, cells: Floats, first: int, last: int) -> float:
    """Normalise the marginal of a site; return what it summed up to."""
    total = 0.0
    if ring.one > 0.0:
        for k in range(first, last):
            total += cells[k]
    else:
        top = -np.inf
        for k in range(first, last):
            top = max(top, cells[k])
        for k in range(first, last):
            cells[k] = math.exp(cells[k] - top) if top > -np.inf else 0.0
            total += cells[k]
    if total > 0.0:
        for k in range(first, last):
            cells[k] /= total
    return total
