"""Unknowns with few values whose dependents are decided by few other such unknowns: their densities are kept.

In a network of discrete variables, the same densities would be computed again and again. They are kept in a table with
a row for each combination of values of the neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.network import Network, distinct

_MOST_UNKNOWNS, _MOST_ROWS, _MOST_ENTRIES = 3000, 4096, 1_000_000


@dataclass
class Neighbours:
    """Places of the neighbours of an unknown, their smallest values, and how many values they have.

    ``own`` tells whether the density of the unknown itself is decided by them, too.
    """

    places: Ints
    low: Ints
    many: Ints
    own: bool

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return int(np.prod(self.many, dtype=np.int64))

    def table(self) -> Ints:
        """Return how compiled code reads them: their number, then place, smallest value and stride of each."""
        strides = np.concatenate([[1], np.cumprod(self.many)[:-1]]).astype(np.int64)[: self.places.size]
        rows = np.stack([self.places, self.low, strides], axis=1)
        return np.append(self.places.size, rows.ravel())


def find_neighbours(network: Network, choices: list[Choice], wanted: Ints) -> dict[int, Neighbours]:
    """Return the neighbours of those of the wanted places that have few of them, all with few values."""
    unknown = np.flatnonzero(network.unknown & ~network.forward)
    if not wanted.size or unknown.size > _MOST_UNKNOWNS:
        return {}
    low, many = _values(network, choices)
    reach = network.reach(unknown, np.arange(unknown.size), unknown.size)
    stochastic = network.stochastic[network.rule_of[reach.node]]
    place, node = unknown[reach.unit[stochastic]], reach.node[stochastic]
    # each unknown influences its own density, too
    place, node = np.append(place, unknown), np.append(node, network.node(unknown))
    order = np.argsort(node, kind="stable")
    place_of, ordered = place[order], node[order]
    found, left = {}, _MOST_ENTRIES
    for each in wanted.tolist():
        own = int(network.node(np.array([each]))[0])
        below = node[(place == each) & (node != own)]
        sets = [_influences(place_of, ordered, nodes, each) for nodes in (np.append(below, own), below)]
        for which, whole in zip(sets, (True, False), strict=True):
            rows = float(np.prod(many[which]))
            if rows <= _MOST_ROWS and rows * many[each] <= left:
                found[each] = Neighbours(which, low[which].astype(np.int64), many[which].astype(np.int64), whole)
                left -= int(rows * many[each])
                break
    return found


def _influences(place: Ints, node: Ints, nodes: Ints, but: int) -> Ints:
    """Return the unknowns other than one that influence the densities of nodes."""
    begin, end = np.searchsorted(node, nodes), np.searchsorted(node, nodes, side="right")
    parts = [place[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
    return np.setdiff1d(distinct(np.concatenate([*parts, np.zeros(0, np.int64)])), [but]).astype(np.int64)


def _values(network: Network, choices: list[Choice]) -> tuple[Floats, Floats]:
    """Return the smallest value and the number of values of all places; infinitely many where they are not few."""
    low, many = np.zeros(network.start.size), np.full(network.start.size, np.inf)
    for choice in choices:
        if choice.update == units.FINITE:
            targets = network.assembly.compiled[choice.rule].targets
            low[targets] = choice.extra[units.EXTRA_A]
            many[targets] = choice.extra[units.EXTRA_B] - choice.extra[units.EXTRA_A] + 1
    return low, many
