"""Unary terms of pixels: densities of colours and distances from scribbles.

Of label l there are m_l scribbled pixels j with places x_j and colours c_j. The density of colour c at place x is a
kernel estimate that varies in space [1]_:

    p_l(c, x) = (1 - e) / m_l  sum_j  k(x - x_j; r_l(x)) k(c - c_j; s)  +  e / V,

with Gaussian kernels k of width s in colour and r_l(x) in place. The width in place is proportional to the distance of
x from the nearest scribble of the label, so that near a scribble its own colours dominate, and far from all scribbles
all of them count. The share e of outliers (V is the volume of all colours) bounds the influence of a single pixel.

The distance from the scribbles of a label is geodesic [2]_: paths avoid edges, because a step between neighbouring
pixels is as long as their distance plus the difference of their colours in units of COLOUR_STEP.

References
----------
.. [1] Nieuwenhuis, C. and Cremers, D. (2013). Spatially varying color distributions for interactive
   multilabel segmentation. IEEE Transactions on Pattern Analysis and Machine Intelligence 35(5).
.. [2] Bai, X. and Sapiro, G. (2009). Geodesic matting: a framework for fast interactive image and video
   segmentation and matting. International Journal of Computer Vision 82(2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Array, Floats32, Ints
from gibbsite.applications.segmentation.field import Neighbourhood, squared_steps

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


#: Largest number of scribbled pixels that are kept for a label.
MOST_SEEDS = 128
#: Share of outliers, whose colours are arbitrary.
OUTLIERS = 1e-3
#: Volume of the colours of a screen in L*a*b*.
VOLUME = 8.2e5
#: Width of the kernels in colour, in L*a*b*.
WIDTH = 8.0
# Width of the kernels in place, relative to the distance from the nearest scribble, and its minimum.
_REACH, _NEAREST = 2.0, 0.02
# Number of pixels whose densities are computed together: BLAS uses one thread for such small matrices, which is faster.
_PIXELS = 256


@dataclass(frozen=True, eq=False)
class ColourModels:
    """Densities of colours by label."""

    colours: list[Floats32]  # (seeds, 3): L*a*b* of the scribbled pixels of each label
    places: list[Floats32]  # (seeds, 2): where they are: rows and columns, as shares of the longer side of the image
    width: float  # of the kernels in colour

    @classmethod
    def learn(
        cls, colours: Floats32, places: Floats32, scribbles: Array, labels: int, width: float = WIDTH
    ) -> ColourModels:
        """Learn the densities from the scribbled pixels of an image.

        ``colours``, ``places`` (height, width, 2): of all pixels; ``scribbles`` (height, width): labels, -1 where
        there is no scribble; ``labels``: number of labels; ``width``: of the kernels in colour.
        """
        seeds = [_spread(np.flatnonzero(scribbles.ravel() == label)) for label in range(labels)]
        flat, at = colours.reshape(-1, 3), places.reshape(-1, 2)
        return cls([flat[each] for each in seeds], [at[each] for each in seeds], width)

    def log_densities(self, colours: Floats32, places: Floats32 | None = None) -> Floats32:
        """Return the logarithms of the densities of all labels.

        ``colours`` (n, 3): L*a*b* of pixels; ``places``: where they are; without it, densities of colours alone are
        returned. The result has the shape (n, labels).
        """
        logs = np.empty((len(colours), len(self.colours)), np.float32)
        for label, seeds in enumerate(self.colours):
            for at in range(0, len(colours), _PIXELS):
                part = slice(at, at + _PIXELS)
                if len(seeds):
                    logs[part, label] = self._log_kernels(
                        label, colours[part], None if places is None else places[part]
                    )
                else:  # a label without a scribble at this level
                    logs[part, label] = -np.inf
        floor = np.float32(np.log(OUTLIERS / VOLUME))
        densities: Floats32 = np.logaddexp(logs + np.float32(np.log1p(-OUTLIERS)), floor)
        return densities

    def _log_kernels(self, label: int, colours: Floats32, places: Floats32 | None) -> Floats32:
        """Return the logarithms of the mean kernels around the seeds of a label.

        Up to terms that depend on the pixel alone, the exponents are scalar products of a vector of the pixel and
        one of the seed, so that one matrix product gives all of them.
        """
        inverse = np.float32(self.width**-2)
        seeds = self.colours[label]
        of_pixels = [colours * inverse, np.ones((len(colours), 1), np.float32)]
        of_seeds = [seeds, -0.5 * inverse * np.einsum("ij,ij->i", seeds, seeds)[:, None]]
        alone = -0.5 * inverse * np.einsum("ij,ij->i", colours, colours)
        alone -= np.float32(1.5 * np.log(2 * np.pi * self.width**2))
        if places is not None:
            where = self.places[label]
            sizes = np.einsum("ij,ij->i", where, where)[:, None]
            own = np.einsum("ij,ij->i", places, places)
            nearest = (sizes[:, 0] - 2.0 * (places @ where.T)).min(axis=1) + own
            steep = 1.0 / np.maximum(nearest * np.float32(_REACH**2), np.float32(_NEAREST**2))
            of_pixels += [places * steep[:, None], -0.5 * steep[:, None]]
            of_seeds += [where, sizes]
            alone += np.log(steep / np.float32(2 * np.pi)) - 0.5 * steep * own
        exponents = np.hstack(of_pixels) @ np.hstack(of_seeds).T
        top = exponents.max(axis=1)
        exponents -= top[:, None]
        np.exp(exponents, out=exponents)
        logs: Floats32 = np.log(exponents.mean(axis=1)) + top + alone
        return logs


def _spread(seeds: Ints) -> Ints:
    """Return at most MOST_SEEDS of the seeds, evenly spaced."""
    if seeds.size <= MOST_SEEDS:
        return seeds
    return seeds[np.linspace(0, seeds.size - 1, MOST_SEEDS).round().astype(np.int64)]


#: Difference of colours, in L*a*b*, that counts as a distance of one pixel.
COLOUR_STEP = 5.0
#: Added to distances in pixels before the logarithm.
_BLUR = 3.0


def log_proximity(around: Neighbourhood, colours: Floats32, scribbles: Array, labels: int) -> Floats32:
    """Return minus the logarithms of the distances of all nodes from the scribbles of each label.

    ``around``: all pixels (or superpixels) and their neighbours; ``colours`` (n, 3): their colours in L*a*b*;
    ``scribbles`` (n,): their labels, -1 where there is no scribble; ``labels``: number of labels. The result (n,
    labels) is ``-log(distance + 3)`` with distances in pixels; a label without scribbles has the largest distance.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    n = scribbles.size
    steps = 1.0 / around.closeness + np.sqrt(squared_steps(colours, around.pairs)) / COLOUR_STEP
    graph = csr_matrix((steps, (around.pairs[:, 0], around.pairs[:, 1])), shape=(n, n))
    logs = np.empty((n, labels), np.float32)
    for label in range(labels):
        sources = np.flatnonzero(scribbles == label)
        far = np.full(n, np.inf)
        if sources.size:
            far = dijkstra(graph, directed=False, indices=sources, min_only=True)
        finite = np.isfinite(far)
        far[~finite] = far[finite].max(initial=float(n))
        logs[:, label] = -np.log(far + _BLUR)
    return logs
