"""Functions of ``gibbsite.lab.dogs.wallclock`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.dogs.dobrushin import paper_order
from gibbsite.lab.dogs.wallclock import bracket_corner, shorten


def test_shorten_returns_the_shortest_scan_whose_bound_is_that_of_some_sweeps_of_a_scan() -> None:
    model = gs.ising_grid((20, 20), coupling=0.15)
    assert len(shorten(model, paper_order(400), 0).order) == 16


def test_bracket_corner_returns_two_numbers_with_e_x_1_of_a_grid_of_any_size_between() -> None:
    low, high = bracket_corner(np.full((2, 50, 50), 0.15), np.full((50, 50), 0.3))
    assert low < high < low + 1e-3
