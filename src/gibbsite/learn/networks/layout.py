"""Tables of a network as arrays: where each one is, and how codes of sites lead to its entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints16, Ints32
from gibbsite._numba.jit import compiled_loop
from gibbsite.errors import TooLargeError
from gibbsite.graphs.rows import row_starts

_MOST_ENTRIES = 1 << 27


class Layout(NamedTuple):
    """Conditional tables of all sites in one array, the site itself fastest, its last parent next.

    The table of site i begins at ``start[i]``. Its sites are ``site[begin[i]]`` to ``site[begin[i + 1]]``, the parents
    and then the site itself, with strides ``stride``.
    """

    card: Ints
    start: Ints
    begin: Ints
    site: Ints
    stride: Ints


def make_layout(names: Sequence[str], parents: Mapping[str, Sequence[str]], cards: Ints) -> Layout:
    """Lay out the tables of a network.

    Examples
    --------
    >>> layout = make_layout(["a", "b"], {"a": (), "b": ("a",)}, np.array([2, 3]))
    >>> layout.start.tolist(), layout.site.tolist(), layout.stride.tolist()
    ([0, 2, 8], [0, 0, 1], [1, 3, 1])
    """
    number = {name: k for k, name in enumerate(names)}
    families = [[*(number[parent] for parent in parents[name]), number[name]] for name in names]
    sizes, strides = [], []
    for family in families:
        size, steps = 1, []
        for i in reversed(family):
            steps.append(size)
            size *= int(cards[i])
        sizes.append(size)
        strides += steps[::-1]
    if sum(sizes) > _MOST_ENTRIES:
        worst = names[int(np.argmax(sizes))]
        raise TooLargeError(
            f"The tables of the network have {sum(sizes):,} entries, more than {_MOST_ENTRIES:,}; the largest is that "
            f"of {worst!r}, which needs fewer parents."
        )
    return Layout(
        np.asarray(cards, np.int64),
        row_starts(np.array(sizes, np.int64)),
        row_starts(np.array([len(family) for family in families], np.int64)),
        np.array([i for family in families for i in family], np.int64),
        np.array(strides, np.int64),
    )


def normalised(layout: Layout, weights: Floats) -> Floats:
    """Return tables whose rows sum to one; rows of zeros become uniform."""
    rows = row_of_entries(layout)
    sums = np.bincount(rows, weights)
    sizes = np.bincount(rows)
    total = sums[rows]
    return np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), 1.0 / sizes[rows])


def row_of_entries(layout: Layout) -> Ints:
    """Return the number of the row of each entry, counted over all tables."""
    widths = np.repeat(layout.card, np.diff(layout.start) // layout.card)
    found: Ints = np.repeat(np.arange(widths.size), widths)
    return found


def count_families(layout: Layout, codes: Ints16, weights: Floats) -> Floats:
    """Return how often each entry of each table occurs in cases (sites, rows), in which a family is complete.

    Examples
    --------
    >>> layout = make_layout(["a", "b"], {"a": (), "b": ("a",)}, np.array([2, 2]))
    >>> count_families(layout, np.array([[0, 1, 1], [0, 1, -1]], np.int16), np.ones(3)).tolist()
    [1.0, 2.0, 1.0, 0.0, 0.0, 1.0]
    """
    counts, entry = np.zeros(int(layout.start[-1])), np.zeros(codes.shape[1], np.int32)
    if codes.size and codes.min() >= 0:
        ones = bool((weights == 1.0).all())
        lanes = np.zeros((4, int(np.diff(layout.start).max(initial=0)) if ones else 0), np.int32)
        _count_complete(layout, codes, weights, entry, lanes, counts)
    else:
        _count(layout, codes, weights, entry, counts)
    return counts


@compiled_loop
def _count_complete(
    layout: Layout, codes: Ints16, weights: Floats, entry: Ints32, lanes: Ints32, counts: Floats
) -> None:
    """Count complete cases; with ``lanes``, in four tables in turn, so that no addition waits for the one before."""
    for i in range(layout.card.size):
        table, last = counts[layout.start[i] : layout.start[i + 1]], layout.begin[i + 1] - 1
        own = codes[layout.site[last]]
        for row in range(entry.size):
            entry[row] = own[row]
        for k in range(layout.begin[i], last):
            column, stride = codes[layout.site[k]], np.int32(layout.stride[k])
            for row in range(entry.size):
                entry[row] += stride * column[row]
        if lanes.size == 0:
            for row in range(entry.size):
                table[entry[row]] += weights[row]
            continue
        whole = entry.size - entry.size % 4
        for row in range(0, whole, 4):
            lanes[0, entry[row]] += 1
            lanes[1, entry[row + 1]] += 1
            lanes[2, entry[row + 2]] += 1
            lanes[3, entry[row + 3]] += 1
        for row in range(whole, entry.size):
            lanes[0, entry[row]] += 1
        for k in range(table.size):
            table[k] = lanes[0, k] + lanes[1, k] + lanes[2, k] + lanes[3, k]
            for lane in range(4):
                lanes[lane, k] = 0


@compiled_loop
def _count(layout: Layout, codes: Ints16, weights: Floats, entry: Ints32, counts: Floats) -> None:
    for i in range(layout.card.size):
        entry[:] = layout.start[i]
        for k in range(layout.begin[i], layout.begin[i + 1]):
            column, stride = codes[layout.site[k]], layout.stride[k]
            for row in range(entry.size):
                entry[row] = entry[row] + stride * column[row] if column[row] >= 0 and entry[row] >= 0 else -1
        for row in range(entry.size):
            if entry[row] >= 0:
                counts[entry[row]] += weights[row]
