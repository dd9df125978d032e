"""Split chains in compiled code: their moments, effective size and ratio of variances.

Every chain is cut into its first and its last ``draws // 2`` draws (the middle draw of an odd
number is left out), so that a chain which drifts disagrees with itself. The halves are the columns
of one array, draw by draw: a product of the array with itself shifted by ``lag`` rows is then a
single run over contiguous memory for all halves together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import inlined

Array = NDArray[np.float64]

# Kinds of cells, see classify_cell.
MOVING, CONSTANT, STUCK, SHORT = 0, 1, 2, 3

# A pair of autocorrelations below this size is zero up to rounding. Traces of few states cancel
# exactly quite often, and the result should not hang on the last bit of a sum.
_CANCELLED = 1e-12


@inlined
def classify_cell(trace: Array) -> int:
    """Tell whether a cell (chains, draws) can be judged, and if not, why."""
    chains, draws = trace.shape
    if draws < 4:
        return SHORT
    for chain in range(chains):
        for draw in range(1, draws):
            if trace[chain, draw] != trace[chain, 0]:
                return MOVING
    for chain in range(1, chains):
        if trace[chain, 0] != trace[0, 0]:
            return STUCK
    return CONSTANT


@inlined
def split_chains(trace: Array, halves: Array) -> None:
    """Copy the halves of the chains of a cell to the columns of ``halves``."""
    chains, draws = trace.shape
    half = halves.shape[0]
    for chain in range(chains):
        for draw in range(half):
            halves[draw, chain] = trace[chain, draw]
            halves[draw, chains + chain] = trace[chain, draws - half + draw]


@inlined
def locate_draws(chains: int, draws: int, positions: NDArray[np.intp]) -> None:
    """Write for each draw of a cell its flat position among the halves, -1 for a middle draw."""
    half = draws // 2
    positions[:] = -1
    for chain in range(chains):
        for draw in range(half):
            first = chain * draws + draw
            last = first + draws - half
            positions[first] = draw * 2 * chains + chain
            positions[last] = draw * 2 * chains + chains + chain


@inlined
def center_halves(halves: Array, means: Array) -> tuple[float, float]:
    """Subtract its mean from each column; return the variances (within, between) columns.

    ``within`` is the average over columns of the mean square (lag 0 of the autocovariance),
    ``between`` the unbiased variance of the column means. Sums start at the first value, so columns
    that do not move have exactly zero variance and exactly equal means if they agree.
    """
    half, columns = halves.shape
    means[:] = 0.0
    for draw in range(1, half):
        for column in range(columns):
            means[column] += halves[draw, column] - halves[0, column]
    shift = 0.0
    for column in range(columns):
        means[column] = halves[0, column] + means[column] / half
        shift += means[column] - means[0]
    center = means[0] + shift / columns
    between = 0.0
    for column in range(columns):
        between += (means[column] - center) ** 2
    within = 0.0
    for draw in range(half):
        for column in range(columns):
            halves[draw, column] -= means[column]
            within += halves[draw, column] ** 2
    return within / (half * columns), between / (columns - 1)


@inlined
def _multiply_lagged(flat: Array, offset: int) -> float:
    """Sum of ``flat[k] * flat[k + offset]``, in four partial sums that run side by side.

    Unsigned indices need no test for counting from the end, and the loop becomes twice as fast.
    """
    later = flat[offset:]
    fours = later.size // 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for four in range(fours):
        k = np.uintp(4) * np.uintp(four)
        a += flat[k] * later[k]
        b += flat[k + np.uintp(1)] * later[k + np.uintp(1)]
        c += flat[k + np.uintp(2)] * later[k + np.uintp(2)]
        d += flat[k + np.uintp(3)] * later[k + np.uintp(3)]
    for rest in range(4 * fours, later.size):
        a += flat[rest] * later[rest]
    return (a + b) + (c + d)


@inlined
def effective_size(halves: Array, means: Array) -> float:
    """Return the effective sample size of the mean; ``halves`` is centred on the way.

    Autocorrelations are combined over the halves (Vehtari et al. 2021, eq. 10) and summed in pairs
    of lags (even, odd) while the pairs stay positive, each pair cut down to the one before: Geyer's
    initial monotone sequence. Lags are computed one pair at a time, only as far as the sum goes.
    """
    half, columns = halves.shape
    size = half * columns
    within, between = center_halves(halves, means)
    total = within + between
    if total == 0.0:
        return float(size)
    unbiased = within * half / (half - 1.0)
    flat = halves.reshape(size)

    even = 1.0
    pair = even + 1.0 - (unbiased - _multiply_lagged(flat, columns) / size) / total
    lag = 2
    cap, pairs = np.inf, 0.0
    while lag < half - 2 and pair > _CANCELLED:
        cap = min(cap, pair)
        pairs += cap
        even = 1.0 - (unbiased - _multiply_lagged(flat, lag * columns) / size) / total
        odd = 1.0 - (unbiased - _multiply_lagged(flat, (lag + 1) * columns) / size) / total
        pair = even + odd
        lag += 2
    # The pair that ended the sum still gives its even lag, once, unless that makes the sum worse.
    last = even if even > 0.0 or pair >= -_CANCELLED else 0.0
    time = 2.0 * pairs + last - 1.0
    # Antithetic chains may beat independent draws, but not without limit.
    return float(size / max(time, 1.0 / np.log10(size)))


@inlined
def variance_ratio(halves: Array, means: Array) -> float:
    """Return R-hat of the columns; NaN if all values agree. ``halves`` is centred on the way."""
    half, _ = halves.shape
    within, between = center_halves(halves, means)
    if within == 0.0:
        return np.inf if between > 0.0 else np.nan
    unbiased = within * half / (half - 1.0)
    return float(np.sqrt((half * between / unbiased + half - 1.0) / half))
