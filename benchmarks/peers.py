"""Other samplers on the same models, in the same race as ours; whoever is not installed is left out.

All run on one thread and are called as their users would for speed: compiled once, many sweeps to a call, so
that what a call costs beside them does not matter. thrml gets the two colors of the grid as blocks. The
annealers stay at one temperature and take part with many chains only, for they convert the model at every
call. The last column is the mean product of neighbouring spins in the last state: it would show a wrong sign
or scale of a model, no more (its noise is about 0.7 divided by the root of all sites of all chains).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.forms import Bundle, Case, make_form
from benchmarks.measure import Contestant, race
from benchmarks.report import Section, Target
from benchmarks.workloads import Spins, grid
from gibbsite.run.form import BUNDLE

Spin = NDArray[np.int64]


class Player(Protocol):
    """Someone in the race: makes ``sweeps`` sweeps of all chains per call."""

    sweeps: int

    def run(self, calls: int) -> None: ...

    def spins(self) -> Spin:
        """Return the present spins, one row per chain."""


class Ours:
    """gibbsite, in the form and the bundles a run of so many chains has."""

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
        # read when jax starts
        os.environ.setdefault(
            "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax
        import jax.numpy as jnp
        from thrml import Block, SamplingSchedule, SpinNode, sample_states
        from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

        assert model.shape is not None
        self.sweeps, self.jax = sweeps, jax
        color = np.indices(model.shape).sum(axis=0).ravel() % 2
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


#: Distributions and how to enter them: model, chains, sweeps per call.
PEERS: dict[str, Callable[[Spins, int, int], Player]] = {
    "thrml": Thrml,
    "dwave-samplers": DWave,
    "openjij": OpenJij,
}


def enter(names: dict[str, int], model: Spins, chains: int) -> dict[str, Player | None]:
    """Make the players of some peers, with so many sweeps per call each; None for one not installed."""
    found: dict[str, Player | None] = {}
    for name, sweeps in names.items():
        try:
            title = f"{name} {version(name)}"
        except PackageNotFoundError:
            found[name] = None
        else:
            found[title] = PEERS[name](model, chains, sweeps)
    return found


@dataclass(frozen=True)
class Contest:
    """A model, how many chains of it, who takes part with how many sweeps per call, and the promise."""

    title: str
    model: Callable[[], Spins]
    chains: int
    peers: dict[str, int]
    bound: float  # how many times thrml's speed ours must be; promised of the full size only
    promised: bool = True


def contests(quick: bool) -> tuple[Contest, ...]:
    """Return one large grid, and many chains of a small one."""
    side = 100 if quick else 1000
    everybody = {"thrml": 50, "dwave-samplers": 100, "openjij": 100}
    return (
        Contest(f"grid of {side} x {side}", lambda: grid("large", side), 1, {"thrml": 20}, 8.0, not quick),
        Contest("100 chains of 50 x 50", lambda: grid("small", 50), 100, everybody, 5.0),
    )


def compete(contest: Contest, *, quick: bool) -> Section:
    """Hold one contest."""
    model, chains = contest.model(), contest.chains
    kinds = {"gibbsite": "ising"} if chains > 1 else {"gibbsite": "lattice", "gibbsite, as a graph": "ising"}
    field: dict[str, Player | None] = {name: Ours(model, chains, kind) for name, kind in kinds.items()}
    field |= enter(contest.peers, model, chains)
    playing = {name: player for name, player in field.items() if player is not None}
    work = chains * model.n_sites
    times = race(
        [Contestant(name, p.run, p.sweeps * work, least=1) for name, p in playing.items()],
        repetitions=3 if quick else 7,
        seconds=0.2 if quick else 1.0,
    )
    targets, rows, data = [], [], {}
    for name in field:
        title = f"{contest.title}: {name}"
        if name not in playing:
            rows.append([title, "not installed", "", "", "", ""])
            continue
        ratio = times["gibbsite"].against(times[name])
        spread, agreement = f"{ratio.low:.2f} .. {ratio.high:.2f}", _agreement(playing[name], model)
        rates = (f"{rate.median / 1e6:.1f}" for rate in (times[name].rate, times[name].wall_rate))
        rows.append([title, *rates, f"{ratio.median:.2f}", spread, f"{agreement:.4f}"])
        data[title] = {**times[name].rate.to_dict(), "multiple": ratio.to_dict(), "neighbours": agreement}
        if name.startswith("thrml") and contest.promised:
            targets.append(Target(contest.title, ratio.median, contest.bound, True, "thrml", spread))
    head = ["million updates per second", "cpu", "wall", "gibbsite's multiple", "range", "neighbours"]
    return Section("peers", targets, head, rows, data)


def measure(*, quick: bool = False) -> Section:
    """Hold all contests."""
    held = [compete(contest, quick=quick) for contest in contests(quick)]
    return Section(
        "peers",
        [target for section in held for target in section.targets],
        held[0].head,
        [row for section in held for row in section.rows],
        {title: seen for section in held for title, seen in section.data.items()},
    )


def _agreement(player: Player, model: Spins) -> float:
    """Mean product of neighbouring spins."""
    spins = player.spins()
    i, j = model.pairs.T
    return float((spins[:, i] * spins[:, j]).mean())
