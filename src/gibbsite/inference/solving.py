"""Answers by a single method, and best states of searches and runs."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, ConvergenceWarning
from gibbsite.inference.methods import is_stored, is_weighted
from gibbsite.kernels.protocols import Replicated, Selecting
from gibbsite.sampling.progress import choose_progress, inner_runs

if TYPE_CHECKING:
    from gibbsite.inference.best_states.found import RankedState, SearchResult
    from gibbsite.inference.importance import ImportanceProposal, LogZInterval, WeightedResult
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph
    from gibbsite.results.verdict.criteria import Criteria
    from gibbsite.sampling.length import Steps, Sweeps

# Share of a time limit for choosing among kernels, and the largest R-hat that is acceptable.
_PILOT_SHARE, _AGREE = 0.2, 1.1
_BOUND_SHARE = 0.05  # share of a time limit for a bound of log Z by mean field
_SEARCH_SHARE = 0.5  # share of a time limit for the search before a proof
# Largest number of best states that are counted exactly, and of sites of such models.
_MOST_COUNTED, _MOST_COUNTED_SITES = 1024, 2000


class Question(NamedTuple):
    """A question about a model: its task, budget, criteria, and the arguments of the method."""

    model: FactorGraph
    task: str
    seconds: float | None
    sweeps: int | Sweeps | Steps | None
    criteria: Criteria
    progress: Any
    run: dict[str, Any]


def solve(question: Question, method: str | Kernel | ImportanceProposal) -> Any:
    """Return the answer of a method, which judges itself by the task and the criteria."""
    model, task, seconds, sweeps, criteria, progress, run = question
    if method == "exact":
        from gibbsite.inference.exact import solve_exact

        return solve_exact(model, task=task)
    if is_weighted(method):
        return _draw_weighted(question, method)
    iterations: dict[str, Any] = {} if sweeps is None else {"max_iterations": sweeps}
    if method == "mean-field":
        from gibbsite.inference.mean_field import mean_field

        return replace(mean_field(model, seconds=seconds, progress=progress, **iterations, **run), task=task)
    if method == "bp":
        from gibbsite.inference.belief import belief_propagation

        messages = _read_messages(run, task)
        beliefs = belief_propagation(model, seconds=seconds, progress=progress, **iterations, **messages)
        return replace(beliefs, task=task)
    from gibbsite.inference.sampling import sample
    from gibbsite.kernels.registry import make_kernel
    from gibbsite.models.tempered import temper

    kernel: Any = make_kernel(method) if isinstance(method, str) else method
    if seconds is not None:
        begun = time.monotonic()
        kernel = _best_candidate(model, kernel, seconds, run)
        seconds = max(seconds - (time.monotonic() - begun), seconds * (1.0 - _PILOT_SHARE))
    run = {"record": "best", **run} if task == "MAP" else run
    judged_by = criteria if task == "MAR" else replace(criteria, accuracy=None)
    cooling = _cooling(model, kernel) if task == "MAP" else 1.0
    sampled = model if cooling == 1.0 else temper(model, cooling)
    budget: dict[str, Any] = {"sweeps": sweeps, "seconds": seconds}
    drawn = sample(sampled, kernel, criteria=judged_by, progress=progress, **budget, **run)
    if cooling != 1.0:  # report log-potentials of the original model
        drawn = replace(drawn, _bests=drawn._bests / cooling)
    return drawn._judged(task=task, accuracy=criteria.accuracy)


def _cooling(model: FactorGraph, kernel: Kernel) -> float:
    """Return the inverse temperature at which replicas that cross between modes look for the best state.

    The best states may be rare at the temperature of the model. The last rung is at the temperature at which the model
    freezes, if that is lower.
    """
    from gibbsite.graphs.graph import compile_graph
    from gibbsite.kernels.gibbs.temperature import temperature_range
    from gibbsite.models import FactorGraph

    if not isinstance(kernel, Replicated) or not isinstance(model, FactorGraph):
        return 1.0
    return max(1.0, 1.0 / temperature_range(compile_graph(model)).cold)


def bound_below(model: FactorGraph, seconds: float | None) -> tuple[float, float | None]:
    """Return the lower bound of log Z by mean field, and the time that is left."""
    from gibbsite.inference.mean_field import mean_field

    begun = time.monotonic()
    with inner_runs():  # any product distribution is a bound, converged or not
        law = mean_field(model, seconds=None if seconds is None else _BOUND_SHARE * seconds, progress=False)
    taken = min(time.monotonic() - begun, _BOUND_SHARE * (seconds or 0.0))
    return float(law.log_z), None if seconds is None else seconds - taken


def _draw_weighted(question: Question, method: Any) -> WeightedResult | LogZInterval:
    """Draw until the draws converge or, for log Z, whose bounds keep improving, until the budget is used up."""
    from gibbsite.inference.importance import bound_log_z, sample_weighted
    from gibbsite.inference.importance.base import make_proposal

    proposal = make_proposal(method) if isinstance(method, str) else method
    model, run = question.model, question.run
    how = {"seconds": question.seconds, "criteria": question.criteria, "progress": question.progress, **run}
    if question.task == "PR":
        return bound_log_z(model, proposal=proposal, **how)
    return sample_weighted(model, proposal, stop_early=run.get("draws") is None, **how)


def _best_candidate(model: FactorGraph, kernel: Kernel, seconds: float, run: dict[str, Any]) -> Kernel:
    """Return the best of the candidates of a kernel for a model, compared in short runs.

    Effective draws per second decide among candidates whose chains agree. If none do, the largest and the average
    disagreement about a marginal decide, because chains that never move agree on most marginals.
    """
    from gibbsite.graphs.graph import compile_graph
    from gibbsite.inference.sampling import try_out

    candidates = (
        kernel.candidates(compile_graph(model, among=kernel.kinds)) if isinstance(kernel, Selecting) else (kernel,)
    )
    if len(candidates) == 1 or run.get("checkpoint") is not None or run.get("scan") is not None:
        return candidates[0] if len(candidates) == 1 else kernel
    turn = _PILOT_SHARE * seconds / len(candidates)
    given = {name: run[name] for name in ("chains", "rng", "threads", "start") if name in run}
    scores = []
    for one in candidates:
        found = try_out(model, one, seconds=turn, **given)
        seen = found.diagnostics
        agree = seen.rhat_max is not None and seen.rhat_max <= _AGREE
        spread = found.numbers.spread
        apart = 0.0 if agree else float(spread.max() + spread.mean())
        scores.append((-apart, (seen.ess_min or 0.0) / found.seconds))
    return candidates[scores.index(max(scores))]


def _read_messages(run: dict[str, Any], task: str) -> dict[str, Any]:
    """Return the arguments of belief propagation: kind "max" for a most probable state, otherwise sums."""
    kind = run.get("kind", "max" if task == "MAP" else "sum")
    if (kind == "max") != (task == "MAP"):
        raise ArgumentError(
            f"{argument('kind', kind)} does not answer {task}; leave it out, or ask for "
            f"{argument('task', 'MAP' if kind == 'max' else 'MAR')}."
        )
    return {**run, "kind": kind}


def count_ties(model: FactorGraph, found: Any) -> dict[str, Any] | None:
    """Return the number of states that are as good as the best one, as far as it is known."""
    from gibbsite.inference.best_states.found import SearchResult
    from gibbsite.inference.exact import ExactResult

    if isinstance(found, SearchResult):
        return {"count": found.ties, "complete": False, "how": "seen"}
    if not isinstance(found, ExactResult) or model.n_sites > _MOST_COUNTED_SITES:
        return None
    many = 2
    while True:
        levels = [float(model.log_potential(codes)) for codes in found.rank(many)]
        count = sum(level >= levels[0] - 1e-9 * (1.0 + abs(levels[0])) for level in levels)
        if count < many or many >= _MOST_COUNTED:
            return {"count": count, "complete": count < many, "how": "counted"}
        many = min(many * 8, _MOST_COUNTED)


def prove(question: Question) -> SearchResult:
    """Look for the best state with half of the time, then run toulbar2 to prove that there is no better one."""
    from gibbsite.inference.best_states.proved import check_toulbar, prove_best
    from gibbsite.inference.best_states.search import search_best

    check_toulbar()
    begun, seconds, progress = time.monotonic(), question.seconds, question.progress
    budget: dict[str, Any] = {
        "sweeps": question.sweeps,
        "seconds": None if seconds is None else _SEARCH_SHARE * seconds,
    }
    found = search_best(question.model, progress=progress, until_sure=True, **budget, **question.run)
    left = math.inf if seconds is None else max(seconds - (time.monotonic() - begun), 1.0)
    if found.interrupted:
        left = 0.0
    show = choose_progress(progress)
    try:
        proof = prove_best(question.model, found.assignment_codes, seconds=left, show=show) if left > 0.0 else None
    finally:
        show.close()
    return replace(found, proof="interrupted before the proof began" if proof is None else proof)


def search(question: Question, best: int, until_sure: bool) -> SearchResult:
    """Look for the best states by annealing."""
    from gibbsite.inference.best_states.search import search_best

    how = {"sweeps": question.sweeps, "seconds": question.seconds, "progress": question.progress, **question.run}
    found = search_best(question.model, best=best, until_sure=until_sure, **how)
    if found.reasons:
        warn_user(f"The search has not converged: {found.reasons[0]}", ConvergenceWarning)
    return found


def best_states(model: FactorGraph, found: Any, best: int) -> tuple[RankedState, ...]:
    """Return the best states of a result, by name and label, with their log-potentials.

    The best state that a sampling run has seen is improved by hill climbing first.
    """
    from gibbsite.inference.belief import BeliefResult
    from gibbsite.inference.best_states.found import Assignment, RankedState, SearchResult
    from gibbsite.inference.exact import ExactResult

    if isinstance(found, SearchResult):
        return found.ranked if found.proven is None else (RankedState(found.assignment, found.log_potential),)
    if isinstance(found, ExactResult):
        if best == 1:
            return (RankedState(found.assignment, found.log_potential),)
        rows, chains = [*found.rank(best)], None
    else:
        from gibbsite.sampling.climb import climb

        rows = [climb(model, found.assignment_codes)]
        chains = None if isinstance(found, BeliefResult) else found.diagnostics.found
    ranked = []
    for codes in rows:
        named = Assignment(model.domains, codes)
        ranked.append(
            RankedState(
                named if is_stored(model) else {**named, **model.evidence}, float(model.log_potential(codes)), chains
            )
        )
    return tuple(ranked)
