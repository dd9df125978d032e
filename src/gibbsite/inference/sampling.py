"""``gibbsite.sample``: the whole way from a model to a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import check_flags, read_query
from gibbsite._common.boundary import between, check_header, fits
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing, clock
from gibbsite.errors import ArgumentError, ConvergenceWarning, IncompatibleError, SamplingError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.support.start import start_states
from gibbsite.inference.coupling.couple import prepare_couple, run_couple
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.protocols import Finite, Resolvable, RunOutline, Tunable
from gibbsite.kernels.registry import default_kernel
from gibbsite.results.make import make_result
from gibbsite.results.result import Result
from gibbsite.results.verdict.judge import Judge, foresee
from gibbsite.sampling.budget import Budget, check_integer, is_real, read_budget
from gibbsite.sampling.chain_layout import choose_scan_and_layout
from gibbsite.sampling.checkpoint import failure, hold_checkpoint, load_checkpoint, read_checkpoint
from gibbsite.sampling.crew import Crew
from gibbsite.sampling.engine import TUNED, Recording, Setup, run_chains
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.executors.choosing import find_crew
from gibbsite.sampling.interrupt import whole_runs_only
from gibbsite.sampling.pilot import ChainPilot
from gibbsite.sampling.plan import make_plan, read_entropy, start_text
from gibbsite.sampling.progress import Progress, choose_progress, name_kernel
from gibbsite.sampling.recipe import Recipe, fit_graph
from gibbsite.sampling.record import keep_marginals, lay_out
from gibbsite.scans.base import Scan

if TYPE_CHECKING:
    from gibbsite.models import Model

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
    if error is not None and not (is_real(error) and 0 < error < 1):
        raise ArgumentError(f"{argument('error')} must be a number between 0 and 1, got {error!r}.")
    if error is not None and kernel is not None and not kernel.estimates:
        raise IncompatibleError(
            f"{type(kernel).__name__} estimates no probabilities: there is no error to stop at; leave it out."
        )
    length = partial(read_budget, sweeps=sweeps, steps=steps, seconds=seconds, warmup=warmup, thin=thin)
    length(model.n_sites)  # refuses what makes no sense before any work
    show = choose_progress(progress)
    judge = Judge(error, second_look, threads, seconds, read_query(model, query))
    if coupling:
        prepare_couple(model, kernel, scan, start)  # refuses before any work
    path = read_checkpoint(checkpoint, checkpoint_every, resume)
    asked = clock()
    with (
        hold_checkpoint(path, bool(resume)),
        announcing(show.say, name_kernel(kernel)),
        find_crew(on, partitions) as crew,
    ):
        begun += clock() - asked  # a cluster that is started first takes no time of the budget
        if resume and path is not None and path.exists():
            rng, warmup = _continued(path, rng, warmup)
            length = partial(length, warmup=warmup)
        try:
            recording = record_chains(
                model,
                kernel,
                crew=crew,
                scan=scan,
                length=length,
                thin=int(thin),
                chains=chains,
                rng=rng,
                start=start,
                record=keep_marginals(record, kernel),
                threads=threads,
                progress=show,
                checkpoint=path,
                checkpoint_every=checkpoint_every,
                resume=resume,
                enough=None if error is None else judge.is_enough,
                reserve=judge.reserve(kernel),
                foresee=foresee,
                begun=begun,
            )
        except SamplingError as wrong:
            wrong.result = None if wrong.recording is None else make_result(wrong.recording)
            raise
        result = judge.conclude(recording)
        if coupling:
            result = result.judged(coupling_bound=_bound_distance(recording, start, result.warmup, threads))
        verdict = result.diagnostics
    said = [remark.text for remark in recording.setup.remarks if remark.grave]
    if verdict.reasons:
        word = "was not judged" if verdict.errors == "none" else "has not converged"
        said = [f"The run {word}: {verdict.reasons[0]}", *verdict.reasons[1:], *said]
    if said:
        warnings.warn(" ".join(said), ConvergenceWarning, stacklevel=2)
    return result


def _bound_distance(recording: Recording, start: Any, warmup: int, threads: int) -> float:
    """Return an upper bound of the distance to stationarity after the warmup, from coupled chains."""
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
    length = partial(read_budget, sweeps=None, steps=None, seconds=seconds, warmup=None, thin=1)
    recording = record_chains(
        model,
        kernel,
        scan=None,
        length=length,
        chains=chains,
        rng=rng,
        start=start,
        record=keep_marginals(None, kernel),
        threads=read_threads(threads),
        progress=choose_progress(False),
    )
    return Judge(None, False, 1, None).first(recording)


def _continued(path: Path, rng: Any, warmup: int | None) -> tuple[Any, int | None]:
    """Return seed and warmup of a run that is continued: those of the checkpoint, unless others are given."""
    plan = load_checkpoint(path, TUNED)[0]["plan"]
    natural = between(0, 1 << 62)
    check_header(
        {"entropy": 0, "warmup": None, **plan},
        {"entropy": lambda given: fits(given, int) and given >= 0, "warmup": (None, natural)},
        failure(path),
    )
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
    crew: Crew | None = None,
    **how: Any,
) -> Recording:
    """Compile a model and run its chains; nothing is judged.

    ``length`` tells the budget of a kernel (see :func:`read_budget`); ``how`` is passed to
    :func:`run_chains`.
    """
    kernel = scan.kernel() if kernel is None and scan is not None else kernel
    graph = compile_graph(model, among=kernel.kinds if kernel is not None else ())
    kernel = default_kernel(graph) if kernel is None else kernel
    kernel.check(graph)
    graph = fit_graph(graph, kernel)
    layout = lay_out(model, graph, kernel, record)
    entropy = read_entropy(rng)
    wanted = scan
    scan, form = choose_scan_and_layout(model, graph, kernel, wanted, layout, chains)
    asked = length(graph.n_units)
    visits = asked.visits if asked.counted else None
    if isinstance(kernel, Resolvable):
        kernel = kernel.resolve(RunOutline(type(scan).__name__, scan.cycle(graph, model), graph.n_units, thin, visits))
        scan, form = choose_scan_and_layout(model, graph, kernel, wanted, layout, chains)
    kernel.parameters(graph)  # refuses what makes no sense before any work
    budget = length(
        graph.n_units,
        natural_sweeps=kernel.natural_sweeps(model.n_sites) if isinstance(kernel, Finite) else None,
        warms=kernel.estimates,
    )
    starts = start_states(model, graph, chains, start, entropy)
    if isinstance(kernel, Tunable) and kernel.tunes:
        pilot = ChainPilot(model, graph, scan, starts, entropy, how["threads"], budget)
        kernel = _tune(kernel, pilot, how)
        scan, form = choose_scan_and_layout(model, graph, kernel, wanted, layout, chains)
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
        start=start_text(start),
    )
    setup = Setup(model, kernel, scan, layout, form, plan, kernel.warnings(model, graph, scan))
    if crew is not None:
        crew = crew.employ(Recipe(model, kernel, wanted, record, chains), progress.say, form)
    return run_chains(setup, starts, budget, progress=progress, crew=crew, **how)


def _tune(kernel: Any, pilot: ChainPilot, how: dict[str, Any]) -> Kernel:
    """Let a kernel find out what it needs; a run that is continued takes what it had found."""
    path: Path | None = how.get("checkpoint")
    if path is not None and how.get("resume") and path.exists():
        known = {name.removeprefix(TUNED): one for name, one in load_checkpoint(path, TUNED)[1].items()}
        try:
            found: Kernel = kernel.retuned(known) if known else kernel  # of another kernel: the plan tells
            found.parameters(pilot.graph)
        except (TypeError, ValueError, IndexError) as reason:
            raise failure(path)(f"what its kernel had found is damaged ({reason})") from None
        return found
    tuned: Kernel = kernel.tune(pilot)
    return tuned


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
