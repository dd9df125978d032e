"""Patches of an image and their visual words: texture, colour and place [1]_.

Patches of 20 x 20 pixels lie 10 pixels apart, 31 x 20 of them on an image of 320 x 213 pixels. Each has three
words, which the aspect model assumes to be independent given the class of the patch:

* texture: the nearest of some histograms of gradients (4 x 4 cells of 5 x 5 pixels, 8 directions: the layout
  of SIFT), scaled down where contrast is low, so that plain patches are similar;
* colour: the nearest of some histograms of hues, weighted by chroma, scaled down where chroma is low;
* place: one of 10 x 10 parts of the image.

References
----------
.. [1] Verbeek, J. and Triggs, B. (2007). Region classification with Markov field aspect models. CVPR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Floats, Floats32, Ints, Positions
from gibbsite._common.wording import missing
from gibbsite.errors import IncompatibleError, ModelError

PATCH, STRIDE = 20, 10
DIRECTIONS, HUES, PLACES = 8, 36, 10
_CELL = 5
# half of all patches of photographs have a contrast of at least 0.05; those with much less are plain
_PLAIN, _COLOURLESS = 0.015, 0.02
_LEARNT_FROM = 30_000  # largest number of patches that a vocabulary is learnt from


class Descriptors(NamedTuple):
    """Descriptors of patches, row by row."""

    texture: Floats32  # (patches, numbers): histograms
    colour: Floats32
    shape: tuple[int, int]  # rows and columns of patches


def patch_shape(height: int, width: int) -> tuple[int, int]:
    """Return the rows and columns of patches of an image."""
    if min(height, width) < PATCH:
        raise ModelError(f"the image has {width} x {height} pixels; at least {PATCH} x {PATCH} are needed for a patch.")
    return height // STRIDE - 1, width // STRIDE - 1


def need_skimage() -> None:
    """Raise an error if scikit-image is not installed."""
    try:
        import skimage  # noqa: F401
    except ImportError:
        raise IncompatibleError(missing("Segmentation by patches needs", "scikit-image", "segmentation")) from None


def describe(image: Bytes) -> Descriptors:
    """Return histograms of the gradients and of the hues of all patches.

    ``image`` (height, width, 3): a photograph.
    """
    need_skimage()
    from skimage.color import rgb2gray, rgb2hsv
    from skimage.feature import hog

    rows, columns = patch_shape(*image.shape[:2])
    # every second block of 4 x 4 cells is a patch
    used = image[: STRIDE * (rows + 1), : STRIDE * (columns + 1)]
    grey = rgb2gray(used)
    blocks = hog(
        grey,
        orientations=DIRECTIONS,
        pixels_per_cell=(_CELL, _CELL),
        cells_per_block=(PATCH // _CELL, PATCH // _CELL),
        block_norm="L2-Hys",
        feature_vector=False,
    )[::2, ::2].reshape(rows * columns, -1)
    contrast = _patch_means(np.hypot(*np.gradient(grey))[..., None]).reshape(-1, 1)
    texture = blocks * (contrast / (contrast + _PLAIN))
    hsv = rgb2hsv(used)
    bins = np.minimum((HUES * hsv[..., 0]).astype(np.intp), HUES - 1)
    return Descriptors(texture.astype(np.float32), _hues(bins, hsv[..., 1] * hsv[..., 2]), (rows, columns))


def _cells(image: Array) -> Array:
    """Return the sums over squares whose side is the stride of patches."""
    high, wide = image.shape[0] // STRIDE, image.shape[1] // STRIDE
    sums: Array = image.reshape(high, STRIDE, wide, STRIDE, -1).sum(axis=(1, 3))
    return sums


def _patches(cells: Array) -> Array:
    """Return the sums over patches from those over squares; a patch consists of four squares."""
    return cells[:-1, :-1] + cells[1:, :-1] + cells[:-1, 1:] + cells[1:, 1:]


def _patch_means(image: Array) -> Array:
    return _patches(_cells(image)) / PATCH**2


def _hues(bins: Positions, chroma: Floats) -> Floats32:
    """Return smoothed histograms of hues, weighted by chroma, with norm one unless chroma is low."""
    high, wide = bins.shape[0] // STRIDE, bins.shape[1] // STRIDE
    square = np.add.outer(wide * (np.arange(bins.shape[0]) // STRIDE), np.arange(bins.shape[1]) // STRIDE)
    counts = np.bincount((HUES * square + bins).ravel(), chroma.ravel(), HUES * high * wide)
    means = _patches(counts.reshape(high, wide, HUES)) / PATCH**2
    # neighbouring hues are similar: smooth by a Gaussian with a width of one bin, around the circle
    weights = np.exp(-0.5 * np.arange(-3, 4) ** 2.0)
    weights /= weights.sum()
    smooth = sum(weight * np.roll(means, k, axis=2) for k, weight in zip(range(-3, 4), weights, strict=True))
    flat = np.asarray(smooth).reshape(-1, HUES)
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    found: Floats32 = (flat / (lengths + _COLOURLESS)).astype(np.float32)
    return found


def labelled_shares(labels: Array) -> Floats:
    """Return the share of the pixels of every patch that have a label, an array (patches,).

    ``labels`` (height, width): labels of the pixels, negative where there is none.
    """
    rows, columns = patch_shape(*labels.shape)
    used = labels[: STRIDE * (rows + 1), : STRIDE * (columns + 1)]
    shares: Floats = _patch_means((used >= 0).astype(np.float64)).reshape(rows * columns)
    return shares


def spread(patches: Array, height: int, width: int) -> Array:
    """Return for every pixel the value of the patch with the nearest centre."""
    places = [
        np.clip((np.arange(pixels) - (PATCH - STRIDE) // 2) // STRIDE, 0, many - 1)
        for pixels, many in zip((height, width), patches.shape[:2], strict=True)
    ]
    return patches[np.ix_(*places)]


def nearest(centres: Floats32, rows: Floats32) -> Ints:
    """Return the nearest centre of each row."""
    distances = (centres * centres).sum(axis=1) - 2.0 * (rows @ centres.T)
    found: Ints = distances.argmin(axis=1)
    return found


@dataclass(frozen=True, eq=False)
class VisualWords:
    """Vocabularies of texture and colour."""

    texture: Floats32  # (words, numbers): their centres
    colour: Floats32

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of words of each kind: texture, colour, place."""
        return len(self.texture), len(self.colour), PLACES**2

    def read(self, found: Descriptors) -> Ints:
        """Return the words of patches, an array (patches, 3)."""
        rows, columns = found.shape
        place = np.add.outer(
            PLACES * (PLACES * np.arange(rows) // rows), PLACES * np.arange(columns) // columns
        ).ravel()
        return np.stack([nearest(self.texture, found.texture), nearest(self.colour, found.colour), place], axis=1)


def learn_words(found: Sequence[Descriptors], texture: int, colour: int, rng: int) -> VisualWords:
    """Return vocabularies of ``texture`` and ``colour`` words, fewer if there are fewer patches, by k-means."""
    try:
        from sklearn.cluster import MiniBatchKMeans
    except ImportError:
        raise IncompatibleError(missing("Learning visual words needs", "scikit-learn", "segmentation")) from None
    centres = []
    for number, (kind, words) in enumerate((("texture", texture), ("colour", colour))):
        rows = np.concatenate([getattr(one, kind) for one in found])
        chosen = np.random.default_rng([rng, number]).permutation(len(rows))[:_LEARNT_FROM]
        search = MiniBatchKMeans(
            min(words, len(chosen)), n_init=1, batch_size=2048, max_iter=8, random_state=rng, init="random"
        )
        centres.append(search.fit(rows[chosen]).cluster_centers_.astype(np.float32))
    return VisualWords(*centres)
