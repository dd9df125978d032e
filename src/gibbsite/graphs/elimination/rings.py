"""Arithmetic of table entries: sums of probabilities, maxima of logarithms, or log-sum-exp.

Passes over a clique tree are written once and compiled for each ring.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gibbsite._numba.jit import generic, implement


class Sum(NamedTuple):
    """Products and sums of numbers; tables are rescaled to maximum one."""

    zero: float = 0.0
    one: float = 1.0


class Max(NamedTuple):
    """Sums and maxima of logarithms, for the most probable state."""

    zero: float = -math.inf
    one: float = 0.0


class LogSum(NamedTuple):
    """Sums and log-sum-exp of logarithms; slow, but without underflow."""

    zero: float = -math.inf
    one: float = 0.0


Ring = Sum | Max | LogSum


@generic
def join(ring: Ring, a: float, b: float) -> float:
    """Multiply two factors."""
    raise NotImplementedError


@generic
def gather(ring: Ring, a: float, b: float) -> float:
    """Sum (or maximise) over two alternatives."""
    raise NotImplementedError


@generic
def cancel(ring: Ring, a: float, b: float) -> float:
    """Divide by a factor; zero divided by zero is zero."""
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


def _join_logs(ring: Ring, a: float, b: float) -> float:
    return a + b


def _cancel_logs(ring: Ring, a: float, b: float) -> float:
    return a - b if b > -math.inf else -math.inf


for _logs in (Max, LogSum):
    implement(join, _logs)(_join_logs)
    implement(cancel, _logs)(_cancel_logs)


@implement(gather, Max)
def _larger(ring: Max, a: float, b: float) -> float:
    return a if a > b else b


@implement(gather, LogSum)
def _log_add(ring: LogSum, a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a)) if b > -math.inf else a
