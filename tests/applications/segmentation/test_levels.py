"""Functions of ``gibbsite.applications.segmentation.levels`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.levels import border_band, enlarge, halve_image, halve_scribbles


def test_halve_image_returns_an_image_of_half_the_size() -> None:
    assert halve_image(np.array([[[0], [4], [9]], [[8], [12], [9]]], np.uint8))[..., 0].tolist() == [[6, 9]]


def test_halve_scribbles_returns_scribbles_of_half_the_size() -> None:
    assert halve_scribbles(np.array([[-1, 0, -1], [-1, -1, -1]])).tolist() == [[0, -1]]


def test_enlarge_returns_values_of_a_level_at_the_pixels_of_the_next_finer_one() -> None:
    assert enlarge(np.array([[1, 2]]), (2, 3)).tolist() == [[1, 1, 2], [1, 1, 2]]


def test_border_band_returns_the_pixels_at_a_border_between_labels_and_those_next() -> None:
    assert border_band(np.array([[0, 0, 0, 1, 1, 1]])).astype(int).tolist() == [[0, 1, 1, 1, 1, 0]]
