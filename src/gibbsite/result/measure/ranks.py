"""Ranks and order statistics of one cell, in compiled code.

The order that sorts a cell comes from NumPy, whose sort is several times faster than a compiled
loop of ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import inlined

Array = NDArray[np.float64]
Order = NDArray[np.intp]


@inlined
def order_halves(order: Order, positions: Order, out: Order) -> None:
    """Turn the order of all draws of a cell into the order of the draws in its halves."""
    count = 0
    for k in range(order.size):
        position = positions[order[k]]
        if position >= 0:
            out[count] = position
            count += 1


@inlined
def score_ranks(values: Array, order: Order, scores: Array, out: Array) -> None:
    """Replace values by the normal scores of their ranks; ties share their average rank.

    ``order`` sorts ``values``; ``scores`` is the table of :func:`normal_scores`.
    """
    start = 0
    while start < values.size:
        value = values[order[start]]
        stop = start + 1
        while stop < values.size and values[order[stop]] == value:
            stop += 1
        # Ranks start + 1 ... stop: their average, doubled, is start + 1 + stop.
        score = scores[start + stop + 1]
        for k in range(start, stop):
            out[order[k]] = score
        start = stop


@inlined
def fold_values(values: Array, order: Order, out: Array, out_order: Order) -> None:
    """Write the distances of values from their median, and the order that sorts these.

    Distances grow to both sides of the median, so their order is a merge of the two sides.
    """
    size = values.size
    above = size // 2
    below = above - 1
    median = values[order[above]]
    if size % 2 == 0:
        median = (values[order[below]] + median) / 2.0
    for k in range(size):
        out[k] = abs(values[k] - median)
    for k in range(size):
        if above == size or (below >= 0 and out[order[below]] <= out[order[above]]):
            out_order[k] = order[below]
            below -= 1
        else:
            out_order[k] = order[above]
            above += 1


@inlined
def interpolate_quantile(values: Array, order: Order, probability: float) -> float:
    """Return a quantile, linear between order statistics (type 7 of Hyndman and Fan 1996).

    The position is computed in the form of ``scipy.stats.mstats.mquantiles``: where it falls on an
    order statistic, the rounding decides on which side of the quantile that draw lies.
    """
    size = values.size
    position = size * probability + (1.0 - probability)
    rank = int(min(max(position, 1.0), size - 1.0))
    weight = min(max(position - rank, 0.0), 1.0)
    return float((1.0 - weight) * values[order[rank - 1]] + weight * values[order[rank]])
