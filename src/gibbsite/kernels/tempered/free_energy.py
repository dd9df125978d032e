"""Differences of log-partition functions of neighbouring rungs (Bennett 1976).

With d(x) = (beta' - beta) U(x), f(t) = 1 / (1 + exp(-t)) and any number c,

    log Z' - log Z = c + log E[f(d - c)] - log E'[f(c - d)],

where E is taken at beta and E' at beta'. The error is smallest where c is the difference itself.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats


def log_ratio(low: Floats, high: Floats) -> float:
    """Return log Z' - log Z from values of d at both rungs.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> low, high = rng.normal(0.0, 1.0, 4000), rng.normal(1.0, 1.0, 4000)
    >>> bool(abs(log_ratio(low, high) - 0.5) < 0.05)  # the mean of exp(d) is exp(1/2)
    True
    """
    left = float(min(low.min(), high.min())) - 1.0
    right = float(max(low.max(), high.max())) + 1.0
    if not np.isfinite([left, right]).all():
        return 0.0
    for _ in range(60):  # the sum falls with c
        middle = 0.5 * (left + right)
        if _share(low - middle).mean() > _share(middle - high).mean():
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


def _share(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


def log_ratios(betas: Floats, gains: Floats) -> Floats:
    """Return the differences between all neighbours, from values of U (samples, rungs)."""
    gap = np.diff(betas)
    pairs = range(gap.size)
    return np.array([log_ratio(gap[k] * gains[:, k], gap[k] * gains[:, k + 1]) for k in pairs])
