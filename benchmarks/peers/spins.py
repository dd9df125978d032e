"""Spin samplers on square grids: large ones, and many chains of a small one.

thrml gets the two colors of the grid as blocks. The annealers stay at one temperature and take part with many
chains only, for they convert the model at every call. The noise of the mean product of neighbouring spins in
the last state is about 0.7 divided by the root of all sites of all chains.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.forms import Bundle, Case, make_form
from benchmarks.peers.contest import Contest, Maker
from benchmarks.workloads import Spins, grid
from gibbsite.graphs import color_sites, compile_graph
from gibbsite.sampling.batched_layouts import BUNDLE

Spin = NDArray[np.int64]


def neighbours(spins: Spin, model: Spins) -> float:
    """Return the mean product of neighbouring spins; a row for each chain or draw."""
    i, j = model.pairs.T
    return float((spins[:, i] * spins[:, j]).mean())


def keep_to_one_thread() -> None:
    """Keep jax to one thread of the processor; to be called before it starts.

    The flags of XLA about threads are without effect, and two threads cost up to half as much processor time
    again for the same sweeps.
    """
    os.environ.setdefault("PJRT_NPROC", "1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


class Ours:
    """The chains of gibbsite, in the layout and bundles of a run of as many chains."""

    sweeps = 1

    def __init__(self, model: Spins, chains: int, kind: str) -> None:
        bundles = math.ceil(chains / BUNDLE)
        width = math.ceil(chains / bundles)
        case = Case(model.name, lambda: model, kind, 0.0, chains=width)
        form = make_form(case, model)
        self.bundles = [Bundle(form, min(width, chains - c), False, first=c) for c in range(0, chains, width)]

    def run(self, calls: int) -> None:
        for bundle in self.bundles:
            bundle.run(calls)

    def spins(self) -> Spin:
        rows = [row for b in self.bundles for row, _ in b.form.release(b.state, b.tape, b.chains)]
        return 2 * np.array(rows, np.int64) - 1


class Thrml:
    """thrml: blocks by color, chains by ``vmap``, one compiled function of several sweeps."""

    def __init__(self, model: Spins, chains: int, sweeps: int) -> None:
        keep_to_one_thread()
        import jax
        import jax.numpy as jnp
        from thrml import Block, SamplingSchedule, SpinNode, sample_states
        from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

        self.sweeps, self.jax = sweeps, jax
        color = color_sites(compile_graph(model.model()))
        places = [np.flatnonzero(color == c) for c in (0, 1)]
        nodes = [SpinNode() for _ in range(model.n_sites)]
        edges = [(nodes[i], nodes[j]) for i, j in model.pairs.tolist()]
        fields, weights = (jnp.array(a, jnp.float32) for a in (model.fields, model.weights))
        energy = IsingEBM(nodes, edges, fields, weights, jnp.array(1.0))
        blocks = [Block([nodes[i] for i in place]) for place in places]
        program = IsingSamplingProgram(energy, blocks, clamped_blocks=[])
        schedule = SamplingSchedule(n_warmup=sweeps, n_samples=1, steps_per_sample=1)

        def one(key: Any, state: Any) -> Any:
            return [part[0] for part in sample_states(key, program, schedule, state, [], blocks)]

        def all_chains(key: Any, state: Any) -> Any:
            return jax.vmap(one)(jax.random.split(key, chains), state)

        self.step = jax.jit(one if chains == 1 else all_chains)
        self.key = jax.random.key(1)
        self.state = hinton_init(jax.random.key(0), energy, blocks, () if chains == 1 else (chains,))
        self.back = np.argsort(np.concatenate(places))

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.key, key = self.jax.random.split(self.key)
            self.state = self.jax.block_until_ready(self.step(key, self.state))

    def spins(self) -> Spin:
        parts = [np.atleast_2d(np.asarray(part)) for part in self.state]
        return 2 * np.concatenate(parts, axis=1)[:, self.back].astype(np.int64) - 1


class DWave:
    """dwave-samplers: its annealer at one temperature, with heat-bath acceptance."""

    def __init__(self, model: Spins, chains: int, sweeps: int) -> None:
        import dimod
        from dwave.samplers import SimulatedAnnealingSampler

        self.sweeps, self.chains, self.seed = sweeps, chains, 0
        i, j = model.pairs.T
        self.model = dimod.BinaryQuadraticModel.from_numpy_vectors(
            -model.fields, (i, j, -model.weights), 0.0, dimod.SPIN
        )
        self.sampler = SimulatedAnnealingSampler()

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.seed += 1
            self.answer = self.sampler.sample(
                self.model,
                beta_schedule_type="custom",
                beta_schedule=[1.0],
                num_sweeps_per_beta=self.sweeps,
                num_reads=self.chains,
                proposal_acceptance_criteria="Gibbs",
                seed=self.seed,
            )

    def spins(self) -> Spin:
        return _in_order(self.answer)


class OpenJij:
    """openjij: its annealer at one temperature (Metropolis; it has no heat bath)."""

    def __init__(self, model: Spins, chains: int, sweeps: int) -> None:
        import openjij

        self.sweeps, self.chains = sweeps, chains
        self.sampler = openjij.SASampler()
        self.fields = {i: -h for i, h in enumerate(model.fields.tolist())}
        ends = zip(model.pairs.tolist(), model.weights.tolist(), strict=True)
        self.couplings = {(i, j): -w for (i, j), w in ends}

    def run(self, calls: int) -> None:
        for _ in range(calls):
            # no seed: with one, all reads of a call are the same
            self.answer = self.sampler.sample_ising(
                self.fields,
                self.couplings,
                schedule=[(1.0, self.sweeps)],
                num_reads=self.chains,
                updater="single spin flip",
                sparse=True,
            )

    def spins(self) -> Spin:
        return _in_order(self.answer)


def _in_order(answer: Any) -> Spin:
    """Return the samples of a dimod sample set, by site."""
    order = np.argsort(np.array(list(answer.variables)))
    return np.asarray(answer.record.sample)[:, order].astype(np.int64)


def contests(quick: bool) -> Iterator[Contest]:
    """Yield one large grid, and many chains of a small one."""
    side = 100 if quick else 1000
    large, small = grid("large", side), grid("small", 50)
    yield _contest(
        f"grid of {side} x {side}",
        large,
        1,
        {"gibbsite": "lattice", "gibbsite, as a graph": "ising"},
        {"thrml": lambda: Thrml(large, 1, 20)},
        {} if quick else {"thrml": 8.0},  # promised of the full size only
    )
    chains = 100
    yield _contest(
        f"{chains} chains of 50 x 50",
        small,
        chains,
        {"gibbsite": "ising"},
        {
            "thrml": lambda: Thrml(small, chains, 50),
            "dwave-samplers": lambda: DWave(small, chains, 100),
            "openjij": lambda: OpenJij(small, chains, 100),
        },
        {"thrml": 5.0},
    )


def _contest(
    title: str, model: Spins, chains: int, kinds: dict[str, str], peers: dict[str, Maker], promises: dict[str, float]
) -> Contest:
    return Contest(
        title,
        chains * model.n_sites,
        {name: lambda kind=kind: Ours(model, chains, kind) for name, kind in kinds.items()},
        peers,
        lambda player: neighbours(player.spins(), model),
        "neighbours",
        promises,
    )
