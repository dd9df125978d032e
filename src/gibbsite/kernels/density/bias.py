"""The bias of steps without an accept step, computed from curvature and noise near the mean of a run.

Near its mean m, a target has the log-density -(x - m)^T H (x - m) / 2. For steps x' = x + g M grad + noise with noise
of covariance Q = 2 g M + g^2 M V M, where V is the covariance of an estimated gradient, the covariance S satisfies

    S = A S A^T + Q,    A = I - g M H,

and differs from H^-1. The mean of the gradient is zero under both distributions. So if the third derivatives T are not
zero, the bias of the mean is H^-1 T : (S - H^-1) / 2 to first order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats

_DOUBLINGS = 60
_WIDTH = 1e-4  # step of difference quotients of gradients, in standard deviations of a run


class Bias(NamedTuple):
    """The estimated bias of a kernel."""

    mean: Floats  # (n,): bias of the means
    sd: Floats  # (n,): relative bias of the standard deviations
    spread: Floats  # (n,): the standard deviations that draws of the kernel have if the approximation holds
    noise: float = 0.0  # largest g V / 2, the contribution of noise in the gradient; zero if gradients are exact


def curvature_at(gradients: Callable[[Floats], Floats], place: Floats, sds: Floats) -> Floats:
    """Return minus the second derivatives at a place, from differences of gradients (rows of places)."""
    aside = np.diag(_WIDTH * sds)
    ends = gradients(np.concatenate([place + aside, place - aside])).reshape(2, place.size, place.size)
    found = -(ends[0] - ends[1]) / (2.0 * _WIDTH * sds[:, None])
    even: Floats = 0.5 * (found + found.T)
    return even


def bias_of_steps(
    gradients: Callable[[Floats], Floats], place: Floats, curvature: Floats, g: float, shape: Floats, noise: Floats
) -> Bias | None:
    """Return the bias of steps of size g, given H, M and V; None if the curvature is not positive definite.

    ``gradients`` computes gradients at places (rows); ``place`` is the mean of the run.

    Examples
    --------
    >>> one = np.eye(1)
    >>> found = bias_of_steps(lambda x: -0.5 * x, np.zeros(1), 0.5 * one, 1.0, one, 0.0 * one)
    >>> round(float(found.spread[0] ** 2), 3)  # 2 s^4 / (2 s^2 - g) for s^2 = 2
    2.667
    """
    n = place.size
    if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature)[0] <= 0.0:
        return None
    right = np.linalg.inv(curvature)
    power = np.eye(n) - g * shape @ curvature
    many = np.full(n, np.inf)
    strength = float(np.linalg.eigvalsh(0.5 * g * shape @ noise @ shape + 1e-300 * np.eye(n))[-1])
    strength /= float(np.linalg.eigvalsh(shape)[0])
    if np.abs(np.linalg.eigvals(power)).max() >= 1.0:
        return Bias(many, many, many, strength)
    law = 2.0 * g * shape + g * g * shape @ noise @ shape
    for _ in range(_DOUBLINGS):
        more = power @ law @ power.T
        law, power = law + more, power @ power
        if np.abs(more).max() <= 1e-12 * np.abs(law).max():
            break
    values, vectors = np.linalg.eigh(law - right)
    ways = (vectors * np.sqrt(np.abs(values))).T
    ends = gradients(np.concatenate([place + ways, place - ways, place[None]]))
    bend = (np.sign(values)[:, None] * (ends[:n] + ends[n : 2 * n] - 2.0 * ends[-1])).sum(axis=0)
    spread = np.sqrt(np.diag(law))
    return Bias(0.5 * right @ bend, spread / np.sqrt(np.diag(right)) - 1.0, spread, strength)
