"""Functions of ``gibbsite.lab.chains`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.chains import (
    autocorrelations,
    envelope,
    fit_slope,
    follow,
    mean_and_error,
    refusal,
    sample_quietly,
    space_lengths,
)


def test_follow_returns_the_averages_of_all_recorded_cells_after_each_number_of_sweeps() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 2], [2, 3]])])
    found = follow(model, gs.HerdedGibbs(), np.array([10, 1000]), gs.recorders.Joint([("a", "b")]))
    assert bool(np.abs(found[0, 1] - [0.3, 0.2, 0.2, 0.3]).max() < 0.01)


def test_space_lengths_returns_numbers_of_sweeps_evenly_spaced_on_a_logarithmic_scale() -> None:
    assert space_lengths(1000, per_decade=2).tolist() == [100, 316, 1000]


def test_envelope_returns_the_largest_error_from_each_length() -> None:
    assert envelope(np.array([4.0, 1.0, 2.0, 0.5])).tolist() == [4.0, 2.0, 2.0, 0.5]


def test_fit_slope_returns_the_slope_of_errors_against_lengths_in_logarithms() -> None:
    assert round(fit_slope(np.array([1, 10, 100]), np.array([3.0, 0.3, 0.03])), 6) == -1.0


def test_sample_quietly_samples_as_func_gibbsite_sample_does_without_progress() -> None:
    target = gs.Gaussian(covariance=[[1.0]])
    assert sample_quietly(target, gs.kernels.GaussianGibbs(), sweeps=10, rng=1).n_draws == 10


def test_refusal_returns_what_the_library_says_where_it_refuses_to_do_something_none() -> None:
    assert refusal(lambda: gs.Gaussian(covariance=[[-1.0]]))[:41] == "the covariance is not positive definite: "


def test_autocorrelations_returns_the_autocorrelations_of_chains_of_mean_zero() -> None:
    assert autocorrelations(np.array([[1.0, -1.0, 1.0, -1.0]]), 2).round(2).tolist() == [[-1.0, 1.0]]


def test_mean_and_error_returns_the_mean_over_chains_the_first_axis_and_its_standard() -> None:
    mean, error = mean_and_error(np.array([[1.0], [3.0]]))
    assert (mean.tolist(), error.tolist()) == ([2.0], [1.0])
