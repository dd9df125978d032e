"""Random graphs and models, and elimination with sets as one would do it by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.inference.exact.cost import Limits
from gibbsite.inference.exact.plan import EliminationPlan, make_plan, outline

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]


def random_graph(seed: int, n: int = 9, chance: float = 0.35) -> list[set[int]]:
    """Return the neighbours of each vertex."""
    rng = np.random.default_rng(seed)
    near: list[set[int]] = [set() for _ in range(n)]
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < chance:
            near[i].add(j)
            near[j].add(i)
    return near


def graph_of(n: int, edges: Sequence[tuple[int, int]]) -> list[set[int]]:
    """Return the neighbours of each vertex."""
    near: list[set[int]] = [set() for _ in range(n)]
    for i, j in edges:
        near[i].add(j)
        near[j].add(i)
    return near


def in_rows(near: list[set[int]]) -> Rows:
    """Return a graph in compressed rows."""
    start = np.cumsum([0, *map(len, near)])
    return start, np.array([j for row in near for j in sorted(row)], np.int64)


def missing_pairs(near: list[set[int]], v: int) -> list[tuple[int, int]]:
    """Return the pairs of neighbours that are not joined."""
    return [(a, b) for a, b in itertools.combinations(sorted(near[v]), 2) if b not in near[a]]


def remove(near: list[set[int]], v: int) -> None:
    """Join the neighbours of a vertex and take it out."""
    for a, b in itertools.permutations(near[v], 2):
        near[a].add(b)
    for a in near[v]:
        near[a].discard(v)
    near[v] = set()


@dataclass
class Eliminated:
    """Cliques in order of elimination, and which of them are parts of the one before at their vertex."""

    cliques: list[set[int]]
    parts: list[bool]


def eliminate_by_hand(near: list[set[int]], order: Sequence[int]) -> Eliminated:
    """Eliminate vertices one by one."""
    near = [set(row) for row in near]
    latest: dict[int, set[int]] = {}
    found = Eliminated([], [])
    for v in order:
        clique = {v} | near[v]
        found.cliques.append(clique)
        found.parts.append(latest.get(v) == clique)
        for a in near[v]:
            latest[a] = set(near[v])  # what is left of the clique
        remove(near, v)
    return found


def size_of(sites: set[int], cards: NDArray[Any]) -> int:
    """Return the entries of a table."""
    return math.prod(int(cards[i]) for i in sites)


def random_model(seed: int, n: int = 6, zeros: float = 0.0, factors: int = 8) -> gs.FactorGraph:
    """Return a model of two or three states a site and factors of one to three sites; it has a state."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n)
    alive = rng.integers(0, cards)  # is possible, whatever the zeros are
    made: list[Any] = []
    for _ in range(factors):
        scope = rng.choice(n, rng.integers(1, 4), replace=False)
        table = rng.gamma(1.0, size=cards[scope]) + 0.01
        table[rng.random(table.shape) < zeros] = 0.0
        table[tuple(alive[scope])] = 1.3
        made.append((tuple(scope.tolist()), table))
    return gs.FactorGraph({f"s{i}": int(k) for i, k in enumerate(cards)}, made)


def all_states(cards: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all states, the last site fastest."""
    return list(itertools.product(*(range(int(k)) for k in cards)))


def plan_of(model: gs.FactorGraph, most_own: float = 16.0) -> EliminationPlan:
    """Return the plan of a model."""
    return make_plan(outline(model), Limits(), most_own)
