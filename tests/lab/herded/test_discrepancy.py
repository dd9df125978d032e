"""Functions of ``gibbsite.lab.herded.discrepancy`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.herded.discrepancy import KERNELS, bound, measure


def test_bound_returns_tijdemans_bound() -> None:
    assert (bound(2), bound(3)) == (0.5, 0.75)


def test_measure_returns_the_largest_discrepancy_so_far_of_each_variable_after() -> None:
    assert bool(measure(KERNELS["tijdeman"], np.array([[0.2, 0.3, 0.5]]), np.array([2000]), 1)[0, 0] <= 0.75)
