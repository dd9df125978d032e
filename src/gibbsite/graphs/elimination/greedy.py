"""Greedy elimination of the vertices of a graph: the inner loop of the search for orders.

Costs are kept up to date in a heap, so that one try on thousands of sites takes milliseconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop, inlined
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.graphs.elimination.fillgraph import (
    DEGREE,
    ENTRIES,
    KEY,
    LATEST,
    MISSING,
    NOTHING,
    PLACE,
    TOUCHED,
    EliminationGraph,
    EliminationWorkspace,
    join_neighbours,
    make_workspace,
    set_up,
    take_out,
)

SIMPLICIAL, FILL, TABLE = range(3)
# A try that takes longer would not end well; so much is said about its largest table, as log2, at least.
_LONGEST = 1e8
_ENDLESS = 100.0


class Outcome(NamedTuple):
    """The number of eliminated vertices, and the cost.

    ``members`` is the number of vertices of all tables together, ``entries`` that of their entries.
    """

    eliminated: int
    members: int
    entries: float
    log2_largest: float
    steps: float


def eliminate(
    graph: EliminationGraph,
    space: EliminationWorkspace,
    weight: Floats,
    rule: int,
    words: Words64,
    order: Ints,
    *,
    noise: float = 0.0,
    most: float = np.inf,
    given: int = 0,
) -> tuple[Outcome, EliminationWorkspace]:
    """Eliminate all vertices into ``order``, the first ``given`` of them as they are listed there already.

    The rule FILL or TABLE says what is kept small; SIMPLICIAL stops when no simplicial vertex is left. An edge counts
    in the fill as much as the product of the weights, at least one, of its ends. ``noise`` multiplies costs at random
    by up to one plus itself. The try is abandoned, with infinite cost, when tables exceed ``most`` entries. The
    workspace is returned because it may have been replaced by a larger one.
    """
    while True:
        before = words.copy()
        outcome = Outcome(*_run(graph, space, weight, rule, noise, words, most, order, given))
        if outcome.eliminated >= 0:
            return outcome, space
        words[:] = before
        space = make_workspace(graph, 2 * space.pool.size)


@compiled_loop
def _run(
    graph: EliminationGraph,
    s: EliminationWorkspace,
    weight: Floats,
    rule: int,
    noise: float,
    words: Words64,
    most: float,
    order: Ints,
    given: int,
) -> tuple[int, int, float, float, float]:
    """Eliminate; the first number returned is -1 if the pool was too small."""
    n = graph.log_card.size
    rng = load(words)
    steps = set_up(graph, s, weight)
    for i in range(n):
        rng, s.cost[i, KEY] = _cost(rng, s.cost[i, MISSING], s.cost[i, ENTRIES], rule, noise)
        s.heap[i] = s.at[i, PLACE] = i
    for at in range(n // 2 - 1, -1, -1):
        _sink(s, n, at)
    entries, largest, members = 0.0, 0.0, 0
    left = n
    while left > 0:
        v = s.heap[0] if n - left >= given else order[n - left]
        if rule == SIMPLICIAL and s.cost[v, MISSING] > NOTHING:
            break
        if steps > _LONGEST + 100.0 * n:
            for at in range(left):
                order[n - left + at] = s.heap[at]
            entries, largest, left = np.inf, max(largest, _ENDLESS), 0
            break
        order[n - left] = v
        if s.at[v, LATEST] != s.at[v, DEGREE] + 2:  # or else the table is a part of that one
            entries += 2.0 ** s.cost[v, ENTRIES]
        largest = max(largest, s.cost[v, ENTRIES])
        members += s.at[v, DEGREE] + 1
        if entries >= most and most < np.inf:
            entries = np.inf
            break
        left -= 1
        at = s.at[v, PLACE]
        last = s.heap[left]
        s.heap[at], s.at[last, PLACE] = last, at
        if at < left:
            _rise(s, at)
            _sink(s, left, s.at[last, PLACE])
        s.at[v, PLACE] = -1
        s.counters[TOUCHED] = 0
        steps += take_out(graph, s, weight, v)
        if s.cost[v, MISSING] > NOTHING:
            more = join_neighbours(graph, s, weight, v)
            if more < 0.0:
                return -1, members, entries, largest, steps
            steps += more
        for k in range(s.counters[TOUCHED]):
            a = s.touched[k]
            before = s.cost[a, KEY]
            rng, s.cost[a, KEY] = _cost(rng, s.cost[a, MISSING], s.cost[a, ENTRIES], rule, noise)
            if s.cost[a, KEY] < before:
                _rise(s, s.at[a, PLACE])
            else:
                _sink(s, left, s.at[a, PLACE])
    store(words, rng)
    return n - left, members, entries, largest, steps


@inlined
def _cost(rng: Words, fill: float, table: float, rule: int, noise: float) -> tuple[Words, float]:
    """Return the heap key: simplicial vertices first, then by the cost of the rule, ties broken at random."""
    rng, u = uniform(rng)
    if fill <= NOTHING:
        return rng, -2.0 + u
    if rule == TABLE:
        return rng, table * (1.0 + noise * u) + 1e-6 * u
    return rng, fill * (1.0 + noise * u) + u


@called
def _sink(s: EliminationWorkspace, size: int, at: int) -> None:
    """Move an entry of the heap down to where it belongs."""
    node = s.heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and s.cost[s.heap[child + 1], KEY] < s.cost[s.heap[child], KEY]:
            child += 1
        if s.cost[s.heap[child], KEY] >= s.cost[node, KEY]:
            break
        s.heap[at] = s.heap[child]
        s.at[s.heap[at], PLACE] = at
        at = child
    s.heap[at] = node
    s.at[node, PLACE] = at


@called
def _rise(s: EliminationWorkspace, at: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    node = s.heap[at]
    while at > 0 and s.cost[s.heap[(at - 1) // 2], KEY] > s.cost[node, KEY]:
        s.heap[at] = s.heap[(at - 1) // 2]
        s.at[s.heap[at], PLACE] = at
        at = (at - 1) // 2
    s.heap[at] = node
    s.at[node, PLACE] = at
