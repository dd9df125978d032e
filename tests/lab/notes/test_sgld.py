"""Functions of ``gibbsite.lab.notes.sgld`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.notes.sgld import TRUE, Regression


def test_make_draws_data_and_solve_for_the_posterior() -> None:
    made = Regression.make(1000, np.random.default_rng(1))
    assert (made.model.n_rows, bool(np.abs(made.mean - TRUE).max() < 0.2)) == (1000, True)


def test_predict_returns_the_stationary_covariance_of_sgld() -> None:
    made = Regression.make(1000, np.random.default_rng(1))
    ula = made.predict(0.5 / made.rows, np.inf)
    assert bool(abs(ula[0, 0] / made.covariance[0, 0] - 1 / 0.75) < 0.1)
