"""Functions of ``gibbsite.applications.segmentation.colour_models`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.colour_models import ColourModels


def test_log_densities_returns_the_logarithms_of_the_densities_of_all_labels() -> None:
    grey = np.array([[50, 0, 0]], np.float32)
    models = ColourModels([grey], [np.zeros((1, 2), np.float32)], 1.0)
    assert round(float(models.log_densities(grey)[0, 0]), 2) == -2.76
