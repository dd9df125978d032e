"""Functions of ``gibbsite.applications.segmentation.features`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.features import VisualWords, describe, nearest, patch_shape


def test_patch_shape_returns_the_rows_and_columns_of_patches_of_an_image() -> None:
    assert patch_shape(213, 320) == (20, 31)


def test_describe_returns_histograms_of_the_gradients_and_of_the_hues_of_all_patches() -> None:
    found = describe(np.zeros((60, 80, 3), np.uint8))
    assert (found.texture.shape, found.colour.shape, found.shape) == ((35, 128), (35, 36), (5, 7))


def test_nearest_returns_the_nearest_centre_of_each_row() -> None:
    assert nearest(np.array([[0.0], [1.0]], np.float32), np.array([[0.2], [0.9]], np.float32)).tolist() == [0, 1]


def test_read_returns_the_words_of_patches_an_array_patches_3() -> None:
    words = VisualWords(np.zeros((1, 128), np.float32), np.zeros((1, 36), np.float32))
    assert words.read(describe(np.zeros((30, 40, 3), np.uint8)))[:, 2].tolist() == [0, 3, 6, 50, 53, 56]
