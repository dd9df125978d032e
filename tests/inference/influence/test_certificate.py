"""Certificates: plain linear algebra, never below the true distance, and frank when they say nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.inference.exact.transition import scan_order, sweep_matrix, unit_matrix
from gibbsite.inference.influence.variation import DrawnDecay
from tests.inference.influence.random_models import random_model

KINDS = ("ising", "potts", "pairwise", "tables", "higher", "observed")


def plain_variation(dense: NDArray[np.float64], weights: NDArray[np.float64], steps: NDArray[np.float64]) -> float:
    """Definition 7 as it stands, a row of probabilities per step."""
    b = np.ones(len(dense))
    for q in steps:
        b = (np.eye(len(dense)) - np.diag(q) @ (np.eye(len(dense)) - dense)) @ b
    return float(weights @ b)


def small(kind: str, seed: int) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    while True:
        model = random_model(kind, rng)
        if 2 <= model.n_sites <= 4:
            return model


@pytest.mark.parametrize("seed", range(12))
def test_every_scan_has_the_variation_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model("ising", rng)
    n, graph = model.n_sites, gs.graphs.compile_graph(model)
    dense, weights = gs.influence.bound_influence(model).to_dense(), rng.random(n) + 0.01
    steps, chances = int(rng.integers(1, 6 * n)), rng.random(n)
    fixed = [gs.Systematic(), gs.scans.Palindromic(), gs.Chromatic(), gs.scans.FixedOrder(rng.integers(0, n, 7))]
    for scan in fixed:
        order = np.resize(scan_order(scan, graph, model), steps)
        found = gs.certify(model, scan=scan, steps=steps, weights=weights)
        assert found.variation == pytest.approx(plain_variation(dense, weights, np.eye(n)[order]), rel=1e-12)
        assert found.curve[-1] == found.variation
    for q in (np.ones(n), chances, np.eye(n)[0]):
        found = gs.certify(model, scan=gs.RandomScan(q), steps=steps, weights=weights)
        plain = plain_variation(dense, weights, np.tile(q / q.sum(), (steps, 1)))
        assert found.variation == pytest.approx(plain, rel=1e-10)
    assert gs.certify(model, scan=gs.RandomScan(), steps=steps).variation == pytest.approx(
        plain_variation(dense, np.ones(n), np.full((steps, n), 1 / n)), rel=1e-10
    )


def distance_to_law(exact: gs.exact.Enumeration, matrix: NDArray[np.float64], sites: list[int]) -> float:
    """Largest total variation over starts of the law of some sites."""
    codes = np.ravel_multi_index(exact.states[:, sites].T, tuple(exact.model.cards[sites]))
    joint = np.zeros((codes.max() + 1, len(codes)))
    joint[codes, np.arange(len(codes))] = 1.0
    possible = exact.probabilities > 0
    gap = joint @ (matrix[possible] - exact.probabilities).T
    return float(0.5 * np.abs(gap).sum(axis=0).max())


@pytest.mark.parametrize("kind", [*KINDS, "zeros"])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_dominates_the_true_total_variation(kind: str, seed: int) -> None:
    model = small(kind, seed)
    graph, n = gs.graphs.compile_graph(model), model.n_sites
    exact = gs.exact.enumerate(model)
    rng = np.random.default_rng(seed)
    sites = sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
    moves = [unit_matrix(exact, graph, gs.Gibbs(), i) for i in range(n)]
    influence = {method: gs.influence.bound_influence(model, method) for method in ("best", "bound")}
    for scan in (gs.Systematic(), gs.Chromatic(), gs.RandomScan(), gs.RandomScan(rng.random(n)), gs.scans.Shuffled()):
        period = 1 if isinstance(scan, gs.RandomScan) else n
        sweep = sweep_matrix(exact, graph, gs.Gibbs(), scan)
        matrix = np.eye(len(exact.states))
        for turn in range(1, 6):
            matrix = matrix @ sweep
            true = distance_to_law(exact, matrix, sites)
            for bounds in influence.values():
                found = gs.certify(model, scan=scan, steps=turn * period, target=sites, influence=bounds)
                assert found.variation >= true - 1e-12
    scan = gs.dogs(model, target=sites, steps=3 * n)
    matrix = np.eye(len(exact.states))
    for site in scan.order:
        matrix = matrix @ moves[site]
    assert scan.variation >= distance_to_law(exact, matrix, sites) - 1e-12


def test_accuracy_gives_the_smallest_number_of_steps() -> None:
    model = gs.ising_grid((4, 5), coupling=0.15, field=0.1)
    for scan in (gs.Systematic(), gs.RandomScan(), gs.Chromatic(), gs.RandomScan(np.arange(1.0, 21.0))):
        found = gs.certify(model, scan=scan, accuracy=0.02, target=[3, 7])
        assert found.reached
        assert found.variation <= 0.02
        before = gs.certify(model, scan=scan, steps=found.steps - 1, target=[3, 7])
        assert before.variation > 0.02
    shuffled = gs.certify(model, scan=gs.scans.Shuffled(), accuracy=0.02)
    assert shuffled.sweeps == int(shuffled.sweeps)
    assert gs.certify(model, scan=gs.scans.Shuffled(), sweeps=int(shuffled.sweeps) - 1).variation > 0.02


def test_a_bound_of_many_orders_keeps_its_digits() -> None:
    model = gs.ising_grid((6, 6), coupling=0.2)
    dense = gs.influence.bound_influence(model).to_dense()
    order = np.arange(3600) % 36
    plain = plain_variation(dense, np.ones(36), np.eye(36)[order])
    assert plain < 1e-20
    assert gs.certify(model, steps=3600).variation == pytest.approx(plain, rel=1e-11)


def test_searches_end_where_nothing_falls_any_more() -> None:
    hot = gs.ising_grid((6, 6), coupling=0.8)
    for scan in (gs.Systematic(), gs.RandomScan()):
        found = gs.certify(hot, scan=scan, accuracy=0.01)
        assert found.vacuous
        assert not found.reached
        assert "vacuous" in found.statement
        assert ">= 1" in found.statement
    # for shuffled sweeps a bound is never above what it was: corners gain a little
    assert 35.0 < gs.certify(hot, scan=gs.scans.Shuffled(), accuracy=0.01).variation < 36.0
    stuck = gs.certify(gs.ising_grid((6, 6), coupling=0.1), scan=[0, 1], target=0, accuracy=1e-6)
    assert "does not fall" in stuck.statement
    limited = gs.certify(gs.ising_grid((6, 6), coupling=0.1), accuracy=1e-6, steps=40)
    assert limited.steps == 40
    assert "not allowed" in limited.statement


def test_drawn_scans_are_bounded_from_above_where_the_tail_is_cut() -> None:
    influence = gs.influence.bound_influence(gs.ising_grid((4, 4), coupling=0.5))  # norm above 1: the tail grows
    decay = DrawnDecay(influence, np.ones(16), np.full(16, 1 / 16))
    plain = plain_variation(influence.to_dense(), np.ones(16), np.full((3000, 16), 1 / 16))
    assert plain * (1 - 1e-10) <= decay.value(3000) <= plain * (1 + 1e-9)


def test_certificates_become_json_and_words() -> None:
    import json

    model = gs.ising_grid((4, 4), coupling=0.1)
    data = json.loads(json.dumps(gs.certify(model, sweeps=5, target="3").to_dict()))
    assert {"variation", "steps", "norms", "vacuous", "curve", "statement"} <= set(data)
    assert data["targets"] == 1
    assert data["total_influence_below_one"] is True
    many = gs.certify(gs.ising_grid((20, 20), coupling=0.2), sweeps=3)
    assert "but not single events" in many.statement
    json.dumps(gs.certify(gs.ising_grid((9, 9), coupling=5.0), sweeps=5000).to_dict(), allow_nan=False)


MODEL = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b"), [[2, 1], [1, 2]]), (("b", "c"), [[2, 1], [1, 2]])])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "nose"}, "nose"),
        ({"target": ["a", "a"]}, "twice"),
        ({"target": []}, "empty"),
        ({"target": 3.5}, "3.5"),
        ({"target": ["a", "b"], "weights": [1.0, -1.0]}, "'b' has -1.0"),
        ({"weights": {"a": float("nan")}}, "finite"),
        ({"weights": [1.0]}, "3 sites"),
        ({"weights": ["x", "y", "z"]}, "numbers"),
        ({"weights": [0, 0, 0]}, "zero"),
        ({"weights": {"a": 1.0}, "target": "a"}, "not both"),
        ({"influence": np.zeros((2, 2))}, "shape"),
        ({"influence": 2 * np.eye(3, k=1)}, r"\[0, 1\]"),
        ({"steps": -1}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"sweeps": 5}, "not both"),
        ({"accuracy": 0.0, "steps": None}, "accuracy"),
        ({"accuracy": "high", "steps": None}, "accuracy"),
        ({"steps": None}, "Give a length"),
        ({"scan": "systematic"}, "scan"),
        ({"scan": [0, 7]}, "site 7"),
    ],
)
def test_bad_requests_end_in_one_line(given: dict[str, object], said: str) -> None:
    with pytest.raises(gs.GibbsiteError, match=said) as caught:
        gs.certify(MODEL, **{"steps": 3, **given})
    assert "\n" not in str(caught.value)


def test_models_without_free_sites_are_refused_and_tiny_ones_are_fine() -> None:
    one = gs.FactorGraph(1, [((0,), [1, 2])], states=2)
    for call in (gs.certify, gs.dogs):
        for scan in (None, gs.RandomScan()):
            name = "scan" if call is gs.certify else "initial"
            assert call(one, steps=2, **{name: scan}).variation == 0.0
            with pytest.raises(gs.errors.ModelError, match="no free site"):
                call(one.observe({0: 1}), steps=2, **{name: scan})
        with pytest.raises(gs.errors.ModelError, match="must be a model"):
            call("grid", steps=2)


def test_observed_targets_and_hard_zeros_are_named() -> None:
    with pytest.raises(gs.errors.ModelError, match="observed"):
        gs.certify(MODEL.observe({"a": 1}), target="a", steps=1)
    assert gs.certify(MODEL.observe({"b": 1}), steps=2).variation == 0.0  # what is left is independent
    hard = gs.FactorGraph(3, [((0, 1), [[1, 0], [0, 1]]), ((1, 2), [[2, 1], [1, 2]])], states=2)
    assert "influence 1 (hard zeros" in gs.certify(hard, accuracy=0.01).statement
