"""Poisson numbers for compiled code: inversion for small means, transformed rejection for large ones.

References
----------
.. [1] Hoermann, W. (1993). The transformed rejection method for generating Poisson random variables.
   Insurance: Mathematics and Economics 12 (algorithm PTRS).
"""

from __future__ import annotations

import math
from typing import Any

from gibbsite._numba.jit import Integer, called
from gibbsite._numba.random.generators import Words, uniform

_SMALL = 10.0  # below this mean, the search of the inversion is short
_MOST = 200  # the search ends here at the latest; the sum equals one in double precision long before


@called
def poisson(rng: Words, mean: Any) -> tuple[Words, Integer]:
    """Advance the generator; return it and a Poisson number of this mean, up to about 1e15.

    Examples
    --------
    >>> from gibbsite._numba.random.generators import load, stream
    >>> rng, k = poisson(load(stream(1, 0)), 3.0)
    >>> int(k) >= 0
    True
    """
    k = 0
    if mean < _SMALL:
        rng, u = uniform(rng)
        part = math.exp(-mean)
        passed = part
        while u >= passed and k < _MOST:
            k += 1
            part *= mean / k
            passed += part
        return rng, k
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    log_scale = math.log(1.1239 + 1.1328 / (b - 3.4))
    log_mean = math.log(mean)
    quick = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        rng, u = uniform(rng)
        rng, v = uniform(rng)
        u -= 0.5
        near = 0.5 - abs(u)
        if near <= 0.0:  # u was zero
            continue
        k = math.floor((2.0 * a / near + b) * u + mean + 0.43)
        if near >= 0.07 and v <= quick:
            return rng, k
        if k < 0 or (near < 0.013 and v > near):
            continue
        if v == 0.0 or math.log(v) + log_scale - math.log(a / (near * near) + b) <= (
            k * log_mean - mean - math.lgamma(k + 1.0)
        ):
            return rng, k
