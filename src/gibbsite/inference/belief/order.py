"""The order in which messages are updated: from the leaves of a tree to its root, and back.

Sites are numbered by breadth-first search. A factor is found from one of its sites, its parent. A sweep goes through
the factors from the last to the first and updates the messages to parents, then from the first to the last and updates
all others, so that every message is updated once. On a tree one sweep suffices.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._numba.jit import compiled_loop
from gibbsite.inference.belief.layout import MessageGraph


def order_messages(graph: MessageGraph) -> tuple[Ints, Ints, bool]:
    """Return the edges in the order of a sweep, the sites in breadth-first order, and whether the graph is a forest."""
    factors, parent = np.zeros(graph.n_factors, np.int64), np.zeros(graph.n_factors, np.int64)
    sites, order = np.zeros(graph.n_sites, np.int64), np.zeros(graph.n_edges, np.int64)
    seen = np.full(graph.n_sites + graph.n_factors, -1, np.int64)
    components = search(graph, sites, factors, parent, seen)
    list_edges(graph, factors, parent, order)
    return order, sites, graph.n_edges == graph.n_sites + graph.n_factors - components


@compiled_loop
def search(graph: MessageGraph, sites: Ints, factors: Ints, parent: Ints, seen: Ints) -> int:
    """Find all sites and factors by breadth-first search; return the number of components.

    ``sites`` and ``factors`` are in the order of the search, ``parent`` is the edge that a factor was found by, and
    ``seen`` must hold -1 for all sites and then all factors.
    """
    n = graph.card.size
    components, found, listed = 0, 0, 0
    for root in range(n):
        if seen[root] >= 0:
            continue
        components += 1
        seen[root] = 1
        sites[found] = root
        at = found
        found += 1
        while at < found:
            i = sites[at]
            at += 1
            for k in range(graph.start[i], graph.start[i + 1]):
                f = graph.factor[k]
                if seen[n + f] >= 0:
                    continue
                seen[n + f] = 1
                factors[listed] = f
                parent[listed] = k
                listed += 1
                for m in range(graph.member_start[f], graph.member_start[f + 1]):
                    j = graph.site[graph.member[m]]
                    if seen[j] < 0:
                        seen[j] = 1
                        sites[found] = j
                        found += 1
    return components


@compiled_loop
def list_edges(graph: MessageGraph, factors: Ints, parent: Ints, order: Ints) -> None:
    """List the edges to parents, factors backwards, then the others, factors forwards."""
    n = factors.size
    for t in range(n):
        order[t] = parent[n - 1 - t]
    at = n
    for t in range(n):
        f = factors[t]
        for m in range(graph.member_start[f], graph.member_start[f + 1]):
            e = graph.member[m]
            if e != parent[t]:
                order[at] = e
                at += 1
