"""Herding of moments: errors fall like 1 / T on tables and models, and impossible moments are found out."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gibbsite as gs


def all_states(model: gs.FactorGraph) -> np.ndarray:
    return np.array(list(product(*(range(card) for card in model.cards))))


def slope(errors: Any) -> float:
    """Return the exponent of the largest errors of windows of doubling length."""
    ends = 2 ** np.arange(4, int(np.log2(len(errors))) + 1)
    tops = [errors[end // 2 : end].max() for end in ends]
    return float(np.polyfit(np.log(ends), np.log(tops), 1)[0])


def test_a_distribution_is_followed_by_counts() -> None:
    p = np.array([0.1, 0.35, 0.05, 0.3, 0.2])
    found = gs.herd(np.eye(5), p, steps=5000)
    counts = np.cumsum(found.states[:, None] == np.arange(5), axis=0)
    worst = np.abs(counts - np.arange(1, 5001)[:, None] * p).max()
    assert worst < 1.6
    assert slope(found.errors) < -0.9
    np.testing.assert_allclose(found.errors, np.sqrt(((counts / np.arange(1, 5001)[:, None] - p) ** 2).sum(axis=1)))


@pytest.mark.parametrize("seed", range(4))
def test_errors_are_the_way_of_the_weights_over_the_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 6))
    mu = rng.dirichlet(np.ones(60)) @ features
    found = gs.herd(features, mu, steps=4096, start=rng.normal(size=6))
    assert found.misses == 0
    assert found.errors[-1] == pytest.approx(np.linalg.norm(found.start - found.weights) / 4096, rel=1e-6)
    np.testing.assert_allclose(found.mean, features[found.states].mean(axis=0))
    assert slope(found.errors) < -0.85
    assert (found.errors * np.arange(1, 4097)).max() < 60.0


def test_moments_that_no_distribution_has_are_refused() -> None:
    with pytest.raises(gs.errors.ArgumentError, match="No distribution has these moments"):
        gs.herd(np.eye(3), [0.5, 0.6, -0.1])
    with pytest.raises(gs.errors.ArgumentError, match="No distribution has these moments"):
        gs.herd(np.array([[0.0], [1.0]]), [1.5])
    pair = gs.FactorGraph(
        3, [((0, 1), np.ones((2, 2))), ((1, 2), np.ones((2, 2))), ((0, 2), np.ones((2, 2)))], states=2
    )
    differ = np.array([[0.0, 0.5], [0.5, 0.0]])  # three sites cannot all differ from each other
    with pytest.raises(gs.errors.ArgumentError, match="No distribution has these moments"):
        gs.herd(pair, [differ] * 3)
    assert gs.herd(pair, [differ] * 3, solver="local", steps=200).misses > 0


MODELS = {
    "grid": gs.ising_grid((3, 4), coupling=0.4, field=0.2),
    "potts": gs.potts_grid((2, 3), 3, 0.5),
    "chain": gs.ising_grid((20,), coupling=0.5, field=0.1),
    "table": gs.FactorGraph(
        {"a": 2, "b": 3, "c": 2},
        [(("a", "b", "c"), np.arange(1.0, 13.0).reshape(2, 3, 2)), (("c", "a"), [[1, 2], [3, 1]]), (("b",), [1, 2, 3])],
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("solver", ["exact", "local"])
def test_models_have_the_probabilities_of_their_factors(name: str, solver: str) -> None:
    model = MODELS[name]
    steps = 256 if name == "chain" else 1024  # too many states to enumerate
    found = gs.herd(model, steps=steps, solver=solver)
    if solver == "exact":
        assert found.misses == 0
        assert slope(found.errors) < -0.8
    assert found.errors[-1] < 40 / steps or found.misses > 0
    exact = gs.solve_exact(model)
    if not found.misses:
        for site in range(model.n_sites):
            shares = np.bincount(found.states[:, site], minlength=model.cards[site]) / steps
            assert np.abs(shares - exact.joint(site)).max() < 0.04


def test_a_model_and_the_table_of_its_features_are_herded_alike() -> None:
    model = MODELS["table"]
    x = all_states(model)
    rows = [np.eye(12)[x @ [6, 2, 1]], np.eye(4)[x[:, [2, 0]] @ [2, 1]], np.eye(3)[x[:, 1]]]
    start = np.random.default_rng(1).normal(size=19)  # no ties
    exact = gs.solve_exact(model)
    scopes = [tuple(scope) for group in model.groups for scope in group.scopes.tolist()]
    tables = {3: rows[0], 2: rows[1], 1: rows[2]}
    features = np.concatenate([tables[len(scope)] for scope in scopes], axis=1)
    mu = np.concatenate([exact.joint(*scope).ravel() for scope in scopes])
    one, two = gs.herd(model, steps=300, start=start), gs.herd(features, mu, steps=300, start=start)
    np.testing.assert_allclose(one.errors, two.errors, atol=1e-9)
    np.testing.assert_array_equal(one.states, x[two.states])


def test_data_and_tables_are_moments_of_models() -> None:
    model = gs.ising_grid((2, 3), coupling=0.3)
    rng = np.random.default_rng(3)
    data = rng.integers(0, 2, (50, 6))
    found = gs.herd(model, data, steps=800)
    assert np.abs(found.states.mean(axis=0) - data.mean(axis=0)).max() < 0.02
    scopes = [scope for group in model.groups for scope in group.scopes.tolist()]
    tables = []
    for scope in scopes:
        tables.append(np.zeros((2,) * len(scope)))
        np.add.at(tables[-1], tuple(data[:, scope].T), 1 / 50)
    np.testing.assert_allclose(gs.herd(model, tables, steps=50).errors, found.errors[:50], atol=1e-9)


def test_a_user_gives_features_and_solver() -> None:
    """The best point of a circle is in the direction of the weights."""
    mu = np.array([0.3, -0.2])
    found = gs.herd(
        lambda angle: [np.cos(angle), np.sin(angle)], mu, solver=lambda w: np.arctan2(w[1], w[0]), steps=4096
    )
    assert found.misses == 0
    assert len(found.states) == 4096
    assert slope(found.errors) < -0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 0.0]],), "moments"),
        ((np.eye(2), [0.5, 0.2, 0.3]), r"shape \(states, 3\)"),
        ((np.eye(2), [[0.5, 0.5]]), "list of finite numbers"),
        ((np.eye(2), [np.nan, 0.5]), "finite"),
        ((abs, [0.5]), "solver must be a function"),
        ((MODELS["grid"], [np.ones((2, 2))]), "a table for each of its"),
        ((MODELS["grid"], np.full((3, 12), 2)), "outside the states"),
        ((gs.FactorGraph(2, [], states=2),), "no factors"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(gs.errors.GibbsiteError, match=message):
        gs.herd(*arguments)


def test_other_wrong_arguments_are_refused() -> None:
    for given, message in (
        ({"steps": 0}, "steps"),
        ({"start": [1.0]}, "start"),
        ({"solver": "exact"}, "for models and functions"),
    ):
        with pytest.raises(gs.errors.GibbsiteError, match=message):
            gs.herd(np.eye(2), [0.5, 0.5], **given)
    with pytest.raises(gs.errors.GibbsiteError, match="exact, local"):
        gs.herd(MODELS["grid"], solver="best")
    with pytest.raises(gs.errors.GibbsiteError, match="no negative numbers"):
        gs.herd(MODELS["table"], [np.ones((2, 3, 2)), np.ones((2, 2)) / 4, np.ones(3) / 3])
    with pytest.raises(gs.errors.GibbsiteError, match="features of a state"):
        gs.herd(lambda x: [1.0, 2.0], [0.5], solver=lambda w: 0)
