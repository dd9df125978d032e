"""``gibbsite.sample``: the whole way from a model to a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._jit import COMPILING, on_compile
from gibbsite.errors import ConvergenceWarning, IncompatibleError, ModelError, SamplingError
from gibbsite.graph.lower import compile_graph
from gibbsite.kernel import Kernel, default_kernel
from gibbsite.kernel.base import Course
from gibbsite.result.result import JointSets, Result
from gibbsite.run.budget import Budget, is_real, read_budget, whole
from gibbsite.run.checkpoint import read_checkpoint
from gibbsite.run.engine import Recording, Setup, run_chains
from gibbsite.run.executor import read_threads
from gibbsite.run.form import choose_scan_and_form
from gibbsite.run.plan import as_data, make_plan, read_entropy
from gibbsite.run.progress import Progress, choose_progress
from gibbsite.run.record import lay_out
from gibbsite.run.start import start_states
from gibbsite.run.tape import BATCHES, DRAWS, LENGTH
from gibbsite.scan import Scan
from gibbsite.scrutiny import find_doubts

if TYPE_CHECKING:
    from gibbsite.model import Model


def sample(
    model: Model,
    kernel: Kernel | None = None,
    *,
    scan: Scan | None = None,
    sweeps: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    error: float | None = None,
    warmup: int | None = None,
    thin: int = 1,
    chains: int = 4,
    rng: Any = None,
    start: Any = None,
    record: Any = None,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    progress: Any = None,
) -> Result:
    """Sample from a model.

    Parameters
    ----------
    model : Model
        The model, with evidence folded in.
    kernel : Kernel, optional
        How a site moves; ``Gibbs()`` by default, ``ContinuousGibbs()`` where factors are functions.
    scan : Scan, optional
        In which order; by default ``Chromatic()`` where many sites or chains can move at once (large binary
        models and Potts lattices), otherwise ``Systematic()``.
    sweeps, steps, seconds : number, optional
        Budget of each chain after the warmup, in sweeps (as many steps as there are free sites) or in
        single steps; ``seconds`` limits the time of all chains together. 1000 sweeps by default; kernels
        that need a certain number, as for all of their temperatures, take that.
    error : float, optional
        Stop as soon as the run has converged and no marginal has a larger standard error; asked at 256,
        512, 1024, ... draws.
    warmup : int, optional
        Sweeps before recording; a tenth of the budget by default, none with an annealed kernel.
    thin : int
        Record every ``thin``-th sweep.
    chains : int
        Independent chains; at least two are needed to notice disagreement.
    rng : int, Generator or SeedSequence, optional
        Seed; the one used is stored in ``result.plan.entropy``.
    start : optional
        None: random states, found in the support; "random"; a mapping from names to labels or numbers; or
        state codes or numbers of shape (sites,) or (chains, sites).
    record : optional
        What to keep: names ("marginals", "draws", "pairs", "energy", "best") or recorders such as
        ``gs.Draws(["A"])``; marginals by default, with an annealed kernel the best state.
    threads : int, optional
        Chains run on as many threads; all usable cores by default. The numbers do not depend on it.
    checkpoint : path, optional
        Save the run there after two seconds, then every ``checkpoint_every`` seconds, and at the end.
    resume : bool
        Continue from the checkpoint if it exists; the result equals that of an uninterrupted run.
    progress : optional
        None: shown on stderr; False: silent; a function: called with every status.

    Returns
    -------
    Result

    Raises
    ------
    SamplingError
        If steps went wrong, as where a function of the user returned NaN; ``error.result`` has what was
        recorded before.

    Warns
    -----
    ConvergenceWarning
        If the chains have not converged, or the kernel has a grave remark on its results.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((10, 10), coupling=0.2, field=0.1)
    >>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
    >>> 0.5 < result.marginals["0"][1] < 0.7
    True
    """
    _check_parts(model, kernel, scan)
    chains = whole("chains", chains, 1)
    threads = read_threads(threads)
    if error is not None and not (is_real(error) and 0 < error < 1):
        raise ModelError(f"error must be a number between 0 and 1, got {error!r}.")
    if error is not None and kernel is not None and not kernel.estimates:
        raise IncompatibleError(
            f"{type(kernel).__name__} estimates no probabilities: there is no error to stop at; leave it out."
        )
    length = partial(read_budget, sweeps=sweeps, steps=steps, seconds=seconds, warmup=warmup, thin=thin)
    length(model.n_sites)  # refuses what makes no sense before any work
    show = choose_progress(progress)
    path = read_checkpoint(checkpoint, checkpoint_every, resume)
    with on_compile(lambda: show.say(COMPILING)):
        try:
            recording = record_chains(
                model,
                kernel,
                scan=scan,
                length=length,
                thin=int(thin),
                chains=chains,
                rng=rng,
                start=start,
                record=record,
                threads=threads,
                progress=show,
                checkpoint=path,
                checkpoint_every=checkpoint_every,
                resume=resume,
                enough=None if error is None else lambda now: _is_enough(now, error),
            )
        except SamplingError as wrong:
            wrong.result = None if wrong.recording is None else make_result(wrong.recording)
            raise
        result = make_result(recording)
        verdict = result.diagnostics
    if verdict.reasons:
        reasons = " ".join(verdict.reasons)
        said = "was not judged" if verdict.errors == "none" else "has not converged"
        warnings.warn(f"The run {said}: {reasons}", ConvergenceWarning, stacklevel=2)
    for remark in recording.setup.remarks:
        if remark.grave:
            warnings.warn(remark.text, ConvergenceWarning, stacklevel=2)
    return result


def record_chains(
    model: Model,
    kernel: Kernel | None,
    *,
    scan: Scan | None,
    length: Callable[..., Budget],
    thin: int = 1,
    chains: int = 1,
    rng: Any,
    start: Any,
    record: Any,
    progress: Progress,
    **how: Any,
) -> Recording:
    """Compile a model and run its chains; nothing is judged.

    ``length`` tells the budget of a kernel (see :func:`read_budget`); ``how`` is passed to
    :func:`run_chains`.
    """
    graph = compile_graph(model, among=kernel.kinds if kernel is not None else ())
    kernel = default_kernel(graph) if kernel is None else kernel
    kernel.check(graph)
    units = kernel.units(graph)
    if units is not None:
        graph = replace(graph, units=units)
    layout = lay_out(model, graph, kernel, record)
    entropy = read_entropy(rng)
    scan, form = choose_scan_and_form(model, graph, kernel, scan, layout, chains)
    asked = length(graph.n_units)
    visits = asked.visits if asked.counted else None
    course = Course(type(scan).__name__, scan.cycle(graph, model), graph.n_units, thin, visits)
    settled = kernel.settle(course)
    if settled is not kernel:
        kernel = settled
        scan, form = choose_scan_and_form(model, graph, kernel, scan, layout, chains)
    kernel.parameters(graph)  # refuses what makes no sense before any work
    budget = length(graph.n_units, span=kernel.span(model.n_sites), warms=kernel.estimates)
    plan = make_plan(
        graph,
        kernel,
        scan,
        layout,
        form=form.name,
        chains=chains,
        thin=thin,
        warmup=budget.warmup,
        entropy=entropy,
        start=str(as_data(start)),
    )
    starts = start_states(model, graph, chains, start, entropy)
    setup = Setup(model, kernel, scan, layout, form, plan, kernel.remarks(model, graph, scan))
    return run_chains(setup, starts, budget, progress=progress, **how)


def _check_parts(model: Any, kernel: Any, scan: Any) -> None:
    from gibbsite.model import Model

    if not isinstance(model, Model):
        raise ModelError(
            f"sample needs a model, got {type(model).__name__}; make one with gs.FactorGraph, gs.ising, "
            "gs.ising_grid and so on."
        )
    if kernel is not None and not isinstance(kernel, Kernel):
        raise ModelError(f"kernel must be a kernel such as gs.Gibbs(), got {kernel!r}.")
    if scan is not None and not isinstance(scan, Scan):
        raise ModelError(f"scan must be a scan such as gs.Systematic(), got {scan!r}.")


def _is_enough(recording: Recording, error: float) -> bool:
    """Tell whether a run may end; the costly scrutiny comes last."""
    verdict = make_result(recording, scrutinise=False).diagnostics
    if not verdict.converged or verdict.mcse_max is None or verdict.mcse_max > error:
        return False
    return make_result(recording).diagnostics.converged


def _source_of_errors(setup: Setup) -> str:
    """Return what standard errors can be taken from: not from draws, if means of batches were not kept."""
    errors = setup.kernel.errors
    return "chains" if errors == "draws" and not setup.layout.batches else errors


def make_result(recording: Recording, scrutinise: bool = True) -> Result:
    """Turn what a run left behind into a result, doubts included unless they are not asked for."""
    setup, tapes = recording.setup, recording.tapes
    model, layout = setup.model, setup.layout
    counters = tapes[0].counters
    draws = int(counters[DRAWS])
    span = setup.kernel.span(model.n_sites)
    totals = np.stack([tape.total + tape.open_batch for tape in tapes])
    bests = np.array([tape.best[0] for tape in tapes if layout.best]) + setup.graph.log_offset
    return Result(
        plan=setup.plan,
        domains=model.domains,
        evidence=model.evidence,
        evidence_labels=model.evidence_labels,
        binary=setup.graph.binary,
        n_marginal=layout.n_marginal,
        draws=draws,
        warmup=recording.warmup,
        totals=totals,
        trace=np.stack([tape.trace[: counters[BATCHES]] for tape in tapes]),
        length=int(counters[LENGTH]),
        sets=JointSets(layout.set_start, layout.set_member, layout.set_cell, layout.n_joint),
        draw_sites=layout.draw_sites,
        values=np.stack([tape.values[:draws] for tape in tapes]),
        energy=np.stack([tape.energy[:draws] + setup.graph.log_offset for tape in tapes]),
        bests=bests,
        best_x=tapes[int(np.argmax(bests))].best_x if layout.best else np.zeros(0, setup.graph.state_dtype),
        doubts=find_doubts(recording, totals) if scrutinise else (),
        errors=_source_of_errors(setup),
        remarks=tuple(remark.text for remark in setup.remarks),
        period=None if span is None else span // setup.plan.thin,
        report=recording.report,
        interrupted=recording.interrupted,
        seconds=recording.seconds,
    )
