"""Alias tables (Walker 1977, Vose 1991): draws from any discrete distribution in constant time."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, called, compiled, inlined
from gibbsite._numba.random.generators import Words, bits

_U = np.uint64
_HALF, _LOW = _U(32), _U(0xFFFFFFFF)
_LEAST_SHARE = 1 << 18  # the least number of columns for which a thread is worthwhile


def build_alias(weights: Floats) -> tuple[Floats, Ints32]:
    """Build a table: a draw picks a column uniformly and keeps it with probability ``stay``, else it takes ``other``.

    Examples
    --------
    >>> stay, other = build_alias(np.array([1.0, 3.0]))
    >>> stay.tolist(), other.tolist()
    ([0.5, 1.0], [1, 1])
    """
    scaled = np.asarray(weights, np.float64) * (len(weights) / float(np.sum(weights)))
    stay, other = np.ones(len(scaled)), np.arange(len(scaled), dtype=np.int32)
    _fill(scaled, np.asarray(weights, np.float64), stay, other)
    return stay, other


def build_alias_rows(start: Array, weights: Floats, step: int = 1) -> Words64:
    """Build one table for each compressed row of weights, with eight bytes per entry, on all cores.

    Entry k of a row holds the probability to stay, in units of 2^-32, in its upper half and the column taken otherwise
    in its lower half, so that a draw reads one word; see :func:`draw_column`. ``weights[step * k]`` is the weight of
    entry k. Rows whose weights are all zero must not be drawn from.

    Examples
    --------
    >>> table = build_alias_rows(np.array([0, 2, 3]), np.array([1.0, 3.0, 5.0]))
    >>> [(int(t) >> 32) / 2**32 for t in table], (table & np.uint64(7)).tolist()
    ([0.5, 0.9999999997671694, 0.9999999997671694], [1, 1, 0])
    """
    n = start.size - 1
    first = start.astype(np.int64)
    table = np.zeros(int(first[-1]), np.uint64)
    members = max(1, min(os.cpu_count() or 1, table.size // _LEAST_SHARE))
    # each thread gets the same number of columns, not of rows
    cuts = np.searchsorted(first, np.arange(1, members) * (table.size / members)).tolist()
    edges = [0, *cuts, n]
    with ThreadPoolExecutor(members) as pool:
        list(pool.map(lambda k: _fill_rows(first, weights, step, table, edges[k], edges[k + 1]), range(members)))
    table.setflags(write=False)
    return table


@inlined
def draw_column(table: Words64, first: Integer, many: Integer, rng: Words) -> tuple[Words, Integer]:
    """Draw a column of the row that starts at ``first``; ``many`` is its length, below 2^32.

    The upper half of a random word chooses a column (Lemire, 2019, with his rejection), the lower half whether to stay.
    """
    m = _U(many)
    rng, word = bits(rng)
    product = (word >> _HALF) * m
    if (product & _LOW) < m:
        threshold = (_U(0x100000000) - m) % m
        while (product & _LOW) < threshold:
            rng, word = bits(rng)
            product = (word >> _HALF) * m
    column = product >> _HALF
    entry = table[np.uintp(first) + np.uintp(column)]
    # without a branch, which could not be predicted and would stall until the entry arrives from memory
    stays = _U((word & _LOW) < (entry >> _HALF))
    return rng, np.uintp(column * stays + (entry & _LOW) * (_U(1) - stays))


@compiled
def _fill(left: Floats, weights: Floats, stay: Floats, other: Ints32) -> None:
    n = left.size
    _share(left, weights, stay, other, np.empty(n, np.int32), np.empty(n, np.int32), n)


@compiled
def _fill_rows(start: Ints, weights: Floats, step: int, table: Words64, begin: int, end: int) -> None:
    widest = 0
    for i in range(begin, end):
        widest = max(widest, start[i + 1] - start[i])
    left, own, stay = np.empty(widest), np.empty(widest), np.empty(widest)
    other = np.empty(widest, np.int32)
    small, large = np.empty(widest, np.int32), np.empty(widest, np.int32)
    for i in range(begin, end):
        n = start[i + 1] - start[i]
        total = 0.0
        for k in range(n):
            own[k] = weights[step * (start[i] + k)]
            total += own[k]
        for k in range(n):
            left[k] = own[k] * (n / total) if total > 0.0 else 1.0
            stay[k] = 1.0
            other[k] = k
        _share(left, own, stay, other, small, large, n)
        for k in range(n):
            kept = _U(min(stay[k] * 4294967296.0, 4294967295.0))
            table[start[i] + k] = (kept << _U(32)) | _U(other[k])


@called
def _share(
    left: Floats, weights: Floats, stay: Floats, other: Ints32, small: Ints32, large: Ints32, n: Integer
) -> None:
    """Fill up columns below average with the excess of columns above average."""
    n_small, n_large = 0, 0
    heaviest = 0
    for i in range(n):
        if weights[i] > weights[heaviest]:
            heaviest = i
        if left[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        i, j = small[n_small], large[n_large - 1]
        stay[i] = left[i]
        other[i] = j
        left[j] -= 1.0 - left[i]
        if left[j] < 1.0:
            n_large -= 1
            small[n_small] = j
            n_small += 1
    # columns left over by rounding are full, except that a column of weight zero must never be drawn
    for k in range(n_small):
        i = small[k]
        if weights[i] == 0.0:
            stay[i] = 0.0
            other[i] = heaviest
