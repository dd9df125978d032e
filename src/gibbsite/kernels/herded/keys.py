"""The keys of herding weights: their kinds, their number, and the memory for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Words32, Words64
from gibbsite._common.wording import part
from gibbsite.errors import TooLargeError
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.rows import row_lengths

Rows = tuple[Words32, Words32]


class _Neighbours(NamedTuple):
    start: Words32
    neighbour: Words32


KEYS = ("blanket", "full", "shared", "binned", "randomised-binned", "site")
STORAGE = ("auto", "dense", "hash")
# How a key is found: from other sites' states, from the conditional, from its bin, from a bin by chance.
CODED, SHARED, BINNED, RANDOM = range(4)

_NUMBERS = 2.0**62


@dataclass(frozen=True)
class Keys:
    """The keys of the sites of a graph."""

    kind: str  # one of ``KEYS``
    bins: int  # number of bins, where conditionals are put into bins
    graph: Graph

    @property
    def found_by(self) -> int:
        """How keys are found: ``CODED``, ``SHARED``, ``BINNED`` or ``RANDOM``."""
        if self.counts:
            return CODED
        return {"shared": SHARED, "binned": BINNED, "randomised-binned": RANDOM}.get(self.kind, CODED)

    @property
    def width(self) -> int:
        """How many numbers a key has: one for two states, otherwise a mark and a weight per state."""
        return 1 if self.graph.binary else int(self.graph.cards.max(initial=1)) + 1

    @property
    def counts(self) -> bool:
        """Whether keys are conditionals, and equal ones those with equally many neighbours in state 1."""
        if self.kind != "shared":
            return False
        g = self.graph.arrays
        if isinstance(g, LatticeGraph):
            return counts_suffice(g)
        if isinstance(g, IsingGraph):
            if not g.coupling.size:
                return True
            n = self.graph.n_sites
            owner = np.repeat(np.arange(n), row_lengths(g.start))
            coupling = np.asarray(g.coupling)
            first = coupling[g.start[:-1].astype(np.int64)[owner].clip(0, coupling.size - 1)]
            simple = np.unique(owner * n + g.neighbour.astype(np.int64)).size == owner.size
            return bool(simple and (coupling == first).all())
        return False

    def others(self) -> Rows:
        """Return the sites whose states are part of the key of each site, in compressed rows.

        They depend on scopes alone, so they are kept with the graph.
        """
        n = self.graph.n_sites
        if self.kind == "full":
            every = np.arange(n, dtype=np.uint32)
            member = np.concatenate([np.delete(every, i) for i in range(n)]) if n else every
            return (np.arange(n + 1) * max(n - 1, 0)).astype(np.uint32), member
        if self.kind != "blanket" and not self.counts:
            return np.zeros(n + 1, np.uint32), np.zeros(0, np.uint32)
        start, neighbour = self.graph.shared.find(_Neighbours, lambda: _Neighbours(*markov_graph(self.graph)))
        return start.astype(np.uint32, copy=False), neighbour.astype(np.uint32, copy=False)

    def sizes(self) -> Floats:
        """Return how many keys each site can have."""
        n = self.graph.n_sites
        if self.counts and isinstance(self.graph.arrays, LatticeGraph):  # what borders lack is not saved
            return np.full(n, 2.0 * sum(size > 1 for size in self.graph.arrays[0:3]) + 1.0)
        cards = self.graph.cards.astype(np.float64)
        start, member = self.others()
        degree = row_lengths(start)
        if self.kind == "site":
            return np.ones(n)
        if self.counts:
            return degree.astype(np.float64) + 1.0
        if self.kind in ("blanket", "full"):
            logs = np.bincount(np.repeat(np.arange(n), degree), np.log2(cards[member]), n)
            return np.asarray(np.rint(np.exp2(np.minimum(logs, 1000.0))), np.float64)
        if self.kind == "shared":
            return np.full(n, 2.0**63)
        many = np.where(cards <= 2, self.bins + 1.0, (self.bins + 1.0) ** np.minimum(cards, 100.0))
        return many.astype(np.float64)

    def numbers(self) -> tuple[Words64, Words64]:
        """Return the first key of each site, and by how much the state of each of the others moves it."""
        (start, member), sizes = self.others(), self.sizes()
        n, cards = self.graph.n_sites, self.graph.cards
        if sizes.sum() >= _NUMBERS:  # more keys than numbers: random ones distinguish those that are met
            place = np.random.SeedSequence(1).generate_state(n, np.uint64).astype(np.uint64)
            return place, np.random.SeedSequence(2).generate_state(member.size, np.uint64).astype(np.uint64)
        stride = np.ones(member.size, np.uint64)
        if not self.counts:
            site = np.repeat(np.arange(n), row_lengths(start))
            depth, unit = np.arange(member.size) - start[site], np.ones(n, np.uint64)
            for d in range(int(depth.max(initial=-1)) + 1):
                k = np.flatnonzero(depth == d)
                stride[k] = unit[site[k]]
                unit[site[k]] *= cards[member[k]].astype(np.uint64)
        return (np.cumsum(sizes) - sizes).astype(np.uint64), stride

    def take_table(self, storage: str, limit: int) -> bool:
        """Return whether all keys have a place in a table of at most ``limit`` bytes, unless they are hashed.

        A table that is asked for and does not fit is refused.
        """
        if storage == "hash":
            return False
        need = 8.0 * self.sizes() * self.width
        fits = bool(need.sum() <= limit)
        if storage == "dense" and not fits:
            worst = int(np.argmax(need))
            others = int(row_lengths(self.others()[0])[worst])
            raise TooLargeError(
                f"A table of all keys would take {need.sum():.1e} bytes and the limit is {limit:.1e}; "
                f"site {worst} alone, with {others} others to distinguish, takes {need[worst]:.1e}. "
                f"Use {named(storage='hash')}, or {named(keys='binned')}."
            )
        return fits


def named(**parameter: str) -> str:
    """Name herding with a certain parameter in a message, as in ``keys='site'``."""
    ((name, value),) = parameter.items()
    return part("HerdedGibbs", f"{name}={value!r}", **parameter)


def counts_suffice(g: LatticeGraph) -> bool:
    """Return whether the conditionals of a lattice depend on how many neighbours are in state 1.

    Not if axes have different couplings, or around a ring of two, where a neighbour counts twice.
    """
    axes = [(float(w[0]), size, wrap) for w, size, wrap in zip(g[10:13], g[0:3], g[3:6], strict=True)]
    used = {w for w, size, _ in axes if size > 1}
    doubled = any(wrap and size == 2 for _, size, wrap in axes)
    return len(used) <= 1 and not (g.step_0 or g.step_1 or g.step_2) and not doubled
