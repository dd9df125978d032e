"""Pictures of two levels, drawn by formulas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.bool_]


def letter(side: int) -> Picture:
    """Draw a capital A."""
    y, x = np.meshgrid(*[np.linspace(-1.0, 1.0, side)] * 2, indexing="ij")
    half = 0.4 * (y + 0.8)
    legs = (np.abs(np.abs(x) - half) < 0.13) & (np.abs(y) < 0.8)
    bar = (np.abs(y - 0.25) < 0.1) & (np.abs(x) < half)
    return legs | bar


def strokes(side: int) -> Picture:
    """Draw thin lines in all directions."""
    rng = np.random.default_rng(0)
    y, x = np.indices((side, side))
    drawn = np.zeros((side, side), bool)
    for _ in range(side // 20):
        x0, y0 = rng.uniform(0, side, 2)
        angle, length = rng.uniform(0, np.pi), rng.uniform(0.2, 0.5) * side
        along = (x - x0) * np.cos(angle) + (y - y0) * np.sin(angle)
        across = (y - y0) * np.cos(angle) - (x - x0) * np.sin(angle)
        drawn |= (np.abs(across) < 2.5) & (np.abs(along) < length / 2)
    return drawn


def discs(side: int) -> Picture:
    """Draw discs of several sizes."""
    y, x = np.indices((side, side)) / side
    drawn = np.zeros((side, side), bool)
    for x0, y0, radius in ((0.3, 0.3, 0.2), (0.75, 0.25, 0.1), (0.7, 0.7, 0.15), (0.2, 0.8, 0.08)):
        drawn |= np.hypot(x - x0, y - y0) < radius
    return drawn


def rings(side: int) -> Picture:
    """Draw rings around the middle, half of the picture."""
    radius = np.hypot(*(np.indices((side, side)) - side / 2))
    return np.sin(8 * np.pi * radius / side) > 0


PICTURES = {"letter": letter, "strokes": strokes, "discs": discs, "rings": rings}


def add_noise(picture: Picture, sigma: float, seed: int) -> NDArray[np.float64]:
    """Return Gaussian noise around -1 and +1."""
    return np.where(picture, 1.0, -1.0) + np.random.default_rng(seed).normal(0, sigma, picture.shape)
