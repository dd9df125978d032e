"""Functions of ``gibbsite.applications.entities.calibration`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.entities.calibration import NO_CORRECTION, calibration_error, correct, learn_correction


def test_calibration_returns_the_expected_calibration_error_and_its_bins() -> None:
    error, rows = calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    assert (round(error, 3), rows[0]["entities"]) == (0.4, 2)


def test_a_correction_of_overconfident_probabilities_lowers_them() -> None:
    stated, right = np.full(200, 0.9), np.arange(200) < 120
    slope, intercept = learn_correction(stated, right)
    found, error = correct(stated[:1], np.array([0.01]), (slope, intercept))
    assert abs(found[0] - 0.6) < 0.05
    assert error[0] > 0.0
    assert correct(stated, stated, NO_CORRECTION)[0] is stated
