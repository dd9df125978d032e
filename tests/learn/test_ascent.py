"""Functions of ``gibbsite.learn.ascent`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.ascent import Problem, bound_error
from gibbsite.learn.expectation import Exact
from gibbsite.learn.family import make_spins


def test_bound_error_bounds_the_distance_from_the_maximum_of_the_likelihood() -> None:
    family = make_spins(2, np.array([[0, 1]], np.int32), fields=False)
    problem = Problem(family, np.array([0.5]), 1.0, None, None)
    theta = np.array([0.2])
    assert round(bound_error(problem, theta, Exact(family)(theta), 0, 0.1), 3) == 0.104
