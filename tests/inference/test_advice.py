"""Which method for a target: what is tried, what fails, what is best where there is no doubt."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference import advice
from gibbsite.inference.advice import measure_efficiency


def test_independent_draws_are_best() -> None:
    strongly = gs.Gaussian(covariance=[[1.0, 0.99], [0.99, 1.0]])
    advice = gs.recommend(strongly, seconds=0.9)
    assert advice.best.name == "ExactGaussian"
    assert isinstance(advice.kernel, gs.kernels.ExactGaussian)
    assert "GaussianGibbs" in advice.table()


def test_a_method_that_fails_comes_last_and_says_why() -> None:
    far = np.full(30_000, 3.0)
    import scipy.sparse as sp

    star = sp.lil_array((30_000, 30_000))
    star[0, :] = star[:, 0] = 1e-6
    advice = gs.recommend(gs.Gaussian(precision=(sp.diags_array(far) + star).tocsr()), seconds=0.9)
    last = advice.candidates[-1]
    assert last.name == "ExactGaussian"
    assert math.isnan(last.rate)
    assert "Cholesky" in last.note


def test_what_applies() -> None:
    density = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + x[1] ** 2), dim=2)
    names = {candidate.name for candidate in gs.recommend(density, seconds=0.3).candidates}
    assert names == {"Metropolis", "Metropolis, one by one", "Slice"}
    with pytest.raises(gs.errors.ModelError, match="seconds"):
        gs.recommend(density, seconds=0)


def test_no_draw_counts_for_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fields, the conditionals of clusters are one half in every draw."""
    model = gs.ising_grid((6, 6), coupling=0.8)
    found = measure_efficiency(model, gs.SwendsenWang(), sweeps=2000, chains=2, rng=1)
    assert found.effective > 10 * found.n_draws
    monkeypatch.setattr(advice, "measure_efficiency", lambda *args, **how: found)
    rates = {one.name: one.rate for one in gs.recommend(model, seconds=1.0).candidates}
    assert rates["SwendsenWang"] == found.n_draws / found.seconds
