"""Functions of ``gibbsite.lab.notes.banana`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.notes.banana import evaluate, gradient, grid, truth, walk


def test_evaluate_returns_the_functions_that_are_compared_in_a_new_last_axis() -> None:
    assert evaluate(np.array(2.0), np.array(1.5)).tolist() == [2.0, 4.0, 1.5, 2.25, 1.0]


def test_grid_returns_the_midpoints_of_a_square_grid_and_the_probabilities_of_its_cells() -> None:
    middle, p = grid(cells=400)
    assert (middle.shape, round(float(p.sum()), 12)) == ((400,), 1.0)


def test_truth_returns_mean_and_standard_deviation_of_all_functions_from_the_grid() -> None:
    assert abs(truth()["x"][0]) < 1e-12


def test_walk_returns_the_means_of_each_of_many_walkers_over_the_second_half_of_steps() -> None:
    assert walk(gradient, 3, 10, np.random.default_rng(1)).shape == (3, 5)
