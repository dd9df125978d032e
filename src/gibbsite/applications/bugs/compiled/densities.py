"""Log-densities and distribution functions of numbers, in compiled code.

Parameters are in the order of the BUGS language. A value or parameters outside their range have the log-density minus
infinity.
"""

from __future__ import annotations

import math

from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled.special import beta_cdf, gamma_cdf, log_beta, normal_cdf

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_MOST_TERMS = 1_000_000  # of a sum over probabilities of a discrete distribution


@called
def log_density(code: Integer, x: float, a: float, b: float, c: float, d: float) -> float:
    """Return the log-density of a distribution of numbers."""
    if code == dist.NORMAL:
        return 0.5 * math.log(b) - _LOG_ROOT_TWO_PI - 0.5 * b * (x - a) * (x - a) if b > 0.0 else -math.inf
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
        return 0.5 * math.log(b) - _LOG_ROOT_TWO_PI - 0.5 * b * (y - a) * (y - a) - y
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
        return x * math.log(a) - a - math.lgamma(x + 1.0)
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
        choose = math.lgamma(x + b) - math.lgamma(b) - math.lgamma(x + 1.0)
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
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


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
def distribution_function(code: Integer, x: float, a: float, b: float, c: float, d: float) -> float:
    """Return the probability that a number is at most x."""
    if code == dist.NORMAL:
        return normal_cdf((x - a) * math.sqrt(b))
    if x == math.inf:
        return 1.0
    if code == dist.STUDENT:
        z = (x - a) * math.sqrt(b)
        tail = 0.5 * beta_cdf(0.5 * c, 0.5, c / (c + z * z))
        return 1.0 - tail if z > 0.0 else tail
    if code == dist.DOUBLE_EXPONENTIAL:
        return 0.5 * math.exp(b * (x - a)) if x < a else 1.0 - 0.5 * math.exp(-b * (x - a))
    if code == dist.LOGISTIC:
        return 1.0 / (1.0 + math.exp(-b * (x - a)))
    if code == dist.UNIFORM:
        return min(1.0, max(0.0, (x - a) / (b - a)))
    if x < 0.0 or (x == 0.0 and code < dist.BERNOULLI):
        return 0.0
    if code == dist.LOGNORMAL:
        return normal_cdf((math.log(x) - a) * math.sqrt(b))
    if code == dist.GAMMA:
        return gamma_cdf(a, b * x)
    if code == dist.CHI_SQUARED:
        return gamma_cdf(0.5 * a, 0.5 * x)
    if code == dist.EXPONENTIAL:
        return -math.expm1(-a * x)
    if code == dist.WEIBULL:
        return -math.expm1(-b * x**a)
    if code == dist.PARETO:
        return 1.0 - (b / x) ** a if x > b else 0.0
    if code == dist.BETA:
        return beta_cdf(a, b, x)
    if code == dist.F:
        return beta_cdf(0.5 * a, 0.5 * b, a * x / (a * x + b))
    if code == dist.GENERALISED_GAMMA:
        return gamma_cdf(a, (b * x) ** c)
    if code == dist.POISSON:
        return 1.0 - gamma_cdf(math.floor(x) + 1.0, a)
    if code == dist.BINOMIAL:
        k = math.floor(x)
        return 1.0 if k >= b else 1.0 - beta_cdf(k + 1.0, b - k, a)
    if code == dist.NEGATIVE_BINOMIAL:
        return beta_cdf(b, math.floor(x) + 1.0, a)
    total = 0.0
    for k in range(int(min(math.floor(x), _MOST_TERMS)) + 1):
        total += math.exp(_discrete(code, float(k), a, b, c, d))
    return min(total, 1.0)


@called
def log_mass_between(
    code: Integer, low: float, high: float, a: float, b: float, c: float, d: float, discrete: bool
) -> float:
    """Return the logarithm of the probability of the values from low to high."""
    if code == dist.NORMAL:  # in the tail in which differences are exact
        root = math.sqrt(b)
        below, above = (low - a) * root, (high - a) * root
        if below > 0.0:
            below, above = -above, -below
        mass = normal_cdf(above) - normal_cdf(below)
        if mass > 0.0:
            return math.log(mass)
        if not above > below:
            return -math.inf
        # far in the tail: the density times the width of the part that matters
        share = -math.expm1(above * (above - below))
        return -0.5 * above * above - _LOG_ROOT_TWO_PI - math.log(-above) + math.log(share)
    upper = 1.0 if high == math.inf else distribution_function(code, high, a, b, c, d)
    if low == -math.inf:
        lower = 0.0
    else:
        lower = distribution_function(code, math.ceil(low) - 1.0 if discrete else low, a, b, c, d)
    return math.log(upper - lower) if upper > lower else -math.inf
