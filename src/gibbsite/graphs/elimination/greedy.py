"""Greedy elimination of the vertices of a graph: the inner loop of the search for orders.

The edges missing among the neighbours of each vertex, its fill, are kept up to date in a heap. The fill changes only
where an edge appears or disappears (Kjaerulff 1990), so that removing a vertex costs about as much as reading the lists
of its neighbours, and one try on thousands of sites takes milliseconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop, inlined
from gibbsite._numba.random.generators import Words, load, store, uniform

NOTHING = 0.5  # a missing edge weighs at least one; smaller sums are rounding errors


class EliminationGraph(NamedTuple):
    """A graph in compressed rows, with log2 of the number of states of each vertex."""

    start: Ints
    neighbour: Ints
    log_card: Floats


class EliminationWorkspace(NamedTuple):
    """The mutable state of an elimination: integers and costs by vertex, lists of neighbours, and a heap.

    The list of vertex i begins at ``at[i, FIRST]`` of the pool, has ``at[i, LENGTH]`` entries and space for ``at[i,
    ROOM]``; ``at[i, DEGREE]`` of them are still in the graph, and the others are removed when the list is next read.
    ``at[i, PLACE]`` is the position in the heap, negative for removed vertices. MARK and CHANGED hold the last
    visitor, LATEST the number of members of the latest table that contained the vertex. ``cost[i]`` holds the weight
    of the edges missing among the neighbours, the weight of the neighbours, log2 of the entries of the table over
    vertex and neighbours, and the heap key. ``touched`` lists the vertices whose cost has changed; ``counters`` are
    the end of the pool, the current mark, and the number of touched vertices.
    """

    at: Ints
    cost: Floats
    pool: Ints
    heap: Ints
    touched: Ints
    counters: Ints


FIRST, LENGTH, DEGREE, ROOM, MARK, CHANGED, PLACE, LATEST = range(8)
MISSING, AROUND, ENTRIES, KEY = range(4)
USED, STAMP, TOUCHED = range(3)


def make_workspace(graph: EliminationGraph, slots: int = 0) -> EliminationWorkspace:
    """Allocate the workspace for a graph; ``slots`` is the least size of the pool."""
    n = graph.log_card.size
    pool = np.empty(max(slots, 3 * graph.neighbour.size + 8 * n + 64), np.int64)
    heap, touched = np.empty((2, n), np.int64)
    return EliminationWorkspace(
        np.empty((n, 8), np.int64), np.empty((n, 4)), pool, heap, touched, np.zeros(3, np.int64)
    )


@called
def set_up(graph: EliminationGraph, s: EliminationWorkspace, weight: Floats) -> float:
    """Lay out the lists and compute all costs; return the number of steps taken."""
    n = graph.log_card.size
    used = 0
    steps = 8.0 * (n + graph.neighbour.size)
    for i in range(n):
        begin, degree = graph.start[i], graph.start[i + 1] - graph.start[i]
        s.at[i, FIRST], s.at[i, LENGTH], s.at[i, DEGREE], s.at[i, ROOM] = used, degree, degree, 2 * degree + 4
        s.at[i, MARK] = s.at[i, CHANGED] = s.at[i, LATEST] = -1
        s.cost[i, ENTRIES] = graph.log_card[i]
        around, square = 0.0, 0.0
        # neighbours of higher degree, which are few even at vertices of high degree, come first; ``touched`` counts
        # them
        higher = 0
        for k in range(degree):
            j = graph.neighbour[begin + k]
            around += weight[j]
            square += weight[j] * weight[j]
            s.cost[i, ENTRIES] += graph.log_card[j]
            s.pool[used + k] = j
            there = graph.start[j + 1] - graph.start[j]
            if there > degree or (there == degree and j > i):
                s.pool[used + k], s.pool[used + higher] = s.pool[used + higher], j
                higher += 1
        s.touched[i] = higher
        s.cost[i, AROUND] = around
        s.cost[i, MISSING] = 0.5 * (around * around - square)
        used += s.at[i, ROOM]
    # every triangle once, from its vertex of least degree
    for i in range(n):
        for k in range(s.touched[i]):
            s.at[s.pool[s.at[i, FIRST] + k], MARK] = i
        for k in range(s.touched[i]):
            j = s.pool[s.at[i, FIRST] + k]
            for m in range(s.touched[j]):
                u = s.pool[s.at[j, FIRST] + m]
                if s.at[u, MARK] == i:
                    s.cost[i, MISSING] -= weight[j] * weight[u]
                    s.cost[j, MISSING] -= weight[i] * weight[u]
                    s.cost[u, MISSING] -= weight[i] * weight[j]
            steps += s.touched[j]
    s.counters[USED] = used
    s.counters[STAMP] = n
    return steps


@called
def _tidy(s: EliminationWorkspace, a: int) -> float:
    """Remove eliminated vertices from the list of a; return the number of steps."""
    length = s.at[a, LENGTH]
    if length > s.at[a, DEGREE]:
        kept = s.at[a, FIRST]
        for k in range(s.at[a, FIRST], s.at[a, FIRST] + length):
            if s.at[s.pool[k], PLACE] >= 0:
                s.pool[kept] = s.pool[k]
                kept += 1
        s.at[a, LENGTH] = s.at[a, DEGREE]
    return float(length)


@called
def _touch(s: EliminationWorkspace, a: int, v: int) -> None:
    """Record that the elimination of v has changed the cost of a."""
    if s.at[a, CHANGED] != v:
        s.at[a, CHANGED] = v
        s.touched[s.counters[TOUCHED]] = a
        s.counters[TOUCHED] += 1


@called
def take_out(graph: EliminationGraph, s: EliminationWorkspace, weight: Floats, v: int) -> float:
    """Remove v from the graph, and the edges that were missing at v from the fill of its neighbours."""
    steps = _tidy(s, v)
    stamp = s.counters[STAMP]
    s.counters[STAMP] += 1
    for k in range(s.at[v, FIRST], s.at[v, FIRST] + s.at[v, DEGREE]):
        s.at[s.pool[k], MARK] = stamp
    simplicial = s.cost[v, MISSING] <= NOTHING
    for k in range(s.at[v, FIRST], s.at[v, FIRST] + s.at[v, DEGREE]):
        a = s.pool[k]
        s.at[a, DEGREE] -= 1
        s.cost[a, AROUND] -= weight[v]
        apart = s.cost[a, AROUND]
        if simplicial:  # all others are neighbours of a, too
            apart -= s.cost[v, AROUND] - weight[a]
        else:
            steps += _tidy(s, a)
            for m in range(s.at[a, FIRST], s.at[a, FIRST] + s.at[a, DEGREE]):
                if s.at[s.pool[m], MARK] == stamp:
                    apart -= weight[s.pool[m]]
        s.cost[a, MISSING] -= apart * weight[v]
        s.cost[a, ENTRIES] -= graph.log_card[v]
        s.at[a, LATEST] = s.at[v, DEGREE] + 1
        _touch(s, a, v)
    return steps


@called
def join_neighbours(graph: EliminationGraph, s: EliminationWorkspace, weight: Floats, v: int) -> float:
    """Add the edges missing among the neighbours of v; return the steps, negative if the pool is full."""
    steps = 0.0
    around_v = s.at[v, FIRST]
    for k in range(s.at[v, DEGREE]):
        a = s.pool[around_v + k]
        stamp = s.counters[STAMP]
        s.counters[STAMP] += 1
        s.at[a, MARK] = stamp
        for m in range(s.at[a, DEGREE]):
            s.at[s.pool[s.at[a, FIRST] + m], MARK] = stamp
        for j in range(k + 1, s.at[v, DEGREE]):
            b = s.pool[around_v + j]
            if s.at[b, MARK] == stamp:
                continue
            both, product = 0.0, weight[a] * weight[b]
            for m in range(s.at[b, DEGREE]):
                w = s.pool[s.at[b, FIRST] + m]
                if s.at[w, MARK] == stamp:
                    both += weight[w]
                    s.cost[w, MISSING] -= product
                    _touch(s, w, v)
            steps += s.at[b, DEGREE]
            s.cost[a, MISSING] += weight[b] * (s.cost[a, AROUND] - both)
            s.cost[b, MISSING] += weight[a] * (s.cost[b, AROUND] - both)
            if not (_append(graph, s, weight, a, b) and _append(graph, s, weight, b, a)):
                return -1.0
            s.at[b, MARK] = stamp
    return steps


@called
def _append(graph: EliminationGraph, s: EliminationWorkspace, weight: Floats, a: int, b: int) -> bool:
    """Append b to the list of a, moving the list if it is full; return False if the pool is full."""
    degree = s.at[a, DEGREE]
    if degree == s.at[a, ROOM]:
        used = s.counters[USED]
        if used + 2 * degree > s.pool.size:
            return False
        for k in range(degree):
            s.pool[used + k] = s.pool[s.at[a, FIRST] + k]
        s.at[a, FIRST], s.at[a, ROOM] = used, 2 * degree
        s.counters[USED] += 2 * degree
    s.pool[s.at[a, FIRST] + degree] = b
    s.at[a, DEGREE] = s.at[a, LENGTH] = degree + 1
    s.cost[a, AROUND] += weight[b]
    s.cost[a, ENTRIES] += graph.log_card[b]
    return True


SIMPLICIAL, FILL, TABLE = range(3)
# Steps after which a try is abandoned, and the lower bound of log2 of its largest table that is reported then.
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
    """Eliminate all vertices and write them to ``order``, whose first ``given`` entries are prescribed.

    The rule FILL or TABLE determines the cost that is minimised; SIMPLICIAL stops when no simplicial vertex is left. An
    edge adds the product of the weights of its ends, each at least one, to the fill. ``noise`` multiplies costs at
    random by up to one plus itself. The try is abandoned, with infinite cost, when tables exceed ``most`` entries. The
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
        if s.at[v, LATEST] != s.at[v, DEGREE] + 2:  # otherwise the table is part of the latest one
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
