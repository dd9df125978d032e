"""Alias tables (Walker 1977, Vose 1991): draw from any discrete law in constant time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import compiled


def build_alias(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Build the table: draw a column uniformly, stay with probability ``stay``, else take ``other``.

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


@compiled
def _fill(
    left: NDArray[np.float64],
    weights: NDArray[np.float64],
    stay: NDArray[np.float64],
    other: NDArray[np.int32],
) -> None:
    n = left.size
    small, large = np.empty(n, np.int32), np.empty(n, np.int32)
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
    # what rounding left over is full, except that a column of weight zero must never be drawn
    for k in range(n_small):
        i = small[k]
        if weights[i] == 0.0:
            stay[i] = 0.0
            other[i] = heaviest
