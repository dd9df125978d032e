"""``gibbsite warmup``: compile everything now, so that later calls start at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli.help import Command
from gibbsite.cli.outputs import echo, tell
from gibbsite.cli.parameters import COUNT, quiet_option
from gibbsite.inference import METHODS

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph, Model
    from gibbsite.scans.base import Scan


@click.command("warmup", cls=Command, examples=("gibbsite warmup", "gibbsite warmup --jobs 4 --quiet"))
@quiet_option
@click.option("-j", "--jobs", type=COUNT, help="Number of processes that compile. [default: one per core]")
@click.option("--on", metavar="ADDRESS", help="Compile on every machine of a Dask cluster (tcp://host:8786).")
def command(quiet: bool, jobs: int | None, on: str | None) -> None:
    """Compile all kernels for all kinds of models into the cache (for container images and cluster nodes).

    This takes about 10 minutes of one core, divided among all cores. User functions, and kernels with
    user-defined scans, are compiled when they are first used.

    The cache is in ~/.cache/gibbsite (XDG_CACHE_HOME, LOCALAPPDATA on Windows), or in the folder that
    GIBBSITE_CACHE_DIR names; GIBBSITE_CACHE_DIR=off disables it. Each version of gibbsite has its own cache,
    and caches that have not been used for 30 days are removed.
    """
    from gibbsite._numba.jit import cache_directory
    from gibbsite.sampling.executor import usable_cores

    begun = time.monotonic()
    if on is not None:
        from gibbsite.sampling.executors.warming import warm_up

        found = warm_up(on, jobs)
        for host, warmed in found.items():
            if not quiet or not warmed.complete:
                echo(f"{host}: {warmed.said}", err=True)
        if not all(warmed.complete for warmed in found.values()):
            raise SystemExit(1)
        return
    place = cache_directory()
    names = list(_work())
    # without a cache, other processes could not use what one process compiles
    workers = min(jobs or usable_cores(), len(names)) if place else 1
    where = f"into {place}" if place else "though the result is lost: no cache folder can be written"
    tell(f"compiling {len(names)} groups of functions, {workers} at a time, {where}", quiet)
    for done, (name, seconds) in enumerate(_compile_all(names, workers), 1):
        tell(f"{done} of {len(names)}: {name}, {seconds:.0f} s", quiet)
    tell(f"all kernels compiled in {time.monotonic() - begun:.0f} s; see --help for the rest", quiet)


def _compile_all(names: list[str], workers: int) -> Iterator[tuple[str, float]]:
    """Compile groups of functions in separate processes; yield the name and the time of each when it is done."""
    if workers == 1:
        yield from map(_compile_group, names)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_compile_group, name) for name in names]):
            yield future.result()


def _compile_group(name: str) -> tuple[str, float]:
    import warnings

    from gibbsite._numba.jit import compile_always

    begun = time.monotonic()
    compile_always()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _work()[name]()
    return name, time.monotonic() - begun


def _work() -> dict[str, Callable[[], None]]:
    """Return everything to compile, in groups that share few functions, the longest first."""
    import gibbsite as gs
    from gibbsite.graphs.tiny import tiny_models

    groups: dict[str, Callable[[], None]] = {}
    for name, model in tiny_models().items():
        groups[f"sampling a model like {name}"] = partial(_sample_all, model)
        groups[f"other answers for a model like {name}"] = partial(_answer_without_sampling, model)
    for number, model in enumerate(_unusual_models(), 1):
        groups[f"sampling models with many neighbours or sites, {number}"] = partial(_sample_all, model)
    for number, (target, kernels) in enumerate(_continuous_targets(), 1):
        groups[f"sampling continuous models, {number}"] = partial(_sample_target, target, kernels)
    for number, model in enumerate(_large_models(), 1):
        groups[f"batched updates, {number}"] = partial(_sample_at_once, model)
    observed = partial(gs.example("alarm").observe, {"HRBP": "HIGH"})
    groups["all methods of gibbsite infer"] = lambda: answer_all(observed(), list(METHODS))
    return groups


def _sample_all(model: FactorGraph) -> None:
    """Sample a model with all kernels and scans."""
    from contextlib import suppress

    import gibbsite as gs

    for kernel, scans in pairings(model):
        for scan in scans:
            with suppress(gs.errors.IncompatibleError):  # not every kernel takes every scan
                gs.sample(model, kernel, scan=scan, seconds=0.001, progress=False, threads=1)


def pairings(model: FactorGraph) -> Iterator[tuple[Kernel, Sequence[Scan]]]:
    """Yield all kernels that accept a model, each with scans of its units (sites or blocks)."""
    from contextlib import suppress

    import gibbsite as gs
    import gibbsite.inference.importance  # registers a kernel of its own
    from gibbsite.graphs.graph import compile_graph
    from gibbsite.kernels.registry import registered_kernels
    from gibbsite.sampling.setup import fit_graph
    from gibbsite.scans.registry import proof_scans

    for one in registered_kernels():
        for kernel in one.proof_instances():
            with suppress(gs.errors.IncompatibleError):  # not every kernel takes every kind
                graph = compile_graph(model, among=kernel.kinds)
                kernel.check(graph)
                scans = proof_scans(fit_graph(graph, kernel).n_units)
                # minibatch kernels are slow on such small models: one scan suffices
                yield kernel, scans[: 1 if one.family == "minibatch" else None]


def _answer_without_sampling(model: FactorGraph) -> None:
    """Solve a model exactly, by mean field, by belief propagation, and optimise a scan for it."""
    import gibbsite as gs

    for task in ("MAR", "MAP"):
        gs.solve_exact(model, task=task)
    answer_all(model, ["gibbs"])
    gs.mean_field(model, max_iterations=2, progress=False)
    for kind in ("sum", "max", "tree-reweighted"):
        gs.belief_propagation(model, kind=kind, progress=False)
    gs.belief_propagation(model, schedule="sweep", progress=False)
    gs.dogs(model, steps=10).certify(model)


def _sample_target(target: Model, kernels: list[Kernel]) -> None:
    import gibbsite as gs

    for kernel in kernels:
        gs.sample(target, kernel, seconds=0.001, progress=False, threads=1)


def _sample_at_once(model: FactorGraph) -> None:
    import gibbsite as gs
    from gibbsite.sampling.layout import LEAST_CHAINS

    for kernel, chains in _at_once(LEAST_CHAINS):
        gs.sample(model, kernel, scan=gs.Chromatic(), chains=chains, sweeps=8, rng=1, progress=False)


def answer_all(model: FactorGraph, methods: list[str]) -> None:
    """Answer every task of some methods on a model, so that all functions on the way are compiled."""
    from contextlib import suppress

    import gibbsite as gs

    for method in methods:
        for task in METHODS[method]:
            # long enough for diagnostics to be computed
            budget: dict[str, Any] = {} if method == "quasi" else {"sweeps": 300}
            with suppress(gs.errors.IncompatibleError):  # not every method takes every kind
                gs.infer(model, task, method=method, rng=1, progress=False, seconds=5.0, **budget)


def _continuous_targets() -> list[tuple[Model, list[Kernel]]]:
    """Return a target of each continuous kind, with its kernels."""
    import numpy as np

    import gibbsite as gs

    spins = gs.models.continuous_spins(np.ones((3, 3)) - np.eye(3))
    density = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + x[1] ** 2), lambda x: -x, dim=2)
    conditionals = gs.Conditionals({"a": lambda x, rng: rng.normal()})
    return [
        (spins, [gs.kernels.ContinuousGibbs(), gs.kernels.PoissonMH(), gs.kernels.TunaMH()]),
        (density, [gs.Metropolis(), gs.Metropolis(one_by_one=True), gs.MALA(), gs.kernels.ULA(0.1), gs.Slice()]),
        (gs.Gaussian(covariance=np.eye(2)), [gs.kernels.GaussianGibbs(), gs.kernels.ExactGaussian()]),
        (conditionals, [gs.kernels.ConditionalGibbs()]),
    ]


def _unusual_models() -> list[FactorGraph]:
    """Return models that are sampled differently because of their many neighbours or sites."""
    import numpy as np

    import gibbsite as gs

    triples = np.arange(5000)[:, None] + np.arange(3)
    return [
        gs.potts(np.full((40, 40), 0.01) - 0.01 * np.eye(40), 3),
        gs.FactorGraph(5002, groups=[gs.factors.TableFactors(triples, np.zeros((1, 2, 2, 2)))], states=2),
    ]


def _at_once(many: int) -> list[tuple[Kernel, int]]:
    """Return kernels with batched updates of sites or chains, each with a number of chains."""
    import gibbsite as gs

    herded = [gs.HerdedGibbs(keys) for keys in ("shared", "blanket")]
    return [(gs.Gibbs(), 1), (gs.Gibbs(), many), *((kernel, 1) for kernel in herded)]


def _large_models() -> list[FactorGraph]:
    """Return one model for each batched update."""
    import numpy as np

    import gibbsite as gs

    side = 16
    pairs = np.arange(side**2)
    return [
        gs.ising_grid((side, side), coupling=0.1),
        gs.ising_grid((side, side), coupling=0.1, field=np.zeros((side, side))),
        gs.ising_grid((side, side), coupling=np.full((2, side, side), 0.1)),
        gs.potts_grid((side, side), 3, coupling=0.1),
        gs.potts_grid((side, side), 3, coupling=np.full((2, side, side), 0.1)),
        gs.ising((pairs, (pairs + 1) % side**2, np.full(side**2, 0.1))),
        gs.rbm(np.full((side, side), 0.1)),
    ]
