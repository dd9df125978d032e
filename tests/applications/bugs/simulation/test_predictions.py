"""Predictions, log-likelihoods, the DIC and draws from the prior have the distributions known in closed form.

Thresholds of statistical tests are exceeded with a probability below 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs
from gibbsite.errors import ArgumentError, ModelError

CONJUGATE = "model { for (i in 1:N) { y[i] ~ dnorm(mu, 0.25) }  mu ~ dnorm(1, 0.04) }"
DATA = {"N": 6, "y": [3.1, 0.4, 2.2, 5.0, 1.7, 2.9]}
# posterior of the mean
PRECISION = 0.04 + 6 * 0.25
CENTRE = (0.04 * 1 + 0.25 * sum(DATA["y"])) / PRECISION  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def conjugate() -> tuple[Any, Any]:
    """A normal mean, whose draws are independent."""
    model = gs.bugs(CONJUGATE, DATA)
    return model, model.sample(sweeps=5000, chains=2, rng=1, progress=False)


def test_log_likelihoods_are_those_of_the_draws(conjugate: tuple[Any, Any]) -> None:
    model, result = conjugate
    found = model.log_likelihood(result)["y"]
    wanted = stats.norm(result.draws, 2.0).logpdf(np.array(DATA["y"]))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_predictions_have_the_predictive_distribution(conjugate: tuple[Any, Any]) -> None:
    model, result = conjugate
    found = model.predict(result, rng=2)["y"]
    law = stats.norm(CENTRE, np.sqrt(1 / PRECISION + 4.0))
    assert found.shape == (2, 5000, 6)
    assert min(stats.kstest(found[..., k].ravel(), law.cdf).pvalue for k in range(6)) > 1e-7
    # predictions share the mean of their draw
    covariance = np.cov(found.reshape(-1, 6).T)[0, 1:]
    assert abs(covariance - 1 / PRECISION).max() < 6 * 6.0 / np.sqrt(10_000)
    again = model.predict(result, rng=2)["y"]
    assert np.array_equal(found, again)


def test_the_criterion_is_that_of_one_normal_mean(conjugate: tuple[Any, Any]) -> None:
    model, result = conjugate
    found = model.dic(result)
    y = np.array(DATA["y"])
    spread = ((y - CENTRE) ** 2).sum() + 6 / PRECISION
    deviance = 6 * np.log(2 * np.pi * 4.0) + spread / 4.0
    a, away = 1.5 / PRECISION, 1.5 * (CENTRE - y.mean()) ** 2 * 4  # the deviance is a scaled chi-squared number
    half_variance = (2 * a**2 + a * away) / 2
    assert found.deviance == pytest.approx(deviance, abs=6 * np.sqrt(2 * half_variance / 10_000))
    assert found.parameters == pytest.approx(half_variance, rel=6 * np.sqrt(14 / 10_000))
    assert found.dic == found.deviance + found.parameters


def test_arviz_leaves_one_out(conjugate: tuple[Any, Any]) -> None:
    arviz = pytest.importorskip("arviz")
    model, result = conjugate
    tree = result.to_arviz(posterior_predictive=model.predict(result, rng=1))
    y, exact = np.array(DATA["y"]), 0.0
    for k in range(6):  # the predictive density of each number given the others
        precision = PRECISION - 0.25
        centre = (PRECISION * CENTRE - 0.25 * y[k]) / precision
        exact += stats.norm(centre, np.sqrt(4.0 + 1 / precision)).logpdf(y[k])
    assert float(arviz.loo(tree).elpd_loo) == pytest.approx(exact, abs=0.05)
    if hasattr(arviz, "waic"):
        assert float(arviz.waic(tree).elpd_waic) == pytest.approx(exact, abs=0.3)
    assert tree["observed_data"]["y"].values.tolist() == DATA["y"]
    assert tree["posterior_predictive"]["y"].dims == ("chain", "draw", "y_dim_0")


def test_saved_results_are_explained_by_their_model(conjugate: tuple[Any, Any], tmp_path: Any) -> None:
    model, result = conjugate
    gs.save(result, tmp_path / "run")
    loaded = gs.load(tmp_path / "run")
    assert np.array_equal(model.log_likelihood(loaded)["y"], model.log_likelihood(result)["y"])
    assert "log_likelihood" not in loaded.to_datatree().children
    assert "log_likelihood" in result.to_datatree().children


def test_dimensions_have_names() -> None:
    text = "model { for (i in 1:2) { for (j in 1:3) { y[i,j] ~ dnorm(b[i], 1) }  b[i] ~ dnorm(0, 1) } }"
    result = gs.bugs(text, {"y": [[1, 2, 3], [4, 5, 6]]}).sample(sweeps=50, rng=1, progress=False)
    names = {"dims": {"b": ["school"], "y": ["school", "year"]}, "coords": {"school": ["A", "B"]}}
    tree = result.to_datatree(**names)
    assert tree["posterior/b"].dims == ("chain", "draw", "school")
    assert tree["log_likelihood/y"].dims == ("chain", "draw", "school", "year")
    assert tree["observed_data/y"].sel(school="B").values.tolist() == [4, 5, 6]
    with pytest.raises(ArgumentError, match="'b' has 1 dimensions, and 2 names"):
        result.to_datatree(dims={"b": ["one", "other"]})
    with pytest.raises(ArgumentError, match="'school' has 2 entries, and 1 names"):
        result.to_datatree(dims={"b": ["school"]}, coords={"school": ["A"]})
    with pytest.raises(ArgumentError, match="must have the dimensions chain, draw"):
        result.to_datatree(posterior_predictive={"y": [1.0]})


def test_elements_without_a_likelihood_are_left_out() -> None:
    text = """model {
       for (i in 1:4) { y[i] ~ dnorm(m[i], 1)  m[i] ~ dnorm(0, 1)  c[i] ~ dinterval(y[i], -3) }
       for (i in 1:2) { n[i,1:3] ~ dmulti(p[], 5) }
       p[1:3] ~ ddirch(a[])
    }"""
    data = {"y": [1, None, 0, None], "c": [1, 1, 1, 1], "n": [[1, 2, 2], [3, 1, 1]], "a": [1, 1, 1]}
    model = gs.bugs(text, data, ["m", "p", "y"])
    result = model.sample(sweeps=100, rng=1, progress=False)
    found = model.log_likelihood(result)
    assert {name: each.shape for name, each in found.items()} == {"y": (4, 100, 2), "n": (4, 100, 2)}
    p = result.draws_dataframe()[["p[1]", "p[2]", "p[3]"]].to_numpy()
    wanted = stats.multinomial(5, p / p.sum(axis=1, keepdims=True)).logpmf([3, 1, 1])
    np.testing.assert_allclose(found["n"][..., 1].ravel(), wanted, rtol=1e-9)
    predicted = model.predict(result, rng=1)
    assert predicted["n"].shape == (4, 100, 2, 3)
    assert (predicted["n"].sum(axis=-1) == 5).all()


def test_draws_that_are_needed_must_be_recorded() -> None:
    text = "model { for (i in 1:3) { y[i] ~ dnorm(theta[i], 1)  theta[i] ~ dnorm(mu, 1) }  mu ~ dnorm(0, 1) }"
    model = gs.bugs(text, {"y": [1, 2, 3]}, "mu")
    result = model.sample(sweeps=50, rng=1, progress=False)
    for ask in (model.log_likelihood, model.predict, model.dic):
        with pytest.raises(ArgumentError, match="draws of theta are needed, and were not recorded"):
            ask(result)
    assert set(result.to_datatree().children) == {"posterior", "observed_data", "moments"}
    with pytest.raises(ArgumentError, match="another model"):
        gs.bugs(CONJUGATE, DATA).log_likelihood(result)
    with pytest.raises(ModelError, match="no observations"):
        free = gs.bugs("model { x ~ dnorm(0, 1) }")
        free.predict(free.sample(sweeps=50, rng=1, progress=False))


def test_the_prior_is_drawn_from_causes_to_effects() -> None:
    text = """model {
       y[1] ~ dnorm(mu, 1)
       for (t in 2:T) { y[t] ~ dnorm(0.5 * y[t-1], 1 / s^2) }
       mu ~ dnorm(3, 1)
       s <- sqrt(v)
       v ~ dgamma(2, 1)
    }"""
    prior = gs.bugs(text, {"T": 4, "y": [1, 2, 3, 4]}).sample_prior(20_000, rng=1)
    y, v = prior.predictive["y"][0], prior.parameters["v"][0]
    np.testing.assert_allclose(prior.parameters["s"][0] ** 2, v, rtol=1e-12)
    assert set(prior.parameters) == {"s", "mu", "v"}
    assert stats.kstest(y[:, 0], stats.norm(3, np.sqrt(2)).cdf).pvalue > 1e-7
    assert stats.kstest((y[:, 3] - 0.5 * y[:, 2]) / np.sqrt(v), stats.norm.cdf).pvalue > 1e-7
    assert abs(np.corrcoef(y[:, 0], prior.parameters["mu"][0])[0, 1] - np.sqrt(0.5)) < 6 * 0.5 / np.sqrt(20_000)


def test_improper_priors_cannot_be_drawn() -> None:
    model = gs.bugs("model { y ~ dnorm(mu, 1)  mu ~ dflat() }", {"y": 1})
    with pytest.raises(ModelError, match="'dflat' is no proper distribution"):
        model.sample_prior(10)
    with pytest.raises(ArgumentError, match="draws"):
        model.sample_prior(0)
