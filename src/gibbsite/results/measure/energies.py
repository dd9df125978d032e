"""What a short series of log-potentials tells about a run: round trips, agreement of chains, worth in draws.

Chains keep a few dozen log-potentials over their whole length (``Tape.pulse``). The log-potential is one
number that every mode has its own distribution of, so it often shows what no single site shows.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats

ROUNDING = 1e-9  # log-potentials closer than this, relatively, are equal
_SEGMENTS = 4  # of each chain, to see how far values depend on each other


def count_round_trips(series: Floats) -> int | None:
    """Return how often chains went from low to high log-potentials and back, all chains together.

    Parameters
    ----------
    series : float array (chains, values)
        Log-potentials of each chain in the order of time.

    Returns
    -------
    int or None
        Low is the lowest quarter of all values, high the highest; None if these are the same.

    Examples
    --------
    >>> count_round_trips(np.array([[0.0, 3.0, 1.0, 0.0, 2.0, 3.0, 0.0]]))
    2
    """
    if not series.size:
        return None
    low, high = np.quantile(series, (0.25, 0.75))
    if high - low <= ROUNDING * (1.0 + max(abs(low), abs(high))):
        return None
    trips = 0
    for chain in series:
        side = np.where(chain <= low, -1, np.where(chain >= high, 1, 0))
        ends = side[side != 0]
        trips += int((np.diff(ends) != 0).sum()) // 2
    return trips


def count_effective(series: Floats) -> float:
    """Return how many independent values a series is worth: at least one, at most as many as there are.

    From means of segments: where values depend on each other these scatter more than they would otherwise.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(4, 64))
    >>> 100 < count_effective(noise) <= 256 and count_effective(np.cumsum(noise, axis=1)) < 32
    True
    """
    chains, values = series.shape
    length = values // _SEGMENTS
    variance = float(series.var())
    if length < 1 or variance == 0.0:
        return float(max(series.size, 1))
    means = series[:, : length * _SEGMENTS].reshape(chains * _SEGMENTS, length).mean(axis=1)
    scatter = float(means.var(ddof=1))
    worth = series.size if scatter == 0.0 else variance / scatter * means.size
    return float(np.clip(worth, 1.0, series.size))


def measure_disagreement(series: Floats) -> float:
    """Return R-hat of a series over the halves of its chains; 1 if all values are equal.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(4, 64))
    >>> measure_disagreement(noise) < 1.1 < measure_disagreement(noise + 2.0 * np.arange(4)[:, None])
    True
    """
    half = series.shape[1] // 2
    if half < 2 or np.ptp(series) <= ROUNDING * (1.0 + np.abs(series).max()):
        return 1.0
    parts = np.concatenate([series[:, :half], series[:, -half:]])
    within = float(parts.var(axis=1, ddof=1).mean())
    between = float(parts.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return np.inf
    return float(np.sqrt((half - 1) / half + between / within))
