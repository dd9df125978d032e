"""Two passes over the clique tree: towards the roots, and back to find the marginals of all sites.

Only messages are stored. The product of a clique is formed slab by slab in both passes, so only the separators take
memory. Messages are scaled to maximum one (zero in logarithms), and the logarithms of the scales are summed up. On the
way back, the message to a child is the sum of its clique divided by the message that came from the child (Lauritzen and
Spiegelhalter 1988; Jensen, Lauritzen and Olesen 1990).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite.graphs.elimination.rings import Ring, cancel, gather
from gibbsite.inference.exact.potentials import Operands
from gibbsite.inference.exact.sweep import SweepWorkspace, split, sweep
from gibbsite.inference.exact.tree import CliqueTree

# The rounding error of an underflowing product, with a margin, in units of 1e-300; and the smallest product that
# certainly does not underflow.
_ROUNDING = 1e-22
_UNIT = 1e-300
_SMALLEST = 1e-300
_STEEPEST = 700.0  # exponentials of larger numbers may overflow; by then, the loss is far too large anyway


class Summary(NamedTuple):
    """Results of the passes besides the messages.

    ``log_sum`` is the logarithm of the sum over all states, minus infinity if it is zero. ``loss`` bounds the relative
    error due to underflow of this sum, or after two passes of any marginal; it is meaningless for logarithms.
    """

    log_sum: float
    loss: float


def propagate(
    ring: Ring,
    tree: CliqueTree,
    operands: Operands,
    workspace: SweepWorkspace,
    pool: Floats,
    cells: Floats | None = None,
    cell_start: Ints | None = None,
) -> Summary:
    """Pass over the tree once, or twice to write the marginals of the sites to ``cells``.

    The pool then holds the messages towards the roots, or those in the other direction.
    """
    back = cells is not None and cell_start is not None
    loss, floor = np.zeros(tree.own.size), np.ones(tree.own.size)
    cells = np.zeros(0) if cells is None else cells
    cell_start = np.zeros(0, np.int64) if cell_start is None else cell_start
    return Summary(*_pass(ring, tree, operands, workspace, pool, loss, floor, back, cells, cell_start))


@compiled_loop
def _pass(
    ring: Ring,
    tree: CliqueTree,
    operands: Operands,
    workspace: SweepWorkspace,
    pool: Floats,
    loss: Floats,
    floor: Floats,
    back: bool,
    cells: Floats,
    cell_start: Ints,
) -> tuple[float, float]:
    """Pass over the tree for the potentials that the pool holds."""
    return pass_over(ring, tree, operands, workspace, pool, loss, floor, back, cells, cell_start)


@called
def pass_over(
    ring: Ring,
    tree: CliqueTree,
    operands: Operands,
    workspace: SweepWorkspace,
    pool: Floats,
    loss: Floats,
    floor: Floats,
    back: bool,
    cells: Floats,
    cell_start: Ints,
) -> tuple[float, float]:
    """Send messages to the roots, and back; ``loss`` bounds their errors, ``floor`` is their least positive entry.

    Returns the entries of a :class:`Summary`. Losses must be zero at the beginning.
    """
    log_sum, lost = 0.0, 0.0
    for c in range(tree.own.size):
        n_in, rows, first = _open(tree, operands, workspace, c, False)
        loss[c] += _underflow(operands, workspace, c, pool, floor, 1.0)
        size = np.int64(tree.separator[c])
        for k in range(size):
            pool[first + k] = ring.zero
        sweep(ring, workspace, tree.start[c + 1] - tree.start[c], n_in, rows - n_in, pool, pool)
        scale, floor[c] = _normalise(ring, pool, first, first + size)
        log_sum += scale
        if log_sum == -np.inf:
            return log_sum, np.inf
        # limited, because overflow is an error in plain Python, and zero times infinity is NaN
        missing = loss[c] * tree.size[c] / tree.separator[c] * math.exp(min(-scale, _STEEPEST))
        if tree.parent[c] >= 0:
            loss[tree.parent[c]] += missing
        else:
            lost = max(lost, missing)
    if back:
        for c in range(tree.own.size - 1, -1, -1):
            n_in, rows, used = _open(tree, operands, workspace, c, True)
            outside = floor[c] if tree.parent[c] >= 0 else 1.0
            loss[c] += _underflow(operands, workspace, c, pool, floor, outside)
            for k in range(used):
                workspace.result[k] = ring.zero
            sweep(ring, workspace, tree.start[c + 1] - tree.start[c], n_in, rows - n_in, pool, workspace.result)
            total = _close(ring, tree, operands, workspace, c, pool, floor, cells, cell_start)
            lost = max(lost, tree.size[c] * loss[c] / total)
    return log_sum, lost * _UNIT


@called
def _underflow(
    operands: Operands, workspace: SweepWorkspace, c: int, pool: Floats, floor: Floats, least: float
) -> float:
    """Return a bound of the error of a product of the tables of a clique that is due to underflow."""
    for t in range(operands.start[c], operands.start[c + 1]):
        if t >= operands.inner[c]:
            least *= floor[operands.child[t]]
        else:
            low = 1.0
            for k in range(operands.table[t], operands.table[t] + _table_size(workspace, operands.mask[t])):
                if 0.0 < pool[k] < low:
                    low = pool[k]
            least *= low
    return 0.0 if least > _SMALLEST else _ROUNDING


@called
def _open(
    tree: CliqueTree, operands: Operands, workspace: SweepWorkspace, c: int, back: bool
) -> tuple[Integer, Integer, Integer]:
    """Fill the workspace with the tables that are read and written for a clique.

    On the way to the roots, potentials and messages of children are read, and the clique's own message is written. On
    the way back, its own message is read, too; the tables written are one for each child, one for each own site that is
    constant in a slab, and the sums of the slabs. Returns the rows read, all rows, and the entries used in
    ``workspace.result`` (or the place of the message).
    """
    begin, d = tree.start[c], tree.start[c + 1] - tree.start[c]
    for a in range(d):
        workspace.card[a] = tree.card[tree.site[begin + a]]
    own = (1 << d) - (1 << tree.own[c])
    rows = 0
    for k in range(operands.start[c], operands.start[c + 1]):
        workspace.mask[rows], workspace.base[rows] = operands.mask[k], np.uintp(operands.table[k])
        rows += 1
    if not back or tree.parent[c] >= 0:
        workspace.mask[rows], workspace.base[rows] = own, np.uintp(operands.message[c])
        rows += 1
    if not back:
        return rows - 1, rows, operands.message[c]
    n_in = rows
    used = np.int64(0)
    for k in range(operands.inner[c], operands.start[c + 1]):
        workspace.mask[rows], workspace.base[rows] = operands.mask[k], np.uintp(used)
        used += _table_size(workspace, operands.mask[k])
        rows += 1
    high, n = split(workspace.card, d)
    for a in range(min(tree.own[c], high)):
        workspace.mask[rows], workspace.base[rows] = 1 << a, np.uintp(used)
        used += workspace.card[a]
        rows += 1
    if tree.own[c] > high:
        workspace.mask[rows], workspace.base[rows] = (1 << d) - (1 << high), np.uintp(used)
        used += n
        rows += 1
    return n_in, rows, used


@called
def _close(
    ring: Ring,
    tree: CliqueTree,
    operands: Operands,
    workspace: SweepWorkspace,
    c: int,
    pool: Floats,
    floor: Floats,
    cells: Floats,
    cell_start: Ints,
) -> float:
    """Turn the sums of a clique into messages to its children and marginals; return the smallest total."""
    at = np.int64(0)
    for k in range(operands.inner[c], operands.start[c + 1]):
        table, size = operands.table[k], _table_size(workspace, operands.mask[k])
        for j in range(size):
            pool[table + j] = cancel(ring, workspace.result[at + j], pool[table + j])
        _, floor[operands.child[k]] = _normalise(ring, pool, table, table + size)
        at += size
    high, n = split(workspace.card, tree.start[c + 1] - tree.start[c])
    block = n
    total = np.inf
    for a in range(tree.own[c]):
        i = tree.site[tree.start[c] + a]
        first, card = cell_start[i], tree.card[i]
        if a < high:
            for x in range(card):
                cells[first + x] = workspace.result[at + x]
            at += card
        else:
            block //= card
            for x in range(card):
                cells[first + x] = ring.zero
            for k in range(n):
                x = k // block % card
                cells[first + x] = gather(ring, cells[first + x], workspace.result[at + k])
        total = min(total, _to_probabilities(ring, cells, first, first + card))
    return total


@called
def _table_size(workspace: SweepWorkspace, mask: Integer) -> Integer:
    size = np.int64(1)
    a = 0
    while mask >> a:
        if mask >> a & 1:
            size *= workspace.card[a]
        a += 1
    return size


@called
def _normalise(ring: Ring, pool: Floats, first: Integer, last: Integer) -> tuple[float, float]:
    """Scale a message to maximum one; return the logarithm of the scale and the smallest positive entry."""
    top, low = ring.zero, np.inf
    for k in range(first, last):
        top = max(top, pool[k])
        if ring.zero < pool[k] < low:
            low = pool[k]
    if top == ring.zero:
        return -np.inf, 1.0
    for k in range(first, last):
        pool[k] = cancel(ring, pool[k], top)
    return math.log(top) if ring.one > 0.0 else top, cancel(ring, low, top)


@called
def _to_probabilities(ring: Ring, cells: Floats, first: int, last: int) -> float:
    """Normalise the marginal of a site; return its total."""
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
