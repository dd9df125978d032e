"""Scans visit what they say, in the order they say, and refuse what makes no sense."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs
from gibbsite._numba.random.alias import build_alias
from gibbsite.inference.exact.transition import scan_order
from gibbsite.testing import scans

MODEL = gs.FactorGraph({"a": 2, "b": 3, "c": 2}, [(("a", "b"), np.ones((2, 3)))])
GRAPH = gs.graphs.compile_graph(MODEL)


def test_names_and_positions_mean_the_same() -> None:
    by_name = scan_order(gs.Systematic(["c", "a", "b"]), GRAPH, MODEL)
    assert by_name.tolist() == [2, 0, 1] == scan_order(gs.Systematic([2, 0, 1]), GRAPH).tolist()
    assert scan_order(gs.scans.FixedOrder(["b", "b", "a"]), GRAPH, MODEL).tolist() == [1, 1, 0]


def test_every_scan_covers_all_sites() -> None:
    for scan in scans(3):
        seen = np.concatenate([scan_order(scan, GRAPH, MODEL, seed=s) for s in range(20)])
        assert set(seen.tolist()) == {0, 1, 2}, scan


def test_fixed_orders_repeat_themselves_after_a_cycle() -> None:
    assert gs.Systematic().cycle(GRAPH) == gs.Systematic([2, 0, 1]).cycle(GRAPH) == 3
    assert gs.Chromatic().cycle(GRAPH) == 3
    assert gs.scans.Palindromic().cycle(GRAPH) == 6
    assert gs.scans.FixedOrder(["b", "b"]).cycle(GRAPH, MODEL) == 2
    assert gs.RandomScan().cycle(GRAPH) is gs.scans.Shuffled().cycle(GRAPH) is None


def test_visits_are_those_of_the_compiled_order() -> None:
    for scan in [*scans(3), gs.scans.FixedOrder(["b", "b", "a"])]:
        if scan.random:
            with pytest.raises(gs.errors.IncompatibleError, match="has no fixed order"):
                scan.visits(GRAPH, MODEL)
        else:
            assert scan.visits(GRAPH, MODEL).tolist() == scan_order(scan, GRAPH, MODEL).tolist()


def test_scans_that_visit_every_site_once_per_sweep_say_so() -> None:
    for scan in scans(3):
        assert scan.once != isinstance(scan, gs.RandomScan | gs.scans.FixedOrder), scan
        for seed in range(20 * scan.once):
            period = scan_order(scan, GRAPH, MODEL, seed=seed).reshape(-1, 3)
            assert (np.sort(period, axis=1) == [0, 1, 2]).all(), scan


def test_shuffles_are_uniform_permutations() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(3000):
        order = tuple(scan_order(gs.scans.Shuffled(), GRAPH, seed=seed).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_weights_decide_how_often() -> None:
    scan = gs.RandomScan(weights={"a": 1.0, "b": 0.0, "c": 3.0})
    seen = np.concatenate([scan_order(scan, GRAPH, MODEL, seed=s) for s in range(4000)])
    assert (seen != 1).all()
    assert stats.binomtest(int((seen == 2).sum()), seen.size, 0.75).pvalue > 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_alias_tables_hold_the_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random(rng.integers(1, 50)) ** 4 * (rng.random() < 0.9)
    weights[rng.integers(len(weights))] = 1.0
    weights[rng.random(len(weights)) < 0.2] *= 0.0
    weights[-1] = 2.0
    stay, other = build_alias(weights)
    law = stay / len(weights)
    np.add.at(law, other, (1.0 - stay) / len(weights))
    assert law == pytest.approx(weights / weights.sum(), abs=1e-14)
    assert (law[weights == 0] == 0).all()


@pytest.mark.parametrize(
    ("scan", "words"),
    [
        (gs.Systematic([0, 1]), "every site once"),
        (gs.Systematic([0, 1, 1]), "site 1 is visited 2 times"),
        (gs.scans.FixedOrder([]), "empty"),
        (gs.scans.FixedOrder([7]), "site 7"),
        (gs.scans.FixedOrder("abc"), "'abc'"),
        (gs.scans.FixedOrder(["a", "nose"]), "nose"),
        (gs.RandomScan([1, 2]), "3 sites"),
        (gs.RandomScan([1, -2, 1]), "not negative"),
        (gs.RandomScan([np.nan, 1, 1]), "finite"),
        (gs.RandomScan([0, 0, 0]), "all zero"),
    ],
)
def test_bad_orders_are_refused(scan: gs.scans.Scan, words: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=words):
        scan.schedule(GRAPH, MODEL)
