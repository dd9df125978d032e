"""``gibbsite.sample``: the whole way from a model to a result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._compile.jit import announcing, clock
from gibbsite.errors import ConvergenceWarning, IncompatibleError, ModelError, SamplingError
from gibbsite.graph.compile import compile_graph
from gibbsite.kernel import Kernel, default_kernel
from gibbsite.kernel.base import RunOutline
from gibbsite.result.measure.energies import count_round_trips
from gibbsite.result.result import JointSets, Result
from gibbsite.result.verdict.second_look import SecondLook
from gibbsite.result.verdict.unreached import find_unreached
from gibbsite.run.budget import Budget, check_integer, is_real, read_budget
from gibbsite.run.chain_layout import choose_scan_and_layout
from gibbsite.run.checkpoint import load_checkpoint, read_checkpoint
from gibbsite.run.engine import Recording, Setup, run_chains
from gibbsite.run.executor import read_threads
from gibbsite.run.interrupt import catch_interrupt
from gibbsite.run.plan import as_data, make_plan, read_entropy
from gibbsite.run.progress import Progress, choose_progress
from gibbsite.run.record import lay_out
from gibbsite.run.tape import BATCHES, DRAWS, LENGTH, read_pulse
from gibbsite.scan import Scan
from gibbsite.support.start import start_states

if TYPE_CHECKING:
    from gibbsite.model import Model


_RESERVE = 0.2  # of a time limit, for diagnostics and the second look
_PATIENCE = 1.1  # of a time limit: a second look may take so long rather than be left out
_ROUND_TRIPS = 10  # between high and low energy, of all chains, before a run may end early


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
    second_look: bool = True,
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
    second_look : bool
        Before the run is called converged, compare it with 64 short chains from other starts, for at most
        15 % of its cost (:mod:`gibbsite.result.verdict.second_look`). Without, the verdict says so.

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
    chains = check_integer("chains", chains, 1)
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
    judge = Judge(error, second_look, threads, seconds)
    path = read_checkpoint(checkpoint, checkpoint_every, resume)
    if resume and path is not None and path.exists():
        rng, warmup = _continued(path, rng, warmup)
        length = partial(length, warmup=warmup)
    with announcing(show.say):
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
                enough=None if error is None else judge.is_enough,
                reserve=judge.reserve(kernel),
            )
        except SamplingError as wrong:
            wrong.result = None if wrong.recording is None else make_result(wrong.recording)
            raise
        result = judge.conclude(recording)
        verdict = result.diagnostics
    if verdict.reasons:
        reasons = " ".join(verdict.reasons)
        said = "was not judged" if verdict.errors == "none" else "has not converged"
        warnings.warn(f"The run {said}: {reasons}", ConvergenceWarning, stacklevel=2)
    for remark in recording.setup.remarks:
        if remark.grave:
            warnings.warn(remark.text, ConvergenceWarning, stacklevel=2)
    return result


def _continued(path: Path, rng: Any, warmup: int | None) -> tuple[Any, int | None]:
    """Return seed and warmup of a run that is continued: those of the checkpoint, unless others are given."""
    plan = load_checkpoint(path)[0]["plan"]
    return plan.get("entropy") if rng is None else rng, plan.get("warmup") if warmup is None else warmup


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
    scan, form = choose_scan_and_layout(model, graph, kernel, scan, layout, chains)
    asked = length(graph.n_units)
    visits = asked.visits if asked.counted else None
    outline = RunOutline(type(scan).__name__, scan.cycle(graph, model), graph.n_units, thin, visits)
    settled = kernel.resolve(outline)
    if settled is not kernel:
        kernel = settled
        scan, form = choose_scan_and_layout(model, graph, kernel, scan, layout, chains)
    kernel.parameters(graph)  # refuses what makes no sense before any work
    budget = length(
        graph.n_units, natural_sweeps=kernel.natural_sweeps(model.n_sites), warms=kernel.estimates
    )
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


class Judge:
    """Turns recordings into results; keeps the short chains of the second look from one question to the next.

    Parameters
    ----------
    error : float or None
        Largest standard error at which a run may end early.
    second_look : bool
        Whether runs are compared with short chains from other starts.
    threads : int
        Threads for those.
    seconds : float or None
        Time limit of the run, the second look included.
    """

    def __init__(self, error: float | None, second_look: bool, threads: int, seconds: float | None) -> None:
        self.error, self.wanted, self.threads = error, second_look, threads
        self.seconds = math.inf if seconds is None else float(seconds)
        self.looker: SecondLook | None = None

    def reserve(self, kernel: Kernel | None) -> float:
        """Return the share of a time limit that is kept for the verdict."""
        return 0.0 if not self.wanted or (kernel is not None and not kernel.estimates) else _RESERVE

    def is_enough(self, recording: Recording) -> bool:
        """Tell whether a run may end: its errors are small, it has been about, and it stands a second look.

        What costs more is asked later.
        """
        assert self.error is not None
        first = make_result(recording)
        verdict = first.diagnostics
        if not verdict.converged or verdict.mcse_max is None or verdict.mcse_max > self.error:
            return False
        trips = count_round_trips(first.pulse)
        if trips is not None and trips < _ROUND_TRIPS:
            return False
        return self._scrutinise(recording, first, lambda: False).diagnostics.converged

    def conclude(self, recording: Recording) -> Result:
        """Return the result of a run that has ended, with everything that speaks against it."""
        first = make_result(recording)
        with catch_interrupt(lambda message: None) as flag:
            result = self._scrutinise(recording, first, lambda: flag.up)
        return result.judged(interrupted=result.interrupted or flag.up)

    def _scrutinise(self, recording: Recording, first: Result, stop: Callable[[], bool]) -> Result:
        """Add unreached and a second look, the latter only where nothing else speaks against a run."""
        result = first.judged(unreached=find_unreached(recording, first.totals))
        if not result.diagnostics.converged or not first.n_marginal:
            return result
        if not self.wanted:
            return result.judged(look="off")
        deadline = clock() + _PATIENCE * self.seconds - recording.seconds
        if self.looker is None or self.looker.setup is not recording.setup:
            self.looker = SecondLook(recording.setup, self.threads)
        look = self.looker.examine(recording, result, lambda needs: stop() or clock() + needs >= deadline)
        return result.judged(look="no time" if look is None else look)


def _source_of_errors(setup: Setup) -> str:
    """Return what standard errors can be taken from: not from draws, if means of batches were not kept."""
    errors = setup.kernel.error_source
    return "chains" if errors == "draws" and not setup.layout.batches else errors


def make_result(recording: Recording) -> Result:
    """Turn what a run left behind into a result; whether it may have missed something is not asked here."""
    setup, tapes = recording.setup, recording.tapes
    model, layout = setup.model, setup.layout
    counters = tapes[0].counters
    draws = int(counters[DRAWS])
    span = setup.kernel.natural_sweeps(model.n_sites)
    totals = np.stack([tape.total + tape.open_batch for tape in tapes])
    bests = np.array([tape.best[0] for tape in tapes if layout.best]) + setup.graph.log_offset
    return Result(
        plan=replace(setup.plan, warmup=recording.warmup),
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
        energy=np.stack([tape.energy[:draws] - setup.graph.log_offset for tape in tapes]),
        bests=bests,
        best_x=tapes[int(np.argmax(bests))].best_x if layout.best else np.zeros(0, setup.graph.state_dtype),
        errors=_source_of_errors(setup),
        remarks=tuple(remark.text for remark in setup.remarks),
        period=None if span is None else span // setup.plan.thin,
        report=recording.report,
        pulse=np.stack([read_pulse(tape) for tape in tapes]) + setup.graph.log_offset,
        interrupted=recording.interrupted,
        seconds=recording.seconds,
    )
