"""Black and white images to spoil and restore: one that is drawn here, and real ones where there are any."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from gibbsite._common.arrays import Bools

_SILHOUETTE = "images/mpeg7/beetle-1.png"


def draw_strokes(side: int) -> Bools:
    """Draw a circle, a zigzag, a spiral and a letter with strokes of five pixels."""
    turn = np.linspace(0.0, 2.0 * np.pi, 40)
    wind = np.linspace(0.0, 4.5 * np.pi, 90)
    circle = np.stack([0.25 + 0.15 * np.sin(turn), 0.25 + 0.15 * np.cos(turn)], axis=1)
    spiral = np.stack([0.72 + 0.014 * wind * np.sin(wind), 0.72 + 0.014 * wind * np.cos(wind)], axis=1)
    zigzag = np.array([[0.58, 0.1], [0.9, 0.17], [0.58, 0.24], [0.9, 0.31], [0.58, 0.38], [0.9, 0.45]])
    letter = [np.array([[0.42, 0.55], [0.08, 0.7], [0.42, 0.85]]), np.array([[0.28, 0.61], [0.28, 0.79]])]
    pixels = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    near = np.full(side * side, np.inf)
    for line in (circle, zigzag, spiral, *letter):
        for a, b in pairwise(line):
            along = np.clip((pixels - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
            near = np.minimum(near, np.linalg.norm(pixels - a - along[:, None] * (b - a), axis=1))
    return (near <= 2.5 / side).reshape(side, side)


def find_silhouette(step: int) -> tuple[str, Bools] | None:
    """Return name and pixels of a real silhouette, every ``step``-th row and column, if it is at hand.

    It is looked for in the folder that ``GIBBSITE_DATA`` names, and nowhere else.
    """
    folder = os.environ.get("GIBBSITE_DATA")
    if not folder:
        return None
    path = Path(folder) / _SILHOUETTE
    try:
        from PIL import Image

        with Image.open(path) as image:
            pixels = np.asarray(image.convert("L"))
    except (ImportError, OSError):
        return None
    return path.stem, (pixels >= 128)[::step, ::step]
