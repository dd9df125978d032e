"""Kinds of images: how pixels become numbers, and answers become pixels again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints16
from gibbsite.errors import ModelError


@dataclass(frozen=True, eq=False)
class Pixels:
    """An image as numbers."""

    values: Floats  # (height, width): the pixels, in the units of the image
    kind: np.dtype[Any]  # what the image was made of
    low: float  # smallest and largest pixel
    high: float

    @cached_property
    def top(self) -> float:
        """White: the largest 8- or 16-bit number if pixels are such, in whatever type; otherwise 1."""
        if self.kind in (np.uint8, np.uint16):
            return float(np.iinfo(self.kind).max)
        for white in (255.0, 65535.0):
            if self.low >= 0.0 and 0.5 * white < self.high <= white:
                return white if (self.values == np.rint(self.values)).all() else 1.0
        return 1.0

    @property
    def counted(self) -> bool:
        """Whether pixels are 8- or 16-bit numbers, which end at black and white."""
        return self.top > 1.0

    @property
    def two_valued(self) -> bool:
        """Whether there are two values at most."""
        v = self.values
        return bool(((v == self.low) | (v == self.high)).all())

    @property
    def pair(self) -> tuple[float, float]:
        """The two values of a two-valued image; of a single one, it and what it is told from."""
        if self.low < self.high:
            return self.low, self.high
        return (0.0, self.top) if self.low in (0.0, self.top) else (self.low - 1.0, self.low)

    def like(self, values: Floats) -> Array:
        """Return numbers as pixels of the kind of the image."""
        if self.kind == np.bool_:
            return values > 0.5
        if self.kind.kind in "iu":
            limits = np.iinfo(self.kind)
            return np.clip(np.rint(values), limits.min, limits.max).astype(self.kind)
        return values.astype(self.kind)


def read_pixels(image: Any, name: str = "the image") -> Pixels:
    """Check an array and return it as numbers."""
    try:
        array = np.asarray(image)
    except ValueError:
        raise ModelError(f"{name} has rows of unequal length.") from None
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{name} must be an array of bool, whole numbers or floats, got {array.dtype}.")
    if array.ndim == 3:
        raise ModelError(f"{name} is coloured, its shape is {array.shape}; convert it to grey first.")
    if array.ndim != 2 or not array.size:
        raise ModelError(f"{name} must have a height and a width, got shape {array.shape}.")
    values = array.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        raise ModelError(f"{name} has pixels that are not finite; replace them first.")
    return Pixels(values, array.dtype, low, high)


def nearest_level(values: Floats, levels: Floats) -> Ints16:
    """Return which of the equidistant levels is nearest to each pixel."""
    step = levels[1] - levels[0]
    codes: Ints16 = np.clip(np.rint((values - levels[0]) / step), 0, levels.size - 1).astype(np.int16)
    return codes
