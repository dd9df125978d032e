"""Bayesian networks: Gibbs samplers that answer with the marginals of all sites.

All read the same file. A call starts a chain and ends with an answer, and the error is that of the mean of
all answers. On the alarm network chains take their time to reach every state, so that few sweeps leave an
error of some hundredths; without its evidence the exact answer itself would be wrong by 0.15.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.peers.contest import Contest
from benchmarks.speed import whole_call
from benchmarks.workloads import network
from gibbsite.formats.files import example_path

Probabilities = NDArray[np.float64]
LEAVES = {"CVP": "HIGH", "HREKG": "LOW"}


@dataclass(frozen=True)
class Network:
    """A Bayesian network in a file, and what is observed of it."""

    file: Path
    evidence: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def model(self) -> gs.FactorGraph:
        return gs.read_model(self.file).observe(self.evidence)

    @cached_property
    def exact(self) -> Probabilities:
        return self.listed(gs.solve_exact(self.model).marginals)

    def listed(self, marginals: Mapping[str, Mapping[Any, float]]) -> Probabilities:
        """List the probabilities of all states of the free sites, in the order of the file."""
        return np.concatenate([list(marginals[site].values()) for site in self.model.sites])


class Answering(ABC):
    """A player that answers every call with marginals."""

    def __init__(self, network: Network, sweeps: int) -> None:
        self.network, self.sweeps, self.calls = network, sweeps, 0
        self.total = np.zeros(network.exact.size)

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.calls += 1
            self.total += self.answer(self.calls)

    @abstractmethod
    def answer(self, seed: int) -> Probabilities:
        """Make the sweeps of a call; list the marginals as :meth:`Network.listed` does."""

    def error(self) -> float:
        """Return the mean absolute error of the mean answer."""
        return float(np.abs(self.total / self.calls - self.network.exact).mean())


class Ours(Answering):
    """gibbsite: whole calls of ``sample``, one chain."""

    def answer(self, seed: int) -> Probabilities:
        return self.network.listed(whole_call(self.network.model, self.sweeps, rng=seed).marginals)


class PyAgrum(Answering):
    """pyAgrum: an iteration is a sweep, and only their number ends a call."""

    def __init__(self, network: Network, sweeps: int) -> None:
        import pyagrum

        super().__init__(network, sweeps)
        self.pyagrum = pyagrum
        self.loaded = pyagrum.loadBN(str(network.file))

    def answer(self, seed: int) -> Probabilities:
        self.pyagrum.initRandom(seed)
        engine = self.pyagrum.GibbsSampling(self.loaded)
        engine.setEvidence(dict(self.network.evidence))
        engine.setNbrDrawnVar(self.network.model.n_sites)
        engine.setDrawnAtRandom(False)
        engine.setBurnIn(0)
        engine.setMaxIter(self.sweeps)
        engine.setPeriodSize(self.sweeps)
        engine.setMaxTime(1e9)
        engine.setEpsilon(1e-12)
        engine.setMinEpsilonRate(1e-12)
        engine.makeInference()
        assert engine.nbrIterations() == self.sweeps, engine.messageApproximationScheme()
        return np.concatenate([engine.posterior(site).tolist() for site in self.network.model.sites])


class Pgmpy(Answering):
    """pgmpy: its chain goes on from call to call; it takes no evidence.

    Beforehand it lists the conditionals of every site for all states of all others: eight sites are a
    matter of a second, ten of ten seconds, the alarm network would be 10^17 entries.
    """

    def __init__(self, network: Network, sweeps: int) -> None:
        from pgmpy.readwrite import BIFReader
        from pgmpy.sampling import GibbsSampling

        assert not network.evidence
        super().__init__(network, sweeps)
        self.chain = GibbsSampling(BIFReader(str(network.file)).get_model())

    def answer(self, seed: int) -> Probabilities:
        model = self.network.model
        counts = {site: np.zeros(len(model.labels(site))) for site in model.sites}
        for draw in self.chain.generate_sample(size=self.sweeps, seed=seed):
            for site, code in draw:
                counts[site][code] += 1
        return np.concatenate([counts[site] / self.sweeps for site in model.sites])


def contests(quick: bool) -> Iterator[Contest]:
    """Yield the alarm network with two leaves observed, and a network small enough for all."""
    yield _contest("alarm, 2 observed", Network(example_path("alarm"), LEAVES), {"pyagrum": PyAgrum})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.bif"
        gs.write_model(network("small", 8).model(), file)
        yield _contest("network of 8", Network(file), {"pyagrum": PyAgrum, "pgmpy": Pgmpy})


#: Sweeps per call, for about a tenth of a second to a second.
SWEEPS = {"pyagrum": 4000, "pgmpy": 200}


def _contest(title: str, network: Network, peers: Mapping[str, Callable[[Network, int], Answering]]) -> Contest:
    return Contest(
        title,
        network.model.n_sites,
        {"gibbsite": lambda: Ours(network, 100_000)},
        {name: lambda make=make, name=name: make(network, SWEEPS[name]) for name, make in peers.items()},
        lambda player: player.error(),
        "error",
    )
