"""Functions of ``gibbsite.lab.follow`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.follow import envelope, fit_slope, follow, space_lengths


def test_follow_returns_the_averages_of_all_recorded_cells_after_each_number_of_sweeps() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 2], [2, 3]])])
    found = follow(model, gs.HerdedGibbs(), np.array([10, 1000]), gs.recorders.Joint([("a", "b")]))
    assert bool(np.abs(found[0, 1] - [0.3, 0.2, 0.2, 0.3]).max() < 0.01)


def test_space_lengths_returns_numbers_of_sweeps_evenly_spaced_on_a_logarithmic_scale() -> None:
    assert space_lengths(1000, per_decade=2).tolist() == [100, 316, 1000]


def test_envelope_returns_the_largest_error_from_each_length() -> None:
    assert envelope(np.array([4.0, 1.0, 2.0, 0.5])).tolist() == [4.0, 2.0, 2.0, 0.5]


def test_fit_slope_returns_the_slope_of_errors_against_lengths_in_logarithms() -> None:
    assert round(fit_slope(np.array([1, 10, 100]), np.array([3.0, 0.3, 0.03])), 6) == -1.0
