"""Unknowns with few values that are independent of each other given everything else, and are drawn at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.network import Network, Reach
from gibbsite.applications.bugs.tables import CODE

_MOST_VALUES = 64


@dataclass
class Batch:
    """Members in the order of their nodes; what each one reaches alone; their own nodes; shared constraints.

    ``owner`` is the member that each stochastic node of ``alone`` belongs to.
    """

    choice: Choice
    members: Ints
    alone: Reach
    owner: Ints
    own: Reach
    shared: Reach

    @property
    def work(self) -> int:
        """Numbers of work space that a draw needs: weights, values before, and behind these weights of a single one."""
        return self.single_work + self.many

    @property
    def many(self) -> int:
        """How many values each member may have."""
        return self.choice.extra[units.EXTRA_B] - self.choice.extra[units.EXTRA_A] + 1

    @property
    def single_work(self) -> int:
        """Where the work space of draws one by one starts."""
        return self.members.size * (self.many + 1)


def find_batches(network: Network, choices: list[Choice], joint: Ints) -> list[Batch]:
    """Return a batch for each relation with several such unknowns that are not drawn jointly already."""
    found = []
    for choice in choices:
        if choice.update != units.FINITE or choice.extra[units.EXTRA_B] - choice.extra[units.EXTRA_A] >= _MOST_VALUES:
            continue
        targets = network.assembly.compiled[choice.rule].targets
        places = targets[network.unknown[targets] & ~network.forward[targets]]
        places = places[~np.isin(places, joint)]
        places = places[np.argsort(network.node(places))]
        batch = _batch(network, choice, places) if places.size > 1 else None
        if batch is not None:
            found.append(batch)
    return found


def _batch(network: Network, choice: Choice, places: Ints) -> Batch | None:
    code = np.array([each.row[CODE] for each in network.assembly.compiled], np.int64)
    reach = network.reach(places, np.arange(places.size), places.size)
    last = network.stochastic[network.rule_of[reach.node]]
    unit, node = reach.unit[last], reach.node[last]
    reached = np.bincount(node, minlength=network.rule_of.size)
    own = network.node(places)
    coupled = (reached[node] > 1) & (code[network.rule_of[node]] != dist.INTERVAL)
    fine = reached[own] == 0
    fine[unit[coupled]] = False
    if fine.sum() < 2:
        return None
    members, own = places[fine], own[fine]
    rank = np.cumsum(fine) - 1
    mine = fine[reach.unit]
    unit, node, last = rank[reach.unit[mine]], reach.node[mine], last[mine]
    reached = np.bincount(node[last], minlength=network.rule_of.size)
    private = ~last | (reached[node] == 1)
    owner = np.zeros(network.rule_of.size, np.int64)
    owner[node[last]] = unit[last]
    kept = np.unique(node[private])
    shared = np.unique(node[~private])
    alone = network.segments(np.zeros(kept.size, np.int64), kept, 1)
    stochastic = alone.node[network.stochastic[network.rule_of[alone.node]]]
    return Batch(
        choice,
        members,
        alone,
        owner[stochastic],
        network.segments(np.zeros(own.size, np.int64), own, 1),
        network.segments(np.zeros(shared.size, np.int64), shared, 1),
    )
