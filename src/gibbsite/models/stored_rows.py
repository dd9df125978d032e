"""Checks of the rows of neighbours of a stored model, in compiled code."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats, Floats32, Words32, Words64
from gibbsite._numba.jit import Integer, compiled, inlined

#: Faults of an entry, by number.
FAULTS = (
    "",
    "a neighbour that is not a site",
    "a site that is its own neighbour",
    "a coupling that is not finite",
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
    """Check all rows; return the number of the first fault in :data:`FAULTS`.

    ``mark`` has the bits of the coupling of each entry, or its number among ``listed`` ones; it is empty if all
    couplings are equal. Each entry adds to ``balance`` its mark times the difference of two random-looking numbers, of
    its row and of its neighbour. Every pair is in two rows with the same coupling, so the sum, modulo 2^64, is zero; if
    a pair is in one row only, or has two couplings, it is zero with a probability of about 2^-64. The sum of all
    couplings, whose values are ``value``, is added to ``couplings`` if they are not all equal.
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
