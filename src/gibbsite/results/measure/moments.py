"""Cells of numbers: from means of a value and its square to mean and standard deviation, and those of angles.

Of an angle a, in radians, a run records cos a and sin a. Their means are a vector in the plane: its angle is
the mean direction, its length R the resultant length, 1 for a constant and 0 for an angle that is uniform.
Means of parts of a run are vectors too, seen from the pooled direction: what they have along it belongs to R,
what they have across it, over R, to the direction (both up to terms of second order), so that errors are
those of means. Variances within a part are taken from its own length, as those of a wrapped normal
distribution: (1 - R^2)^2 / 2 along its direction, (1 - R^4) / 2 across.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats, Positions

_SHORT = 1e-12  # a length below which there is no direction


class Directions:
    """Angles among cells of other kinds.

    Parameters
    ----------
    mean : float array (cells,)
        Pooled means of all cells.
    first : int array (angles,)
        Cells that are cosines; the sine follows each.
    rate, low : float arrays (angles,)
        Radians per unit of the angle, and the smallest value that it has.

    Examples
    --------
    >>> turn = Directions(np.array([0.0, 0.5]), np.array([0]), np.array([np.pi / 180.0]), np.array([0.0]))
    >>> turn.pooled(np.array([0.0, 0.5])).round(9).tolist()
    [90.0, 0.5]
    """

    def __init__(self, mean: Floats, first: Positions, rate: Floats, low: Floats) -> None:
        self.first, self.second, self.rate = first, first + 1, rate
        cosine, sine = mean[self.first], mean[self.second]
        self.length = np.hypot(cosine, sine)
        self.angle = np.arctan2(sine, cosine)
        self.divisor = np.maximum(self.length, _SHORT) * rate
        self.direction = low + np.mod(self.angle / rate - low, 2.0 * np.pi / rate)

    def pooled(self, mean: Floats) -> Floats:
        """Return the pooled means with direction and length in place of cosine and sine."""
        mean = mean.copy()
        mean[self.first], mean[self.second] = self.direction, self.length
        return mean

    def unrolled(self, parts: Array) -> Array:
        """Return the means of parts with direction and length in place of cosine and sine."""
        cosine, sine = parts[..., self.first], parts[..., self.second]
        along = np.cos(self.angle) * cosine + np.sin(self.angle) * sine
        across = np.cos(self.angle) * sine - np.sin(self.angle) * cosine
        parts[..., self.first] = self.direction + across / self.divisor
        parts[..., self.second] = along
        return parts

    def variance(self, parts: Array) -> tuple[Array, Array]:
        """Return the variances of a draw of directions and lengths, from pooled means or those of parts."""
        along, across = parts[..., self.second], (parts[..., self.first] - self.direction) * self.divisor
        square = np.clip(np.square(along) + np.square(across), 0.0, 1.0)
        own, other = 0.5 * np.square(1.0 - square), 0.5 * (1.0 - np.square(square))
        turned = np.square(np.sin(np.arctan2(across, along)))
        by_direction = (turned * own + (1.0 - turned) * other) / np.square(self.divisor)
        return by_direction, (1.0 - turned) * own + turned * other


class Moments:
    """Cells of numbers among cells of probabilities: a value and its square, or mean and standard deviation.

    Those of angles are left to :class:`Directions`.

    The standard deviation s of a value of mean m is, up to terms of second order, the mean of
    s + ((x - m)^2 - s^2) / (2 s): so parts of a run have one each, and its error is that of a mean. Its own
    variance within a part is taken to be s^2 / 2, that of a normal distribution.
    """

    def __init__(
        self, mean: Floats, numbers: Positions, angular: Floats | None = None, low: Floats | None = None
    ) -> None:
        rate = np.zeros(numbers.size) if angular is None else angular
        lowest = np.zeros(numbers.size) if low is None else low
        turns = rate > 0
        self.angles = Directions(mean, numbers[turns], rate[turns], lowest[turns])
        self.first, self.second = numbers[~turns], numbers[~turns] + 1
        self.cells = np.concatenate([numbers, numbers + 1])
        self.center = mean[self.first]
        square = np.square(self.center)
        variance = mean[self.second] - square
        # differences that small are rounding
        self.sd = np.sqrt(np.where(variance > 1e-14 * square, variance, 0.0))
        self.scale = np.ones(mean.size)
        self.scale[self.first] = self.scale[self.second] = np.where(self.sd > 0, self.sd, 1.0)
        spreads = self.angles.variance(self.angles.pooled(mean))
        for cells, spread in zip((self.angles.first, self.angles.second), spreads, strict=True):
            self.scale[cells] = np.sqrt(np.where(spread > 0, spread, 1.0))

    def sds(self, mean: Floats) -> Floats:
        """Return the pooled means with standard deviations in place of squares."""
        mean = self.angles.pooled(mean)
        mean[self.second] = self.sd
        return mean

    def unrolled(self, parts: Array) -> Array:
        """Return the means of parts with standard deviations in place of squares."""
        if not self.cells.size:
            return parts
        parts = self.angles.unrolled(parts.astype(float))
        half = 0.5 / self.scale[self.first]
        value = parts[..., self.first] - self.center
        squares = parts[..., self.second] - 2.0 * self.center * value - np.square(self.center)
        parts[..., self.second] = self.sd + half * (squares - np.square(self.sd))
        return parts

    def variance(self, mean: Floats) -> Floats:
        """Return the variance of a draw of each cell, from pooled means or from those of parts."""
        found: Floats = np.clip(mean, 0.0, 1.0)
        found = found * (1.0 - found)
        # back from what stands for the standard deviation to squares about the center
        rise = 2.0 * self.scale[self.first] * (mean[..., self.second] - self.sd)
        squares = np.square(self.sd) + rise - np.square(mean[..., self.first] - self.center)
        found[..., self.first] = np.clip(squares, 0.0, None)
        found[..., self.second] = 0.5 * found[..., self.first]
        found[..., self.angles.first], found[..., self.angles.second] = self.angles.variance(mean)
        return found

    def clipped(self, parts: Floats) -> Floats:
        """Return the means of parts, probabilities between 0 and 1."""
        found = np.clip(parts, 0.0, 1.0)
        found[..., self.cells] = parts[..., self.cells]
        return found
