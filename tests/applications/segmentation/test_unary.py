"""Functions of ``gibbsite.applications.segmentation.unary`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.unary import ColourModels, to_lab


def test_log_densities_returns_the_logarithms_of_the_densities_of_all_labels() -> None:
    grey = np.array([[50, 0, 0]], np.float32)
    models = ColourModels([grey], [np.zeros((1, 2), np.float32)], 1.0)
    assert round(float(models.log_densities(grey)[0, 0]), 2) == -2.76


def test_to_lab_returns_8_bit_colours_as_lightness_l_and_the_two_coordinates_a_b() -> None:
    assert to_lab(np.array([[255, 255, 255], [255, 0, 0]], np.uint8)).round().astype(int).tolist() == [
        [100, 0, 0],
        [53, 80, 67],
    ]
