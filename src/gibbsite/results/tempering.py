"""What a tempered run tells besides the marginals of its target: round trips, the barrier, log Z."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arguments import is_number
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.results.measure.measurement import measure_errors

if TYPE_CHECKING:
    from gibbsite.results.table import SiteTable


@dataclass(frozen=True, eq=False)
class AtBeta:
    """A model at another temperature, as far as a tempered run tells.

    Attributes
    ----------
    beta : float
        The inverse temperature: the law is reference^(1 - beta) model^beta.
    log_z, log_z_error : float
        Natural logarithm of the sum of the model's weights to the power beta over all states, and the
        standard error. NaN for beta below 1 where the reference is not uniform, so that the rungs are no
        temperatures of the model (``Tempered(reference="even")`` has a uniform one), and where the model has
        zeros, which are softened there.
    gain, gain_error : float
        Mean of U, the logarithm of the model's weight over the reference's probability, and its standard
        error.
    energy, energy_error : float
        Mean of the energy, minus the log-potential, and its standard error; NaN where ``log_z`` is.
    heat_capacity, heat_capacity_error : float
        beta^2 times the variance of the energy, and its standard error; NaN where ``log_z`` is.
    effective : float
        How many draws of this temperature the draws of all rungs are worth, before their dependence.
    marginals : SiteTable or None
        Of a rung, where they were recorded (``Tempered(keep="all")``).
    """

    beta: float
    log_z: float
    log_z_error: float
    gain: float
    gain_error: float
    energy: float
    energy_error: float
    heat_capacity: float
    heat_capacity_error: float
    effective: float
    marginals: SiteTable | None = None


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
    >>> tempering.betas[[0, -1]].tolist(), tempering.round_trips.shape
    ([0.0, 1.0], (4,))
    >>> bool(tempering.swap_rates.min() > 0.2)
    True
    """

    kept: dict[str, Array]

    def __repr__(self) -> str:
        trips = int(self.round_trips.sum())
        return (
            f"Tempering({self.betas.size} rungs, {trips:,} round trips, swap rates {self.swap_rates.min():.2f} or more)"
        )

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        swaps = [*(f"{rate:.2f}" for rate in self.swap_rates), ""]
        rows = [(k, f"{beta:.4g}", swap) for k, (beta, swap) in enumerate(zip(self.betas, swaps, strict=True))]
        about = f"{self.betas.size} rungs, {int(self.round_trips.sum()):,} round trips"
        return card("Tempering", [about], table=grid(("rung", "beta", "swaps with the next rung"), rows))

    @property
    def betas(self) -> Floats:
        """Inverse temperatures of the rungs."""
        return self.kept["betas"]

    @property
    def round_trips(self) -> Ints:
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

    def at(self, beta: float) -> AtBeta:
        """Return what the draws of all rungs tell about another temperature, by multistate reweighting.

        Parameters
        ----------
        beta : float
            Inverse temperature, between those of the first and the last rung.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((4, 4), coupling=0.8)
        >>> result = gs.sample(model, gs.Tempered(), sweeps=4000, rng=1, progress=False)
        >>> half, exact = result.tempering.at(0.5), gs.solve_exact(gs.ising_grid((4, 4), coupling=0.4))
        >>> bool(abs(half.log_z - exact.log_z) < 5 * half.log_z_error)
        True
        """
        low, high = float(self.betas[0]), float(self.betas[-1])
        if not (is_number(beta) and low <= beta <= high):
            raise ArgumentError(f"{argument('beta')} must be a number from {low:g} to {high:g}, got {beta!r}.")
        if min(self.kept[name].shape[1] for name in ("gains", "averages")) < 2 * _BLOCKS:
            raise ArgumentError("The run is too short to tell about other temperatures; run longer.")
        found = _reweight(beta, self.betas, self._gains, self.log_ratios)
        parts = [_reweight(beta, self.betas, *part) for part in self._without_a_block]
        spread = np.array([(one.log_z, one.gain, one.heat_capacity) for one in parts])
        many = len(parts)
        errors = np.sqrt((many - 1) / many * np.square(spread - spread.mean(axis=0)).sum(axis=0))
        # The logarithm of the reference's probability of a state where that is the same for all; otherwise
        # NaN, which makes everything NaN that it is added to.
        level = float(self.kept["level"][0])
        rest = (1.0 - beta) * level if beta < 1.0 else 0.0
        return replace(
            found,
            log_z=found.log_z - rest if low == 0.0 else math.nan,
            log_z_error=float(errors[0]) + 0.0 * rest if low == 0.0 else math.nan,
            gain_error=float(errors[1]),
            energy=-(found.gain + level),
            energy_error=float(errors[1]) + 0.0 * level,
            heat_capacity=found.heat_capacity + 0.0 * level,
            heat_capacity_error=float(errors[2]) + 0.0 * level,
        )

    @cached_property
    def _gains(self) -> Floats:
        """U of draws of all rungs (chains, draws, rungs); of many, evenly spread ones."""
        gains = self.kept["gains"]
        most = max(_BLOCKS, _MOST_TERMS // (gains.shape[0] * gains.shape[2] ** 2))
        return gains[:, :: -(-gains.shape[1] // most)]

    @cached_property
    def _without_a_block(self) -> list[tuple[Floats, Floats]]:
        """Draws, and differences of log Z, without one of several blocks of each chain: for a jackknife.

        Blocks are long, so that their dependence does not matter much.
        """
        averages, gains, cut = self.kept["averages"], self._gains, self.kept["cut"]
        found = []
        for chain, block in np.ndindex(len(gains), _BLOCKS):
            kept = []
            for rows in (averages, gains):
                first, last = (rows.shape[1] * k // _BLOCKS for k in (block, block + 1))
                left = np.concatenate([rows[chain, :first], rows[chain, last:]])
                kept.append(np.concatenate([left, *(rows[c] for c in range(len(rows)) if c != chain)]))
            mean = kept[0].mean(axis=0)
            found.append((kept[1], cut + np.log(mean[::2]) - np.log(mean[1::2])))
        return found


# Blocks of each chain that are left out in turn, and terms of the sums that are taken each time.
_BLOCKS, _MOST_TERMS = 8, 300_000


def _reweight(beta: float, betas: Floats, gains: Floats, log_ratios: Floats) -> AtBeta:
    """Return estimates at an inverse temperature from draws of all rungs.

    Of no draw it is asked which rung it comes from: all rungs together are one mixture, with the log Z that
    the run has found (Shirts and Chodera 2008).
    """
    log_z = np.concatenate([[0.0], np.cumsum(log_ratios)])
    logs = gains.ravel()[:, None] * betas - log_z
    top = logs.max(axis=1)
    mixed = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
    own = beta * gains.ravel() - mixed
    shift = float(own.max())
    weight = np.exp(own - shift)
    total = float(weight.sum())
    gain = float(weight @ gains.ravel()) / total
    variance = float(weight @ np.square(gains.ravel() - gain)) / total
    return AtBeta(
        beta=float(beta),
        log_z=shift + math.log(total * betas.size / weight.size),
        log_z_error=math.nan,
        gain=gain,
        gain_error=math.nan,
        energy=math.nan,
        energy_error=math.nan,
        heat_capacity=beta**2 * variance,
        heat_capacity_error=math.nan,
        effective=total**2 / float(weight @ weight),
    )
