"""Functions of ``gibbsite.lab.dogs.mle`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.dogs.mle import (
    BOX,
    METHODS,
    choose_scan,
    count_gradients,
    count_updates,
    descend,
    exact_moments,
    first_below,
    fit,
    list_edges,
    make_model,
    pose,
)


def test_count_gradients_returns_domkes_number_of_gradient_steps() -> None:
    assert count_gradients(4) == 46


def test_count_updates_returns_domkes_number_of_updates_of_a_chain() -> None:
    assert (count_updates(3), count_updates(4)) == (291, 561)


def test_list_edges_returns_the_pairs_of_neighbours_of_a_square_grid() -> None:
    assert list_edges(2).tolist() == [[0, 2], [1, 3], [0, 1], [2, 3]]


def test_make_model_returns_the_grid_with_these_couplings_in_the_order_of_func_list() -> None:
    assert make_model(3, np.zeros(12)).n_sites == 9


def test_descend_takes_one_step_of_projected_gradient_descent_on_minus_the_penalised() -> None:
    assert descend(np.zeros(2), np.array([0.1, 9.0]), np.zeros(2)).tolist() == [-0.010000000000000002, -0.2]


def test_pose_draws_training_vectors_and_find_the_best_couplings_by_exact_gradients() -> None:
    data = pose(3, np.random.default_rng(1))
    assert bool(np.abs(data.best).max() <= BOX)


def test_exact_moments_returns_e_x_i_x_j_over_the_edges_from_the_products_in_all_states() -> None:
    assert exact_moments(np.array([[1.0], [-1.0]]), np.array([0.5])).round(6).tolist() == [0.462117]


def test_choose_scan_returns_the_scan_of_a_method_for_the_present_couplings_and_how() -> None:
    assert [choose_scan(method, make_model(3, np.full(12, 0.2)), 3)[1] for method in METHODS] == [291, 135, 57, 55]


def test_fit_fits_the_couplings_of_a_grid() -> None:
    found = fit("certified, systematic", pose(3, np.random.default_rng(1)), 2, 100, 1)
    assert (found.updates[:2], found.errors[1] < found.errors[0]) == ([0, 9], True)


def test_first_below_returns_the_updates_per_chain_until_the_error_is_first_below() -> None:
    assert first_below(np.array([[1.0, 0.01, 0.2]]), np.array([[0, 50, 90]])).tolist() == [50.0]
