"""Log-densities and probabilities of intervals are those of SciPy, also outside the support and far in the tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbsite._numba.jit import compiled
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import densities

INF = math.inf


@compiled
def log_density(code: int, x: float, a: float, b: float, c: float, d: float) -> float:
    return densities.log_density(code, x, a, b, c, d)


@compiled
def log_mass_between(
    code: int, low: float, high: float, a: float, b: float, c: float, d: float, discrete: bool
) -> float:
    return densities.log_mass_between(code, low, high, a, b, c, d, discrete)


# the distribution of SciPy, and parameters
SCALARS: dict[int, tuple[Any, list[tuple[float, ...]]]] = {
    dist.NORMAL: (lambda m, t: stats.norm(m, t**-0.5), [(0.5, 2.0), (-3.0, 1e-4), (0.0, 1e4)]),
    dist.LOGNORMAL: (lambda m, t: stats.lognorm(t**-0.5, scale=math.exp(m)), [(0.5, 2.0), (-1.0, 0.3)]),
    dist.STUDENT: (lambda m, t, k: stats.t(k, m, t**-0.5), [(0.5, 2.0, 3.0), (-2.0, 0.1, 1.0), (0.0, 1.0, 40.0)]),
    dist.GAMMA: (lambda r, s: stats.gamma(r, scale=1 / s), [(0.01, 0.02), (3.0, 5.0), (250.0, 10.0), (1.0, 2.0)]),
    dist.CHI_SQUARED: (lambda k: stats.chi2(k), [(1.0,), (7.5,)]),
    dist.EXPONENTIAL: (lambda s: stats.expon(scale=1 / s), [(0.1,), (3.0,)]),
    dist.DOUBLE_EXPONENTIAL: (lambda m, t: stats.laplace(m, 1 / t), [(0.5, 2.0), (-3.0, 0.1)]),
    dist.LOGISTIC: (lambda m, t: stats.logistic(m, 1 / t), [(0.5, 2.0), (-3.0, 0.1)]),
    dist.WEIBULL: (lambda v, s: stats.weibull_min(v, scale=s ** (-1 / v)), [(0.7, 2.0), (3.0, 0.2)]),
    dist.PARETO: (lambda a, c: stats.pareto(a, scale=c), [(2.0, 0.5), (0.3, 4.0)]),
    dist.BETA: (lambda a, b: stats.beta(a, b), [(0.5, 0.4), (3.0, 7.0), (200.0, 100.0)]),
    dist.UNIFORM: (lambda a, b: stats.uniform(a, b - a), [(-1.0, 3.0)]),
    dist.F: (lambda n, m: stats.f(n, m), [(3.0, 5.0), (1.0, 20.0)]),
    dist.GENERALISED_GAMMA: (lambda r, s, b: stats.gengamma(r, b, scale=1 / s), [(2.0, 0.5, 1.5), (0.7, 3.0, 0.6)]),
    dist.BERNOULLI: (lambda p: stats.bernoulli(p), [(0.3,), (0.999,)]),
    dist.BINOMIAL: (lambda p, n: stats.binom(int(n), p), [(0.3, 10.0), (0.01, 200.0), (0.5, 1.0)]),
    dist.POISSON: (lambda m: stats.poisson(m), [(0.2,), (5.0,), (400.0,)]),
    dist.NEGATIVE_BINOMIAL: (lambda p, r: stats.nbinom(r, p), [(0.3, 2.5), (0.8, 0.4), (0.05, 30.0)]),
    dist.GEOMETRIC: (lambda p: stats.geom(p), [(0.3,), (0.9,)]),
    dist.HYPERGEOMETRIC: (
        lambda a, b, m, psi: stats.nchypergeom_fisher(int(a + b), int(a), int(m), psi),
        [(8.0, 6.0, 5.0, 1.0), (8.0, 3.0, 7.0, 2.5), (4.0, 9.0, 3.0, 0.2)],
    ),
    dist.BETA_BINOMIAL: (lambda a, b, n: stats.betabinom(int(n), a, b), [(2.0, 3.0, 10.0), (0.4, 0.7, 25.0)]),
}
CASES = [(code, given) for code, (_, many) in SCALARS.items() for given in many]
TRUNCATED = [case for case in CASES if case[0] not in (dist.BERNOULLI,)]


def four(given: tuple[float, ...]) -> tuple[float, ...]:
    return (*given, 0.0, 0.0, 0.0, 0.0)[:4]


def points(code: int, law: Any) -> np.ndarray:
    if dist.BY_CODE[code].discrete:
        middle = law.ppf([0.001, 0.1, 0.5, 0.9, 0.999])
        return np.unique(np.concatenate([middle, middle + 3.0, [0.0, 1.0, -1.0]]))
    quantiles = law.ppf([1e-8, 0.001, 0.1, 0.37, 0.5, 0.9, 0.999, 1 - 1e-9])
    return np.concatenate([quantiles, [-2.7, -0.3, 0.0, 0.4, 1.7]])


@pytest.mark.parametrize(("code", "given"), CASES)
def test_log_densities(code: int, given: tuple[float, ...]) -> None:
    law = SCALARS[code][0](*given)
    expected = law.logpmf if dist.BY_CODE[code].discrete else law.logpdf
    for x in points(code, law):
        found = log_density(code, x, *four(given))
        wanted = float(expected(x))
        if not dist.BY_CODE[code].discrete and x in (0.0, *law.support()):
            continue  # the edge of an open interval
        assert found == wanted or abs(found - wanted) < 1e-10 * max(1.0, abs(wanted)), (x, found, wanted)


@pytest.mark.parametrize("code", [code for code in SCALARS if dist.BY_CODE[code].discrete])
def test_discrete_values_are_whole(code: int) -> None:
    given = SCALARS[code][1][0]
    assert log_density(code, 1.5, *four(given)) == -INF
    assert log_density(code, -1.0, *four(given)) == -INF


@pytest.mark.parametrize(
    ("code", "given"),
    [
        *(
            (code, (0.3, value))
            for code in (dist.NORMAL, dist.LOGNORMAL, dist.GAMMA, dist.WEIBULL)
            for value in (0, -1)
        ),
        *((code, (-0.1, 1.0)) for code in (dist.GAMMA, dist.EXPONENTIAL, dist.BETA, dist.POISSON, dist.CHI_SQUARED)),
        *((code, (1.1, 3.0)) for code in (dist.BERNOULLI, dist.BINOMIAL, dist.NEGATIVE_BINOMIAL, dist.GEOMETRIC)),
        *((code, (math.nan, 3.0)) for code in SCALARS if code not in (dist.NORMAL, dist.FLAT)),
        (dist.UNIFORM, (1.0, 0.0)),
        (dist.STUDENT, (0.0, 1.0, -1.0)),
        (dist.DOUBLE_EXPONENTIAL, (0.0, -1.0)),
        (dist.LOGISTIC, (0.0, 0.0)),
        (dist.HYPERGEOMETRIC, (3.0, 4.0, 2.0, -1.0)),
        (dist.BETA_BINOMIAL, (1.0, -1.0, 3.0)),
    ],
)
def test_parameters_outside_their_range(code: int, given: tuple[float, ...]) -> None:
    assert not log_density(code, 1.0, *four(given)) > -INF


@pytest.mark.parametrize(("code", "given"), TRUNCATED)
def test_probabilities_of_intervals(code: int, given: tuple[float, ...]) -> None:
    law, discrete = SCALARS[code][0](*given), dist.BY_CODE[code].discrete
    low, middle, high = law.ppf([0.02, 0.4, 0.97])
    for a, b in [(-INF, middle), (middle, INF), (low, high), (-INF, INF), (low, middle), (middle, high)]:
        found = log_mass_between(code, a, b, *four(given), discrete)
        wanted = float(law.cdf(b) - law.cdf(math.ceil(a) - 1 if discrete and a > -INF else a))
        assert abs(math.exp(found) - wanted) < 1e-10 * wanted, (a, b)
    assert log_mass_between(code, 5.0, 4.0, *four(given), discrete) == -INF


@pytest.mark.parametrize(("code", "given"), TRUNCATED)
def test_probabilities_of_far_tails(code: int, given: tuple[float, ...]) -> None:
    law, discrete = SCALARS[code][0](*given), dist.BY_CODE[code].discrete
    if code in (dist.UNIFORM, dist.HYPERGEOMETRIC, dist.BETA_BINOMIAL):
        return
    for share in (1e-5, 1e-12, 1e-40):
        with np.errstate(divide="ignore"):  # SciPy, for geometric numbers
            x = float(law.isf(share))
        if not discrete and np.isfinite(x) and x < law.support()[1] and law.sf(x) > 0.0:
            found = log_mass_between(code, x, INF, *four(given), False)
            assert abs(found - law.logsf(x)) < 1e-8 * abs(found), (x, "above")
        if discrete and np.isfinite(x) and law.sf(x) > 0.0:
            found = log_mass_between(code, x + 1.0, INF, *four(given), True)
            assert abs(found - math.log(law.sf(x))) < 1e-8 * abs(found), (x, "above")
        x = float(law.ppf(share))
        if x > law.support()[0] and law.cdf(x) > 0.0 and code != dist.PARETO:  # SciPy loses digits near its edge
            found = log_mass_between(code, -INF, x, *four(given), discrete)
            assert abs(found - math.log(law.cdf(x))) < 1e-8 * abs(found), (x, "below")


@pytest.mark.parametrize("z", [5.0, 30.0, 40.0, 300.0, 1e5])
def test_normal_tails_beyond_the_range_of_numbers(z: float) -> None:
    for low, high in [(z, INF), (-INF, -z), (z, z + 1.0), (-z - 1.0, -z)]:
        wanted = stats.norm.logsf(z)
        if abs(low) < INF > abs(high):
            wanted += math.log1p(-math.exp(stats.norm.logsf(z + 1.0) - wanted))
        assert log_mass_between(dist.NORMAL, low, high, 0.0, 1.0, 0.0, 0.0, False) == pytest.approx(wanted, rel=1e-11)


def test_truncated_density_of_a_gamma_tail_has_mass_one() -> None:
    x = np.linspace(60.0, 90.0, 200_001)
    mass = log_mass_between(dist.GAMMA, 60.0, INF, 2.0, 1.0, 0.0, 0.0, False)
    density = np.exp([log_density(dist.GAMMA, each, 2.0, 1.0, 0.0, 0.0) - mass for each in x])
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-6)
