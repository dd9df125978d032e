"""Functions of ``gibbsite.applications.segmentation.rendering`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.rendering import check_outputs, draw_overlay, encode_labels, make_legend


def test_check_outputs_returns_where_the_files_of_a_segmentation_go() -> None:
    assert check_outputs("cow.png").overlay == "cow-overlay.jpg"


def test_encode_labels_returns_the_bytes_of_a_label_image() -> None:
    assert encode_labels(np.array([[0, 1]]), make_legend(["sky", "sea"]))[1:4] == b"PNG"


def test_draw_overlay_returns_the_image_tinted_in_the_colours_of_its_labels() -> None:
    picture = np.full((40, 60, 3), 100, np.uint8)
    assert draw_overlay(picture, np.zeros((40, 60), int), make_legend(["sea"]))[0, 0].tolist() == [55, 106, 135]
