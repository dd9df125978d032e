"""Distribution functions in compiled code: normal, gamma and beta."""

from __future__ import annotations

import math

import numpy as np

from gibbsite._numba.jit import called

_LARGEST_STEPS = 10_000
_TINY = 1e-300
_ROOT_HALF, _LOG_TWO, _LOG_ROOT_TWO_PI = math.sqrt(0.5), math.log(2.0), 0.5 * math.log(2.0 * math.pi)
_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(128)])
# Coefficients of rational approximations of the normal quantile function (Wichura, 1988, algorithm AS 241).
_CENTRE = (
    (
        *(3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125),
        *(45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    ),
    (
        *(1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077),
        *(21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
    ),
)
_MIDDLE = (
    (
        *(1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504),
        *(1.27045825245236838258, 0.241780725177450611770, 0.0227238449892691845833, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550),
        *(0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    ),
)
_TAIL = (
    (
        *(6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 0.296560571828504891230),
        *(0.0265321895265761230930, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
    ),
)


@called
def log_factorial(n: float) -> float:
    """Return log n!; of whole numbers from a table, and for large ones by Stirling's series."""
    if not n >= 0.0 or n != math.floor(n):
        return math.lgamma(n + 1.0)
    if n < 128.0:
        return float(_FACTORIALS[np.int64(n)])
    return (
        (n + 0.5) * math.log(n)
        - n
        + _LOG_ROOT_TWO_PI
        + (1.0 - (1.0 / 30.0 - 1.0 / (105.0 * n * n)) / (n * n)) / (12.0 * n)
    )


@called
def normal_cdf(x: float) -> float:
    """Return the probability that a standard normal number is at most x."""
    return 0.5 * math.erfc(-x * _ROOT_HALF)


@called
def normal_quantile(p: float) -> float:
    """Return the number below which a standard normal number is with probability p."""
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _ratio(_CENTRE, r)
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    z = _ratio(_MIDDLE, r - 1.6) if r <= 5.0 else _ratio(_TAIL, r - 5.0)
    return -z if q < 0.0 else z


@called
def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: float) -> float:
    above, below = 0.0, 0.0
    for k in range(7, -1, -1):
        above = above * r + coefficients[0][k]
        below = below * r + coefficients[1][k]
    return above / below


@called
def log_complement(y: float) -> float:
    """Return log(1 - exp(y)) for y <= 0."""
    if y >= 0.0:
        return -math.inf
    return math.log(-math.expm1(y)) if y > -_LOG_TWO else math.log1p(-math.exp(y))


@called
def log_normal_cdf(x: float) -> float:
    """Return the logarithm of the probability that a standard normal number is at most x."""
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * _ROOT_HALF))
    if x > -36.0:
        return math.log(0.5 * math.erfc(-x * _ROOT_HALF))
    if x == -math.inf:
        return -math.inf
    total, term, square = 1.0, 1.0, 1.0 / (x * x)
    for k in range(1, 12):  # the asymptotic series
        term *= -(2.0 * k - 1.0) * square
        total += term
    return -0.5 * x * x - math.log(-x) - _LOG_ROOT_TWO_PI + math.log(total)


@called
def log_gamma_tails(a: float, x: float) -> tuple[float, float]:
    """Return the log-probabilities that a gamma number of shape a and rate 1 is at most x, and above it."""
    if not x > 0.0:
        return -math.inf, 0.0
    if x == math.inf:
        return 0.0, -math.inf
    scale = a * math.log(x) - x - math.lgamma(a)
    if x < a + 1.0:  # the series
        term = 1.0 / a
        total, k = term, a
        for _ in range(_LARGEST_STEPS):
            k += 1.0
            term *= x / k
            total += term
            if term < total * 1e-17:
                break
        below = min(0.0, math.log(total) + scale)
        return below, log_complement(below)
    # the continued fraction, by the method of Lentz
    b = x + 1.0 - a
    c = 1.0 / _TINY
    d = 1.0 / b
    h = d
    for k in range(1, _LARGEST_STEPS):
        e = -k * (k - a)
        b += 2.0
        d = e * d + b
        if abs(d) < _TINY:
            d = _TINY
        c = b + e / c
        if abs(c) < _TINY:
            c = _TINY
        d = 1.0 / d
        change = d * c
        h *= change
        if abs(change - 1.0) < 1e-16:
            break
    above = min(0.0, math.log(h) + scale)
    return log_complement(above), above


@called
def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@called
def log_beta_tails(a: float, b: float, x: float) -> tuple[float, float]:
    """Return the log-probabilities that a beta number is at most x, and above it."""
    if not x > 0.0:
        return -math.inf, 0.0
    if x >= 1.0:
        return 0.0, -math.inf
    front = a * math.log(x) + b * math.log1p(-x) - log_beta(a, b)
    if x < (a + 1.0) / (a + b + 2.0):
        below = min(0.0, front + math.log(_fraction(a, b, x) / a))
        return below, log_complement(below)
    above = min(0.0, front + math.log(_fraction(b, a, 1.0 - x) / b))
    return log_complement(above), above


@called
def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by the method of Lentz."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    if abs(d) < _TINY:
        d = _TINY
    d = 1.0 / d
    h = d
    for k in range(1, _LARGEST_STEPS):
        even = k * (b - k) * x / ((a + 2 * k - 1.0) * (a + 2 * k))
        odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1.0))
        change = 1.0
        for step in (even, odd):
            d = 1.0 + step * d
            if abs(d) < _TINY:
                d = _TINY
            c = 1.0 + step / c
            if abs(c) < _TINY:
                c = _TINY
            d = 1.0 / d
            change = d * c
            h *= change
        if abs(change - 1.0) < 1e-16:
            break
    return h
