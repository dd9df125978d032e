"""One diagnostic for each cell of a block, all cells at a time.

All functions share one signature: ``values`` (cells, chains, draws), of at least 4 draws, each cell of which
moves (:func:`measure` takes care of the others); ``scores``, the table of :func:`normal_scores`, read by
those that rank.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gibbsite._common.arrays import Bools, Floats
from gibbsite.results.measure.halves import effective_sizes, split_chains, variance_ratios
from gibbsite.results.measure.ranks import fold_values, interpolate_quantiles, score_ranks

Measure = Callable[[Floats, Floats], Floats]

_FEWEST = 4  # draws, below which nothing can be told


def measure(method: Measure, still: Callable[[Floats], Floats], values: Floats, scores: Floats) -> Floats:
    """Return a diagnostic of each cell: ``method`` of those that move, ``still`` of the others.

    Examples
    --------
    >>> values = np.array([[[1.0, 2.0, 1.0, 2.0]], [[3.0, 3.0, 3.0, 3.0]]])
    >>> measure(mcse_mean, error_unmoved, values, np.empty(0)).tolist()[1]
    0.0
    """
    moves = (values != values[:, :, :1]).any(axis=(1, 2))
    if values.shape[2] < _FEWEST or not moves.any():
        return still(values)
    if moves.all():
        return method(values, scores)
    out = np.empty(len(values))
    out[moves] = method(values[moves], scores)
    out[~moves] = still(values[~moves])
    return out


def _is_constant(values: Floats) -> Bools:
    """Tell which cells have one value, and draws enough to say so."""
    same = (values == values[:, :1, :1]).all(axis=(1, 2))
    return np.asarray(same & (values.shape[2] >= _FEWEST), np.bool_)


def size_unmoved(values: Floats) -> Floats:
    """Return the effective size of cells that do not move, or have too few draws."""
    _, chains, draws = values.shape
    return np.where(_is_constant(values), float(chains * draws), float(chains))


def ratio_unmoved(values: Floats) -> Floats:
    """Return R-hat of cells that do not move, or have too few draws."""
    return np.where(_is_constant(values), 1.0, np.inf)


def error_unmoved(values: Floats) -> Floats:
    """Estimate the error of the mean from the chain means alone, each taken as one draw."""
    chains = values.shape[1]
    if chains == 1:
        error = np.full(len(values), np.inf)
    else:
        # relative to the first value, so that equal chains have equal means
        means = (values - values[:, :1, :1]).mean(axis=2)
        error = means.std(axis=1, ddof=1) / np.sqrt(chains)
    return np.where(_is_constant(values), 0.0, error)


def _sizes(values: Floats) -> Floats:
    return effective_sizes(split_chains(values).astype(np.float64, copy=False))


def ess_mean(values: Floats, scores: Floats) -> Floats:
    """Return the effective sample size of the mean."""
    return _sizes(values)


def ess_bulk(values: Floats, scores: Floats) -> Floats:
    """Return the effective sample size of the mean of the rank-normalised values."""
    return effective_sizes(score_ranks(split_chains(values).astype(np.float64, copy=False), scores))


def ess_tail(values: Floats, scores: Floats) -> Floats:
    """Return the smaller effective size of the events below the 5 % and the 95 % quantile."""
    ordered = np.sort(values.reshape(len(values), -1), axis=1)
    found = np.full(len(values), np.inf)
    for probability in (0.05, 0.95):
        quantile = interpolate_quantiles(ordered, probability)
        found = np.minimum(found, _sizes(np.asarray(values <= quantile[:, None, None], np.float64)))
    return found


def rhat_split(values: Floats, scores: Floats) -> Floats:
    """Return R-hat of the split chains."""
    ratio = variance_ratios(split_chains(values).astype(np.float64, copy=False))
    # Only the middle draw, which belongs to no half, differs from the others.
    return np.where(np.isnan(ratio), 1.0, ratio)


def rhat_rank(values: Floats, scores: Floats) -> Floats:
    """Return the larger R-hat of the ranks and of the ranks of the distances from the median."""
    halves = split_chains(values).astype(np.float64, copy=False)
    straight = variance_ratios(score_ranks(halves, scores))
    folded = variance_ratios(score_ranks(fold_values(halves), scores))
    # All distances of two equally frequent states agree: they say nothing.
    ratio = np.fmax(straight, folded)
    return np.where(np.isnan(ratio), 1.0, ratio)


def mcse_mean(values: Floats, scores: Floats) -> Floats:
    """Return the standard error of the mean."""
    variance: Floats = values.reshape(len(values), -1).var(axis=1, ddof=1)
    return np.asarray(np.sqrt(variance / _sizes(values)))


def mcse_sd(values: Floats, scores: Floats) -> Floats:
    """Return the standard error of the standard deviation, from the error of the variance."""
    squares = np.square(values - values.mean(axis=(1, 2), keepdims=True))
    flat = squares.reshape(len(squares), -1)
    # If v estimates the variance, sqrt(v) has the error of v divided by 2 sqrt(v).
    return np.asarray(np.sqrt(flat.var(axis=1) / _sizes(squares) / flat.mean(axis=1) / 4.0))
