"""Functions of ``gibbsite.lab.quiet`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.quiet import autocorrelations, mean_and_error, refusal, sample_quietly


def test_sample_quietly_samples_as_func_gibbsite_sample_does_without_progress() -> None:
    target = gs.Gaussian(covariance=[[1.0]])
    assert sample_quietly(target, gs.kernels.GaussianGibbs(), sweeps=10, rng=1).draws == 10


def test_refusal_returns_what_the_library_says_where_it_refuses_to_do_something_none() -> None:
    assert refusal(lambda: gs.Gaussian(covariance=[[-1.0]]))[:41] == "the covariance is not positive definite: "


def test_autocorrelations_returns_the_autocorrelations_of_chains_of_mean_zero() -> None:
    assert autocorrelations(np.array([[1.0, -1.0, 1.0, -1.0]]), 2).round(2).tolist() == [[-1.0, 1.0]]


def test_mean_and_error_returns_the_mean_over_chains_the_first_axis_and_its_standard() -> None:
    mean, error = mean_and_error(np.array([[1.0], [3.0]]))
    assert (mean.tolist(), error.tolist()) == ([2.0], [1.0])
