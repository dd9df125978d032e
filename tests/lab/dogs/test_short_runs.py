"""Functions of ``gibbsite.lab.dogs.short_runs`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.dogs.short_runs import run_short


def test_run_short_returns_the_states_of_some_sites_after_each_number_of_steps_in_many() -> None:
    model, ones = gs.ising_grid((5, 5), coupling=0.2), np.ones(25, int)
    steps, corner = np.array([25, 500]), np.array([0])
    x = run_short(model, gs.Systematic(), steps, corner, chains=1000, start=ones, rng=1)
    assert (bool(x[0].mean() > x[1].mean()), bool(abs(x[1].mean() - 0.5) < 0.1)) == (True, True)
