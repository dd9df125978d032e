"""Densities, distribution functions and quantiles as functions of the language, in compiled code."""

from __future__ import annotations

import math

from gibbsite._numba.jit import Integer, called, compiled
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled.densities import log_density, log_tails

DENSITY, BELOW, QUANTILE = range(3)
_MOST_STEPS = 400


@called
def distribution_value(what: Integer, x: float, a: float, b: float, c: float, d: float) -> float:
    """Return a density, the probability of at most x, or a quantile, as ``what`` = 3 distribution + which says."""
    code, which = what // 3, what % 3
    if math.isnan(x + a + b + c + d):
        return math.nan
    inside = max(a, 0.5) if code != dist.BETA else 0.5
    if which == DENSITY:
        return math.exp(log_density(code, x, a, b, c, d))
    if which == BELOW:
        return math.exp(log_tails(code, x, a, b, c, d)[0])
    if not 0.0 <= x <= 1.0 or math.isnan(log_tails(code, inside, a, b, c, d)[0]):
        return math.nan
    return _quantile(code, x, a, b, c, d)


@called
def _quantile(code: Integer, p: float, a: float, b: float, c: float, d: float) -> float:
    """Return the smallest number that is exceeded with probability at most 1 - p, by bisection."""
    whole = code >= dist.BERNOULLI
    positive = code not in (dist.NORMAL, dist.STUDENT, dist.DOUBLE_EXPONENTIAL, dist.LOGISTIC, dist.UNIFORM)
    if p == 0.0:
        return a if code == dist.UNIFORM else b if code == dist.PARETO else 0.0 if positive else -math.inf
    if p == 1.0 and not whole:
        return b if code == dist.UNIFORM else 1.0 if code == dist.BETA else math.inf
    low, step = (-1.0 if whole else 0.0) if positive else a, 1.0
    high = low
    while _falls_short(code, high, p, a, b, c, d):
        low, high, step = high, high + step, 2.0 * step
        if not high < 1e300:
            return math.inf
    while not positive and not _falls_short(code, low, p, a, b, c, d):
        high, low, step = low, low - step, 2.0 * step
    for _ in range(_MOST_STEPS):
        middle = 0.5 * (low + high)
        if whole:
            middle = math.floor(middle)
        if not low < middle < high:
            break
        if _falls_short(code, middle, p, a, b, c, d):
            low = middle
        else:
            high = middle
    return high


@called
def _falls_short(code: Integer, x: float, p: float, a: float, b: float, c: float, d: float) -> bool:
    """Whether at most x has less than the probability p, compared in the smaller tail."""
    below, above = log_tails(code, x, a, b, c, d)
    if p <= 0.5:
        return below < math.log(p)
    return above > math.log1p(-p) if p < 1.0 else above > -math.inf


@compiled
def value_of(what: int, x: float, a: float, b: float, c: float, d: float) -> float:
    """Return the same for a single number, from Python."""
    return distribution_value(what, x, a, b, c, d)
