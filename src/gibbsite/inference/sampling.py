"""``gibbsite.sample``, which goes all the way from a model to a result."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import as_model, check_integer, read_query
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing, clock
from gibbsite.errors import ArgumentError, ConvergenceWarning, IncompatibleError, SamplingError
from gibbsite.kernels.base import Kernel
from gibbsite.results.result import Result
from gibbsite.results.verdict.criteria import NO_CRITERIA, Criteria, read_criteria
from gibbsite.results.verdict.judge import Judge, foresee, make_result
from gibbsite.sampling.driver import Driver, Recording
from gibbsite.sampling.executor import Executor, read_threads
from gibbsite.sampling.progress import Progress, Silent, catch_interrupt, choose_progress, name_kernel, whole_runs_only
from gibbsite.sampling.record import keep_marginals
from gibbsite.sampling.setup import Setup, prepare, read_length
from gibbsite.scans.base import Scan

if TYPE_CHECKING:
    from gibbsite.models import Model
    from gibbsite.sampling.checkpoint import Checkpoint, Saving
    from gibbsite.sampling.length import Steps, Sweeps


def sample(
    model: Model,
    kernel: Kernel | None = None,
    *,
    scan: Scan | None = None,
    sweeps: int | Sweeps | Steps | None = None,
    seconds: float | None = None,
    warmup: int | None = None,
    chains: int = 4,
    rng: Any = None,
    start: Any = None,
    record: Any = None,
    criteria: Criteria | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    threads: int | None = None,
    on: Any = None,
    progress: Any = None,
) -> Result:
    """Sample from a model.

    Parameters
    ----------
    model : Model
        The model, with evidence folded in.
    kernel : Kernel, optional
        The algorithm that updates a site; ``Gibbs()`` by default, ``ContinuousGibbs()`` where factors are
        functions.
    scan : Scan, optional
        The order in which sites are updated; by default ``Chromatic()`` where many sites or chains can move at
        once (large binary models and Potts lattices), otherwise ``Systematic()``.
    sweeps : int, Sweeps or Steps, optional
        Sweeps of each chain after the warmup; a sweep has as many steps as there are free sites. 1000 by
        default, if there is no time limit either; kernels that need a certain number, for example for all of
        their temperatures, take that. ``gs.Sweeps(1000, thin=5)`` records every fifth sweep, and
        ``gs.Steps(250)`` counts single steps.
    seconds : float, optional
        Time limit of all chains together.
    warmup : int, optional
        Sweeps before recording; a tenth of the budget by default, none with an annealed kernel.
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
    criteria : Criteria, optional
        The accuracy of the marginals, the sites that are asked for, and whether chains from dispersed starts are
        compared with the run: ``gs.Criteria(accuracy=0.01)`` ends the run as soon as it has converged and four standard
        errors of every marginal are at most 0.01.
    checkpoint : path or Checkpoint, optional
        File to save the run to at intervals; ``gs.Checkpoint(path, resume=True)`` continues from it.
    threads : int, optional
        Number of threads that run chains; all usable cores by default. The numbers do not depend on it.
    on : optional
        Where the chains run: on threads of this process by default; on the workers of a Dask cluster, given
        as a ``distributed.Client``, as the address of its scheduler ("tcp://host:8786") or as "local-dask",
        for processes of this machine; or, with "ray", on a Ray cluster. ``gs.Cluster(client, partitions=8)``
        divides each chain among eight workers. The numbers do not depend on it
        (:mod:`gibbsite.sampling.executors`).
    progress : optional
        None: shown on stderr; False: silent; a function: called with every status.

    Returns
    -------
    Result

    Raises
    ------
    SamplingError
        If a step failed, for example because a user's function returned NaN; ``error.result`` has what was recorded
        before.

    Warns
    -----
    ConvergenceWarning
        If the chains have not converged, or if the kernel warns that a number of the result is biased.

    See Also
    --------
    infer : Choose a method and use it.
    sample_batch : Sample several observations of one model.
    sample_weighted : Weighted draws of Bayesian networks.
    recommend : Measure which method suits a model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((10, 10), coupling=0.2, field=0.1)
    >>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
    >>> 0.5 < result.marginals["0"][1] < 0.7
    True
    """
    begun, model = clock(), as_model(model)
    check_parts(model, kernel, scan)
    chains = check_integer("chains", chains, 1)
    criteria = NO_CRITERIA if criteria is None else read_criteria(criteria)
    threads = read_threads(threads)
    if criteria.accuracy is not None and kernel is not None and not kernel.estimates:
        raise IncompatibleError(
            f"{type(kernel).__name__} estimates no probabilities, so a run cannot end at an accuracy; leave out "
            f"{argument('accuracy')}."
        )
    length = read_length(sweeps, seconds, warmup)
    show = choose_progress(progress)
    sites = None if criteria.query is None else read_query(model, criteria.query)
    judge = Judge(criteria, threads, seconds, sites)
    with ExitStack() as stack:
        saving = None
        if checkpoint is not None:
            from gibbsite.sampling.checkpoint import open_checkpoint

            saving = stack.enter_context(open_checkpoint(checkpoint))
        if not isinstance(show, Silent):
            stack.enter_context(announcing(show.say, name_kernel(kernel)))
        executor = None
        if on is not None:
            from gibbsite.sampling.executors.choosing import find_executor

            asked = clock()
            executor = stack.enter_context(find_executor(on))
            begun += clock() - asked  # the time for starting a cluster does not count
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
        verdict = result.diagnostics
    warned: list[str] = []
    for remark in setup.remarks:
        warned += [remark.text] * remark.grave
    if verdict.reasons:
        word = "was not judged" if verdict.figures["errors"] == "none" else "has not converged"
        warned = [f"The run {word}: {verdict.reasons[0]}", *verdict.reasons[1:], *warned]
    if warned:
        warn_user(" ".join(warned), ConvergenceWarning)
    return result


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
    """Sample for a short time, to see how well a kernel works; only the cheap checks of the verdict are made.

    An interrupt raises KeyboardInterrupt, because an incomplete trial is not informative.

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
    return Judge(Criteria(dispersed_starts=False), 1, None).first(recording)


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
        The run, as :func:`prepare` returns it.
    threads : int
        Threads of this process.
    progress : Progress
        Where progress is shown.
    executor : Executor, optional
        Where the chains run, if not on threads of this process.
    judge : Judge, optional
        Decides whether the run may end early, and how much of a time limit is reserved for the verdict.
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
    """Refuse arguments that are not a model, a kernel or a scan."""
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
