"""One method and its answer."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.inference.methods import is_weighted
from gibbsite.kernels.protocols import Replicated, Selecting

if TYPE_CHECKING:
    from gibbsite.inference.importance import ImportanceProposal, LogZInterval, WeightedResult
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph
    from gibbsite.results.verdict.criteria import Criteria
    from gibbsite.sampling.length import Steps, Sweeps

# Share of a time limit for finding out which of several kernels is best; an R-hat that is good enough then.
_PILOT_SHARE, _AGREE = 0.2, 1.1
# Share of it for a bound of log Z by mean field.
_BOUND_SHARE = 0.05


def solve(
    model: FactorGraph,
    task: str,
    method: str | Kernel | ImportanceProposal,
    seconds: float | None,
    sweeps: int | Sweeps | Steps | None,
    criteria: Criteria,
    progress: Any,
    run: dict[str, Any],
) -> Any:
    """Return the answer of a method, which judges itself by the task and the criteria."""
    if method == "exact":
        from gibbsite.inference.exact import solve_exact

        return solve_exact(model, task=task)
    if method == "mean-field":
        from gibbsite.inference.mean_field import mean_field

        budget: dict[str, Any] = {} if sweeps is None else {"max_iterations": sweeps}
        return replace(mean_field(model, seconds=seconds, progress=progress, **budget, **run), task=task)
    if is_weighted(method):
        return _draw_weighted(model, task, method, seconds, criteria, progress, run)
    if method == "bp":
        from gibbsite.inference.belief import belief_propagation

        budget = {} if sweeps is None else {"max_iterations": sweeps}
        beliefs = belief_propagation(model, seconds=seconds, progress=progress, **budget, **_read_messages(run, task))
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
    budget = {"sweeps": sweeps, "seconds": seconds}
    drawn = sample(sampled, kernel, criteria=judged_by, progress=progress, **budget, **run)
    if cooling != 1.0:  # log-potentials are those of the model that was asked about
        drawn = replace(drawn, bests=drawn.bests / cooling)
    return drawn.judged(task=task, accuracy=criteria.accuracy)


def _cooling(model: FactorGraph, kernel: Kernel) -> float:
    """Return the inverse temperature at which replicas that cross between modes look for the best state.

    At the temperature of the model itself its best states may be rare. The last rung is at the temperature at
    which the model freezes, where that is lower.
    """
    from gibbsite.graphs.compile import compile_graph
    from gibbsite.kernels.gibbs.temperature import temperature_range
    from gibbsite.models import FactorGraph

    if not isinstance(kernel, Replicated) or not isinstance(model, FactorGraph):
        return 1.0
    return max(1.0, 1.0 / temperature_range(compile_graph(model)).cold)


def bound_below(model: FactorGraph, seconds: float | None) -> tuple[float, float | None]:
    """Return the lower bound of log Z by mean field, and what is left of the time."""
    import warnings

    from gibbsite.errors import ConvergenceWarning
    from gibbsite.inference.mean_field import mean_field
    from gibbsite.sampling.progress import whole_runs_only

    begun = time.monotonic()
    with warnings.catch_warnings(), whole_runs_only():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any product law is a bound
        law = mean_field(model, seconds=None if seconds is None else _BOUND_SHARE * seconds, progress=False)
    taken = min(time.monotonic() - begun, _BOUND_SHARE * (seconds or 0.0))
    return float(law.log_z), None if seconds is None else seconds - taken


def _draw_weighted(
    model: FactorGraph,
    task: str,
    method: Any,
    seconds: float | None,
    criteria: Criteria,
    progress: Any,
    run: dict[str, Any],
) -> WeightedResult | LogZInterval:
    """Draw from a proposal until the draws converge or the budget is used.

    For the log-partition function the whole budget is used: bounds become closer all the time.
    """
    from gibbsite.inference.importance import bound_log_z, sample_weighted
    from gibbsite.inference.importance.registry import make_proposal

    proposal = make_proposal(method) if isinstance(method, str) else method
    how = {"proposal": proposal, "seconds": seconds, "criteria": criteria, "progress": progress, **run}
    drawn: WeightedResult | LogZInterval
    if task == "PR":
        drawn = bound_log_z(model, **how)
    else:
        drawn = sample_weighted(model, stop_early=run.get("draws") is None, **how)
    return drawn


def _best_candidate(model: FactorGraph, kernel: Kernel, seconds: float, run: dict[str, Any]) -> Kernel:
    """Return what a kernel stands for on a model: of several, the best in short runs.

    Where chains of several candidates agree, effective draws per second decide; where none do, the largest
    disagreement of chains about a marginal, and the average one: chains that never move agree on most.
    """
    from gibbsite.graphs.compile import compile_graph
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
    """Return the arguments of belief propagation: maxima are for a most probable state, sums for the rest."""
    kind = run.get("kind", "max" if task == "MAP" else "sum")
    if (kind == "max") != (task == "MAP"):
        raise ArgumentError(
            f"{argument('kind', kind)} does not answer {task}; leave it out, or ask for "
            f"{argument('task', 'MAP' if kind == 'max' else 'MAR')}."
        )
    return {**run, "kind": kind}
