"""Exponentials and logarithms that compilers can vectorise.

Those of the C library are called for one number at a time, which takes most of the time of a loop over logarithms.
These consist of additions and multiplications only. Their error is a few units in the last place of the larger of the
result and one, which suffices for sums of exponentials and their logarithms.
"""

from __future__ import annotations

import numpy as np

from gibbsite._numba.intrinsic import bits_of_double, double_from_bits
from gibbsite._numba.jit import inlined

# Adding 1.5 * 2^52 rounds to a whole number and leaves it in the lowest bits.
_ROUND = 6755399441055744.0
_PER_LOG_2 = 1.4426950408889634
# log 2 in two parts; the first has so many zeros at its end that multiples of it are exact.
_LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOWEST = -708.0
_BIAS, _MANTISSA = np.uint64(1023), np.uint64(52)
_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)
_TWO_52, _BITS_OF_TWO_52 = 4503599627370496.0, np.uint64(0x4330000000000000)


@inlined
def exp_below(x: float) -> float:
    """Return the exponential of a number up to 700; zero below -708 and for NaN."""
    x = x if x > _LOWEST else _LOWEST
    rounded = x * _PER_LOG_2 + _ROUND
    n = rounded - _ROUND
    r = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    series = 1.0 / 6227020800.0
    series = series * r + 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    scale: float = double_from_bits((bits_of_double(rounded) + _BIAS) << _MANTISSA)
    return series * scale


@inlined
def log_above(x: float) -> float:
    """Return the natural logarithm of a number of at least one."""
    bits = bits_of_double(x)
    power = (bits - _ROOT_HALF) >> _MANTISSA
    m: float = double_from_bits(bits - (power << _MANTISSA))
    n: float = double_from_bits(power | _BITS_OF_TWO_52) - _TWO_52
    f = (m - 1.0) / (m + 1.0)
    g = f * f
    series = 1.0 / 21.0
    series = series * g + 1.0 / 19.0
    series = series * g + 1.0 / 17.0
    series = series * g + 1.0 / 15.0
    series = series * g + 1.0 / 13.0
    series = series * g + 1.0 / 11.0
    series = series * g + 1.0 / 9.0
    series = series * g + 1.0 / 7.0
    series = series * g + 1.0 / 5.0
    series = series * g + 1.0 / 3.0
    series = series * g + 1.0
    return n * _LOG_2_HIGH + (n * _LOG_2_LOW + 2.0 * f * series)
