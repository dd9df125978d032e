"""Standard errors of fits: closed forms, and how often they are right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs

EXACT = {"gradient": "exact", "progress": False}


def test_closed_forms() -> None:
    """The variance of artanh of a mean m of N spins is 1 / (N (1 - m^2)) asymptotically."""
    rng = np.random.default_rng(1)
    draws = np.where(rng.random((4000, 2)) < [0.3, 0.8], 1, -1)
    alone = gs.learn.fit_ising(draws[:, :1], [], **EXACT)
    assert alone.standard_errors == pytest.approx([1.0 / np.sqrt(4000 * (1 - draws[:, 0].mean() ** 2))], rel=1e-9)
    pair = gs.learn.fit_ising(draws, [(0, 1)], fields=False, **EXACT)
    mean = (draws[:, 0] * draws[:, 1]).mean()
    assert pair.standard_errors == pytest.approx([1.0 / np.sqrt(4000 * (1 - mean**2))], rel=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_errors_are_as_large_as_they_say(ridge: float) -> None:
    """Estimates of 300 data sets, less their limit and divided by their errors, have mean 0 and variance 1.

    Both tests fail by chance with a probability of 1e-7 for each of six parameters.
    """
    model = gs.ising([[0, 0.4, 0], [0.4, 0, -0.3], [0, -0.3, 0]], [0.2, 0.0, -0.1])
    solved = gs.solve_exact(model, task="PR")
    rng = np.random.default_rng(2)
    pairs = np.stack(np.triu_indices(3, 1), axis=1)
    moments = solved.draw(400_000, rng) * 2.0 - 1.0
    limit = gs.learn.fit_ising(
        moments=moments.T @ moments / len(moments), means=moments.mean(axis=0), ridge=ridge, **EXACT
    ).parameters
    assert len(pairs) == 3
    scores = []
    for _ in range(300):
        fit = gs.learn.fit_ising(solved.draw(2000, rng), ridge=ridge, **EXACT)
        scores.append((fit.parameters - limit) / fit.standard_errors)
    found = np.array(scores)
    # the limit itself is that of finitely many draws
    assert (np.abs(found.mean(axis=0)) < stats.norm.isf(1e-7 / 2) * np.sqrt(1 / 300 + 2000 / 400_000)).all()
    low, high = stats.chi2.interval(1 - 1e-7, 299)
    assert (found.var(axis=0, ddof=1) * 299 > 0.98 * low).all() and (
        found.var(axis=0, ddof=1) * 299 < 1.02 * high
    ).all()


def test_what_is_not_known() -> None:
    rng = np.random.default_rng(3)
    draws = np.where(rng.random((500, 3)) < 0.5, 1, -1)
    draws[:, 2] = draws[:, 1]
    moments = gs.learn.fit_ising(moments=np.eye(2), means=[0.0, 0.1], **EXACT)
    assert np.isnan(moments.standard_errors).all()
    assert np.isnan(gs.learn.fit_pairwise((draws + 1) // 2, [(0, 1)], **EXACT).standard_errors).all()
    boxed = gs.learn.fit_ising(draws, [(0, 1), (1, 2)], fields=False, box=0.5, **EXACT)
    assert np.isnan(boxed.standard_errors).tolist() == [False, True]
    tied = gs.learn.fit_ising(draws, [(0, 1), (1, 2)], fields=False, mixing=0.5, **EXACT)
    assert np.isnan(tied.standard_errors).all()
    constant = gs.learn.fit_ising(draws, [(0, 1), (1, 2)], fields=False, ridge=0.1, **EXACT)
    assert np.isnan(constant.standard_errors).tolist() == [False, True]
