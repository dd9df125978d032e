"""Diagnostics of ranks and order statistics, of many cells at a time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.results.measure.diagnostics import effective_sizes, ess_mean, split_chains, variance_ratios
from gibbsite.results.measure.normal_scores import normal_scores

_scores_of = lru_cache(maxsize=4)(normal_scores)  # blocks of a trace are of the same size


def ess_bulk(values: Floats) -> Floats:
    """Return the effective sample size of the mean of the rank-normalised values."""
    return effective_sizes(_rank_normalised(split_chains(values)))


def ess_tail(values: Floats) -> Floats:
    """Return the smaller effective size of the events below the 5 % and the 95 % quantile."""
    ordered = np.sort(values.reshape(len(values), -1), axis=1)
    found = np.full(len(values), np.inf)
    for probability in (0.05, 0.95):
        quantile = interpolate_quantiles(ordered, probability)
        found = np.minimum(found, ess_mean(np.asarray(values <= quantile[:, None, None], np.float64)))
    return found


def rhat_rank(values: Floats) -> Floats:
    """Return the larger R-hat of the ranks and of the ranks of the distances from the median."""
    halves = split_chains(values)
    straight = variance_ratios(_rank_normalised(halves))
    folded = variance_ratios(_rank_normalised(fold_values(halves)))
    # All distances of two equally frequent states agree: they say nothing.
    ratio = np.fmax(straight, folded)
    return np.where(np.isnan(ratio), 1.0, ratio)


def _rank_normalised(halves: Floats) -> Floats:
    """Replace the values of each cell by the normal scores of their ranks."""
    return score_ranks(halves, _scores_of(halves[0].size))


def score_ranks(values: Floats, scores: Floats) -> Floats:
    """Replace the values of each cell by the normal scores of their ranks; ties share their average rank.

    Parameters
    ----------
    values : float array (cells, ...)
        All axes but the first belong to one cell.
    scores : float array
        The table of :func:`gibbsite.results.measure.normal_scores.normal_scores`.

    Examples
    --------
    >>> score_ranks(np.array([[5.0, 7.0, 5.0]]), np.arange(7.0)).tolist()
    [[3.0, 6.0, 3.0]]
    """
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    place = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
    first = np.ones(flat.shape, np.bool_)  # of each run of equal values
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    last = np.ones(flat.shape, np.bool_)
    last[:, :-1] = first[:, 1:]
    start = np.maximum.accumulate(np.where(first, place, 0), axis=1)
    end = np.minimum.accumulate(np.where(last, place, flat.shape[1])[:, ::-1], axis=1)[:, ::-1]
    found = np.empty(flat.shape)
    # Ranks start + 1 ... end + 1: their average, doubled, is start + end + 2.
    np.put_along_axis(found, order, scores[start + end + 2], axis=1)
    return found.reshape(values.shape)


def fold_values(values: Floats) -> Floats:
    """Return the distances of the values of each cell from their median."""
    flat = values.reshape(len(values), -1)
    distances: Floats = np.abs(flat - np.median(flat, axis=1, keepdims=True))
    return distances.reshape(values.shape)


def interpolate_quantiles(ordered: Floats, probability: float) -> Floats:
    """Return a quantile of sorted cells (cells, values), linear between order statistics.

    Type 7 of Hyndman and Fan (1996). The position is computed in the form of
    ``scipy.stats.mstats.mquantiles``: where it falls on an order statistic, the rounding decides on which
    side of the quantile that draw lies.

    Examples
    --------
    >>> interpolate_quantiles(np.array([[1.0, 2.0, 3.0]]), 0.25).tolist()
    [1.5]
    """
    size = ordered.shape[1]
    position = size * probability + (1.0 - probability)
    rank = int(min(max(position, 1.0), size - 1.0))
    weight = min(max(position - rank, 0.0), 1.0)
    found: Floats = (1.0 - weight) * ordered[:, rank - 1] + weight * ordered[:, rank]
    return found
