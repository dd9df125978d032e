"""Couplings between all pairs of sites, given by a function of their positions and never stored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import describe, is_number
from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import part
from gibbsite.errors import ModelError, TooLargeError
from gibbsite.models.domain import Domains, frozen
from gibbsite.models.evidence import Folding
from gibbsite.models.factor import LARGEST, TOO_LARGE, FactorGroup, TableFactors, WeightedGroup, group_text, store
from gibbsite.models.lattice import check_equal_states
from gibbsite.models.weighted import agreement_tables

#: Sites up to which pairs, or neighbours, are listed one by one where every site depends on all others.
MOST_LISTED = 4096
_CHECKED = 2000  # distances at which a function of the user is tried
_CHUNK = 1 << 22  # couplings computed at a time


@dataclass(frozen=True, eq=False, init=False)
class DistanceFactors(WeightedGroup):
    """Factors ``beta exp(-gamma |p_i - p_j|^2) [x_i == x_j]`` between all pairs of sites of a model.

    Another function of the distance may replace the exponential. Only the positions are stored. Up to 4096 sites, pairs
    can be listed as for other groups.

    Parameters
    ----------
    positions : float array (n, d)
        Where the sites are, in order.
    gamma : float
        How fast couplings fall with the distance; not negative.
    weights : float
        Beta, the coupling at distance zero; if negative, agreement is less probable.
    name : str, optional
        Name of the group.
    coupling : callable, optional
        ``f(d) -> number`` in place of exp(-gamma d^2): a function of the distance (``d[0]``) that Numba can
        compile, not negative, and nowhere rising.

    Examples
    --------
    >>> pairs = DistanceFactors([[0.0], [1.0], [3.0]], gamma=1.0, weights=2.0)
    >>> pairs.size, round(float(pairs.edge_weights()[0]), 4)
    (3, 0.7358)
    """

    positions: Floats
    gamma: float
    weights: Floats
    name: str | None
    coupling: Any

    def __init__(
        self,
        positions: npt.ArrayLike,
        gamma: float,
        weights: npt.ArrayLike,
        name: str | None = None,
        coupling: Any = None,
    ) -> None:
        at = read_reals(positions, "positions")
        if at.ndim != 2 or not at.shape[1]:
            raise ModelError(f"positions must have shape (n, d), one row per site, got shape {at.shape}.")
        if not np.isfinite(at).all():
            raise ModelError(f"position {int(np.argmin(np.isfinite(at).all(axis=1)))} is not finite.")
        beta = read_reals(weights, f"beta of {group_text(name)}")
        if beta.size != 1 or not np.isfinite(beta).all():
            raise ModelError(f"beta of {group_text(name)} must be one finite number, got {weights!r}.")
        if abs(beta.item()) > LARGEST:
            raise ModelError(f"beta of {group_text(name)} is {beta.item():g}; {TOO_LARGE}.")
        if not (is_number(gamma) and 0.0 <= gamma < math.inf):
            raise ModelError(f"gamma of {group_text(name)} must be a number from 0 up, got {describe(gamma)}.")
        at, beta = frozen(at, np.float64), frozen(beta.reshape(1), np.float64)
        store(self, positions=at, gamma=float(gamma), weights=beta, name=name, coupling=coupling)
        if coupling is not None:
            _check_coupling(coupling, at, group_text(name))

    def at_squares(self, squares: Floats) -> Floats:
        """Return the couplings of pairs at squared distances."""
        if self.coupling is None:
            found: Floats = self.beta * np.exp(-self.gamma * squares)
            return found
        from gibbsite._numba.foreign import values_along

        return self.beta * values_along(self.coupling, np.sqrt(squares))

    @property
    def beta(self) -> float:
        """The coupling at distance zero."""
        return float(self.weights[0])

    @property
    def size(self) -> int:
        """Number of pairs."""
        n = len(self.positions)
        return n * (n - 1) // 2

    @property
    def scopes(self) -> Ints32:
        """All pairs i < j, made anew at every access; refused for large models."""
        n = len(self.positions)
        if n > MOST_LISTED:
            raise TooLargeError(
                f"{group_text(self.name)} joins all pairs of {n:,} sites, which are not listed beyond "
                f"{MOST_LISTED:,} sites; sample the model with {part('PoissonGibbs')} or {part('Gibbs')}."
            )
        scopes = np.stack(np.triu_indices(n, 1), axis=1).astype(np.int32)
        scopes.setflags(write=False)
        return scopes

    def edge_weights(self) -> Floats:
        """Return one weight per row of `scopes`."""
        i, j = self.scopes.T
        distance = ((self.positions[i] - self.positions[j]) ** 2).sum(axis=1)
        return self.at_squares(distance)

    def log_tables(self, cards: Ints32) -> Floats:
        """Return all tables."""
        return agreement_tables(self.edge_weights(), int(cards[0]) if len(cards) else 0)

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at ``x``."""
        total = 0.0
        for first, couplings in _blocks(self, self.positions):
            rows = np.arange(first, first + len(couplings))
            equal = x[rows][:, None] == x
            equal[np.arange(len(rows)), rows] = False
            total += float((couplings * equal).sum())
        return total / 2.0

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless every site has a position and all sites have the same number of states."""
        if len(self.positions) != domains.n_sites:
            raise ModelError(
                f"{group_text(self.name)} has {len(self.positions)} positions, but the model has "
                f"{domains.n_sites} sites."
            )
        check_equal_states(False, domains, group_text(self.name))

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Keep the free sites; observed ones become fields of the others."""
        seen = folding.codes >= 0
        free = DistanceFactors(self.positions[~seen], self.gamma, self.weights, self.name, self.coupling)
        if not seen.any():
            return [free], 0.0
        states = int(folding.domains.cards[0])
        known = np.eye(states)[folding.codes[seen]]
        fields = np.concatenate(
            [np.zeros((0, states)), *(block @ known for _, block in _blocks(free, self.positions[seen]))]
        )
        sites = np.arange(len(fields), dtype=np.int32)[:, None]
        observed = DistanceFactors(self.positions[seen], self.gamma, self.weights, None, self.coupling)
        groups: list[FactorGroup] = [free, TableFactors(sites, fields)] if len(fields) else [free]
        return groups, observed.log_potential(folding.codes[seen])


def _blocks(group: DistanceFactors, others: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield the couplings of sites with ``others``, some rows at a time, and the number of the first."""
    rows = max(1, _CHUNK // max(len(others), 1))
    for first in range(0, len(group.positions), rows):
        part = group.positions[first : first + rows]
        distance = sum((part[:, [k]] - others[:, k]) ** 2 for k in range(part.shape[1]))
        yield first, group.at_squares(np.asarray(distance))


def _check_coupling(coupling: Any, positions: Floats, owner: str) -> None:
    """Refuse a function that is NaN, negative or rising at some of many distances."""
    if not callable(coupling):
        raise ModelError(f"coupling of {owner} must be a function of the distance, got {coupling!r}.")
    if not len(positions):
        return
    from gibbsite._numba.foreign import values_along

    reach = float(np.linalg.norm(positions.max(axis=0) - positions.min(axis=0)))
    distances = np.linspace(0.0, reach, _CHECKED)
    values = values_along(coupling, distances)
    wrong = ~((values >= 0.0) & (values <= LARGEST))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ModelError(
            f"coupling of {owner} is {values[k]:g} at distance {distances[k]:g}; it must be finite and not "
            "negative (beta= may be)."
        )
    rises = np.flatnonzero(np.diff(values) > 1e-12 * values[:-1])
    if rises.size:
        k = int(rises[0])
        raise ModelError(
            f"coupling of {owner} rises from {values[k]:g} at distance {distances[k]:g} to "
            f"{values[k + 1]:g} at {distances[k + 1]:g}; it must not rise with the distance."
        )
