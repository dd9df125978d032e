"""The tables multiplied in each clique: factors joined into a few potentials, and the children's messages.

A factor belongs to the first clique that holds it. The factors of a clique are multiplied into one table
while that stays small, into a few otherwise, because every table costs a pass over the clique. All tables
lie in one pool, potentials first, then the messages, one per clique, over its separator. Axes of every
table are in the clique's order, so a table is described by the bits of its axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, called, compiled_loop
from gibbsite.exact.reduce import Reduced
from gibbsite.exact.tree import MOST_AXES, Tree

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# Potentials up to this size stay in the processor's cache while a large clique is passed through.
_JOINED = 1 << 14


class Operands(NamedTuple):
    """Which tables of the pool make up each clique.

    Clique c is the product of the tables ``start[c]`` to ``start[c + 1]``: its potentials, then the
    messages of its children, from ``inner[c]`` on. Table k lies at ``table[k]`` and has the axes
    ``mask[k]`` of the clique; bit a is axis a. ``message[c]`` is the place of the clique's own message.
    ``group`` is the potential of each factor, which lies at ``group_table`` and belongs to ``group_clique``
    with the axes ``group_mask``. Messages begin at ``potentials``; the pool has ``size`` entries.
    """

    start: Longs
    inner: Longs
    mask: Longs
    table: Longs
    child: Longs
    message: Longs
    group: Longs
    group_table: Longs
    group_clique: Longs
    group_mask: Longs
    potentials: int
    size: int


def plan_operands(tree: Tree, problem: Reduced) -> Operands:
    """Give every factor to a clique and every table a place.

    Parameters
    ----------
    tree : Tree
        The cliques.
    problem : Reduced
        The factors.

    Returns
    -------
    Operands
    """
    n_cliques, n_factors = tree.own.size, problem.table.size
    # the first clique of a member holds all members
    owner = (
        np.minimum.reduceat(tree.home[problem.member], problem.member_start[:-1])
        if n_factors
        else np.zeros(0, np.int64)
    )
    group, group_table, group_clique, group_mask = np.zeros((4, n_factors), np.int64)
    axis, group_start = np.zeros(tree.home.size, np.int64), np.zeros(n_cliques + 1, np.int64)
    by_clique = np.argsort(owner, kind="stable")
    row = _starts(np.bincount(owner, minlength=n_cliques))
    potentials = int(
        _group_factors(
            tree, problem, by_clique, row, axis, group, group_table, group_clique, group_mask, group_start
        )
    )
    count = int(group_start[-1])
    message = potentials + _starts(tree.separator.astype(np.int64))
    inner = tree.parent >= 0
    children = np.bincount(tree.parent[inner], minlength=n_cliques)
    start = _starts(np.diff(group_start) + children)
    operands = Operands(
        start=start,
        inner=start[1:] - children,
        mask=np.zeros(int(start[-1]), np.int64),
        table=np.zeros(int(start[-1]), np.int64),
        child=np.full(int(start[-1]), -1, np.int64),
        message=message[:-1],
        group=group,
        group_table=group_table[:count],
        group_clique=group_clique[:count],
        group_mask=group_mask[:count],
        potentials=potentials,
        size=int(message[-1]),
    )
    _list_tables(tree, operands, group_start, operands.inner.copy())
    return operands


def _starts(sizes: NDArray[Any]) -> Longs:
    start = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


@compiled_loop
def _group_factors(
    tree: Tree,
    problem: Reduced,
    by_clique: Longs,
    row: Longs,
    axis: Longs,
    group: Longs,
    group_table: Longs,
    group_clique: Longs,
    group_mask: Longs,
    group_start: Longs,
) -> Integer:
    """Join the factors of each clique, each to the table that grows least; return the entries of all."""
    count, used = 0, np.int64(0)
    for c in range(tree.own.size):
        begin = tree.start[c]
        for k in range(begin, tree.start[c + 1]):
            axis[tree.site[k]] = k - begin
        for at in range(row[c], row[c + 1]):
            f = by_clique[at]
            mask = 0
            for m in range(problem.member_start[f], problem.member_start[f + 1]):
                mask |= 1 << axis[problem.member[m]]
            chosen, least = -1, np.inf
            for g in range(group_start[c], count):
                size, grown = entries(tree, begin, group_mask[g]), entries(tree, begin, group_mask[g] | mask)
                fits = grown <= max(_JOINED, size, entries(tree, begin, mask))
                if fits and grown - size < least:
                    chosen, least = g, grown - size
            if chosen < 0:
                chosen = count
                group_mask[chosen], group_clique[chosen] = 0, c
                count += 1
            group_mask[chosen] |= mask
            group[f] = chosen
        for g in range(group_start[c], count):
            group_table[g] = used
            used += np.int64(entries(tree, begin, group_mask[g]))
        group_start[c + 1] = count
    return used


@compiled_loop
def _list_tables(tree: Tree, operands: Operands, group_start: Longs, free: Longs) -> None:
    """List the potentials and the children's messages of every clique."""
    for c in range(tree.own.size):
        for g in range(group_start[c], group_start[c + 1]):
            operands.mask[operands.start[c] + g - group_start[c]] = operands.group_mask[g]
            operands.table[operands.start[c] + g - group_start[c]] = operands.group_table[g]
        up = tree.parent[c]
        if up >= 0:
            operands.mask[free[up]] = _inside(tree, c, up)
            operands.table[free[up]] = operands.message[c]
            operands.child[free[up]] = c
            free[up] += 1


@called
def entries(tree: Tree, begin: int, mask: int) -> float:
    """Return the number of entries of a table over some axes of the clique that begins there."""
    product = 1.0
    at = begin
    while mask:
        if mask & 1:
            product *= tree.card[tree.site[at]]
        mask >>= 1
        at += 1
    return product


@called
def _inside(tree: Tree, c: int, up: int) -> int:
    """Return the axes of a clique's separator in its parent; both list them in the same order."""
    mask = 0
    at = tree.start[up]
    for k in range(tree.start[c] + tree.own[c], tree.start[c + 1]):
        while tree.site[at] != tree.site[k]:
            at += 1
        mask |= 1 << (at - tree.start[up])
    return mask


def fill_potentials(tree: Tree, problem: Reduced, operands: Operands, pool: Floats) -> tuple[float, float]:
    """Write the logarithms of all potentials into the pool, each with maximum zero.

    Returns the sum of what was taken out, minus infinity when a potential has no positive entry, and the
    lowest logarithm.
    """
    odometer = _Odometer(*np.zeros((4, MOST_AXES + 4), np.int64))
    shift, lowest = _fill(tree, problem, operands, pool, odometer)
    return float(shift), float(lowest)


class _Odometer(NamedTuple):
    """The axes of a potential: their sites, where each stands, a factor's strides, the way back."""

    site: Longs
    digit: Longs
    stride: Longs
    back: Longs


@compiled_loop
def _fill(
    tree: Tree, problem: Reduced, operands: Operands, pool: Floats, axes: _Odometer
) -> tuple[float, float]:
    for k in range(operands.potentials):
        pool[k] = 0.0
    for f in range(problem.table.size):
        _add_factor(tree, problem, operands, pool, axes, f)
    shift, lowest = 0.0, 0.0
    for g in range(operands.group_table.size):
        first = operands.group_table[g]
        last = operands.group_table[g + 1] if g + 1 < operands.group_table.size else operands.potentials
        top = -np.inf
        for k in range(first, last):
            top = max(top, pool[k])
        shift += top
        if top > -np.inf:
            for k in range(first, last):
                pool[k] -= top
                if -np.inf < pool[k] < lowest:
                    lowest = pool[k]
    return shift, lowest


@called
def _add_factor(
    tree: Tree, problem: Reduced, operands: Operands, pool: Floats, axes: _Odometer, f: int
) -> None:
    """Add a factor's log-potentials to its group, counting through the group's axes like an odometer."""
    g = operands.group[f]
    begin = tree.start[operands.group_clique[g]]
    site, digit, stride, back = axes.site, axes.digit, axes.stride, axes.back
    width = 0
    mask = operands.group_mask[g]
    at = begin
    total = 1
    while mask:
        if mask & 1:
            site[width], digit[width], stride[width] = tree.site[at], 0, 0
            total *= tree.card[tree.site[at]]
            width += 1
        mask >>= 1
        at += 1
    source = problem.table[f]
    for m in range(problem.member_start[f], problem.member_start[f + 1]):
        i = problem.member[m]
        for a in range(width):
            if site[a] == i:
                stride[a] = problem.stride[m]
        source += problem.code[problem.code_start[i]] * problem.stride[m]
    for a in range(width):
        i = site[a]
        last = problem.code[problem.code_start[i + 1] - 1]
        back[a] = (last - problem.code[problem.code_start[i]]) * stride[a]
    target = operands.group_table[g]
    for k in range(total):
        pool[target + k] += problem.value[source]
        a = width - 1
        while a >= 0:
            i = site[a]
            d = digit[a] + 1
            if d < tree.card[i]:
                digit[a] = d
                here = problem.code_start[i] + d
                source += (problem.code[here] - problem.code[here - 1]) * stride[a]
                break
            digit[a] = 0
            source -= back[a]
            a -= 1
