"""Forests of factors, and how often each factor is in one: the powers of tree-reweighted messages.

A set of factors is a forest if no cycle passes through them. Forests are grown one after the other, each with the
factors first that have been in the fewest, until every factor has been in some [1]_. Every site of a tree is its root
equally often.

References
----------
.. [1] Wainwright, M. J., Jaakkola, T. S. and Willsky, A. S. (2005). A new class of upper bounds on the log partition
   function. IEEE Transactions on Information Theory 51.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.inference.belief.layout import MessageGraph

_FORESTS, _ENTRIES = 16, 5_000_000  # least number of forests, unless they take more steps than this together


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
    room = Grove(*(np.zeros(size, np.int64) for size in (n, factors, n, n, n)))
    least = max(1, min(_FORESTS, _ENTRIES // max(graph.n_edges, 1)))
    forests = 0
    while forests < least or (times == 0.0).any():
        order = np.lexsort((rng.random(factors), times))
        grow(graph, order, room)
        count_shares(graph, room, lead, root)
        times += room.chosen
        forests += 1
    return times / forests, ForestShares(lead / forests, root / forests)


@inlined
def _find(above: Ints, i: Integer) -> Integer:
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@compiled_loop
def grow(graph: MessageGraph, order: Ints, room: Grove) -> None:
    """Choose factors in the given order, leaving out those that would close a cycle."""
    for i in range(graph.card.size):
        room.above[i] = i
    for t in range(order.size):
        f = order[t]
        first, last = graph.member_start[f], graph.member_start[f + 1]
        open_ = True
        for m in range(first, last):
            mine = _find(room.above, graph.site[graph.member[m]])
            for o in range(first, m):
                if _find(room.above, graph.site[graph.member[o]]) == mine:
                    open_ = False
        room.chosen[f] = 1 if open_ else 0
        if open_:
            head = _find(room.above, graph.site[graph.member[first]])
            for m in range(first + 1, last):
                room.above[_find(room.above, graph.site[graph.member[m]])] = head


@compiled_loop
def count_shares(graph: MessageGraph, room: Grove, lead: Floats, root: Floats) -> None:
    """Add the shares of one forest: which member of a factor leads to the root, if roots are drawn uniformly."""
    n = graph.card.size
    for i in range(n):
        room.found_by[i] = -2  # not found yet; -1 is a root
        room.size[i] = 1
    found = 0
    for start in range(n):
        if room.found_by[start] != -2:
            continue
        begin = found
        room.found_by[start] = -1
        room.sites[found] = start
        found += 1
        at = begin
        while at < found:
            i = room.sites[at]
            at += 1
            by = graph.factor[room.found_by[i]] if room.found_by[i] >= 0 else -1
            for k in range(graph.start[i], graph.start[i + 1]):
                f = graph.factor[k]
                if room.chosen[f] and f != by:
                    for m in range(graph.member_start[f], graph.member_start[f + 1]):
                        e = graph.member[m]
                        if e != k:
                            room.found_by[graph.site[e]] = e
                            room.sites[found] = graph.site[e]
                            found += 1
        _share_tree(graph, room, begin, found, lead, root)


@inlined
def _share_tree(graph: MessageGraph, room: Grove, begin: Integer, end: Integer, lead: Floats, root: Floats) -> None:
    """Count, from the sizes of subtrees, how often a root lies on which side of a factor."""
    total = end - begin
    for t in range(total):
        i = room.sites[end - 1 - t]
        root[i] += 1.0 / total
        e = room.found_by[i]
        if e >= 0:  # everything below i is complete
            lead[e] += room.size[i] / total
            up = _parent(graph, room, e)
            room.size[graph.site[up]] += room.size[i]
            # the share of the parent is what all members below it leave
            lead[up] -= room.size[i] / total
    for t in range(total):
        i = room.sites[begin + t]
        for k in range(graph.start[i], graph.start[i + 1]):
            f = graph.factor[k]
            by = graph.factor[room.found_by[i]] if room.found_by[i] >= 0 else -1
            if room.chosen[f] and f != by:
                lead[k] += 1.0


@inlined
def _parent(graph: MessageGraph, room: Grove, e: Integer) -> Integer:
    """Return the edge of the same factor that it was found from: the only one whose site was not found through it."""
    f = graph.factor[e]
    up = e
    for m in range(graph.member_start[f], graph.member_start[f + 1]):
        o = graph.member[m]
        if room.found_by[graph.site[o]] != o:
            up = o
    return up
