"""Functions of ``gibbsite.lab.herded.silhouettes`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.herded.silhouettes import draw_strokes


def test_draw_strokes_draws_a_circle_a_zigzag_a_spiral_and_a_letter_with_strokes() -> None:
    image = draw_strokes(300)
    assert (image.shape, bool(0.05 < image.mean() < 0.15)) == ((300, 300), True)
