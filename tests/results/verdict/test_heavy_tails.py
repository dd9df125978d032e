"""Numbers with heavy tails are judged by ranks, which still notice chains of different widths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import gibbsite as gs

LINE = """model {
  for (i in 1:5) { y[i] ~ dnorm(a + b * (x[i] - 3), tau) }
  a ~ dnorm(0, 0.0001)
  b ~ dnorm(0, 0.0001)
  tau ~ dgamma(0.001, 0.001)
  sigma <- 1 / sqrt(tau)
}"""
DATA = {"x": [1, 2, 3, 4, 5], "y": [1, 3, 3, 3, 5]}


def test_heavy_tails_do_not_refuse_a_right_run() -> None:
    result = gs.bugs(LINE, DATA, ["a", "b", "tau", "sigma"]).sample(sweeps=10_000, rng=1, progress=False)
    # the standard deviation of sigma is not known: its square has no variance
    assert result.ess["sigma"]["sd"] < 400
    assert result.diagnostics.converged, result.diagnostics.reasons
    assert abs(result.marginals["tau"]["mean"] - 1.88) < 0.1


def test_chains_of_different_widths_are_refused() -> None:
    model = gs.Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], names=["x", "y"])
    wanted = gs.Criteria(query=["x"])
    result = gs.sample(model, sweeps=4000, rng=1, record=["marginals", "draws"], criteria=wanted, progress=False)
    assert result.diagnostics.converged
    wider = np.array([1.0, 1.0, 1.5, 1.5])[:, None, None]
    apart = replace(result, draws=result.draws * wider)
    assert any("R-hat" in reason and "sd of x" in reason for reason in apart.diagnostics.reasons)


def test_too_few_visits_to_the_tails_are_refused() -> None:
    model = gs.Gaussian([0.0], [[1.0]], names=["x"])
    wanted = gs.Criteria(query=["x"])
    result = gs.sample(model, sweeps=4000, rng=1, record=["marginals", "draws"], criteria=wanted, progress=False)
    slow = np.sort(np.abs(result.draws).reshape(4, 4, 1000), axis=2).reshape(4, 4000, 1)
    signs = np.where(np.arange(4000) % 2, 1.0, -1.0)[:, None]
    seldom = replace(result, draws=slow * signs)
    assert any("effective draws" in reason and "sd of x" in reason for reason in seldom.diagnostics.reasons)
