"""``gibbsite.infer``, which chooses a method, answers the question, and gives the reason for the choice."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from gibbsite._common.arguments import as_model, describe, is_number, read_query
from gibbsite._common.loading import load_for_threads
from gibbsite._common.wording import Text, argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.inference.answer import Inference
from gibbsite.inference.methods import (
    DEFAULT_SECONDS,
    OF_ANY_METHOD,
    OTHERWISE,
    TASKS,
    check_arguments,
    check_exact,
    check_model,
    is_stored,
    is_weighted,
    known_methods,
    read_best,
    with_unused,
)
from gibbsite.inference.solving import Question, best_states, bound_below, count_ties, prove, search, solve
from gibbsite.models.networks.expansion import fits_tables
from gibbsite.results.verdict.criteria import DEFAULT_ACCURACY, Criteria, read_criteria
from gibbsite.sampling.length import Steps, Sweeps

if TYPE_CHECKING:
    from gibbsite.inference.importance import ImportanceProposal
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph
    from gibbsite.models.stored import StoredPairs

_MOST_BATCHED = 1 << 18  # sites of a stored model up to which batch means are kept, 33 MB for each chain


def infer(
    model: FactorGraph | StoredPairs,
    task: str = "MAR",
    *,
    method: str | Kernel | ImportanceProposal = "auto",
    seconds: float | None = None,
    sweeps: int | Sweeps | Steps | None = None,
    criteria: Criteria | None = None,
    best: int = 1,
    maximise: Any = None,
    exact: bool = True,
    progress: Any = None,
    **run: Any,
) -> Inference:
    """Answer a question about a model with the method that fits.

    Parameters
    ----------
    model : FactorGraph or StoredPairs
        The model, with evidence folded in. A stored one (:func:`gibbsite.open_model`) answers MAR and MAP by methods
        that sample it site by site; batch means are kept up to 262,144 sites.
    task : {"MAR", "MAP", "PR", "MMAP"}
        Marginals, a most probable state, the log-partition function, or marginal MAP: a best state of the sites in
        ``maximise``, with all others summed out.
    method : str, Kernel or ImportanceProposal
        "auto" solves exactly if the predicted cost fits time and memory, otherwise samples, anneals for a most probable
        state, or tempers for the log-partition function; these are also the methods "exact", "gibbs", "annealed" and
        "tempered" (`Tempered`: replicas at several temperatures, for models with several modes). "mini-bucket"
        (`MiniBucket`) takes independent draws with bounded weights: marginals, and the log-partition function with its
        error and bounds. "herded" and "herded-shared" (`HerdedGibbs` with a weight for each configuration of the
        neighbours, or each conditional) count instead of drawing; "quasi" (`QuasiGibbs`) is driven by a low-discrepancy
        sequence, in whole periods of sweeps; "blocks" (`BlockGibbs`) draws many sites jointly, blocks that are found
        for the model, "cutset" (`CutsetGibbs`) draws few sites and sums the others out; "swendsen-wang"
        (`SwendsenWang`) and "wolff" (`Wolff`) move clusters of sites that agree; "perfect" (`Perfect`) takes
        independent draws without bias where couplings are weak; "poisson" (`PoissonGibbs`) reads minibatches of the
        factors of sites that have thousands of them. "annealed" looks for a most probable state: annealing at
        temperatures that fit the model, restarted until the budget is used. "forward" (`Forward`) draws Bayesian
        networks from parents to children, and weighs draws by the evidence: marginals, and an estimate of the
        log-partition function with its error. "mean-field" gives approximate marginals, and a lower bound of the
        log-partition function. "bp" is belief propagation: approximate marginals and log-partition function (an upper
        bound for kind="tree-reweighted"), and a probable state (kind="max", which MAP takes). "proved" searches with
        half of the time, and lets toulbar2 prove that there is no better state, or find it (the extra "proved"
        installs it). Any kernel samples with that: marginals, or the best state it sees.
    seconds, sweeps : number, optional
        Budget; 10 seconds by default. A search with that default ends earlier if all chains agree.
    criteria : Criteria, optional
        The accuracy, 0.01 by default, the sites that are asked for (MAR), and whether chains from dispersed starts are
        compared with a run. Sampling ends as soon as the answer has this accuracy, and is called converged only then.
    best : int
        How many of the best states to give (MAP): the most probable ones in order if the model is solved exactly,
        otherwise distinct local maxima that "annealed" has seen.
    maximise : sequence of sites, optional
        The sites to maximise over (MMAP), as names or positions.
    exact : bool
        Whether "auto" may solve exactly.
    progress : optional
        As in :func:`gibbsite.sample`.
    **run
        Further arguments of :func:`gibbsite.sample` (chains, rng, scan, checkpoint, ...), of
        :func:`gibbsite.sample_weighted` (draws, rng, threads), of :func:`gibbsite.mean_field` or of
        :func:`gibbsite.belief_propagation`. A method refuses arguments that it does not use. Those of sampling may be
        given with "auto", which checks them, and names them in ``reason`` if it did not sample.

    Returns
    -------
    Inference

    Raises
    ------
    ArgumentError
        If an argument is invalid, or the method does not use it.
    TooLargeError
        If an exact answer is demanded and would be too large.

    See Also
    --------
    sample : Run a Gibbs sampler or another kernel.
    solve_exact : Solve a model exactly.
    belief_propagation : Approximate marginals.
    recommend : Measure which method suits a model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 1], [1, 1]])])
    >>> round(gs.infer(model).marginals["a"][0], 3)
    0.667
    >>> gs.infer(model, "MAP", method="annealed", rng=1, progress=False).assignment
    {'a': 0, 'b': 0}
    >>> gs.infer(model, exact=False, rng=1, progress=False).kind
    'estimate'
    """
    load_for_threads()
    task = str(task).upper()
    if task not in TASKS:
        raise ArgumentError(unknown("task", task, TASKS))
    criteria = read_criteria(criteria)
    if criteria.accuracy is None:
        criteria = replace(criteria, accuracy=DEFAULT_ACCURACY)
    if "__array__" in dir(method):  # names cannot be compared with arrays
        raise ArgumentError(f"{argument('method')} must be a name or a kernel, got {describe(method)}.")
    if seconds is not None and not (is_number(seconds) and 0 < seconds < math.inf):
        raise ArgumentError(f"{argument('seconds')} must be a positive number, got {describe(seconds)}.")
    model = as_model(model)
    check_model(model, task, method)
    model = cast("FactorGraph", model)  # arguments that stored models do not support were refused above
    begun = time.monotonic()
    given = {**run, "seconds": seconds, "sweeps": sweeps}
    given = {name: value for name, value in given.items() if value is not None}
    if not criteria.dispersed_starts:
        given["dispersed_starts"] = False
    check_arguments(model, task, method, given, progress)
    check_exact(exact, method)
    untimed = sweeps is None or (isinstance(sweeps, Sweeps) and sweeps.count is None)
    counted = not untimed or run.get("draws") is not None
    limit = DEFAULT_SECONDS if seconds is None and not counted else seconds
    whole, summed = model, None
    stored = is_stored(model)
    if stored and task == "MAR":
        from gibbsite.sampling.record import Marginals

        run.setdefault("record", Marginals(batches=model.n_sites <= _MOST_BATCHED))
    if task == "MMAP":
        from gibbsite.inference.best_states.marginal import read_maximised, sum_out

        model = sum_out(model, read_maximised(model, () if maximise is None else maximise))
        summed = f"{whole.n_sites - model.n_sites} sites summed out"
    elif maximise is not None:
        raise ArgumentError(
            f"{argument('maximise')} belongs to MMAP, and the task is {task}; leave it out, or ask for MMAP."
        )
    criteria = replace(criteria, query=_read_query(model, criteria.query, task))
    chosen, reason = choose(model, task, method, limit, exact)
    of_states = "MAP" if task == "MMAP" else task
    question = Question(model, of_states, limit, sweeps, criteria, progress, run)
    solved = None
    if chosen == "exact" and method == "auto":
        try:
            solved = solve(question, chosen)
        except MemoryError:  # other processes may have allocated it in the meantime
            chosen, reason = OTHERWISE[task], f"an exact solution did not fit into memory: {reason}"
    if chosen == "exact":
        reason = with_unused(reason, given)
    if summed is not None:
        reason = Text(f"{summed}; {reason.marked if isinstance(reason, Text) else reason}")
    best = read_best(best, task, chosen, search=not stored)
    bounds = None
    in_turn = method == "auto" and chosen != "exact" and task in ("MAR", "PR")
    in_turn = in_turn and set(given) <= OF_ANY_METHOD and not stored
    if task == "PR" and chosen not in ("exact", "mean-field") and not is_weighted(chosen) and not in_turn:
        bound, limit = bound_below(model, limit)
        question, bounds = question._replace(seconds=limit), (bound, math.inf)
    until_sure = seconds is None and sweeps is None
    if chosen == "proved":
        found = prove(question)
    elif task in ("MAP", "MMAP") and chosen == "annealed" and not stored:
        found = search(question, best, until_sure)
    elif in_turn:
        from gibbsite._numba.jit import announcing_once
        from gibbsite.inference.trying import try_in_turn

        with announcing_once():
            chosen, reason, found, bounds = try_in_turn(question, reason)
    else:
        found = solved or solve(question, chosen)
    ranked = best_states(model, found, best) if task in ("MAP", "MMAP") else ()
    if task == "MMAP":
        ranked = tuple(replace(one, assignment={**one.assignment, **whole.evidence}) for one in ranked)
    if task == "PR":
        bounds = found.log_z_bounds or bounds
    ties = count_ties(model, found) if task == "MAP" else None
    assignment, score = (ranked[0].assignment, ranked[0].log_potential) if ranked else (None, None)
    name = chosen if isinstance(chosen, str) else type(chosen).__name__
    taken = time.monotonic() - begun
    return Inference(task, name, reason, whole, found, taken, assignment, score, ranked, bounds, ties)


def _read_query(model: Any, query: Any, task: str) -> list[str] | None:
    """Return the names of the sites that are asked for, without those that are observed."""
    if query is None:
        return None
    if task != "MAR":
        raise ArgumentError(
            f"{argument('query')} names sites whose marginals are asked for, and the task is {task}; leave "
            "it out, or ask for MAR."
        )
    names = model.domains.names
    return [names[site] for site in read_query(model, query) or ()]


def choose(
    model: FactorGraph, task: str, method: str | Kernel | ImportanceProposal, seconds: float | None, exact: bool = True
) -> tuple[str | Kernel | ImportanceProposal, str]:
    """Return the method and the reason for it."""
    if not isinstance(method, str):
        from gibbsite.kernels.base import Kernel
        from gibbsite.kernels.protocols import Replicated

        answers: tuple[str, ...] = ("MAR", "PR")
        if isinstance(method, Kernel):
            answers = ("MAR", "MAP") if method.estimates else ("MAP",)
            answers = (*answers, "PR") if isinstance(method, Replicated) else answers
        elif not is_weighted(method):
            raise ArgumentError(f"{argument('method')} must be a name or a kernel such as gs.Gibbs(), got {method!r}.")
    elif method in known_methods():
        answers = known_methods()[method]
    else:
        raise ArgumentError(unknown("method", method, known_methods()))
    if task not in answers:
        others = [name for name, tasks in known_methods().items() if task in tasks]
        name = repr(method) if isinstance(method, str) else type(method).__name__
        raise ArgumentError(f"method {name} does not answer {task}; choose one of {', '.join(others)}.")
    if method not in ("auto", "exact"):
        return method, "as asked"
    if is_stored(model):
        return OTHERWISE[task], "a stored model is sampled"
    if not exact:
        return OTHERWISE[task], "an exact solution was not asked for"
    if task == "MAP" and method == "auto" and not fits_tables(model):
        from gibbsite.kernels.gibbs.annealed import AnnealedGibbs

        return AnnealedGibbs(), "a noisy node has too many parents for a table"
    from gibbsite.inference.exact import predict_exact
    from gibbsite.inference.exact.memory import usable_memory

    cost = predict_exact(model)
    size = cost.line()
    time_limit = max(60.0, 0.0 if seconds is None else seconds)
    fits = cost.bytes <= 0.5 * usable_memory() and cost.seconds <= time_limit
    if fits or method == "exact":
        return "exact", size
    return OTHERWISE[task], f"an exact solution does not fit: {size}"
