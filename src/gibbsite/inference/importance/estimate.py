"""Estimates from tallies: self-normalised marginals, the log-partition function, and their errors.

Draws of one proposal are pooled. Estimates from several proposals are averaged with weights proportional to their
effective sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.inference.importance.pareto import pareto_k
from gibbsite.inference.importance.tally import DRAWN, SQUARES, TOTAL, Tally

# The variance of two draws of average weight, with or without the state, is added to that of an estimate: a state that
# was never drawn has the error 2 / n, as in runs of chains.
_UNSEEN_VARIANCE = 4.0


@dataclass(frozen=True)
class WeightedEstimate:
    """Estimates from weighted draws.

    Attributes
    ----------
    cells, errors : float (cells,)
        Probability of each state of each site, and its standard error; NaN if no draw has a positive weight.
    log_z, log_z_error : float
        Logarithm of the mean weight, and its standard error.
    draws, positive : int
        Draws, and those of positive weight.
    effective : float
        Effective size: (sum of weights)^2 / sum of squares.
    largest : float
        Share of the largest weight.
    k : float
        Shape of the tail of weights (:func:`gibbsite.inference.importance.pareto.pareto_k`).
    """

    cells: Floats
    errors: Floats
    log_z: float
    log_z_error: float
    draws: int
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
    """Return the average of estimates from several proposals, by their effective sizes.

    Proposals without any draw of positive weight contribute their numbers of draws only. The shape of the tail is the
    worst of those with a share of a tenth or more.
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
        sum(one.draws for one in estimates),
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
    """Return the estimates of each group of draws by itself, with variances from all groups."""
    used = np.flatnonzero(tally.counts[:, DRAWN])
    draws = tally.counts[used, DRAWN].astype(np.float64)
    with np.errstate(all="ignore"):
        p = tally.first[used] / tally.sums[used, TOTAL][:, None]
    log_mean = tally.scale[used] + np.log(np.maximum(tally.sums[used, TOTAL], 1e-300) / draws)
    relative = np.exp(log_mean - whole.log_z)
    part = draws / whole.draws
    own = whole.errors**2 / np.maximum(part * relative, 1e-300)[:, None]
    return GroupEstimates(p, own, relative, whole.log_z_error**2 / part)
