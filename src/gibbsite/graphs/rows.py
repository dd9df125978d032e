"""Compressed rows: their starts, sorting of pairs into rows in linear time, and columns of numbers.

A column has a number for every entry of compressed rows. It is an array, or bytes if there are few distinct numbers, or
one number for all entries. A sweep of a model that exceeds the caches takes as long as reading its rows, so storing a
byte or nothing for each entry instead of a float saves time. Compiled code reads all three kinds by :func:`entry_at`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Array, Bytes, Floats, Integers, Ints, Ints32, Words32
from gibbsite._numba.intrinsic import fetch
from gibbsite._numba.jit import Integer, compiled, compiled_loop, generic, implement, interpreted

_STEPS = 2.0  # estimated steps of plain Python for an entry


class Rows(NamedTuple):
    """Neighbours of every site.

    Row i is ``start[i]`` to ``start[i + 1]``. Entry k comes from pair ``source[k]``; ``side[k]`` is the position of the
    row's site in the pair (0 first, 1 second).
    """

    start: Words32
    neighbour: Words32
    source: Words32
    side: Bytes


def row_starts(counts: Any, dtype: Any = np.int64) -> Array:
    """Return the starts of compressed rows with these numbers of entries, and the end of the last row."""
    counts = np.asarray(counts)
    start = np.zeros(counts.size + 1, dtype)
    np.cumsum(counts, out=start[1:])
    return start


def row_lengths(start: Array) -> Ints:
    """Return the numbers of entries of compressed rows; ``start`` may be unsigned."""
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
    """Fill the rows: the neighbours of each site, with number and end of the pairs that connect them."""
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


#: Numbers from which loops of compiled code are worth loading where a model gets new weights again and again.
MANY = 1 << 13


def gather(values: Array, at: Integers) -> Array:
    """Return ``values[at]`` for unsigned positions, by a compiled loop, which is faster where there are many.

    Examples
    --------
    >>> gather(np.array([0.5, 1.5, 2.5]), np.array([2, 0], np.uint32)).tolist()
    [2.5, 0.5]
    """
    out = np.empty(at.size, values.dtype)
    _gather(values, at, out)
    return out


@compiled_loop
def _gather(values: Array, at: Integers, out: Array) -> None:
    for k in range(out.size):
        out[k] = values[np.uintp(at[k])]


def sum_ends(pairs: Ints32, n_sites: int, first: Floats, second: Floats) -> Floats:
    """Return the sums (2, sites) of a number for the first and one for the second site of each pair.

    The sums equal those of ``np.bincount`` for each column of the pairs bit for bit.

    Examples
    --------
    >>> numbers = np.array([1.0, 10.0])
    >>> sum_ends(np.array([[0, 1], [0, 2]], np.int32), 3, numbers, numbers).tolist()
    [[11.0, 0.0, 0.0], [0.0, 1.0, 10.0]]
    """
    sums = np.zeros((2, n_sites))
    if len(pairs):
        _sum_ends(np.ascontiguousarray(pairs), np.ascontiguousarray(first), np.ascontiguousarray(second), sums)
    return sums


@compiled_loop
def _sum_ends(pairs: Ints32, first: Floats, second: Floats, sums: Floats) -> None:
    last, total = np.uintp(pairs[0, 0]), 0.0  # pairs are often sorted: the sum of one site stays in a register
    for e in range(pairs.shape[0]):
        i = np.uintp(pairs[e, 0])
        if i != last:
            sums[0, last] = total
            last, total = i, sums[0, i]
        total += first[e]
        sums[1, np.uintp(pairs[e, 1])] += second[e]
    sums[0, last] = total


#: Number of values that a byte can distinguish.
MOST_VALUES = 256


class Coded(NamedTuple):
    """A column of few distinct numbers; NumPy sees it as the array ``value[which]``.

    ``value`` has an entry for every byte, so that no byte reads beyond it.
    """

    which: Bytes
    value: NDArray[np.floating[Any]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.value[self.which].astype(dtype or self.value.dtype, copy=False)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.which.size


def code(which: Bytes, value: Array) -> Coded:
    """Return the column of numbers given by bytes and by the value of each byte."""
    padded = np.zeros(MOST_VALUES, value.dtype)
    padded[: value.size] = value
    return Coded(which, padded)


class Repeated(NamedTuple):
    """A column of one repeated number; NumPy sees it as an array of that number."""

    value: np.floating[Any]
    size: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.full(self.size, self.value, dtype)


@generic
def entry_at(column: Any, k: Integer) -> Any:
    """Return the number of entry k."""
    raise NotImplementedError


@generic
def fetch_entry(column: Any, k: Integer) -> None:
    """Prefetch the number of entry k into the processor's cache; the entry need not exist."""
    raise NotImplementedError


@implement(entry_at)
def _entry_of_array(column: Array, k: Integer) -> Any:
    return column[k]


@implement(entry_at, Coded)
def _entry_of_coded(column: Coded, k: Integer) -> Any:
    return column.value[np.uintp(column.which[k])]


@implement(entry_at, Repeated)
def _entry_of_repeated(column: Repeated, k: Integer) -> Any:
    return column.value


@implement(fetch_entry)
def _fetch_array(column: Array, k: Integer) -> None:
    fetch(column, k)


@implement(fetch_entry, Coded)
def _fetch_coded(column: Coded, k: Integer) -> None:
    fetch(column.which, k)


@implement(fetch_entry, Repeated)
def _fetch_nothing(column: Repeated, k: Integer) -> None:
    pass
