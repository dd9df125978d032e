"""``gibbsite.log_z.bound_log_z``, which finds certain bounds of log Z and a narrower interval of given confidence.

Lower bounds are mean field of single sites and of trees, and in models without zeros mini-buckets with negative
weights. Upper bounds are mini-buckets, or the bound of the weights of another proposal, and tree-reweighted messages,
converged or not. The best bound on each side is taken. Between them, n weights with mean Z and upper bound U give

* Markov's inequality: Z is at least delta times their mean with probability 1 - delta,
* Hoeffding's: Z is at most their mean plus U sqrt(log(1 / delta) / 2n),
* the empirical Bernstein inequality of Maurer and Pontil [1]_: the error of Z is at most
  sqrt(2 v log(2 / delta) / n) + 7 U log(2 / delta) / 3(n - 1) on either side, v being the sample variance,

as in the sampling bounds of [2]_. Each of the four inequalities gets a quarter of the probability with which the
interval may fail.

References
----------
.. [1] Maurer, A. and Pontil, M. (2009). Empirical Bernstein bounds and sample variance penalization. COLT.
.. [2] Lou, Q., Dechter, R. and Ihler, A. (2017). Dynamic importance sampling for anytime bounds of the partition
   function. NIPS.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_seconds, check_share, checked
from gibbsite._numba.jit import clock
from gibbsite.errors import ConvergenceWarning
from gibbsite.inference.belief import belief_propagation
from gibbsite.inference.exact.plan import Outline, outline
from gibbsite.inference.importance.base import ImportanceProposal
from gibbsite.inference.importance.mini_buckets.buckets import largest_table, plan_buckets
from gibbsite.inference.importance.mini_buckets.proposal import MiniBucket, pass_upwards
from gibbsite.inference.importance.mini_buckets.weighted_sum import fill_pool
from gibbsite.inference.importance.run import sample_weighted
from gibbsite.inference.mean_field import mean_field
from gibbsite.inference.mean_field.trees import bound_by_trees
from gibbsite.models.networks.expansion import expand
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.verdict.criteria import Criteria
from gibbsite.results.wording import in_words
from gibbsite.sampling.progress import inner_runs

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

# Shares of the time for mean field, mean field of trees, messages, and all lower bounds.
_MEAN_FIELD_SHARE, _TREES_SHARE, _MESSAGES_SHARE, _BELOW_SHARE = 0.03, 0.05, 0.05, 0.12
_MOST_SITES = 10_000  # for trees, which are solved in plain NumPy
_NEGATIVE = (0.1, 0.5)  # minus the weights of all mini-buckets of a bucket but the first
_FIRST, _FACTOR, _MOST = 1 << 10, 16, 1 << 22  # entries of mini-buckets: first, growth factor, largest
_QUARTERS = 4.0
_DAMPING = 0.5  # damping of messages, which makes convergence more frequent


@dataclass(frozen=True, eq=False, repr=False)
class LogZInterval(Answer):
    """Bounds, a probable interval and an estimate of the log-partition function.

    Attributes
    ----------
    lower, upper : float
        Bounds that are certain.
    probable : tuple of float
        An interval within the bounds that holds log Z with probability of at least ``confidence``.
    confidence : float
        That probability.
    log_z, log_z_error : float
        Estimate from weighted draws, and its standard error; zero if log Z is known.
    lower_by, upper_by : str
        Methods that gave the bounds.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((6, 6), coupling=0.4, field=0.1)
    >>> found = gs.log_z.bound_log_z(model, draws=10_000, rng=1, progress=False)
    >>> found.lower <= gs.solve_exact(model).log_z <= found.upper + 1e-9
    True
    """

    model: FactorGraph
    lower: float
    upper: float
    probable: tuple[float, float]
    confidence: float
    log_z: float = field()
    log_z_error: float = field()
    lower_by: str
    upper_by: str
    diagnostics: Diagnostics = field()
    plan: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = float("nan")

    @property
    def log_z_bounds(self) -> tuple[float, float]:
        """The bounds that are certain."""
        return self.lower, self.upper

    def line(self) -> str:
        """Return estimate, intervals and verdict in one line."""
        low, high = (in_words(bound, ".6g") for bound in self.probable)
        word, _, figures = self.diagnostics.text.partition(": ")
        return (
            f"{word}: between {in_words(self.lower, '.6g')} ({self.lower_by}) and "
            f"{in_words(self.upper, '.6g')} ({self.upper_by}), with probability {self.confidence:g} between "
            f"{low} and {high}; {figures}"
        )

    def __repr__(self) -> str:
        return f"LogZInterval({in_words(self.lower, '.6g')} <= log Z <= {in_words(self.upper, '.6g')})"


@checked
def bound_log_z(
    model: FactorGraph,
    *,
    seconds: float | None = None,
    draws: int | None = None,
    confidence: float = 0.95,
    proposal: ImportanceProposal | None = None,
    criteria: Criteria | None = None,
    rng: Any = None,
    threads: int | None = None,
    progress: Any = None,
) -> LogZInterval:
    """Bound the log-partition function from both sides, as tightly as time allows.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    seconds : float, optional
        Time limit; 10 seconds by default, if no number of draws is given either.
    draws : int, optional
        Number of weighted draws.
    confidence : float
        Probability with which the narrower interval holds log Z.
    proposal : ImportanceProposal, optional
        The proposal, ``gs.importance.MiniBucket()`` by default.
    criteria : Criteria, optional
        The accuracy is the error of log Z, 0.01 by default, below which its estimate has converged.
    rng, threads, progress : optional
        As in :func:`gibbsite.sample_weighted`.

    Returns
    -------
    LogZInterval

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    SupportError
        If no state has positive probability.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((12, 12), coupling=0.3, field=0.1)
    >>> small = gs.importance.MiniBucket(entries=256)
    >>> found = gs.log_z.bound_log_z(model, proposal=small, draws=20_000, rng=1, progress=False)
    >>> exact = gs.solve_exact(model).log_z
    >>> found.lower < found.probable[0] < exact < found.probable[1] < found.upper
    True
    """
    confidence = check_share("confidence", confidence)
    if seconds is None and draws is None:
        seconds = 10.0
    limit = check_seconds(seconds)
    begun = clock()
    model = expand(model)
    found = outline(model)
    most = getattr(proposal, "entries", None) or _MOST
    lower, lower_by = _bound_below(model, found, limit, begun, min(most, _MOST))
    messages = _bound_above(model, limit)
    left = None if seconds is None else max(limit - (clock() - begun), 0.5 * limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the intervals are valid even so
        drawn = sample_weighted(
            model,
            MiniBucket() if proposal is None else proposal,
            seconds=left,
            draws=draws,
            criteria=criteria,
            marginals=False,
            rng=rng,
            threads=threads,
            progress=progress,
        )
    best = min(drawn.sources, key=lambda one: float(one["log_bound"]))
    upper, upper_by = float(best["log_bound"]), str(best["name"])
    above, above_by = messages
    last = drawn.sources[-1]
    exact = bool(best.get("splits") == 0)
    if above < upper and not exact:
        upper, upper_by = above, above_by
    if exact and upper > lower:
        lower, lower_by = upper, upper_by
    # rounding must not swap the ends
    lower = min(lower, upper)
    low, high = _probable(last, 1.0 - confidence)
    return LogZInterval(
        model=model,
        lower=lower,
        upper=upper,
        probable=(min(max(low, lower), upper), max(min(high, upper), lower)),
        confidence=confidence,
        log_z=upper if exact else drawn.log_z,
        log_z_error=0.0 if exact else drawn.log_z_error,
        lower_by=lower_by,
        upper_by=upper_by,
        diagnostics=drawn.diagnostics,
        plan=drawn.plan,
        interrupted=drawn.interrupted,
        seconds=clock() - begun,
    )


def _bound_below(model: FactorGraph, found: Outline, limit: float, begun: float, most: int) -> tuple[float, str]:
    """Return the best lower bound within a share of the time, and the method that gave it."""
    share = None if math.isinf(limit) else _MEAN_FIELD_SHARE * limit
    with inner_runs():  # any product distribution is a bound, converged or not
        law = mean_field(model, progress=False, rng=0, seconds=share)
    lower, lower_by = float(law.log_z), "mean field"
    if model.n_sites <= _MOST_SITES:
        trees = bound_by_trees(model, law.marginals, _TREES_SHARE * limit)
        if trees > lower:
            lower, lower_by = trees, "mean field of trees"
    problem = found.reduction.problem
    entries = max(min(_FIRST, most), largest_table(found))
    while not np.isneginf(problem.value).any():
        plan = plan_buckets(found, entries)
        before = clock()
        for negative in _NEGATIVE:
            pool = fill_pool(plan, problem)
            bound = pass_upwards(plan, pool, negative)
            assert bound is not None
            if bound + found.reduction.log_constant > lower:
                lower, lower_by = bound + found.reduction.log_constant, "mini-buckets"
        taken = _FACTOR * (clock() - before)
        entries *= _FACTOR
        late = math.isfinite(limit) and clock() - begun + taken > _BELOW_SHARE * limit
        if not plan.splits or entries > most or late:
            break
    return lower, lower_by


def _bound_above(model: FactorGraph, limit: float) -> tuple[float, str]:
    """Return the upper bound by messages, and its name."""
    share = None if math.isinf(limit) else _MESSAGES_SHARE * limit
    with inner_runs():  # any messages are a bound, converged or not
        found = belief_propagation(model, kind="tree-reweighted", damping=_DAMPING, progress=False, seconds=share)
    return float(found.log_z), "tree-reweighted messages"


def _probable(source: dict[str, Any], fails: float) -> tuple[float, float]:
    """Return an interval that holds log Z except for a small probability, from the weights of one proposal."""
    n, log_mean, log_top = int(source["draws"]), float(source["log_z"]), float(source["log_bound"])
    each = fails / _QUARTERS
    effective = float(source["effective"])
    low, high = -math.inf, math.inf
    if log_mean > -math.inf:
        low = log_mean + math.log(each)  # Markov
    if n < 2 or math.isinf(log_top):
        return low, high
    # in units of the upper bound of the weights; the variance follows from the effective size
    mean = math.exp(log_mean - log_top) if log_mean > -math.inf else 0.0
    variance = mean * mean * max(n / effective - 1.0, 0.0) * n / (n - 1) if effective > 0.0 else 0.0
    log_two = math.log(2.0 / each)
    off = math.sqrt(2.0 * variance * log_two / n) + 7.0 * log_two / (3.0 * (n - 1))
    if mean > off:
        low = max(low, log_top + math.log(mean - off))
    above = min(off, math.sqrt(-math.log(each) / (2.0 * n)))
    return low, log_top + math.log(mean + above)
