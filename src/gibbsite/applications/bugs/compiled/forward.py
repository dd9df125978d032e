"""Draws from distributions of numbers, in compiled code."""

from __future__ import annotations

import math

from gibbsite._common.arrays import Words64
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs import distributions as dist
from gibbsite.models.random import beta, exponential, gamma, normal, poisson, uniform

#: Distributions that can be drawn from directly.
DRAWN = frozenset(
    {
        dist.NORMAL,
        dist.LOGNORMAL,
        dist.STUDENT,
        dist.GAMMA,
        dist.CHI_SQUARED,
        dist.EXPONENTIAL,
        dist.DOUBLE_EXPONENTIAL,
        dist.LOGISTIC,
        dist.WEIBULL,
        dist.PARETO,
        dist.BETA,
        dist.UNIFORM,
        dist.F,
        dist.GENERALISED_GAMMA,
        dist.BERNOULLI,
        dist.BINOMIAL,
        dist.POISSON,
        dist.NEGATIVE_BINOMIAL,
        dist.GEOMETRIC,
        dist.BETA_BINOMIAL,
        dist.CATEGORICAL,
    }
)


@called
def draw_from(words: Words64, code: Integer, a: float, b: float, c: float) -> float:
    """Return a draw, NaN if the parameters are outside their range."""
    if code == dist.NORMAL:
        return a + normal(words) / math.sqrt(b) if b > 0.0 else math.nan
    if code == dist.UNIFORM:
        return uniform(words, a, b) if b > a else math.nan
    if code == dist.LOGNORMAL:
        return math.exp(a + normal(words) / math.sqrt(b)) if b > 0.0 else math.nan
    if code == dist.LOGISTIC:
        u = uniform(words)
        return a + (math.log(u) - math.log1p(-u)) / b if b > 0.0 and u > 0.0 else math.nan
    if code == dist.DOUBLE_EXPONENTIAL:
        size = exponential(words) / b
        return a + (size if uniform(words) < 0.5 else -size) if b > 0.0 else math.nan
    if code == dist.STUDENT:
        if not (b > 0.0 and c > 0.0):
            return math.nan
        return a + normal(words) / math.sqrt(b * 2.0 * gamma(words, 0.5 * c) / c)
    if code == dist.BERNOULLI:
        if not 0.0 <= a <= 1.0:
            return math.nan
        return 1.0 if uniform(words) < a else 0.0
    if code == dist.BINOMIAL:
        return _binomial(words, a, b) if 0.0 <= a <= 1.0 and b >= 0.0 else math.nan
    if not a > 0.0:
        return 0.0 if code == dist.POISSON and a == 0.0 else math.nan
    if code == dist.GAMMA:
        return max(gamma(words, a, 1.0 / b), 1e-300) if b > 0.0 else math.nan
    if code == dist.CHI_SQUARED:
        return max(2.0 * gamma(words, 0.5 * a), 1e-300)
    if code == dist.EXPONENTIAL:
        return exponential(words) / a
    if code == dist.POISSON:
        return float(poisson(words, a))
    if code == dist.GEOMETRIC:
        return 1.0 + _failures(words, a, 1.0)
    if not b > 0.0:
        return math.nan
    if code == dist.WEIBULL:
        return math.pow(exponential(words) / b, 1.0 / a)
    if code == dist.PARETO:
        return b * math.exp(exponential(words) / a)
    if code == dist.BETA:
        return beta(words, a, b)
    if code == dist.F:
        return (gamma(words, 0.5 * a) / a) / (gamma(words, 0.5 * b) / b)
    if code == dist.GENERALISED_GAMMA:
        return gamma(words, a) ** (1.0 / c) / b if c > 0.0 else math.nan
    if code == dist.NEGATIVE_BINOMIAL:
        return _failures(words, a, b)
    if code == dist.BETA_BINOMIAL:
        return _binomial(words, beta(words, a, b), c)
    return math.nan


@called
def _binomial(words: Words64, p: float, n: float) -> float:
    """Return a binomial number: by order statistics while many are left, then one by one."""
    hits, left = 0.0, n
    while left > 40.0:  # the k-th smallest of the uniform numbers is a beta number
        k = math.floor(0.5 * (left + 1.0))
        middle = beta(words, k, left + 1.0 - k)
        if middle <= p:
            hits += k
            left -= k
            p = (p - middle) / (1.0 - middle)
        else:
            left = k - 1.0
            p /= middle
    for _ in range(int(left)):
        if uniform(words) < p:
            hits += 1.0
    return hits


@called
def _failures(words: Words64, p: float, size: float) -> float:
    """Return a negative binomial number, as a mixture of Poisson numbers."""
    return poisson(words, gamma(words, size) * (1.0 - p) / p) if p <= 1.0 else math.nan
