"""Convergence diagnostics of traces: effective sample size, R-hat, Monte Carlo standard error.

A trace has the shape (chains, draws, *cells); each cell is judged on its own, for example one cell
per site and state. A large trace is worked through in small blocks, all cells of a block at a time, so
the extra memory does not grow with the number of cells.

Every chain is cut into its first and its last ``draws // 2`` draws, so that a chain which drifts disagrees
with itself. The halves are the last axis of an array (cells, half, 2 * chains): the product of a cell with
itself shifted by ``lag`` draws is then one run over contiguous memory for all halves together.

Every cell gets a number that can be compared with a threshold, never NaN:

============================  ==================  ========  =====================================
cell                          ess                 rhat      mcse
============================  ==================  ========  =====================================
all values equal              chains * draws      1         0
each chain stays at a value   chains              infinity  sd of chain means / sqrt(chains)
fewer than 4 draws            chains              infinity  the same, infinity for a single chain
============================  ==================  ========  =====================================

All other cells agree with ArviZ 0.23 up to rounding, with two additions: a single chain, too, has
an R-hat (of its two halves), and where a trace of few states makes Geyer's rule tie exactly, the
sum ends there instead of depending on the last bit.

References
----------
.. [1] Vehtari, A., Gelman, A., Simpson, D., Carpenter, B., Buerkner, P.-C. (2021).
   Rank-normalization, folding, and localization: an improved R-hat for assessing convergence of
   MCMC. Bayesian Analysis 16(2), 667-718.
.. [2] Geyer, C. J. (1992). Practical Markov chain Monte Carlo. Statistical Science 7(4), 473-483.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gibbsite._common.arrays import Bools, Floats, Ints32
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError

#: A diagnostic of each cell of (cells, chains, draws).
Measure = Callable[[Floats], Floats]

_FEWEST = 4  # draws, below which a cell cannot be judged
# Values per block: 1 MiB, so that a block is still in the cache when its cells are measured.
_BLOCK = 2**17
# Eighth powers of values within these bounds neither overflow nor vanish.
_SMALL, _LARGE = 2.0**-100, 2.0**100
# A pair of autocorrelations below this size is zero up to rounding. Traces of few states cancel
# exactly quite often, and the result should not hang on the last bit of a sum.
_CANCELLED = 1e-12


def ess(trace: ArrayLike, method: str = "mean") -> Floats:
    """Effective sample size: how many independent draws the chains are worth.

    Parameters
    ----------
    trace : array_like, shape (chains, draws, *cells)
        Real or integer values, all finite.
    method : {"mean", "bulk", "tail"}
        For the error of the mean; "bulk": of the ranks, robust to heavy tails and to monotone
        changes of scale; "tail": the smaller one of the events below the 5 % and the 95 %
        quantile.

    Returns
    -------
    numpy.ndarray, shape (*cells,)
        A cell whose values are all equal has ``chains * draws``; where each chain stays at a value
        of its own, or where there are fewer than 4 draws (too short to judge), ``chains``.

    Raises
    ------
    ModelError
        If the trace is not an array of finite numbers of that shape, or the method is unknown.

    Notes
    -----
    Chains are split in halves, autocorrelations summed by Geyer's initial monotone sequence
    (Vehtari et al. 2021, section 3.2). The result is at most ``n * log10(n)``. Unlike ArviZ, which
    takes values closer than 1e-15 for equal, the result does not depend on the scale.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=(4, 1000))
    >>> walk = np.cumsum(noise, axis=1)
    >>> [round(float(size)) for size in ess(np.stack([noise, walk], axis=-1))]
    [4040, 6]
    """
    from gibbsite.results.measure.ranks import ess_bulk, ess_tail

    return _measure(trace, {"mean": ess_mean, "bulk": ess_bulk, "tail": ess_tail}, method, "ess", _size_unmoved)


def rhat(trace: ArrayLike, method: str = "rank") -> Floats:
    """R-hat: how much wider all chains together are than each half of a chain, 1 if equally wide.

    Parameters
    ----------
    trace : array_like, shape (chains, draws, *cells)
        Real or integer values, all finite.
    method : {"rank", "split"}
        "rank": the larger one of the R-hat of the ranks and of the ranks of the distances from the
        median, which also sees chains of equal location and different width; "split": the classic
        one, of the values.

    Returns
    -------
    numpy.ndarray, shape (*cells,)
        A cell whose values are all equal has 1; where each chain (or each half) stays at a value
        of its own, or where there are fewer than 4 draws (too short to judge), infinity.

    Raises
    ------
    ModelError
        If the trace is not an array of finite numbers of that shape, or the method is unknown.

    Notes
    -----
    Values above 1.01 are a reason not to trust the draws (Vehtari et al. 2021). With one chain the
    two halves are compared, which cannot see what the chain has never visited.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=(4, 1000))
    >>> apart = noise + np.arange(4)[:, None]
    >>> [round(float(ratio), 2) for ratio in rhat(np.stack([noise, apart], axis=-1))]
    [1.0, 1.54]
    """
    from gibbsite.results.measure.ranks import rhat_rank

    return _measure(trace, {"rank": rhat_rank, "split": _rhat_split}, method, "rhat", _ratio_unmoved)


def mcse(trace: ArrayLike, method: str = "mean") -> Floats:
    """Monte Carlo standard error of the mean or of the standard deviation of the draws.

    Parameters
    ----------
    trace : array_like, shape (chains, draws, *cells)
        Real or integer values, all finite.
    method : {"mean", "sd"}
        Whose error.

    Returns
    -------
    numpy.ndarray, shape (*cells,)
        A cell whose values are all equal has 0; where each chain stays at a value of its own, or
        where there are fewer than 4 draws (too short to judge), the standard deviation of the chain
        means divided by ``sqrt(chains)``, infinity for a single chain.

    Raises
    ------
    ModelError
        If the trace is not an array of finite numbers of that shape, or the method is unknown.

    Notes
    -----
    The error of the standard deviation is of first order (delta method, [3]_). It is 0 for two
    states visited equally often, where the standard deviation is at its maximum.

    References
    ----------
    .. [3] Kenney, J. F., Keeping, E. S. (1951). Mathematics of Statistics, part 2, page 141.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=(4, 1000))
    >>> round(float(mcse(noise)), 4), round(float(mcse(noise, "sd")), 4)
    (0.0158, 0.0116)
    """
    return _measure(trace, {"mean": _mcse_mean, "sd": _mcse_sd}, method, "mcse", _error_unmoved, in_units=True)


def _measure(
    trace: ArrayLike,
    methods: Mapping[str, Measure],
    method: str,
    name: str,
    unmoved: Callable[[Floats, Bools], Floats],
    in_units: bool = False,
) -> Floats:
    """Apply a method to all cells whose values differ, ``unmoved`` to the others.

    ``in_units`` says that the result scales with the values.
    """
    values = np.asarray(trace)
    if values.dtype.kind not in "biuf":
        raise ArgumentError(f"a trace of type {values.dtype} has no mean: pass real or integer values.")
    if values.ndim < 2 or 0 in values.shape[:2]:
        raise ArgumentError(
            f"a trace of shape {values.shape} has no draws to judge: "
            "pass at least one chain and one draw as (chains, draws, *cells)."
        )
    if method not in methods:
        raise ArgumentError(unknown(f"method of {name}", method, methods))
    chains, draws = values.shape[:2]
    shape = values.shape[2:]
    every = values.reshape(chains, draws, math.prod(shape))
    count = every.shape[2]
    out = np.empty(count)
    step = max(1, _BLOCK // (chains * draws))
    block = np.empty((min(step, count), chains, draws))
    for start in range(0, count, step):
        stop = min(start + step, count)
        part, found = block[: stop - start], out[start:stop]
        with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite
            part[...] = every[:, :, start:stop].transpose(2, 0, 1)
        exponents = _normalise(part, start, shape)
        moves = (part != part[:, :, :1]).any(axis=(1, 2)) & (draws >= _FEWEST)
        if moves.all():
            found[:] = methods[method](part)
        else:
            if moves.any():
                found[moves] = methods[method](part[moves])
            still = part[~moves]
            equal = (still == still[:, :1, :1]).all(axis=(1, 2)) & (draws >= _FEWEST)
            found[~moves] = unmoved(still, equal)
        if in_units and exponents is not None:
            found[:] = np.ldexp(found, exponents)
    return out.reshape(shape)


def _normalise(part: Floats, start: int, shape: tuple[int, ...]) -> Ints32 | None:
    """Reject non-finite values; scale cells of extreme size in place by powers of two.

    Returns the exponents that undo the scaling, None if there was none (the rule).
    """
    flat = part.reshape(part.shape[0], -1)
    peaks = np.maximum(flat.max(axis=1), -flat.min(axis=1))
    finite = np.isfinite(peaks)
    if not finite.all():
        place = np.unravel_index(start + int(np.argmin(finite)), shape)
        where = f"cell {tuple(int(k) for k in place)} of the trace" if shape else "the trace"
        raise ArgumentError(f"{where} has a value that is not finite: remove or repair those draws.")
    extreme = (peaks > _LARGE) | ((peaks < _SMALL) & (peaks > 0.0))
    if not extreme.any():
        return None
    exponents = np.where(extreme, np.frexp(peaks)[1], 0).astype(np.int32)
    np.ldexp(part, -exponents[:, None, None], out=part)
    return exponents


# ---- cells that do not move, or have too few draws


def _size_unmoved(values: Floats, equal: Bools) -> Floats:
    """Count each chain as one draw, unless all values are equal."""
    _, chains, draws = values.shape
    return np.where(equal, float(chains * draws), float(chains))


def _ratio_unmoved(values: Floats, equal: Bools) -> Floats:
    """Return 1 where all values are equal, otherwise infinity."""
    return np.where(equal, 1.0, np.inf)


def _error_unmoved(values: Floats, equal: Bools) -> Floats:
    """Estimate the error of the mean from the chain means alone, each taken as one draw."""
    chains = values.shape[1]
    if chains == 1:
        error = np.full(len(values), np.inf)
    else:
        # relative to the first value, so that equal chains have equal means
        means = (values - values[:, :1, :1]).mean(axis=2)
        error = means.std(axis=1, ddof=1) / np.sqrt(chains)
    return np.where(equal, 0.0, error)


# ---- cells that move


def split_chains(values: NDArray[np.generic]) -> Floats:
    """Return the halves (cells, half, 2 * chains) of the chains of cells (cells, chains, draws).

    Examples
    --------
    >>> split_chains(np.arange(5).reshape(1, 1, 5)).tolist()
    [[[0.0, 3.0], [1.0, 4.0]]]
    """
    half = values.shape[2] // 2
    first, last = values[:, :, :half], values[:, :, values.shape[2] - half :]
    halves = np.concatenate([first.transpose(0, 2, 1), last.transpose(0, 2, 1)], axis=2)
    return halves.astype(np.float64, copy=False)


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
    flat = halves.reshape(len(halves), -1)
    within = np.einsum("ij,ij->i", flat, flat) / (half * columns)
    means -= means[:, :, :1].copy()
    means -= means.mean(axis=2, keepdims=True)
    flat = means.reshape(len(means), -1)
    return within, np.einsum("ij,ij->i", flat, flat) / (columns - 1)


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
        products = np.einsum("ij,ij->i", rows[:, : size - lag * columns], rows[:, lag * columns :])
        found: Floats = 1.0 - (unbiased[ahead] - products / size) / scale[ahead]
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


def ess_mean(values: Floats) -> Floats:
    """Return the effective sample size of the mean."""
    return effective_sizes(split_chains(values))


def _mcse_mean(values: Floats) -> Floats:
    """Return the standard error of the mean."""
    variance: Floats = values.reshape(len(values), -1).var(axis=1, ddof=1)
    return np.asarray(np.sqrt(variance / effective_sizes(split_chains(values))))


def _mcse_sd(values: Floats) -> Floats:
    """Return the standard error of the standard deviation, from the error of the variance."""
    squares = np.square(values - values.mean(axis=(1, 2), keepdims=True))
    flat = squares.reshape(len(squares), -1)
    # If v estimates the variance, sqrt(v) has the error of v divided by 2 sqrt(v).
    return np.asarray(np.sqrt(flat.var(axis=1) / effective_sizes(split_chains(squares)) / flat.mean(axis=1) / 4.0))


def _rhat_split(values: Floats) -> Floats:
    """Return R-hat of the split chains."""
    ratio = variance_ratios(split_chains(values))
    # Only the middle draw, which belongs to no half, differs from the others.
    return np.where(np.isnan(ratio), 1.0, ratio)
