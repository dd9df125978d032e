"""Log-densities: random-walk Metropolis and MALA in ten dimensions, against emcee and BlackJAX.

All take moves of the same size and keep their draws; an update is one draw of one chain. Ours are whole calls
of ``sample`` with four chains. emcee needs at least twenty walkers, here with its Gaussian move and a density
that takes all of them at once; BlackJAX has four chains through ``vmap``, many steps in one ``jit``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.densities import DIM, REST, RHO, SCALE, STEP, chain_density
from benchmarks.peers.contest import Contest
from benchmarks.peers.spins import keep_to_one_thread

CHAINS = 4


class Ours:
    """gibbsite: whole calls of ``sample``."""

    def __init__(self, kernel: gs.kernels.Kernel, sweeps: int) -> None:
        self.kernel, self.model = kernel, chain_density()
        self.sweeps, self.calls = CHAINS * sweeps, 0

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.calls += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", gs.ConvergenceWarning)
                self.result = gs.sample(
                    self.model,
                    self.kernel,
                    sweeps=self.sweeps // CHAINS,
                    warmup=0,
                    chains=CHAINS,
                    threads=1,
                    rng=self.calls,
                    record=["marginals", "draws"],
                    progress=False,
                )

    def variance(self) -> float:
        return float(self.result.draws.var())


def log_chains(x: NDArray[np.float64]) -> Any:
    """Return the log-density of many places at once."""
    return -0.5 * (x[:, 0] ** 2 + ((x[:, 1:] - RHO * x[:, :-1]) ** 2).sum(axis=1) / REST)


class Emcee:
    """emcee: its Gaussian move, the density of all walkers in one call."""

    walkers = 2 * DIM

    def __init__(self, steps: int) -> None:
        import emcee

        self.sweeps = self.walkers * steps
        move = emcee.moves.GaussianMove(SCALE**2)
        self.sampler = emcee.EnsembleSampler(self.walkers, DIM, log_chains, moves=move, vectorize=True)
        self.place: Any = np.random.default_rng(1).standard_normal((self.walkers, DIM))
        self.steps = steps

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.sampler.reset()
            self.place = self.sampler.run_mcmc(self.place, self.steps)

    def variance(self) -> float:
        return float(self.sampler.get_chain().var())


class BlackJax:
    """BlackJAX: chains through ``vmap``, many steps in one compiled function."""

    def __init__(self, name: str, steps: int) -> None:
        keep_to_one_thread()
        import blackjax
        import jax
        from jax import numpy as jnp

        self.sweeps, self.jax = CHAINS * steps, jax

        def log_chain(x: Any) -> Any:
            return -0.5 * (x[0] ** 2 + jnp.sum((x[1:] - RHO * x[:-1]) ** 2) / REST)

        if name == "mala":
            kernel = blackjax.mala(log_chain, STEP)
        else:
            kernel = blackjax.additive_step_random_walk(
                log_chain, blackjax.mcmc.random_walk.normal(SCALE * jnp.ones(DIM))
            )
        move = jax.vmap(kernel.step)

        def step(states: Any, key: Any) -> tuple[Any, Any]:
            states, _ = move(jax.random.split(key, CHAINS), states)
            return states, states.position

        self.many = jax.jit(lambda key, states: jax.lax.scan(step, states, jax.random.split(key, steps)))
        self.states = jax.vmap(kernel.init)(jax.random.normal(jax.random.key(1), (CHAINS, DIM)))
        self.key = jax.random.key(2)

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.key, key = self.jax.random.split(self.key)
            self.states, self.draws = self.jax.block_until_ready(self.many(key, self.states))

    def variance(self) -> float:
        return float(np.asarray(self.draws).var())


def contests(quick: bool) -> Iterator[Contest]:
    """Yield both methods."""
    sweeps = 5000 if quick else 50_000
    yield Contest(
        "Metropolis in 10 dimensions, 4 chains",
        1,
        {"gibbsite": lambda: Ours(gs.Metropolis(scale=SCALE, adapt=False), sweeps)},
        {"emcee": lambda: Emcee(500), "blackjax": lambda: BlackJax("walk", 2000)},
        lambda player: player.variance(),
        "variance",
        {"emcee": 20.0, "blackjax": 3.0},
    )
    yield Contest(
        "MALA in 10 dimensions, 4 chains",
        1,
        {"gibbsite": lambda: Ours(gs.MALA(STEP), sweeps)},
        {"blackjax": lambda: BlackJax("mala", 2000)},
        lambda player: player.variance(),
        "variance",
        {"blackjax": 3.0},
    )
