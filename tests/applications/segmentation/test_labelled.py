"""Functions of ``gibbsite.applications.segmentation.labelled`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.features import spread
from gibbsite.applications.segmentation.labelled import confuse


def test_spread_gives_every_pixel_what_the_patch_with_the_nearest_centre_has() -> None:
    assert spread(np.array([[1, 2]]), 20, 30)[0, [0, 14, 15, 29]].tolist() == [1, 1, 2, 2]


def test_confuse_counts_labelled_pixels_by_true_class_and_label() -> None:
    assert confuse(np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), 2).tolist() == [[1, 0], [1, 1]]
