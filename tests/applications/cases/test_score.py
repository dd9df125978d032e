"""Scores equal their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError

ASIA = gs.example("asia")
CODES = gs.solve_exact(ASIA).draw(400, np.random.default_rng(2))
CASES = {site: [ASIA.labels(site)[code] for code in CODES[:, k]] for k, site in enumerate(ASIA.sites)}


def test_scores_are_those_of_their_definitions() -> None:
    found = gs.applications.score_cases(ASIA, CASES, "dysp")
    assert found.log_likelihood == pytest.approx(sum(ASIA.log_potential(row) for row in CODES))
    at = ASIA.index("dysp")
    predicted = []
    for row in CODES:
        both = []
        for code in (0, 1):
            other = row.copy()
            other[at] = code
            both.append(np.exp(ASIA.log_potential(other)))
        predicted.append(np.array(both) / sum(both))
    p, true = np.array(predicted), CODES[:, at]
    of_true = p[np.arange(400), true]
    assert found.log_loss == pytest.approx(-np.log(of_true).mean())
    assert found.accuracy == pytest.approx((p.argmax(axis=1) == true).mean())
    assert found.brier == pytest.approx((2 * (1 - of_true) ** 2).mean())
    assert found.confusion.sum() == 400 and found.confusion.sum(axis=1).tolist() == np.bincount(true).tolist()
    assert sum(one.count for one in found.calibration) == 800
    inside = (p >= 0.9 - 1e-9).ravel()
    assert found.calibration[-1].predicted == pytest.approx(p.ravel()[inside].mean())
    hit = np.eye(2)[true].ravel()
    assert found.calibration[-1].observed == pytest.approx(hit[inside].mean())


def test_a_factor_graph_is_normalised() -> None:
    model = gs.FactorGraph({"a": 2}, [("a", [1, 3])])
    assert gs.applications.score_cases(model, {"a": [1, 0]}).log_likelihood == pytest.approx(np.log(3 / 16))


def test_missing_targets_are_left_out() -> None:
    cases = {"lung": ["yes", "", "no"], "xray": ["yes", "yes", "no"]}
    assert gs.applications.score_cases(ASIA, cases, "lung").predicted_rows == 2
    with pytest.raises(ArgumentError, match="do not say what 'tub' was"):
        gs.applications.score_cases(ASIA, cases, "tub")
