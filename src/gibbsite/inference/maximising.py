"""Best states: found by a search or by any run, proved, counted."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gibbsite.inference.arguments import is_stored

if TYPE_CHECKING:
    from gibbsite.inference.best_states.found import RankedState, SearchResult
    from gibbsite.models import FactorGraph

_SEARCH_SHARE = 0.5  # of a time limit, for the search before a proof
_MOST_COUNTED, _MOST_COUNTED_SITES = 1024, 2000  # best states that are counted exactly, and sites then


def count_ties(model: FactorGraph, found: Any) -> dict[str, Any] | None:
    """Return how many states are as good as the best one, as far as the result tells."""
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


def prove(
    model: FactorGraph, seconds: float | None, sweeps: int | None, progress: Any, run: dict[str, Any]
) -> SearchResult:
    """Look for the best state with half of the time, then let toulbar2 prove that there is no better one."""
    from gibbsite.inference.best_states.proved import check_toulbar, prove_best
    from gibbsite.inference.best_states.search import search_best
    from gibbsite.sampling.progress import choose_progress

    check_toulbar()
    begun = time.monotonic()
    half = None if seconds is None else _SEARCH_SHARE * seconds
    found = search_best(model, sweeps=sweeps, seconds=half, progress=progress, until_sure=True, **run)
    left = math.inf if seconds is None else max(seconds - (time.monotonic() - begun), 1.0)
    if found.interrupted:
        left = 0.0
    show = choose_progress(progress)
    try:
        proof = prove_best(model, found.assignment_codes, seconds=left, show=show) if left > 0.0 else None
    finally:
        show.close()
    if proof is None:
        return replace(found, proof="interrupted before the proof began")
    return replace(found, proof=proof)


def search(
    model: FactorGraph,
    seconds: float | None,
    sweeps: int | None,
    best: int,
    progress: Any,
    run: dict[str, Any],
    until_sure: bool,
) -> SearchResult:
    """Look for the best states by annealing."""
    from gibbsite.inference.best_states.search import search_best

    found = search_best(
        model, sweeps=sweeps, seconds=seconds, best=best, progress=progress, until_sure=until_sure, **run
    )
    if found.reasons:
        import warnings

        from gibbsite.errors import ConvergenceWarning

        warnings.warn(f"The search has not converged: {found.reasons[0]}", ConvergenceWarning, stacklevel=3)
    return found


def best_states(model: FactorGraph, found: Any, best: int) -> tuple[RankedState, ...]:
    """Return the best states a result holds, by name and label, with their log-potentials.

    What a sampling run has seen is taken uphill first: single sites may still be improved.
    """
    from gibbsite.inference.belief import BeliefResult
    from gibbsite.inference.best_states.found import Assignment, RankedState, SearchResult
    from gibbsite.inference.exact import ExactResult

    if isinstance(found, SearchResult):
        proved = found.proof is not None and not isinstance(found.proof, str)
        return (RankedState(found.assignment, found.log_potential),) if proved else found.ranked
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
        named: Mapping[str, Any] = Assignment(model.domains, codes)
        if not is_stored(model):
            named = {**named, **model.evidence}
        ranked.append(RankedState(named, float(model.log_potential(codes)), chains))
    return tuple(ranked)
