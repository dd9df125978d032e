"""Ratios of times with their spread, from repeated measurements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class TimeRatio(NamedTuple):
    """How many times longer one computation takes than another.

    Attributes
    ----------
    low, middle, high : float
        The tenth, fiftieth and ninetieth percentile of the ratios of all pairs of measurements.
    """

    low: float
    middle: float
    high: float

    def text(self) -> str:
        """Return the ratio with its spread.

        Examples
        --------
        >>> TimeRatio(1.9, 2.0, 2.25).text()
        '2 (1.9 to 2.2) times'
        """
        return f"{self.middle:.2g} ({self.low:.2g} to {self.high:.2g}) times"

    def exceeds(self, bound: float = 1.0) -> bool | None:
        """Return whether the ratio is above a bound, or None if the spread includes the bound.

        Examples
        --------
        >>> TimeRatio(1.9, 2.0, 2.25).exceeds(), TimeRatio(0.9, 1.0, 1.2).exceeds()
        (True, None)
        """
        return True if self.low > bound else None if self.high > bound else False


def compare_times(slower: Any, faster: Any) -> TimeRatio:
    """Return how many times longer the first computation takes, given repeated times of both.

    Examples
    --------
    >>> compare_times([2.0, 2.2], [1.0]).text()
    '2.1 (2 to 2.2) times'
    """
    ratios = np.divide.outer(np.ravel(slower), np.ravel(faster))
    low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9)).tolist()
    return TimeRatio(low, middle, high)
