"""``gibbsite.infer``: choose a method, answer a question, say why it was done so.

The command line reads its choices here, so methods are imported when they are used.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from gibbsite._discover import read_declarations
from gibbsite._wording import Text, argument, unknown
from gibbsite.errors import ArgumentError, IncompatibleError, TooLargeError

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from numpy.typing import NDArray

    from gibbsite.exact import ExactResult
    from gibbsite.kernel.base import Kernel
    from gibbsite.model import FactorGraph
    from gibbsite.result.result import Result
    from gibbsite.result.table import SiteTable
    from gibbsite.search import RankedState, SearchResult
    from gibbsite.variational import BeliefResult, MeanFieldResult

TASKS = ("MAR", "MAP", "PR")
_DECLARED = [one for one in read_declarations("kernel") if "methods" in one]
#: What each method answers; what :func:`_solve` does not name samples, with the kernel registered for it.
METHODS: dict[str, tuple[str, ...]] = {
    "auto": TASKS,
    "exact": TASKS,
    **{name: tasks for one in _DECLARED for name, tasks in one["methods"].items()},
    "mean-field": ("MAR", "PR"),
    "bp": TASKS,
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
_SAMPLING = (*_SEARCH, "steps", "warmup", "thin", "record", "second_look", *_CHECKPOINT)
#: What each method takes besides accuracy, best and progress; what is not named here samples, and so does any
#: kernel. With "auto", what is about sampling says what to do if an exact solution does not fit.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "annealed": _SEARCH,
    "mean-field": (*_BUDGET, "parallel", "damping", "start", "tolerance", "rng"),
    "bp": (*_BUDGET, "kind", "schedule", "damping", "weight", "tolerance"),
}
DEFAULT_SECONDS = 10.0
# Share of a time limit for finding out which of several kernels is best; an R-hat that is good enough then.
_PILOT_SHARE, _AGREE = 0.2, 1.1
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
    task : {"MAR", "MAP", "PR"}
        Marginals, most probable state, or log-partition function.
    method, reason : str
        What was used, and why.
    result : ExactResult, Result, SearchResult, MeanFieldResult or BeliefResult
        The answer with everything that belongs to it.
    verdict : Verdict
        What the answer is, and how far to trust it.
    seconds : float
        Time taken.
    assignment : dict, optional
        The state found (MAP), by name and label, observed sites included.
    log_potential : float, optional
        Its log-potential.
    best : tuple of RankedState
        The best states (MAP), as many as were asked for: assignment, log-potential, and how many chains have
        found it. An exact answer has the most probable states of all; a search has distinct local maxima
        that it has seen, and there may be others between them.

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
    result: ExactResult | Result | SearchResult | MeanFieldResult | BeliefResult
    verdict: Verdict
    seconds: float
    assignment: dict[str, Any] | None = None
    log_potential: float | None = None
    best: tuple[RankedState, ...] = ()

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
        """Natural logarithm of the partition function, or an approximation or bound of it."""
        log_z: float | None = getattr(self.result, "log_z", None)
        if log_z is None:
            raise ArgumentError(
                f"A sampling run gives no log-partition function; use {argument('method', 'exact')}, or "
                f"{argument('method', 'mean-field')} for a lower bound."
            )
        return log_z

    @property
    def log_z_bounds(self) -> tuple[float | None, float | None]:
        """Guaranteed bounds of the log-partition function, None where there is none."""
        known: tuple[float | None, float | None] | None = getattr(self.result, "log_z_bounds", None)
        if known is not None:
            return known
        low = self.log_z if self.kind in ("exact", "lower bound") else None
        return low, self.log_z if self.kind == "exact" else None

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
        elif self.task == "MAP":
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
        else:
            answer["log_z"] = _finite(self.log_z)
            answer["log_z_error"] = 0.0 if self.kind == "exact" else None
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
    method: str | Kernel = "auto",
    seconds: float | None = None,
    sweeps: int | None = None,
    accuracy: float = 0.01,
    best: int = 1,
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
    method : str or Kernel
        "auto" solves exactly if the predicted cost fits time and memory, otherwise samples, or anneals for a
        most probable state; these are also the methods "exact", "gibbs" and "annealed". "herded" and
        "herded-shared" (`HerdedGibbs` with a weight for each configuration of the neighbours, or each
        conditional) count instead of drawing; "quasi" (`QuasiGibbs`) is driven by a low-discrepancy
        sequence, in whole periods of sweeps; "blocks" (`BlockGibbs`) draws many sites jointly, blocks that
        are found for the model, "cutset" (`CutsetGibbs`) draws few sites and sums the others out; "poisson"
        (`PoissonGibbs`) reads minibatches of the factors of sites that have thousands of them. "annealed"
        looks for a most probable state: annealing at temperatures that fit the model, restarted until the
        budget is used. "mean-field" gives approximate marginals, and a lower bound of the log-partition
        function. "bp" is belief propagation: approximate marginals and log-partition function (an upper
        bound for kind="tree-reweighted"), and a probable state (kind="max", which MAP takes). Any kernel
        samples with that: marginals, or the best state it sees.
    seconds, sweeps : number, optional
        Budget; 10 seconds by default. A search with that default ends earlier where all chains keep finding
        the same state.
    accuracy : float
        The largest error of a marginal to be allowed: sampling stops when four standard errors are below
        it, and is called converged only then.
    best : int
        How many of the best states to give (MAP): the most probable ones in order where the model is solved
        exactly, otherwise distinct local maxima that "annealed" has seen.
    progress : optional
        As in :func:`gibbsite.sample`.
    **run
        Further arguments of :func:`gibbsite.sample` (chains, rng, scan, checkpoint, ...), of
        :func:`gibbsite.mean_field` or of :func:`gibbsite.belief_propagation`. A method refuses those it has
        no use for; those that say how to sample may be given with "auto", which checks them, and names them
        in ``reason`` if it did not sample.

    Returns
    -------
    Inference

    Raises
    ------
    ArgumentError
        If an argument makes no sense, or the method has no use for it.
    TooLargeError
        If an exact answer is demanded, or needed for the task, and would be too large.

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
    limit = DEFAULT_SECONDS if seconds is None and sweeps is None else seconds
    chosen, reason = _choose(model, task, method, limit)
    if chosen == "exact":
        reason = _with_unused(reason, given)
    best = _read_best(best, task, chosen)
    if task == "MAP" and chosen == "annealed":
        found, verdict = _search(
            model, limit, sweeps, best, progress, run, seconds is None and sweeps is None
        )
    else:
        found, verdict = _solve(model, task, chosen, limit, sweeps, accuracy, progress, run)
    ranked = _best_states(model, found, best) if task == "MAP" else ()
    assignment, score = (ranked[0].assignment, ranked[0].log_potential) if ranked else (None, None)
    name = chosen if isinstance(chosen, str) else type(chosen).__name__
    taken = time.monotonic() - begun
    return Inference(task, name, reason, model, found, verdict, taken, assignment, score, ranked)


def _solve(
    model: FactorGraph,
    task: str,
    method: str | Kernel,
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
    if method == "bp":
        from gibbsite.variational import belief_propagation

        budget = {} if sweeps is None else {"sweeps": sweeps}
        beliefs = belief_propagation(
            model, seconds=seconds, progress=progress, **budget, **_read_messages(run, task)
        )
        return beliefs, _judge_beliefs(beliefs, task)
    from gibbsite.kernel.registry import make_kernel
    from gibbsite.sampling import sample

    kernel = make_kernel(method) if isinstance(method, str) else method
    if seconds is not None:
        begun = time.monotonic()
        kernel = _best_candidate(model, kernel, seconds, run)
        seconds = max(seconds - (time.monotonic() - begun), seconds * (1.0 - _PILOT_SHARE))
    run = {"record": "best", **run} if task == "MAP" else run
    target = accuracy / _STANDARD_ERRORS if task == "MAR" else None
    drawn = sample(model, kernel, sweeps=sweeps, seconds=seconds, error=target, progress=progress, **run)
    return drawn, _judge_run(drawn, task, accuracy)


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
    model: FactorGraph, task: str, method: str | Kernel, given: dict[str, Any], progress: Any
) -> None:
    """Refuse what nobody knows and what the method has no use for; look at values before any work is done.

    Sampling, searching and mean field check their values themselves, but an exact solution may come first.
    """
    known = {*_SAMPLING, *(name for names in ARGUMENTS.values() for name in names)}
    for name in given:
        if name not in known:
            raise ArgumentError(unknown("argument", name, sorted(known)))
    otherwise = "annealed" if task == "MAP" else "gibbs"  # where an exact solution does not fit
    chosen = otherwise if method == "auto" else method
    takes = ARGUMENTS.get(chosen, _SAMPLING) if isinstance(chosen, str) else _SAMPLING
    for name in given:
        if name not in takes:
            raise ArgumentError(_no_use(name, method))
    if method == "auto":
        from gibbsite.run.progress import choose_progress

        choose_progress(progress)
        _check_values(model, given)


def _no_use(name: str, method: str | Kernel) -> str:
    """Return the message on an argument that a method has no use for."""
    if method in ("auto", "annealed"):
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
    elif _STANDARD_ERRORS * found.mcse_max > accuracy:
        reasons = (
            *reasons,
            f"standard errors are up to {found.mcse_max:.2g}, so marginals may be off by more than "
            f"{accuracy:g}; run longer, or ask for less accuracy.",
        )
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
    from gibbsite.search import search_best

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


def _read_best(best: Any, task: str, method: str | Kernel) -> int:
    """Return how many states are asked for."""
    from gibbsite.run.budget import check_integer

    many = check_integer("best", best, 1)
    if many > 1 and task != "MAP":
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
    from gibbsite.exact import ExactResult
    from gibbsite.search import RankedState, SearchResult
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


def _check_model(model: Any, task: str, method: str | Kernel) -> None:
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
    model: FactorGraph, task: str, method: str | Kernel, seconds: float | None
) -> tuple[str | Kernel, str]:
    """Return the method and the reason for it."""
    if not isinstance(method, str):
        from gibbsite.kernel.base import Kernel

        if not isinstance(method, Kernel):
            raise ArgumentError(
                f"{argument('method')} must be a name or a kernel such as gs.Gibbs(), got {method!r}."
            )
        answers: tuple[str, ...] = ("MAR", "MAP") if method.estimates else ("MAP",)
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
    if task == "PR":
        raise TooLargeError(
            f"The log-partition function needs an exact solution, but it does not fit: {size}; "
            f"{argument('method', 'mean-field')} gives a lower bound, {argument('method', 'bp')} an "
            "approximation."
        )
    return "annealed" if task == "MAP" else "gibbs", f"an exact solution does not fit: {size}"
