"""Probabilities of events and joints: exact, and by methods that sample, with honest errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError
from tests.inference.questions.networks import random_network

EVENTS = ["v0 = s0 or v3 = s1", {"v1": "s1", "v4": "s0"}]
JOINTS = [("v2", "v5")]


@pytest.mark.parametrize("method", ["gibbs", "blocks", "forward"])
def test_sampled_answers_are_within_their_errors(method: str) -> None:
    model = random_network(3)
    exact = gs.questions.ask(model, EVENTS, JOINTS)
    budget: dict[str, Any] = {"draws": 60_000} if method == "forward" else {"sweeps": 12_000}
    found = gs.questions.ask(model, EVENTS, JOINTS, method=method, rng=4, progress=False, **budget)
    # six standard errors each: false alarm below 2e-8
    for k in range(2):
        assert abs(found.probability(k) - exact.probability(k)) < 6 * found.error(k) + 1e-9
    gap = np.abs(found.joint("v2", "v5") - exact.joint("v2", "v5"))
    assert (gap < 6 * found.joint_errors("v2", "v5") + 1e-9).all()
    assert found.method == method
    assert found.diagnostics.mcse_max == pytest.approx(
        max(found.error(0), found.error(1), found.joint_errors("v2", "v5").max())
    )


def test_the_verdict_is_about_the_accuracy_that_was_asked_for() -> None:
    model = random_network(3)
    how: dict[str, Any] = {"method": "gibbs", "rng": 1, "progress": False}
    short = gs.questions.ask(model, EVENTS, sweeps=300, criteria=gs.Criteria(accuracy=0.001), **how)
    assert short.diagnostics.converged is False
    assert any("more than the accuracy of 0.001" in reason for reason in short.diagnostics.reasons)
    enough = gs.questions.ask(model, EVENTS, sweeps=100_000, criteria=gs.Criteria(accuracy=0.02), **how)
    assert enough.diagnostics.converged and 4 * enough.error(0) <= 0.02


def test_joints_have_axes_for_observed_sites_and_any_order() -> None:
    model = random_network(1).observe({"v2": "s1"})
    found = gs.questions.ask(model, joints=[("v2", "v0"), ("v4", "v5")])
    assert found.joint("v2", "v0")[0].tolist() == [0.0] * found.joint("v2", "v0").shape[1]
    np.testing.assert_allclose(found.joint("v5", "v4"), found.joint("v4", "v5").T)
    drawn = gs.questions.ask(model, joints=[("v2", "v0")], method="gibbs", sweeps=2000, rng=1, progress=False)
    assert drawn.joint("v2", "v0")[0].tolist() == [0.0] * drawn.joint("v2", "v0").shape[1]


def test_certain_events_need_no_sampling() -> None:
    model = random_network(1).observe({"v2": "s1"})
    found = gs.questions.ask(model, ["v2 = s1", "v2 = s0"], method="gibbs", progress=False)
    assert (found.probability(0), found.probability(1), found.error(0)) == (1.0, 0.0, 0.0)


def test_text_and_data_have_the_numbers() -> None:
    found = gs.questions.ask(random_network(2), EVENTS, JOINTS)
    assert f"P(v0 = s0 or v3 = s1) = {found.probability(0):.4f}" in found.summary()
    data = found.to_dict()
    assert data["events"]["v0 = s0 or v3 = s1"] == {"probability": found.probability(0), "mcse": 0.0}
    assert data["joints"]["v2, v5"]["probabilities"] == found.joint("v2", "v5").tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "at least one event"),
        ({"events": "v0 = s0"}, "must be a list"),
        ({"events": ["v0 = s0", "v0 = s0"]}, "twice"),
        ({"events": [3]}, "An event is a text"),
        ({"events": ["v0 = s0"], "criteria": gs.Criteria(query=["v0"])}, "no effect"),
        ({"joints": [("v0", "v0")]}, "twice"),
        ({"joints": ["v0"]}, "a list of sites"),
        ({"joints": b"ab"}, "a list of sites"),
    ],
)
def test_wrong_questions_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        gs.questions.ask(random_network(0), **given)
