"""Probabilistic programs: an Ising model written down for PyMC and for NumPyro.

Both evaluate the density of the whole model for every proposed state of a site, so they are met on a small
grid. All keep their draws, and so do we.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.peers.contest import Contest
from benchmarks.peers.spins import Spin, keep_to_one_thread, neighbours
from benchmarks.speed import whole_call
from benchmarks.workloads import Spins, grid


class Ours:
    """gibbsite: whole calls of ``sample``, one chain that is recorded."""

    def __init__(self, model: Spins, sweeps: int) -> None:
        self.sweeps, self.calls = sweeps, 0
        self.model = model.model("lattice")

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.calls += 1
            self.result = whole_call(self.model, self.sweeps, rng=self.calls, record=["marginals", "draws"])

    def spins(self) -> Spin:
        return 2 * self.result.draws[0].astype(np.int64) - 1


def pymc_program(model: Spins) -> Any:
    """Write a model down for PyMC."""
    import pymc
    from pytensor import tensor

    i, j = model.pairs.T
    with pymc.Model() as program:
        spin = 2 * pymc.Bernoulli("up", 0.5, shape=model.n_sites) - 1
        pymc.Potential("law", tensor.sum(model.weights * spin[i] * spin[j]) + tensor.sum(model.fields * spin))
    return program


class PyMC:
    """PyMC: its step for binary sites, without what its ``sample`` does around it.

    The step proposes to flip four sites in five; those left as they are count as updates as well.
    """

    def __init__(self, model: Spins, sweeps: int) -> None:
        import pymc

        self.sweeps = sweeps
        with pymc_program(model) as program:
            self.step = pymc.BinaryGibbsMetropolis([program["up"]], rng=1)
            self.point = program.initial_point()
        self.draws: list[Any] = []

    def run(self, calls: int) -> None:
        for _ in range(calls * self.sweeps):
            self.point, _ = self.step.step(self.point)
            self.draws.append(self.point["up"])

    def spins(self) -> Spin:
        return 2 * np.array(self.draws, np.int64) - 1


def numpyro_program(model: Spins) -> Callable[[], None]:
    """Write a model down for NumPyro."""
    import numpyro
    from jax import numpy as jnp
    from numpyro.distributions import Bernoulli

    i, j = (jnp.array(ends) for ends in model.pairs.T)
    weights, fields = (jnp.array(a, jnp.float32) for a in (model.weights, model.fields))

    def program() -> None:
        spin = 2 * numpyro.sample("up", Bernoulli(0.5).expand([model.n_sites])) - 1
        numpyro.factor("law", jnp.sum(weights * spin[i] * spin[j]) + jnp.sum(fields * spin))

    return program


class NumPyro:
    """NumPyro: its kernel for discrete sites, several sweeps in one compiled function.

    ``MCMC.run`` would compile anew at every call.
    """

    def __init__(self, model: Spins, sweeps: int) -> None:
        keep_to_one_thread()
        import jax
        from numpyro.infer import DiscreteGibbs

        self.sweeps, self.jax = sweeps, jax
        kernel = DiscreteGibbs(numpyro_program(model))
        self.state = kernel.init(jax.random.key(1), 0, None, (), {})

        def sweep(state: Any, _: None) -> tuple[Any, Any]:
            state = kernel.sample(state, (), {})
            return state, state.z["up"]

        self.step = jax.jit(lambda state: jax.lax.scan(sweep, state, length=sweeps))
        self.draws: list[Any] = []

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.state, draws = self.jax.block_until_ready(self.step(self.state))
            self.draws.append(draws)

    def spins(self) -> Spin:
        return 2 * np.concatenate(self.draws).astype(np.int64) - 1


def contests(quick: bool) -> Iterator[Contest]:
    """Yield one chain of a grid that these can manage."""
    model = grid("tiny", 20)
    yield Contest(
        "one chain of 20 x 20",
        model.n_sites,
        {"gibbsite": lambda: Ours(model, 10_000)},
        {"pymc": lambda: PyMC(model, 10), "numpyro": lambda: NumPyro(model, 50)},
        lambda player: neighbours(player.spins(), model),
        "neighbours",
    )
