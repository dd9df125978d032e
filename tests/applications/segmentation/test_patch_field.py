"""Functions of ``gibbsite.applications.segmentation.patch_field`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.patch_field import (
    central_region,
    count_neighbours,
    gather,
    independent,
    learn_coupling,
    pseudo_likelihood,
)


def test_central_region_returns_the_patches_in_the_middle_two_fifths_of_rows() -> None:
    assert central_region((20, 31)) == (10, 6, 22, 14)


def test_independent_labels_every_patch_by_itself() -> None:
    assert independent(np.array([[[0.0, 1.0], [2.0, 1.0]]])).labels.tolist() == [[1, 0]]


def test_count_neighbours_counts_the_neighbours_with_each_label_an_array_rows_columns() -> None:
    assert count_neighbours(np.array([[0, 1], [1, -1]]), 2)[0, 0].tolist() == [0.0, 2.0]


def test_pseudo_likelihood_returns_the_log_pseudo_likelihood_of_a_coupling() -> None:
    data = gather(np.zeros((1, 2, 2)), np.array([[0, 0]]))
    value, slope, bend = pseudo_likelihood(0.0, data)
    assert (round(value, 4), slope, bend) == (-1.3863, 1.0, -0.5)


def test_learn_coupling_returns_the_coupling_of_the_largest_pseudo_likelihood() -> None:
    labels = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0]])
    assert 0.5 < learn_coupling([gather(np.zeros((2, 6, 2)), labels)]) < 2.0
