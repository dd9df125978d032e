"""``gibbsite.infer``: choose a method, answer a question, say why it was done so.

The command line reads its choices here, so methods are imported when they are used.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from gibbsite._discover import read_declarations
from gibbsite._wording import Text, argument, unknown
from gibbsite.errors import ArgumentError, IncompatibleError

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from numpy.typing import NDArray

    from gibbsite.best.found import RankedState, SearchResult
    from gibbsite.exact import ExactResult
    from gibbsite.importance import LogZInterval, Proposal, WeightedResult
    from gibbsite.kernel.base import Kernel
    from gibbsite.model import FactorGraph
    from gibbsite.result.result import Result
    from gibbsite.result.table import SiteTable
    from gibbsite.variational import BeliefResult, MeanFieldResult

TASKS = ("MAR", "MAP", "PR", "MMAP")
_DECLARED = [one for one in read_declarations("kernel") if "methods" in one]
#: What each method of weighted draws answers.
WEIGHTED: dict[str, tuple[str, ...]] = {
    one["method"]: one["tasks"] for one in read_declarations("importance") if "method" in one
}
#: What each method answers; what :func:`_solve` does not name samples, with the kernel registered for it.
METHODS: dict[str, tuple[str, ...]] = {
    "auto": TASKS,
    "exact": TASKS,
    **{name: tasks for one in _DECLARED for name, tasks in one["methods"].items()},
    **WEIGHTED,
    "mean-field": ("MAR", "PR"),
    "bp": ("MAR", "MAP", "PR"),
    "proved": ("MAP",),
}
#: The kernel, and its parameters, of each method that samples. "annealed" is a search of its own; its kernel
#: is named here for messages.
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (one["class"], one.get("arguments", {}).get(name, {}))
    for one in _DECLARED
    for name in one["methods"]
}
_BUDGET = ("seconds", "sweeps")
_SEARCH = (*_BUDGET, "chains", "rng", "start", "scan", "threads")
_CHECKPOINT = ("checkpoint", "checkpoint_every", "resume")
_WEIGHTED = ("seconds", "draws", "rng", "threads")
_SAMPLING = (*_SEARCH, "steps", "warmup", "thin", "record", "second_look", "coupling", *_CHECKPOINT)
#: What each method takes besides accuracy, best and progress; what is not named here samples, and so does any
#: kernel. With "auto", what is about sampling says what to do if an exact solution does not fit.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "annealed": (*_SEARCH, *_CHECKPOINT),
    "proved": (*_SEARCH, *_CHECKPOINT),
    **dict.fromkeys(WEIGHTED, _WEIGHTED),
    "mean-field": (*_BUDGET, "parallel", "damping", "start", "tolerance", "rng"),
    "bp": (*_BUDGET, "kind", "schedule", "damping", "weight", "tolerance"),
}
# What "auto" does where an exact solution does not fit.
_OTHERWISE = {"MAR": "gibbs", "MAP": "annealed", "PR": "tempered", "MMAP": "annealed"}
# Arguments that say nothing about how to sample: with no others, "auto" tries several methods.
_OF_ANY_METHOD = {"seconds", "rng", "threads"}
DEFAULT_SECONDS = 10.0
# Share of a time limit for finding out which of several kernels is best; an R-hat that is good enough then.
_PILOT_SHARE, _AGREE = 0.2, 1.1
# Share of it for a bound of log Z by mean field.
_BOUND_SHARE = 0.05
_SEARCH_SHARE = 0.5  # of a time limit, for the search before a proof
_MOST_COUNTED, _MOST_COUNTED_SITES = 1024, 2000  # best states that are counted exactly, and sites then
_STANDARD_ERRORS = 4.0  # an error of more than so many standard errors is taken to be impossible


@dataclass(frozen=True)
class Verdict:
    """How far to trust an answer, in the words and numbers of its method.

    Attributes
    ----------
    kind : str
        What the answer is: "exact", "estimate", "approximation", "lower bound", "upper bound" or "best
        found".
    text : str
        The verdict in one line; empty if there is nothing to say.
    reasons : tuple of str
        Why the answer cannot be relied upon, one sentence each.
    numbers : dict
        Diagnostics as plain data.
    plan : dict
        What decided the numbers, as plain data.
    """

    kind: str
    text: str = ""
    reasons: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Inference:
    """An answer and how it was found.

    Attributes
    ----------
    task : {"MAR", "MAP", "PR", "MMAP"}
        Marginals, most probable state, log-partition function, or marginal MAP: the best states of some
        sites with all others summed out.
    method, reason : str
        What was used, and why.
    result : ExactResult, Result, SearchResult, WeightedResult, LogZInterval, MeanFieldResult or BeliefResult
        The answer with everything that belongs to it.
    verdict : Verdict
        What the answer is, and how far to trust it.
    seconds : float
        Time taken.
    assignment : dict, optional
        The state found (MAP, MMAP), by name and label, observed sites included.
    log_potential : float, optional
        Its log-potential; on MMAP the logarithm of the sum over all other sites, which is the log of the
        state's probability plus the log-partition function.
    best : tuple of RankedState
        The best states (MAP), as many as were asked for: assignment, log-potential, and how many chains have
        found it. An exact answer has the most probable states of all; a search has distinct local maxima
        that it has seen, and there may be others between them.
    log_z_bounds : (float, float), optional
        A lower and an upper bound of the log-partition function that are certain, beside an estimate of it
        (PR); infinite where nothing is known.
    ties : dict, optional
        How many states are as good as the best one (MAP): "count", whether that is all of them ("complete"),
        and whether they were "counted" by an exact solution or "seen" by a search.

    Examples
    --------
    >>> import gibbsite as gs
    >>> answer = gs.infer(gs.ising_grid((3, 3), coupling=0.3, field=0.1), progress=False)
    >>> answer.method, answer.kind
    ('exact', 'exact')
    """

    task: str
    method: str
    reason: str
    model: FactorGraph
    result: (
        ExactResult | Result | SearchResult | WeightedResult | LogZInterval | MeanFieldResult | BeliefResult
    )
    verdict: Verdict
    seconds: float
    assignment: dict[str, Any] | None = None
    log_potential: float | None = None
    best: tuple[RankedState, ...] = ()
    log_z_bounds: tuple[float, float] | None = None
    ties: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """What the answer is: exact, an estimate, an approximation, a bound, or the best found."""
        return self.verdict.kind

    @property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site."""
        table: SiteTable | None = getattr(self.result, "marginals", None)
        if table is None:
            raise ArgumentError(
                f"A search for the best state gives no marginals; ask for {argument('task', 'MAR')}."
            )
        return table

    @property
    def mcse(self) -> SiteTable:
        """Standard error of every marginal; zero for exact answers, NaN where it is not known."""
        known: SiteTable | None = getattr(self.result, "mcse", None)
        if known is not None:
            return known
        import numpy as np

        from gibbsite.result.table import SiteTable

        table = self.marginals
        seen = {site: dict.fromkeys(states, 0.0) for site, states in table.observed.items()}
        return SiteTable(table.domains, np.full(table.cells.shape, np.nan), table.binary, False, seen)

    def joint(self, *sites: str | int) -> NDArray[np.float64]:
        """Return the joint probabilities of a set of sites, one axis per site, as the result has them."""
        return self._answer("joint")(*sites)  # type: ignore[no-any-return]

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the marginals as a pandas table, as the result has it."""
        return self._answer("to_dataframe")()

    def _answer(self, name: str) -> Any:
        """Return a method of the result; a search for the best state has none about probabilities."""
        method = getattr(self.result, name, None)
        if method is None:
            raise ArgumentError(
                f"A search for the best state gives no probabilities; ask for {argument('task', 'MAR')}."
            )
        return method

    @property
    def log_z(self) -> float:
        """Natural logarithm of the partition function, or an estimate, approximation or bound of it."""
        untempered = "betas" not in getattr(self.result, "kept", {"betas": None})
        log_z: float | None = None if untempered else getattr(self.result, "log_z", None)
        if log_z is None:
            raise ArgumentError(
                f"This run gives no log-partition function; use {argument('method', 'tempered')} or "
                f"{argument('method', 'exact')}, or {argument('method', 'mean-field')} for a lower bound."
            )
        return log_z

    @property
    def log_z_error(self) -> float | None:
        """Standard error of the log-partition function: zero if it is exact, None where it is not known."""
        if self.kind == "exact":
            return 0.0
        error: float | None = getattr(self.result, "log_z_error", None)
        return error

    @property
    def converged(self) -> bool:
        """Whether the answer can be relied upon: the run has converged, and to the accuracy asked for."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the answer cannot be relied upon, one sentence each."""
        return self.verdict.reasons

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the method says about its answers beforehand, that no number shows."""
        return tuple(getattr(self.result, "remarks", ()))

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended early by Ctrl-C."""
        return bool(getattr(self.result, "interrupted", False))

    def line(self) -> str:
        """Return method, reason and verdict in one line."""
        reason = self.reason.marked if isinstance(self.reason, Text) else self.reason
        return Text(f"{self.method} ({reason})" + (f"; {self.verdict.text}" if self.verdict.text else ""))

    def __repr__(self) -> str:
        return f"Inference({self.task} by {self.line()})"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values; the schema of ``gibbsite infer --json``."""
        answer: dict[str, Any] = {"task": self.task, "method": self.method, "reason": self.reason}
        answer["kind"] = self.kind
        if self.task == "MAR":
            answer["marginals"] = _by_text(self.marginals)
            answer["mcse"] = _by_text(self.mcse)
        elif self.task in ("MAP", "MMAP"):
            assert self.assignment is not None
            answer["assignment"] = {site: str(state) for site, state in self.assignment.items()}
            answer["log_potential"] = self.log_potential
            answer["proved"] = self.kind == "exact"
            answer["best"] = [
                {
                    "assignment": {site: str(state) for site, state in one.assignment.items()},
                    "log_potential": one.log_potential,
                    "found": one.found,
                }
                for one in self.best
            ]
            answer["best_are"] = "most probable states" if self.kind == "exact" else "local maxima found"
            answer["log_potential_is"] = (
                "log of the sum over all other sites" if self.task == "MMAP" else "log-potential of the state"
            )
            if self.ties is not None:
                answer["ties"] = self.ties
        else:
            answer["log_z"] = _finite(self.log_z)
            answer["log_z_error"] = _finite(self.log_z_error)
            if self.log_z_bounds is not None:
                answer["log_z_bounds"] = [_finite(bound) for bound in self.log_z_bounds]
        verdict = {**self.verdict.numbers, "converged": self.converged, "reasons": list(self.reasons)}
        answer["diagnostics"] = {key: _finite(value) for key, value in verdict.items()}
        answer["remarks"] = list(self.remarks)
        answer["seconds"] = self.seconds
        answer["plan"] = self.verdict.plan
        return answer


def _finite(value: Any) -> Any:
    """Return a value for JSON, which knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _by_text(table: SiteTable) -> dict[str, dict[str, float | None]]:
    return {site: {str(state): _finite(p) for state, p in states.items()} for site, states in table.items()}


def infer(
    model: FactorGraph,
    task: str = "MAR",
    *,
    method: str | Kernel | Proposal = "auto",
    seconds: float | None = None,
    sweeps: int | None = None,
    accuracy: float = 0.01,
    best: int = 1,
    maximise: Any = None,
    progress: Any = None,
    **run: Any,
) -> Inference:
    """Answer a question about a model with the method that fits.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    task : {"MAR", "MAP", "PR", "MMAP"}
        Marginals, a most probable state, the log-partition function, or marginal MAP: a best state of the
        sites in ``maximise``, with all others summed out.
    method : str, Kernel or Proposal
        "auto" solves exactly if the predicted cost fits time and memory, otherwise samples, anneals for a
        most probable state, or tempers for the log-partition function; these are also the methods "exact",
        "gibbs", "annealed" and "tempered" (`Tempered`: replicas at several temperatures, for models with
        several modes). "mini-bucket" (`MiniBucket`) takes independent draws with bounded weights:
        marginals, and the log-partition function with its error and bounds. "herded" and
        "herded-shared" (`HerdedGibbs` with a weight for each configuration of the neighbours, or each
        conditional) count instead of drawing; "quasi" (`QuasiGibbs`) is driven by a low-discrepancy
        sequence, in whole periods of sweeps; "blocks" (`BlockGibbs`) draws many sites jointly, blocks that
        are found for the model, "cutset" (`CutsetGibbs`) draws few sites and sums the others out;
        "swendsen-wang" (`SwendsenWang`) and "wolff" (`Wolff`) move clusters of sites that agree;
        "perfect" (`Perfect`) takes independent draws without bias where couplings are weak; "poisson"
        (`PoissonGibbs`) reads minibatches of the factors of sites that have thousands of them. "annealed"
        looks for a most probable state: annealing at temperatures that fit the model, restarted until the
        budget is used. "forward" (`Forward`) draws Bayesian networks from parents to children, and weighs
        draws by the evidence: marginals, and an estimate of the log-partition function with its error.
        "mean-field" gives approximate marginals, and a lower bound of the log-partition
        function. "bp" is belief propagation: approximate marginals and log-partition function (an upper
        bound for kind="tree-reweighted"), and a probable state (kind="max", which MAP takes). "proved"
        searches with half of the time, and lets toulbar2 prove that there is no better state, or find it
        (``pip install gibbsite[proved]``). Any kernel samples with that: marginals, or the
        best state it sees.
    seconds, sweeps : number, optional
        Budget; 10 seconds by default. A search with that default ends earlier where all chains keep finding
        the same state.
    accuracy : float
        The largest error of a marginal to be allowed: sampling stops when four standard errors are below
        it, and is called converged only then.
    best : int
        How many of the best states to give (MAP): the most probable ones in order where the model is solved
        exactly, otherwise distinct local maxima that "annealed" has seen.
    maximise : sequence of sites, optional
        The sites to maximise over (MMAP), as names or positions.
    progress : optional
        As in :func:`gibbsite.sample`.
    **run
        Further arguments of :func:`gibbsite.sample` (chains, rng, scan, checkpoint, ...), of
        :func:`gibbsite.sample_weighted` (draws, rng, threads), of :func:`gibbsite.mean_field` or of
        :func:`gibbsite.belief_propagation`. A method refuses those it has no use for; those that say how to
        sample may be given with "auto", which checks them, and names them in ``reason`` if it did not sample.

    Returns
    -------
    Inference

    Raises
    ------
    ArgumentError
        If an argument makes no sense, or the method has no use for it.
    TooLargeError
        If an exact answer is demanded, and would be too large.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 1], [1, 1]])])
    >>> round(gs.infer(model).marginals["a"][0], 3)
    0.667
    >>> gs.infer(model, "MAP", method="annealed", rng=1, progress=False).assignment
    {'a': 0, 'b': 0}
    """
    task = str(task).upper()
    if task not in TASKS:
        raise ArgumentError(unknown("task", task, TASKS))
    if not (isinstance(accuracy, Real) and 0 < accuracy < 1):
        raise ArgumentError(f"{argument('accuracy')} must be a number between 0 and 1, got {accuracy!r}.")
    _check_model(model, task, method)
    begun = time.monotonic()
    given = {**run, "seconds": seconds, "sweeps": sweeps}
    given = {name: value for name, value in given.items() if value is not None}
    _check_arguments(model, task, method, given, progress)
    counted = sweeps is not None or run.get("draws") is not None
    limit = DEFAULT_SECONDS if seconds is None and not counted else seconds
    whole, summed = model, None
    if task == "MMAP":
        from gibbsite.best.marginal import read_maximised, sum_out

        model = sum_out(model, read_maximised(model, () if maximise is None else maximise))
        summed = f"{whole.n_sites - model.n_sites} sites summed out"
    elif maximise is not None:
        raise ArgumentError(
            f"{argument('maximise')} belongs to MMAP, and the task is {task}; leave it out, or ask for MMAP."
        )
    chosen, reason = _choose(model, task, method, limit)
    if chosen == "exact":
        reason = _with_unused(reason, given)
    if summed is not None:
        reason = Text(f"{summed}; {reason.marked if isinstance(reason, Text) else reason}")
    best = _read_best(best, task, chosen)
    bounds = None
    in_turn = method == "auto" and chosen != "exact" and task in ("MAR", "PR")
    in_turn = in_turn and set(given) <= _OF_ANY_METHOD
    if task == "PR" and chosen not in ("exact", "mean-field") and not is_weighted(chosen) and not in_turn:
        bound, limit = _bound_log_z(model, limit)
        bounds = (bound, math.inf)
    until_sure = seconds is None and sweeps is None
    if chosen == "proved":
        found, verdict, ranked = _prove(model, limit, sweeps, progress, run)
    elif task in ("MAP", "MMAP") and chosen == "annealed":
        found, verdict = _search(model, limit, sweeps, best, progress, run, until_sure)
    elif in_turn:
        chosen, reason, found, verdict, bounds = _try_in_turn(
            model, task, reason, limit, accuracy, progress, run
        )
    else:
        found, verdict = _solve(
            model, "MAP" if task == "MMAP" else task, chosen, limit, sweeps, accuracy, progress, run
        )
    if chosen != "proved":
        ranked = _best_states(model, found, best) if task in ("MAP", "MMAP") else ()
    if task == "MMAP":
        ranked = tuple(replace(one, assignment={**one.assignment, **whole.evidence}) for one in ranked)
    if task == "PR":
        bounds = _certain_bounds(found, verdict.kind, bounds)
    ties = _count_ties(model, found) if task == "MAP" else None
    assignment, score = (ranked[0].assignment, ranked[0].log_potential) if ranked else (None, None)
    name = chosen if isinstance(chosen, str) else type(chosen).__name__
    taken = time.monotonic() - begun
    return Inference(
        task, name, reason, whole, found, verdict, taken, assignment, score, ranked, bounds, ties
    )


def _try_in_turn(
    model: FactorGraph,
    task: str,
    reason: str,
    seconds: float | None,
    accuracy: float,
    progress: Any,
    run: dict[str, Any],
) -> tuple[str, str, Any, Verdict, tuple[float, float] | None]:
    """Try the methods of :mod:`gibbsite.choice` until one converges; the last one is taken in any case.

    Bounds of log Z that a method has found hold whichever is taken.
    """
    import warnings

    from gibbsite._compile.clock import clock
    from gibbsite.choice import plan_attempts
    from gibbsite.errors import ConvergenceWarning, GibbsiteError

    assert seconds is not None  # there is a default
    attempts, begun, tried = plan_attempts(model, task), clock(), []
    bounds: tuple[float, float] | None = None
    for number, attempt in enumerate(attempts, 1):
        left = max(seconds - (clock() - begun), 0.1 * seconds)
        last = number == len(attempts)
        try:
            with warnings.catch_warnings():
                if not last:  # another method follows
                    warnings.simplefilter("ignore", ConvergenceWarning)
                found, verdict = _solve(
                    model, task, attempt.method, attempt.share * left, None, accuracy, progress, run
                )
        except GibbsiteError:
            if last:
                raise
            tried.append(attempt.method)
            continue
        bounds = _certain_bounds(found, verdict.kind, bounds)
        if last or not verdict.reasons or getattr(found, "interrupted", False):
            break
        tried.append(attempt.method)
    before = f", after {' and '.join(tried)} did not converge" if tried else ""
    why = f"; {attempt.why}{before}" if len(attempts) > 1 else ""
    said = reason.marked if isinstance(reason, Text) else reason
    return attempt.method, Text(said + why), found, verdict, bounds


def _certain_bounds(found: Any, kind: str, known: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return a lower and an upper bound of log Z, infinite where there is none; None if there are none."""
    if kind in ("exact", "lower bound"):
        return float(found.log_z), float(found.log_z) if kind == "exact" else math.inf
    own = getattr(found, "log_z_bounds", None)
    if own is None:
        return known
    low, high = own
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _count_ties(model: FactorGraph, found: Any) -> dict[str, Any] | None:
    """Return how many states are as good as the best one, as far as the result tells."""
    from gibbsite.best.found import SearchResult
    from gibbsite.exact import ExactResult

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


def _prove(
    model: FactorGraph, seconds: float | None, sweeps: int | None, progress: Any, run: dict[str, Any]
) -> tuple[SearchResult, Verdict, tuple[RankedState, ...]]:
    """Look for the best state with half of the time, then let toulbar2 prove that there is no better one."""
    from gibbsite.best.found import RankedState
    from gibbsite.best.proved import check_toulbar, prove_best
    from gibbsite.best.search import search_best
    from gibbsite.run.progress import choose_progress

    check_toulbar()
    begun = time.monotonic()
    half = None if seconds is None else _SEARCH_SHARE * seconds
    found = search_best(model, sweeps=sweeps, seconds=half, progress=progress, until_sure=True, **run)
    left = math.inf if seconds is None else max(seconds - (time.monotonic() - begun), 1.0)
    if found.interrupted:
        left = 0.0
    show = choose_progress(progress)
    try:
        proof = prove_best(model, found.best_codes, seconds=left, show=show) if left > 0.0 else None
    finally:
        show.close()
    if proof is None:
        text, reasons = "no proof: interrupted before it began", ("interrupted before the proof began.",)
        return found, Verdict("best found", text, reasons, {"bound": None}, found.plan), found.ranked
    named = {name: model.labels(i)[proof.codes[i]] for i, name in enumerate(model.sites)}
    best = RankedState({**named, **model.evidence}, proof.log_potential)
    numbers = {
        "bound": proof.bound if math.isfinite(proof.bound) else None,
        "gap": proof.bound - proof.log_potential if math.isfinite(proof.bound) else None,
        "tolerance": proof.tolerance,
        "search_log_potential": found.log_potential,
        "improved": proof.improved,
    }
    if proof.proved:
        text = f"proved by toulbar2: no state is better by more than {proof.tolerance:.1g}"
        return found, Verdict("exact", text, (), numbers, found.plan), (best,)
    said = (
        f"no state is better than {proof.bound:.10g}" if numbers["bound"] is not None else "there is no bound"
    )
    reasons = (f"toulbar2 has not finished: {said}; give it more time.",)
    return found, Verdict("best found", f"NOT PROVED: {said}", reasons, numbers, found.plan), (best,)


def _solve(
    model: FactorGraph,
    task: str,
    method: str | Kernel | Proposal,
    seconds: float | None,
    sweeps: int | None,
    accuracy: float,
    progress: Any,
    run: dict[str, Any],
) -> tuple[Any, Verdict]:
    """Return the result of a method, and the verdict on it."""
    if method == "exact":
        from gibbsite.exact import solve_exact

        return solve_exact(model, task=task), Verdict(
            "exact", numbers={"rhat_max": 1.0, "ess_min": None}, plan={"exact": True}
        )
    if method == "mean-field":
        from gibbsite.variational import mean_field

        budget: dict[str, Any] = {} if sweeps is None else {"sweeps": sweeps}
        law = mean_field(model, seconds=seconds, progress=progress, **budget, **run)
        return law, _judge_mean_field(law, task)
    if is_weighted(method):
        return _draw_weighted(model, task, method, seconds, accuracy, progress, run)
    if method == "bp":
        from gibbsite.variational import belief_propagation

        budget = {} if sweeps is None else {"sweeps": sweeps}
        beliefs = belief_propagation(
            model, seconds=seconds, progress=progress, **budget, **_read_messages(run, task)
        )
        return beliefs, _judge_beliefs(beliefs, task)
    from gibbsite.kernel.registry import make_kernel
    from gibbsite.sampling import sample

    kernel: Any = make_kernel(method) if isinstance(method, str) else method
    if seconds is not None:
        begun = time.monotonic()
        kernel = _best_candidate(model, kernel, seconds, run)
        seconds = max(seconds - (time.monotonic() - begun), seconds * (1.0 - _PILOT_SHARE))
    run = {"record": "best", **run} if task == "MAP" else run
    target = accuracy / _STANDARD_ERRORS if task == "MAR" else None
    drawn = sample(model, kernel, sweeps=sweeps, seconds=seconds, error=target, progress=progress, **run)
    return drawn, _judge_run(drawn, task, accuracy)


def _bound_log_z(model: FactorGraph, seconds: float | None) -> tuple[float, float | None]:
    """Return the lower bound of log Z by mean field, and what is left of the time."""
    import warnings

    from gibbsite.errors import ConvergenceWarning
    from gibbsite.variational import mean_field

    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any product law is a bound
        law = mean_field(model, seconds=None if seconds is None else _BOUND_SHARE * seconds, progress=False)
    taken = min(time.monotonic() - begun, _BOUND_SHARE * (seconds or 0.0))
    return float(law.log_z), None if seconds is None else seconds - taken


def is_weighted(method: Any) -> bool:
    """Whether a method draws from a proposal, and weighs."""
    if isinstance(method, str):
        return method in WEIGHTED
    from gibbsite.importance import Proposal

    return isinstance(method, Proposal)


def _draw_weighted(
    model: FactorGraph,
    task: str,
    method: Any,
    seconds: float | None,
    accuracy: float,
    progress: Any,
    run: dict[str, Any],
) -> tuple[WeightedResult | LogZInterval, Verdict]:
    """Draw from a proposal until the draws converge or the budget is used; return the verdict, too.

    For the log-partition function the whole budget is used: bounds become closer all the time.
    """
    from gibbsite.importance import bound_log_z, sample_weighted
    from gibbsite.importance.registry import make_proposal

    proposal = make_proposal(method) if isinstance(method, str) else method
    how = {"proposal": proposal, "seconds": seconds, "accuracy": accuracy, "progress": progress, **run}
    drawn: WeightedResult | LogZInterval
    if task == "PR":
        drawn = bound_log_z(model, **how)
    else:
        drawn = sample_weighted(model, stop_early=run.get("draws") is None, **how)
    return drawn, Verdict(
        kind="estimate",
        text=drawn.line(),
        reasons=drawn.reasons,
        numbers=drawn.diagnostics.to_dict(),
        plan=drawn.plan,
    )


def _best_candidate(model: FactorGraph, kernel: Kernel, seconds: float, run: dict[str, Any]) -> Kernel:
    """Return what a kernel stands for on a model: of several, the best in short runs.

    Where chains of several candidates agree, effective draws per second decide; where none do, the largest
    disagreement of chains about a marginal, and the average one: chains that never move agree on most.
    """
    from gibbsite.graph.compile import compile_graph
    from gibbsite.sampling import try_out

    candidates = kernel.candidates(compile_graph(model, among=kernel.kinds))
    if len(candidates) == 1 or run.get("checkpoint") is not None or run.get("scan") is not None:
        return candidates[0] if len(candidates) == 1 else kernel
    turn = _PILOT_SHARE * seconds / len(candidates)
    given = {name: run[name] for name in ("chains", "rng", "threads", "start") if name in run}
    scores = []
    for one in candidates:
        found = try_out(model, one, seconds=turn, **given)
        if found.interrupted:
            raise KeyboardInterrupt  # there is nothing to answer with yet
        seen = found.diagnostics
        agree = seen.rhat_max is not None and seen.rhat_max <= _AGREE
        spread = found.numbers.spread
        apart = 0.0 if agree else float(spread.max() + spread.mean())
        scores.append((-apart, (seen.ess_min or 0.0) / found.seconds))
    return candidates[scores.index(max(scores))]


def _check_arguments(
    model: FactorGraph, task: str, method: str | Kernel | Proposal, given: dict[str, Any], progress: Any
) -> None:
    """Refuse what nobody knows and what the method has no use for; look at values before any work is done.

    Sampling, searching and mean field check their values themselves, but an exact solution may come first.
    """
    known = {*_SAMPLING, *(name for names in ARGUMENTS.values() for name in names)}
    for name in given:
        if name not in known:
            raise ArgumentError(unknown("argument", name, sorted(known)))
    chosen = _OTHERWISE[task] if method == "auto" else method
    takes = ARGUMENTS.get(chosen, _SAMPLING) if isinstance(chosen, str) else _SAMPLING
    if is_weighted(chosen):
        takes = _WEIGHTED
    for name in given:
        if name not in takes:
            raise ArgumentError(_no_use(name, method))
    if method == "auto":
        from gibbsite.run.progress import choose_progress

        choose_progress(progress)
        _check_values(model, given)


def _no_use(name: str, method: str | Kernel | Proposal) -> str:
    """Return the message on an argument that a method has no use for."""
    if method in ("auto", "annealed", "proved"):
        return (
            f"{argument(name)} belongs to sampling runs, and this is a search for the best state; leave it "
            f"out, or sample with {argument('method', 'gibbs')}."
        )
    what = argument("method", method) if isinstance(method, str) else type(method).__name__
    return f"{argument(name)} has no effect with {what}; leave it out."


def _check_values(model: FactorGraph, given: dict[str, Any]) -> None:
    """Refuse values that a run or a search would refuse."""
    import numpy as np

    from gibbsite.run.budget import check_integer, read_budget
    from gibbsite.run.checkpoint import read_checkpoint
    from gibbsite.run.executor import read_threads
    from gibbsite.run.plan import read_entropy

    length: dict[str, Any] = {name: given.get(name) for name in ("sweeps", "steps", "seconds", "warmup")}
    read_budget(model.n_sites, **length, thin=given.get("thin", 1))
    chains = check_integer("chains", given.get("chains", 4), 1)
    read_threads(given.get("threads"))
    read_checkpoint(given.get("checkpoint"), given.get("checkpoint_every", 60.0), given.get("resume", False))
    if not isinstance(given.get("rng"), np.random.Generator):  # which would be moved on by being read
        read_entropy(given.get("rng"))
    if "scan" in given:
        from gibbsite.sampling import check_parts

        check_parts(model, None, given["scan"])
    if "record" in given:
        from gibbsite.run.record import read_recorders

        read_recorders(given["record"])
    if "start" in given:
        from gibbsite.graph.compile import compile_graph
        from gibbsite.support.start import start_states

        start_states(model, compile_graph(model), chains, given["start"], 0)


def _with_unused(reason: str, given: dict[str, Any]) -> Text:
    """Add what was given for sampling to the reason for not sampling; a time limit was used to decide."""
    unused = [argument(name) for name in given if name != "seconds"]
    return Text(f"{reason}; {', '.join(unused)} not used" if unused else reason)


def _judge_run(result: Result, task: str, accuracy: float) -> Verdict:
    """Return the verdict on a sampling run."""
    found = result.diagnostics
    reasons = found.reasons
    if found.mcse_max is None or not math.isfinite(found.mcse_max):
        if task == "MAR":
            reasons = (
                *reasons,
                "there are no standard errors, so nothing shows whether marginals are off by more than "
                f"{accuracy:g}.",
            )
    elif task != "PR" and _STANDARD_ERRORS * found.mcse_max > accuracy:
        reasons = (
            *reasons,
            f"standard errors are up to {found.mcse_max:.2g}, so marginals may be off by more than "
            f"{accuracy:g}; run longer, or ask for less accuracy.",
        )
    if task == "PR" and not math.isfinite(result.log_z_error):
        reasons = (*reasons, "the standard error of log Z is not known: the run is too short.")
    word = "NOT CONVERGED" if found.converged and reasons else found.word
    return Verdict(
        kind="best found" if task == "MAP" else "estimate",
        text=f"{word}: {found.figures()}",
        reasons=reasons,
        numbers=found.to_dict(),
        plan={**result.plan.to_dict(), "sweeps": result.draws * result.plan.thin},
    )


def _judge_mean_field(result: MeanFieldResult, task: str) -> Verdict:
    """Return the verdict on a mean-field answer."""
    return Verdict(
        kind="lower bound" if task == "PR" else "approximation",
        text=result.line(),
        reasons=result.reasons,
        numbers={"change": result.change, "sweeps": result.sweeps, "tolerance": result.tolerance},
        plan=result.plan,
    )


def _read_messages(run: dict[str, Any], task: str) -> dict[str, Any]:
    """Return the arguments of belief propagation: maxima are for a most probable state, sums for the rest."""
    kind = run.get("kind", "max" if task == "MAP" else "sum")
    if (kind == "max") != (task == "MAP"):
        raise ArgumentError(
            f"{argument('kind', kind)} does not answer {task}; leave it out, or ask for "
            f"{argument('task', 'MAP' if kind == 'max' else 'MAR')}."
        )
    return {**run, "kind": kind}


def _judge_beliefs(result: BeliefResult, task: str) -> Verdict:
    """Return the verdict on beliefs."""
    kinds = {"MAR": "approximation", "MAP": "best found"}
    bound = "upper bound" if result.kind == "tree-reweighted" else "approximation"
    return Verdict(
        kind=kinds.get(task, bound),
        text=result.line(),
        reasons=result.reasons,
        numbers={
            "residual": result.residual,
            "messages": result.messages,
            "edges": result.edges,
            "tolerance": result.tolerance,
            "tree": result.exact,
        },
        plan=result.plan,
    )


def _search(
    model: FactorGraph,
    seconds: float | None,
    sweeps: int | None,
    best: int,
    progress: Any,
    run: dict[str, Any],
    until_sure: bool,
) -> tuple[SearchResult, Verdict]:
    """Look for the best states by annealing; return what was found, and the verdict on it."""
    from gibbsite.best.search import search_best

    found = search_best(
        model, sweeps=sweeps, seconds=seconds, best=best, progress=progress, until_sure=until_sure, **run
    )
    if found.reasons:
        import warnings

        from gibbsite.errors import ConvergenceWarning

        warnings.warn(f"The search has not converged: {found.reasons[0]}", ConvergenceWarning, stacklevel=3)
    return found, Verdict(
        kind="best found",
        text=f"{'NOT CONVERGED' if found.reasons else 'converged'}: {found.line()}",
        reasons=found.reasons,
        numbers={
            "found": found.found,
            "chains": found.chains,
            "restarts": found.restarts,
            "restarts_found": found.hits,
            "sweeps": found.sweeps,
        },
        plan=found.plan,
    )


def _read_best(best: Any, task: str, method: str | Kernel | Proposal) -> int:
    """Return how many states are asked for."""
    from gibbsite.run.budget import check_integer

    many = check_integer("best", best, 1)
    if many > 1 and task not in ("MAP", "MMAP"):
        raise ArgumentError(
            f"{argument('best')} is a number of most probable states, and the task is {task}; ask for MAP."
        )
    if many > 1 and method not in ("exact", "annealed"):
        name = method if isinstance(method, str) else type(method).__name__
        raise ArgumentError(
            f"method {name!r} gives one best state; choose exact or annealed for {argument('best', many)}."
        )
    return many


def _best_states(model: FactorGraph, found: Any, best: int) -> tuple[RankedState, ...]:
    """Return the best states a result holds, by name and label, with their log-potentials.

    What a sampling run has seen is taken uphill first: single sites may still be improved.
    """
    from gibbsite.best.found import RankedState, SearchResult
    from gibbsite.exact import ExactResult
    from gibbsite.variational import BeliefResult

    if isinstance(found, SearchResult):
        return found.ranked
    if isinstance(found, ExactResult):
        if best == 1:
            return (RankedState(found.best_state, found.log_potential),)
        rows, chains = [*found.rank(best)], None
    else:
        from gibbsite.run.climb import climb

        rows = [climb(model, found.best_codes)]
        chains = None if isinstance(found, BeliefResult) else found.diagnostics.found
    ranked = []
    for codes in rows:
        named = {name: model.labels(i)[codes[i]] for i, name in enumerate(model.sites)}
        ranked.append(RankedState({**named, **model.evidence}, float(model.log_potential(codes)), chains))
    return tuple(ranked)


def _check_model(model: Any, task: str, method: str | Kernel | Proposal) -> None:
    """Refuse models of numbers, whose means a kernel may well give."""
    from gibbsite.model import FactorGraph, Model

    if isinstance(model, FactorGraph) or (
        isinstance(model, Model) and task == "MAR" and method not in METHODS
    ):
        return
    raise IncompatibleError(
        f"infer answers {task} for models of states (gs.FactorGraph, gs.ising and so on), got "
        f"{type(model).__name__}; models of numbers go to gs.sample(model, kernel), and gs.recommend(model) "
        "tells which kernel."
    )


def _choose(
    model: FactorGraph, task: str, method: str | Kernel | Proposal, seconds: float | None
) -> tuple[str | Kernel | Proposal, str]:
    """Return the method and the reason for it."""
    if not isinstance(method, str):
        from gibbsite.kernel.base import Kernel

        answers: tuple[str, ...] = ("MAR", "PR")
        if isinstance(method, Kernel):
            answers = ("MAR", "MAP") if method.estimates else ("MAP",)
            answers = (*answers, "PR") if method.crosses else answers
        elif not is_weighted(method):
            raise ArgumentError(
                f"{argument('method')} must be a name or a kernel such as gs.Gibbs(), got {method!r}."
            )
    elif method in METHODS:
        answers = METHODS[method]
    else:
        raise ArgumentError(unknown("method", method, METHODS))
    if task not in answers:
        others = [name for name, tasks in METHODS.items() if task in tasks]
        name = repr(method) if isinstance(method, str) else type(method).__name__
        raise ArgumentError(f"method {name} does not answer {task}; choose one of {', '.join(others)}.")
    if method not in ("auto", "exact"):
        return method, "as asked"
    from gibbsite.exact import predict_exact
    from gibbsite.run.executor import usable_memory

    cost = predict_exact(model)
    size = cost.line()
    time_limit = max(60.0, 0.0 if seconds is None else seconds)
    fits = cost.bytes <= 0.5 * usable_memory() and cost.seconds <= time_limit
    if fits or method == "exact":
        return "exact", size
    return _OTHERWISE[task], f"an exact solution does not fit: {size}"
