"""The tail of the weights: the shape k of a generalised Pareto distribution, in ArviZ's convention.

Weights whose k is below 1/2 have a finite variance; above 0.7, estimates cannot be relied upon whatever their standard
errors (Vehtari et al., 2024). The fit is that of Zhang and Stephens (2009), with the weak prior that pulls k of few
weights towards 1/2.

References
----------
.. [1] Zhang, J. and Stephens, M. A. (2009). A new and efficient estimation method for the generalized Pareto
   distribution. Technometrics 51(3).
.. [2] Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance sampling.
   Journal of Machine Learning Research 25(72).
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Floats

_FEWEST = 5  # weights above the cut that a fit needs
_PRIOR_SCALE, _PRIOR_WEIGHT, _PRIOR_K = 3.0, 10.0, 0.5
_ROOM = 2.0  # times the shape that the ratio of the largest weight to the least of the tail suggests


def tail_length(draws: int) -> int:
    """Return the number of weights in the tail."""
    return math.ceil(min(0.2 * draws, 3.0 * math.sqrt(draws)))


def pareto_k(largest: Floats, draws: int) -> float:
    """Return the shape k of the tail of ``draws`` weights, of which the largest are given as logarithms.

    It is infinite for too few draws, and minus infinity if the largest weights are all equal. A tail of many equal
    weights and fewer than five larger ones cannot be fitted, and gets the prior value 1/2.
    """
    logs = np.sort(largest[largest > -np.inf])
    length = min(tail_length(draws), max(logs.size // 2, min(logs.size - 1, tail_length(draws))))
    if length < _FEWEST or logs.size <= _FEWEST:
        return math.inf
    logs = np.round(logs - logs[-1], 9)  # weights that differ by rounding are equal
    cut = logs[-length - 1] if length < logs.size else logs[0]
    above = logs[logs > cut]
    if above.size < _FEWEST:  # many equal weights: cut below them, where that is known
        below = logs[logs < cut]
        if not below.size and not above.size:
            return -math.inf
        if not below.size:
            return _PRIOR_K
        cut = below[-1]
        above = logs[logs > cut]
    excess = np.exp(above) - math.exp(cut)
    excess = excess[excess > 0.0]
    if excess.size < _FEWEST:
        return _PRIOR_K
    if excess[-1] <= excess[0] * (1.0 + 1e-9):
        return -math.inf
    k = fit_pareto(excess)[0]
    # The largest of m values of a distribution of shape k is about m^k times the least, and seldom less than m^(k/2).
    # Nearly equal weights can differ by amounts of any scale, to which a fit gives a large k; but no tail is
    # heavy whose largest weight is hardly larger than the others.
    most = _ROOM * -float(cut) / math.log(excess.size)
    return min(k, most) if math.isfinite(k) else min(_PRIOR_K, most)


def fit_pareto(excess: Floats) -> tuple[float, float]:
    """Fit shape and scale of a generalised Pareto distribution to positive numbers in rising order."""
    n = excess.size
    many = 30 + int(math.sqrt(n))
    b = 1.0 - np.sqrt(many / (np.arange(1, many + 1) - 0.5))
    b /= _PRIOR_SCALE * excess[int(n / 4 + 0.5) - 1]
    b += 1.0 / excess[-1]
    k = np.array([np.log1p(-each * excess).mean() for each in b])
    with np.errstate(all="ignore"):
        profile = n * (np.log(-(b / k)) - k - 1.0)
        likely = 1.0 / np.exp(profile - profile[:, None]).sum(axis=1)
        likely = np.where(likely >= 10.0 * np.finfo(float).eps, likely, 0.0)
        mean = float((b * likely).sum() / likely.sum())
    shape = float(np.log1p(-mean * excess).mean())
    return (n * shape + _PRIOR_WEIGHT * _PRIOR_K) / (n + _PRIOR_WEIGHT), -shape / mean
