"""What a tempered run tells besides the marginals of its target: round trips, the barrier, log Z."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.result.measure.measurement import measure_errors

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tempering:
    """Rungs of a tempered run and what was seen there.

    Parameters
    ----------
    kept : dict
        What :meth:`gibbsite.Tempered.kept` returns.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.7)
    >>> result = gs.sample(model, gs.Tempered(), sweeps=2000, rng=1, progress=False)
    >>> tempering = result.tempering
    >>> tempering.betas[0], tempering.betas[-1], tempering.round_trips.shape
    (0.0, 1.0, (4,))
    >>> bool(tempering.swap_rates.min() > 0.2)
    True
    """

    kept: dict[str, NDArray[Any]]

    @property
    def betas(self) -> Floats:
        """Inverse temperatures of the rungs."""
        return self.kept["betas"]

    @property
    def round_trips(self) -> NDArray[np.int64]:
        """How often states have gone from the reference to the target and back, in each chain."""
        return self.kept["trips"]

    @property
    def sweeps(self) -> int:
        """Sweeps of all chains together."""
        return int(self.kept["sweeps"].sum())

    @cached_property
    def swap_rates(self) -> Floats:
        """Probability that a swap of neighbouring rungs is accepted."""
        return np.asarray(self.kept["accepted"].sum(axis=0) / max(self.sweeps, 1))

    @property
    def barrier(self) -> float:
        """Communication barrier: the sum of the probabilities that swaps are rejected."""
        return float(np.sum(1.0 - self.swap_rates))

    @cached_property
    def log_ratios(self) -> Floats:
        """Differences of log Z between neighbouring rungs."""
        mean = self.kept["averages"].mean(axis=(0, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.kept["cut"] + np.log(mean[::2]) - np.log(mean[1::2]))

    @cached_property
    def log_z(self) -> float:
        """Natural logarithm of the partition function; NaN for a ladder that does not begin at 0."""
        if self.betas[0] > 0.0 or not self.kept["averages"].shape[1]:
            return math.nan
        return float(self.log_ratios.sum())

    @cached_property
    def influence(self) -> Floats:
        """What every batch of every chain adds to log Z, to first order (chains, batches)."""
        averages = self.kept["averages"]
        mean = averages.mean(axis=(0, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = averages / mean
        return np.asarray((parts[:, :, ::2] - parts[:, :, 1::2]).sum(axis=2))

    @cached_property
    def log_z_error(self) -> float:
        """Standard error of :attr:`log_z`, from the batches of all chains and their dependence."""
        influence = self.influence
        if not math.isfinite(self.log_z) or influence.shape[1] < 2 or not np.isfinite(influence).all():
            return math.nan
        return float(measure_errors(influence[:, :, None])[0])
