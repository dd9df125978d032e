"""Functions of ``gibbsite.lab.notes.banana`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.notes.banana import walk
from gibbsite.lab.notes.banana_density import gradient


def test_walk_returns_the_means_of_each_of_many_walkers_over_the_second_half_of_steps() -> None:
    assert walk(gradient, 3, 10, np.random.default_rng(1)).shape == (3, 5)
