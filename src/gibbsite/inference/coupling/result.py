"""What pairs of chains say that have met: meeting times, a bound on the distance, marginals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.results.table import SiteTable, observed_cells

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


_UNSEEN = 2.0  # standard error of a count of zero, as of states that were never entered


@dataclass(frozen=True, eq=False, repr=False)
class Coupling:
    """Independent pairs of coupled chains.

    Attributes
    ----------
    model : FactorGraph
        The model.
    lag : int
        How many sweeps one chain of a pair is ahead.
    warmup, sweeps : int
        Marginals are averages of so many sweeps after so many, corrected.
    times : int array (pairs,)
        Sweeps of the chain ahead after which the chains of a pair met; -1 where they did not.
    most : int
        Sweeps after which a pair was given up.
    total, square : float arrays (cells,)
        Sums over pairs of estimates, and of their squares.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.couple(gs.ising_grid((6, 6), coupling=0.2), pairs=50, rng=1)
    >>> found.met, bool(found.bound(0) >= found.bound(10) >= 0.0)
    (50, True)
    """

    model: FactorGraph
    lag: int
    warmup: int
    sweeps: int
    times: Ints
    most: int
    total: Floats
    square: Floats

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.times.size)

    @property
    def met(self) -> int:
        """Number of pairs that have met."""
        return int((self.times >= 0).sum())

    def bound(self, sweeps: Any = 0) -> Any:
        """Return an estimated upper bound of the distance to stationarity after some sweeps from the start.

        That is the total variation distance between the law of a chain's state and the model's law, of
        which E max(0, ceil((time - lag - sweeps) / lag)) is an upper bound (Biswas, Jacob and Vanetti). It is
        one, which says nothing, where some pairs have not met.

        Parameters
        ----------
        sweeps : int or int array
            Numbers of sweeps.

        Returns
        -------
        float, or array
        """
        found = np.minimum(self._terms(sweeps).mean(axis=0), 1.0)
        return float(found) if np.ndim(sweeps) == 0 else found

    def bound_mcse(self, sweeps: Any = 0) -> Any:
        """Return the standard error of :meth:`bound`, from the spread of the pairs; NaN if some have not met.

        It is 2 / pairs at least: what none of them did may still happen.
        """
        spread = self._terms(sweeps).std(axis=0, ddof=1) / np.sqrt(self.pairs)
        spread = np.maximum(spread, _UNSEEN / self.pairs)
        found = np.where(self.met == self.pairs, spread, np.nan)
        return float(found) if np.ndim(sweeps) == 0 else found

    def safe_bound(self, sweeps: int = 0) -> float:
        """Return :meth:`bound` plus its standard error, at most one; one if some pairs have not met.

        Examples
        --------
        The distance to stationarity after the warmup of a run, from 100 pairs that start as its chains do:

        >>> import gibbsite as gs
        >>> model = gs.ising_grid((5, 5), coupling=0.2, field=0.1)
        >>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
        >>> pairs = gs.couple(model, gs.Gibbs(), pairs=100, rng=result.plan.entropy)
        >>> pairs.safe_bound(result.warmup)
        0.02
        """
        if self.met < self.pairs:
            return 1.0
        return min(1.0, float(self.bound(sweeps) + self.bound_mcse(sweeps)))

    def _terms(self, sweeps: Any) -> Floats:
        """Return what every pair adds to the bound (pairs, ...)."""
        after = np.asarray(sweeps, np.int64)
        if (after < 0).any():
            raise ArgumentError(f"{argument('sweeps')} must not be negative, got {sweeps!r}.")
        if self.met < self.pairs:
            return np.ones((self.pairs, *after.shape))
        late = self.times.reshape(-1, *(1,) * after.ndim) - self.lag - after
        terms: Floats = np.maximum(-(-late // self.lag), 0).astype(float)
        return terms

    def mixing_time(self, distance: float = 0.25) -> int | None:
        """Return the number of sweeps after which the bound is at most a distance; None if it is not known.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.couple(gs.ising_grid((3, 3), coupling=0.1), pairs=20, rng=1).mixing_time() < 10
        True
        """
        if not 0 < distance < 1:
            raise ArgumentError(f"{argument('distance')} must be between 0 and 1, got {distance!r}.")
        if self.met < self.pairs:
            return None
        after = np.arange(max(int(self.times.max()) - self.lag, 0) + 1)
        return int(after[self.bound(after) <= distance][0])

    @property
    def marginals(self) -> SiteTable:
        """Estimates of marginals without bias; a single one may lie outside of 0 to 1.

        Raises
        ------
        SamplingError
            If some pairs have not met: what is left of the others is biased.
        """
        self._demand()
        return self._table(self.total / self.pairs, 1.0)

    @property
    def mcse(self) -> SiteTable:
        """Standard errors of the marginals, from the spread of independent pairs."""
        self._demand()
        mean = self.total / self.pairs
        variance = np.maximum(self.square / self.pairs - mean**2, 0.0) / max(self.pairs - 1, 1)
        return self._table(np.sqrt(variance), 0.0)

    def _demand(self) -> None:
        if self.met < self.pairs:
            raise SamplingError(
                f"{self.pairs - self.met:,} of {self.pairs:,} pairs of chains had not met after "
                f"{self.most:,} sweeps, so there are no estimates without bias; allow more sweeps with "
                f"{argument('most')}."
            )

    def _table(self, cells: Floats, certain: float) -> SiteTable:
        model = self.model
        observed = observed_cells(model.evidence, model.evidence_labels, certain)
        return SiteTable(model.domains, cells, observed=observed)

    def line(self) -> str:
        """Return lag, meeting times and the bound in one line."""
        if self.met < self.pairs:
            return f"{self.met:,} of {self.pairs:,} pairs of chains met within {self.most:,} sweeps"
        late = self.times - self.lag
        return (
            f"{self.pairs:,} pairs of chains, lag {self.lag:,}, met after {np.median(late):,.0f} sweeps "
            f"(at most {late.max():,}); distance to stationarity below 0.25 after {self.mixing_time():,}"
        )

    def __repr__(self) -> str:
        return f"Coupling({self.line()})"
