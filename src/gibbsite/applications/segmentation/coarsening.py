"""Coarser versions of an image: pyramids of halved images, and superpixels.

A pixel of a pyramid level is the mean of 2 x 2 pixels of the next finer level; the last row or column of an odd size is
repeated. Superpixels are small regions of similar colour (SLIC of scikit-image) [1]_.

References
----------
.. [1] Achanta, R. et al. (2012). SLIC superpixels compared to state-of-the-art superpixel methods. IEEE
   Transactions on Pattern Analysis and Machine Intelligence 34(11).
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Bools, Bytes, Floats32, Ints
from gibbsite._common.wording import missing
from gibbsite.applications.segmentation.field import Neighbourhood, grid_neighbourhood
from gibbsite.errors import IncompatibleError


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
    """Return scribbles of half the size: the largest label of each 2 x 2 pixels."""
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
    """Return the pixels at a border between labels, and their neighbours."""
    band = np.zeros(labels.shape, bool)
    down, right = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
    band[1:] |= down
    band[:-1] |= down
    band[:, 1:] |= right
    band[:, :-1] |= right
    return widen(band)


def widen(band: Bools) -> Bools:
    """Return a set of pixels with all pixels that touch them, corners included."""
    tall = band.copy()
    tall[1:] |= band[:-1]
    tall[:-1] |= band[1:]
    wide = tall.copy()
    wide[:, 1:] |= tall[:, :-1]
    wide[:, :-1] |= tall[:, 1:]
    return wide


def find_superpixels(image: Bytes, count: int) -> Ints:
    """Return the superpixel of every pixel, numbered from 0; there are about ``count`` of them."""
    try:
        from skimage.segmentation import slic
    except ImportError:
        raise IncompatibleError(missing("Superpixels need", "scikit-image", "segmentation")) from None
    found = slic(image, n_segments=count, compactness=10.0, start_label=0, channel_axis=-1)
    return np.unique(found, return_inverse=True)[1].reshape(found.shape)


def region_neighbourhood(regions: Ints, neighbours: int) -> Neighbourhood:
    """Return the pairs of regions that touch; the longer their common border, the closer they are.

    The closeness of a pair is the length of its border, in units of the mean of all borders.
    """
    pixels = grid_neighbourhood(np.ones(regions.shape, bool), neighbours)
    ends = np.sort(regions.ravel()[pixels.pairs], axis=1)
    across = ends[:, 0] != ends[:, 1]
    n = int(regions.max()) + 1
    keys, inverse = np.unique(ends[across, 0] * n + ends[across, 1], return_inverse=True)
    length = np.bincount(inverse, pixels.closeness[across], keys.size)
    pairs = np.stack(np.divmod(keys, n), axis=1).astype(np.int32)
    mean = length.mean() if length.size else 1.0
    return Neighbourhood(np.arange(n), pairs, (length / mean).astype(np.float32))


def mean_of_regions(values: Array, regions: Ints) -> Floats32:
    """Return the means of the values (..., k) of the pixels of each region."""
    flat, where = values.reshape(regions.size, -1), regions.ravel()
    sums = np.stack([np.bincount(where, flat[:, k]) for k in range(flat.shape[1])], axis=1)
    return (sums / np.bincount(where)[:, None]).astype(np.float32)


def label_of_regions(scribbles: Array, regions: Ints, labels: int) -> Ints:
    """Return the label that most scribbled pixels of each region have, -1 where none is scribbled."""
    marked = scribbles >= 0
    cells = regions[marked] * labels + scribbles[marked]
    counts = np.bincount(cells, minlength=(int(regions.max()) + 1) * labels).reshape(-1, labels)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
