"""Functions of ``gibbsite.applications.entities.scoring`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.entities.scoring import calibration, paired_difference


def test_paired_difference_returns_how_much_higher_the_f1_of_the_second_labels() -> None:
    truth = [[["B-X"]]] * 5
    assert paired_difference(truth, [[["O"]]] * 5, truth, repeats=10) == (1.0, 1.0, 1.0)


def test_calibration_returns_the_expected_calibration_error_and_its_bins() -> None:
    error, rows = calibration(np.array([0.9, 0.9]), np.array([True, False]))
    assert (round(error, 3), rows[0]["entities"]) == (0.4, 2)
