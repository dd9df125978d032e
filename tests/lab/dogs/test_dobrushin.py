"""Functions of ``gibbsite.lab.dogs.dobrushin`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.dogs.dobrushin import (
    compare_gains,
    draw_parameters,
    guarantee,
    measure_bias,
    paper_influence,
    paper_order,
    random_grid,
    run_short,
)


def test_draw_parameters_draws_the_parameters_of_the_papers_section_5_1() -> None:
    assert [part.shape for part in draw_parameters(10, np.random.default_rng(1))] == [(2, 10, 10), (10, 10)]


def test_random_grid_draws_a_model_of_the_papers_section_5_1() -> None:
    assert random_grid(10, np.random.default_rng(1)).n_sites == 100


def test_paper_order_returns_the_systematic_scan_of_the_paper_q_t_e_t_mod_p_1_t_1_2() -> None:
    assert paper_order(4).order.tolist() == [1, 2, 3, 0]


def test_paper_influence_returns_the_bounds_of_theorem_11_which_the_paper_takes() -> None:
    model = gs.ising_grid((9, 9), coupling=0.165, periodic=True)
    assert (
        round(paper_influence(model).norms.row_sum, 3),
        round(gs.influence.bound_influence(model).norms.row_sum, 3),
    ) == (0.654, 0.637)


def test_guarantee_bounds_the_bias_after_each_number_of_steps() -> None:
    model = gs.ising_grid((4, 4), coupling=0.1)
    curves, scans = guarantee(model, np.array([16, 32]), paper_influence(model))
    assert (bool((curves["DoGS"] <= curves["systematic"]).all()), len(scans[1].order)) == (True, 32)


def test_measure_bias_returns_e_x_of_a_site_after_each_number_of_steps_from_1() -> None:
    model = gs.ising_grid((5, 5), coupling=0.1)
    bias = measure_bias(model, gs.Systematic(), np.array([25, 250]), chains=1000, rng=1)
    assert (bool(bias[0] > bias[1]), bool(bias[1] < 0.01)) == (True, True)


def test_compare_gains_says_how_much_smaller_the_bound_and_the_bias_of_the_second_scan() -> None:
    assert compare_gains((0.5, 0.005), (0.3, 0.0), 1000) == ("100", "> 100")


def test_run_short_returns_the_states_of_some_sites_after_each_number_of_steps_in_many() -> None:
    model, ones = gs.ising_grid((5, 5), coupling=0.2), np.ones(25, int)
    steps, corner = np.array([25, 500]), np.array([0])
    x = run_short(model, gs.Systematic(), steps, corner, chains=1000, start=ones, rng=1)
    assert (bool(x[0].mean() > x[1].mean()), bool(abs(x[1].mean() - 0.5) < 0.1)) == (True, True)
