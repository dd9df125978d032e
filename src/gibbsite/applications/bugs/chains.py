"""Chains of discrete unknowns, such as the states of a hidden Markov model, which are drawn jointly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Bools, Ints
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.network import Network, Reach

_MOST_STATES = 64


@dataclass
class Chain:
    """A chain of unknowns: their places in order, their smallest and largest value, and what each one alone reaches."""

    members: Ints
    low: int
    high: int
    alone: Reach

    @property
    def work(self) -> int:
        """Numbers of work space that a draw needs: filtered probabilities and transitions."""
        states = self.high - self.low + 1
        return self.members.size * states * (states + 1) + states


def find_chains(network: Network, choices: list[Choice]) -> list[Chain]:
    """Return chains of at least two unknowns.

    In a chain, each unknown depends on at most one other unknown with finitely many values, and at most one of these
    depends on it; all other dependents depend on one of them only.
    """
    members, low, high = _finite(network, choices)
    if members.size < 2:
        return []
    reach = network.reach(members, np.arange(members.size), members.size)
    stochastic = network.stochastic[network.rule_of[reach.node]]
    unit, node = reach.unit[stochastic], reach.node[stochastic]
    own = network.first[network.owner[members]] + network.instance[members]
    member_of = np.full(int(network.first[-1]), -1, np.int64)
    member_of[own] = np.arange(members.size)
    reached = np.bincount(node, minlength=member_of.size)
    target = member_of[node]
    fine: Bools = np.ones(members.size, np.bool_)
    shared = reached[node] > 1
    fine[unit[shared]] = False
    fine[target[shared & (target >= 0)]] = False
    edges = target >= 0
    fine[np.bincount(unit[edges], minlength=members.size) > 1] = False
    first, second = unit[edges], target[edges]
    joined = fine[first] & fine[second] & (low[first] == low[second]) & (high[first] == high[second])
    following = np.full(members.size, -1, np.int64)
    following[first[joined]] = second[joined]
    begins = np.ones(members.size, np.bool_)
    begins[second[joined]] = False
    found = []
    for k in np.flatnonzero(begins & (following >= 0)).tolist():
        path = [k]
        while following[path[-1]] >= 0:
            path.append(int(following[path[-1]]))
        found.append(_chain(network, reach, members, member_of, path, int(low[k]), int(high[k])))
    return found


def _finite(network: Network, choices: list[Choice]) -> tuple[Ints, Ints, Ints]:
    """Return the unknowns with few values, and their smallest and largest values."""
    places, low, high = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for choice in choices:
        if choice.update == units.FINITE:
            least, most = choice.extra[units.EXTRA_A], choice.extra[units.EXTRA_B]
            targets = network.assembly.compiled[choice.rule].targets
            mine = targets[network.unknown[targets] & ~network.forward[targets]]
            if most - least < _MOST_STATES:
                places.append(mine)
                low.append(np.full(mine.size, least))
                high.append(np.full(mine.size, most))
    return np.concatenate(places), np.concatenate(low), np.concatenate(high)


def _chain(
    network: Network, reach: Reach, members: Ints, member_of: Ints, path: list[int], low: int, high: int
) -> Chain:
    """Return a chain, with what each member reaches apart from the next one."""
    rank = np.full(members.size, -1, np.int64)
    rank[path] = np.arange(len(path))
    mine = rank[reach.unit] >= 0
    mine &= ~((member_of[reach.node] >= 0) & network.stochastic[network.rule_of[reach.node]])
    alone = network.segments(rank[reach.unit[mine]], reach.node[mine], len(path))
    return Chain(members[path], low, high, alone)
