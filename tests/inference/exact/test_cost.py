"""Predicted sizes against cliques by hand and against what is allocated; limits, and how they are put."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.elimination.order import EliminationOrder
from gibbsite.graphs.elimination.rings import Sum
from gibbsite.inference.exact.cost import ExactCost, Limits, cost_of_order, cost_of_tree
from gibbsite.inference.exact.plan import make_plan, outline
from tests.inference.exact.naive import eliminate_by_hand, plan_of, random_model, size_of

pytestmark = pytest.mark.usefixtures("plain")


@pytest.mark.parametrize("seed", range(4))
def test_entries_are_those_of_the_cliques(seed: int) -> None:
    found = outline(random_model(seed))
    near = [set(found.neighbour[a:b].tolist()) for a, b in zip(found.start, found.start[1:], strict=False)]
    cards = found.reduction.problem.cards
    cliques = eliminate_by_hand(near, found.order.sites.tolist()).cliques
    cost = found.cost()
    assert cost.largest == max(size_of(clique, cards) for clique in cliques)
    maximal = [clique for clique in cliques if not any(clique < other for other in cliques)]
    assert cost.entries >= sum(size_of(clique, cards) for clique in maximal)
    assert cost.entries <= sum(size_of(clique, cards) for clique in cliques)
    single = cost_of_tree(found.tree(1.0))  # type: ignore[arg-type]
    assert single.entries == sum(size_of(clique, cards) for clique in cliques)


@pytest.mark.parametrize("seed", range(4))
def test_bytes_are_those_of_pool_and_results(seed: int) -> None:
    plan = plan_of(random_model(seed, 8, factors=14))
    tree = plan.tree
    loaded = plan.load(Sum())
    cost = cost_of_tree(tree, float(plan.potentials.table[-1]))
    below = max((tree.separator[tree.parent == c].sum() for c in range(tree.own.size)), default=0.0)
    assert cost.bytes == loaded.pool.nbytes + 8 * below
    assert loaded.workspace.result.size >= below


def test_memory_is_what_was_predicted() -> None:
    # a hub of many states: its tables outweigh the room to work, two slabs of 4096 numbers
    rng = np.random.default_rng(1)
    factors = [(("hub", name), rng.random((200, 20)) + 0.1) for name in "abcd"]
    plan = plan_of(gs.FactorGraph({"hub": 200, **dict.fromkeys("abcd", 20)}, factors), 1.0)
    cost = cost_of_tree(plan.tree, float(plan.potentials.table[-1]))
    assert cost.bytes > 8 * 4 * 200 * 20
    tracemalloc.start()
    try:
        loaded = plan.load(Sum())
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert loaded.pool.size > 0
    assert cost.bytes <= held <= peak <= cost.bytes + 2 * 8 * 4096 + 20_000


def test_limits_are_kept_to_the_entry() -> None:
    found = outline(gs.ising_grid((4, 4), coupling=0.3))
    plan = make_plan(found, Limits())
    cost = cost_of_tree(plan.tree, float(plan.potentials.table[-1]))
    make_plan(found, Limits(bytes=cost.bytes, entries=cost.largest, seconds=cost.seconds))
    for name, amount in (("bytes", cost.bytes), ("entries", cost.largest), ("seconds", cost.seconds)):
        with pytest.raises(gs.errors.TooLargeError, match=name):
            make_plan(found, replace(Limits(), **{name: 0.999 * amount}))


def test_time_grows_with_entries_children_and_cliques() -> None:
    chain = [gs.exact.predict_exact(gs.ising_grid((n,), coupling=0.1)).seconds for n in (10, 20, 40)]
    assert chain[1] / chain[0] == pytest.approx(2.0, rel=0.2)
    assert chain[2] / chain[1] == pytest.approx(2.0, rel=0.2)
    wide = [gs.exact.predict_exact(gs.ising_grid((n, 30), coupling=0.1)) for n in (3, 7)]
    assert wide[1].entries > 8 * wide[0].entries
    assert wide[1].seconds > wide[0].seconds


def test_what_cannot_be_counted_is_bounded() -> None:
    sites = np.arange(3)
    for log2, total in ((100.0, np.inf), (2000.0, np.inf), (100.0, 2.0**101)):
        cost = cost_of_order(EliminationOrder(sites, 0, log2, total, 0))
        assert all(np.isfinite([cost.largest, cost.entries, cost.bytes, cost.seconds]))
        assert cost.largest == (2.0**100 if log2 == 100.0 else np.finfo(float).max)
        assert cost.entries == (total if total < np.inf else cost.largest)
        with pytest.raises(gs.errors.TooLargeError, match=r"limit of 2\.15e\+09"):
            Limits().check(cost)
    assert gs.exact.predict_exact(gs.ising_grid((70, 70))).largest >= 2.0**70


@pytest.mark.parametrize(
    ("cost", "line"),
    [
        (ExactCost(8.0, 8.0, 64.0, 0.25), "largest clique 8 entries, about 0.25 s"),
        (ExactCost(2e6, 2e6, 1.0, 86_400.0 * 3), "largest clique 2e+06 entries, about 3 days"),
        (ExactCost(2e6, 2e6, 1.0, 3.156e7 * 7), "largest clique 2e+06 entries, about 7 years"),
        (ExactCost(np.finfo(float).max, 1.0, 1.0, 1e300), "more than 1e308 entries, more than a thousand years"),
    ],
)
def test_costs_in_words(cost: ExactCost, line: str) -> None:
    assert line in cost.line()


@pytest.mark.parametrize(
    ("size", "words"), [(999.0, "999 bytes"), (2.5e3, "2.5 kB"), (8e9, "8 GB"), (3e13, "30 TB"), (1e22, "1e+10 TB")]
)
def test_memory_in_words(size: float, words: str) -> None:
    with pytest.raises(gs.errors.TooLargeError, match=f"needs {words.replace('+', '.')} of memory"):
        Limits(bytes=1.0).check(ExactCost(1.0, 1.0, size, 0.0))


def test_models_of_one_structure_share_an_order_until_zeros_differ() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b"), np.ones((2, 2))), (("b", "c"), np.ones((2, 2)))])
    first = outline(model)
    assert outline(model).order is first.order
    assert outline(model, 1).order is not first.order
    copy = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b"), np.ones((2, 2))), (("b", "c"), [[1, 0], [1, 0]])])
    copy.shared = model.shared
    other = outline(copy)
    assert other.order is not first.order
    assert other.reduction.problem.origin.tolist() == [0, 1]
