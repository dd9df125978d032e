"""The verdict on weighted draws.

A large effective size is weak evidence: it is computed from the weights that were drawn, and states that were never
drawn have none. A run is called converged only if no relevant state can have been missed: all weights have a known
upper bound (``log_bound`` of :class:`gibbsite.importance.WeightedSource`), from which it follows that a set of states
that all draws have missed has no larger probability than the accuracy asked for. Besides, no single draw may dominate a
marginal, and groups of draws and proposals must agree within their errors. A fit of the tail of the weights shows
whether errors are reliable if the weights have no useful bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsite.inference.importance.estimate import WeightedEstimate, combine, estimate, estimate_groups
from gibbsite.inference.importance.tally import Tally
from gibbsite.results.answer import Diagnostics
from gibbsite.results.verdict.criteria import STANDARD_ERRORS
from gibbsite.results.wording import in_words, verdict_word

MOST_K = 0.7  #: shape of the tail of weights up to which their errors are reliable
LEAST_EFFECTIVE = 400.0  #: the least effective size
#: All of n draws miss a set of states of probability more than this / n with probability exp(-MISSED) = 5e-5.
MISSED = 10.0
_DISAGREE = 1e-5  # groups or proposals disagree if the p-value of their difference is smaller
_SPOILS = 4.0  # a proposal whose contribution to the bound is larger than this times the smallest may be left out
# Cells with few effective draws are left out when groups are compared, because they are not normally distributed.
_FEWEST_VISITS = 100.0


# The figures of a verdict on weighted draws, in the order of the report.
FIGURES = (
    "n_draws",  # draws made
    "positive",  # draws of positive weight
    "effective",  # effective size of the weights
    "largest",  # share of the largest weight
    "pareto_k",  # shape of the tail of weights; below 0.7 they can be averaged
    "gap",  # upper bound of a log-weight minus log Z, the log of the largest ratio of a weight to the mean
    "unseen",  # largest probability of states that were not drawn; infinite if weights have no known bound
    "groups",  # probability that groups of draws disagree by chance as much as they do
    "sources",  # the same for proposals
    "mcse_max",  # largest standard error of a marginal
    "log_z_error",  # standard error of log Z
    "accuracy",  # the largest error allowed
)


def diagnose(reasons: tuple[str, ...], figures: dict[str, Any]) -> Diagnostics:
    """Return the verdict on weighted draws, which have converged if no reason is given."""
    unseen = "not bounded" if math.isinf(figures["unseen"]) else f"at most {min(figures['unseen'], 1.0):.2g}"
    k = figures["pareto_k"]
    tail = "largest weights equal" if k == -math.inf else f"Pareto k {in_words(k, '.2f')}"
    text = (
        f"{verdict_word(not reasons)}: {figures['n_draws']:,} draws, "
        f"effective size {figures['effective']:,.0f}, {tail}, "
        f"share of what was not drawn {unseen}, largest standard error {in_words(figures['mcse_max'], '.2g')}"
    )
    return Diagnostics("estimate", not reasons, reasons, figures, text)


def judge(
    tallies: Sequence[Tally],
    log_bounds: Sequence[float],
    accuracy: float = 0.01,
    *,
    marginals: bool = True,
    exact: bool = False,
) -> tuple[WeightedEstimate, Diagnostics]:
    """Return the estimates from the draws of several proposals, and the verdict on them.

    Parameters
    ----------
    tallies : sequence of Tally
        The draws, a tally for each proposal.
    log_bounds : sequence of float
        Upper bound of the log-weights of each proposal, infinite if none is known.
    accuracy : float
        The largest error of a marginal, or of the log-partition function, to be allowed.
    marginals : bool
        Whether marginals are asked for; otherwise log Z alone is judged by its error.
    exact : bool
        Draws are from the model itself, so that only rare states can be missed.

    Examples
    --------
    >>> from gibbsite.inference.importance.tally import add_block, make_tally
    >>> rng, tally = np.random.default_rng(1), make_tally(np.array([2]))
    >>> for group in range(16):
    ...     x = rng.integers(0, 2, (1, 8192), np.int32)
    ...     add_block(tally, group, x, np.log(1.0 + x[0]), np.zeros(8192))
    >>> found, verdict = judge([tally], [np.log(2.0)], 0.02)
    >>> verdict.converged, bool(abs(found.cells[1] - 2 / 3) < 0.01)
    (True, True)
    >>> judge([tally], [np.inf], 0.02)[1].converged
    False
    """
    each = [estimate(tally, exact) for tally in tallies]
    used = _worth_using(each, log_bounds, accuracy)
    found = combine([each[k] for k in used])
    if not found.positive:
        reason = (
            f"the weights of all {found.n_draws:,} draws are zero, so nothing is known; the evidence is "
            "impossible, or the proposal misses what it allows."
        )
        numbers = (math.inf, math.inf, math.nan, math.nan, math.nan, math.nan)
        known_of = (found.n_draws, 0, 0.0, math.nan, math.inf, *numbers, accuracy)
        return found, diagnose((reason,), dict(zip(FIGURES, known_of, strict=True)))
    known = [k for k in used if each[k].positive]
    gap, unseen = 0.0, MISSED / found.n_draws
    if not exact:
        gap = min(log_bounds[k] for k in known) - found.log_z
        unseen = _unseen([each[k] for k in known], [log_bounds[k] for k in known])
    groups = min(_groups_agree(tallies[k], each[k]) for k in known)
    sources = _sources_agree([one for one in each if one.positive])
    reasons = []
    if found.effective < LEAST_EFFECTIVE:
        reasons.append(
            f"the effective size of the weights is {found.effective:,.0f}, less than {LEAST_EFFECTIVE:,.0f}; "
            "draw more, or use another proposal."
        )
    if found.k > MOST_K and unseen > accuracy:  # unless the weights are bounded, and so have finite variance
        reasons.append(
            f"the tail of the weights is heavy (Pareto k {in_words(found.k, '.2f')}, more than {MOST_K:g}), "
            "so a few draws dominate; use another proposal."
        )
    if unseen > accuracy:
        reasons.append(_say_unseen(unseen, gap, accuracy))
    if found.largest > accuracy:
        reasons.append(
            f"one draw has {found.largest:.2g} of the total weight, more than {accuracy:g}; draw more, or "
            "use another proposal."
        )
    if groups < _DISAGREE:
        reasons.append(
            "groups of draws disagree by more than their errors, so these are too small; draw more, or use "
            "another proposal."
        )
    if sources < _DISAGREE:
        reasons.append(
            "proposals disagree by more than their errors, so at least one of them misses states; draw more."
        )
    worst = float(np.nanmax(found.errors, initial=0.0))
    if marginals and STANDARD_ERRORS * worst > accuracy:
        reasons.append(
            f"four standard errors are up to {STANDARD_ERRORS * worst:.2g}, more than the accuracy of "
            f"{accuracy:g}; draw more, or ask for less accuracy."
        )
    if not marginals and STANDARD_ERRORS * found.log_z_error > accuracy:
        reasons.append(
            f"four standard errors of log Z are {STANDARD_ERRORS * found.log_z_error:.2g}, more than the accuracy of "
            f"{accuracy:g}; draw more, or ask for less accuracy."
        )
    values = (
        *(found.n_draws, found.positive, found.effective, found.largest, found.k),
        *(gap, unseen, groups, sources, worst, found.log_z_error, accuracy),
    )
    return found, diagnose(tuple(reasons), dict(zip(FIGURES, values, strict=True)))


def _unseen(estimates: Sequence[WeightedEstimate], log_bounds: Sequence[float]) -> float:
    """Return the largest possible probability of states that were not drawn, for the average of the proposals."""
    found = combine(estimates)
    with np.errstate(over="ignore"):
        parts = [
            one.effective / found.effective * MISSED * np.exp(bound - found.log_z) / one.n_draws
            for one, bound in zip(estimates, log_bounds, strict=True)
        ]
    return float(sum(parts))


def _worth_using(estimates: Sequence[WeightedEstimate], log_bounds: Sequence[float], accuracy: float) -> list[int]:
    """Return the numbers of the proposals to average.

    The bound of the probability that was missed contains the bound of the weights of each proposal times its share. A
    proposal with a poor bound is left out if the others suffice; its agreement is still tested.
    """
    everything = list(range(len(estimates)))
    known = [k for k in everything if estimates[k].positive]
    if not known or _unseen([estimates[k] for k in known], [log_bounds[k] for k in known]) <= accuracy:
        return everything
    spoils = {
        k: log_bounds[k] - estimates[k].log_z + math.log(estimates[k].effective / estimates[k].n_draws) for k in known
    }
    least = min(spoils.values())
    good = [k for k in known if spoils[k] <= least + math.log(_SPOILS)]
    enough = good and _unseen([estimates[k] for k in good], [log_bounds[k] for k in good]) <= accuracy
    return good if enough else everything


def _say_unseen(unseen: float, gap: float, accuracy: float) -> str:
    """Return the sentence on relevant states that draws may have missed."""
    if math.isinf(gap):
        return (
            "no upper bound of the weights is known, so draws may have missed states of large weight; use a "
            "proposal that has one."
        )
    return (
        f"a draw may weigh exp({gap:.1f}) times as much as draws do on average, so states that were not "
        f"drawn may hold {'all' if unseen >= 1.0 else f'{unseen:.2g}'} of the probability, more than "
        f"{accuracy:g}; draw more, or use a proposal closer to the model."
    )


def _groups_agree(tally: Tally, whole: WeightedEstimate) -> float:
    """Return the p-value of the differences between groups, in log Z or in a marginal."""
    groups = estimate_groups(tally, whole)
    free = groups.z.size - 1
    if free < 1:
        return 1.0
    found = 1.0
    if whole.log_z_error > 1e-9:
        squared = float(((groups.z - groups.z.mean()) ** 2 / groups.z_variance).sum())
        found = _tail(squared, free)
    visits = np.minimum(whole.cells, 1.0 - whole.cells) * whole.effective / groups.z.size
    asked = np.flatnonzero(visits > _FEWEST_VISITS)
    if asked.size:
        apart = (groups.cells[:, asked] - whole.cells[asked]) ** 2 / groups.variances[:, asked]
        found = min(found, _tail(float(apart.sum(axis=0).max()), free) * asked.size)
    return min(found, 1.0)


def _sources_agree(estimates: Sequence[WeightedEstimate]) -> float:
    """Return the p-value of the differences between proposals."""
    found, pairs = 1.0, len(estimates) * (len(estimates) - 1) // 2
    for a, one in enumerate(estimates):
        for other in estimates[:a]:
            least = min(one.effective, other.effective)
            if least < LEAST_EFFECTIVE or max(one.k, other.k) > MOST_K:
                continue  # its errors are not known
            squared = (one.log_z - other.log_z) ** 2 / (one.log_z_error**2 + other.log_z_error**2 + 1e-18)
            found = min(found, _tail(squared, 1) * pairs)
            visits = np.minimum(one.cells, 1.0 - one.cells) * least
            asked = np.flatnonzero(visits > _FEWEST_VISITS)
            if asked.size:
                apart = (one.cells - other.cells)[asked] ** 2 / (one.errors**2 + other.errors**2)[asked]
                found = min(found, _tail(float(apart.max()), 1) * asked.size * pairs)
    return min(found, 1.0)


def _tail(squared: float, free: int) -> float:
    """Return the probability that a chi-squared variable with ``free`` degrees of freedom is larger."""
    from scipy.special import gammaincc

    return float(gammaincc(0.5 * free, 0.5 * squared)) if math.isfinite(squared) else 0.0
