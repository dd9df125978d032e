"""Draws of NumPy have the distributions of the language, cut off or not; false alarms are rarer than 1e-6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs

LAWS: dict[str, Any] = {
    "dnorm(1, 4)": stats.norm(1, 0.5),
    "dlnorm(0.5, 4)": stats.lognorm(0.5, scale=np.exp(0.5)),
    "dt(1, 4, 5)": stats.t(5, 1, 0.5),
    "dgamma(2.5, 3)": stats.gamma(2.5, scale=1 / 3),
    "dchisqr(3)": stats.chi2(3),
    "dexp(2)": stats.expon(scale=0.5),
    "ddexp(1, 2)": stats.laplace(1, 0.5),
    "dlogis(1, 2)": stats.logistic(1, 0.5),
    "dweib(1.5, 2)": stats.weibull_min(1.5, scale=2 ** (-1 / 1.5)),
    "dpar(3, 2)": stats.pareto(3, scale=2),
    "dbeta(2, 3)": stats.beta(2, 3),
    "dunif(-1, 3)": stats.uniform(-1, 4),
    "df(4, 6)": stats.f(4, 6),
    "dgen.gamma(2, 3, 1.5)": stats.gengamma(2, 1.5, scale=1 / 3),
    "dbern(0.3)": stats.bernoulli(0.3),
    "dbin(0.3, 7)": stats.binom(7, 0.3),
    "dpois(2.5)": stats.poisson(2.5),
    "dnegbin(0.3, 2)": stats.nbinom(2, 0.3),
    "dgeom(0.3)": stats.geom(0.3),
    "dhyper(6, 8, 5, 2)": stats.nchypergeom_fisher(14, 6, 5, 2),
    "dbetabin(2, 3, 6)": stats.betabinom(6, 2, 3),
}
MANY = 5000


def drawn(relation: str, data: Any = None) -> Any:
    model = gs.bugs(f"model {{ for (i in 1:{MANY}) {{ y[i] ~ {relation} }} mu ~ dnorm(0, 1) }}", data or {}, "y")
    return model.sample_prior(1, rng=1).parameters["y"][0, 0]


def p_value(draws: Any, law: Any, low: float = -np.inf, high: float = np.inf) -> float:
    """Compare draws with a law between bounds, which are possible values of discrete ones."""
    if hasattr(law.dist, "pmf"):
        values = np.arange(max(law.support()[0], low), min(law.ppf(1 - 1e-9), high) + 1)
        mass = law.pmf(values) / law.pmf(values).sum()
        assert np.isin(draws, values).all()
        seen = (draws[:, None] == values).sum(axis=0)
        both = 2 * np.minimum(stats.binom.cdf(seen, draws.size, mass), stats.binom.sf(seen - 1, draws.size, mass))
        return float(both.min() * values.size)
    assert ((draws >= low) & (draws <= high)).all()
    below, above = law.cdf(low), law.cdf(high)
    return float(stats.kstest(draws, lambda at: (law.cdf(at) - below) / (above - below)).pvalue)


@pytest.mark.parametrize("relation", LAWS)
def test_numbers(relation: str) -> None:
    assert p_value(drawn(relation), LAWS[relation]) > 1e-8


@pytest.mark.parametrize("relation", [each for each in LAWS if "dbern" not in each])
def test_truncated_numbers(relation: str) -> None:
    law = LAWS[relation]
    low, high = np.ceil(law.ppf(0.4) * 4) / 4, law.ppf(0.93)
    if hasattr(law.dist, "pmf"):
        low, high = np.ceil(low), np.floor(high)
    assert p_value(drawn(f"{relation} T({low:.17g}, {high:.17g})"), law, low, high) > 1e-8


@pytest.mark.parametrize(
    ("text", "low", "high"), [("T(5,)", 5, np.inf), ("T(,-5)", -np.inf, -5), ("T(5, 5.1)", 5, 5.1)]
)
def test_the_far_tail_of_a_normal_distribution(text: str, low: float, high: float) -> None:
    law = stats.truncnorm(low, high)
    assert stats.kstest(drawn(f"dnorm(0, 1) {text}"), law.cdf).pvalue > 1e-8


def test_values_of_vectors() -> None:
    p = np.array([1, 3, 0, 4])
    assert p_value(drawn("dcat(p[])", {"p": p}) - 1, stats.rv_discrete(values=(range(4), p / 8))()) > 1e-8
    mixture = drawn("dnormmix(m[], t[], p[])", {"m": [-1, 2], "t": [4, 1], "p": [1, 3]})
    law = [0.25, 0.75] @ np.array([stats.norm(-1, 0.5).cdf(np.sort(mixture)), stats.norm(2, 1).cdf(np.sort(mixture))])
    assert stats.kstest(law, stats.uniform.cdf).pvalue > 1e-8


def vectors(relation: str, data: Any, entries: str = "1:2") -> Any:
    model = gs.bugs(f"model {{ for (i in 1:{MANY}) {{ y[i,{entries}] ~ {relation} }} mu ~ dnorm(0, 1) }}", data, "y")
    return model.sample_prior(1, rng=1).parameters["y"][0, 0]


def test_vectors() -> None:
    T = np.array([[2.0, 0.6], [0.6, 1.0]])
    V = np.linalg.inv(T)
    mean, a = np.array([1.0, -2.0]), np.array([0.3, 0.9])
    sd = np.sqrt(a @ V @ a)
    data = {"m": mean, "T": T}
    for relation, given, law in (
        ("dmnorm(m[], T[,])", data, stats.norm(a @ mean, sd)),
        ("dmnorm.vcov(m[], V[,])", {"m": mean, "V": V}, stats.norm(a @ mean, sd)),
        ("dmt(m[], T[,], 5)", data, stats.t(5, a @ mean, sd)),
    ):
        assert stats.kstest(vectors(relation, given) @ a, law.cdf).pvalue > 1e-8
    simplex = vectors("ddirch(w[])", {"w": [2, 3, 1]}, "1:3")
    assert abs(simplex.sum(axis=1) - 1).max() < 1e-12
    assert stats.kstest(simplex[:, 1], stats.beta(3, 3).cdf).pvalue > 1e-8
    text = "model { for (i in 1:5000) { y[i,1:3] ~ dmulti(w[], 8) } mu ~ dnorm(0, 1) }"
    known = gs.bugs(text, {"w": [2, 3, 1], "y": np.tile([8, 0, 0], (MANY, 1))})
    counts = known.sample_prior(1, rng=1).predictive["y"][0, 0]
    assert (counts.sum(axis=1) == 8).all()
    assert p_value(counts[:, 1], stats.binom(8, 0.5)) > 1e-8


def test_matrices() -> None:
    R, a = np.array([[2.0, 0.6], [0.6, 1.0]]), np.array([0.3, 0.9])
    model = gs.bugs("model { for (i in 1:3000) { W[i,1:2,1:2] ~ dwish(R[,], 5) } mu ~ dnorm(0, 1) }", {"R": R}, "mu")
    found = model.sample_prior(1, rng=1).parameters["W"][0, 0]
    chi = np.einsum("i,kij,j->k", a, found, a) / (a @ np.linalg.solve(R, a))
    assert stats.kstest(chi, stats.chi2(5).cdf).pvalue > 1e-8
