"""Random numbers for conditionals that users compile with Numba.

A function ``draw(x, rng)`` decorated with ``numba.njit`` gets the generator of its chain as an array of four
words. These functions draw from it and move it on, so that runs can be repeated and resumed.

>>> import gibbsite as gs
>>> from numba import njit
>>> @njit
... def draw(x, rng):
...     return 0.4 * x[1] + gs.random.normal(rng)
"""

from __future__ import annotations

import math
from typing import Any

from gibbsite._common.arrays import Words64
from gibbsite._numba.jit import called
from gibbsite._numba.random.generators import Words, load, store
from gibbsite._numba.random.generators import uniform as _uniform
from gibbsite._numba.random.poisson import poisson as _poisson
from gibbsite._numba.random.ziggurat import exponential as _exponential
from gibbsite._numba.random.ziggurat import normal as _normal

__all__ = ["bernoulli", "beta", "categorical", "exponential", "gamma", "normal", "poisson", "uniform"]


@called
def uniform(rng: Words64, low: float = 0.0, high: float = 1.0) -> float:
    """Return a number that is uniform between two bounds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.array([1, 2, 3, 4], np.uint64)
    >>> bool(2.0 <= uniform(rng, 2.0, 3.0) < 3.0)
    True
    """
    words, u = _uniform(load(rng))
    store(rng, words)
    return low + (high - low) * u


@called
def bernoulli(rng: Words64, p: float) -> float:
    """Return 1.0 with probability p, otherwise 0.0.

    Examples
    --------
    >>> import numpy as np
    >>> bernoulli(np.array([1, 2, 3, 4], np.uint64), 1.0)
    1.0
    """
    words, u = _uniform(load(rng))
    store(rng, words)
    return 1.0 if u < p else 0.0


@called
def normal(rng: Words64, mean: float = 0.0, sd: float = 1.0) -> float:
    """Return a normal number.

    Examples
    --------
    >>> import numpy as np
    >>> bool(abs(normal(np.array([1, 2, 3, 4], np.uint64))) < 10.0)
    True
    """
    words, z = _normal(load(rng))
    store(rng, words)
    return mean + sd * z


@called
def exponential(rng: Words64, scale: float = 1.0) -> float:
    """Return an exponential number of mean ``scale``.

    Examples
    --------
    >>> import numpy as np
    >>> bool(exponential(np.array([1, 2, 3, 4], np.uint64)) > 0.0)
    True
    """
    words, e = _exponential(load(rng))
    store(rng, words)
    return scale * e


@called
def poisson(rng: Words64, mean: float) -> float:
    """Return a Poisson number.

    Examples
    --------
    >>> import numpy as np
    >>> poisson(np.array([1, 2, 3, 4], np.uint64), 0.0)
    0.0
    """
    words, k = _poisson(load(rng), mean)
    store(rng, words)
    return float(k)


@called
def _large_gamma(words: Words, shape: Any) -> tuple[Words, Any]:
    """Return a gamma number of shape at least one (Marsaglia and Tsang, 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        words, z = _normal(words)
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            words, u = _uniform(words)
            if u == 0.0 or math.log(u) < 0.5 * z * z + d - d * v + d * math.log(v):
                return words, d * v


@called
def gamma(rng: Words64, shape: float, scale: float = 1.0) -> float:
    """Return a gamma number of mean ``shape * scale``.

    Examples
    --------
    >>> import numpy as np
    >>> bool(gamma(np.array([1, 2, 3, 4], np.uint64), 2.0) > 0.0)
    True
    """
    words = load(rng)
    if shape >= 1.0:
        words, g = _large_gamma(words, shape)
    else:  # one of a larger shape times a power of a uniform number
        words, g = _large_gamma(words, shape + 1.0)
        words, e = _exponential(words)
        g *= math.exp(-e / shape)
    store(rng, words)
    return float(scale * g)


@called
def beta(rng: Words64, a: float, b: float) -> float:
    """Return a beta number of mean a / (a + b).

    Examples
    --------
    >>> import numpy as np
    >>> bool(0.0 < beta(np.array([1, 2, 3, 4], np.uint64), 2.0, 3.0) < 1.0)
    True
    """
    first, second = gamma(rng, a), gamma(rng, b)
    return first / (first + second)


@called
def categorical(rng: Words64, weights: Any) -> float:
    """Return k with probability in proportion to ``weights[k]``, as a float.

    Examples
    --------
    >>> import numpy as np
    >>> categorical(np.array([1, 2, 3, 4], np.uint64), np.array([0.0, 1.0, 0.0]))
    1.0
    """
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    left = uniform(rng, 0.0, total)
    last = 0
    for k in range(weights.size):
        if weights[k] > 0.0:
            if left < weights[k]:
                return float(k)
            last = k
        left -= weights[k]
    return float(last)
