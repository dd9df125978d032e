"""Blocks of normal unknowns that are drawn jointly: their members, their factors, and the structure of the factor L."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.network import Network, distinct
from gibbsite.graphs.elimination.order import find_order

#: Largest number of entries of the factor of a block, compared with its members.
_MOST_ENTRIES_PER_MEMBER = 60
_MOST_SMALL = 20_000


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


@dataclass
class Block:
    """A block: places of its members in the order of elimination, groups of factors, and the structure of L.

    ``groups`` are rows as compiled code reads them, without offsets: rule, instances, members of each factor,
    coefficients, and positions in L.
    """

    members: Ints
    groups: list[tuple[int, Ints, int, Ints, Floats, Ints]]
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


def build_block(network: Network, terms: Terms, members: Ints) -> Block | None:
    """Return the block of some members, or None if its factor is too large; terms are those of its members alone."""
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
            groups.append(
                (
                    int(rule),
                    nodes[chosen] - network.first[rule],
                    int(size),
                    listed.ravel(),
                    coefficients.ravel(),
                    _positions(listed, start, rows),
                )
            )
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
        rows.append(row)
    first_group = segments.add(np.array(rows, np.int64).ravel())
    return block.entries, structure, first_group, len(rows)
