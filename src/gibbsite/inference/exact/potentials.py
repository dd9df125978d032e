"""The tables multiplied in each clique: factors joined into a few potentials, and the messages of the children.

A factor belongs to the first clique that contains it. The factors of a clique are multiplied into one table while that
stays small, into a few otherwise, because every table costs a pass over the clique. All tables lie in one pool: first
the potentials, then one message per clique over its separator. The axes of every table are in the order of the clique,
so that the bits of its axes describe a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import called, compiled_loop
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.exact.reduce import Reduced
from gibbsite.inference.exact.tree import MOST_AXES, CliqueTree

_JOINED = 1 << 14  # potentials up to this size stay in the processor's cache while a large clique is passed through


class Potentials(NamedTuple):
    """Products of factors: factor f is part of potential ``group[f]``.

    Potential g lies at ``table[g]`` of the pool, up to ``table[g + 1]``. Its axes are the sites ``site[axis[g]]``,
    ..., and the bits of ``mask[g]`` mark them among the axes of its clique.
    """

    group: Ints
    table: Ints
    mask: Ints
    axis: Ints
    site: Ints


class Operands(NamedTuple):
    """The tables of the pool that make up each clique.

    Clique c is the product of the tables ``start[c]`` to ``start[c + 1]``: its potentials, then, from ``inner[c]`` on,
    the messages of its children. Table k lies at ``table[k]``, has the axes ``mask[k]`` of the clique, and is the
    message of clique ``child[k]``, or -1. The message of clique c itself lies at ``message[c]``, up to ``message[c +
    1]``.
    """

    start: Ints
    inner: Ints
    mask: Ints
    table: Ints
    child: Ints
    message: Ints


def plan_tables(tree: CliqueTree, problem: Reduced) -> tuple[Potentials, Operands]:
    """Assign every factor to a clique and every table to a place in the pool."""
    n_cliques, n_factors = tree.own.size, problem.table.size
    # the first clique of a member holds all members
    owner = (
        np.minimum.reduceat(tree.home[problem.member], problem.member_start[:-1])
        if n_factors
        else np.zeros(0, np.int64)
    )
    group, mask = np.zeros((2, n_factors), np.int64)
    table, axis = np.zeros((2, n_factors + 1), np.int64)
    potentials = Potentials(group, table, mask, axis, np.zeros(problem.member.size, np.int64))
    group_start = np.zeros(n_cliques + 1, np.int64)
    by_clique = np.argsort(owner, kind="stable")
    row = row_starts(np.bincount(owner, minlength=n_cliques))
    _group_factors(tree, problem, by_clique, row, np.zeros(tree.home.size, np.int64), potentials, group_start)
    count = int(group_start[-1])
    potentials = Potentials(group, table[: count + 1], mask[:count], axis[: count + 1], potentials.site)
    children = np.bincount(tree.parent[tree.parent >= 0], minlength=n_cliques)
    start = row_starts(np.diff(group_start) + children)
    operands = Operands(
        start=start,
        inner=start[1:] - children,
        mask=np.zeros(int(start[-1]), np.int64),
        table=np.zeros(int(start[-1]), np.int64),
        child=np.full(int(start[-1]), -1, np.int64),
        message=potentials.table[-1] + row_starts(tree.separator.astype(np.int64)),
    )
    _list_tables(tree, potentials, operands, group_start, operands.inner.copy())
    return potentials, operands


@compiled_loop
def _group_factors(
    tree: CliqueTree,
    problem: Reduced,
    by_clique: Ints,
    row: Ints,
    axis: Ints,
    potentials: Potentials,
    group_start: Ints,
) -> None:
    """Join the factors of each clique, each to the table that grows least."""
    count = 0
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
                size = entries(tree, begin, potentials.mask[g])
                grown = entries(tree, begin, potentials.mask[g] | mask)
                fits = grown <= max(_JOINED, size, entries(tree, begin, mask))
                if fits and grown - size < least:
                    chosen, least = g, grown - size
            if chosen < 0:
                chosen = count
                potentials.mask[chosen] = 0
                count += 1
            potentials.mask[chosen] |= mask
            potentials.group[f] = chosen
        for g in range(group_start[c], count):
            potentials.table[g + 1] = potentials.table[g] + np.int64(entries(tree, begin, potentials.mask[g]))
            free = potentials.axis[g]
            for k in range(begin, tree.start[c + 1]):
                if potentials.mask[g] >> (k - begin) & 1:
                    potentials.site[free] = tree.site[k]
                    free += 1
            potentials.axis[g + 1] = free
        group_start[c + 1] = count


@compiled_loop
def _list_tables(tree: CliqueTree, potentials: Potentials, operands: Operands, group_start: Ints, free: Ints) -> None:
    """List the potentials and the children's messages of every clique."""
    for c in range(tree.own.size):
        for g in range(group_start[c], group_start[c + 1]):
            operands.mask[operands.start[c] + g - group_start[c]] = potentials.mask[g]
            operands.table[operands.start[c] + g - group_start[c]] = potentials.table[g]
        up = tree.parent[c]
        if up >= 0:
            operands.mask[free[up]] = _inside(tree, c, up)
            operands.table[free[up]] = operands.message[c]
            operands.child[free[up]] = c
            free[up] += 1


@called
def entries(tree: CliqueTree, begin: int, mask: int) -> float:
    """Return the number of entries of a table over some axes of the clique that begins at ``begin``."""
    product = 1.0
    at = begin
    while mask:
        if mask & 1:
            product *= tree.card[tree.site[at]]
        mask >>= 1
        at += 1
    return product


@called
def _inside(tree: CliqueTree, c: int, up: int) -> int:
    """Return the axes of a clique's separator in its parent; both list them in the same order."""
    mask = 0
    at = tree.start[up]
    for k in range(tree.start[c] + tree.own[c], tree.start[c + 1]):
        while tree.site[at] != tree.site[k]:
            at += 1
        mask |= 1 << (at - tree.start[up])
    return mask


class Odometer(NamedTuple):
    """Scratch space to count through the axes of a table: digits, strides of a factor, and the step back to digit 0."""

    digit: Ints
    stride: Ints
    back: Ints


def make_odometer() -> Odometer:
    """Allocate an odometer for the largest number of axes."""
    return Odometer(*np.zeros((3, MOST_AXES + 4), np.int64))


@called
def add_factors(
    problem: Reduced, group: Ints, table: Ints, axis: Ints, site: Ints, odometer: Odometer, pool: Floats
) -> None:
    """Add the logarithms of every factor f to table ``group[f]`` of the pool.

    Table t begins at ``table[t]``, and its axes are the sites ``site[axis[t]]``, ..., the last of them fastest.
    """
    digit, stride, back = odometer.digit, odometer.stride, odometer.back
    for f in range(problem.table.size):
        begin, width = axis[group[f]], axis[group[f] + 1] - axis[group[f]]
        source, total = problem.table[f], 1
        for a in range(width):
            digit[a], stride[a] = 0, 0
            total *= problem.cards[site[begin + a]]
        for m in range(problem.member_start[f], problem.member_start[f + 1]):
            i = problem.member[m]
            for a in range(width):
                if site[begin + a] == i:
                    stride[a] = problem.stride[m]
            source += problem.code[problem.code_start[i]] * problem.stride[m]
        for a in range(width):
            i = site[begin + a]
            last = problem.code[problem.code_start[i + 1] - 1]
            back[a] = (last - problem.code[problem.code_start[i]]) * stride[a]
        target = table[group[f]]
        for k in range(total):
            pool[target + k] += problem.value[source]
            a = width - 1
            while a >= 0:
                i = site[begin + a]
                d = digit[a] + 1
                if d < problem.cards[i]:
                    digit[a] = d
                    here = problem.code_start[i] + d
                    source += (problem.code[here] - problem.code[here - 1]) * stride[a]
                    break
                digit[a] = 0
                source -= back[a]
                a -= 1


def fill_potentials(problem: Reduced, potentials: Potentials, pool: Floats) -> tuple[float, float]:
    """Write the logarithms of all potentials into the pool, each scaled to maximum zero.

    Returns the sum of the maxima, minus infinity if a potential is zero, and the lowest logarithm.
    """
    shift, lowest = _fill(problem, potentials, make_odometer(), pool)
    return float(shift), float(lowest)


@compiled_loop
def _fill(problem: Reduced, potentials: Potentials, odometer: Odometer, pool: Floats) -> tuple[float, float]:
    for k in range(potentials.table[-1]):
        pool[k] = 0.0
    add_factors(problem, potentials.group, potentials.table, potentials.axis, potentials.site, odometer, pool)
    shift, lowest = 0.0, 0.0
    for g in range(potentials.mask.size):
        first, last = potentials.table[g], potentials.table[g + 1]
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
