"""``gibbsite warmup``: compile everything now, so that no later call has to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gibbsite.inference import METHODS

if TYPE_CHECKING:
    from gibbsite.kernel.base import Kernel
    from gibbsite.model import FactorGraph, Model


@click.command("warmup")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing.")
def command(quiet: bool) -> None:
    """Compile all kernels for all kinds of models into the cache (container images, cluster nodes).

    This takes 10 minutes or so. What is left out is compiled when it is first used: functions of yours, and
    rare combinations of kernels with scans of your own.

    The cache is in ~/.cache/gibbsite (XDG_CACHE_HOME, LOCALAPPDATA on Windows), or where GIBBSITE_CACHE_DIR
    says; GIBBSITE_CACHE_DIR=off keeps nothing. Versions of gibbsite have caches of their own, and those that
    have not been used for 30 days are removed.
    """
    import warnings
    from contextlib import suppress
    from itertools import product

    import gibbsite as gs
    from gibbsite._compile.jit import cache_directory, compile_always
    from gibbsite.kernel.registry import registered_kernels
    from gibbsite.model.tiny import tiny_models
    from gibbsite.run.chain_layout import LEAST_CHAINS
    from gibbsite.scan.registry import proof_scans

    begun = time.monotonic()
    compile_always()
    small = list(tiny_models().values())
    models = [*small, *_sampled_models()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, model in enumerate(models):
            if not quiet:
                click.echo(f"gibbsite: compiling, {number + 1} of {len(models)} models", err=True)
            for task in ("MAR", "MAP") if number < len(small) else ():
                gs.solve_exact(model, task=task)
            answer_all(model, ["gibbs"])
            gs.mean_field(model, sweeps=2, progress=False)
            gs.dogs(model, steps=10).certify(model)
            for one in registered_kernels():
                # minibatches are for sites with very many factors; in order will do
                orders = proof_scans(model.n_sites)[: 1 if one.family == "minibatch" else None]
                for kernel, scan in product(one.proof_instances(), orders):
                    with suppress(gs.IncompatibleError):  # not every kernel takes every scan, or kind
                        gs.sample(model, kernel, scan=scan, seconds=0.001, progress=False, threads=1)
        answer_all(gs.example("alarm").observe({"HRBP": "HIGH"}), list(METHODS))
        for target, kernels in _targets_of_numbers():
            for kernel in kernels:
                gs.sample(target, kernel, seconds=0.001, progress=False, threads=1)
        for model in _large_models():
            for kernel, chains in _at_once(LEAST_CHAINS):
                gs.sample(model, kernel, scan=gs.Chromatic(), chains=chains, sweeps=8, rng=1, progress=False)
    if not quiet:
        place = cache_directory()
        kept = f"kept in {place}" if place else "not kept: no cache directory can be written"
        taken = time.monotonic() - begun
        click.echo(
            f"gibbsite: all kernels compiled in {taken:.0f} s, {kept}; see --help for the rest", err=True
        )


def answer_all(model: FactorGraph, methods: list[str]) -> None:
    """Answer all that methods can say about a model, so that nothing on the way is left to compile."""
    from contextlib import suppress

    import gibbsite as gs

    for method in methods:
        for task in METHODS[method]:
            # long enough for the question whether the answer is good enough
            budget = {} if method == "quasi" else {"sweeps": 300}
            with suppress(gs.IncompatibleError):  # not every method takes every kind
                gs.infer(model, task, method=method, rng=1, progress=False, seconds=5.0, **budget)


def _targets_of_numbers() -> list[tuple[Model, list[Kernel]]]:
    """Return a target of each kind that has numbers, with the kernels for it."""
    import numpy as np

    import gibbsite as gs

    spins = gs.continuous_spins(np.ones((3, 3)) - np.eye(3))
    density = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + x[1] ** 2), lambda x: -x, dim=2)
    conditionals = gs.Conditionals({"a": lambda x, rng: rng.normal()})
    return [
        (spins, [gs.ContinuousGibbs(), gs.PoissonMH(), gs.TunaMH()]),
        (density, [gs.Metropolis(), gs.Metropolis(one_by_one=True), gs.MALA(), gs.ULA(0.1), gs.Slice()]),
        (gs.Gaussian(covariance=np.eye(2)), [gs.GaussianGibbs(), gs.ExactGaussian()]),
        (conditionals, [gs.ConditionalGibbs()]),
    ]


def _sampled_models() -> list[FactorGraph]:
    """Return models that are sampled in another way, for their many neighbours or sites."""
    import numpy as np

    import gibbsite as gs

    triples = np.arange(5000)[:, None] + np.arange(3)
    return [
        gs.potts(np.full((40, 40), 0.01) - 0.01 * np.eye(40), 3),
        gs.FactorGraph(5002, groups=[gs.TableFactors(triples, np.zeros((1, 2, 2, 2)))], states=2),
    ]


def _at_once(many: int) -> list[tuple[Kernel, int]]:
    """Return kernels that move many sites at once, or many chains, with a number of chains to try."""
    import gibbsite as gs

    herded = [gs.HerdedGibbs(keys) for keys in ("shared", "blanket")]
    return [(gs.Gibbs(), 1), (gs.Gibbs(), many), *((kernel, 1) for kernel in herded)]


def _large_models() -> list[FactorGraph]:
    """Return one model for each way to move many sites at once."""
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
    ]
