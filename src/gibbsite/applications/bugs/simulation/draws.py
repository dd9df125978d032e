"""Draws from the distributions of the language with NumPy, outside of runs: of predictions and from priors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from gibbsite._common.arrays import Floats
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.distributions import Distribution
from gibbsite.errors import ModelError

_TRIES = 20  # of draws that may be outside the bounds of a truncated distribution
_TINY = 1e-300  # in place of positive numbers that underflow
_OF_NUMBERS: dict[int, Callable[..., Any]] = {
    dist.NORMAL: lambda rng, mean, tau: rng.normal(mean, tau**-0.5),
    dist.LOGNORMAL: lambda rng, mean, tau: rng.lognormal(mean, tau**-0.5),
    dist.STUDENT: lambda rng, mean, tau, df: mean + rng.standard_t(df) / np.sqrt(tau),
    dist.GAMMA: lambda rng, shape, rate: rng.gamma(shape, 1.0 / rate),
    dist.CHI_SQUARED: lambda rng, df: rng.chisquare(df),
    dist.EXPONENTIAL: lambda rng, rate: rng.exponential(1.0 / rate),
    dist.DOUBLE_EXPONENTIAL: lambda rng, mean, rate: rng.laplace(mean, 1.0 / rate),
    dist.LOGISTIC: lambda rng, mean, rate: rng.logistic(mean, 1.0 / rate),
    dist.WEIBULL: lambda rng, shape, rate: (rng.standard_exponential(shape.shape) / rate) ** (1.0 / shape),
    dist.PARETO: lambda rng, shape, least: least * np.exp(rng.exponential(1.0 / shape)),
    dist.BETA: lambda rng, a, b: rng.beta(a, b),
    dist.UNIFORM: lambda rng, low, high: rng.uniform(low, high),
    dist.F: lambda rng, one, other: rng.f(one, other),
    dist.GENERALISED_GAMMA: lambda rng, shape, rate, power: rng.gamma(shape) ** (1.0 / power) / rate,
    dist.BERNOULLI: lambda rng, p: rng.binomial(1, p),
    dist.BINOMIAL: lambda rng, p, size: rng.binomial(size.astype(np.int64), p),
    dist.POISSON: lambda rng, mean: rng.poisson(mean),
    dist.NEGATIVE_BINOMIAL: lambda rng, p, size: rng.negative_binomial(size, p),
    dist.GEOMETRIC: lambda rng, p: rng.geometric(p),
    dist.BETA_BINOMIAL: lambda rng, a, b, size: rng.binomial(size.astype(np.int64), rng.beta(a, b)),
}
# laws of SciPy, for truncated distributions
_LAWS: dict[int, Callable[..., Any]] = {
    dist.NORMAL: lambda s, mean, tau: s.norm(mean, tau**-0.5),
    dist.LOGNORMAL: lambda s, mean, tau: s.lognorm(tau**-0.5, scale=np.exp(mean)),
    dist.STUDENT: lambda s, mean, tau, df: s.t(df, mean, tau**-0.5),
    dist.GAMMA: lambda s, shape, rate: s.gamma(shape, scale=1.0 / rate),
    dist.CHI_SQUARED: lambda s, df: s.chi2(df),
    dist.EXPONENTIAL: lambda s, rate: s.expon(scale=1.0 / rate),
    dist.DOUBLE_EXPONENTIAL: lambda s, mean, rate: s.laplace(mean, 1.0 / rate),
    dist.LOGISTIC: lambda s, mean, rate: s.logistic(mean, 1.0 / rate),
    dist.WEIBULL: lambda s, shape, rate: s.weibull_min(shape, scale=rate ** (-1.0 / shape)),
    dist.PARETO: lambda s, shape, least: s.pareto(shape, scale=least),
    dist.BETA: lambda s, a, b: s.beta(a, b),
    dist.UNIFORM: lambda s, low, high: s.uniform(low, high - low),
    dist.F: lambda s, one, other: s.f(one, other),
    dist.GENERALISED_GAMMA: lambda s, shape, rate, power: s.gengamma(shape, power, scale=1.0 / rate),
    dist.BINOMIAL: lambda s, p, size: s.binom(size, p),
    dist.POISSON: lambda s, mean: s.poisson(mean),
    dist.NEGATIVE_BINOMIAL: lambda s, p, size: s.nbinom(size, p),
    dist.GEOMETRIC: lambda s, p: s.geom(p),
    dist.HYPERGEOMETRIC: lambda s, one, other, size, odds: s.nchypergeom_fisher(one + other, one, size, odds),
    dist.BETA_BINOMIAL: lambda s, a, b, size: s.betabinom(size, a, b),
}


def draw_values(
    rng: Generator, of: Distribution, parameters: list[Floats], low: Floats | None = None, high: Floats | None = None
) -> Floats:
    """Return a draw for each instance: (instances,), or (instances, entries) of arrays.

    Examples
    --------
    >>> from gibbsite.applications.bugs.distributions import DISTRIBUTIONS
    >>> rng, n = np.random.default_rng(1), 10_000
    >>> mean = draw_values(rng, DISTRIBUTIONS["dgamma"], [np.full(n, 3.0), np.full(n, 2.0)]).mean()
    >>> abs(float(mean) - 1.5) < 0.05
    True
    """
    if of.code == dist.FLAT:
        raise ModelError(f"{of.name!r} is no proper distribution, so that nothing can be drawn from it.")
    try:
        with np.errstate(all="ignore"):
            found = _draw_free(rng, of, parameters)
            if low is not None or high is not None:
                least = np.full(len(found), -np.inf) if low is None else low
                most = np.full(len(found), np.inf) if high is None else high
                for _ in range(_TRIES):
                    outside = ~((found >= least) & (found <= most))
                    if not outside.any():
                        break
                    found[outside] = _draw_free(rng, of, [each[outside] for each in parameters])
                outside = ~((found >= least) & (found <= most))
                if outside.any():
                    some = [each[outside] for each in parameters]
                    found[outside] = _draw_between(rng, of, some, least[outside], most[outside])
    except (ValueError, np.linalg.LinAlgError):
        found = np.array([np.nan])
    if np.isnan(found).any():
        raise ModelError(f"A parameter of {of.name!r} is outside its range, so that nothing can be drawn from it.")
    return np.maximum(found, _TINY) if of.low == 0.0 and of.scalar and not of.discrete else found


def _draw_free(rng: Generator, of: Distribution, parameters: list[Floats]) -> Floats:
    draw = _OF_NUMBERS.get(of.code)
    return np.asarray(_draw_others(rng, of, parameters) if draw is None else draw(rng, *parameters), float)


def _draw_between(rng: Generator, of: Distribution, parameters: list[Floats], low: Floats, high: Floats) -> Floats:
    """Return draws between bounds, by the quantiles of the distribution, from the side where they are exact."""
    from scipy import stats

    law = _LAWS[of.code](stats, *parameters)
    below = low - of.discrete  # a whole number is above the one below the bound
    upper = law.cdf(below) > 0.5
    u = rng.random(low.size)
    from_below = law.ppf(law.cdf(below) + u * (law.cdf(high) - law.cdf(below)))
    from_above = law.isf(law.sf(high) + u * (law.sf(below) - law.sf(high)))
    found: Floats = np.clip(np.where(upper, from_above, from_below), low, high)
    return found


def _draw_others(rng: Generator, of: Distribution, given: list[Floats]) -> Any:
    if of.code == dist.HYPERGEOMETRIC:
        from scipy import stats

        return _LAWS[of.code](stats, *given).rvs(random_state=rng)
    if of.code == dist.CATEGORICAL:
        return 1 + _choose(rng, given[0])
    if of.code == dist.INTERVAL:
        return (given[0][:, None] > given[1]).sum(axis=1)
    if of.code == dist.NORMAL_MIXTURE:
        mean, tau = (np.take_along_axis(each, _choose(rng, given[2])[:, None], 1)[:, 0] for each in given[:2])
        return rng.normal(mean, tau**-0.5)
    if of.code == dist.DIRICHLET:
        weights = rng.standard_gamma(given[0])
        return weights / weights.sum(axis=1, keepdims=True)
    if of.code == dist.MULTINOMIAL:
        return rng.multinomial(given[1].astype(np.int64), given[0] / given[0].sum(axis=1, keepdims=True))
    if of.code == dist.WISHART:
        return np.stack([_wishart(rng, *each) for each in zip(*given, strict=True)])
    if of.code in (dist.MULTIVARIATE_NORMAL, dist.MULTIVARIATE_STUDENT, dist.COVARIANCE_NORMAL):
        mean = given[0]
        n, size = mean.shape
        root = np.linalg.cholesky(given[1].reshape(n, size, size))
        noise = rng.normal(size=(n, size, 1))
        turned = root @ noise if of.code == dist.COVARIANCE_NORMAL else np.linalg.solve(root.transpose(0, 2, 1), noise)
        spread = np.sqrt(given[2] / rng.chisquare(given[2])) if of.code == dist.MULTIVARIATE_STUDENT else np.ones(n)
        return mean + turned[:, :, 0] * spread[:, None]
    raise ValueError(of.name)


def _choose(rng: Generator, weights: Floats) -> Any:
    """Return a random column of each row, with probabilities in proportion to weights."""
    ends = weights.cumsum(axis=1)
    return (ends <= rng.random((len(ends), 1)) * ends[:, -1:]).sum(axis=1)


def _wishart(rng: Generator, scale: Floats, df: float) -> Floats:
    """Return a matrix with the mean df / scale (Bartlett, 1933)."""
    side = round(scale.size**0.5)
    root = np.linalg.cholesky(np.linalg.inv(scale.reshape(side, side)))
    lower = np.tril(rng.normal(size=(side, side)), -1)
    lower[np.diag_indices(side)] = np.sqrt(rng.chisquare(df - np.arange(side)))
    found: Floats = ((root @ lower) @ (root @ lower).T).ravel()
    return found
