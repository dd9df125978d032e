"""Products of the tables of a clique, summed onto some of its axes without being stored.

The clique is processed in slabs that fit into the processor's cache: the fastest axes together, the others counted
like an odometer. Within a slab a table has one of five layouts, four of which are simple loops:

* ABSENT: none of the axes of the slab; the table is a single number,
* WHOLE: all of them,
* OUTER: the slower ones; every number applies to a run of the slab,
* INNER: the faster ones; the same numbers apply to every run,
* MIXED: any others, by a list of positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Floats, Ints, Words32
from gibbsite._numba.jit import Integer, called
from gibbsite.graphs.elimination.rings import Ring, gather, join
from gibbsite.inference.exact.potentials import Operands
from gibbsite.inference.exact.tree import MOST_AXES, CliqueTree

Indices = NDArray[np.uintp]

SLAB = 4096
ABSENT, WHOLE, OUTER, INNER, MIXED = range(5)


class SweepWorkspace(NamedTuple):
    """Workspace for one clique: its axes, the slab, and a row for each table that is read or written.

    ``card`` and ``digit`` belong to the axes. The table of a row lies at ``base``, has the axes ``mask`` and the
    layout ``kind``, with ``inner`` numbers per run, or its list at ``inner`` in ``position``; ``stride`` holds its
    strides, axis by axis. ``result`` is for tables that are summed up.
    """

    card: Ints
    digit: Ints
    slab: Floats
    mask: Ints
    base: Indices
    kind: Ints
    inner: Indices
    stride: Ints
    position: Words32
    result: Floats


def allocate_workspace(rows: int, strides: int, positions: int, longest: int, results: int) -> SweepWorkspace:
    """Allocate a workspace: rows for tables, their strides and positions, the longest slab, and the sums."""
    return SweepWorkspace(
        card=np.zeros(MOST_AXES, np.int64),
        digit=np.zeros(MOST_AXES, np.int64),
        slab=np.empty(longest),
        mask=np.zeros(rows, np.int64),
        base=np.zeros(rows, np.uintp),
        kind=np.zeros(rows, np.int64),
        inner=np.zeros(rows, np.uintp),
        stride=np.zeros(strides, np.int64),
        position=np.zeros(positions, np.uint32),
        result=np.zeros(results),
    )


def make_workspace(tree: CliqueTree, operands: Operands) -> SweepWorkspace:
    """Allocate a workspace for the largest clique of a tree."""
    width = np.diff(tree.start)
    cards = tree.card[tree.site]
    own = np.zeros(width.size, np.int64)
    if width.size:
        of_own = np.arange(tree.site.size) - np.repeat(tree.start[:-1], width) < np.repeat(tree.own, width)
        own = np.add.reduceat(np.where(of_own, cards, 0), tree.start[:-1])
    parent = tree.parent[tree.parent >= 0]
    below = np.bincount(parent, tree.separator[tree.parent >= 0], minlength=width.size)
    rows = np.diff(operands.start) + np.bincount(parent, minlength=width.size) + tree.own + 2
    longest = int(max(SLAB, cards.max(initial=1)))
    listed = np.where(width > 2, rows * np.minimum(tree.size, longest), 0)
    return allocate_workspace(
        int(rows.max(initial=1)),
        int((rows * width).max(initial=1)),
        int(listed.max(initial=1)),
        longest,
        int((below + own).max(initial=1)) + longest,
    )


@called
def split(card: Ints, d: Integer) -> tuple[Integer, Integer]:
    """Return the first axis of the slabs of a clique with d axes, and their size."""
    high: Integer = d
    n: Integer = np.int64(1)
    while high > 0 and (high == d or n * card[high - 1] <= SLAB):
        high -= 1
        n *= card[high]
    return high, n


@called
def sweep(
    ring: Ring, workspace: SweepWorkspace, d: Integer, n_in: Integer, n_out: Integer, pool: Floats, out: Floats
) -> None:
    """Multiply the tables of the first ``n_in`` rows and add the product to those of the next ``n_out`` in ``out``.

    The clique has d axes with ``workspace.card`` states; ``mask`` and ``base`` of the rows are given.
    """
    high, n, slabs = _lay_out_rows(workspace, d, n_in + n_out)
    size = np.uintp(n)
    slab, base, kind, inner = workspace.slab, workspace.base, workspace.kind, workspace.inner
    for _ in range(slabs):
        scalar = _scalar(ring, workspace, n_in, pool)
        if scalar != ring.zero:
            _multiply_rows(ring, workspace, n_in, scalar, slab, size, pool)
            known, total = False, ring.zero
            for r in range(n_in, n_in + n_out):
                if kind[r] == ABSENT:
                    if not known:
                        known, total = True, _total(ring, slab, size)
                    out[base[r]] = gather(ring, out[base[r]], total)
                else:
                    _collapse(ring, slab, size, out, base[r], kind[r], inner[r], workspace.position)
        _next_slab(workspace, d, high, n_in + n_out)


@called
def multiply_out(ring: Ring, workspace: SweepWorkspace, d: Integer, n_in: Integer, pool: Floats, out: Floats) -> None:
    """Write the whole product of the tables of the first ``n_in`` rows to ``out``."""
    high, n, slabs = _lay_out_rows(workspace, d, n_in)
    size = np.uintp(n)
    for number in range(slabs):
        scalar = _scalar(ring, workspace, n_in, pool)
        _multiply_rows(ring, workspace, n_in, scalar, out[number * n : (number + 1) * n], size, pool)
        _next_slab(workspace, d, high, n_in)


@called
def _lay_out_rows(workspace: SweepWorkspace, d: Integer, rows: Integer) -> tuple[Integer, Integer, Integer]:
    """Lay out all tables; return the first axis of the slabs, their size and their number."""
    high, n = split(workspace.card, d)
    slabs = np.int64(1)
    for a in range(high):
        slabs *= workspace.card[a]
        workspace.digit[a] = 0
    listed = np.int64(0)
    for r in range(rows):
        listed = _lay_out(workspace, r, d, high, n, listed)
    return high, n, slabs


@called
def _scalar(ring: Ring, workspace: SweepWorkspace, n_in: Integer, pool: Floats) -> float:
    """Return the product of the tables that are constant in this slab."""
    scalar = ring.one
    for r in range(n_in):
        if workspace.kind[r] == ABSENT:
            scalar = join(ring, scalar, pool[workspace.base[r]])
    return scalar


@called
def _multiply_rows(
    ring: Ring, workspace: SweepWorkspace, n_in: Integer, scalar: float, slab: Floats, size: Integer, pool: Floats
) -> None:
    """Write the product of all tables to a slab, given that of the constant ones."""
    for i in range(size):
        slab[i] = scalar
    for r in range(n_in):
        kind = workspace.kind[r]
        if kind != ABSENT:
            _multiply(ring, slab, size, pool, workspace.base[r], kind, workspace.inner[r], workspace.position)


@called
def _next_slab(workspace: SweepWorkspace, d: Integer, high: Integer, rows: Integer) -> None:
    """Advance the slower axes by one, and the tables of all rows with them."""
    a = high - 1
    while a >= 0:
        workspace.digit[a] += 1
        if workspace.digit[a] < workspace.card[a]:
            for r in range(rows):
                workspace.base[r] += np.uintp(workspace.stride[r * d + a])
            break
        workspace.digit[a] = 0
        for r in range(rows):
            workspace.base[r] -= np.uintp(workspace.stride[r * d + a] * (workspace.card[a] - 1))
        a -= 1


@called
def _lay_out(workspace: SweepWorkspace, r: Integer, d: Integer, high: Integer, n: Integer, listed: Integer) -> Integer:
    """Find the strides of a table in its clique and its layout in a slab; return the end of the lists of positions."""
    mask = workspace.mask[r]
    step = np.int64(1)
    for a in range(d - 1, -1, -1):
        inside = mask >> a & 1
        workspace.stride[r * d + a] = step * inside
        if inside:
            step *= workspace.card[a]
    # the slab's axes as runs of present and absent ones
    present = np.int64(1)
    changes = 0
    for a in range(high, d):
        if mask >> a & 1:
            present *= workspace.card[a]
        if a > high and (mask >> a & 1) != (mask >> (a - 1) & 1):
            changes += 1
    begins = d > high and mask >> high & 1
    if changes == 0:
        workspace.kind[r] = WHOLE if begins else ABSENT
    elif changes == 1:
        workspace.kind[r] = OUTER if begins else INNER
        workspace.inner[r] = np.uintp(n // present if begins else present)
    else:
        workspace.kind[r] = MIXED
        workspace.inner[r] = np.uintp(listed)
        length = np.int64(1)
        workspace.position[listed] = 0
        for a in range(d - 1, high - 1, -1):
            for k in range(length, length * workspace.card[a]):
                workspace.position[listed + k] = workspace.position[listed + k - length] + workspace.stride[r * d + a]
            length *= workspace.card[a]
        listed += n
    return listed


@called
def _multiply(
    ring: Ring, slab: Floats, size: Integer, pool: Floats, base: Integer, kind: int, inner: Integer, position: Words32
) -> None:
    """Multiply a slab by a table."""
    if kind == WHOLE:
        for i in range(size):
            slab[i] = join(ring, slab[i], pool[base + i])
    elif kind == OUTER:
        for i in range(size // inner):
            value = pool[base + i]
            for k in range(i * inner, (i + np.uintp(1)) * inner):
                slab[k] = join(ring, slab[k], value)
    elif kind == INNER:
        for i in range(size // inner):
            first = i * inner
            for k in range(inner):
                slab[first + k] = join(ring, slab[first + k], pool[base + k])
    else:
        for i in range(size):
            slab[i] = join(ring, slab[i], pool[base + np.uintp(position[inner + i])])


@called
def _collapse(
    ring: Ring, slab: Floats, size: Integer, out: Floats, base: Integer, kind: int, inner: Integer, position: Words32
) -> None:
    """Sum a slab onto a table."""
    if kind == WHOLE:
        for i in range(size):
            out[base + i] = gather(ring, out[base + i], slab[i])
    elif kind == OUTER:
        for i in range(size // inner):
            value = out[base + i]
            for k in range(i * inner, (i + np.uintp(1)) * inner):
                value = gather(ring, value, slab[k])
            out[base + i] = value
    elif kind == INNER:
        for i in range(size // inner):
            first = i * inner
            for k in range(inner):
                out[base + k] = gather(ring, out[base + k], slab[first + k])
    else:
        for i in range(size):
            at = base + np.uintp(position[inner + i])
            out[at] = gather(ring, out[at], slab[i])


@called
def _total(ring: Ring, slab: Floats, size: Integer) -> float:
    """Sum a slab, in four interleaved sums."""
    a, b, c, d = ring.zero, ring.zero, ring.zero, ring.zero
    four = np.uintp(4)
    for i in range(size // four):
        k = i * four
        a = gather(ring, a, slab[k])
        b = gather(ring, b, slab[k + np.uintp(1)])
        c = gather(ring, c, slab[k + np.uintp(2)])
        d = gather(ring, d, slab[k + np.uintp(3)])
    for i in range(size // four * four, size):
        a = gather(ring, a, slab[i])
    return gather(ring, gather(ring, a, b), gather(ring, c, d))
