"""Whether single-site moves lead from one state to another."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.jit import compiled, interpreted
from gibbsite._numba.random.generators import below, load
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import weights

_TRIES = 4
_ROUNDS = 200  # random moves of sites that block each other
_FEW_ROUNDS = 3  # the same, before anything is compiled
_STEPS = 40.0  # estimated steps of plain Python for the weights of a site
_MOVES = 100_000  # moves that the search tries


def leads_to(graph: Graph, start: Array, goal: Array, rng: np.random.Generator) -> bool:
    """Return whether a path of possible single-site moves from ``start`` to ``goal`` was found.

    First, differing sites are moved to their goals as soon as possible, in several random orders; sites that block each
    other are moved at random. Then a bounded search prefers states close to the goal. True is a proof, False is not.
    """
    target = np.asarray(goal, graph.state_dtype)
    work = np.zeros(int(graph.cards.max(initial=1)))
    for _ in range(_TRIES):
        x = np.array(start, graph.state_dtype)
        order = rng.permutation(np.flatnonzero(x != target))
        words = rng.integers(1, 2**63, 4).astype(np.uint64)
        steps = _STEPS * _FEW_ROUNDS * order.size
        with interpreted(steps, least_charge=steps):  # most walks arrive soon
            if _walk(graph.arrays, x.copy(), target, order, work, words.copy(), _FEW_ROUNDS):
                return True
        with interpreted(np.inf):
            if _walk(graph.arrays, x, target, order, work, words, _ROUNDS):
                return True
    with interpreted(np.inf):
        return _search(graph, np.array(start, graph.state_dtype), target, work)


def _search(graph: Graph, start: Array, goal: Array, work: Floats) -> bool:
    """Search best-first by the number of differing sites."""
    sites, codes = np.zeros(graph.n_cells, np.int64), np.zeros(graph.n_cells, np.int64)
    seen = {start.tobytes()}
    heap = [(int((start != goal).sum()), 0, start)]
    looked, number = 0, 0
    while heap and looked < _MOVES:
        distance, _, x = heapq.heappop(heap)
        if distance == 0:
            return True
        found = _moves(graph.arrays, x, work, sites, codes)
        looked += found + x.size
        for i, code in zip(sites[:found].tolist(), codes[:found].tolist(), strict=True):
            moved = x.copy()
            moved[i] = code
            key = moved.tobytes()
            if key not in seen:
                seen.add(key)
                number += 1
                nearer = int(code == goal[i]) - int(x[i] == goal[i])
                heapq.heappush(heap, (distance - nearer, number, moved))
    return False


@compiled
def _moves(arrays: Any, x: Array, work: Floats, sites: Ints, codes: Ints) -> int:
    """List the possible single-site moves from ``x``; return their number."""
    found = 0
    for i in range(x.size):
        size, _ = weights(arrays, x, np.uintp(i), work)
        for a in range(size):
            if a != x[i] and work[a] > 0.0:
                sites[found] = i
                codes[found] = a
                found += 1
    return found


@compiled
def _walk(arrays: Any, x: Array, goal: Array, order: Ints, work: Floats, words: Words64, rounds: int) -> bool:
    """Move differing sites to their goals, and at random if they block each other; return whether all arrived."""
    rng = load(words)
    left = order.size
    for _ in range(rounds):
        moved = True
        while left > 0 and moved:
            moved = False
            for k in range(order.size):
                i = order[k]
                if x[i] != goal[i]:
                    weights(arrays, x, np.uintp(i), work)
                    if work[goal[i]] > 0.0:
                        x[i] = goal[i]
                        left -= 1
                        moved = True
        if left == 0:
            break
        for k in range(order.size):
            i = order[k]
            if x[i] != goal[i]:
                size, _total = weights(arrays, x, np.uintp(i), work)
                rng, code = below(rng, size)
                if code != goal[i] and work[code] > 0.0:
                    x[i] = code
    return left == 0
