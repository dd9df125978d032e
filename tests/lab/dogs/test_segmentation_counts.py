"""Functions of ``gibbsite.lab.dogs.segmentation_counts`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.segmentation import field_model, label_field
from gibbsite.lab.dogs.segmentation_counts import aim, choose_couplings, find_pictures, most_frequent, run_scan


def test_find_pictures_returns_photographs_from_the_folder_that_gibbsite_data_names() -> None:
    _, source = find_pictures(True)
    assert source == "made up"


def test_most_frequent_returns_the_most_frequent_label_of_every_site_in_many_chains() -> None:
    assert most_frequent(np.array([[0, 2], [1, 2], [1, 0]], np.int16), 3).tolist() == [1, 2]


def test_couplings_are_chosen_by_other_splits_without_the_own_test_images() -> None:
    tests = np.array([[0, 1], [1, 2], [3, 4]])
    wrong = np.zeros((3, 2, 3), np.int64)
    wrong[..., 0] = 5  # without coupling, which is never chosen
    wrong[0, :, 1], wrong[1, :, 2], wrong[2, :, 1] = 9, 4, 1
    # the first split sees image 2 of the second, and the third; the second split image 0 of the first, and the third;
    # the third split all of the others
    assert choose_couplings(wrong, tests).tolist() == [1, 2, 2]


def test_aim_returns_a_scan_of_the_given_length_that_is_better_for_the_middle() -> None:
    scan = aim((12, 16), 192)
    assert len(scan.order) == 192
    assert scan.variation < scan.input_variation


@pytest.mark.parametrize("scan", ["systematic", "DoGS"])
def test_run_scan_samples_the_posterior_after_many_steps(scan: str) -> None:
    """The most frequent label of 400 chains is the most probable one, where that has a probability above 0.65.

    A label of probability 0.35 or less is the most frequent one of 400 with a probability below 1e-9.
    """
    fields = 1.5 * np.random.default_rng(4).normal(size=(4, 3, 2))
    exact = gs.solve_exact(field_model(fields, 0.48)).marginals
    best = np.array([list(exact[str(k)].values()) for k in range(12)])
    found, seconds = run_scan(fields, scan, 240, coupling=0.48, chains=400, rng=1)
    clear = best.max(axis=1) > 0.65
    assert clear.sum() >= 6
    assert (found.ravel()[clear] == best.argmax(axis=1)[clear]).all()
    assert seconds > 0
    untouched = run_scan(fields, scan, 1, coupling=0.48, chains=9, rng=1)[0]
    assert (untouched != label_field(fields, "plsa").labels).sum() <= 1
