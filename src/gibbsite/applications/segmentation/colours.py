"""Colours as numbers whose distances are what people see: CIE L*a*b* of the white point D65."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats32

# linear light of 8-bit values (IEC 61966-2-1)
_VALUES = np.arange(256) / 255.0
_LINEAR = np.where(_VALUES <= 0.04045, _VALUES / 12.92, ((_VALUES + 0.055) / 1.055) ** 2.4).astype(np.float32)
# red, green and blue to X, Y and Z, each divided by that of white
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_TO_XYZ /= _TO_XYZ.sum(axis=1, keepdims=True)
_DARK = (6.0 / 29.0) ** 3  # below, the cube root is replaced by its tangent


def to_lab(pixels: Array) -> Floats32:
    """Return 8-bit sRGB colours (..., 3) as lightness L*, from 0 to 100, and the coordinates a* and b* of the hue.

    A distance of about 2 is just visible.
    """
    xyz = _LINEAR[pixels] @ _TO_XYZ.T.astype(np.float32)
    root = np.where(xyz > _DARK, np.cbrt(xyz), xyz * np.float32(841.0 / 108.0) + np.float32(4.0 / 29.0))
    x, y, z = root[..., 0], root[..., 1], root[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1).astype(np.float32)
