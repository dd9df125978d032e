"""Elimination orders, the fill of a shrinking graph and the greedy rules, against sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbsite._numba.random.generators import stream
from gibbsite.graphs.elimination.greedy import (
    AROUND,
    DEGREE,
    ENTRIES,
    FILL,
    MISSING,
    PLACE,
    SIMPLICIAL,
    TABLE,
    TOUCHED,
    EliminationGraph,
    eliminate,
    join_neighbours,
    make_workspace,
    set_up,
    take_out,
)
from gibbsite.graphs.elimination.order import breadth_first, find_order, interaction_graph, measure_order
from tests.inference.exact.naive import (
    eliminate_by_hand,
    graph_of,
    in_rows,
    missing_pairs,
    random_graph,
    remove,
    size_of,
)

pytestmark = pytest.mark.usefixtures("plain")

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_costs_stay_right_while_vertices_are_taken_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near = random_graph(seed)
    n = len(near)
    weight, log_card = rng.integers(1, 5, n).astype(float), np.log2(rng.integers(2, 6, n))
    graph = EliminationGraph(*in_rows(near), log_card)
    space = make_workspace(graph)
    set_up(graph, space, weight)
    space.at[:, PLACE] = 0  # all are still there
    left = set(range(n))
    for v in rng.permutation(n).tolist():
        for a in left:
            fill = sum(weight[b] * weight[c] for b, c in missing_pairs(near, a))
            assert space.cost[a, MISSING] == pytest.approx(fill, abs=1e-9)
            assert space.cost[a, AROUND] == pytest.approx(sum(weight[b] for b in near[a]), abs=1e-9)
            assert space.cost[a, ENTRIES] == pytest.approx(log_card[[a, *near[a]]].sum())
            assert space.at[a, DEGREE] == len(near[a])
        before = {a: len(missing_pairs(near, a)) for a in left}
        space.at[v, PLACE] = -1
        space.counters[TOUCHED] = 0
        take_out(graph, space, weight, v)
        if before[v]:
            assert join_neighbours(graph, space, weight, v) >= 0.0
        remove(near, v)
        left.discard(v)
        touched = set(space.touched[: space.counters[TOUCHED]].tolist())
        assert {a for a in left if len(missing_pairs(near, a)) != before[a]} <= touched


@pytest.mark.parametrize("seed", SEEDS)
def test_a_given_order_costs_what_its_cliques_have(seed: int) -> None:
    near = random_graph(seed)
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 5, len(near))
    sites = rng.permutation(len(near))
    order = measure_order(*in_rows(near), cards, sites)
    truth = eliminate_by_hand(near, sites.tolist())
    sizes = [size_of(clique, cards) for clique in truth.cliques]
    assert order.sites.tolist() == sites.tolist()
    assert order.members == sum(map(len, truth.cliques))
    assert order.log2_largest == pytest.approx(np.log2(max(sizes)))
    assert order.total == pytest.approx(sum(size for size, part in zip(sizes, truth.parts, strict=True) if not part))


@pytest.mark.parametrize("rule", [FILL, TABLE])
@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_rules_take_the_least(seed: int, rule: int) -> None:
    near = random_graph(seed, 10, 0.4)
    n = len(near)
    log_card = np.log2(np.random.default_rng(seed).integers(2, 6, n))
    graph = EliminationGraph(*in_rows(near), log_card)
    order = np.zeros(n, np.int64)
    outcome, _ = eliminate(graph, make_workspace(graph), np.ones(n), rule, stream(seed, 0), order)
    assert outcome.eliminated == n
    assert sorted(order.tolist()) == list(range(n))
    left = set(range(n))
    for v in order.tolist():
        fill = {a: len(missing_pairs(near, a)) for a in left}
        table = {a: log_card[[a, *near[a]]].sum() for a in left}
        if min(fill.values()) == 0 or rule == FILL:
            assert fill[v] == min(fill.values())
        else:
            assert table[v] <= min(table.values()) + 1e-6
        remove(near, v)
        left.discard(v)


def test_simplicial_vertices_go_and_a_cycle_stays() -> None:
    near = graph_of(7, [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5)])
    graph = EliminationGraph(*in_rows(near), np.ones(7))
    order = np.zeros(7, np.int64)
    outcome, _ = eliminate(graph, make_workspace(graph), np.ones(7), SIMPLICIAL, stream(0, 0), order)
    assert outcome.eliminated == 3
    assert set(order[:3].tolist()) == {4, 5, 6}


def test_a_pool_that_is_too_small_is_replaced() -> None:
    near = graph_of(30, [(0, i) for i in range(1, 30)])  # the hub first: all others are joined
    graph = EliminationGraph(*in_rows(near), np.ones(30))
    found = []
    for pool in (None, 2 * graph.neighbour.size + 4 * 30):
        space = make_workspace(graph, 10_000)
        space = space if pool is None else space._replace(pool=np.empty(pool, np.int64))
        order, words = np.arange(30), stream(0, 0)
        outcome, after = eliminate(graph, space, np.ones(30), FILL, words, order, given=30)
        found.append((outcome, order.tolist(), words.tolist()))
        assert (after.pool.size > space.pool.size) == (pool is not None)
    assert found[0] == found[1]
    assert found[0][0].log2_largest == 30.0


def test_a_try_is_given_up_beyond_a_total() -> None:
    near = random_graph(3)
    graph = EliminationGraph(*in_rows(near), np.ones(len(near)))
    total = measure_order(graph.start, graph.neighbour, np.full(9, 2), np.arange(9)).total
    for most, finished in ((total + 1, True), (total, False)):
        order = np.arange(9)
        outcome, _ = eliminate(graph, make_workspace(graph), np.ones(9), FILL, stream(0, 0), order, most=most, given=9)
        assert (outcome.eliminated == 9) == finished
        assert outcome.entries == (total if finished else np.inf)


def square(side: int) -> list[set[int]]:
    places = list(itertools.product(range(side), repeat=2))
    pairs = [(a, b) for a, b in itertools.combinations(places, 2) if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    return graph_of(side**2, [(places.index(a), places.index(b)) for a, b in pairs])


# members of the largest clique of a best order: the treewidth and one
WIDTHS = {
    "nothing": (graph_of(4, []), 1),
    "tree": (graph_of(7, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]), 2),
    "ring": (graph_of(9, [(i, (i + 1) % 9) for i in range(9)]), 3),
    "complete": (graph_of(5, list(itertools.combinations(range(5), 2))), 5),
    "two sides of three": (graph_of(6, [(i, j) for i in range(3) for j in range(3, 6)]), 4),
    "square of 4": (square(4), 5),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_known_treewidths_are_reached(name: str) -> None:
    near, width = WIDTHS[name]
    order = find_order(*in_rows(near), np.full(len(near), 2))
    assert order.log2_largest == width


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_of_the_order_found_are_true_and_hard_to_beat(seed: int) -> None:
    near = random_graph(seed, 7, 0.4)
    rows, cards = in_rows(near), np.random.default_rng(seed).integers(2, 5, 7)
    order = find_order(*rows, cards)
    measured = measure_order(*rows, cards, order.sites)
    assert sorted(order.sites.tolist()) == list(range(7))
    assert (order.members, order.log2_largest) == (measured.members, pytest.approx(measured.log2_largest))
    assert order.total == pytest.approx(measured.total)
    best = min(
        max(size_of(clique, cards) for clique in eliminate_by_hand(near, sites).cliques)
        for sites in itertools.permutations(range(7))
    )
    assert best <= 2**order.log2_largest * (1 + 1e-12) <= 1.5 * best
    again = find_order(*rows, cards)
    assert again.sites.tolist() == order.sites.tolist()


def test_dense_graphs_are_not_searched() -> None:
    n = 300
    start = np.arange(n + 1) * (n - 1)
    neighbour = np.array([j for i in range(n) for j in range(n) if j != i])
    order = find_order(start, neighbour, np.full(n, 2))
    assert (order.tries, order.total) == (0, np.inf)
    assert 100 < order.log2_largest <= n


@pytest.mark.parametrize("seed", SEEDS)
def test_sites_of_a_factor_are_joined(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scopes = [rng.choice(8, rng.integers(1, 5), replace=False).tolist() for _ in range(6)]
    start, neighbour = interaction_graph(
        np.cumsum([0, *map(len, scopes)]), np.array([i for scope in scopes for i in scope]), 8
    )
    truth = graph_of(8, [pair for scope in scopes for pair in itertools.combinations(scope, 2)])
    assert [neighbour[start[i] : start[i + 1]].tolist() for i in range(8)] == [sorted(row) for row in truth]


@pytest.mark.parametrize("seed", SEEDS)
def test_breadth_first_goes_by_distance(seed: int) -> None:
    near = random_graph(seed, 12, 0.15)
    order = breadth_first(EliminationGraph(*in_rows(near), np.ones(12))).tolist()
    assert sorted(order) == list(range(12))
    at = 0
    while at < 12:  # one component after another
        distance, ring = {order[at]: 0}, {order[at]}
        while ring:
            ring = {b for a in ring for b in near[a]} - set(distance)
            distance |= dict.fromkeys(ring, max(distance.values()) + 1)
        part = order[at : at + len(distance)]
        assert set(part) == set(distance)
        steps = [distance[a] for a in part]
        assert steps == sorted(steps)
        at += len(part)
