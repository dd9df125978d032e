"""Answers for models that cannot be solved exactly, by trying methods until one converges and a second agrees.

Every method judges its own answer, and the first that converges is taken. Forward draws come first if the factors are
those of a Bayesian network. Mini-buckets come early if there are many zeros, which trap chains. One block of all sites
comes before single-site chains if its tables are small. Replica exchange comes last, because it crosses between modes.
Blocks of some of the sites are not tried: their draws are as correlated as those of single sites if couplings are
strong, and cost more if they are weak.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from gibbsite._common.notice import warn_user
from gibbsite._common.wording import Text
from gibbsite._numba.jit import clock
from gibbsite.errors import ConvergenceWarning, GibbsiteError
from gibbsite.inference.methods import is_weighted
from gibbsite.inference.solving import Question, solve
from gibbsite.models.networks.expansion import has_causes
from gibbsite.results.verdict.criteria import STANDARD_ERRORS

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.results.answer import Diagnostics
    from gibbsite.results.verdict.convergence import Check

_CHECK_SHARE = 0.2  # share of a time limit that a check may take, even if the answer itself took less
_LEAST_SHARE = 0.05  # another method is tried only if this share of a time limit is left
_HEAVY_TAIL = 0.7  # errors of weighted draws are unreliable if Pareto k is larger


_MOST_SITES = 20_000  # larger models are only sampled by single sites, because preparing other methods takes long
_MANY_ZEROS = 0.1  # single sites come later if a larger share of the factors of several sites has zeros
_WHOLE_ENTRIES = (
    2.0**21
)  # largest number of entries of all tables of a block of all sites, which is then drawn in about 0.03 seconds


class Attempt(NamedTuple):
    """A method, the share of the remaining time that it may take, and the reason for trying it."""

    method: str
    share: float
    why: str


def plan_attempts(model: FactorGraph, task: str = "MAR") -> tuple[Attempt, ...]:
    """Return the methods to try in turn for marginals, or for log Z (PR).

    Examples
    --------
    >>> import gibbsite as gs
    >>> [attempt.method for attempt in plan_attempts(gs.ising_grid((30, 30), coupling=0.3))]
    ['gibbs', 'mini-bucket', 'tempered']
    """
    last = Attempt("tempered", 1.0, "several modes are possible")
    if model.n_sites > _MOST_SITES or has_causes(model):
        return (last if task == "PR" else Attempt("gibbs", 1.0, "large"),)
    if task == "PR":
        return Attempt("mini-bucket", 0.5, "bounds come with it"), last
    from gibbsite.inference.exact.plan import outline

    network = [Attempt("forward", 0.3, "a Bayesian network")] if _is_network(model) else []
    fits = outline(model).order.total <= _WHOLE_ENTRIES  # mini-buckets need the elimination order, too
    whole = [Attempt("blocks", 0.5, "all sites are drawn at once")] if fits else []
    if _share_with_zeros(model) >= _MANY_ZEROS:
        others = [Attempt("mini-bucket", 0.85, "many zeros"), *whole, Attempt("gibbs", 0.3, "single sites")]
    else:
        single = Attempt("gibbs", 0.3, "single sites")
        others = [*whole, single, Attempt("mini-bucket", 0.7, "independent draws")]
    return *network, *others, last


def _is_network(model: FactorGraph) -> bool:
    from gibbsite.errors import ModelError
    from gibbsite.inference.importance.network import find_network

    try:
        find_network(model)
    except ModelError:
        return False
    return True


def _share_with_zeros(model: FactorGraph) -> float:
    """Return the share of the factors of several sites that have zeros."""
    import numpy as np

    from gibbsite.models import TableFactors

    having = several = 0
    for group in model.groups:
        if group.arity > 1:
            several += group.size
            if isinstance(group, TableFactors):
                entries = group.log_tables(model.cards).reshape(group.size, -1)
                having += int(np.isneginf(entries).any(axis=1).sum())
    return having / max(several, 1)


class Tried(NamedTuple):
    """An attempt and its answer."""

    attempt: Attempt
    found: Any

    @property
    def verdict(self) -> Diagnostics:
        """How far to trust the answer."""
        return self.found.diagnostics  # type: ignore[no-any-return]


def try_in_turn(question: Question, reason: str) -> tuple[str, str, Any, tuple[float, float] | None]:
    """Try the methods of :func:`plan_attempts` until one converges; if none does, take the least uncertain.

    Returns the method, the reason for it, its answer, and bounds of log Z, which hold whichever method found them.
    Marginals from chains are checked by the next method if time is left, because chains are judged by their agreement
    alone; weighted draws are judged by the probability that they may have missed.
    """
    task, seconds = question.task, question.seconds
    assert seconds is not None  # there is a default
    attempts, begun = plan_attempts(question.model, task), clock()
    tried: list[Tried] = []
    others: list[str] = []

    def answer(attempt: Attempt, limit: float) -> Tried:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the next method may converge
            return Tried(attempt, solve(question._replace(seconds=limit), attempt.method))

    for number, attempt in enumerate(attempts, 1):
        before = clock()
        left = seconds - (before - begun)
        if tried and left < _LEAST_SHARE * seconds:
            break
        try:
            one = answer(attempt, attempt.share * max(left, _LEAST_SHARE * seconds))
        except GibbsiteError:
            if number == len(attempts) and not tried:
                raise
            others.append(attempt.method)
            continue
        tried.append(one)
        if one.found.interrupted:
            break
        if not one.verdict.reasons:
            now = clock()
            limit = min(seconds - (now - begun), max(now - before, _CHECK_SHARE * seconds))
            if task == "MAR" and number < len(attempts) and needs_check(one) and limit > 0.0:
                with suppress(GibbsiteError):  # a method that does not apply to the model does not affect the answer
                    second = answer(attempts[number], limit)
                    stopped = one.found.interrupted or second.found.interrupted
                    query = question.criteria.query
                    found = one.found._judged(check=compare_answers(one, second, query), interrupted=stopped)
                    tried[-1] = Tried(attempt, found)
            break
        others.append(attempt.method)
    chosen = tried[-1]
    if chosen.verdict.reasons and chosen.attempt.method in others:
        chosen = min(reversed(tried), key=lambda one: (uncertainty(one, task), standard_error(one, task)))
        others.remove(chosen.attempt.method)
    word = "the least uncertain after" if chosen.verdict.reasons else "after"
    before_it = f", {word} {' and '.join(others)} did not converge" if others else ""
    why = f"; {chosen.attempt.why}{before_it}" if len(attempts) > 1 else ""
    if chosen.verdict.reasons:
        said = f"The answer has not converged: {chosen.verdict.reasons[0]}"
        warn_user(said, ConvergenceWarning)
    bounds: tuple[float, float] | None = None
    for one in tried:
        bounds = one.found.log_z_bounds or bounds
    said = reason.marked if isinstance(reason, Text) else reason
    return chosen.attempt.method, Text(said + why), chosen.found, bounds


def uncertainty(one: Tried, task: str) -> float:
    """Return the largest error of an answer according to its own method, at most 1 for marginals.

    If the tail of weights is heavy, their errors are unreliable, and the largest possible probability of states that
    were not drawn is returned.
    """
    numbers = one.verdict.figures
    missed = float(numbers["unseen"]) if numbers.get("pareto_k", 0.0) > _HEAVY_TAIL else 0.0
    worst = max(STANDARD_ERRORS * standard_error(one, task), missed)
    return min(worst, math.inf if task == "PR" else 1.0)


def standard_error(one: Tried, task: str) -> float:
    """Return the largest standard error of an answer, by which ties are broken; infinite if it is not known."""
    error = one.found.log_z_error if task == "PR" else one.verdict.figures.get("mcse_max")
    return float(error) if error is not None and math.isfinite(error) else math.inf


def needs_check(one: Tried) -> bool:
    """Tell whether a second method has to check an answer, which is not needed if draws are independent."""
    if is_weighted(one.attempt.method):
        return False
    from gibbsite.results.verdict.convergence import UNCHECKED

    return getattr(one.found, "_start_check", None) not in UNCHECKED


def compare_answers(first: Tried, second: Tried, query: Iterable[Any] | None = None) -> Check:
    """Compare marginals with those of a second method: all of them, or those of the sites asked for.

    Two converged answers differ by at most twice the accuracy; otherwise one of them is wrong, and neither is reliable.
    """
    from gibbsite.results import compare
    from gibbsite.results.verdict.convergence import Check

    methods = first.attempt.method, second.attempt.method
    if second.verdict.reasons:
        return Check(*methods, None)
    one, other = first.found.marginals, second.found.marginals
    if query is None:
        return Check(*methods, float(compare(one, other).max_abs))
    gaps = (abs(p - other[site][state]) for site in query for state, p in one[site].items())
    return Check(*methods, max(gaps, default=0.0))
