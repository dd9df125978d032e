"""Methods one after the other, until one converges and a second agrees."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from gibbsite._common.wording import Text
from gibbsite._numba.clock import clock
from gibbsite.errors import ConvergenceWarning, GibbsiteError
from gibbsite.inference.choosing import Attempt, plan_attempts
from gibbsite.inference.methods import is_weighted
from gibbsite.inference.solving import solve
from gibbsite.results.verdict.criteria import STANDARD_ERRORS

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.results.answer import Diagnostics
    from gibbsite.results.verdict.convergence import Check
    from gibbsite.results.verdict.criteria import Criteria

# Share of a time limit that a check may take, if the answer itself has taken less.
_CHECK_SHARE = 0.2
# Share that has to be left for another method to be tried.
_LEAST_SHARE = 0.05
_HEAVY_TAIL = 0.7  # of weights: from this Pareto k on, their errors mean nothing


class Tried(NamedTuple):
    """An attempt and its answer."""

    attempt: Attempt
    found: Any

    @property
    def verdict(self) -> Diagnostics:
        """How far to trust the answer."""
        return self.found.diagnostics  # type: ignore[no-any-return]


def try_in_turn(
    model: FactorGraph,
    task: str,
    reason: str,
    seconds: float | None,
    criteria: Criteria,
    progress: Any,
    run: dict[str, Any],
) -> tuple[str, str, Any, tuple[float, float] | None]:
    """Try the methods of :func:`plan_attempts` until one converges; if none does, take the least uncertain.

    Bounds of log Z that a method has found hold whichever is taken. Marginals from chains are checked by the
    next method where time is left: what speaks for chains is that they agree, while weighted draws are
    judged by what they can have missed.
    """
    assert seconds is not None  # there is a default
    attempts, begun = plan_attempts(model, task), clock()
    tried: list[Tried] = []
    others: list[str] = []

    def answer(attempt: Attempt, limit: float) -> Tried:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # another method may follow
            return Tried(attempt, solve(model, task, attempt.method, limit, None, criteria, progress, run))

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
                with suppress(GibbsiteError):  # what cannot take the model says nothing about the answer
                    second = answer(attempts[number], limit)
                    stopped = one.found.interrupted or second.found.interrupted
                    found = one.found.judged(check=compare_answers(one, second, criteria.query), interrupted=stopped)
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
        warnings.warn(said, ConvergenceWarning, stacklevel=3)
    bounds: tuple[float, float] | None = None
    for one in tried:
        bounds = one.found.log_z_bounds or bounds
    said = reason.marked if isinstance(reason, Text) else reason
    return chosen.attempt.method, Text(said + why), chosen.found, bounds


def uncertainty(one: Tried, task: str) -> float:
    """Return how far off an answer may be by what its own method says, at most 1 for marginals.

    Errors of weighted draws mean nothing where the tail of the weights is heavy; the share of what was not
    drawn, which is a bound and mostly far too large, counts there.
    """
    numbers = one.verdict.figures
    missed = float(numbers["unseen"]) if numbers.get("pareto_k", 0.0) > _HEAVY_TAIL else 0.0
    worst = max(STANDARD_ERRORS * standard_error(one, task), missed)
    return min(worst, math.inf if task == "PR" else 1.0)


def standard_error(one: Tried, task: str) -> float:
    """Return the largest standard error that a method gives, infinite if none; it decides between equals."""
    error = one.found.log_z_error if task == "PR" else one.verdict.figures.get("mcse_max")
    return float(error) if error is not None and math.isfinite(error) else math.inf


def needs_check(one: Tried) -> bool:
    """Whether a second method has to look at an answer: not where draws were independent."""
    if is_weighted(one.attempt.method):
        return False
    from gibbsite.results.verdict.convergence import WITHOUT_LOOK

    return getattr(one.found, "look", None) not in WITHOUT_LOOK


def compare_answers(first: Tried, second: Tried, query: Iterable[Any] | None = None) -> Check:
    """Compare marginals with those of a second method: all of them, or those of the sites asked for.

    Two answers that were both called converged differ by at most twice the accuracy; otherwise one of them is
    wrong, and neither can be relied upon.
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
