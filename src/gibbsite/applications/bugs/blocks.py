"""Blocks of normal unknowns that are drawn jointly: their members, their factors, and the structure of the factor L."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.dependence import COPY
from gibbsite.applications.bugs.joint.sums import precision_of
from gibbsite.applications.bugs.network import Network, distinct
from gibbsite.applications.bugs.tables import BOUNDED, CODE
from gibbsite.graphs.elimination.order import find_order

#: Largest number of entries of the factor of a block, compared with its members.
_MOST_ENTRIES_PER_MEMBER = 60
_MOST_SMALL = 20_000
_FEW = 10  # unknowns of a relation that may be scales
_SELDOM = 4  # every how many sweeps unknowns are moved with their scale that are drawn jointly in any case


@dataclass
class Terms:
    """Coefficients of residuals: node, component of its value, member (a place), and coefficient."""

    node: Ints
    component: Ints
    member: Ints
    coefficient: Floats

    def some(self, chosen: Any) -> Terms:
        """Return some of the terms."""
        return Terms(self.node[chosen], self.component[chosen], self.member[chosen], self.coefficient[chosen])


class Group(NamedTuple):
    """Factors with the same rule and number of members, or sums over factors (size 0).

    Rule, instances, members of each factor, coefficients, and positions in L, as compiled code reads them. Of sums:
    rows and columns of their entries, then these sums and, on the diagonal, those of the offsets.
    """

    rule: int
    instances: Ints
    size: int
    members: Ints
    coefficients: Floats
    positions: Ints


@dataclass
class Block:
    """A block: places of its members in the order of elimination, groups of factors, and the structure of L."""

    members: Ints
    groups: list[Group]
    structure: Ints
    entries: int

    @property
    def work(self) -> int:
        """Numbers of work space that a draw needs."""
        return self.entries + 2 * self.members.size


def components(terms: Terms, members: Ints) -> list[Ints]:
    """Return the members that are joined by factors, block by block."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    position = np.searchsorted(members, terms.member)
    nodes = distinct(terms.node)
    node = np.searchsorted(nodes, terms.node)
    size = members.size + nodes.size
    joined = coo_array((np.ones(node.size), (position, members.size + node)), shape=(size, size))
    count, label = connected_components(joined, directed=False)
    label = label[: members.size]
    order = np.argsort(label, kind="stable")
    return np.split(members[order], np.flatnonzero(np.diff(label[order])) + 1) if count else []


def build_block(
    network: Network, terms: Terms, members: Ints, known: Ints | None = None, residual: Floats | None = None
) -> Block | None:
    """Return the block of some members, or None if its factor is too large; terms are those of its members alone.

    ``residual`` holds the residuals of the nodes ``known`` where all members are 0, or NaN.
    """
    members = np.sort(members)
    position = np.searchsorted(members, terms.member)
    order = np.lexsort((terms.component, position, terms.node))
    terms, position = terms.some(order), position[order]
    # pairs of a node and a member, and which pair each term belongs to
    key = terms.node * np.int64(members.size) + position
    pairs = distinct(key)
    pair = np.searchsorted(pairs, key)
    node, member = np.divmod(pairs, members.size)
    begin = np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1]]))
    nodes, many = node[begin], np.diff(np.append(begin, node.size))
    structure = _structure(members.size, begin, many, member)
    if structure is None:
        return None
    place, start, rows = structure
    member = place[member]
    groups = []
    rules = network.rule_of[nodes]
    offset = np.full(nodes.size, np.nan)
    if known is not None and residual is not None:
        offset = residual[np.searchsorted(known, nodes)]
    widths = np.array([each.targets.shape[1] for each in network.assembly.compiled])
    for rule in distinct(rules).tolist():
        for size in distinct(many[rules == rule]).tolist():
            chosen = np.flatnonzero((rules == rule) & (many == size))
            which = (begin[chosen, None] + np.arange(size)).ravel()
            width = int(widths[rule])
            rank = np.full(pairs.size, -1)
            rank[which] = np.arange(which.size)
            mine = np.flatnonzero(rank[pair] >= 0)
            factor, slot = np.divmod(rank[pair[mine]], size)
            coefficients = np.zeros((chosen.size, width, size))
            np.add.at(coefficients, (factor, terms.component[mine], slot), terms.coefficient[mine])
            listed = member[which].reshape(chosen.size, size)
            instances = nodes[chosen] - network.first[rule]
            alike = precision_of(network, rule, instances) if np.isfinite(offset[chosen]).all() else None
            if alike is None:
                positions = _positions(listed, start, rows)
                groups.append(Group(int(rule), instances, int(size), listed.ravel(), coefficients.ravel(), positions))
                continue
            for precision in distinct(alike).tolist():
                same = alike == precision
                found = _summed(listed[same], coefficients[same, 0], offset[chosen[same]], start, rows)
                groups.append(Group(int(rule), instances[same][:1], 0, *found))
    inverse = np.empty(members.size, np.int64)
    inverse[place] = np.arange(members.size)
    return Block(members[inverse], groups, _rows_too(members.size, start, rows), rows.size)


def _structure(size: int, begin: Ints, many: Ints, member: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Return the place of each member in an order of elimination, starts of columns of L, and rows of entries."""
    flat_members = member.tolist()
    sets = {tuple(flat_members[b : b + m]) for b, m in zip(begin.tolist(), many.tolist(), strict=True)}
    neighbours: list[set[int]] = [set() for _ in range(size)]
    for each in sets:
        if len(each) > 400 and size > 400:
            return None
        for a in each:
            neighbours[a].update(each)
    for a, those in enumerate(neighbours):
        those.discard(a)
    counts = np.array([len(each) for each in neighbours])
    starts = np.concatenate([[0], np.cumsum(counts)])
    flat = np.array([b for each in neighbours for b in sorted(each)], np.int64)
    if int(counts.sum()) == size * (size - 1):
        order = np.arange(size)
    else:
        order = np.asarray(find_order(starts, flat, np.full(size, 2, np.int64), tries=1).sites, np.int64)
        missing = np.setdiff1d(np.arange(size), order)
        order = np.concatenate([order, missing])
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    limit = max(_MOST_SMALL, _MOST_ENTRIES_PER_MEMBER * size)
    columns: list[set[int]] = [{int(place[b]) for b in neighbours[a] if place[b] > place[a]} for a in order.tolist()]
    entries = size
    for j in range(size):  # the fill of column j goes to the column of its first row below the diagonal
        if columns[j]:
            parent = min(columns[j])
            columns[parent] |= columns[j] - {parent}
        entries += len(columns[j])
        if entries > limit:
            return None
    start = np.concatenate([[0], np.cumsum([len(each) + 1 for each in columns])])
    rows = np.array([i for j, each in enumerate(columns) for i in (j, *sorted(each))], np.int64)
    return place, start, rows


def _positions(listed: Ints, start: Ints, rows: Ints) -> Ints:
    """Return the position in L of each pair of members of a factor."""
    size = listed.shape[1]
    first, second = np.tril_indices(size)
    high = np.maximum(listed[:, first], listed[:, second])
    low = np.minimum(listed[:, first], listed[:, second])
    keys = np.repeat(np.arange(start.size - 1), np.diff(start)) * np.int64(start.size) + rows
    found: Ints = np.searchsorted(keys, low.ravel() * np.int64(start.size) + high.ravel())
    return found


def _summed(listed: Ints, coefficients: Floats, offset: Floats, start: Ints, rows: Ints) -> tuple[Ints, Floats, Ints]:
    """Return rows and columns of the sums D'D, these sums and D'c, and their positions in L."""
    size = listed.shape[1]
    first, second = np.tril_indices(size)
    every = _positions(listed, start, rows)
    weight = (coefficients[:, first] * coefficients[:, second]).ravel()
    pull = np.where(first == second, coefficients[:, first] * offset[:, None], 0.0).ravel()
    positions = distinct(every)
    where = np.searchsorted(positions, every)
    column = np.repeat(np.arange(start.size - 1), np.diff(start))
    sums = np.bincount(where, weight, minlength=positions.size)
    pulls = np.bincount(where, pull, minlength=positions.size)
    return np.concatenate([rows[positions], column[positions]]), np.concatenate([sums, pulls]), positions


def _rows_too(size: int, start: Ints, rows: Ints) -> Ints:
    """Return the structure as compiled code reads it: columns, and rows without their diagonal."""
    column = np.repeat(np.arange(size), np.diff(start))
    below = np.flatnonzero(rows != column)
    order = below[np.argsort(rows[below], kind="stable")]
    row_start = np.searchsorted(rows[order], np.arange(size + 1))
    return np.concatenate([start, rows, row_start, column[order], order])


def block_extra(block: Block, lists: Any, numbers: Any, segments: Any) -> tuple[int, int, int, int]:
    """Store a block in the tables of compiled code; return the extra columns of its unit."""
    structure = lists.add(block.structure)
    rows = []
    for rule, instances, size, members, coefficients, positions in block.groups:
        gapless = instances.size and instances[-1] - instances[0] == instances.size - 1
        first = int(instances[0]) if gapless else lists.add(instances)
        row = [0] * units.GROUP_WIDTH
        row[units.GROUP_RULE], row[units.GROUP_LISTED] = rule, int(not gapless)
        row[units.GROUP_FIRST], row[units.GROUP_COUNT] = first, instances.size
        row[units.GROUP_SIZE] = size
        row[units.GROUP_MEMBERS] = lists.add(members)
        row[units.GROUP_COEFFICIENTS] = numbers.add(coefficients)
        row[units.GROUP_POSITIONS] = lists.add(positions)
        if not size:
            row[units.GROUP_COUNT] = positions.size
        rows.append(row)
    first_group = segments.add(np.array(rows, np.int64).ravel())
    return block.entries, structure, first_group, len(rows)


@dataclass
class Shift:
    """A block whose members take others along, so that all predictors stay as they are.

    ``ties`` are triples: which of the others, the member, by its number in the block, and how much of its change the
    other one gives back.
    """

    block: Block
    others: Ints
    ties: list[tuple[int, int, float]]

    @property
    def places(self) -> Ints:
        """Everything that moves."""
        return np.concatenate([self.block.members, self.others])


def find_shift(network: Network, terms: Terms, others: Ints) -> Shift | None:
    """Return the members whose effect on all predictors others can make up for, which are those of one relation."""
    own = network.first[network.owner] + network.instance
    members = distinct(terms.member)
    prior = np.isin(terms.node, own[members])
    seen = terms.some(~prior & (terms.coefficient != 0.0))
    mine = np.isin(seen.member, others)
    anchor, pull = seen.node[mine], seen.coefficient[mine]
    if distinct(anchor).size < anchor.size:  # two of the others in one predictor
        return None
    other_of = dict(zip(anchor.tolist(), zip(seen.member[mine].tolist(), pull.tolist(), strict=True), strict=True))
    reached = dict(zip(*(each.tolist() for each in np.unique(seen.member[mine], return_counts=True)), strict=True))
    ratios: dict[int, dict[int, list[float]]] = {}
    unfit: set[int] = set()
    for node, member, coefficient in zip(
        seen.node.tolist(), seen.member.tolist(), seen.coefficient.tolist(), strict=True
    ):
        other = other_of.get(node)
        if other is None:
            unfit.add(member)
        elif other[0] != member:
            ratios.setdefault(member, {}).setdefault(other[0], []).append(coefficient / other[1])
    free = []
    for member in members[~np.isin(members, others)].tolist():
        mates = ratios.get(member, {})
        alike = all(
            len(many) == reached[other] and np.ptp(many) <= 1e-9 * max(map(abs, many)) for other, many in mates.items()
        )
        if mates and alike and member not in unfit:
            free.append(member)
    if not free:
        return None
    weight = {member: {other: float(np.mean(many)) for other, many in ratios[member].items()} for member in free}
    # the factors that are left: prior distributions, whose residuals change with members and with those they take along
    inner = terms.some(prior)
    total: dict[tuple[int, int], float] = {}
    by_other: dict[int, list[tuple[int, float]]] = {}
    for node, member, coefficient in zip(
        inner.node.tolist(), inner.member.tolist(), inner.coefficient.tolist(), strict=True
    ):
        if member in weight:
            total[node, member] = total.get((node, member), 0.0) + coefficient
        by_other.setdefault(member, []).append((node, coefficient))
    for member in free:
        for other, share in weight[member].items():
            for node, coefficient in by_other.get(other, ()):
                total[node, member] = total.get((node, member), 0.0) - share * coefficient
    kept = [(node, member, value) for (node, member), value in total.items() if value != 0.0]
    nodes, those, values = (np.array(each) for each in zip(*kept, strict=True))
    block = build_block(network, Terms(nodes, np.zeros(nodes.size, np.int64), those, values), np.array(free))
    if block is None:
        return None
    number = {member: k for k, member in enumerate(block.members.tolist())}
    ties = [(other, number[member], share) for member in free for other, share in weight[member].items()]
    return Shift(block, distinct(np.array([other for other, _, _ in ties], np.int64)), ties)


def unknowns_of(network: Network, choice: Choice) -> Ints:
    """Return the places of the unknowns of a relation."""
    targets = network.assembly.compiled[choice.rule].targets
    return np.asarray(targets[(network.unknown & ~network.forward)[targets]])


@dataclass
class Scale:
    """A move of unknowns away from their means, or from 0, or towards them, by powers of a common factor.

    ``rule`` and ``instances`` are those of all unknowns but the first, for their means, or -1. On average, the move is
    made in one of ``every`` sweeps.
    """

    places: Ints
    exponents: Floats
    rule: int
    instances: Ints
    every: int


def find_scales(network: Network, choices: list[Choice]) -> list[Scale]:
    """Return the moves of normal unknowns with what scales their precision, and of Weibull shapes with predictors."""
    found: list[Scale] = []
    compiled, by_rule = network.assembly.compiled, {choice.rule: choice for choice in choices}
    codes = [each.row[CODE] for each in compiled]
    alone = [c for c in choices if c.update in (units.SCALED_GAMMA, units.SLICE) and compiled[c.rule].rule.n <= _FEW]
    for choice in alone:
        places = unknowns_of(network, choice)
        for child, forms in choice.dependence.parameters.items():
            other = by_rule.get(child)
            power = forms[1].power if len(forms) == 2 else None
            if codes[child] != dist.NORMAL or other is None or power is None or forms[1].selects or forms[0].level:
                continue
            reads = other.dependence.parameters
            if not reads or child in reads or compiled[child].row[BOUNDED]:
                continue
            every = _SELDOM if other.update == units.NORMAL_BLOCK else 1
            reach = network.reach(places, np.arange(places.size), places.size)
            theirs = compiled[child].targets[:, 0]
            for k, place in enumerate(places.tolist()):
                nodes = reach.node[(reach.unit == k) & (network.rule_of[reach.node] == child)]
                instances = nodes - network.first[child]
                instances = instances[(network.unknown & ~network.forward)[theirs[instances]]]
                if instances.size > 1:
                    exponents = np.append(-2.0 / power, np.ones(instances.size))
                    found.append(Scale(np.append(place, theirs[instances]), exponents, child, instances, every))
    for choice in alone:
        place = unknowns_of(network, choice)
        shaped = {
            child
            for child, forms in choice.dependence.parameters.items()
            if codes[child] == dist.WEIBULL and forms[0].copies == COPY and not forms[1].level
        }
        predicting = [
            each
            for each in choices
            if each.update == units.PREDICTOR_BLOCK and shaped.intersection(each.dependence.parameters)
        ]
        if place.size == 1 and predicting:
            with_them = [scale for scale in found if any(scale.rule == each.rule for each in predicting)]
            places = np.concatenate(
                [place, *(unknowns_of(network, each) for each in predicting), *(each.places[:1] for each in with_them)]
            )
            exponents = np.ones(places.size)
            exponents[places.size - len(with_them) :] = [each.exponents[0] for each in with_them]
            found.append(Scale(places, exponents, -1, places[:0], 1))
    return found
