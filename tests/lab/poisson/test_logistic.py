"""Functions of ``gibbsite.lab.poisson.logistic`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.poisson.logistic import draw_data


def test_draw_data_draws_rows_and_labels() -> None:
    rows, labels = draw_data(1000, np.random.default_rng(1))
    assert rows.shape == (1000, 6)
    assert 0.2 < labels.mean() < 0.8
