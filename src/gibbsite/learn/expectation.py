"""Mean statistics of a model: sampled by short runs whose bias is bounded, or exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gibbsite._random.generators import stream
from gibbsite.errors import ModelError
from gibbsite.exact import solve_exact
from gibbsite.graph.compile import compile_graph
from gibbsite.influence import Influence, bound_influence, certify, dogs
from gibbsite.influence.certificate import make_site_decay
from gibbsite.kernel.gibbs.gibbs import Gibbs
from gibbsite.learn.family import Family
from gibbsite.model import FactorGraph, TableFactors
from gibbsite.run.executor import Executor
from gibbsite.run.repeat import make_short_run
from gibbsite.scan.base import Scan
from gibbsite.scan.chromatic import Chromatic
from gibbsite.scan.drawn import RandomScan, Shuffled
from gibbsite.scan.systematic import Systematic

Floats = NDArray[np.float64]
SCANS = {
    "systematic": Systematic(),
    "uniform": RandomScan(),
    "shuffled": Shuffled(),
    "chromatic": Chromatic(),
}
_MOST_STATISTICS = 1 << 23  # numbers in the statistics of all states, where these are listed
_PARTS = 1 << 20  # streams that belong to one gradient step


class Estimate(NamedTuple):
    """Mean statistics, and what is known about them.

    Attributes
    ----------
    mean : float array (parameters,)
        The means.
    length, updates : int
        Updates of a chain, and of all chains together.
    variation : float
        Bound on the total variation between the law of a chain's state and the model; NaN if not known.
    bias : float
        Bound on the Euclidean norm of the bias of the means; NaN if nothing is known.
    """

    mean: Floats
    length: int
    updates: int
    variation: float
    bias: float


class Oracle(Protocol):
    """What gives the mean statistics of a model."""

    def __call__(self, theta: Floats, number: int) -> Estimate:
        """Return the means under some parameters; ``number`` tells calls apart."""


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact means: from a list of all states if it is short, otherwise from a clique tree."""

    family: Family
    listed: list[Floats] = field(default_factory=list)

    def __call__(self, theta: Floats, number: int = 0) -> Estimate:
        """Return the means under some parameters."""
        family = self.family
        states = float(np.prod(family.base.cards.astype(float)))
        if states * max(family.size, 1) > _MOST_STATISTICS:
            return Estimate(self._by_tree(theta), 0, 0, 0.0, 0.0)
        if not self.listed:
            codes = np.indices(tuple(family.base.cards)).reshape(family.base.n_sites, -1).T
            self.listed.append(family.statistics(codes))
        logs = self.listed[0] @ theta
        weights = np.exp(logs - logs.max())
        return Estimate(weights @ self.listed[0] / weights.sum(), 0, 0, 0.0, 0.0)

    def _by_tree(self, theta: Floats) -> Floats:
        """Let an extra site watch each pair: its marginal is the law of the pair."""
        family, model = self.family, self.family.model(theta)
        n, pairs = model.n_sites, family.pairs
        code = family.witness
        k, seen = len(code), int(code.max()) + 1
        table = np.where(code[:, :, None] == np.arange(seen), 0.0, -np.inf)
        scopes = np.column_stack([pairs, n + np.arange(len(pairs), dtype=np.int32)])
        sites = {str(i): k for i in range(n)} | {str(n + e): seen for e in range(len(pairs))}
        groups = [*model.groups, TableFactors(scopes, table[None])]
        cells = solve_exact(FactorGraph(sites, groups=groups)).marginals.cells
        return family.from_marginals(cells[n * k :].reshape(-1, seen), cells[: n * k].reshape(n, k))


@dataclass(frozen=True, eq=False)
class Sampled:
    """Means over the end states of many chains.

    Attributes
    ----------
    family : Family
        The models.
    scan : Scan or "dogs"
        The order of updates; "dogs": optimised for each model.
    accuracy : float
        Total variation that is allowed; it decides the number of updates of a chain.
    updates : int or None
        That number, if it is given.
    chains : int
        Number of chains.
    persistent : bool
        Whether chains go on where they were.
    entropy, threads : int
        Seed, and number of threads; the numbers do not depend on the latter.
    """

    family: Family
    scan: Scan | str
    accuracy: float
    updates: int | None
    chains: int
    persistent: bool
    entropy: int
    threads: int
    kept: dict[int, NDArray[Any]] = field(default_factory=dict)

    def __call__(self, theta: Floats, number: int) -> Estimate:
        """Return the means under some parameters."""
        model = self.family.model(theta)
        scan, length, bounds = self._plan(model)
        run = make_short_run(model, compile_graph(model), Gibbs(), scan, length, everywhere=True)

        def make(part: int) -> Floats:
            many = min(run.part, self.chains - part * run.part)
            if self.persistent and part in self.kept:
                rows = self.kept[part]
            else:
                rows = run.draw_starts(many, self.entropy, number * _PARTS + part)
            run.make(rows, stream(self.entropy, number * _PARTS + part))
            if self.persistent:
                self.kept[part] = rows
            return self.family.mean(rows) * (many / self.chains)

        with Executor(self.threads) as executor:
            means = executor.map(make, range(-(-self.chains // run.part)))
        # each pair, and each site, is off by at most its total variation times the diameter of its statistics
        each = np.minimum(bounds[self.family.pairs].sum(axis=1), 1.0)
        if self.family.fields:
            each = np.concatenate([each, np.minimum(bounds, 1.0)])
        bias = float(self.family.diameter * np.linalg.norm(each))
        variation = min(float(bounds.sum()), 1.0)
        if self.persistent and number > 0:
            bias, variation = np.nan, np.nan  # chains remember parameters they were moved by before
        return Estimate(np.sum(means, axis=0), length, length * self.chains, variation, bias)

    def _plan(self, model: FactorGraph) -> tuple[Scan, int, Floats]:
        """Return the scan, its number of steps, and bounds on the total variation of each site."""
        influence = bound_influence(model)
        scan, length = (
            self._certified(model, influence) if self.updates is None else (self.scan, self.updates)
        )
        if isinstance(scan, str):
            scan = dogs(model, steps=length, influence=influence)
        decay = make_site_decay(model, scan, np.ones(model.n_sites), influence)
        return scan, length, decay.bounds(length)

    def _certified(self, model: FactorGraph, influence: Influence) -> tuple[Scan, int]:
        """Return a scan and as many steps as the accuracy takes."""
        try:
            if isinstance(self.scan, str):
                scan = dogs(model, accuracy=self.accuracy, influence=influence)
                return scan, len(scan.order)
            found = certify(model, scan=self.scan, accuracy=self.accuracy, influence=influence)
            if found.reached:
                return self.scan, found.steps
            reason = found.statement
        except ModelError as failure:
            reason = str(failure)
        raise ModelError(
            f"No number of updates is known to bring chains within {self.accuracy:g} of the model; give "
            f"updates= to go without a guarantee, or mixing= to stay where there is one. ({reason})"
        )
