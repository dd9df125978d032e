"""Functions of ``gibbsite.lab.dogs.loose_bounds`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.dogs.loose_bounds import looked_at


def test_looked_at_returns_where_a_number_of_steps_stands_among_those_of_the_biases() -> None:
    assert looked_at({"steps of the bias": np.array([16, 32])}, 32) == 1
