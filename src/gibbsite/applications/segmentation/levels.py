"""Coarse to fine: an image and its scribbles in halves, and the band along borders that is looked at again.

A pixel of a level is the mean of two times two pixels of the finer one; the last row or column of an odd
size is repeated.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Bools, Bytes


def halve_image(image: Bytes) -> Bytes:
    """Return an image of half the size: means of 2 x 2 pixels."""
    image = _even(image)
    total = image[0::2, 0::2].astype(np.uint16)
    for rows, columns in ((0, 1), (1, 0), (1, 1)):
        total += image[rows::2, columns::2]
    total += 2
    total >>= 2
    return total.astype(np.uint8)


def halve_scribbles(scribbles: Array) -> Array:
    """Return scribbles of half the size: what any of 2 x 2 pixels has, the largest label of several."""
    scribbles = _even(scribbles)
    rows = np.maximum(scribbles[0::2], scribbles[1::2])
    return np.maximum(rows[:, 0::2], rows[:, 1::2])


def _even(image: Array) -> Array:
    height, width = image.shape[:2]
    odd = ((0, height % 2), (0, width % 2), *((0, 0),) * (image.ndim - 2))
    return np.pad(image, odd, mode="edge") if height % 2 or width % 2 else image


def enlarge(values: Array, shape: tuple[int, int]) -> Array:
    """Return values of a level at the pixels of the next finer one."""
    return values.repeat(2, axis=0).repeat(2, axis=1)[: shape[0], : shape[1]]


def border_band(labels: Array) -> Bools:
    """Return the pixels at a border between labels, and those next to such pixels."""
    band = np.zeros(labels.shape, bool)
    down, right = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
    band[1:] |= down
    band[:-1] |= down
    band[:, 1:] |= right
    band[:, :-1] |= right
    return widen(band)


def widen(band: Bools) -> Bools:
    """Return pixels with all that touch them, corners included."""
    tall = band.copy()
    tall[1:] |= band[:-1]
    tall[:-1] |= band[1:]
    wide = tall.copy()
    wide[:, 1:] |= tall[:, :-1]
    wide[:, :-1] |= tall[:, 1:]
    return wide
