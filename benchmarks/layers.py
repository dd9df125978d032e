"""Restricted Boltzmann machines: both layers of all chains drawn once, against NumPy.

NumPy makes two matrix products in 32-bit floats, two vectorised sigmoids and two draws, on one thread: a
process of its own, for the number of threads of its products is settled when it is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.forms import GIBBS, Bundle
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from benchmarks.workloads import Spins
from gibbsite.kernels.batched.replicated import Replicas
from gibbsite.sampling.batched_layouts import BUNDLE, ReplicatedLayout, move_at_once
from gibbsite.sampling.record import lay_out

CHAINS = 100
F = np.float32
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Machine:
    """A restricted Boltzmann machine."""

    weights: NDArray[np.float64]
    visible: NDArray[np.float64]
    hidden: NDArray[np.float64]

    @classmethod
    def draw(cls, m: int = 784, n: int = 500) -> Machine:
        """Return one of random weights, most of whose units are undecided."""
        rng = np.random.default_rng(1)
        weights = 0.05 * rng.normal(size=(m, n))
        biases = (0.3 + 0.3 * rng.normal(size=size) for size in (m, n))
        visible, hidden = (b - w / 2 for b, w in zip(biases, (weights.sum(1), weights.sum(0)), strict=True))
        return cls(weights, visible, hidden)

    @property
    def n_sites(self) -> int:
        return self.visible.size + self.hidden.size

    def model(self) -> gs.FactorGraph:
        """Return the model."""
        return gs.rbm(self.weights, self.visible, self.hidden)

    def spins(self) -> Spins:
        """Return the same law in terms of spins."""
        couplings, fields = (self.model().group(name) for name in ("couplings", "fields"))
        assert isinstance(couplings, gs.factors.SpinFactors) and isinstance(fields, gs.factors.SpinFactors)
        return Spins("machine", couplings.scopes, couplings.weights, fields.weights)


class Ours:
    """The chains of gibbsite, in the layout and bundles of a run of as many chains, or in another layout."""

    sweeps = 1

    def __init__(self, machine: Machine, *, keep: bool = False, replicas: bool = False) -> None:
        model = machine.model()
        graph = gs.graphs.compile_graph(model)
        layout = lay_out(model, graph, GIBBS, None)
        form = move_at_once(model, graph, GIBBS, layout, CHAINS)
        assert isinstance(form, ReplicatedLayout) and form.name == "layered"
        if replicas:
            way = Replicas()
            packed = way.pack(model, graph)
            assert packed is not None
            form = ReplicatedLayout(graph, GIBBS, layout, way, packed, form.bundle)
        width = form.width
        self.bundles = [Bundle(form, min(width, CHAINS - c), keep, first=c) for c in range(0, CHAINS, width)]
        assert max(bundle.chains for bundle in self.bundles) <= BUNDLE

    def run(self, calls: int) -> None:
        for bundle in self.bundles:
            bundle.run(calls)

    def units(self) -> NDArray[np.int8]:
        """Return the states (chains, units)."""
        return np.array([row for b in self.bundles for row, _ in b.form.release(b.state, b.tape, b.chains)])


class WithNumPy:
    """Matrix products, sigmoids and draws, all of them vectorised, in 32-bit floats."""

    sweeps = 1

    def __init__(self, machine: Machine) -> None:
        self.rng = np.random.default_rng(1)
        self.weights = machine.weights.astype(F)
        self.visible, self.hidden = machine.visible.astype(F), machine.hidden.astype(F)
        self.v = self.rng.integers(0, 2, (CHAINS, self.visible.size)).astype(F)
        self.h = np.zeros((CHAINS, self.hidden.size), F)

    def draw(self, odds: NDArray[np.float32]) -> NDArray[np.float32]:
        np.negative(odds, out=odds)
        np.exp(odds, out=odds)
        odds += F(1.0)
        np.reciprocal(odds, out=odds)
        return (self.rng.random(odds.shape, F) < odds).astype(F)

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.h = self.draw(self.v @ self.weights + self.hidden)
            self.v = self.draw(self.h @ self.weights.T + self.visible)

    def units(self) -> NDArray[np.float32]:
        """Return the states (chains, units)."""
        return np.concatenate([self.v, self.h], axis=1)


def race_numpy(quick: bool) -> dict[str, Any]:
    """Race all in this process, which should have one thread; return rates and ratios."""
    machine = Machine.draw()
    players = {
        "NumPy": WithNumPy(machine),
        "layers": Ours(machine),
        "layers, marginals": Ours(machine, keep=True),
        "replicas": Ours(machine, replicas=True),
    }
    field = [Contestant(name, each.run, CHAINS * machine.n_sites, least=2) for name, each in players.items()]
    times = race(field, repetitions=3 if quick else 9, seconds=0.1 if quick else 0.5)
    return {
        name: {
            "rates": seen.rate.to_dict(),
            "in NumPy": seen.against(times["NumPy"]).to_dict(),
            "in layers": seen.against(times["layers"]).to_dict(),
        }
        for name, seen in times.items()
    }


_CODE = "import json; from benchmarks.layers import race_numpy; print(json.dumps(race_numpy({quick})))"


def measure(*, quick: bool = False) -> Section:
    """Race gibbsite and NumPy."""
    data = run_fresh(_CODE.format(quick=quick), **ONE_THREAD)
    rows = []
    for name, seen in data.items():
        ratio = Spread(**seen["in NumPy"])
        rate = seen["rates"]["median"] / 1e6
        rows.append([name, f"{rate:.1f}", f"{ratio.median:.2f}", f"{ratio.low:.2f} .. {ratio.high:.2f}"])
    title = f"RBM of 784 x 500 units, {CHAINS} chains"
    targets = [
        Target.of(title, Spread(**data["layers"]["in NumPy"]), 0.5, "NumPy"),
        Target.of(f"{title}, marginals", Spread(**data["layers, marginals"]["in layers"]), 0.6, "bare"),
    ]
    return Section("layers", targets, ["million updates per second", "cpu", "in NumPy", "range"], rows, data)
