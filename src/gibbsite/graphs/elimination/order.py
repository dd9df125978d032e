"""The search for elimination orders, which determine the cost of exact inference.

Simplicial sites (whose neighbours are all joined, such as isolated sites and leaves) come first, which is optimal. For
the rest, greedy rules are tried (min-fill, min-fill weighted by numbers of states, smallest table), and breadth-first
orders, which suit lattices. Then the best order is improved: its beginning is kept, and the rest is completed again
with noise.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Words64
from gibbsite._numba.jit import compiled_loop, interpreted
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.elimination.greedy import FILL, SIMPLICIAL, TABLE, EliminationGraph, eliminate, make_workspace
from gibbsite.graphs.rows import row_starts

# Steps of the search for each table entry; a step costs about as much as an entry in both passes.
_STEPS_PER_ENTRY = 0.2
_MOST_STEPS = 2e8
_NOISE = (0.0, 0.1, 0.3, 0.6, 1.0)
_FRESH_TRIES = 20
_HOPELESS = 2.0**46  # above this number of entries, further tries do not help, and a few suffice to predict the cost
_HOPELESS_STEPS = 2e7
_MOST_DENSE = 100


class EliminationOrder(NamedTuple):
    """An elimination order and its cost.

    ``sites`` is in order of elimination, ``log2_largest`` belongs to the largest table, ``total`` is the number of
    entries of all tables (infinite beyond the range of floats), ``members`` that of their sites.
    """

    sites: Ints
    members: int
    log2_largest: float
    total: float
    tries: int


def find_order(start: Ints, neighbour: Ints, cards: Ints, *, seed: int = 0, tries: int = 3000) -> EliminationOrder:
    """Find a good elimination order of a graph in compressed rows.

    ``cards`` are the numbers of states, at least two; ``seed`` decides ties and noise. The number of tries depends on
    how much can be gained, counted in operations and not in seconds, so that the result is the same on every machine.
    """
    n = cards.size
    dense = neighbour.size / max(2 * n, 1)
    if dense > _MOST_DENSE:  # tables of k sites eliminate at most k - 1 edges per site
        return EliminationOrder(np.arange(n), 0, dense, np.inf, 0)
    words = stream(seed, 0)
    graph = EliminationGraph(start, neighbour, np.log2(cards))
    found = np.zeros(n, np.int64)
    first, _ = eliminate(graph, make_workspace(graph), np.ones(n), SIMPLICIAL, words, found)
    if first.eliminated == n:
        return EliminationOrder(found, first.members, first.log2_largest, first.entries, 0)
    # eliminating simplicial sites adds no edges, so an induced subgraph remains
    kept = np.ones(n, np.bool_)
    kept[found[: first.eliminated]] = False
    core = np.flatnonzero(kept)
    search = _Search(_induced(graph, kept), cards[core], words, first.entries)
    search.run(tries, random.Random(seed))
    found[first.eliminated :] = core[search.best]
    largest = max(first.log2_largest, search.log2_largest)
    return EliminationOrder(found, first.members + search.members, largest, search.total, search.tries)


def measure_order(start: Ints, neighbour: Ints, cards: Ints, sites: Ints) -> EliminationOrder:
    """Return the cost of a given elimination order."""
    graph = EliminationGraph(start, neighbour, np.log2(cards))
    sites = np.array(sites, np.int64)
    outcome, _ = eliminate(
        graph, make_workspace(graph), np.ones(sites.size), FILL, stream(0, 0), sites, given=sites.size
    )
    return EliminationOrder(sites, outcome.members, outcome.log2_largest, outcome.entries, 1)


class _Search:
    """The best order of a graph so far, and the cost of the search."""

    def __init__(self, graph: EliminationGraph, cards: Ints, words: Words64, before: float) -> None:
        self.graph, self.cards, self.words, self.before = graph, cards, words, before
        self.space = make_workspace(graph)
        self.best = np.arange(cards.size)
        self.total, self.log2_largest, self.members = np.inf, np.inf, 0
        self.tries, self.steps = 0, 0.0

    def attempt(self, rule: int, weight: Floats, noise: float = 0.0, order: Ints | None = None, given: int = 0) -> None:
        """Complete an order and keep it if it is at least as good as the best."""
        order = np.empty(self.cards.size, np.int64) if order is None else order
        most = (self.total - self.before) * (1 + 1e-9)  # equally good orders are accepted, too
        outcome, self.space = eliminate(
            self.graph, self.space, weight, rule, self.words, order, noise=noise, most=most, given=given
        )
        self.tries += 1
        self.steps += outcome.steps
        total = self.before + outcome.entries
        finished = outcome.eliminated == order.size
        if finished and (total < np.inf or outcome.log2_largest < self.log2_largest):
            self.best, self.members = order, outcome.members
            self.total, self.log2_largest = total, outcome.log2_largest

    def run(self, tries: int, choice: random.Random) -> None:
        """Try every rule, and then improve the best order."""
        n, log_card = self.cards.size, self.graph.log_card
        ones, card = np.ones(n), self.cards.astype(np.float64)
        equal = bool((card == card[0]).all())
        rules = [(FILL, ones)] if equal else [(FILL, log_card), (FILL, card), (FILL, ones)]
        for rule, weight in (rules[0], (TABLE, ones)):
            self.attempt(rule, weight)
            if self.done(tries) or self.hopeless():
                return
        line = breadth_first(self.graph)
        for order in (line, line[::-1].copy()):
            if not self.hopeless():
                self.attempt(FILL, ones, 0.0, order, n)
        with interpreted(self.most_steps()):
            while not self.done(tries) and not self.hopeless():
                rule, weight = choice.choice(rules)
                noise = choice.choice(_NOISE)
                if self.tries < _FRESH_TRIES or choice.random() < 0.1:
                    self.attempt(rule, weight, noise)
                else:  # the end of an order matters most, so a long beginning is usually kept
                    given = int(n * (1.0 - choice.random() ** 2))
                    self.attempt(rule, weight, noise, self.best.copy(), given)

    def hopeless(self) -> bool:
        """Return whether enough tries have shown that further ones will not help."""
        enough = self.tries >= _FRESH_TRIES or self.steps > _HOPELESS_STEPS
        return enough and self.total > _HOPELESS

    def done(self, tries: int) -> bool:
        """Return whether the tries are exhausted, or would cost more than they could save."""
        return self.tries >= tries or self.steps > self.most_steps()

    def most_steps(self) -> float:
        """Return the largest number of steps of the search."""
        return min(_STEPS_PER_ENTRY * self.total, _MOST_STEPS)


def _induced(graph: EliminationGraph, kept: Bools) -> EliminationGraph:
    """Return the graph on some of the vertices, renumbered in their order."""
    vertex = np.repeat(np.arange(kept.size), np.diff(graph.start))
    inside = kept[vertex] & kept[graph.neighbour]
    number = np.cumsum(kept) - 1
    rows = row_starts(np.bincount(number[vertex[inside]], minlength=int(kept.sum())))
    return EliminationGraph(rows, number[graph.neighbour[inside]], graph.log_card[kept])


def interaction_graph(member_start: Ints, member: Ints, n: int) -> tuple[Ints, Ints]:
    """Join sites that share a factor: return compressed rows of neighbours without repeats."""
    width = np.diff(member_start)
    keys = [np.zeros(0, np.int64)]
    for arity in (np.flatnonzero(np.bincount(width, minlength=2)[2:]) + 2).tolist():
        scope = member[member_start[:-1][width == arity][:, None] + np.arange(arity)]
        a, b = np.nonzero(~np.eye(arity, dtype=np.bool_))
        keys.append((scope[:, a] * n + scope[:, b]).ravel())
    pair = np.concatenate(keys)
    pair.sort()
    pair = pair[np.concatenate([pair[:1] >= 0, pair[1:] != pair[:-1]])]
    start = row_starts(np.bincount(pair // max(n, 1), minlength=n))
    return start, pair % max(n, 1)


def breadth_first(graph: EliminationGraph) -> Ints:
    """Order vertices by distance from the periphery, those of low degree first (Cuthill and McKee 1969)."""
    n = graph.log_card.size
    order, seen = np.empty(n, np.int64), np.full(n, -1, np.int64)
    _walk(graph, order, seen)
    return order


@compiled_loop
def _walk(graph: EliminationGraph, order: Ints, seen: Ints) -> None:
    n = order.size
    start, neighbour = graph.start, graph.neighbour
    done = 0
    for lowest in range(n):
        if seen[lowest] >= 0:
            continue
        root = lowest
        for sweep in range(3):  # the vertex found last is peripheral, so start again from there
            order[done] = root
            seen[root] = sweep
            head, tail = done, done + 1
            while head < tail:
                v = order[head]
                head += 1
                first = tail
                for k in range(start[v], start[v + 1]):
                    u = neighbour[k]
                    if seen[u] != sweep:
                        seen[u] = sweep
                        # insert by degree, not too far from the end
                        at = tail
                        degree = start[u + 1] - start[u]
                        stop = max(first, tail - 64)
                        while at > stop and start[order[at - 1] + 1] - start[order[at - 1]] > degree:
                            order[at] = order[at - 1]
                            at -= 1
                        order[at] = u
                        tail += 1
            root = order[tail - 1]
        done = tail
