"""Functions of ``gibbsite.applications.entities.recognizer`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.entities.recognizer import log_odds


def test_log_odds_returns_the_log_odds_of_probabilities_those_of_0_and_1_finite() -> None:
    assert log_odds(np.array([0.5])).tolist() == [0.0]
