"""Estimates from tallies: self-normalised marginals, the log-partition function, their errors, and the tail of weights.

Draws of one proposal are pooled. Estimates from several proposals are averaged with weights proportional to their
effective sizes.

The tail of the weights is described by the shape k of a generalised Pareto distribution, in ArviZ's convention. Weights
whose k is below 1/2 have a finite variance; above 0.7, estimates cannot be relied upon whatever their standard errors
[2]_. The fit is that of [1]_, with the weak prior that pulls k of few weights towards 1/2.

References
----------
.. [1] Zhang, J. and Stephens, M. A. (2009). A new and efficient estimation method for the generalized Pareto
   distribution. Technometrics 51(3).
.. [2] Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance sampling. Journal
   of Machine Learning Research 25(72).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.inference.importance.tally import DRAWN, SQUARES, TOTAL, Tally

_FEWEST = 5  # weights above the cut that a fit needs
_PRIOR_SCALE, _PRIOR_WEIGHT, _PRIOR_K = 3.0, 10.0, 0.5
_ROOM = 2.0  # times the shape that the ratio of the largest weight to the least of the tail suggests


def tail_length(draws: int) -> int:
    """Return the number of weights in the tail."""
    return math.ceil(min(0.2 * draws, 3.0 * math.sqrt(draws)))


def pareto_k(largest: Floats, draws: int) -> float:
    """Return the shape k of the tail of ``draws`` weights, of which the largest are given as logarithms.

    It is infinite for too few draws, and minus infinity if the largest weights are all equal. A tail of many equal
    weights and fewer than five larger ones cannot be fitted, and gets the prior value 1/2.
    """
    logs = np.sort(largest[largest > -np.inf])
    length = min(tail_length(draws), max(logs.size // 2, min(logs.size - 1, tail_length(draws))))
    if length < _FEWEST or logs.size <= _FEWEST:
        return math.inf
    logs = np.round(logs - logs[-1], 9)  # weights that differ by rounding are equal
    cut = logs[-length - 1] if length < logs.size else logs[0]
    above = logs[logs > cut]
    if above.size < _FEWEST:  # there are many equal weights; cut below them, if smaller weights are known
        below = logs[logs < cut]
        if not below.size and not above.size:
            return -math.inf
        if not below.size:
            return _PRIOR_K
        cut = below[-1]
        above = logs[logs > cut]
    excess = np.exp(above) - math.exp(cut)
    excess = excess[excess > 0.0]
    if excess.size < _FEWEST:
        return _PRIOR_K
    if excess[-1] <= excess[0] * (1.0 + 1e-9):
        return -math.inf
    k = fit_pareto(excess)[0]
    # The largest of m values of a distribution of shape k is about m^k times the least, and seldom less than m^(k/2).
    # The differences of nearly equal weights can have any scale, so that a fit gives a large k; but a tail is not heavy
    # if its largest weight is hardly larger than the others.
    most = _ROOM * -float(cut) / math.log(excess.size)
    return min(k, most) if math.isfinite(k) else min(_PRIOR_K, most)


def fit_pareto(excess: Floats) -> tuple[float, float]:
    """Fit shape and scale of a generalised Pareto distribution to positive numbers in rising order."""
    n = excess.size
    many = 30 + int(math.sqrt(n))
    b = 1.0 - np.sqrt(many / (np.arange(1, many + 1) - 0.5))
    b /= _PRIOR_SCALE * excess[int(n / 4 + 0.5) - 1]
    b += 1.0 / excess[-1]
    k = np.array([np.log1p(-each * excess).mean() for each in b])
    with np.errstate(all="ignore"):
        profile = n * (np.log(-(b / k)) - k - 1.0)
        likely = 1.0 / np.exp(profile - profile[:, None]).sum(axis=1)
        likely = np.where(likely >= 10.0 * np.finfo(float).eps, likely, 0.0)
        mean = float((b * likely).sum() / likely.sum())
    shape = float(np.log1p(-mean * excess).mean())
    return (n * shape + _PRIOR_WEIGHT * _PRIOR_K) / (n + _PRIOR_WEIGHT), -shape / mean


# This variance, that of two draws of average weight with or without the state, is added to that of an estimate, so that
# a state that was never drawn has the error 2 / n, as in runs of chains.
_UNSEEN_VARIANCE = 4.0


@dataclass(frozen=True)
class WeightedEstimate:
    """Estimates from weighted draws.

    ``cells`` and ``errors`` are the probability of each state of each site and its standard error, NaN if no draw has a
    positive weight; ``log_z`` is the logarithm of the mean weight. ``positive`` counts draws of positive weight,
    ``effective`` is the effective size, the squared sum of the weights over the sum of their squares; ``largest`` is
    the share of the largest weight, and ``k`` the shape of the tail (:func:`pareto_k`).
    """

    cells: Floats
    errors: Floats
    log_z: float
    log_z_error: float
    n_draws: int
    positive: int
    effective: float
    largest: float
    k: float


def estimate(tally: Tally, exact: bool = False) -> WeightedEstimate:
    """Return the estimates from the draws of one proposal.

    If draws are ``exact``, all weights are known to be equal. Otherwise log Z has an error even if the weights drawn
    are equal, because others may not have been drawn.
    """
    draws, positive = tally.draws, tally.positive
    cells = tally.first.shape[1]
    if not positive:
        nothing = np.full(cells, np.nan)
        return WeightedEstimate(nothing, nothing, -math.inf, math.nan, draws, 0, 0.0, math.nan, math.inf)
    top = float(tally.scale.max())
    by = np.exp(tally.scale - top)
    total, squares = float(by @ tally.sums[:, TOTAL]), float((by * by) @ tally.sums[:, SQUARES])
    p, effective = (by @ tally.first) / total, total * total / squares
    first, second = by @ tally.first / total, (by * by) @ tally.second / total**2
    variance = second * (1.0 - 2.0 * p) + p * p / effective
    with np.errstate(divide="ignore", invalid="ignore"):
        typical = np.fmax(second / first, (1.0 / effective - second) / (1.0 - first))
    typical = np.fmax(np.where(np.isfinite(typical), typical, 0.0), 1.0 / effective)
    errors = np.sqrt(np.maximum(variance, 0.0) + _UNSEEN_VARIANCE * typical**2)
    return WeightedEstimate(
        p,
        errors,
        top + math.log(total / draws),
        0.0 if exact else math.sqrt(max(1.0 / effective - 1.0 / draws, 0.0) + _UNSEEN_VARIANCE / effective**2),
        draws,
        positive,
        effective,
        1.0 / total,
        pareto_k(tally.tail.ravel(), draws),
    )


def combine(estimates: Sequence[WeightedEstimate]) -> WeightedEstimate:
    """Return the average of estimates from several proposals, weighted by effective sizes.

    Proposals without any draw of positive weight contribute their numbers of draws only. The shape of the tail is the
    largest one among proposals with a share of at least a tenth.
    """
    known = [one for one in estimates if one.positive]
    if (len(known) == 1 and len(estimates) == 1) or not known:
        return estimates[0]
    share = np.array([one.effective for one in known])
    share = share / share.sum()
    top = max(one.log_z for one in known)
    z = np.exp([one.log_z - top for one in known])
    mean = float(share @ z)
    error = math.sqrt(float(np.sum((share * z * [one.log_z_error for one in known]) ** 2))) / mean
    return WeightedEstimate(
        share @ np.stack([one.cells for one in known]),
        np.sqrt(share**2 @ np.stack([one.errors for one in known]) ** 2),
        top + math.log(mean),
        error,
        sum(one.n_draws for one in estimates),
        sum(one.positive for one in known),
        float(sum(one.effective for one in known)),
        max(float(part * one.largest) for part, one in zip(share, known, strict=True)),
        max(one.k for part, one in zip(share, known, strict=True) if part >= 0.1),
    )


@dataclass(frozen=True)
class GroupEstimates:
    """The estimates of each single group of a tally that has draws.

    ``cells`` and ``variances`` (groups, cells) are probabilities and their variances, ``z`` and ``z_variance``
    (groups,) mean weights relative to that of all groups, and their variances.
    """

    cells: Floats
    variances: Floats
    z: Floats
    z_variance: Floats


def estimate_groups(tally: Tally, whole: WeightedEstimate) -> GroupEstimates:
    """Return the separate estimates of each group of draws, with variances from all groups."""
    used = np.flatnonzero(tally.counts[:, DRAWN])
    draws = tally.counts[used, DRAWN].astype(np.float64)
    with np.errstate(all="ignore"):
        p = tally.first[used] / tally.sums[used, TOTAL][:, None]
    log_mean = tally.scale[used] + np.log(np.maximum(tally.sums[used, TOTAL], 1e-300) / draws)
    relative = np.exp(log_mean - whole.log_z)
    part = draws / whole.n_draws
    own = whole.errors**2 / np.maximum(part * relative, 1e-300)[:, None]
    return GroupEstimates(p, own, relative, whole.log_z_error**2 / part)
