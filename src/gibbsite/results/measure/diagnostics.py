"""Convergence diagnostics of traces: effective sample size, R-hat, Monte Carlo standard error.

A trace has the shape (chains, draws, *cells); each cell is judged on its own, for example one cell
per site and state. A large trace is worked through in small blocks, all cells of a block at a time, so
the extra memory does not grow with the number of cells.

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

from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError
from gibbsite.results.measure import cells
from gibbsite.results.measure.normal_scores import normal_scores

_ESS: Mapping[str, cells.Measure] = {"mean": cells.ess_mean, "bulk": cells.ess_bulk, "tail": cells.ess_tail}
_RHAT: Mapping[str, cells.Measure] = {"rank": cells.rhat_rank, "split": cells.rhat_split}
_MCSE: Mapping[str, cells.Measure] = {"mean": cells.mcse_mean, "sd": cells.mcse_sd}

_SCORED = ("bulk", "rank")  # methods that need normal scores

# Values per block: 1 MiB, so that a block is still in the cache when its cells are measured.
_BLOCK = 2**17
# Eighth powers of values within these bounds neither overflow nor vanish.
_SMALL, _LARGE = 2.0**-100, 2.0**100


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
    return _measure(trace, _ESS, method, "ess", cells.size_unmoved)


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
    return _measure(trace, _RHAT, method, "rhat", cells.ratio_unmoved)


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
    return _measure(trace, _MCSE, method, "mcse", cells.error_unmoved, in_units=True)


def _measure(
    trace: ArrayLike,
    methods: Mapping[str, cells.Measure],
    method: str,
    name: str,
    still: Callable[[Floats], Floats],
    in_units: bool = False,
) -> Floats:
    """Apply one method to all cells, ``still`` to those that do not move.

    ``in_units`` says that the result scales with the values.
    """
    values = _as_trace(trace)
    if method not in methods:
        raise ArgumentError(unknown(f"method of {name}", method, methods))
    chains, draws = values.shape[:2]
    shape = values.shape[2:]
    every = values.reshape(chains, draws, math.prod(shape))
    count = every.shape[2]
    scores = normal_scores(2 * chains * (draws // 2)) if method in _SCORED else np.empty(0)
    out = np.empty(count)
    step = max(1, _BLOCK // (chains * draws))
    block = np.empty((min(step, count), chains, draws))
    for start in range(0, count, step):
        stop = min(start + step, count)
        part = block[: stop - start]
        with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite
            part[...] = every[:, :, start:stop].transpose(2, 0, 1)
        exponents = _normalise(part, start, shape)
        out[start:stop] = cells.measure(methods[method], still, part, scores)
        if in_units and exponents is not None:
            out[start:stop] = np.ldexp(out[start:stop], exponents)
    return out.reshape(shape)


def _as_trace(trace: ArrayLike) -> NDArray[np.generic]:
    values = np.asarray(trace)
    if values.dtype.kind not in "biuf":
        raise ArgumentError(f"a trace of type {values.dtype} has no mean: pass real or integer values.")
    if values.ndim < 2 or 0 in values.shape[:2]:
        raise ArgumentError(
            f"a trace of shape {values.shape} has no draws to judge: "
            "pass at least one chain and one draw as (chains, draws, *cells)."
        )
    return values


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
