"""Functions of ``gibbsite.lab.notes.scan`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.notes.scan import asymmetry


def test_asymmetry_returns_the_largest_difference_of_flows_there_and_back_and_how_far() -> None:
    assert asymmetry(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5])) == (0.0, 0.0)
