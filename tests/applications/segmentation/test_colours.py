"""Functions of ``gibbsite.applications.segmentation.colours`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.colours import to_lab


def test_to_lab_returns_8_bit_colours_as_lightness_l_and_the_two_coordinates_a_b() -> None:
    assert to_lab(np.array([[255, 255, 255], [255, 0, 0]], np.uint8)).round().astype(int).tolist() == [
        [100, 0, 0],
        [53, 80, 67],
    ]
