"""Rows of neighbours that are mapped from files: read once, before anything else uses them."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats, Floats32, Words32, Words64
from gibbsite._numba.jit import Integer, compiled, inlined

#: What may be wrong with an entry, by number.
FAULTS = (
    "",
    "a neighbour that is no site",
    "a site that is its own neighbour",
    "a coupling that is no finite number",
    "a coupling that is not listed",
)
_EXPONENT = np.uint32(0x7F800000)  # of a 32-bit float; all of its bits are set where it is not finite


@inlined
def _mix(site: Integer) -> Integer:
    """Return a number that looks random and depends on a site alone."""
    z = (np.uint64(site) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return z ^ (z >> np.uint64(32))


@compiled
def check_rows(
    start: Array, neighbour: Words32, mark: Array, value: Floats32, listed: int, balance: Words64, couplings: Floats
) -> int:
    """Check all rows; return what is wrong, one of :data:`FAULTS`.

    ``mark`` says which coupling an entry has: its bits, or its number among ``listed`` ones; it is empty where all
    couplings are equal. To ``balance`` is added, for each entry, its mark times the difference of two numbers: that of
    the row and that of the neighbour. Every pair stands in two rows with the same coupling, so the sum over all rows,
    modulo 2^64, is zero; where a pair is in one row alone, or has two couplings, it is not, but for a chance of about
    2^-64. To ``couplings`` is added the sum of all couplings, whose values are ``value``, where they are not all equal.
    """
    sites, marked, floats = start.size - 1, mark.size > 0, listed == 0
    total, together = np.uint64(0), 0.0
    for i in range(sites):
        own = _mix(i)
        for k in range(np.int64(start[i]), np.int64(start[i + 1])):
            j = np.int64(neighbour[k])
            if j >= sites:
                return 1
            if j == i:
                return 2
            weight = np.uint64(1)
            if marked:
                bits = np.uint32(mark[k])
                if floats and (bits & _EXPONENT) == _EXPONENT:
                    return 3
                if not floats and bits >= listed:
                    return 4
                weight = np.uint64(bits) + np.uint64(1)
                together += np.float64(value[k] if floats else value[bits])
            total += (own - _mix(j)) * weight
    balance[0] += total
    couplings[0] += together
    return 0
