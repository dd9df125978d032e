"""``gibbsite.sample``: the whole way from a model to a result."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import check_flags, check_integer, is_number, read_query
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing, clock
from gibbsite.errors import ArgumentError, ConvergenceWarning, IncompatibleError, SamplingError
from gibbsite.kernels.base import Kernel
from gibbsite.results.result import Result
from gibbsite.results.verdict.judge import Judge, foresee, make_result
from gibbsite.sampling.driver import Driver, Recording
from gibbsite.sampling.executor import Executor, read_threads
from gibbsite.sampling.progress import Progress, Silent, catch_interrupt, choose_progress, name_kernel, whole_runs_only
from gibbsite.sampling.record import keep_marginals
from gibbsite.sampling.setup import Setup, prepare, read_length
from gibbsite.scans.base import Scan

if TYPE_CHECKING:
    from gibbsite.models import Model
    from gibbsite.sampling.checkpoint import Saving

# Pairs of coupled chains that tell how far a run was from stationarity, and sweeps that they have at least.
_COUPLED_PAIRS, _LEAST_COUPLED = 100, 1000


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
    query: Iterable[str | int] | None = None,
    coupling: bool = False,
    on: Any = None,
    partitions: int | None = None,
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
        ``gs.Draws(["A"])``; marginals by default, with an annealed kernel the best state. Marginals are
        always kept, because the verdict is about them, unless only the best state is asked for;
        ``gs.Marginals(sites=["A"])`` keeps those of some sites, which is faster for large models.
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
        15 % of its cost (:mod:`gibbsite.results.verdict.second_look`). Without, the verdict says so.
    query : iterable of sites, optional
        Sites whose marginals are asked for; all by default. R-hat, effective draws and standard errors are
        judged at these; other sites have to mix so well only that they cannot make these wrong
        (docs/diagnostics.md).
    coupling : bool
        Afterwards, let 100 pairs of coupled chains of the same kernel, scan and start run until they meet
        (:func:`gibbsite.couple`): ``result.coupling_bound`` is then an upper bound of the distance to
        stationarity at the end of the warmup. Pairs are given up after ten times the warmup, or 1000 sweeps.
    on : optional
        Where the chains run: on threads of this process by default; on the workers of a Dask cluster, given
        as a ``distributed.Client``, as the address of its scheduler ("tcp://host:8786") or as "local-dask",
        for processes of this machine; or, with "ray", on a Ray cluster. The numbers do not depend on it
        (:mod:`gibbsite.sampling.executors`).
    partitions : int, optional
        Cut the model into so many parts and share them out to the Dask workers, which all move the same
        chain at the same time: for large models whose sites move many at once. Of tempered chains, the rungs
        are shared out instead. The numbers do not depend on it (:mod:`gibbsite.sampling.executors.partitions`).

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
    begun = clock()
    check_parts(model, kernel, scan)
    chains = check_integer("chains", chains, 1)
    check_flags(resume=resume, second_look=second_look, coupling=coupling)
    threads = read_threads(threads)
    if error is not None and not (is_number(error) and 0 < error < 1):
        raise ArgumentError(f"{argument('error')} must be a number between 0 and 1, got {error!r}.")
    if error is not None and kernel is not None and not kernel.estimates:
        raise IncompatibleError(
            f"{type(kernel).__name__} estimates no probabilities: there is no error to stop at; leave it out."
        )
    length = read_length(sweeps, steps, seconds, warmup, thin)
    show = choose_progress(progress)
    sites = None if query is None else read_query(model, query)
    judge = Judge(error, second_look, threads, seconds, sites)
    if coupling:
        from gibbsite.inference.coupling.couple import prepare_couple

        prepare_couple(model, kernel, scan, start)  # refuses before any work
    with ExitStack() as stack:
        saving = None
        if checkpoint is not None or resume or type(checkpoint_every) is not float or checkpoint_every != 60.0:
            from gibbsite.sampling.checkpoint import open_checkpoint

            saving = stack.enter_context(open_checkpoint(checkpoint, checkpoint_every, bool(resume)))
        if not isinstance(show, Silent):
            stack.enter_context(announcing(show.say, name_kernel(kernel)))
        executor = None
        if on is not None or partitions is not None:
            from gibbsite.sampling.executors.choosing import find_executor

            asked = clock()
            executor = stack.enter_context(find_executor(on, partitions))
            begun += clock() - asked  # starting a cluster takes no time of the budget
        if saving is not None and saving.stored is not None:
            rng, length = saving.continued(rng, length)
        setup = prepare(
            model,
            kernel,
            scan,
            keep_marginals(record, kernel),
            chains,
            rng=rng,
            start=start,
            length=length,
            threads=threads,
            tuned=None if saving is None else saving.tuned,
        )
        try:
            recording = record_chains(
                setup, threads=threads, progress=show, executor=executor, judge=judge, saving=saving, begun=begun
            )
        except SamplingError as wrong:
            wrong.result = None if wrong.recording is None else make_result(wrong.recording)
            raise
        result = judge.conclude(recording)
        if coupling:
            result = result.judged(coupling_bound=_bound_distance(recording, start, result.warmup, threads))
        verdict = result.diagnostics
    said: list[str] = []
    for remark in setup.remarks:
        said += [remark.text] * remark.grave
    if verdict.reasons:
        word = "was not judged" if verdict.figures["errors"] == "none" else "has not converged"
        said = [f"The run {word}: {verdict.reasons[0]}", *verdict.reasons[1:], *said]
    if said:
        warnings.warn(" ".join(said), ConvergenceWarning, stacklevel=2)
    return result


def _bound_distance(recording: Recording, start: Any, warmup: int, threads: int) -> float:
    """Return an upper bound of the distance to stationarity after the warmup, from coupled chains."""
    from gibbsite.inference.coupling.couple import prepare_couple, run_couple

    setup = recording.setup
    what = prepare_couple(setup.model, setup.kernel, setup.scan, start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # pairs that have not met: the bound is one
        found = run_couple(
            what,
            pairs=_COUPLED_PAIRS,
            sweeps=1,
            most=max(_LEAST_COUPLED, 10 * warmup),
            entropy=setup.plan.entropy,
            threads=threads,
        )
    if found.met < found.pairs:
        return 1.0
    return min(1.0, float(found.bound(warmup) + found.bound_mcse(warmup)))


@whole_runs_only()
def try_out(
    model: Model,
    kernel: Kernel,
    *,
    seconds: float,
    chains: int = 4,
    rng: Any = None,
    start: Any = None,
    threads: int | None = None,
) -> Result:
    """Sample for a short time, to see how a kernel does; what costs time is not asked about the result.

    An interrupt raises KeyboardInterrupt: nothing is known from half of a trial.

    Examples
    --------
    >>> import gibbsite as gs
    >>> try_out(gs.ising_grid((4, 4), coupling=0.2), gs.Gibbs(), seconds=0.1, rng=1).chains
    4
    """
    threads = read_threads(threads)
    length = read_length(seconds=seconds)
    setup = prepare(model, kernel, None, None, chains, rng=rng, start=start, length=length, threads=threads)
    recording = record_chains(setup, threads=threads, progress=choose_progress(False))
    return Judge(None, False, 1, None).first(recording)


def record_chains(
    setup: Setup,
    *,
    threads: int,
    progress: Progress,
    executor: Executor | None = None,
    judge: Judge | None = None,
    saving: Saving | None = None,
    begun: float | None = None,
) -> Recording:
    """Run chains to the end of their budget, an interrupt, or the time limit.

    Parameters
    ----------
    setup : Setup
        What runs.
    threads : int
        Threads of this process.
    progress : Progress
        Where progress is shown.
    executor : Executor, optional
        Where the chains run, if not on threads of this process.
    judge : Judge, optional
        Decides whether the answer is good enough, and how much of a time limit the verdict needs.
    saving : Saving, optional
        The checkpoint.
    begun : float, optional
        When the clock of the time limit was started; now by default.
    """
    if executor is not None:
        assert setup.recipe is not None
        executor = executor.employ(setup.recipe, progress.say, setup.layout)
    try:
        driver = Driver(setup, executor, threads=threads)
        with driver.threads, catch_interrupt(progress.say) as driver.flag:
            driver.begun = driver.begun if begun is None else begun
            if judge is not None:
                driver.checks = judge.error is not None
                driver.reserve = judge.reserve(setup.kernel) * driver.budget.seconds if driver.timed else 0.0
            if saving is not None:
                saving.begin(driver)
            try:
                for status in driver.run():
                    progress.show(status)
                    if saving is not None:
                        saving.update(driver)
                    if judge is not None and driver.timed and driver.wants_foresight:
                        began = clock()
                        part = driver.recording(1)
                        driver.foresee(clock() - began + foresee(part))
                    if judge is not None and driver.checks and driver.is_check and judge.is_enough(driver.recording()):
                        driver.stop()
            except SamplingError:  # the chains are as they were before the block that failed
                if saving is not None:
                    saving.end(driver)
                raise
            if saving is not None:
                saving.end(driver)
            return driver.recording()
    finally:
        progress.close()


def check_parts(model: Any, kernel: Any, scan: Any) -> None:
    """Refuse what is no model, kernel or scan."""
    from gibbsite.models import Model

    if not isinstance(model, Model):
        raise ArgumentError(
            f"sample needs a model, got {type(model).__name__}; make one with gs.FactorGraph, gs.ising, "
            "gs.ising_grid and so on."
        )
    if kernel is not None and not isinstance(kernel, Kernel):
        raise ArgumentError(f"{argument('kernel')} must be a kernel such as gs.Gibbs(), got {kernel!r}.")
    if scan is not None and not isinstance(scan, Scan):
        raise ArgumentError(f"{argument('scan')} must be a scan such as gs.Systematic(), got {scan!r}.")
