"""``gibbsite.infer``: choose a method, answer a question, say why it was done so."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite.errors import ModelError, TooLargeError
from gibbsite.exact import ExactResult, predict_exact, solve_exact
from gibbsite.result.result import Result
from gibbsite.run.executor import usable_memory

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph
    from gibbsite.result.table import SiteTable

TASKS = ("MAR", "MAP", "PR")
METHODS = ("auto", "exact", "gibbs")
DEFAULT_SECONDS = 10.0
_STANDARD_ERRORS = 4.0  # an error of more than so many standard errors is taken to be impossible


@dataclass(frozen=True, eq=False, repr=False)
class Inference:
    """An answer and how it was found.

    Attributes
    ----------
    task : {"MAR", "MAP", "PR"}
        Marginals, most probable state, or log-partition function.
    method, reason : str
        What was used, and why.
    result : ExactResult or Result
        The answer with everything that belongs to it.
    seconds : float
        Time taken.
    accuracy : float
        The largest error of a marginal that was to be allowed.

    Examples
    --------
    >>> import gibbsite as gs
    >>> answer = gs.infer(gs.ising_grid((3, 3), coupling=0.3, field=0.1), progress=False)
    >>> answer.method
    'exact'
    """

    task: str
    method: str
    reason: str
    model: FactorGraph
    result: ExactResult | Result
    seconds: float
    accuracy: float = 0.01
    assignment: dict[str, Any] | None = None
    log_potential: float | None = None

    @property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site."""
        return self.result.marginals

    @property
    def mcse(self) -> SiteTable:
        """Standard error of every marginal; zero for exact answers, NaN if not known."""
        return self.result.mcse

    @property
    def log_z(self) -> float:
        """Natural logarithm of the partition function (exact methods)."""
        if isinstance(self.result, ExactResult):
            return self.result.log_z
        raise ModelError("A sampling run gives no log-partition function; use method='exact'.")

    @property
    def converged(self) -> bool:
        """Whether the answer can be relied upon: the run has converged, and to the accuracy asked for."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the answer cannot be relied upon, one sentence each."""
        if isinstance(self.result, ExactResult):
            return ()
        verdict = self.result.diagnostics
        if verdict.mcse_max is None:
            return (
                *verdict.reasons,
                f"there are no standard errors, so nothing shows whether marginals are off by more than "
                f"{self.accuracy:g}.",
            )
        if _STANDARD_ERRORS * verdict.mcse_max <= self.accuracy:
            return verdict.reasons
        return (
            *verdict.reasons,
            f"standard errors are up to {verdict.mcse_max:.2g}, so marginals may be off by more than "
            f"{self.accuracy:g}; run longer, or ask for less accuracy.",
        )

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended early by Ctrl-C."""
        return isinstance(self.result, Result) and self.result.interrupted

    def line(self) -> str:
        """Return method, reason and verdict in one line."""
        if isinstance(self.result, ExactResult):
            return f"exact ({self.reason})"
        verdict = self.result.diagnostics
        word = "NOT CONVERGED" if verdict.converged and self.reasons else verdict.word
        return f"{self.method} ({self.reason}); {word}: {verdict.figures()}"

    def __repr__(self) -> str:
        return f"Inference({self.task} by {self.line()})"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values; the schema of ``gibbsite infer --json``."""
        answer: dict[str, Any] = {"task": self.task, "method": self.method, "reason": self.reason}
        if self.task == "MAR":
            answer["marginals"] = _by_text(self.marginals)
            answer["mcse"] = _by_text(self.mcse)
        elif self.task == "MAP":
            assert self.assignment is not None
            answer["assignment"] = {site: str(state) for site, state in self.assignment.items()}
            answer["log_potential"] = self.log_potential
            answer["proved"] = isinstance(self.result, ExactResult)
        else:
            answer["log_z"] = self.log_z
            answer["log_z_error"] = 0.0
        exact = isinstance(self.result, ExactResult)
        verdict: dict[str, Any] = {"converged": True, "rhat_max": 1.0, "ess_min": None, "reasons": []}
        if isinstance(self.result, Result):
            verdict = {
                **self.result.diagnostics.to_dict(),
                "converged": self.converged,
                "reasons": list(self.reasons),
            }
        answer["diagnostics"] = {
            key: None if isinstance(value, float) and not np.isfinite(value) else value
            for key, value in verdict.items()
        }
        answer["seconds"] = self.seconds
        answer["plan"] = {"exact": True} if exact else self.result.plan.to_dict()  # type: ignore[union-attr]
        return answer


def _by_text(table: SiteTable) -> dict[str, dict[str, float | None]]:
    """Return a table for JSON, which knows no NaN and no infinity."""
    return {
        site: {str(state): number if np.isfinite(number) else None for state, number in states.items()}
        for site, states in table.items()
    }


def infer(
    model: FactorGraph,
    task: str = "MAR",
    *,
    method: str = "auto",
    seconds: float | None = None,
    sweeps: int | None = None,
    accuracy: float = 0.01,
    progress: Any = None,
    **run: Any,
) -> Inference:
    """Answer a question about a model with the method that fits.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    task : {"MAR", "MAP", "PR"}
        Marginals, a most probable state, or the log-partition function.
    method : {"auto", "exact", "gibbs"}
        "auto" solves exactly if the predicted cost fits time and memory, otherwise samples.
    seconds, sweeps : number, optional
        Budget; 10 seconds by default.
    accuracy : float
        The largest error of a marginal to be allowed: sampling stops when four standard errors are below
        it, and is called converged only then.
    progress : optional
        As in :func:`gibbsite.sample`.
    **run
        Further arguments of :func:`gibbsite.sample`: chains, rng, scan, checkpoint, ...

    Returns
    -------
    Inference

    Raises
    ------
    TooLargeError
        If an exact answer is demanded, or needed for the task, and would be too large.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 1], [1, 1]])])
    >>> round(gs.infer(model).marginals["a"][0], 3)
    0.667
    """
    task = str(task).upper()
    if task not in TASKS:
        raise ModelError(f"task {task!r} is unknown; choose MAR, MAP or PR.")
    if not 0 < accuracy < 1:
        raise ModelError(f"accuracy must be a number between 0 and 1, got {accuracy!r}.")
    if method not in METHODS:
        raise ModelError(f"method {method!r} is unknown; choose one of {', '.join(METHODS)}.")
    begun = time.monotonic()
    limit = DEFAULT_SECONDS if seconds is None and sweeps is None else seconds
    chosen, reason = _choose(model, task, method, limit)
    if chosen == "exact":
        solved = solve_exact(model, task=task)
        return Inference(
            task,
            chosen,
            reason,
            model,
            solved,
            time.monotonic() - begun,
            accuracy,
            solved.best_state if task == "MAP" else None,
            solved.log_potential if task == "MAP" else None,
        )
    if task == "PR":
        raise TooLargeError(
            f"The log-partition function needs an exact solution, but it is too large ({reason}); "
            "there is no sampling estimate of it yet."
        )
    from gibbsite.run.climb import climb
    from gibbsite.sampling import sample

    if task == "MAP":
        run = {"record": ["marginals", "best"], **run}
    target = accuracy / _STANDARD_ERRORS if task == "MAR" else None
    result = sample(model, sweeps=sweeps, seconds=limit, error=target, progress=progress, **run)
    assignment, score = None, None
    if task == "MAP":
        codes = climb(model, result.best_x)
        score = float(model.log_potential(codes))
        named = {name: model.labels(i)[codes[i]] for i, name in enumerate(model.sites)}
        assignment = {**named, **model.evidence}
    seconds_taken = time.monotonic() - begun
    return Inference(task, chosen, reason, model, result, seconds_taken, accuracy, assignment, score)


def _choose(model: FactorGraph, task: str, method: str, seconds: float | None) -> tuple[str, str]:
    """Return the method and the reason for it."""
    if method == "gibbs" and task != "PR":
        return "gibbs", "as asked"
    cost = predict_exact(model)
    size = f"largest clique {cost.largest:,.4g} entries, about {max(cost.seconds, 0.001):,.2g} s"
    if method == "exact":
        return "exact", size
    time_limit = max(60.0, 0.0 if seconds is None else seconds)
    if cost.bytes <= 0.5 * usable_memory() and cost.seconds <= time_limit and method != "gibbs":
        return "exact", size
    return "gibbs", f"an exact solution does not fit: {size}"
