"""Clique trees: their cliques are those of the elimination, and whatever is shared lies along the way."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.graphs.elimination.order import measure_order
from gibbsite.inference.exact.tree import CliqueTree, build_tree
from tests.inference.exact.naive import eliminate_by_hand, in_rows, random_graph, size_of

pytestmark = pytest.mark.usefixtures("plain")

SEEDS = range(6)
MERGED = [1.0, 12.0, np.inf]


def make(seed: int, most_own: float) -> tuple[CliqueTree, list[set[int]], list[int], list[set[int]]]:
    """Return a tree, the graph, the order and the cliques by hand."""
    near = random_graph(seed, 10, 0.3)
    rng = np.random.default_rng(seed)
    cards, sites = rng.integers(2, 5, 10), rng.permutation(10)
    order = measure_order(*in_rows(near), cards, sites)
    tree = build_tree(order, *in_rows(near), cards, most_own=most_own)
    return tree, near, sites.tolist(), eliminate_by_hand(near, sites.tolist()).cliques


def members(tree: CliqueTree) -> list[list[int]]:
    return [tree.site[tree.start[c] : tree.start[c + 1]].tolist() for c in range(tree.own.size)]


@pytest.mark.parametrize("seed", SEEDS)
def test_cliques_that_are_not_merged_are_those_of_the_elimination(seed: int) -> None:
    tree, _, order, cliques = make(seed, 1.0)
    assert tree.own.tolist() == [1] * 10
    assert [row[0] for row in members(tree)] == order
    assert [set(row) for row in members(tree)] == cliques


@pytest.mark.parametrize("most_own", MERGED)
@pytest.mark.parametrize("seed", SEEDS)
def test_members_stand_in_order_with_their_own_first(seed: int, most_own: float) -> None:
    tree, near, order, cliques = make(seed, most_own)
    rank = {site: k for k, site in enumerate(order)}
    owned = []
    for c, row in enumerate(members(tree)):
        assert [rank[site] for site in row] == sorted(rank[site] for site in row)
        assert set(row) in cliques
        own = row[: tree.own[c]]
        owned += own
        assert all(tree.home[site] == c for site in own)
        if len(own) > 1:
            assert size_of(set(own), tree.card) <= most_own
        assert tree.size[c] == size_of(set(row), tree.card)
        assert tree.separator[c] == size_of(set(row[tree.own[c] :]), tree.card)
    assert sorted(owned) == list(range(10))
    together = [set(row) for row in members(tree)]
    for i, row in enumerate(near):
        assert all(any({i, j} <= clique for clique in together) for j in row)


@pytest.mark.parametrize("most_own", MERGED)
@pytest.mark.parametrize("seed", SEEDS)
def test_running_intersection(seed: int, most_own: float) -> None:
    tree, *_ = make(seed, most_own)
    rows = members(tree)
    for c, up in enumerate(tree.parent.tolist()):
        separator = set(rows[c][tree.own[c] :])
        assert (up < 0) == (not separator)
        if up >= 0:
            assert up > c
            assert separator <= set(rows[up])
    for site in range(10):  # the cliques with a site hang together: all but one hand it to their parent
        holding = [c for c, row in enumerate(rows) if site in row]
        last = [c for c in holding if tree.parent[c] < 0 or site not in rows[tree.parent[c]]]
        assert last == [tree.home[site]]


def test_without_a_bound_no_chain_of_cliques_is_left_unmerged() -> None:
    n = 5
    rows = np.arange(n + 1) * (n - 1), np.array([j for i in range(n) for j in range(n) if j != i])
    cards = np.full(n, 3)
    order = measure_order(*rows, cards, np.arange(n))
    assert build_tree(order, *rows, cards).own.tolist() == [n]
    assert build_tree(order, *rows, cards, most_own=9.0).own.tolist() == [2, 2, 1]
