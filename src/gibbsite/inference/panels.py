"""Distribution functions of densities on a line, from few values of their logarithm.

The line is cut into panels. In each of them the logarithm is a polynomial through five equidistant points, compared
with the density at four points between them. Where the two differ by more than a small share of all mass, the panel is
cut in half. Values of the distribution function then only need integrals of these polynomials, and no further values of
the density.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats

_ERROR = 1e-6  # largest error of a panel, as a share of all mass, that is not reduced by cutting it in half
_MOST_POINTS = 6000  # limit for densities that are rough everywhere
_NODES = 8  # of integrals of polynomials
_AT = np.linspace(0.0, 1.0, 5)


def _basis(t: Floats) -> Floats:
    """Return the Lagrange polynomials for the five points of a panel, at places between 0 and 1 (last axis)."""
    columns = []
    for k in range(5):
        others = np.delete(_AT, k)
        columns.append(((t[..., None] - others) / (_AT[k] - others)).prod(axis=-1))
    return np.stack(columns, axis=-1)


_BETWEEN = _basis((_AT[1:] + _AT[:-1]) / 2)


@functools.cache
def quadrature(many: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss-Legendre quadrature.

    Examples
    --------
    >>> nodes, weights = quadrature(2)
    >>> round(float(weights @ nodes**2), 12)
    0.666666666667
    """
    return np.polynomial.legendre.leggauss(many)


class Panels(NamedTuple):
    """Panels in ascending order: five points each, the logarithms there, and the mass, up to one factor for all."""

    points: Floats
    logs: Floats
    mass: Floats
    top: float  # largest logarithm

    @property
    def edges(self) -> Floats:
        """The edges of the panels."""
        return np.append(self.points[:, 0], self.points[-1, -1])

    def below(self, values: Floats) -> tuple[Floats, Bools]:
        """Return the mass below values, and which of them are in panels where the density is zero somewhere."""
        at = np.clip(np.searchsorted(self.points[:, 0], values, side="right") - 1, 0, len(self.mass) - 1)
        width = self.points[at, -1] - self.points[at, 0]
        share = np.clip((values - self.points[at, 0]) / width, 0.0, 1.0)
        zero: Bools = (self.logs[at] == -math.inf).any(axis=1)
        part = np.where(zero, share * self.mass[at], 0.0)
        part[~zero] = _integrate(self.logs[at[~zero]], width[~zero], share[~zero], self.top)
        return np.append(0.0, np.cumsum(self.mass))[at] + part, zero


def _integrate(logs: Floats, width: Floats, share: Floats, top: float) -> Floats:
    """Return the integral over the first part of each panel of the exponential of its polynomial."""
    nodes, weights = quadrature(_NODES)
    t = share[:, None] * (0.5 + 0.5 * nodes)
    inside = (_basis(t) * logs[:, None, :]).sum(axis=-1)
    # limited, because between points a polynomial may exceed the logarithm
    inside = np.minimum(inside, logs.max(axis=1, keepdims=True) + 1.0) - top
    found: Floats = 0.5 * width * share * (np.exp(inside) @ weights)
    return found


def find_panels(log_density: Callable[[Floats], Floats], edges: Floats) -> Panels | None:
    """Refine given panels of a line until the logarithm of a density is accurate in each of them.

    Returns None if the density is zero at all points.

    Examples
    --------
    >>> panels = find_panels(lambda x: -0.5 * x**2, np.linspace(-9.0, 9.0, 7))
    >>> below, _ = panels.below(np.array([0.0, 1.0]))
    >>> (below / panels.mass.sum()).round(6).tolist()
    [0.5, 0.841345]
    """
    x = edges[:-1, None] + np.diff(edges)[:, None] * _AT
    x[:, -1] = edges[1:]
    inner = log_density(np.append(x[:, :-1].ravel(), edges[-1]))
    logs = np.concatenate([inner[:-1].reshape(-1, 4), inner[4::4, None]], axis=1)
    done: list[tuple[Floats, Floats]] = []
    asked, top, known = inner.size, float(inner.max()), 0.0
    while len(x):
        between = (x[:, 1:] + x[:, :-1]) / 2
        seen = log_density(between.ravel()).reshape(between.shape)
        asked += seen.size
        # all nine points in order, and panels of half the width
        points, both = np.empty((len(x), 9)), np.empty((len(x), 9))
        points[:, ::2], points[:, 1::2], both[:, ::2], both[:, 1::2] = x, between, logs, seen
        highest = max(top, float(both.max()))
        known *= math.exp(top - highest) if top > -math.inf else 0.0
        top = highest
        if top == -math.inf:
            return None
        width = x[:, -1] - x[:, 0]
        error = _compare(logs, seen, width, top)
        total = known + float(width @ np.exp(both - top).mean(axis=1))
        rough = (error > _ERROR * total) & (between[:, 0] > x[:, 0]) & (between[:, -1] < x[:, -1])
        rough &= asked < _MOST_POINTS
        known += float(width[~rough] @ np.exp(both[~rough] - top).mean(axis=1))
        done += [(points[~rough, part], both[~rough, part]) for part in (slice(0, 5), slice(4, 9))]
        x = np.concatenate([points[rough, :5], points[rough, 4:]])
        logs = np.concatenate([both[rough, :5], both[rough, 4:]])
    points, logs = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.argsort(points[:, 0], kind="stable")
    points, logs = points[order], logs[order]
    width = points[:, -1] - points[:, 0]
    mass = width * np.exp(logs - top).mean(axis=1)
    whole = np.isfinite(logs).all(axis=1)
    mass[whole] = _integrate(logs[whole], width[whole], np.ones(int(whole.sum())), top)
    return Panels(points, logs, mass, top)


def _compare(logs: Floats, seen: Floats, width: Floats, top: float) -> Floats:
    """Return the approximate error of the mass of each panel due to its polynomial."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(np.exp(logs @ _BETWEEN.T - top) - np.exp(seen - top)).max(axis=1)
    largest = np.exp(np.maximum(logs.max(axis=1), seen.max(axis=1)) - top)
    finite = np.isfinite(logs).all(axis=1) & np.isfinite(seen).all(axis=1)
    found: Floats = width * np.where(finite, np.minimum(apart, largest), largest)
    return found
