"""What every coupling from the past has in common: keyed random numbers, and the way ever further back.

The random numbers of a site at a time before now are a function of the draw's key, the time and the site, so
that they are the same again when a longer past is tried (Propp and Wilson).
"""

from __future__ import annotations

import numpy as np

from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.generators import philox

_U, _U32 = np.uint64, np.uint32
_LOW, _HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)
_HALF = 0.5
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@inlined
def between(low: np.uint32, high: np.uint32) -> float:
    """Return a number between 0 and 1, neither of them, from two words."""
    word = (_U(high) << _HIGH) | _U(low)
    return (np.int64(word >> _U(12)) + _HALF) * (2.0 * _TO_UNIT)


@inlined
def two_numbers(key: np.uint64, time: Integer, place: Integer, trial: Integer) -> tuple[float, float]:
    """Return two numbers between 0 and 1 for a time before now, a place and a trial."""
    a, b, c, d = philox(
        _U32(_U(place) & _LOW),
        _U32(_U(trial) & _LOW),
        _U32(_U(time) & _LOW),
        _U32(_U(time) >> _HIGH),
        _U32(key & _LOW),
        _U32(key >> _HIGH),
    )
    return between(a, b), between(c, d)
