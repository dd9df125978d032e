"""Adaptation in the warmup: the size of moves (Robbins-Monro), and their covariance.

The size of moves is adapted to a target acceptance rate: after move t, log size += t^-0.6 (accepted - wanted). The
shape is the covariance of the visited places, in windows of doubling length, so that the influence of the start
vanishes; correlations are shrunk as if there were n + 5 more uncorrelated places. Adaptation ends with the warmup.

References
----------
.. [1] Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18.
.. [2] Haario, H., Saksman, E. and Tamminen, J. (2001). An adaptive Metropolis algorithm. Bernoulli 7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.errors import ArgumentError

# Largest number of coordinates for which a full covariance is learned; with more, only variances are.
MOST_DENSE = 128
_FIRST_WINDOW = 50
_POWER = -0.6
_PRIOR_PLACES = 5.0


def make_moments(n: int) -> Floats:
    """Allocate the count, the length of the window, and the mean and sums of squares (or products) of places."""
    return np.zeros(2 + n + (n * n if n <= MOST_DENSE else n))


def read_shape(given: Any, n: int, what: str) -> Floats:
    """Return the factor of a covariance given by a user: a number or array of variances, or a matrix."""
    try:
        matrix = np.asarray(given, float)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{argument(what)} must be numbers, got {describe(given)}.") from None
    if matrix.ndim < 2:
        if matrix.shape not in ((), (n,)) or not (np.isfinite(matrix).all() and (matrix > 0).all()):
            raise ArgumentError(f"{argument(what)} must be positive numbers, one or {n}, or a matrix, got {given!r}.")
        roots: Floats = np.sqrt(np.broadcast_to(matrix, (n,))).copy()
        return roots
    if matrix.shape != (n, n) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ArgumentError(f"{argument(what)} must be a symmetric matrix ({n}, {n}), got shape {matrix.shape}.")
    values = np.linalg.eigvalsh(matrix)
    if values[0] <= 0.0:
        raise ArgumentError(f"{argument(what)} must be positive definite; its smallest eigenvalue is {values[0]:.6g}.")
    return np.linalg.cholesky(matrix).ravel().copy()


@inlined
def tune_size(size: Floats, visits: Ints, k: Integer, accepted: float, wanted: float) -> None:
    """Increase the size of moves of kind k if their acceptance is above the target, otherwise decrease it."""
    visits[k] += 1
    size[k] *= math.exp(float(visits[k]) ** _POWER * (accepted - wanted))


@inlined
def stretch(factor: Floats, z: Floats, by: float, x: Floats, y: Floats) -> None:
    """Write x + by * L z to y, where L is diagonal or lower triangular."""
    n = z.size
    if factor.size == n:
        for k in range(n):
            y[k] = x[k] + by * factor[k] * z[k]
    else:
        for k in range(n):
            total = 0.0
            for m in range(k + 1):
                total += factor[k * n + m] * z[m]
            y[k] = x[k] + by * total


@inlined
def pull_back(factor: Floats, workspace: Floats, out: Floats) -> None:
    """Write L^T g to ``out`` for the gradient g of a workspace."""
    n = out.size
    if factor.size == n:
        for k in range(n):
            out[k] = factor[k] * workspace[n + k]
    else:
        for k in range(n):
            out[k] = 0.0
        for m in range(n):
            for k in range(m + 1):
                out[k] += factor[m * n + k] * workspace[n + m]


@called
def learn_shape(moments: Floats, x: Floats, factor: Floats) -> bool:
    """Add a place; at the end of a window, replace the factor. Return whether it was replaced."""
    n = x.size
    if moments[1] == 0.0:
        moments[1] = max(_FIRST_WINDOW, 4 * n)
    moments[0] += 1.0
    count = moments[0]
    dense = factor.size > n
    for k in range(n):
        off = x[k] - moments[2 + k]
        moments[2 + k] += off / count
        # the second deviations of coordinates up to k are from their new means
        if dense:
            for m in range(k + 1):
                moments[2 + n + k * n + m] += off * (x[m] - moments[2 + m])
        else:
            moments[2 + n + k] += off * (x[k] - moments[2 + k])
    if count < moments[1]:
        return False
    found = _factorise(moments, n) if dense else _spread(moments, n)
    if found:
        for k in range(factor.size):
            factor[k] = moments[2 + n + k]
    length = 2.0 * moments[1]
    for k in range(moments.size):
        moments[k] = 0.0
    moments[1] = length
    return found


@inlined
def _spread(moments: Floats, n: Integer) -> bool:
    for k in range(n):
        variance = moments[2 + n + k] / (moments[0] - 1.0)
        if not 0.0 < variance < math.inf:
            return False
        moments[2 + n + k] = math.sqrt(variance)
    return True


@inlined
def _factorise(moments: Floats, n: Integer) -> bool:
    """Turn sums of products into the Cholesky factor of their shrunk covariance, in place."""
    s = moments[2 + n :]
    count, prior = moments[0], n + _PRIOR_PLACES
    keep = count / (count + prior)
    for k in range(n):
        for m in range(n):
            if m > k:
                s[k * n + m] = 0.0
            else:
                s[k * n + m] *= (keep if m < k else 1.0) / (count - 1.0)
    for k in range(n):
        for m in range(k + 1):
            total = s[k * n + m]
            for j in range(m):
                total -= s[k * n + j] * s[m * n + j]
            if m < k:
                s[k * n + m] = total / s[m * n + m]
            elif 0.0 < total < math.inf:
                s[k * n + k] = math.sqrt(total)
            else:
                return False
    return True
