"""Functions of ``gibbsite.lab.notes.denoising`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.notes.denoising import follow_states


def test_follow_states_returns_the_images_after_each_of_ten_sweeps_row_by_row_and_pixel() -> None:
    y = np.ones((8, 8))
    assert follow_states(y, 1.0, np.ones(64, int), 1).shape == (10, 8, 8)
