"""Mean statistics of a model: from short runs with bounded bias, or exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite._common.wording import argument
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.graphs.graph import compile_graph
from gibbsite.inference.exact import predict_exact, solve_exact
from gibbsite.inference.influence import Influence, bound_influence, certify, dogs
from gibbsite.inference.influence.certificate import make_decay
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.learn.family import Family
from gibbsite.models import FactorGraph, TableFactors
from gibbsite.sampling.executor import Threads
from gibbsite.sampling.repeat import make_short_run
from gibbsite.scans.base import Scan
from gibbsite.scans.chromatic import Chromatic
from gibbsite.scans.drawn import RandomScan, Shuffled
from gibbsite.scans.systematic import Systematic

SCANS = {"systematic": Systematic(), "uniform": RandomScan(), "shuffled": Shuffled(), "chromatic": Chromatic()}
_MOST_STATISTICS = 1 << 23  # largest number of entries of the statistics of all states
_PARTS = 1 << 20  # number of random streams of a gradient step
_ACCURACY = 0.01  # default total variation distance between a chain's state and the model
_SWEEPS = 30  # sweeps of a chain at a gradient step if no number of updates is known to suffice


class Estimate(NamedTuple):
    """Mean statistics and their accuracy."""

    mean: Floats  # (parameters,): the means
    length: int  # number of updates of a chain
    updates: int  # number of updates of all chains
    variation: float  # bound on the total variation distance of a chain's state from the model; NaN if unknown
    bias: float  # bound on the Euclidean norm of the bias of the means; NaN if unknown


class Oracle(Protocol):
    """A method to compute the mean statistics of a model."""

    def __call__(self, theta: Floats, number: int) -> Estimate:
        """Return the means for parameters; ``number`` is the number of the call."""


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact means: by enumeration if there are few states, otherwise from a clique tree."""

    family: Family
    listed: list[Floats] = field(default_factory=list)

    def __call__(self, theta: Floats, number: int = 0) -> Estimate:
        """Return the means for parameters."""
        family = self.family
        if not self._listable():
            return Estimate(self._by_tree(theta), 0, 0, 0.0, 0.0)
        if not self.listed:
            codes = np.indices(tuple(family.base.cards)).reshape(family.base.n_sites, -1).T
            self.listed.append(family.statistics(codes))
        logs = self.listed[0] @ theta
        weights = np.exp(logs - logs.max())
        return Estimate(weights @ self.listed[0] / weights.sum(), 0, 0, 0.0, 0.0)

    def seconds(self) -> float:
        """Return the approximate time of one evaluation; that of an enumeration counts as zero."""
        if self._listable():
            return 0.0
        return predict_exact(self._watched(np.zeros(self.family.size))).seconds

    def _listable(self) -> bool:
        states = float(np.prod(self.family.base.cards.astype(float)))
        return states * max(self.family.size, 1) <= _MOST_STATISTICS

    def _by_tree(self, theta: Floats) -> Floats:
        """Return the means from the marginals of the model and of the sites that observe its pairs."""
        family = self.family
        cells = solve_exact(self._watched(theta)).marginals.cells
        n, k = family.base.n_sites, len(family.witness)
        seen = int(family.witness.max()) + 1
        return family.from_marginals(cells[n * k :].reshape(len(family.pairs), seen), cells[: n * k].reshape(n, k))

    def _watched(self, theta: Floats) -> FactorGraph:
        """Return the model with an extra site for each pair, whose marginal is the distribution of the pair."""
        family, model = self.family, self.family.model(theta)
        n, pairs = model.n_sites, family.pairs
        code = family.witness
        k, seen = len(code), int(code.max()) + 1
        table = np.where(code[:, :, None] == np.arange(seen), 0.0, -np.inf)
        scopes = np.column_stack([pairs, n + np.arange(len(pairs), dtype=np.int32)])
        sites = {str(i): k for i in range(n)} | {str(n + e): seen for e in range(len(pairs))}
        return FactorGraph(sites, groups=[*model.groups, TableFactors(scopes, table[None])])


@dataclass(frozen=True, eq=False)
class Sampled:
    """Means over the end states of many chains."""

    family: Family  # the models
    # the order of updates; "dogs": optimised for each model if the bound is informative, otherwise systematic
    scan: Scan | str
    # largest total variation distance, which determines the number of updates of a chain; None: 0.01 if a number of
    # updates is known to reach it, otherwise 30 systematic sweeps
    accuracy: float | None
    updates: int | None  # number of updates of a chain, if it is given
    chains: int  # number of chains
    persistent: bool  # whether chains continue from their last states
    entropy: int  # seed
    threads: int  # number of threads, on which the numbers do not depend
    kept: dict[int, Array] = field(default_factory=dict)

    def __call__(self, theta: Floats, number: int) -> Estimate:
        """Return the means for parameters."""
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

        with Threads(self.threads) as executor:
            means = executor.map(make, range(-(-self.chains // run.part)))
        # the bias of a pair or site is at most its total variation distance times the diameter of its statistics
        each = np.minimum(bounds[self.family.pairs].sum(axis=1), 1.0)
        if self.family.fields:
            each = np.concatenate([each, np.minimum(bounds, 1.0)])
        bias = float(self.family.diameter * np.linalg.norm(each))
        variation = min(float(bounds.sum()), 1.0)
        if self.persistent and number > 0:
            bias, variation = np.nan, np.nan  # states depend on earlier parameters
        return Estimate(np.sum(means, axis=0), length, length * self.chains, variation, bias)

    def _plan(self, model: FactorGraph) -> tuple[Scan, int, Floats]:
        """Return the scan, its number of steps, and bounds on the total variation of each site."""
        influence = bound_influence(model)
        scan, length = self._choose(model, influence)
        _check_visits(scan, length, model)
        decay = make_decay(model, scan, np.ones(model.n_sites), influence)
        return scan, length, decay.bounds(length)

    def _choose(self, model: FactorGraph, influence: Influence) -> tuple[Scan, int]:
        """Return the scan and its number of steps."""
        if self.updates is None:
            try:
                return self._certified(model, influence)
            except ModelError:
                if self.accuracy is not None:
                    raise
            scan = Systematic() if isinstance(self.scan, str) else self.scan
            return scan, max(_SWEEPS * model.n_sites, scan.cycle(compile_graph(model), model) or 0)
        if not isinstance(self.scan, str):
            return self.scan, self.updates
        # a scan that minimises a vacuous bound may leave out sites
        best = dogs(model, steps=self.updates, influence=influence)
        return (best if best.variation <= self.goal else Systematic()), self.updates

    @property
    def goal(self) -> float:
        """The largest total variation distance."""
        return _ACCURACY if self.accuracy is None else self.accuracy

    def _certified(self, model: FactorGraph, influence: Influence) -> tuple[Scan, int]:
        """Return a scan and the number of steps that the accuracy requires."""
        try:
            if isinstance(self.scan, str):
                scan = dogs(model, accuracy=self.goal, influence=influence)
                return scan, len(scan.order)
            found = certify(model, scan=self.scan, accuracy=self.goal, influence=influence)
            if found.reached:
                return self.scan, found.steps
            reason = found.statement
        except ModelError as failure:
            reason = str(failure)
        raise ModelError(
            f"No number of updates is known to bring chains within {self.goal:g} of the model; leave out "
            "accuracy= or give updates= to fit without a guarantee, or give mixing= to keep one. "
            f"({reason})"
        )


def _check_visits(scan: Scan, length: int, model: FactorGraph) -> None:
    """Refuse a number of steps that leaves out a site, whose mean would be that of its start."""
    graph, n = compile_graph(model), model.n_sites
    missed = scan.left_out(graph, model).size
    if not scan.random:
        missed = n - np.unique(scan.visits(graph, model)[:length]).size
    elif not missed:
        missed = max(n - length, 0)
    if missed:
        raise ArgumentError(
            f"{argument('updates')}={length} of the {argument('scan')} {type(scan).__name__} leave out "
            f"{missed} of {n} sites, whose means the gradient needs; give more updates or a scan that visits "
            "all sites."
        )
