"""Densities, distribution functions and quantiles as functions of the language are those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.compiled.quantiles import BELOW, DENSITY, QUANTILE, value_of
from tests.applications.bugs.compiled.test_densities import CASES, SCALARS, four
from tests.applications.bugs.programs import computed

SHARES = (1e-6, 0.02, 0.3, 0.5, 0.77, 0.999)


@pytest.mark.parametrize(("code", "given"), CASES)
def test_values_are_those_of_scipy(code: int, given: tuple[float, ...]) -> None:
    law, rest = SCALARS[code][0](*given), four(given)
    for p in SHARES:
        x = float(law.ppf(p))
        if x < 1e-300 and not dist.BY_CODE[code].discrete and code == dist.GAMMA:  # an underflow
            continue
        density = law.pmf(x) if dist.BY_CODE[code].discrete else law.pdf(x)
        assert value_of(3 * code + DENSITY, x, *rest) == pytest.approx(float(density), rel=1e-8)
        below = value_of(3 * code + BELOW, x, *rest)
        assert below == pytest.approx(float(law.cdf(x)), rel=1e-8)
        back = value_of(3 * code + QUANTILE, p, *rest)
        if dist.BY_CODE[code].discrete:
            assert value_of(3 * code + BELOW, back, *rest) >= p - 1e-9
            assert value_of(3 * code + BELOW, back - 1.0, *rest) <= p + 1e-9
        else:
            assert back == pytest.approx(x, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_quantiles_of_what_is_no_probability_are_no_numbers(p: float) -> None:
    assert np.isnan(value_of(3 * dist.NORMAL + QUANTILE, p, 0.0, 1.0, 0.0, 0.0))


def test_functions_of_unknowns_and_of_data() -> None:
    text = """model { for (i in 1:3) { x[i] ~ dgamma(2, 1)  p[i] <- pgamma(x[i], a[i], 2)  d[i] <- dnorm(x[i], a[i], 4) }
      q <- qbeta(0.2, a[1], x[1])  k <- qpois(0.6, 3.5)  z ~ dnorm(k + pexp(a[2], 1), 1) }"""
    x, a = np.array([0.4, 1.0, 3.0]), np.array([1.0, 2.5, 0.7])
    found = computed(text, {"a": a}, {"x": x, "z": 0.0})
    np.testing.assert_allclose(found["p"], [SCALARS[dist.GAMMA][0](s, 2.0).cdf(v) for s, v in zip(a, x, strict=True)])
    np.testing.assert_allclose(found["d"], [SCALARS[dist.NORMAL][0](s, 4.0).pdf(v) for s, v in zip(a, x, strict=True)])
    np.testing.assert_allclose(found["q"], SCALARS[dist.BETA][0](1.0, 0.4).ppf(0.2), rtol=1e-6)
    assert read_bugs(text, {"a": a}).assembly.values.arrays["k"] == SCALARS[dist.POISSON][0](3.5).ppf(0.6)


def test_ranks_orders_and_vectors_that_are_put_together() -> None:
    text = """model { for (i in 1:5) { x[i] ~ dnorm(0, 1) }  r <- rank(x)  o[1:5] <- order(x[])  s <- sort(x[2:4])
      m <- max(c(x[1], x[5]))  c3 <- c(x[1:2], 7)  w <- inprod(rank(x), v)  t2 <- rep(x[1:2], 2)
      b <- t(x) %*% A %*% x  n <- length(x)  d <- dim(A)  y ~ dcat(c(0.5, 0.25 * step(x[1]), 0.25)) }"""
    x, A = np.array([0.3, -1.0, 0.3, 2.0, 0.1]), np.arange(25.0).reshape(5, 5)
    found = computed(text, {"A": A, "v": np.arange(5.0)}, {"x": x, "y": 1.0})
    order = np.argsort(x, kind="stable")
    rank = np.argsort(order, kind="stable") + 1.0
    np.testing.assert_array_equal(found["r"], rank)
    np.testing.assert_array_equal(found["o"], order + 1.0)
    np.testing.assert_array_equal(found["s"], np.sort(x[1:4]))
    assert found["m"] == 0.3 and found["w"] == rank @ np.arange(5.0)
    np.testing.assert_array_equal(found["c3"], [0.3, -1.0, 7.0])
    np.testing.assert_array_equal(found["t2"], [0.3, -1.0, 0.3, -1.0])
    np.testing.assert_allclose(found["b"], x @ A @ x)
