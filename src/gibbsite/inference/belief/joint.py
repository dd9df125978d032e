"""Joint beliefs of sites that share a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.inference.belief.lattice import OddsLattice, edges_of
from gibbsite.inference.belief.layout import MessageGraph


class JointBeliefs(Protocol):
    """Joint beliefs of several sites."""

    def joint(self, sites: list[int]) -> Floats | None:
        """Return joint probabilities, one axis per site; None if the sites share no factor."""


@dataclass(frozen=True)
class TableBeliefs:
    """Messages and unnormalised beliefs, as logarithms."""

    graph: MessageGraph
    message: Floats
    belief: Floats

    def joint(self, sites: list[int]) -> Floats | None:
        """Return joint probabilities, one axis per site; None if the sites share no factor."""
        graph, wanted = self.graph, set(sites)
        for e in range(int(graph.start[sites[0]]), int(graph.start[sites[0] + 1])):
            f = int(graph.factor[e])
            edges = graph.member[int(graph.member_start[f]) : int(graph.member_start[f + 1])]
            scope = graph.site[edges].tolist()
            if wanted <= set(scope):
                shape, begin = graph.card[scope], int(graph.table[f])
                logs = graph.log_value[begin : begin + int(shape.prod())].reshape(shape).copy()
                for axis, edge in enumerate(edges.tolist()):
                    logs += self._said_of(edge).reshape([-1 if d == axis else 1 for d in range(len(scope))])
                table = np.exp(logs - logs.max())
                table = table.sum(axis=tuple(d for d, site in enumerate(scope) if site not in wanted))
                kept = [site for site in scope if site in wanted]
                return np.asarray(table.transpose([kept.index(site) for site in sites]) / table.sum())
        return None

    def _said_of(self, edge: int) -> Floats:
        """Return the message of a site to a factor, as logarithms."""
        i = int(self.graph.site[edge])
        cell, size, place = int(self.graph.offset[i]), int(self.graph.card[i]), int(self.graph.place[edge])
        belief = self.belief[cell : cell + size]
        return np.where(np.isneginf(belief), -np.inf, belief - self.message[place : place + size])


@dataclass(frozen=True)
class LatticeBeliefs:
    """Messages of a binary lattice, and the log-odds of all sites."""

    lattice: OddsLattice
    log_odds: Floats

    def joint(self, sites: list[int]) -> Floats | None:
        """Return joint probabilities of two neighbours; None if they are not neighbours."""
        if len(sites) != 2:
            return None
        for w, ahead, back, far in edges_of(self.lattice):
            for near, other in (sites, sites[::-1]):
                if far[near] == other and w[near] != 1.0:
                    half = 0.5 * np.array(
                        [self.log_odds[near] - np.log(back[near]), self.log_odds[other] - np.log(ahead[near])]
                    )
                    spin = np.array([-1.0, 1.0])
                    logs = np.add.outer(half[0] * spin, half[1] * spin)
                    logs += 0.5 * np.log(w[near]) * np.outer(spin, spin)
                    table = np.exp(logs - logs.max())
                    table = table if near == sites[0] else table.T
                    return np.asarray(table / table.sum())
        return None
