"""The check of a model passes for every kind of update, and sees updates that are broken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.checks.updates import NAMES
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.model import BugsModel
from gibbsite.testing import check_model

RNG = np.random.default_rng(3)
V = RNG.normal(size=(8, 2))
COUNTS, X = RNG.poisson(3.0, 8), RNG.normal(size=8)
OBSERVED = "for (i in 1:8) { y[i] ~ %s }"
# program, data, and the kinds of its updates
PROGRAMS: dict[str, tuple[str, dict[str, Any], set[int]]] = {
    "forward": (
        "x ~ dnorm(0, 1)  y ~ dgamma(2, 3)  z ~ dpois(4)  u ~ dunif(0, 1)  d[1:2] ~ dmnorm(m[], T[,])",
        {"m": [0, 1], "T": [[2, 1], [1, 3]]},
        {units.FORWARD, units.NORMAL_BLOCK},
    ),
    "predictor block": (
        OBSERVED % "dpois(exp(a + b * x[i]))" + "a ~ dnorm(0, 0.1)  b ~ dnorm(0, 1)",
        {"y": COUNTS, "x": X},
        {units.PREDICTOR_BLOCK},
    ),
    "predictor block of data that it may have no influence on": (
        OBSERVED % "dpois(step(u[i]) * exp(a + b * x[i]))"
        + "for (i in 1:8) { u[i] ~ dnorm(0, 1) }  a ~ dnorm(0, 1)  b ~ dnorm(0, 1)",
        {"y": [0, 3, 0, 5, 1, 0, 0, 4], "x": X},
        {units.PREDICTOR_BLOCK, units.SLICE},
    ),
    "slice of bounded unknowns": (
        OBSERVED % "dgamma(a, b)" + "a ~ dgamma(2, 0.1) T(1, 3)  b ~ dbeta(2, 2)  k ~ dnorm(a, 1) T(0, )",
        {"y": COUNTS + 0.5},
        {units.SLICE},
    ),
    "moves with others": (
        """for (i in 1:8) { y[i] ~ dpois(exp(a + b[i]))  b[i] ~ dnorm(0, t)  z[i] ~ dweib(r, exp(d * x[i])) }
        a ~ dnorm(0, 1)  t ~ dgamma(4, 2)  r ~ dgamma(4, 2)  d ~ dnorm(0, 4)""",
        {"y": COUNTS, "x": X, "z": np.exp(0.3 * X)},
        {units.PREDICTOR_BLOCK, units.SCALED_GAMMA, units.SLICE, units.SCALE, units.SHIFT},
    ),
    "chain": (
        "for (i in 1:12) { y[i] ~ dnorm(k[i], 1) }  k[1] ~ dcat(p[1, ])  for (i in 2:12) { k[i] ~ dcat(p[k[i - 1], ]) }",
        {"y": [*X, 1, 2, 3, 1], "p": [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]},
        {units.CHAIN},
    ),
    "heavy tails": ("x ~ dt(2, 1.5, 1.1)  y ~ dt(x, 1, 2)", {"y": 0.3}, {units.SLICE}),
    "heavy tails without data": ("x ~ dt(2, 1.5, 1.1)", {}, {units.FORWARD}),
    "whole slice": ("y ~ dbin(0.4, n)  n ~ dpois(6)", {"y": 3}, {units.WHOLE_SLICE}),
    "finite": (
        OBSERVED % "dnorm(m[k[i]], 1)" + "for (i in 1:8) { k[i] ~ dcat(p[]) }  h ~ dbern(0.3)  s ~ dnorm(h, 1)",
        {"y": 2 * X, "m": [-1, 0, 2], "p": [0.2, 0.3, 0.5], "s": 0.7},
        {units.FINITE, units.BATCH},
    ),
    "gamma of all dependents": (
        """a ~ dnorm(u, 2 * t)  b ~ dlnorm(0, t)  c ~ dgamma(3, t)  d ~ dweib(2, t)  e ~ ddexp(u, t)  f ~ dpois(3 * t)
        g ~ dexp(t / 2)  h ~ dpar(t, 0.5)  t ~ dgamma(0.5, 0.2)""",
        {"a": 0.3, "b": 2.0, "c": 0.7, "d": 1.2, "e": -0.4, "f": 3, "g": 0.3, "h": 0.9, "u": 0.1},
        {units.SCALED_GAMMA},
    ),
    "gamma of powers": (
        OBSERVED % "dnorm(m, pow(sd, -2))" + "sd ~ dunif(0.1, 5)  m ~ dnorm(0, v)  v <- 1 / w  w ~ dpar(0.5, 0.1)",
        {"y": X},
        {units.SCALED_GAMMA, units.NORMAL_BLOCK},
    ),
    "bounded gamma": (OBSERVED % "dexp(r)" + "r ~ dgamma(2, 1) T(0.2, 0.5)", {"y": COUNTS + 0.1}, {units.SCALED_GAMMA}),
    "gamma of chosen rates": (
        OBSERVED % "dpois(r[k[i]])" + "for (i in 1:8) { k[i] ~ dcat(p[]) } r[1] ~ dgamma(2, 1)  r[2] ~ dexp(0.2)",
        {"y": COUNTS, "p": [0.5, 0.5]},
        {units.SCALED_GAMMA, units.BATCH},
    ),
    "beta": (
        """for (i in 1:4) { y[i] ~ dbern(p)  z[i] ~ dbin(1 - p, n[i])  w[i] ~ dnegbin(p, 3)  v[i] ~ dgeom(q) }
        p ~ dbeta(0.5, 2)  q ~ dunif(0, 1)""",
        {"y": [0, 1, 1, 0], "z": [3, 2, 0, 1], "n": [3, 4, 5, 6], "w": [2, 0, 7, 3], "v": [1, 1, 4, 2]},
        {units.CONJUGATE_BETA},
    ),
    "beta of chosen probabilities": (
        OBSERVED % "dbern(p[k[i]])" + "for (i in 1:8) { k[i] ~ dcat(q[]) }  p[1] ~ dbeta(1, 2)  p[2] ~ dbeta(3, 1)",
        {"y": [0, 1, 1, 0, 1, 1, 1, 0], "q": [0.4, 0.6]},
        {units.CONJUGATE_BETA, units.BATCH},
    ),
    "dirichlet": (
        """for (i in 1:8) { y[i] ~ dcat(p[g[i],])  g[i] ~ dcat(q[]) }  z[1:3] ~ dmulti(p[1,], 6)
        for (k in 1:2) { p[k, 1:3] ~ ddirch(a[]) }  q[1:2] ~ ddirch(b[])""",
        {"y": [1, 2, 3, 3, 3, 2, 1, 1], "z": [1, 2, 3], "a": [0.5, 1, 2], "b": [1, 1]},
        {units.CONJUGATE_DIRICHLET, units.BATCH},
    ),
    "simplex slice": ("p[1:2] ~ ddirch(a[])  y ~ dbin(p[1] * p[1], 9)", {"a": [1.5, 2], "y": 4}, {units.SIMPLEX_SLICE}),
    "longer simplex slice": (
        "p[1:3] ~ ddirch(a[])  y ~ dbin(p[1] * p[2], 9)",
        {"a": [1.5, 2, 1], "y": 2},
        {units.SIMPLEX_SLICE},
    ),
    "gamma between narrow bounds": (
        OBSERVED % "dexp(r)" + "r ~ dgamma(2, 1) T(2, 2.1)",
        {"y": COUNTS + 0.1},
        {units.SCALED_GAMMA},
    ),
    "wishart": (
        """for (i in 1:8) { v[i, 1:2] ~ dmnorm(m[], T[,]) }  m[1:2] ~ dmnorm(o[], I2[,])  T[1:2, 1:2] ~ dwish(R[,], 3)
        S[1:2, 1:2] <- inverse(T[,])""",
        {"v": V, "o": [0, 0], "I2": np.eye(2), "R": [[2, 0.4], [0.4, 1]]},
        {units.CONJUGATE_WISHART, units.NORMAL_BLOCK},
    ),
    "normal": (
        OBSERVED % "dnorm(m[k[i]], 1)"
        + """for (i in 1:8) { k[i] ~ dcat(p[]) }  m[1] ~ dnorm(0, 0.1)  m[2] <- m[1] + d  d ~ dnorm(0, 1)
        w ~ dlnorm(2 * d, 3)""",
        {"y": X, "p": [0.5, 0.5], "w": 1.7},
        {units.CONJUGATE_NORMAL, units.BATCH},
    ),
    "normal between bounds": (
        OBSERVED % "dnorm(m, 1)" + "m ~ dnorm(0, 0.1) T(1, )  w ~ dnorm(2 * u, 3)  u ~ dnorm(-1, 1) T(1, 3)",
        {"y": X, "w": 1.7},
        {units.CONJUGATE_NORMAL},
    ),
    "normal block": (
        """for (i in 1:8) { y[i] ~ dnorm(a[g[i]] + b * x[i], t)  v[i, 1:2] ~ dmnorm(c[i, 1:2], T[,])
          c[i, 1] <- b * x[i] + e  c[i, 2] <- e - 2 * b }
        for (j in 1:3) { a[j] ~ dnorm(mu, 2) }  mu ~ dnorm(0, 0.1)  b ~ dnorm(0, 1)  e ~ dnorm(0.5, 0.3)
        t ~ dgamma(1, 1)""",
        {"y": [*X[:7], None], "x": X[::-1], "g": [1, 2, 3, 1, 2, 3, 1, 2], "v": V, "T": [[2, 0.5], [0.5, 1]]},
        {units.NORMAL_BLOCK, units.SCALED_GAMMA, units.FORWARD},
    ),
    "censored and truncated data": (
        """for (i in 1:4) { c[i] ~ dinterval(t[i], 1.5)  t[i] ~ dweib(2, r)  s[i] ~ dnorm(m, 1) T(0, 3)
          u[i] ~ dexp(r) I(2, ) }
        r ~ dgamma(1, 1)  m ~ dnorm(0, 1)""",
        {"c": [1, 1, 0, 0], "t": [None, 1.9, 0.7, 1.2], "s": [0.3, 1.0, 2.9, 0.1], "u": [2.5, None, 4.1, 3]},
        {units.SLICE, units.SCALED_GAMMA},
    ),
}


def model_of(name: str) -> BugsModel:
    text, data, kinds = PROGRAMS[name]
    model = read_bugs(f"model {{ {text} }}", data)
    rows = model.derived.unit.reshape(-1, units.UNIT_WIDTH)
    assert set(rows[: model.derived.units - 1, units.UPDATE].tolist()) == kinds
    return model


def test_programs_cover_every_kind_of_update() -> None:
    assert set.union(*(kinds for _, _, kinds in PROGRAMS.values())) == set(NAMES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_are_correct(name: str) -> None:
    report = check_model(model_of(name))
    assert report.passed, report
    assert report.checks


BREAKABLE = [
    name for name in PROGRAMS if name not in ("forward", "predictor block", "chain", "heavy tails without data")
]


@pytest.mark.parametrize("name", BREAKABLE)
def test_a_dependent_that_is_left_out_is_seen(name: str) -> None:
    model = model_of(name)
    rows = model.derived.unit.reshape(-1, units.UNIT_WIDTH)
    others = [units.NORMAL_BLOCK, units.PREDICTOR_BLOCK, units.COMPUTE, units.FORWARD, units.SHIFT]
    plain = np.isin(rows[:, units.UPDATE], others, invert=True)
    rows[plain & (rows[:, units.END] > rows[:, units.MIDDLE]), units.END] -= 1
    blocks = rows[:, units.UPDATE] == units.NORMAL_BLOCK
    rows[blocks, units.EXTRA_D] -= 1  # the last group of factors
    assert not check_model(model).passed


@pytest.mark.parametrize("name", ["gamma of powers", "normal block"])
def test_wrong_coefficients_are_seen(name: str) -> None:
    model = model_of(name)
    model.derived.numbers[:] *= 1.0001
    report = check_model(model)
    assert report.failed == {"conditional"}, report


def test_wrong_priors_and_probabilities_are_seen() -> None:
    model = model_of("gamma of all dependents")
    model.derived.unit.reshape(-1, units.UNIT_WIDTH)[0, units.EXTRA_A] = units.EXPONENTIAL_PRIOR
    assert "conditional" in check_model(model).failed
    model = model_of("beta")
    model.derived.unit.reshape(-1, units.UNIT_WIDTH)[:, units.EXTRA_A] ^= 2
    assert "conditional" in check_model(model).failed


@pytest.mark.parametrize(
    "name",
    ["normal", "normal between bounds", "beta", "wishart", "dirichlet", "gamma of all dependents", "normal block"],
)
def test_wrong_draws_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Bench.draws
    monkeypatch.setattr(Bench, "draws", lambda self, *given: honest(self, *given) * 1.15)
    assert "draws" in check_model(model_of(name)).failed


def test_a_slice_that_does_not_shrink_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Bench.update

    def biased(self: Any, unit: int) -> bool:
        found = honest(self, unit)
        self.values[self.places(unit)] += 0.1
        return found

    monkeypatch.setattr(Bench, "update", biased)
    # outside the bounds, the update itself fails
    failed = check_model(model_of("slice of bounded unknowns")).failed
    assert failed
    assert failed <= {"draws", "update"}


def test_a_biased_block_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Bench.update

    def biased(self: Any, unit: int) -> bool:
        found = honest(self, unit)
        self.values[self.places(unit)] += 0.05
        return found

    monkeypatch.setattr(Bench, "update", biased)
    assert check_model(model_of("predictor block")).failed == {"draws"}
