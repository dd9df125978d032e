"""Functions of ``gibbsite.lab.dogs.segmentation`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.dogs.segmentation import find_pictures, most_frequent


def test_find_pictures_returns_photographs_from_the_folder_that_gibbsite_data_names() -> None:
    _, source = find_pictures(True)
    assert source == "made up"


def test_most_frequent_returns_the_most_frequent_label_of_every_site_in_many_chains() -> None:
    assert most_frequent(np.array([[0, 2], [1, 2], [1, 0]], np.int16), 3).tolist() == [1, 2]
