"""Interventions equal the truncated product of tables, and adjustment gives the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError
from gibbsite.formats.network import network_tables
from tests.inference.questions.networks import law_of, random_network


def truncated(model: gs.FactorGraph, site: int, code: int) -> np.ndarray:
    """Return the joint probabilities if a site is set: the product of all other tables."""
    cards = [int(card) for card in model.cards]
    grid = np.meshgrid(*(np.arange(card) for card in cards), indexing="ij")
    law = (grid[site] == code).astype(float)
    for k, (scope, logs) in enumerate(network_tables(model, "A test")):
        if k != site:
            law = law * np.exp(logs)[tuple(grid[one] for one in scope)]
    return law


@pytest.mark.parametrize("seed", range(6))
def test_an_intervention_is_the_truncated_product(seed: int) -> None:
    model = random_network(seed)
    found = law_of(gs.questions.intervene(model, {"v2": "s1"}))
    np.testing.assert_allclose(found, truncated(model, 2, 1), atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_effects_follow_from_adjustment(seed: int) -> None:
    model = random_network(seed)
    found = gs.questions.estimate_effect(model, "v2", "v5")
    law = law_of(model)
    assert found.adjustment is not None and found.identifiable  # nothing is hidden
    axes = [model.index(name) for name in found.adjustment]
    others = tuple(k for k in range(6) if k not in (*axes, 2, 5))
    # P(y | do(x)) = sum over z of P(z) P(y | x, z)
    joint = np.moveaxis(law, [2, 5], [-2, -1])
    kept = [k for k in range(6) if k not in (2, 5)]
    joint = joint.sum(axis=tuple(kept.index(k) for k in others))
    weights = joint.sum(axis=(-2, -1))
    given = joint / joint.sum(axis=-1, keepdims=True)
    adjusted = (weights[..., None, None] * given).reshape(-1, *joint.shape[-2:]).sum(axis=0)
    for code, state in enumerate(model.labels("v2")):
        wanted = truncated(model, 2, code).sum(axis=(0, 1, 2, 3, 4))
        np.testing.assert_allclose(list(found.probabilities[state].values()), wanted, atol=1e-9)
        np.testing.assert_allclose(adjusted[code], wanted, atol=1e-9)


def test_means_of_numeric_labels() -> None:
    model = gs.FactorGraph(
        {"a": 2, "y": [10, 20]}, [("a", [0.3, 0.7]), (("a", "y"), [[0.5, 0.5], [0.1, 0.9]])], directed=True
    )
    found = gs.questions.estimate_effect(model, "a", "y")
    assert found.means is not None and found.means[1] - found.means[0] == pytest.approx(4.0)


def test_wrong_questions_are_refused() -> None:
    asia = gs.example("asia")
    with pytest.raises(ArgumentError, match="same site"):
        gs.questions.estimate_effect(asia, "lung", "lung")
    with pytest.raises(ArgumentError, match="must be in the data"):
        gs.questions.estimate_effect(asia, "smoke", "lung", hidden=["smoke"])
    with pytest.raises(ArgumentError, match="leave it out"):
        gs.questions.estimate_effect(asia, "smoke", "lung", {"smoke": "yes"})
