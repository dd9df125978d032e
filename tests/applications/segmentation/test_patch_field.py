"""Functions of ``gibbsite.applications.segmentation.patch_field`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.patch_field import central_region, independent


def test_central_region_returns_the_patches_in_the_middle_two_fifths_of_rows() -> None:
    assert central_region((20, 31)) == (10, 6, 22, 14)


def test_independent_labels_every_patch_by_itself() -> None:
    assert independent(np.array([[[0.0, 1.0], [2.0, 1.0]]])).labels.tolist() == [[1, 0]]
