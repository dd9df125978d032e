"""The banana: p(x, y) proportional to exp(-x^2 / 10 - y^4 / 10 - 2 (y - x^2)^2), and its moments from a grid.

Its gradient is (-x / 5 + 8 x (y - x^2), -(2 / 5) y^3 - 4 (y - x^2)); the notes print another first entry,
(-2 x / 5) + 4 x (y - x^2), which is wrong in both terms.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Floats

# functions whose means are compared
LOOKED_AT = ("x", "x^2", "y", "y^2", "y > 1")


def log_density(z: Any) -> Any:
    """Return the logarithm of the density, up to a constant."""
    return -(z[0] ** 2) / 10.0 - z[1] ** 4 / 10.0 - 2.0 * (z[1] - z[0] ** 2) ** 2


def gradient(z: Any) -> Any:
    """Return its gradient."""
    bend = z[1] - z[0] ** 2
    return np.array([-z[0] / 5.0 + 8.0 * z[0] * bend, -0.4 * z[1] ** 3 - 4.0 * bend])


def printed_gradient(z: Any) -> Any:
    """Return what the notes print for it; it is the gradient of nothing."""
    bend = z[1] - z[0] ** 2
    return np.array([-2.0 * z[0] / 5.0 + 4.0 * z[0] * bend, -0.4 * z[1] ** 3 - 4.0 * bend])


@cache
def target() -> gs.LogDensity:
    """Return the banana with its gradient."""
    return gs.LogDensity(log_density, gradient, dim=2, names=["x", "y"])


def evaluate(x: Floats, y: Floats) -> Floats:
    """Return the functions that are compared, in a new last axis."""
    return np.stack([x, x**2, y, y**2, (y > 1.0).astype(float)], axis=-1)


def grid(half: float = 4.0, cells: int = 1600) -> tuple[Floats, Floats]:
    """Return the midpoints of a square grid, and the probabilities of its cells (x, y).

    The density falls so fast that the sum over midpoints has the accuracy of the numbers themselves.
    """
    middle = np.asarray((np.arange(cells) + 0.5) * (2.0 * half / cells) - half, np.float64)
    p: Floats = np.exp(log_density(np.stack(np.meshgrid(middle, middle, indexing="ij"))))
    return middle, p / p.sum()


@cache
def truth() -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of all functions, from the grid."""
    middle, p = grid()
    values = evaluate(*np.meshgrid(middle, middle, indexing="ij"))
    means = np.einsum("ij,ijk->k", p, values)
    squares = np.einsum("ij,ijk->k", p, values**2)
    sds = np.sqrt(squares - means**2)
    return {name: (float(m), float(s)) for name, m, s in zip(LOOKED_AT, means, sds, strict=True)}
