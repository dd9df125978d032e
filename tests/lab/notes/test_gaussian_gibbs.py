"""Functions of ``gibbsite.lab.notes.gaussian_gibbs`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.notes.gaussian_gibbs import autocorrelation, random_map, step_map, sweep_map


def test_step_map_returns_the_matrix_of_a_step_at_site_i() -> None:
    assert step_map(np.array([[1.0, 0.8], [0.8, 2.0]]), 0).round(12).tolist() == [[0.0, 0.4], [0.0, 1.0]]


def test_sweep_map_returns_the_matrix_of_steps_at_some_sites_one_after_the_other() -> None:
    assert sweep_map(np.array([[1.0, 0.8], [0.8, 2.0]]), [0, 1]).round(12).tolist() == [[0.0, 0.4], [0.0, 0.32]]


def test_random_map_returns_the_mean_matrix_of_steps_at_random_sites_as_many_as_said() -> None:
    assert random_map(np.array([[1.0, 0.9], [0.9, 1.0]]), 1).round(12).tolist() == [[0.5, 0.45], [0.45, 0.5]]


def test_autocorrelation_returns_the_autocorrelations_of_a_site_1_2() -> None:
    pair = np.array([[1.0, 0.8], [0.8, 2.0]])
    assert autocorrelation(pair, sweep_map(pair, [0, 1]), 2).round(12).tolist() == [0.32, 0.1024]
