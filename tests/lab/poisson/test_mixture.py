"""Functions of ``gibbsite.lab.poisson.mixture`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.kernels.minibatch.factors import local_energies
from gibbsite.lab.poisson.mixture import (
    bin_data,
    draw_data,
    energy_of,
    histogram,
    log_acceptance,
    make_model,
    share_of_first_mode,
    true_probabilities,
    try_rejection,
    variation,
)


def test_draw_data_draws_numbers_from_the_mixture_at_0_1() -> None:
    assert bool(abs(draw_data(10_000, np.random.default_rng(1)).mean() - 0.5) < 0.1)


def test_make_model_returns_the_posterior_its_likelihood_worth_a_hundred_numbers() -> None:
    model = make_model(draw_data(10_000, np.random.default_rng(1)))
    assert 1300 < local_energies(gs.graphs.compile_graph(model)).largest < 1500


def test_true_probabilities_returns_the_probabilities_of_the_cells_of_a_square_grid() -> None:
    p = true_probabilities(draw_data(10_000, np.random.default_rng(1)), 24)
    assert (p.shape, round(float(p.sum()), 12)) == ((24, 24), 1.0)


def test_share_of_first_mode_returns_the_probability_of_x_2_0_where_the_first_mode() -> None:
    assert share_of_first_mode(np.array([[0.1, 0.2], [0.3, 0.4]])) == 0.6000000000000001


def test_histogram_returns_the_shares_of_draws_draws_2_in_the_cells() -> None:
    assert float(histogram(np.array([[0.1, 0.1], [0.1, -0.1]])).max()) == 0.5


def test_log_acceptance_returns_the_logarithm_base_10_of_the_share_of_uniform_proposals() -> None:
    rng = np.random.default_rng(1)
    data = draw_data(10_000, rng)
    assert log_acceptance(make_model(data), data, 1410.0, rng) < -6


def test_variation_returns_the_total_variation_between_two_laws() -> None:
    assert variation(np.array([0.5, 0.5]), np.array([0.75, 0.25])) == 0.25


def test_bin_data_keeps_the_number_and_the_mean_of_the_data() -> None:
    data = draw_data(3_000, np.random.default_rng(1))
    means, counts = bin_data(data)
    assert (counts.sum(), round(float(means @ counts / 3_000 - data.mean()), 12)) == (3_000, 0.0)


def test_energy_of_is_the_log_density_of_the_model_up_to_a_constant() -> None:
    data = draw_data(10_000, np.random.default_rng(1))
    energy = energy_of(data)
    places = np.array([[0.0, 1.0], [1.0, -1.0], [-3.0, 2.0]])
    exact = []
    for first, second in places:
        near, far = (-((data - mean) ** 2) / 4.0 for mean in (first, first + second))
        exact.append(0.01 * np.logaddexp(near, far).sum() - first**2 / 20.0 - second**2 / 2.0)
    np.testing.assert_allclose(np.diff(energy(places[:, 0], places[:, 1])), np.diff(exact), rtol=1e-3)


def test_draws_by_rejection_have_the_posterior_as_their_law() -> None:
    data = draw_data(10_000, np.random.default_rng(1))
    draws, tries = try_rejection(data, 4_000, np.random.default_rng(2))
    assert 700 < tries < 1500
    p = true_probabilities(data)
    centre = (np.arange(p.shape[0]) + 0.5) / 4 - 6.0
    both = centre[:, None] + centre / 2  # its posterior is narrow, and one piece
    # deviation 0.16, at least 100 independent draws among 4000: 6 sigma
    assert abs(((histogram(draws) - p) * both).sum()) < 6 * 0.16 / np.sqrt(100)
