"""Normal and exponential numbers for compiled code: the ziggurat of Marsaglia and Tsang (2000).

The area under a decreasing density is cut into 256 layers of equal area: horizontal strips, and a base that includes
the tail. A draw picks a layer and a position in its width. Nearly always the position is left of the right edge of the
next layer, so that it lies under the curve and is accepted. Layer, position and sign come from different bits of one
word, as Doornik (2005) recommends; the tail is drawn exactly (Marsaglia, 1964).

References
----------
.. [1] Marsaglia, G. and Tsang, W. W. (2000). The ziggurat method for generating random variables. Journal of
   Statistical Software 5(8).
.. [2] Doornik, J. A. (2005). An improved ziggurat method to generate normal random samples. Oxford.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.random.generators import Words, bits, uniform

_U = np.uint64
_LAYERS = 256
_LAST, _SIGN, _PLACE = _U(_LAYERS - 1), _U(_LAYERS), _U(11)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53
# Right edge of the base, chosen so that 256 layers of equal area end exactly at the top of the curve.
_NORMAL_EDGE = 3.6541528853610088
_EXPONENTIAL_EDGE = 7.69711747013104972


def layers(
    edge: float, area: float, height: Callable[[float], float], place: Callable[[float], float]
) -> tuple[Floats, Floats]:
    """Return the right edges of the layers, from the base up, and the heights of the curve at them.

    The first edge is that of a rectangle with the area of the base; the last is zero. ``place`` is the inverse of
    ``height``.

    Examples
    --------
    >>> x, f = layers(_EXPONENTIAL_EDGE, (_EXPONENTIAL_EDGE + 1) * math.exp(-_EXPONENTIAL_EDGE),
    ...               lambda x: math.exp(-x), lambda f: -math.log(f))
    >>> x.size, round(float(x[1]), 3), float(x[-1])
    (257, 7.697, 0.0)
    """
    x = np.zeros(_LAYERS + 1)
    x[0], x[1] = area / height(edge), edge
    for k in range(2, _LAYERS):
        x[k] = place(height(float(x[k - 1])) + area / float(x[k - 1]))
    return x, np.array([height(float(edge)) for edge in x])


_X, _F = layers(
    _NORMAL_EDGE,
    _NORMAL_EDGE * math.exp(-0.5 * _NORMAL_EDGE**2)
    + math.sqrt(0.5 * math.pi) * math.erfc(_NORMAL_EDGE / math.sqrt(2.0)),
    lambda x: math.exp(-0.5 * x * x),
    lambda f: math.sqrt(-2.0 * math.log(f)),
)
_EX, _EF = layers(
    _EXPONENTIAL_EDGE,
    (_EXPONENTIAL_EDGE + 1.0) * math.exp(-_EXPONENTIAL_EDGE),
    lambda x: math.exp(-x),
    lambda f: -math.log(f),
)
_W, _EW = _X * _TO_UNIT, _EX * _TO_UNIT


@inlined
def normal(rng: Words) -> tuple[Words, float]:
    """Advance the generator; return it and a standard normal number.

    Examples
    --------
    >>> from gibbsite._numba.random.generators import load, stream
    >>> rng, z = normal(load(stream(1, 0)))
    >>> bool(abs(z) < 10.0)
    True
    """
    rng, word = bits(rng)
    layer = np.intp(word & _LAST)
    z: Any = np.int64(word >> _PLACE) * _W[layer]
    if z >= _X[layer + 1]:
        rng, z = _outside(rng, layer, z)
    return rng, -z if word & _SIGN else z


@inlined
def normal_of(word: np.uint64, spare: Words) -> Any:
    """Return a standard normal number made of a random word; ``spare`` supplies further words in rare cases.

    Examples
    --------
    >>> from gibbsite._numba.random.generators import load, stream
    >>> bool(abs(normal_of(np.uint64(12345), load(stream(1, 0)))) < 10.0)
    True
    """
    layer = np.intp(word & _LAST)
    z: Any = np.int64(word >> _PLACE) * _W[layer]
    if z >= _X[layer + 1]:
        _, z = _outside(spare, layer, z)
    return -z if word & _SIGN else z


@called
def _outside(rng: Words, layer: Integer, z: Any) -> tuple[Words, float]:
    """Return the absolute value of a normal number if the first position was not accepted at once."""
    while z >= _X[layer + 1]:
        if layer == 0:
            while True:  # the tail, by an exponential envelope of rate _NORMAL_EDGE
                rng, u = uniform(rng)
                rng, v = uniform(rng)
                beyond = -math.log1p(-u) / _NORMAL_EDGE
                if -2.0 * math.log1p(-v) >= beyond * beyond:
                    return rng, _NORMAL_EDGE + beyond
        rng, u = uniform(rng)
        if _F[layer] + u * (_F[layer + 1] - _F[layer]) < math.exp(-0.5 * z * z):
            return rng, z
        rng, word = bits(rng)
        layer = np.intp(word & _LAST)
        z = np.int64(word >> _PLACE) * _W[layer]
    return rng, z


@inlined
def exponential(rng: Words) -> tuple[Words, float]:
    """Advance the generator; return it and an exponential number of mean one.

    Examples
    --------
    >>> from gibbsite._numba.random.generators import load, stream
    >>> rng, e = exponential(load(stream(1, 0)))
    >>> bool(e >= 0.0)
    True
    """
    rng, word = bits(rng)
    layer = np.intp(word & _LAST)
    z: Any = np.int64(word >> _PLACE) * _EW[layer]
    if z >= _EX[layer + 1]:
        rng, z = _above(rng, layer, z)
    return rng, z


@called
def _above(rng: Words, layer: Integer, z: Any) -> tuple[Words, float]:
    """Return an exponential number if the first position was not accepted at once."""
    base = 0.0
    while z >= _EX[layer + 1]:
        if layer == 0:  # the tail is exponential, too
            base += _EXPONENTIAL_EDGE
        else:
            rng, u = uniform(rng)
            if _EF[layer] + u * (_EF[layer + 1] - _EF[layer]) < math.exp(-z):
                return rng, base + z
        rng, word = bits(rng)
        layer = np.intp(word & _LAST)
        z = np.int64(word >> _PLACE) * _EW[layer]
    return rng, base + z
