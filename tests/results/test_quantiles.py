"""Quantiles and highest-density intervals of numbers, against the law and against ArviZ."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs
from gibbsite.results.measure.measurement import widen

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version
    import arviz as az

LAW = gs.Gaussian([1.0, -20.0], [[4.0, 3.0], [3.0, 9.0]], names=["u", "v"])
TRUE = {"u": stats.norm(1.0, 2.0), "v": stats.norm(-20.0, 3.0)}
AT = (0.01, 0.1, 0.5, 0.9, 0.99)


@pytest.fixture(scope="module")
def result() -> gs.Result:
    return gs.sample(LAW, record=["marginals", "draws"], sweeps=5000, rng=1, progress=False)


def test_quantiles_are_within_their_errors(result: gs.Result):
    found, errors = result.quantiles(probabilities=AT), result.quantiles_mcse(probabilities=AT)
    assert list(found) == list(errors) == ["u", "v"]
    for site, law in TRUE.items():
        for p in AT:
            # ten figures, six standard errors: a false alarm once in 5e7
            assert abs(found[site][p] - law.ppf(p)) < 6 * errors[site][p]


def test_errors_are_the_spread_of_repeated_runs():
    runs = [gs.sample(LAW, record=["draws"], sweeps=500, chains=2, rng=seed, progress=False) for seed in range(40)]
    for p in (0.1, 0.5):
        spread = np.std([run.quantiles("u", p)["u"][p] for run in runs], ddof=1)
        said = np.mean([run.quantiles_mcse("u", p)["u"][p] for run in runs])
        # 39 degrees of freedom: a ratio outside by chance once in 1e8
        assert 0.5 < spread / said < 1.9


def test_arviz_agrees(result: gs.Result):
    draws = result.draws[:, :, 0]
    low, high = result.hdi("u", 0.9)["u"]
    share = ((draws >= low) & (draws <= high)).mean()
    assert share == pytest.approx(0.9, abs=1e-3)
    if hasattr(az, "from_datatree"):  # before ArviZ 1
        np.testing.assert_allclose((low, high), az.hdi(draws.ravel(), hdi_prob=0.9), atol=1e-12)
        theirs = az.mcse(draws, method="quantile", prob=0.1)
        assert result.quantiles_mcse("u", 0.1)["u"][0.1] == pytest.approx(float(theirs), rel=0.05)


def test_the_shortest_interval_of_a_skewed_law(result: gs.Result):
    draws = np.random.default_rng(1).exponential(size=result.draws.shape)
    low, high = replace(result, draws=draws).hdi("u", 0.8)["u"]
    assert low < 0.01  # the density is highest at zero
    assert abs(high + np.log(0.2)) < 0.1  # seven standard errors of that quantile


def test_draws_that_are_not_random_have_errors_from_chains_alone(result: gs.Result):
    each = np.quantile(result.draws[:, :, 0], 0.5, axis=1)
    for errors, factor in (("sums", 1.0), ("chains", widen(4))):
        said = replace(result, errors=errors).quantiles_mcse("u", 0.5)["u"][0.5]
        assert said == pytest.approx(factor * each.std(ddof=1) / 2.0)
    assert np.isnan(replace(result, errors="none").quantiles_mcse("u", 0.5)["u"][0.5])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.quantiles("w"), "no site 'w'"),
        (lambda r: r.quantiles("u", 1.5), "between 0 and 1, got 1.5"),
        (lambda r: r.quantiles("u", [0.5, 0]), "between 0 and 1"),
        (lambda r: r.quantiles("u", "half"), "between 0 and 1, got 'half'"),
        (lambda r: r.quantiles("u", []), "between 0 and 1"),
        (lambda r: r.hdi("u", 95), "between 0 and 1, got 95"),
        (lambda r: r.hdi("u", None), "must be a number, got None"),
    ],
)
def test_mistakes_are_named(ask: Any, message: str, result: gs.Result):
    with pytest.raises(gs.errors.ModelError, match=message):
        ask(result)


def test_draws_that_were_not_recorded():
    plain = gs.sample(LAW, sweeps=500, rng=1, progress=False)
    with pytest.raises(gs.errors.ModelError, match="were not recorded; add 'draws' to record="):
        plain.quantiles()
    with pytest.raises(gs.errors.ModelError, match=r"'u' were not recorded; add 'draws' or gs\.Draws\(\['u'\]\)"):
        plain.hdi("u")


def test_states_have_no_quantiles():
    run = gs.sample(gs.FactorGraph({"a": 3}), record="draws", sweeps=500, rng=1, progress=False)
    with pytest.raises(gs.errors.ModelError, match="all sites have states"):
        run.quantiles()
    with pytest.raises(gs.errors.ModelError, match="'a' has states"):
        run.hdi("a")
