"""Functions of ``gibbsite.applications.segmentation.strokes`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.strokes import read_scribbles


def test_read_scribbles_tells_the_labels_of_a_drawing() -> None:
    strokes = read_scribbles([[0, 5, 7]], np.zeros((1, 3, 3), np.uint8))
    assert (strokes.labels.tolist(), strokes.legend.names) == ([[-1, 0, 1]], ("5", "7"))
