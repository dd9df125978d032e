"""Functions of ``gibbsite.applications.segmentation.superpixels`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.superpixels import label_of_regions, region_neighbourhood


def test_region_neighbourhood_returns_the_pairs_of_regions_that_touch() -> None:
    found = region_neighbourhood(np.array([[0, 0, 1], [0, 0, 2]]), 4)
    assert (found.pairs.tolist(), found.closeness.tolist()) == ([[0, 1], [0, 2], [1, 2]], [1.0, 1.0, 1.0])


def test_label_of_regions_returns_the_label_that_most_scribbled_pixels_of_each_region() -> None:
    assert label_of_regions(np.array([[-1, 1, 1, 0, -1]]), np.array([[0, 0, 0, 0, 1]]), 2).tolist() == [1, -1]
