"""Split chains: their moments, effective size and ratio of variances, for many cells at a time.

Every chain is cut into its first and its last ``draws // 2`` draws (the middle draw of an odd number is left
out), so that a chain which drifts disagrees with itself. The halves are the last axis of an array (cells,
half, 2 * chains), draw by draw: the product of a cell with itself shifted by ``lag`` draws is then one run
over contiguous memory for all halves together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Floats

# A pair of autocorrelations below this size is zero up to rounding. Traces of few states cancel
# exactly quite often, and the result should not hang on the last bit of a sum.
_CANCELLED = 1e-12


def split_chains(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the halves (cells, half, 2 * chains) of the chains of cells (cells, chains, draws).

    Examples
    --------
    >>> split_chains(np.arange(5).reshape(1, 1, 5)).tolist()
    [[[0, 3], [1, 4]]]
    """
    half = values.shape[2] // 2
    parts = (values[:, :, :half], values[:, :, values.shape[2] - half :])
    return np.concatenate([part.transpose(0, 2, 1) for part in parts], axis=2)


def center_halves(halves: Floats) -> tuple[Floats, Floats]:
    """Subtract its mean from each half, in place; return the variances (within, between) halves of each cell.

    ``within`` is the average over halves of the mean square (lag 0 of the autocovariance), ``between`` the
    unbiased variance of their means. Sums start at the first value, so halves that do not move have exactly
    zero variance and exactly equal means if they agree.
    """
    _, half, columns = halves.shape
    first = halves[:, :1].copy()
    halves -= first
    means = halves.sum(axis=1, keepdims=True) / half
    halves -= means
    means += first
    within = _squares(halves) / (half * columns)
    means -= means[:, :, :1].copy()
    means -= means.mean(axis=2, keepdims=True)
    return within, _squares(means) / (columns - 1)


def _squares(values: Floats) -> Floats:
    return _multiply_lagged(values.reshape(len(values), -1), 0)


def _multiply_lagged(flat: Floats, offset: int) -> Floats:
    """Sum ``flat[c, k] * flat[c, k + offset]`` over k."""
    found: Floats = np.einsum("ij,ij->i", flat[:, : flat.shape[1] - offset], flat[:, offset:])
    return found


def effective_sizes(halves: Floats) -> Floats:
    """Return the effective sample size of the mean of each cell; ``halves`` is centred on the way.

    Autocorrelations are combined over the halves (Vehtari et al. 2021, eq. 10) and summed in pairs of lags
    (even, odd) while the pairs stay positive, each pair cut down to the one before: Geyer's initial monotone
    sequence. Lags are computed one pair at a time, for the cells whose sum goes that far.
    """
    cells, half, columns = halves.shape
    size = half * columns
    within, between = center_halves(halves)
    total = within + between
    moved = total > 0.0
    scale = np.where(moved, total, 1.0)
    unbiased = within * half / (half - 1.0)
    ahead, rows = np.arange(cells), halves.reshape(cells, size)

    def correlate(lag: int) -> Floats:
        """Return the autocorrelation of the cells ``ahead``."""
        found: Floats = 1.0 - (unbiased[ahead] - _multiply_lagged(rows, lag * columns) / size) / scale[ahead]
        return found

    even = np.ones(cells)
    pair = even + correlate(1)
    pair[~moved] = 0.0
    cap, pairs = np.full(cells, np.inf), np.zeros(cells)
    for lag in range(2, half - 2, 2):
        going = pair[ahead] > _CANCELLED
        if 2 * np.count_nonzero(going) <= ahead.size:  # a copy pays where it leaves out half of the cells
            ahead, rows = ahead[going], rows[going]
            going = np.ones(ahead.size, np.bool_)
        if not ahead.size:
            break
        here = ahead[going]
        cap[here] = np.minimum(cap[here], pair[here])
        pairs[here] += cap[here]
        even[here], odd = correlate(lag)[going], correlate(lag + 1)[going]
        pair[here] = even[here] + odd
    # The pair that ended the sum still gives its even lag, once, unless that makes the sum worse.
    last = np.where((even > 0.0) | (pair >= -_CANCELLED), even, 0.0)
    # Antithetic chains may beat independent draws, but not without limit.
    time = np.maximum(2.0 * pairs + last - 1.0, 1.0 / np.log10(size))
    return np.where(moved, size / time, float(size))


def variance_ratios(halves: Floats) -> Floats:
    """Return R-hat of each cell; NaN where all values agree. ``halves`` is centred on the way."""
    half = halves.shape[1]
    within, between = center_halves(halves)
    unbiased = within * half / (half - 1.0)
    # 0 / 0 is NaN, and b / 0 infinite, as they should be
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((half * between / unbiased + half - 1.0) / half))
