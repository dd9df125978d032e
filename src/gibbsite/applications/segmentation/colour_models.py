"""How probable a colour is for each label, learnt from scribbled pixels: colours that vary in space [1]_.

Of label l there are m_l scribbled pixels j with places x_j and colours c_j. The density of colour c at
place x is

    p_l(c, x) = (1 - e) / m_l  sum_j  k(x - x_j; r_l(x)) k(c - c_j; s)  +  e / V,

with Gaussian kernels k of a width s in colour and r_l(x) in place. The width in place is in proportion to the
distance of x from the nearest scribble of the label: near a scribble its own colours count, far from all
of them every scribble of the label does. Without places it is a plain kernel estimate of the colours.
The share e of colours of any kind (V is the volume of all) bounds what a single pixel can say.

References
----------
.. [1] Nieuwenhuis, C. and Cremers, D. (2013). Spatially varying color distributions for interactive
   multilabel segmentation. IEEE Transactions on Pattern Analysis and Machine Intelligence 35(5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.applications.segmentation.colours import Floats

#: Scribbled pixels of a label that are kept, evenly spread over all of them.
MOST_SEEDS = 256
#: Share of colours that no scribble tells anything about.
OUTLIERS = 1e-3
#: Volume of the colours of a screen in L*a*b*.
VOLUME = 8.2e5
#: Of the kernels in colour, in L*a*b*.
WIDTH = 8.0
# Width of the kernels in place: times the distance from the nearest scribble, and at least.
_REACH, _NEAREST = 2.0, 0.02
_PIXELS = 1 << 12  # whose densities are computed together: their table of kernels stays in the cache


@dataclass(frozen=True, eq=False)
class ColourModels:
    """Densities of colours by label.

    Attributes
    ----------
    colours : list of float arrays (seeds, 3)
        L*a*b* of the scribbled pixels of each label.
    places : list of float arrays (seeds, 2)
        Where they are: rows and columns, as shares of the longer side of the image.
    width : float
        Of the kernels in colour.
    """

    colours: list[Floats]
    places: list[Floats]
    width: float

    @classmethod
    def learn(
        cls,
        colours: Floats,
        places: Floats,
        scribbles: NDArray[Any],
        labels: int,
        width: float = WIDTH,
    ) -> ColourModels:
        """Take the scribbled pixels of an image.

        Parameters
        ----------
        colours, places : float arrays (height, width, 3) and (height, width, 2)
            Of all pixels.
        scribbles : int array (height, width)
            Labels, -1 where there is no scribble.
        labels : int
            How many there are.
        width : float
            Of the kernels in colour.
        """
        seeds = [_spread(np.flatnonzero(scribbles.ravel() == label)) for label in range(labels)]
        flat, at = colours.reshape(-1, 3), places.reshape(-1, 2)
        return cls([flat[each] for each in seeds], [at[each] for each in seeds], width)

    def log_densities(self, colours: Floats, places: Floats | None = None, reach: Any = None) -> Floats:
        """Return the logarithms of the densities of all labels.

        Parameters
        ----------
        colours : float array (n, 3)
            L*a*b* of pixels.
        places : float array (n, 2), optional
            Where they are; without it, densities of colours alone are returned.
        reach : float array (n, labels), optional
            Widths of the kernels in place.

        Returns
        -------
        float array (n, labels)
        """
        n, labels = len(colours), len(self.colours)
        logs = np.empty((n, labels), np.float32)
        floor = np.log(OUTLIERS / VOLUME)
        kernel = -1.5 * np.log(2 * np.pi * self.width**2)
        for at in range(0, n, _PIXELS):
            part = slice(at, at + _PIXELS)
            for label in range(labels):
                if not len(self.colours[label]):  # its scribbles are in no pixel of this level
                    logs[part, label] = floor
                    continue
                exponent = _halved_squares(colours[part], self.colours[label]) / np.float32(-(self.width**2))
                bound = kernel + np.log1p(-OUTLIERS)
                if places is None:
                    logs[part, label] = np.logaddexp(_log_mean(exponent) + bound, floor)
                else:
                    wide = np.asarray(reach)[part, label]
                    near = _halved_squares(places[part], self.places[label])
                    exponent -= near / (wide**2)[:, None]
                    own = -np.log(2 * np.pi * wide**2)
                    logs[part, label] = np.logaddexp(_log_mean(exponent) + bound + own, floor)
        return logs


def kernel_reach(scribbles: NDArray[Any], labels: int, unit: float) -> Floats:
    """Return the widths of the kernels in place (height, width, labels); ``unit`` is the size of a pixel."""
    from scipy.ndimage import distance_transform_edt

    reach = np.empty((*scribbles.shape, labels), np.float32)
    for label in range(labels):
        seen = scribbles == label
        reach[..., label] = distance_transform_edt(~seen) * (_REACH * unit) if seen.any() else 1.0
    return np.maximum(reach, np.float32(_NEAREST), out=reach)


def _spread(seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return MOST_SEEDS of the seeds at most, evenly spread."""
    if seeds.size <= MOST_SEEDS:
        return seeds
    return seeds[np.linspace(0, seeds.size - 1, MOST_SEEDS).round().astype(np.int64)]


def _halved_squares(points: Floats, centres: Floats) -> Floats:
    """Return half of the squared distances between all points and all centres."""
    halves: Floats = 0.5 * np.einsum("ij,ij->i", points, points)[:, None] - points @ centres.T
    halves += 0.5 * np.einsum("ij,ij->i", centres, centres)
    return np.maximum(halves, 0.0, out=halves)


def _log_mean(exponent: Floats) -> Floats:
    """Return the logarithms of the mean exponentials of rows."""
    top = exponent.max(axis=1, keepdims=True)
    exponent -= top
    np.exp(exponent, out=exponent)
    logs: Floats = np.log(exponent.mean(axis=1)) + top[:, 0]
    return logs
