"""Sites, factors and the messages between them, as arrays, and the powers of factors.

A message belongs to an *edge* from a factor to one of its sites. Edges are numbered by site, so that those of a site
are contiguous. Factors over the same sites are merged into one, because two of them would form a cycle that the model
does not have. Tables are stored as T^(1 / power), as messages need them: power one is belief propagation, other powers
are its fractional and tree-reweighted variants.

The powers of tree-reweighted messages come from forests: sets of factors through which no cycle passes. Forests are
grown one after the other, trying first the factors that have been in the fewest forests, until every factor has been in
one [1]_. Every site of a tree is its root equally often.

References
----------
.. [1] Wainwright, M. J., Jaakkola, T. S. and Willsky, A. S. (2005). A new class of upper bounds on the log partition
   function. IEEE Transactions on Information Theory 51.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.graphs.graph import Graph, as_tables, seal
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths, row_starts
from gibbsite.graphs.support.possible import alive_states

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


class MessageGraph(NamedTuple):
    """The edges along which messages are sent, and the tables from which they are computed.

    Site i has ``card[i]`` states, cells from ``offset[i]`` on, and the edges ``start[i]`` to ``start[i + 1]``. Edge e
    joins ``site[e]`` and ``factor[e]``; ``stride[e]`` is the stride of the site in the table, and the message begins
    at ``place[e]``. Factor f has the edges ``member[member_start[f] : member_start[f + 1]]``, in the order of its
    table, which begins at ``table[f]`` of ``value``, and the power ``power[f]``. ``value`` are the entries of the
    tables, each with maximum one, ``unary`` the weights of the states of single sites by cell, zero if impossible;
    ``log_value`` and ``log_unary`` are their logarithms.
    """

    card: Ints
    offset: Ints
    start: Ints
    site: Ints
    factor: Ints
    stride: Ints
    place: Ints
    member_start: Ints
    member: Ints
    table: Ints
    power: Floats
    value: Floats
    log_value: Floats
    unary: Floats
    log_unary: Floats

    @property
    def n_sites(self) -> int:
        """Number of sites."""
        return int(self.card.size)

    @property
    def n_factors(self) -> int:
        """Number of factors of two sites or more."""
        return int(self.table.size)

    @property
    def n_edges(self) -> int:
        """Number of messages."""
        return int(self.site.size)

    @property
    def n_numbers(self) -> int:
        """Number of entries of all messages."""
        return int(self.card[self.site].sum())


def lay_out(graph: Graph, model: FactorGraph) -> tuple[MessageGraph, float]:
    """Return the message graph of a model, and the constant that the log-potentials of the arrays omit.

    Raises :class:`SupportError` if propagation of zeros leaves a site without a state.
    """
    graph = as_tables(graph)
    tables: Any = merge_equal_scopes(graph.arrays)
    alive = alive_states(graph, model)
    log_unary = np.where(alive, tables.log_unary, -np.inf)
    width = row_lengths(tables.member_start)
    by_site = np.argsort(tables.member, kind="stable")
    edge = np.empty(by_site.size, np.int64)
    edge[by_site] = np.arange(by_site.size)
    site = tables.member[by_site].astype(np.int64)
    card = tables.card.astype(np.int64)
    return MessageGraph(
        card=card,
        offset=tables.offset.astype(np.int64),
        start=row_starts(np.bincount(site, minlength=card.size)),
        site=site,
        factor=np.repeat(np.arange(width.size), width)[by_site],
        stride=tables.stride[by_site],
        place=row_starts(card[site])[:-1],
        member_start=tables.member_start.astype(np.int64),
        member=edge,
        table=tables.table,
        power=np.ones(width.size),
        value=tables.value,
        log_value=tables.log_value,
        unary=np.exp(log_unary),
        log_unary=log_unary,
    ), graph.log_offset


def merge_equal_scopes(tables: TableGraph) -> TableGraph:
    """Return the same model with one table for all factors over the same set of sites."""
    width = row_lengths(tables.member_start)
    first = tables.member_start[:-1].astype(np.int64)
    again: list[list[int]] = []  # factors over the same sites, two or more
    for arity in np.unique(width):
        which = np.flatnonzero(width == arity)
        scope = np.sort(tables.member[first[which][:, None] + np.arange(arity)], axis=1)
        order = np.lexsort(scope.T[::-1])
        same = (scope[order][1:] == scope[order][:-1]).all(axis=1)
        if same.any():
            cuts = np.flatnonzero(~same) + 1
            again += [part.tolist() for part in np.split(which[order], cuts) if part.size > 1]
    if not again:
        return tables
    table, logs, size = tables.table.copy(), [tables.log_value], tables.log_value.size
    keep = np.ones(width.size, np.bool_)
    for group in again:
        head = min(group)
        members = tables.member[first[head] : first[head] + width[head]].astype(np.int64)
        total = sum(_table_over(tables, one, members) for one in group)
        assert isinstance(total, np.ndarray)
        logs.append(total.ravel())
        table[head], size = size, size + total.size
        keep[[one for one in group if one != head]] = False
    kept = np.repeat(keep, width)
    log_value = np.concatenate(logs)
    # the strides of the kept factors do not change, because tables are in the order of their members
    return tables._replace(
        member=tables.member[kept],
        stride=tables.stride[kept],
        member_start=row_starts(width[keep], np.uint32),
        table=table[keep],
        log_value=log_value,
        value=np.exp(log_value),
    )


def _table_over(tables: TableGraph, f: int, members: Ints) -> Floats:
    """Return the table of a factor with its axes in the order of ``members``."""
    first, last = int(tables.member_start[f]), int(tables.member_start[f + 1])
    mine = tables.member[first:last].astype(np.int64)
    begin, shape = int(tables.table[f]), tables.card[mine].astype(np.int64)
    table = tables.log_value[begin : begin + int(shape.prod())].reshape(shape)
    return table.transpose([int(np.flatnonzero(mine == one)[0]) for one in members])


def raise_to(graph: MessageGraph, power: Floats) -> MessageGraph:
    """Return the same messages with factors of other powers."""
    if (power == 1.0).all():
        return graph
    size = np.multiply.reduceat(graph.card[graph.site[graph.member]], graph.member_start[:-1])
    begin = row_starts(size)
    entry = np.repeat(graph.table - begin[:-1], size) + np.arange(begin[-1])
    log_value = graph.log_value[entry] / np.repeat(power, size)
    return graph._replace(table=begin[:-1], power=power, log_value=log_value, value=np.exp(log_value))


def sealed(graph: MessageGraph) -> MessageGraph:
    """Return the same arrays, contiguous and read-only, so that their type is the one for which code is compiled."""
    parts: Any = tuple(np.ascontiguousarray(part).copy() for part in graph)
    return seal(MessageGraph(*parts))


_FORESTS, _ENTRIES = 16, 5_000_000  # least number of forests, unless they take more than this number of steps in total


class ForestShares(NamedTuple):
    """Shares of the forests with a given property.

    ``lead`` (edges,): the factor of the edge is in the forest, with the site of the edge towards the root; ``root``
    (sites,): the site is a root.
    """

    lead: Floats
    root: Floats


class Grove(NamedTuple):
    """Workspace to grow a forest: union-find, chosen factors, the search from roots, and sizes of subtrees."""

    above: Ints
    chosen: Ints
    sites: Ints
    found_by: Ints
    size: Ints


def grow_forests(graph: MessageGraph) -> tuple[Floats, ForestShares]:
    """Return the powers of all factors and the shares of sites in them; deterministic for a given graph."""
    n, factors = graph.n_sites, graph.n_factors
    rng = np.random.default_rng(0)
    times, lead, root = np.zeros(factors), np.zeros(graph.n_edges), np.zeros(n)
    grove = Grove(*(np.zeros(size, np.int64) for size in (n, factors, n, n, n)))
    least = max(1, min(_FORESTS, _ENTRIES // max(graph.n_edges, 1)))
    forests = 0
    while forests < least or (times == 0.0).any():
        order = np.lexsort((rng.random(factors), times))
        grow(graph, order, grove)
        count_shares(graph, grove, lead, root)
        times += grove.chosen
        forests += 1
    return times / forests, ForestShares(lead / forests, root / forests)


@inlined
def _find(above: Ints, i: Integer) -> Integer:
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@compiled_loop
def grow(graph: MessageGraph, order: Ints, grove: Grove) -> None:
    """Choose factors in the given order, leaving out those that would close a cycle."""
    for i in range(graph.card.size):
        grove.above[i] = i
    for t in range(order.size):
        f = order[t]
        first, last = graph.member_start[f], graph.member_start[f + 1]
        open_ = True
        for m in range(first, last):
            mine = _find(grove.above, graph.site[graph.member[m]])
            for o in range(first, m):
                if _find(grove.above, graph.site[graph.member[o]]) == mine:
                    open_ = False
        grove.chosen[f] = 1 if open_ else 0
        if open_:
            head = _find(grove.above, graph.site[graph.member[first]])
            for m in range(first + 1, last):
                grove.above[_find(grove.above, graph.site[graph.member[m]])] = head


@compiled_loop
def count_shares(graph: MessageGraph, grove: Grove, lead: Floats, root: Floats) -> None:
    """Add the shares of one forest: which member of a factor leads to the root, if roots are drawn uniformly."""
    n = graph.card.size
    for i in range(n):
        grove.found_by[i] = -2  # not found yet; -1 is a root
        grove.size[i] = 1
    found = 0
    for start in range(n):
        if grove.found_by[start] != -2:
            continue
        begin = found
        grove.found_by[start] = -1
        grove.sites[found] = start
        found += 1
        at = begin
        while at < found:
            i = grove.sites[at]
            at += 1
            by = graph.factor[grove.found_by[i]] if grove.found_by[i] >= 0 else -1
            for k in range(graph.start[i], graph.start[i + 1]):
                f = graph.factor[k]
                if grove.chosen[f] and f != by:
                    for m in range(graph.member_start[f], graph.member_start[f + 1]):
                        e = graph.member[m]
                        if e != k:
                            grove.found_by[graph.site[e]] = e
                            grove.sites[found] = graph.site[e]
                            found += 1
        _share_tree(graph, grove, begin, found, lead, root)


@inlined
def _share_tree(graph: MessageGraph, grove: Grove, begin: Integer, end: Integer, lead: Floats, root: Floats) -> None:
    """Count from the sizes of subtrees how often the root lies on each side of a factor."""
    total = end - begin
    for t in range(total):
        i = grove.sites[end - 1 - t]
        root[i] += 1.0 / total
        e = grove.found_by[i]
        if e >= 0:  # everything below i is complete
            lead[e] += grove.size[i] / total
            up = _parent(graph, grove, e)
            grove.size[graph.site[up]] += grove.size[i]
            # the parent gets the share that the members below it leave
            lead[up] -= grove.size[i] / total
    for t in range(total):
        i = grove.sites[begin + t]
        for k in range(graph.start[i], graph.start[i + 1]):
            f = graph.factor[k]
            by = graph.factor[grove.found_by[i]] if grove.found_by[i] >= 0 else -1
            if grove.chosen[f] and f != by:
                lead[k] += 1.0


@inlined
def _parent(graph: MessageGraph, grove: Grove, e: Integer) -> Integer:
    """Return the edge through which a factor was found, the only one whose site was not found through the factor."""
    f = graph.factor[e]
    up = e
    for m in range(graph.member_start[f], graph.member_start[f + 1]):
        o = graph.member[m]
        if grove.found_by[graph.site[o]] != o:
            up = o
    return up
