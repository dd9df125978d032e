"""A chain whose updates are made one at a time, for checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.machine import LIKELIHOOD, call, static_book
from gibbsite.applications.bugs.compiled.updates import FAILED
from gibbsite.applications.bugs.kernel import BugsGraph, new_chain
from gibbsite.applications.bugs.simulation.evaluation import Evaluation
from gibbsite.graphs.graph import compile_graph

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel


class Bench:
    """A chain at some state, whose units can be updated one at a time."""

    def __init__(self, model: BugsModel, seed: int) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)
        graph = compile_graph(model)
        arrays: BugsGraph = graph.arrays
        self.arrays = arrays
        self.static = static_book(arrays.tables, arrays.lists, arrays.segment, arrays.unit, arrays.numbers)
        self.rows = arrays.unit.reshape(-1, units.UNIT_WIDTH)
        self.chain = new_chain(arrays)
        self.chain.words[:] = self.rng.integers(1, 2**63, 4)
        self.x = np.zeros(model.places.size)
        self.n = model.derived.units - 1
        self.sums: dict[int, Evaluation] = {}

    @property
    def values(self) -> Floats:
        """The values of all places."""
        return self.chain.values

    def load(self, x: Floats) -> None:
        """Take a state, and compute what depends on it."""
        self.x[:] = x
        self.values[self.model.places] = x
        self.density()

    def density(self, places: Ints | None = None) -> float:
        """Return the joint log-density at the current values of the unknowns, without those that are drawn forward.

        If the places are drawn forward, it is the density of them alone.
        """
        network = self.model.network
        call(self.static, self.chain, self.x, self.n)
        own = places is not None and network.forward[places].any()
        key = int(places[0]) if places is not None and own else -1
        if key not in self.sums:
            nodes = np.flatnonzero(network.stochastic[network.rule_of] & network.needed)
            at = Evaluation(network, self.model.registers)
            at.values = self.values
            segments = network.gapless(network.node(places[:1]) if places is not None and own else nodes)
            self.sums[key] = at
            at.add_unit(END=at.add_segments(segments) + segments.shape[0])
        return float(self.sums[key].call(LIKELIHOOD, 0)[0])

    def update(self, unit: int) -> bool:
        """Make an update; return whether it succeeded."""
        call(self.static, self.chain, self.x, unit)
        failed = self.chain.counts[FAILED] != 0
        self.chain.counts[FAILED] = 0
        return not failed

    def places(self, unit: int) -> Ints:
        """Return the places of a unit."""
        row = self.rows[unit]
        if row[units.COUNT] == 1:
            return np.array([row[units.PLACE]], np.int64)
        begin = row[units.LISTS]
        return self.arrays.lists[begin : begin + row[units.COUNT]].astype(np.int64)

    def along(self, places: Ints, points: Floats) -> Floats:
        """Return joint log-densities with other values at some places; the values of now are kept."""
        before = self.values.copy()
        found = np.empty(len(points))
        for k, point in enumerate(points):
            self.values[places] = point
            found[k] = self.density(places)
        self.values[:] = before
        return found

    def draws(self, unit: int, many: int) -> Floats:
        """Return what an update draws from the state of now, which is kept."""
        before, x = self.values.copy(), self.x.copy()
        places, found = self.places(unit), []
        for _ in range(many):
            self.values[:] = before
            if not self.update(unit):
                break
            found.append(self.values[places].copy())
        self.values[:], self.x[:] = before, x
        return np.array(found).reshape(-1, places.size)
