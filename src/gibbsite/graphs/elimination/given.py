"""Exact marginals of most sites given the states of a few others, in NumPy, without compiling.

Conditioning on some sites leaves a graph that can be eliminated with small tables. The marginals of the other sites are
computed for many states of the conditioned ones at once; these states are the last axis of every table. If no site is
conditioned on, the marginals are those of the model, and models that differ only in their weights are solved together,
along the last axis.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.graphs.kinds.table import TableGraph

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

LOWEST_LOG = -230.0  # other methods are used if a log-potential is further below the largest one of its table
_LOST = 1e-250  # if the largest entry of a product is smaller, others may have underflowed


class Neighbourhoods:
    """The factors and the neighbours of each site, and the weights with a column for each model."""

    def __init__(self, arrays: TableGraph) -> None:
        self.arrays = arrays
        self.unary, self.value = arrays.unary[:, None], arrays.value[:, None]
        start, member = arrays.member_start.astype(np.int64).tolist(), arrays.member.astype(np.int64).tolist()
        self.scopes = [tuple(member[a:b]) for a, b in pairwise(start)]
        self.cards = arrays.card.astype(np.int64).tolist()
        self.factors: dict[int, list[int]] = defaultdict(list)
        self.near: dict[int, set[int]] = defaultdict(set)
        for f, scope in enumerate(self.scopes):
            for site in scope:
                self.factors[site].append(f)
                self.near[site].update(scope)
        for site, near in self.near.items():
            near.discard(site)

    @classmethod
    def together(cls, arrays: TableGraph, models: Sequence[FactorGraph]) -> Neighbourhoods | None:
        """Return the neighbourhoods of models that differ only in their weights; None if weights are too small.

        ``arrays`` is the graph of the first model.
        """
        first = models[0]
        offset, cards = arrays.offset.astype(np.int64), first.cards
        unary, starts, logs = np.zeros((int(offset[-1]), len(models))), [np.zeros(1, np.int64)], []
        for k, group in enumerate(first.groups):
            same = all(model.groups[k] is group for model in models)
            given = [model.groups[k].log_tables(cards) for model in (models[:1] if same else models)]
            if not group.size or not group.arity:
                continue
            tables = np.stack([np.broadcast_to(each, (group.size, *each.shape[1:])) for each in given], axis=-1)
            tables = tables.reshape(group.size, -1, len(given))
            if group.arity == 1:
                np.add.at(unary, offset[group.scopes[:, 0]][:, None] + np.arange(tables.shape[1]), tables)
                continue
            starts.append(np.full(group.size, tables.shape[1]))
            tables = tables - tables.max(axis=1, keepdims=True)
            logs.append(np.broadcast_to(tables, (*tables.shape[:2], len(models))).reshape(-1, len(models)))
        unary -= np.repeat(np.maximum.reduceat(unary, offset[:-1]), np.diff(offset), axis=0)
        value = np.concatenate(logs) if logs else np.zeros((0, len(models)))
        if any(((part < LOWEST_LOG) & (part > -np.inf)).any() for part in (unary, value)):
            return None
        table = np.cumsum(np.concatenate(starts))[: arrays.table.size]
        hoods = cls(arrays._replace(table=table))
        hoods.unary, hoods.value = np.exp(unary), np.exp(value)
        return hoods

    def components(self, sites: Iterable[int]) -> list[list[int]]:
        """Return the sites of each connected component that has some of these, in breadth-first order."""
        n = len(self.cards)
        seen = [False] * n
        return [self.reach(root, seen, n) for root in sites if not seen[root]]

    def reach(self, root: int, seen: list[bool], most: int) -> list[int]:
        """Return the at most ``most`` nearest sites that were not seen, and mark them as seen."""
        sites, seen[root] = [root], True
        for site in sites:
            for other in sorted(self.near[site]):
                if not seen[other] and len(sites) < most:
                    seen[other] = True
                    sites.append(other)
        return sites


def distances(hoods: Neighbourhoods, largest: float, most: int) -> list[int]:
    """Return the distance of each site, at most ``most``, from factors with more than ``largest`` table entries."""
    found = [most] * len(hoods.cards)
    front = {site for scope in hoods.scopes if math.prod(hoods.cards[m] for m in scope) > largest for site in scope}
    for away in range(most):
        for site in front:
            found[site] = away
        front = {other for site in front for other in hoods.near[site] if found[other] > away + 1}
    return found


class Plan(NamedTuple):
    """The cliques of an elimination order, and the number of all their entries.

    A clique begins with the site that is eliminated; the other members are eliminated later, in this order.
    """

    cliques: list[tuple[int, ...]]
    entries: float

    def piece(self, site: int) -> Plan:
        """Return the part of the plan that the marginal of a site depends on."""
        root: dict[int, int] = {}
        for clique in reversed(self.cliques):
            root[clique[0]] = root[clique[1]] if len(clique) > 1 else clique[0]
        return Plan([clique for clique in self.cliques if root[clique[0]] == root[site]], 0.0)


def plan_elimination(
    hoods: Neighbourhoods, sites: Iterable[int], largest: float, rank: Sequence[int] | None = None
) -> Plan:
    """Order sites for elimination; sites that would make a table larger than ``largest`` are conditioned on.

    Tables over the scope of a single factor are always allowed. Sites of the highest rank are conditioned on first,
    among them those with many factors. All sites that are not in the plan are conditioned on.
    """
    limit = math.log2(largest)
    inside = set(sites)
    logs = {site: math.log2(hoods.cards[site]) for site in inside}
    near = {site: hoods.near[site] & inside for site in inside}
    size = {site: logs[site] + sum(logs[other] for other in near[site]) for site in near}
    heap = [(each, site) for site, each in size.items()]
    heapq.heapify(heap)
    order: list[int] = []
    given: set[int] = set()

    def drop(site: int, fill: bool) -> None:
        around = near.pop(site)
        for other in around:
            if fill:
                near[other] |= around
                near[other].discard(other)
            near[other].discard(site)
            size[other] = logs[other] + sum(logs[each] for each in near[other])
            heapq.heappush(heap, (size[other], other))

    while near:
        each, site = heapq.heappop(heap)
        if site not in near or each != size[site]:
            continue
        if each > limit + 1e-9 and not _in_one_factor(hoods, site, near[site]):
            cut = max(
                near[site] | {site},
                key=lambda s: (0 if rank is None else rank[s], len(hoods.factors[s]), len(near[s]), -s),
            )
            given.add(cut)
            drop(cut, False)
            if cut != site:
                heapq.heappush(heap, (size[site], site))
        else:
            order.append(site)
            drop(site, True)
    return _cliques(hoods, order)


def _in_one_factor(hoods: Neighbourhoods, site: int, others: set[int]) -> bool:
    """Tell whether one factor of a site contains all of these other sites."""
    return any(others <= set(hoods.scopes[f]) for f in hoods.factors[site])


def _cliques(hoods: Neighbourhoods, order: list[int]) -> Plan:
    """Return the cliques of an elimination order, given all other sites."""
    rank = {site: k for k, site in enumerate(order)}
    handed: dict[int, set[int]] = {site: set() for site in order}
    cliques, entries = [], 0.0
    for k, site in enumerate(order):
        later = {other for other in hoods.near[site] if rank.get(other, -1) > k} | handed.pop(site)
        clique = (site, *sorted(later, key=rank.__getitem__))
        if later:
            handed[clique[1]] |= later - {clique[1]}
        cliques.append(clique)
        entries += math.prod(float(hoods.cards[each]) for each in clique)
    return Plan(cliques, entries)


def solve_given(hoods: Neighbourhoods, plan: Plan, states: Array) -> dict[int, Floats] | None:
    """Return the probabilities (states, codes) of each site of a plan given the other sites of each state.

    Return None if numbers became too small to be reliable. ``states`` has a row for each state; where no site of the
    plan has a neighbour that is conditioned on, there is one row of probabilities. If there are several models, there
    is a row for each of them; then the plan must have all sites.
    """
    place = {clique[0]: k for k, clique in enumerate(plan.cliques)}
    columns = states.astype(np.int64, copy=False).T
    used: set[int] = set()
    messages: list[Floats] = []
    children: list[list[int]] = [[] for _ in plan.cliques]
    tables: list[Floats] = []
    for k, clique in enumerate(plan.cliques):
        site = clique[0]
        table = _unary(hoods, clique)
        for f in hoods.factors[site]:
            if f not in used:
                used.add(f)
                table = table * _conditioned(hoods, f, clique, place, columns)
        for c in children[k]:
            table = table * _aligned(messages[c], plan.cliques[c][1:], clique)
        top = table.max(axis=tuple(range(len(clique))))
        if not (top > _LOST).all():
            return None
        table = table / top
        message = table.sum(axis=0)
        if len(clique) > 1:
            top = message.max(axis=tuple(range(len(clique) - 1)))
            message = message / top
            children[place[clique[1]]].append(k)
        tables.append(table)
        messages.append(message)
    found: dict[int, Floats] = {}
    for k in range(len(plan.cliques) - 1, -1, -1):
        clique, belief = plan.cliques[k], tables[k]
        if len(clique) > 1:
            belief = belief * messages[k]  # by now, the message from the rest of the model about the later members
            top = belief.max(axis=tuple(range(len(clique))))
            if not (top > _LOST).all():
                return None
            belief = belief / top
        for c in children[k]:
            kept = plan.cliques[c][1:]
            summed = belief.sum(axis=tuple(a for a, member in enumerate(clique) if member not in kept))
            up = messages[c]
            messages[c] = np.divide(summed, up, out=np.zeros(np.broadcast(summed, up).shape), where=up > 0.0)
        mine = belief.sum(axis=tuple(range(1, len(clique))))
        found[clique[0]] = (mine / mine.sum(axis=0)).T
        tables[k] = belief[:0]
    return found


def _unary(hoods: Neighbourhoods, clique: tuple[int, ...]) -> Floats:
    """Return the weights of the first member of a clique."""
    offset, site = hoods.arrays.offset, clique[0]
    own = hoods.unary[offset[site] : offset[site + 1]]
    return own.reshape((len(own),) + (1,) * (len(clique) - 1) + (-1,))


def _conditioned(
    hoods: Neighbourhoods, f: int, clique: tuple[int, ...], place: dict[int, int], columns: Ints
) -> Floats:
    """Return the table of a factor over the members of a clique, for each state of the other sites."""
    arrays = hoods.arrays
    first = int(arrays.member_start[f])
    entry = np.full((1,) * (len(clique) + 1), arrays.table[f])
    for m, member in enumerate(hoods.scopes[f], first):
        if member in place:
            shape = [1] * (len(clique) + 1)
            axis = clique.index(member)
            shape[axis] = hoods.cards[member]
            entry = entry + (arrays.stride[m] * np.arange(hoods.cards[member])).reshape(shape)
        else:
            entry = entry + arrays.stride[m] * columns[member]
    return np.take(hoods.value[:, 0], entry) if hoods.value.shape[1] == 1 else hoods.value[entry[..., 0]]


def _aligned(message: Floats, members: tuple[int, ...], clique: tuple[int, ...]) -> Floats:
    """Give a message an axis for each member of a clique; its own members come in the order of the clique."""
    sizes = iter(message.shape)
    shape = [next(sizes) if member in members else 1 for member in clique]
    return message.reshape((*shape, message.shape[-1]))
