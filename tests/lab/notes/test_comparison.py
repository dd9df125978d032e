"""Functions of ``gibbsite.lab.notes.comparison`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.notes.comparison import autoregressive, mean_and_precision


def test_autoregressive_returns_n_normal_numbers_of_variance_1_in_a_row() -> None:
    assert autoregressive(2, 0.9).density.log_potential([1.0, 0.9]) == -0.5


def test_mean_and_precision_returns_the_posterior_of_mean_m_and_precision_t_of_normal() -> None:
    assert repr(mean_and_precision().gibbs[0]) == "Conditionals(2 sites in 2 blocks)"
