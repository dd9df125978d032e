"""Functions of ``gibbsite.learn.projection`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.projection import project_rows


def test_project_rows_returns_the_nearest_weights_of_pairs_from_0_to_box_that_add_up() -> None:
    assert project_rows(np.array([1.0, 0.4]), np.array([[0, 1], [1, 2]]), 3, bound=1.0).round(3).tolist() == [0.8, 0.2]
