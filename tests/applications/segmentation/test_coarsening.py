"""Functions of ``gibbsite.applications.segmentation.coarsening`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.coarsening import (
    border_band,
    enlarge,
    halve_image,
    halve_scribbles,
    label_of_regions,
    region_neighbourhood,
)


def test_halve_image_returns_an_image_of_half_the_size() -> None:
    assert halve_image(np.array([[[0], [4], [9]], [[8], [12], [9]]], np.uint8))[..., 0].tolist() == [[6, 9]]


def test_halve_scribbles_returns_scribbles_of_half_the_size() -> None:
    assert halve_scribbles(np.array([[-1, 0, -1], [-1, -1, -1]])).tolist() == [[0, -1]]


def test_enlarge_returns_values_of_a_level_at_the_pixels_of_the_next_finer_one() -> None:
    assert enlarge(np.array([[1, 2]]), (2, 3)).tolist() == [[1, 1, 2], [1, 1, 2]]


def test_border_band_returns_the_pixels_at_a_border_between_labels_and_those_next() -> None:
    assert border_band(np.array([[0, 0, 0, 1, 1, 1]])).astype(int).tolist() == [[0, 1, 1, 1, 1, 0]]


def test_region_neighbourhood_returns_the_pairs_of_regions_that_touch() -> None:
    found = region_neighbourhood(np.array([[0, 0, 1], [0, 0, 2]]), 4)
    assert (found.pairs.tolist(), found.closeness.tolist()) == ([[0, 1], [0, 2], [1, 2]], [1.0, 1.0, 1.0])


def test_label_of_regions_returns_the_label_that_most_scribbled_pixels_of_each_region() -> None:
    assert label_of_regions(np.array([[-1, 1, 1, 0, -1]]), np.array([[0, 0, 0, 0, 1]]), 2).tolist() == [1, -1]
