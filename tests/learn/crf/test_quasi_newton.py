"""Functions of ``gibbsite.learn.crf.quasi_newton`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.learn.crf.quasi_newton import minimise


def test_minimise_finds_a_minimum_of_a_function_with_gradient_plus_l1_times_the_sum() -> None:
    def bowl(x: Floats) -> tuple[float, Floats]:
        return float(((x - 3.0) ** 2).sum()), 2.0 * (x - 3.0)

    assert minimise(bowl, np.zeros(2)).x.round(6).tolist() == [3.0, 3.0]
    assert minimise(bowl, np.zeros(2), l1=2.0).x.round(6).tolist() == [2.0, 2.0]
