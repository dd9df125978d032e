"""What is known of every cell of a run: its mean, standard error, effective size, R-hat and spread.

A cell is a probability, or a moment of a site that is a number. All numbers come from half-chain and batch
means, so they exist for millions of sites.

Standard errors count visits. Of a state of probability q with standard error e about r = (q / e)^2
independent visits were seen, and a Poisson count of r is taken to be uncertain by sqrt(r + 4), not sqrt(r):
counts of 0, 1, 2, ... then miss their expectation by more than four standard errors with a probability below
0.1 %. A state that was never entered gets the standard error 2 / n, where n is the effective number of draws
of its own cell or, where its probability is too small to tell, of the slowest cell of the run; four standard
errors are then a rule of three with 0.03 % in place of 5 %. Averages of conditional probabilities
(Rao-Blackwell) have the same floor, because n draws cannot tell what the conditionals would be in
configurations of the neighbours that were never seen. Where chains that were started in a rare state have
shown how long visits last (:mod:`gibbsite.results.verdict.visits`), n is at most the number of sweeps divided
by that time.

Draws that are not random tell nothing about their error. Where kernels say so (``Kernel.error_source``), all
numbers come from the means of whole chains; where there are fewer than four, or where chains are no
replicates, there are none, and the run is not judged. The spread of few chains is itself uncertain, so such
standard errors are made larger (:func:`widen`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints32, Positions
from gibbsite.results.measure.diagnostics import mcse

if TYPE_CHECKING:
    from gibbsite.results.measure.moments import Moments

MATERIAL = 0.001
_FEW_BATCHES, _MOST_BATCHES = 10, 512
_ROUNDING = 1e-6  # of means that are kept in 32 bits
_EQUAL = 1e-9  # log-potentials closer than this, relatively, are equal
_UNSEEN = 2.0  # standard error of a count of zero, see above
_BEYOND_FOUR = 0.5 * math.erfc(4.0 / math.sqrt(2.0))  # probability of a normal law above four
#: Sources of errors that are spreads of means of chains: of replicates, and of sums of random draws.
SPREADS = ("chains", "sums")
#: Replicates that have a standard error at least; means of two or three are too often equal by chance.
FEWEST_REPLICATES = 4


@dataclass(frozen=True)
class CellNumbers:
    """Pooled mean, standard error, effective size, R-hat and chain disagreement of every cell.

    Standard error, effective size and R-hat are NaN where nothing is known about errors. The two cells of a
    number (``numbers`` has both) are its mean and its standard deviation; ``scale`` is the latter, for
    probabilities 1.
    """

    mean: Floats
    error: Floats
    ess: Floats
    rhat: Floats
    spread: Floats
    scale: Floats
    numbers: Positions

    def of(self, cells: Positions) -> CellNumbers:
        """Return the numbers of some cells."""
        return CellNumbers(
            self.mean[cells],
            self.error[cells],
            self.ess[cells],
            self.rhat[cells],
            self.spread[cells],
            self.scale[cells],
            np.flatnonzero(np.isin(cells, self.numbers)),
        )


def without_floor(found: CellNumbers, trace: Array) -> CellNumbers:
    """Take the floor of standard errors away from cells that are the same in every draw.

    That is right where draws are independent: their conditional probabilities depend on no neighbours, so
    there are no configurations of them that might have been missed.

    Examples
    --------
    >>> trace = np.full((2, 8, 1), 0.25, np.float32)
    >>> without_floor(measure_cells(trace.sum(axis=1).astype(float), trace, 8, 1), trace).error.tolist()
    [0.0]
    """
    if not trace.shape[1]:
        return found
    spread = trace.max(axis=(0, 1)).astype(float) - trace.min(axis=(0, 1))
    return replace(found, error=np.where(spread <= _ROUNDING, spread, found.error))


def count_chances(found: CellNumbers, times: Floats, sweeps: float) -> CellNumbers:
    """Raise the standard errors of states whose visits last long: there were fewer chances to enter them.

    Parameters
    ----------
    found : CellNumbers
        What the run itself says.
    times : float array (cells,)
        Integrated autocorrelation time of each cell in sweeps, by chains that were started in rare states; 1
        where nothing was measured.
    sweeps : float
        Length of the run, all chains together.

    Examples
    --------
    >>> draws = np.zeros((2, 50, 1), np.float32)
    >>> never = measure_cells(draws.sum(axis=1).astype(float), draws, 50, 1)
    >>> round(float(never.error[0]), 3), round(float(count_chances(never, np.array([5.0]), 100).error[0]), 3)
    (0.02, 0.1)
    """
    long = times > 1.0
    if not long.any():
        return found
    # errors of single sweeps are in what the run itself says
    rest = np.sqrt(np.square(times) - 1.0, where=long, out=np.zeros(times.size))
    error = np.hypot(found.error, _UNSEEN * rest / sweeps)
    variance = found.mean * (1.0 - found.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(long & (variance > 0.0), np.fmin(found.ess, variance / np.square(error)), found.ess)
    return replace(found, error=error, ess=ess)


def times_for_errors(times: Floats, errors: Floats, wanted: Floats, sweeps: float) -> Floats:
    """Return the times that :func:`count_chances` needs to raise standard errors to those that are wanted.

    ``errors`` are the standard errors with ``times``; those that are large enough already keep their times.

    Examples
    --------
    >>> ones = np.ones(2)
    >>> times_for_errors(ones, np.array([0.01, 0.01]), np.array([0.02, 0.005]), 1000.0).round(2).tolist()
    [8.72, 1.0]
    """
    lacking = np.maximum(np.square(wanted) - np.square(errors), 0.0)
    found: Floats = np.sqrt(np.square(times) + lacking * np.square(sweeps / _UNSEEN))
    return found


def source_of_errors(errors: str, chains: int) -> str:
    """Return what standard errors are taken from in a run of a number of chains.

    Examples
    --------
    >>> source_of_errors("chains", 3)
    'none'
    """
    return "none" if chains < {"chains": FEWEST_REPLICATES, "sums": 2}.get(errors, 0) else errors


def spread_error(means: Floats, errors: str) -> Floats:
    """Return standard errors of the average over chains, the first axis, from the spread of their means.

    Examples
    --------
    >>> spread_error(np.array([[0.4], [0.5], [0.6]]), "sums").round(4).tolist()
    [0.0577]
    """
    found: Floats = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return found * widen(len(means)) if errors == "chains" else found


def widen(chains: int) -> float:
    """Return the factor by which to widen a standard error that comes from the spread of a number of chains.

    The ratio of an error to it has Student's law. Four widened standard errors are exceeded as seldom as four
    standard deviations of a normal law.

    Examples
    --------
    >>> [round(widen(chains), 2) for chains in (4, 8, 16, 64)]
    [8.15, 2.12, 1.37, 1.07]
    """
    from scipy.special import stdtrit

    return float(stdtrit(chains - 1, 1.0 - _BEYOND_FOUR) / 4.0)


def measure_cells(
    totals: Floats,
    trace: Array,
    draws: int,
    length: int,
    errors: str = "draws",
    numbers: Positions | None = None,
    angular: Floats | None = None,
    low: Floats | None = None,
) -> CellNumbers:
    """Compute what is known of every cell.

    Parameters
    ----------
    totals : float array (chains, cells)
        Sums over all draws.
    trace : float array (chains, batches, cells)
        Means of closed batches.
    draws, length : int
        Draws per chain, and per batch.
    errors : {"draws", "chains", "sums", "none"}
        What standard errors can be taken from, see ``Kernel.error_source``; "sums": draws are random, and
        only sums over whole chains are known.
    numbers : int array, optional
        Cells that are values of a number; the cell that follows each is the square of it.
    angular, low : float arrays, optional
        Of these numbers: radians per unit of angles, whose cells are cosine and sine, 0 for others; the
        smallest values.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> trace = (rng.random((4, 100, 1)) < 0.3).astype(np.float32)
    >>> numbers = measure_cells(trace.sum(axis=1).astype(float), trace, 100, 1)
    >>> bool(numbers.rhat[0] < 1.05), bool(0.01 < numbers.error[0] < 0.04)
    (True, True)
    """
    means = totals / max(draws, 1)
    mean = means.mean(axis=0)
    moments: Moments | None = None
    if numbers is None or not numbers.size:
        cells, scale = np.zeros(0, np.intp), np.ones(mean.size)
        probability = np.clip(mean, 0.0, 1.0)
        variance = probability * (1.0 - probability)
    else:
        from gibbsite.results.measure.moments import Moments

        moments = Moments(mean, numbers, angular, low)
        mean, means, trace = moments.sds(mean), moments.unrolled(means), moments.unrolled(trace)
        variance, scale, cells = moments.variance(mean), moments.scale, moments.cells
    spread = np.abs(means - mean).max(axis=0) / scale
    source = source_of_errors(errors, len(means))
    if source == "none":
        unknown = np.full(mean.size, np.nan)
        return CellNumbers(mean, unknown, unknown, unknown, spread, scale, cells)
    if source in SPREADS:
        error = spread_error(means, source)
        rhat = _ratio(means, draws, moments)
    else:
        error = measure_errors(trace)
        rhat, within = _halves(trace, length, moments)
        spread = np.maximum(spread, within / scale)
    n_draws = float(len(totals) * draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(error > 0, variance / np.square(error), n_draws)
    if source == "draws":
        error = _count_visits(mean, error, ess, n_draws, cells)
        with np.errstate(divide="ignore", invalid="ignore"):
            ess = np.where((error > 0) & (variance > 0), variance / np.square(error), ess)
    return CellNumbers(mean, error, ess, rhat, spread, scale, cells)


def measure_errors(trace: Array) -> Floats:
    """Return standard errors from batch means and their dependence."""
    error = mcse(trace)
    if trace.shape[1] < _FEW_BATCHES:
        # Too short for a sum of autocorrelations, which then takes the batches for antithetic.
        count = max(trace.shape[0] * trace.shape[1], 1)
        error = np.maximum(error, trace.std(axis=(0, 1), dtype=float) / np.sqrt(max(count - 1, 1)))
    return error


def _count_visits(mean: Floats, error: Floats, ess: Floats, n_draws: float, numbers: Positions) -> Floats:
    """Return standard errors of probabilities that account for how few visits they may come from."""
    rare = np.clip(np.minimum(mean, 1.0 - mean), 0.0, None)
    known = is_material(mean, numbers)
    slowest = float(ess[known].min(initial=n_draws))
    looks = np.clip(np.where(known, ess, slowest), 1.0, n_draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        few = np.where(rare > 0.0, np.square(_UNSEEN * np.square(error) / rare), 0.0)
    counted: Floats = np.sqrt(np.square(error) + few + np.square(_UNSEEN / looks))
    counted[numbers] = error[numbers]
    return counted


def is_material(mean: Floats, numbers: Positions) -> Bools:
    """Tell which cells are judged by R-hat and effective size: numbers, and probabilities not too small."""
    material: Bools = (mean > MATERIAL) & (mean < 1.0 - MATERIAL)
    material[numbers] = True
    return material


def count_states(values: Array, cards: Ints32, angular: Floats) -> tuple[tuple[Floats, Array, int, int], Positions]:
    """Turn recorded draws into what :func:`measure_cells` takes, one cell per state of each site.

    Parameters
    ----------
    values : array (chains, draws, sites)
        State codes, or numbers.
    cards : int array (sites,)
        Numbers of cells: of states, or 2 for the moments of numbers.
    angular : float array (sites,)
        What is recorded of numbers, see ``Domains.angular``; NaN for states.

    Returns
    -------
    tuple
        Sums, means of batches, draws, draws per batch.
    int array
        Cells that are values of numbers.

    Examples
    --------
    >>> draws = np.array([[[0], [1], [1]]], np.int16)
    >>> (totals, trace, draws, length), _ = count_states(draws, np.array([2]), np.array([np.nan]))
    >>> totals.tolist(), trace.shape, draws, length
    ([[1.0, 2.0]], (1, 3, 2), 3, 1)
    """
    chains, draws, _ = values.shape
    numbers = ~np.isnan(angular)
    length = max(1, -(-draws // _MOST_BATCHES))
    batches = draws // length
    offset = np.cumsum(cards) - cards
    totals = np.zeros((chains, int(cards.sum())))
    trace = np.zeros((chains, batches, totals.shape[1]), np.float64 if numbers.any() else np.float32)
    for code in range(int(cards.max(initial=0))):
        for real in (False, True):
            has = np.flatnonzero((cards > code) & (numbers == real))
            seen = _moment(values[:, :, has], angular[has], code) if real else values[:, :, has] == code
            totals[:, offset[has] + code] = seen.sum(axis=1)
            parts = seen[:, : batches * length].reshape(chains, batches, length, has.size)
            trace[:, :, offset[has] + code] = parts.mean(axis=2, dtype=trace.dtype)
    return (totals, trace, draws, length), offset[numbers].astype(np.intp)


def _moment(values: Array, angular: Floats, code: int) -> Array:
    """Return what is recorded of numbers as their first or second cell."""
    turned = np.cos(angular * values) if code == 0 else np.sin(angular * values)
    return np.where(angular > 0, turned, values ** (code + 1))


def _halves(trace: Array, length: int, moments: Moments | None) -> tuple[Floats, Floats]:
    """R-hat of state indicators from the means of half chains, and their largest deviation."""
    half = trace.shape[1] // 2
    cells = trace.shape[2]
    if half < 2:
        return np.full(cells, np.inf), np.zeros(cells)
    parts = np.concatenate([trace[:, :half].mean(axis=1, dtype=float), trace[:, -half:].mean(axis=1, dtype=float)])
    parts = np.clip(parts, 0.0, 1.0) if moments is None else moments.clipped(parts)
    return _ratio(parts, half * length, moments), np.abs(parts - parts.mean(axis=0)).max(axis=0)


def _ratio(parts: Floats, n: int, moments: Moments | None) -> Floats:
    """R-hat of state indicators and numbers from the means of parts of ``n`` draws.

    The variance of an indicator within a part follows from its mean p as p (1 - p), so no draw is needed.
    """
    if n < 2:
        return np.full(parts.shape[1], np.inf)
    parts = np.clip(parts, 0.0, 1.0) if moments is None else moments.clipped(parts)
    variance = parts * (1.0 - parts) if moments is None else moments.variance(parts)
    within = variance.mean(axis=0) * n / (n - 1)
    between = parts.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt(((n - 1) / n * within + between) / within)
    return np.where(within > 0, rhat, np.where(between > 0, np.inf, 1.0))


def measure_disagreement(series: Floats) -> float:
    """Return R-hat of a series, such as log-potentials, over the halves of its chains; 1 if all values are equal.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(4, 64))
    >>> measure_disagreement(noise) < 1.1 < measure_disagreement(noise + 2.0 * np.arange(4)[:, None])
    True
    """
    half = series.shape[1] // 2
    if half < 2 or np.ptp(series) <= _EQUAL * (1.0 + np.abs(series).max()):
        return 1.0
    parts = np.concatenate([series[:, :half], series[:, -half:]])
    within = float(parts.var(axis=1, ddof=1).mean())
    between = float(parts.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return np.inf
    return float(np.sqrt((half - 1) / half + between / within))
