"""The order of message updates, and passes over all messages or over those expected to change.

Sites are numbered by breadth-first search. A factor is found from one of its sites, its parent. A sweep goes through
the factors from the last to the first and updates the messages to parents, then from the first to the last and updates
all others, so that every message is updated once. On a tree one sweep suffices.

The expected change of a message is estimated from the changes, since its last update, of the messages on which it
depends, and from the effect of such changes at that update. Residual schedules update the messages with the largest
expected change first [1]_ [2]_; here a pass in the order of a sweep updates those whose expected change is not much
smaller than the largest, so that information travels along a whole path in one pass.

References
----------
.. [1] Elidan, G., McGraw, I. and Koller, D. (2006). Residual belief propagation. UAI.
.. [2] Sutton, C. and McCallum, A. (2007). Improved dynamic schedules for belief propagation. UAI.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.inference.belief.layout import MessageGraph
from gibbsite.inference.belief.messages import ONE, Messages, renew

#: Which messages to update: all; all, noting the effect on others; those that are expected to change.
ALL, NOTED, SOME = 0, 1, 2
_WORTH = 0.05  # messages are updated if their expected change exceeds this share of the largest
_FORGET = 0.6  # a gain falls at most to this share of itself when a smaller one is observed


class Residuals(NamedTuple):
    """Expected changes of messages: ``moved`` times ``gain``.

    ``moved`` (edges,) sums the changes, since the last update of a message, of the messages on which it depends;
    ``gain`` (edges,) is the change of the message at that update for each unit of ``moved``.
    """

    moved: Floats
    gain: Floats


def new_residuals(n_edges: int) -> Residuals:
    """Return residuals of ``n_edges`` messages that have not changed."""
    return Residuals(np.zeros(n_edges), np.ones(n_edges))


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

    ``parent`` is the edge through which a factor was found; ``seen`` must hold -1 for all sites and then all factors.
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


@inlined
def _note(graph: MessageGraph, residuals: Residuals, e: Integer, change: float, damping: float) -> None:
    """Learn from the change of a message, and note it for all messages that depend on it."""
    moved, gain = residuals.moved, residuals.gain
    if moved[e] > 0.0:
        gain[e] = max(min(change / float(moved[e]), 1.0), _FORGET * float(gain[e]))
    moved[e] = (1.0 - damping) * change / gain[e]  # damping has left this part of the change for later
    i, f = np.uintp(graph.site[e]), np.uintp(graph.factor[e])
    power = graph.power[f]
    for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + ONE])):
        g = np.uintp(graph.factor[k])
        amount = damping * change * (power if g != f else abs(1.0 - power))
        for m in range(np.uintp(graph.member_start[g]), np.uintp(graph.member_start[g + ONE])):
            o = np.uintp(graph.member[m])
            if o != k:
                moved[o] += amount


@inlined
def _worth_it(residuals: Residuals, tolerance: float) -> float:
    """Return the smallest expected change for which a message is updated in this pass."""
    largest = 0.0
    for e in range(residuals.moved.size):
        largest = max(largest, residuals.moved[e] * residuals.gain[e])
    return max(tolerance, _WORTH * largest)


@compiled_loop
def move(
    ring: Any,
    graph: MessageGraph,
    state: Messages,
    residuals: Residuals,
    order: Ints,
    mode: int,
    count: int,
    tolerance: float,
    damping: float,
) -> tuple[int, float, int]:
    """Update messages in a given order.

    With ``ALL`` there is one pass; with ``NOTED`` it also notes the effect on other messages; with ``SOME`` there are
    passes over messages that are expected to change by more than ``tolerance``, up to ``count`` updates. Returns the
    number of updates, the largest change in the last pass with any, and the edge at which numbers became too small (-1:
    none).
    """
    done, largest = 0, 0.0
    while True:
        least = _worth_it(residuals, tolerance) if mode == SOME else 0.0
        before, most = done, 0.0
        for t in range(order.size):
            e = np.uintp(order[t])
            if mode == SOME and residuals.moved[e] * residuals.gain[e] <= least:
                continue
            change = renew(ring, graph, state, e, damping)
            if change < 0.0:
                return done, largest, order[t]
            done += 1
            most = max(most, change)
            if mode != ALL:
                _note(graph, residuals, e, change, damping)
        if done > before:
            largest = most
        if mode != SOME or done == before or done >= count:
            return done, largest, -1
