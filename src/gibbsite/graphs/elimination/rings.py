"""Three ways to combine and to add up: probabilities, maxima of logarithms, sums of logarithms.

Passes over the clique tree are written once and compiled for the ring they are called with.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gibbsite._numba.jit import generic, implement


class Sum(NamedTuple):
    """Plain numbers, products and sums; tables are scaled to maximum one on the way."""

    zero: float = 0.0
    one: float = 1.0


class Max(NamedTuple):
    """Logarithms, sums and maxima: the most probable state."""

    zero: float = -math.inf
    one: float = 0.0


class LogSum(NamedTuple):
    """Logarithms, sums and logarithms of sums: slow, but nothing is too small for it."""

    zero: float = -math.inf
    one: float = 0.0


Ring = Sum | Max | LogSum


@generic
def join(ring: Ring, a: float, b: float) -> float:
    """Combine two factors.

    Examples
    --------
    >>> join(Sum(), 2.0, 3.0), join(Max(), 2.0, 3.0)
    (6.0, 5.0)
    """
    raise NotImplementedError


@generic
def gather(ring: Ring, a: float, b: float) -> float:
    """Add up two alternatives.

    Examples
    --------
    >>> gather(Sum(), 2.0, 3.0), gather(Max(), 2.0, 3.0), round(gather(LogSum(), 0.0, 0.0), 3)
    (5.0, 3.0, 0.693)
    """
    raise NotImplementedError


@generic
def cancel(ring: Ring, a: float, b: float) -> float:
    """Take a factor out again; zero without anything is zero.

    Examples
    --------
    >>> cancel(Sum(), 6.0, 3.0), cancel(Sum(), 0.0, 0.0), cancel(LogSum(), 5.0, 3.0)
    (2.0, 0.0, 2.0)
    """
    raise NotImplementedError


@implement(join, Sum)
def _multiply(ring: Sum, a: float, b: float) -> float:
    return a * b


@implement(gather, Sum)
def _add(ring: Sum, a: float, b: float) -> float:
    return a + b


@implement(cancel, Sum)
def _divide(ring: Sum, a: float, b: float) -> float:
    return a / b if b > 0.0 else 0.0


@implement(join, Max)
def _join_max(ring: Max, a: float, b: float) -> float:
    return a + b


@implement(gather, Max)
def _larger(ring: Max, a: float, b: float) -> float:
    return a if a > b else b


@implement(cancel, Max)
def _cancel_max(ring: Max, a: float, b: float) -> float:
    return a - b if b > -math.inf else -math.inf


@implement(join, LogSum)
def _join_log(ring: LogSum, a: float, b: float) -> float:
    return a + b


@implement(gather, LogSum)
def _log_add(ring: LogSum, a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a)) if b > -math.inf else a


@implement(cancel, LogSum)
def _cancel_log(ring: LogSum, a: float, b: float) -> float:
    return a - b if b > -math.inf else -math.inf
