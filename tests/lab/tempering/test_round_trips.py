"""Functions of ``gibbsite.lab.tempering.round_trips`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.tempering.round_trips import expected_rate


def test_expected_rate_returns_the_round_trips_per_sweep_of_states_that_forget() -> None:
    assert round(expected_rate(np.array([0.5, 0.5])), 4) == 0.1667
