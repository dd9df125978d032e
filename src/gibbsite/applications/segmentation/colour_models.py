"""How probable a colour is for each label, learnt from scribbled pixels: colours that vary in space [1]_.

Of label l there are m_l scribbled pixels j with places x_j and colours c_j. The density of colour c at place x is

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

import numpy as np

from gibbsite._common.arrays import Array, Floats32, Ints

#: Scribbled pixels of a label that are kept, evenly spread over all of them.
MOST_SEEDS = 128
#: Share of colours that no scribble tells anything about.
OUTLIERS = 1e-3
#: Volume of the colours of a screen in L*a*b*.
VOLUME = 8.2e5
#: Of the kernels in colour, in L*a*b*.
WIDTH = 8.0
# Width of the kernels in place: times the distance from the nearest scribble, and at least.
_REACH, _NEAREST = 2.0, 0.02
# Pixels whose densities are computed together: a product of so small matrices is left to one thread by BLAS,
# whose threads would wait for each other longer than it takes.
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
        """Take the scribbled pixels of an image.

        ``colours``, ``places`` (height, width, 2): of all pixels; ``scribbles`` (height, width): labels, -1 where
        there is no scribble; ``labels``: how many there are; ``width``: of the kernels in colour.
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
                else:  # its scribbles are in no pixel of this level
                    logs[part, label] = -np.inf
        floor = np.float32(np.log(OUTLIERS / VOLUME))
        densities: Floats32 = np.logaddexp(logs + np.float32(np.log1p(-OUTLIERS)), floor)
        return densities

    def _log_kernels(self, label: int, colours: Floats32, places: Floats32 | None) -> Floats32:
        """Return the logarithms of the mean kernels around the seeds of a label.

        The exponents are scalar products of what belongs to pixels and what belongs to seeds: one product of
        matrices, but for terms of pixels alone.
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
    """Return MOST_SEEDS of the seeds at most, evenly spread."""
    if seeds.size <= MOST_SEEDS:
        return seeds
    return seeds[np.linspace(0, seeds.size - 1, MOST_SEEDS).round().astype(np.int64)]
