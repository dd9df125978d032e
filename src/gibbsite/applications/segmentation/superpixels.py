"""Superpixels: small regions of one colour instead of pixels (SLIC of scikit-image) [1]_.

References
----------
.. [1] Achanta, R. et al. (2012). SLIC superpixels compared to state-of-the-art superpixel methods. IEEE
   Transactions on Pattern Analysis and Machine Intelligence 34(11).
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Floats32, Ints
from gibbsite.applications.segmentation.field import Neighbourhood, grid_neighbourhood
from gibbsite.errors import IncompatibleError


def find_superpixels(image: Bytes, count: int) -> Ints:
    """Return the number of its superpixel for every pixel, counted from 0.

    ``image`` (height, width, 3): the image; ``count``: about how many there shall be.
    """
    try:
        from skimage.segmentation import slic
    except ImportError:
        raise IncompatibleError(
            "Superpixels need scikit-image, which is not installed; run: pip install gibbsite[segmentation]"
        ) from None
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
