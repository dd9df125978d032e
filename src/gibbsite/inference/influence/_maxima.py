"""A tree of maxima: the largest of many numbers, kept up to date as single ones change.

Leaf j of n is ``top[size + j]`` with size the next power of two, node k the larger of nodes 2 k and 2 k + 1, the root
``top[1]``. A change moves up only as far as it changes a maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, inlined


def make_tree(n: int) -> Floats:
    """Allocate a tree of n leaves, all minus infinity."""
    return np.full(2 << max(n - 1, 0).bit_length(), -np.inf)


@inlined
def set_leaf(top: Floats, j: Integer, now: Any) -> None:
    """Change one number."""
    node = (np.uintp(top.size) >> np.uintp(1)) + np.uintp(j)
    if top[node] == now:
        return
    top[node] = now
    while node > np.uintp(1):
        other = top[node ^ np.uintp(1)]
        if other > now:
            now = other
        node >>= np.uintp(1)
        if top[node] == now:
            return
        top[node] = now


@inlined
def first_largest(top: Floats) -> Integer:
    """Return the first leaf with the largest number."""
    size = np.uintp(top.size) >> np.uintp(1)
    node = np.uintp(1)
    while node < size:
        node <<= np.uintp(1)
        if top[node] < top[node + np.uintp(1)]:
            node += np.uintp(1)
    return node - size


@inlined
def grow_tree(top: Floats) -> None:
    """Compute all maxima from the leaves."""
    for node in range(top.size // 2 - 1, 0, -1):
        top[node] = max(top[2 * node], top[2 * node + 1])
