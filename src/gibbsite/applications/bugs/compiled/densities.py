"""Log-densities and distribution functions of numbers, in compiled code.

Parameters are in the order of the BUGS language. A value or parameters outside their range have the log-density minus
infinity.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled.special import (
    log_beta,
    log_beta_tails,
    log_complement,
    log_factorial,
    log_gamma_tails,
    log_normal_cdf,
)

LOG_ROOT_TWO_PI, _LOG_TWO = 0.5 * math.log(2.0 * math.pi), math.log(2.0)
_MOST_TERMS = 1_000_000  # of a sum over probabilities of a discrete distribution


@called
def log_density(code: Integer, x: float, a: float, b: float, c: float, d: float) -> float:
    """Return the log-density of a distribution of numbers."""
    if code == dist.NORMAL:
        return 0.5 * math.log(b) - LOG_ROOT_TWO_PI - 0.5 * b * (x - a) * (x - a) if b > 0.0 else -math.inf
    if code < dist.BERNOULLI:
        return _continuous(code, x, a, b, c)
    if x != math.floor(x) or x < 0.0:
        return -math.inf
    return _discrete(code, x, a, b, c, d)


@called
def _continuous(code: Integer, x: float, a: float, b: float, c: float) -> float:
    if code == dist.GAMMA:
        if not (x > 0.0 and a > 0.0 and b > 0.0) or x == math.inf:
            return -math.inf
        return a * math.log(b) - math.lgamma(a) + (a - 1.0) * math.log(x) - b * x
    if code == dist.UNIFORM:
        return -math.log(b - a) if a <= x <= b and b > a else -math.inf
    if code == dist.BETA:
        if not (0.0 < x < 1.0 and a > 0.0 and b > 0.0):
            return -math.inf
        return (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_beta(a, b)
    if code == dist.LOGNORMAL:
        if not (x > 0.0 and b > 0.0) or x == math.inf:
            return -math.inf
        y = math.log(x)
        return 0.5 * math.log(b) - LOG_ROOT_TWO_PI - 0.5 * b * (y - a) * (y - a) - y
    if code == dist.STUDENT:
        if not (b > 0.0 and c > 0.0):
            return -math.inf
        z = b * (x - a) * (x - a)
        gain = math.lgamma(0.5 * (c + 1.0)) - math.lgamma(0.5 * c)
        return gain + 0.5 * math.log(b / (c * math.pi)) - 0.5 * (c + 1.0) * math.log1p(z / c)
    if code == dist.CHI_SQUARED:
        if not (x > 0.0 and a > 0.0) or x == math.inf:
            return -math.inf
        return (0.5 * a - 1.0) * math.log(x) - 0.5 * x - 0.5 * a * math.log(2.0) - math.lgamma(0.5 * a)
    if code == dist.EXPONENTIAL:
        return math.log(a) - a * x if x >= 0.0 and a > 0.0 else -math.inf
    if code == dist.DOUBLE_EXPONENTIAL:
        return math.log(0.5 * b) - b * abs(x - a) if b > 0.0 else -math.inf
    if code == dist.LOGISTIC:
        if not b > 0.0:
            return -math.inf
        z = abs(b * (x - a))
        return math.log(b) - z - 2.0 * math.log1p(math.exp(-z))
    if code == dist.WEIBULL:
        if not (x > 0.0 and a > 0.0 and b > 0.0) or x == math.inf:
            return -math.inf
        y = math.log(x)
        return math.log(a * b) + (a - 1.0) * y - b * math.exp(a * y)
    if code == dist.PARETO:
        if not (x > b and a > 0.0 and b > 0.0):
            return -math.inf
        return math.log(a) + a * math.log(b) - (a + 1.0) * math.log(x)
    if code == dist.F:
        if not (x > 0.0 and a > 0.0 and b > 0.0) or x == math.inf:
            return -math.inf
        ratio = a / b
        front = 0.5 * a * math.log(ratio) - log_beta(0.5 * a, 0.5 * b)
        return front + (0.5 * a - 1.0) * math.log(x) - 0.5 * (a + b) * math.log1p(ratio * x)
    if code == dist.GENERALISED_GAMMA:
        if not (x > 0.0 and a > 0.0 and b > 0.0 and c > 0.0) or x == math.inf:
            return -math.inf
        y = math.log(b * x)
        return math.log(c) + math.log(b) - math.lgamma(a) + (a * c - 1.0) * y - math.exp(c * y)
    return 0.0  # flat


@called
def _discrete(code: Integer, x: float, a: float, b: float, c: float, d: float) -> float:
    if code == dist.POISSON:
        if not 0.0 <= a < math.inf:
            return -math.inf
        if a == 0.0:
            return 0.0 if x == 0.0 else -math.inf
        return x * math.log(a) - a - log_factorial(x)
    if code == dist.BERNOULLI:
        if not 0.0 <= a <= 1.0 or x > 1.0:
            return -math.inf
        p = a if x == 1.0 else 1.0 - a
        return math.log(p) if p > 0.0 else -math.inf
    if code == dist.BINOMIAL:
        if not (0.0 <= a <= 1.0 and x <= b):
            return -math.inf
        return _log_choose(b, x) + _power(a, x) + _power(1.0 - a, b - x)
    if code == dist.NEGATIVE_BINOMIAL:
        if not (0.0 < a <= 1.0 and b >= 0.0):
            return -math.inf
        if b == 0.0:
            return 0.0 if x == 0.0 else -math.inf
        choose = math.lgamma(x + b) - math.lgamma(b) - log_factorial(x)
        return choose + b * math.log(a) + _power(1.0 - a, x)
    if code == dist.GEOMETRIC:  # the number of trials up to the first success
        return _power(1.0 - a, x - 1.0) + math.log(a) if 0.0 < a <= 1.0 and x >= 1.0 else -math.inf
    if code == dist.HYPERGEOMETRIC:
        low, high = max(0.0, c - b), min(a, c)
        if not (low <= x <= high and d > 0.0):
            return -math.inf
        top = -math.inf
        for k in range(int(high - low) + 1):
            top = max(top, _hypergeometric(low + k, a, b, c, d))
        total = 0.0
        for k in range(int(high - low) + 1):
            total += math.exp(_hypergeometric(low + k, a, b, c, d) - top)
        return _hypergeometric(x, a, b, c, d) - top - math.log(total)
    if code == dist.BETA_BINOMIAL:
        if not (a > 0.0 and b > 0.0 and x <= c):
            return -math.inf
        return _log_choose(c, x) + log_beta(x + a, c - x + b) - log_beta(a, b)
    return math.nan


@called
def _log_choose(n: float, k: float) -> float:
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


@called
def _power(p: float, k: float) -> float:
    """Return k log p, zero for k = 0."""
    if k == 0.0:
        return 0.0
    return k * math.log(p) if p > 0.0 else -math.inf


@called
def _hypergeometric(x: float, a: float, b: float, c: float, d: float) -> float:
    return _log_choose(a, x) + _log_choose(b, c - x) + x * math.log(d)


@called
def log_tails(code: Integer, x: float, a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """Return the logarithms of the probabilities that a number is at most x, and above it."""
    if x == math.inf or x == -math.inf:
        return (0.0, -math.inf) if x > 0.0 else (-math.inf, 0.0)
    if code == dist.NORMAL:
        z = (x - a) * math.sqrt(b)
        return log_normal_cdf(z), log_normal_cdf(-z)
    if code == dist.STUDENT:
        z = (x - a) * math.sqrt(b)
        # the larger argument of the beta distribution function is the one that is exact
        if z * z < c:
            above = log_beta_tails(0.5, 0.5 * c, z * z / (c + z * z))[1]
        else:
            above = log_beta_tails(0.5 * c, 0.5, c / (c + z * z))[0]
        tail = above - _LOG_TWO
        return (log_complement(tail), tail) if z > 0.0 else (tail, log_complement(tail))
    if code == dist.DOUBLE_EXPONENTIAL:
        tail = -_LOG_TWO - b * abs(x - a)
        return (log_complement(tail), tail) if x > a else (tail, log_complement(tail))
    if code == dist.LOGISTIC:
        z = b * (x - a)
        smaller = -abs(z) - math.log1p(math.exp(-abs(z)))
        larger = -math.log1p(math.exp(-abs(z)))
        return (larger, smaller) if z > 0.0 else (smaller, larger)
    if code == dist.UNIFORM:
        share = min(1.0, max(0.0, (x - a) / (b - a)))
        return (math.log(share), math.log1p(-share))
    if x < 0.0 or (x == 0.0 and code < dist.BERNOULLI):
        return -math.inf, 0.0
    if code < dist.BERNOULLI:
        return _positive_tails(code, x, a, b, c)
    return _discrete_tails(code, np.floor(x), a, b, c, d)


@called
def _positive_tails(code: Integer, x: float, a: float, b: float, c: float) -> tuple[float, float]:
    if code == dist.LOGNORMAL:
        z = (math.log(x) - a) * math.sqrt(b)
        return log_normal_cdf(z), log_normal_cdf(-z)
    if code == dist.GAMMA:
        return log_gamma_tails(a, b * x)
    if code == dist.CHI_SQUARED:
        return log_gamma_tails(0.5 * a, 0.5 * x)
    if code == dist.EXPONENTIAL:
        return log_complement(-a * x), -a * x
    if code == dist.WEIBULL:
        above = -b * x**a
        return log_complement(above), above
    if code == dist.PARETO:
        above = a * math.log(b / x) if x > b else 0.0
        return log_complement(above), above
    if code == dist.BETA:
        return log_beta_tails(a, b, x)
    if code == dist.F:
        if a * x < b:
            return log_beta_tails(0.5 * a, 0.5 * b, a * x / (a * x + b))
        above, below = log_beta_tails(0.5 * b, 0.5 * a, b / (a * x + b))
        return below, above
    if code == dist.GENERALISED_GAMMA:
        return log_gamma_tails(a, (b * x) ** c)
    return math.nan, math.nan


@called
def _discrete_tails(code: Integer, k: float, a: float, b: float, c: float, d: float) -> tuple[float, float]:
    if code == dist.POISSON:
        above, below = log_gamma_tails(k + 1.0, a)
        return below, above
    if code == dist.BINOMIAL:
        if k >= b:
            return 0.0, -math.inf
        above, below = log_beta_tails(k + 1.0, b - k, a)
        return below, above
    if code == dist.NEGATIVE_BINOMIAL:
        return log_beta_tails(b, k + 1.0, a) if b > 0.0 else (0.0, -math.inf)
    if code == dist.GEOMETRIC:
        above = _power(1.0 - a, k)
        return log_complement(above), above
    below, above = 0.0, 0.0  # sums over the finitely many values
    last = 1.0 if code == dist.BERNOULLI else c
    for value in range(int(min(last, _MOST_TERMS)) + 1):
        term = math.exp(_discrete(code, float(value), a, b, c, d))
        if value <= k:
            below += term
        else:
            above += term
    return math.log(below), math.log(above)


@called
def log_mass_between(
    code: Integer, low: float, high: float, a: float, b: float, c: float, d: float, discrete: bool
) -> float:
    """Return the logarithm of the probability of the values from low to high, from the tail that has less of it."""
    if code == dist.FLAT:
        return 0.0
    if not low <= high:
        return -math.inf
    from_below, from_above = log_tails(code, np.ceil(low) - 1.0 if discrete else low, a, b, c, d)
    to_below, to_above = log_tails(code, high, a, b, c, d)
    if from_below < from_above:
        return to_below + log_complement(from_below - to_below)
    return from_above + log_complement(to_above - from_above)
