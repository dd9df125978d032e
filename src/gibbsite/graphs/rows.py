"""Compressed rows: where they begin, and how a list of pairs becomes rows of neighbours, in linear time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Integers, Ints, Ints32, Words32
from gibbsite._numba.jit import compiled, interpreted

_STEPS = 2.0  # of plain Python, for one entry


class Rows(NamedTuple):
    """Neighbours of every site.

    Row i is ``start[i]`` to ``start[i + 1]``. Entry k stems from pair ``source[k]``; ``side[k]`` is
    the end of the pair at which the site of the row stands (0 first, 1 second).
    """

    start: Words32
    neighbour: Words32
    source: Words32
    side: Bytes


def row_starts(counts: Any, dtype: Any = np.int64) -> Array:
    """Return where the rows of a compressed list begin, given how many entries each has, and where it ends."""
    counts = np.asarray(counts)
    start = np.zeros(counts.size + 1, dtype)
    np.cumsum(counts, out=start[1:])
    return start


def row_lengths(start: Array) -> Ints:
    """Return how many entries the rows of a compressed list have; starts may be unsigned."""
    lengths: Ints = np.diff(start.astype(np.int64)).astype(np.int64, copy=False)
    return lengths


def build_rows(pairs: Integers, n_sites: int) -> Rows:
    """Sort pairs into rows; every pair appears in the rows of both its sites."""
    start = np.zeros(n_sites + 1, np.uint32)
    slots = 2 * len(pairs)
    neighbour, source = np.zeros(slots, np.uint32), np.zeros(slots, np.uint32)
    side = np.zeros(slots, np.uint8)
    with interpreted(_STEPS * slots):
        _fill(np.ascontiguousarray(pairs, np.int32), start, neighbour, source, side)
    return Rows(start, neighbour, source, side)


@compiled
def _fill(pairs: Ints32, start: Words32, neighbour: Words32, source: Words32, side: Bytes) -> None:
    n = start.size - 1
    for e in range(pairs.shape[0]):
        start[pairs[e, 0] + 1] += 1
        start[pairs[e, 1] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    free = start[:n].copy()
    for e in range(pairs.shape[0]):
        for end in range(2):
            i = pairs[e, end]
            k = free[i]
            free[i] = k + 1
            neighbour[k] = pairs[e, 1 - end]
            source[k] = e
            side[k] = end
