"""Minimisation of smooth functions with many parameters, with or without an L1 penalty: OWL-QN and L-BFGS.

Smooth functions are minimised by SciPy. With an L1 penalty, directions come from the two loops of Nocedal (1980)
over the latest pairs of steps and gradients; the gradient is the pseudo-gradient, components of directions whose sign
disagrees with it are set to zero, and steps stay within their orthant (Andrew and Gao 2007).

References
----------
.. [1] Nocedal, J. (1980). Updating quasi-Newton matrices with limited storage. Mathematics of Computation 35.
.. [2] Andrew, G. and Gao, J. (2007). Scalable training of L1-regularized log-linear models. ICML.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats

Function = Callable[[Floats], tuple[float, Floats]]

_DECREASE = 1e-4  # least decrease of a step, as a share of that predicted by the slope
_MOST_TRIALS = 20
_MEMORY = 6


@dataclass(frozen=True)
class Minimum:
    """The result of a minimisation."""

    x: Floats  # the parameters
    value: float  # the function at x, including the penalty
    iterations: int  # number of steps
    evaluations: int  # number of evaluations of the function
    converged: bool  # whether the gradient or the decrease was below its tolerance


def minimise(
    function: Function,
    start: Floats,
    *,
    l1: float = 0.0,
    iterations: int = 100,
    tolerance: float = 1e-5,
    flatness: float = 0.0,
    watch: Callable[[int, float], bool] | None = None,
) -> Minimum:
    """Find a minimum of a function with gradient, plus ``l1`` times the sum of absolute values.

    ``function`` maps parameters to a value and a gradient, which must be a new array. The search makes at most
    ``iterations`` steps from ``start``. It stops if the norm of the gradient is below ``tolerance`` times the larger of
    1 and the norm of the parameters, or if ten steps decrease the value by less than the share ``flatness``, unless
    that is 0. It also stops if ``watch``, which is called with the number of steps and the value, returns True.

    Returns
    -------
    Minimum
        The best point found.
    """
    judge = _Judge(tolerance, flatness, watch)
    if l1 > 0.0:
        return _minimise_in_orthants(function, start, np.full(start.size, float(l1)), iterations, judge)
    return _minimise_smooth(function, start, iterations, judge)


class _Judge:
    """The stopping rule."""

    def __init__(self, tolerance: float, flatness: float, watch: Callable[[int, float], bool] | None) -> None:
        self.tolerance, self.flatness, self.watch = tolerance, flatness, watch
        self.earlier: deque[float] = deque(maxlen=10)
        self.done, self.converged = 0, False

    def is_over(self, x: Floats, value: float, slope: Floats) -> bool:
        """Record a step; return whether it is the last one."""
        self.done += 1
        flat = len(self.earlier) == 10 and self.earlier[0] - value <= self.flatness * abs(value)
        self.converged = self.is_flat(x, slope) or (self.flatness > 0.0 and flat)
        self.earlier.append(value)
        stop = self.watch is not None and self.watch(self.done, value)
        return self.converged or stop

    def is_flat(self, x: Floats, slope: Floats) -> bool:
        """Return whether the gradient is below the tolerance."""
        return _norm(slope) <= self.tolerance * max(1.0, _norm(x))


def _minimise_smooth(function: Function, start: Floats, iterations: int, judge: _Judge) -> Minimum:
    """Minimise without an L1 penalty by the L-BFGS of SciPy."""
    from scipy.optimize import minimize

    latest: list[Floats] = []

    def keeping(x: Floats) -> tuple[float, Floats]:
        value, gradient = function(x)
        latest[:] = [gradient]
        return value, gradient

    def after(intermediate_result: Any) -> None:
        found = intermediate_result
        if judge.is_over(found.x, float(found.fun), latest[0]):
            raise StopIteration

    options = {"maxcor": _MEMORY, "maxiter": iterations, "maxfun": 20 * iterations + 20, "ftol": 0.0, "gtol": 0.0}
    found = minimize(keeping, start, jac=True, method="L-BFGS-B", options=options, callback=after)
    # SciPy stops if rounding prevents progress
    converged = judge.converged or (judge.done < iterations and found.status != 99)
    return Minimum(found.x, float(found.fun), int(found.nit), int(found.nfev), bool(converged))


def _minimise_in_orthants(function: Function, start: Floats, shrink: Floats, iterations: int, judge: _Judge) -> Minimum:
    """Minimise with an L1 penalty by OWL-QN."""
    x = np.array(start, np.float64)
    smooth, gradient = function(x)
    value, slope = smooth + _penalty(x, shrink), _pseudo(x, gradient, shrink)
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    evaluations, over = 1, judge.is_flat(x, slope)
    judge.converged = over
    while judge.done < iterations and not over:
        direction = _direction(slope, pairs)
        direction[direction * slope >= 0.0] = 0.0
        step = 1.0 if pairs else 1.0 / max(_norm(slope), 1e-300)
        found = _search(function, x, value, slope, direction, step, shrink)
        evaluations += found.trials
        if not found.better:
            if not pairs:  # no progress along the gradient, because of rounding
                judge.converged = True
                break
            pairs.clear()
            continue
        moved, turned = found.x - x, found.gradient - gradient
        x, value, gradient = found.x, found.value, found.gradient
        bend = _dot(moved, turned)
        if bend > 1e-12 * _dot(turned, turned):
            pairs.append((moved, turned, bend))
        slope = _pseudo(x, gradient, shrink)
        over = judge.is_over(x, value, slope)
    return Minimum(x, value, judge.done, evaluations, judge.converged)


def _dot(a: Floats, b: Floats) -> float:
    """Return the inner product on this thread; BLAS would compete with the threads of the function."""
    return float(np.einsum("i,i->", a, b))


def _norm(a: Floats) -> float:
    return float(np.sqrt(_dot(a, a)))


def _penalty(x: Floats, shrink: Floats) -> float:
    return _dot(shrink, np.abs(x))


def _pseudo(x: Floats, gradient: Floats, shrink: Floats) -> Floats:
    """Return the subgradient of least norm."""
    side = np.where(x != 0.0, np.sign(x), -np.sign(gradient))
    found = gradient + side * shrink
    found[(x == 0.0) & (np.abs(gradient) <= shrink)] = 0.0
    return found


def _direction(slope: Floats, pairs: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return minus the slope times the L-BFGS approximation of the inverse Hessian."""
    direction = -slope
    if not pairs:
        return direction
    shares = []
    for moved, turned, bend in reversed(pairs):
        share = _dot(moved, direction) / bend
        direction -= share * turned
        shares.append(share)
    _, turned, bend = pairs[-1]
    direction *= bend / _dot(turned, turned)
    for (moved, turned, bend), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - _dot(turned, direction) / bend) * moved
    return direction


@dataclass
class _Found:
    """The result of a line search."""

    x: Floats
    value: float
    gradient: Floats
    trials: int
    better: bool


def _search(
    function: Function, x: Floats, value: float, slope: Floats, direction: Floats, step: float, shrink: Floats
) -> _Found:
    """Halve the step along a direction, within the orthant, until the value decreases enough."""
    orthant = np.where(x != 0.0, np.sign(x), -np.sign(slope))
    for trial in range(1, _MOST_TRIALS + 1):
        there = x + step * direction
        there[there * orthant <= 0.0] = 0.0
        smooth, gradient = function(there)
        now = smooth + _penalty(there, shrink)
        if now < value + _DECREASE * _dot(slope, there - x):
            return _Found(there, now, gradient, trial, True)
        step *= 0.5
    return _Found(x, value, slope, _MOST_TRIALS, False)
