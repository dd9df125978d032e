"""Distribution functions and quantiles are those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from gibbsite._numba.jit import compiled
from gibbsite.applications.bugs.compiled import special as source


class own:
    """The functions, compiled."""

    @staticmethod
    @compiled
    def normal_cdf(x: float) -> float:
        return source.normal_cdf(x)

    @staticmethod
    @compiled
    def log_factorial(n: float) -> float:
        return source.log_factorial(n)

    @staticmethod
    @compiled
    def log_normal_cdf(x: float) -> float:
        return source.log_normal_cdf(x)

    @staticmethod
    @compiled
    def normal_quantile(p: float) -> float:
        return source.normal_quantile(p)

    @staticmethod
    @compiled
    def log_gamma_tails(a: float, x: float) -> tuple[float, float]:
        return source.log_gamma_tails(a, x)

    @staticmethod
    @compiled
    def log_beta_tails(a: float, b: float, x: float) -> tuple[float, float]:
        return source.log_beta_tails(a, b, x)


def test_normal_distribution_function_and_quantiles() -> None:
    x = np.linspace(-37.0, 9.0, 2001)
    np.testing.assert_allclose([own.normal_cdf(each) for each in x], special.ndtr(x), rtol=1e-12)
    np.testing.assert_allclose([own.log_normal_cdf(each) for each in x], special.log_ndtr(x), rtol=1e-11, atol=1e-300)
    p = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 2001), 10.0 ** -np.arange(7, 300, 11)])
    np.testing.assert_allclose([own.normal_quantile(each) for each in p], special.ndtri(p), rtol=1e-13, atol=1e-15)
    assert own.normal_quantile(0.0) == -np.inf and own.normal_quantile(1.0) == np.inf
    assert np.isnan(own.normal_quantile(1.1)) and np.isnan(own.normal_quantile(-0.1))


@pytest.mark.parametrize("a", [0.01, 0.5, 1.0, 3.7, 50.0, 2000.0])
def test_gamma_tails(a: float) -> None:
    law = stats.gamma(a)
    for x in law.ppf([1e-10, 0.01, 0.3, 0.7, 0.99, 1 - 1e-10]):
        below, above = own.log_gamma_tails(a, x)
        assert np.exp(below) == pytest.approx(special.gammainc(a, x), rel=1e-10)
        assert np.exp(above) == pytest.approx(special.gammaincc(a, x), rel=1e-10)


@pytest.mark.parametrize("a", [0.05, 1.0, 7.3, 300.0])
@pytest.mark.parametrize("b", [0.05, 1.0, 2.2, 900.0])
def test_beta_tails(a: float, b: float) -> None:
    for x in (0.001, 0.1, 0.25, 0.5, 0.77, 0.98):
        below, above = own.log_beta_tails(a, b, x)
        cdf, sf = special.betainc(a, b, x), special.betaincc(a, b, x)
        if cdf > 1e-300 and sf > 1e-300:
            assert np.exp(below) == pytest.approx(cdf, rel=1e-9)
            assert np.exp(above) == pytest.approx(sf, rel=1e-9)


def test_logarithms_of_factorials() -> None:
    for n in (0.0, 1.0, 2.5, 127.0, 128.0, 129.0, 2000.0, 1e8):
        assert own.log_factorial(n) == pytest.approx(special.gammaln(n + 1.0), rel=1e-14)
