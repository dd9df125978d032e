"""Mean field of trees bounds log Z from below, better than single sites do, and is exact on trees."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.mean_field.trees import bound_by_trees
from tests.inference.importance.models import random_model


def compare_bounds(numbers: range) -> int:
    """Check the bounds on random models; return how often trees are better than single sites."""
    better = 0
    for number in numbers:
        model = random_model(number)
        exact = gs.exact.enumerate_states(model).log_z
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.ConvergenceWarning)
            flat = gs.mean_field(model, rng=0, progress=False)
        bound = bound_by_trees(model, flat.marginals)
        allowed = 1e-12 * max(1.0, abs(exact))
        assert bound <= exact + allowed, number
        assert bound >= flat.log_z - 1e-9, number
        better += bound > flat.log_z + 1e-6
    return better


def test_the_bound_holds_and_is_no_worse_than_that_of_single_sites() -> None:
    assert compare_bounds(range(300)) > 200


@pytest.mark.campaign
def test_the_bound_holds_on_ten_thousand_models() -> None:
    compare_bounds(range(10_000))


@pytest.mark.parametrize("states", [2, 3])
def test_trees_are_solved_exactly(states: int) -> None:
    rng = np.random.default_rng(states)
    factors = [((f"v{i}", f"v{rng.integers(0, i)}"), np.exp(rng.normal(size=(states, states)))) for i in range(1, 9)]
    factors.append((("v8", "w", "u"), np.exp(rng.normal(size=(states, 2, 2)))))
    model = gs.FactorGraph({**{f"v{i}": states for i in range(9)}, "w": 2, "u": 2}, factors)
    even = gs.mean_field(model, max_iterations=1, tolerance=1.0, start="uniform", progress=False)
    exact = gs.exact.enumerate_states(model).log_z
    assert math.isclose(bound_by_trees(model, even.marginals), exact, rel_tol=1e-13)


def test_two_sets_by_hand() -> None:
    # a triangle: two sites of it are a tree, the third is by itself
    tables = [np.exp(np.random.default_rng(k).normal(size=(2, 2))) for k in range(3)]
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    model = gs.FactorGraph(dict.fromkeys("abc", 2), list(zip(pairs, tables, strict=True)))
    flat = gs.mean_field(model, progress=False)
    found = bound_by_trees(model, flat.marginals)
    logs = [np.log(table) for table in tables]
    law = np.array(list(flat.marginals["c"].values()))
    for _ in range(200):
        pair = logs[0] + (logs[2] @ law)[:, None] + (logs[1] @ law)[None]
        joint = np.exp(pair) / np.exp(pair).sum()
        single = joint.sum(0) @ logs[1] + joint.sum(1) @ logs[2]
        law = np.exp(single) / np.exp(single).sum()
    by_hand = (joint * logs[0]).sum() + joint.sum(0) @ logs[1] @ law + joint.sum(1) @ logs[2] @ law
    by_hand -= (joint * np.log(joint)).sum() + law @ np.log(law)
    assert found == pytest.approx(by_hand, abs=2e-5)
    assert found <= gs.exact.enumerate_states(model).log_z


def test_evidence_zeros_and_no_time() -> None:
    model = gs.example("asia").observe({"xray": "yes", "dysp": "yes"})
    flat = gs.mean_field(model, rng=0, progress=False)
    exact = gs.solve_exact(model).log_z
    assert flat.log_z < bound_by_trees(model, flat.marginals) <= exact + 1e-12
    assert bound_by_trees(model, flat.marginals, seconds=0.0) == -math.inf
