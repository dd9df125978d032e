"""Functions of ``gibbsite.lab.herded.denoising`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.herded.denoising import draw_strokes, is_less, restore


def test_restore_returns_estimates_of_p_x_1_one_image_for_each_number_of_sweeps() -> None:
    y = np.where(draw_strokes(40), 1.0, -1.0)
    found = restore(gs.Gibbs(), y, 0.5, np.array([5, 10]), 1)
    assert (found.shape, bool(((found[1] > 0.5) == (y > 0)).mean() > 0.9)) == ((2, 40, 40), True)


def test_is_less_tells_whether_errors_a_are_less_than_b_on_the_same_noisy_images() -> None:
    assert (is_less(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.2, 1.9])), is_less(np.ones(3), np.ones(3))) == (
        True,
        None,
    )


def test_draw_strokes_draws_a_circle_a_zigzag_a_spiral_and_a_letter_with_strokes() -> None:
    image = draw_strokes(300)
    assert (image.shape, bool(0.05 < image.mean() < 0.15)) == ((300, 300), True)
