"""Sampling of many models in one call, with little overhead for hundreds of small models."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import as_model, check_integer, checked, is_iterable, read_query
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing
from gibbsite.errors import ArgumentError
from gibbsite.inference.persistent import refuse_meetings
from gibbsite.inference.sampling import check_parts
from gibbsite.kernels.base import Kernel
from gibbsite.results.result import Result
from gibbsite.results.verdict.criteria import Criteria, read_criteria
from gibbsite.results.verdict.judge import Judge
from gibbsite.results.verdict.known_marginals import solve_together
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import choose_progress, name_kernel
from gibbsite.sampling.record import keep_marginals
from gibbsite.sampling.setup import prepare, read_length

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model
    from gibbsite.scans.base import Scan


@checked
def sample_models(
    models: Iterable[Model],
    kernel: Kernel | None = None,
    *,
    scan: Scan | None = None,
    sweeps: int | None = None,
    warmup: int | None = None,
    chains: int = 4,
    rng: Any = None,
    start: Any = None,
    record: Any = None,
    threads: int | None = None,
    criteria: Criteria | None = None,
    progress: Any = None,
) -> list[Result]:
    """Sample from many models; each result equals that of a separate run.

    Parameters
    ----------
    models : iterable of Model
        The models. Those that differ in weights alone, as made by ``model.reweight``, share their structure.
    kernel, scan, sweeps, warmup, chains, start, record, threads, progress : optional
        As in :func:`gibbsite.sample`.
    criteria : Criteria, optional
        As in :func:`gibbsite.sample`, without an accuracy: each run uses its whole budget.
    rng : int, Generator, SeedSequence, or a sequence of one seed for each model
        A single seed generates one for each model. The seed of model k is ``results[k].plan.entropy``:
        ``gs.sample(models[k], ..., rng=results[k].plan.entropy)`` gives the same numbers.

    Returns
    -------
    list of Result
        In the order of the models. No warnings are given: see ``result.diagnostics``.

    Examples
    --------
    >>> import gibbsite as gs
    >>> models = [gs.ising_grid((3, 3), coupling=0.1, field=h) for h in (-0.5, 0.0, 0.5)]
    >>> results = gs.inference.sample_models(models, sweeps=500, rng=1, progress=False)
    >>> [round(result.marginals["4"][1]) for result in (results[0], results[2])]
    [0, 1]
    """
    if not isinstance(models, Iterable):
        raise ArgumentError(f"sample_models takes a list of models, got one {type(models).__name__}.")
    listed = list(models)
    for model in listed:
        check_parts(model, kernel, scan)
    chains, threads = check_integer("chains", chains, 1), read_threads(threads)
    criteria = read_criteria(criteria)
    if criteria.accuracy is not None:
        raise ArgumentError(f"Runs of many models use their whole budget; leave out {argument('accuracy')}.")
    seeds = _read_seeds(rng, len(listed))
    show = choose_progress(progress)
    length = read_length(None if sweeps is None else check_integer("sweeps", sweeps, 1), warmup=warmup)
    with announcing(show.say, name_kernel(kernel)):
        kept = keep_marginals(record, kernel)
        drivers = []
        for model, seed in zip(listed, seeds, strict=True):
            setup = prepare(model, kernel, scan, kept, chains, rng=seed, start=start, length=length, tune=False)
            refuse_meetings(setup)
            drivers.append(Driver(setup))
        begun = time.monotonic()
        with Threads(threads) as pool:
            pool.map(_run, drivers)
    seconds = time.monotonic() - begun
    show.close()
    setups = [driver.setup for driver in drivers]
    known = solve_together(setups) if criteria.dispersed_starts else [None] * len(drivers)
    results = []
    for driver, found in zip(drivers, known, strict=True):
        judge = Judge(criteria, threads, None, read_query(driver.setup.model, criteria.query))
        judge.known = found
        results.append(judge.conclude(replace(driver.recording(), seconds=seconds)))
    return results


def sample_batch(model: FactorGraph, kernel: Kernel | None = None, *, rng: Any = None, **given: Any) -> list[Result]:
    """Sample from models that differ in the weights of named groups of factors.

    Parameters
    ----------
    model : FactorGraph
        The model whose structure all of them share.
    kernel, rng : optional
        As in :func:`sample_models`.
    **given
        Arguments of :func:`sample_models`; every other name is that of a group of factors, with weights that
        have one more axis in front: one row for each model.

    Returns
    -------
    list of Result
        One for each row.

    See Also
    --------
    sample : Sample one model.
    PersistentChains : Chains whose model changes.

    Examples
    --------
    >>> import gibbsite as gs
    >>> import numpy as np
    >>> pair = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.0, 0.0])
    >>> fields = np.array([[1.0, 1.0], [-1.0, -1.0]])
    >>> results = gs.sample_batch(pair, fields=fields, sweeps=500, rng=1, progress=False)
    >>> [round(result.marginals["0"][1]) for result in results]
    [1, 0]
    """
    arguments = {"scan", "sweeps", "warmup", "chains", "start", "record", "threads", "criteria", "progress"}
    weights = {name: given[name] for name in given if name not in arguments}
    others = {name: given[name] for name in given if name in arguments}
    return sample_models(_reweighted(model, weights), kernel, rng=rng, **others)


def _reweighted(model: FactorGraph, weights: dict[str, Any]) -> Iterator[FactorGraph]:
    """Yield the model with each row of weights."""
    model = as_model(model)
    check_parts(model, None, None)
    if not weights:
        raise ArgumentError("sample_batch needs weights with a row for each model, such as fields=array(batch, n).")
    rows: dict[str, Any] = {}
    for name, values in weights.items():
        model.group(name)
        rows[name] = values if isinstance(values, list | tuple) else np.atleast_1d(values)
        if not isinstance(values, list | tuple) and np.ndim(values) == 0:
            raise ArgumentError(f"{name} needs a row of weights for each model of the batch, got one number.")
    many = {name: len(values) for name, values in rows.items()}
    if len(set(many.values())) > 1:
        said = ", ".join(f"{name} has {count}" for name, count in many.items())
        raise ArgumentError(f"A batch needs as many rows of weights in every group: {said}.")
    for k in range(next(iter(many.values()))):
        yield model.reweight(**{name: rows[name][k] for name in rows})


def _read_seeds(rng: Any, many: int) -> list[int]:
    """Return one seed for each model."""
    if isinstance(rng, Sequence | np.ndarray) and not isinstance(rng, str) and is_iterable(rng):
        seeds = [read_entropy(seed) for seed in rng]
        if len(seeds) != many:
            raise ArgumentError(f"There are {many} models and {len(seeds)} seeds; give one for each, or one for all.")
        return seeds
    return [read_entropy(child) for child in np.random.SeedSequence(read_entropy(rng)).spawn(many)]


def _run(driver: Driver) -> None:
    """Run the warmup and the draws of one model on the calling thread."""
    budget = driver.setup.budget
    assert budget is not None and budget.draws is not None and budget.warmup is not None
    if budget.warmup:
        driver.advance(budget.warmup)
    driver.freeze()
    driver.advance(budget.draws, keep=True)
    driver.inspect()
    driver.counts.warmup = budget.warmup
