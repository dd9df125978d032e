"""Enumeration of the whole joint distribution of a small model as one array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arguments import check_integer, checked, describe, read_integers
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, SupportError, TooLargeError
from gibbsite.inference.exact.result import ExactResult
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

LIMIT = 1 << 20


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Enumeration(ExactResult):
    """Exact answers with the whole joint distribution.

    Attributes
    ----------
    law : float array (K1, ..., Kn)
        Probability of every state, one axis per free site.
    """

    model: FactorGraph
    law: Floats
    log_total: float

    @property
    def log_z(self) -> float:
        """Natural logarithm of the partition function, evidence included."""
        return self.log_total

    @cached_property
    def marginals(self) -> SiteTable:
        """Exact probabilities of the states of all sites, observed ones included."""
        n = self.law.ndim
        cells = [self.law.sum(axis=tuple(a for a in range(n) if a != i)) for i in range(n)]
        return self._site_table(np.concatenate([np.zeros(0), *cells]), False, 1.0)

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities of all states as a vector; state s has the codes ``states[s]``."""
        return self.law.ravel()

    @cached_property
    def states(self) -> Ints:
        """Codes of all states (states, sites), last site fastest."""
        return np.stack(np.unravel_index(np.arange(self.law.size), self.law.shape), axis=1).reshape(
            self.law.size, self.law.ndim
        )

    @cached_property
    def strides(self) -> Ints:
        """The stride of each site in the numbers of states."""
        strides = np.ones(self.law.ndim, np.int64)
        strides[:-1] = np.cumprod(self.law.shape[:0:-1], dtype=np.int64)[::-1]
        return strides

    def number(self, x: Array) -> Ints:
        """Return the numbers of states given as codes (..., sites)."""
        codes = read_integers("x", x)
        if codes.shape[-1:] != self.strides.shape or (codes >= self.law.shape).any():
            raise ArgumentError(f"{argument('x')} must be codes of states (..., {self.law.ndim}), got {describe(x)}.")
        numbers: Ints = codes @ self.strides
        return numbers

    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw independent exact states (size, sites)."""
        size = check_integer("size", size, 0)
        edges = np.cumsum(self.probabilities)
        numbers = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
        last = np.flatnonzero(self.probabilities)[-1]  # rounding must not lead outside the support
        drawn: Ints = self.states[np.minimum(numbers, last)]
        return drawn

    def _joint(self, free: list[int]) -> Floats:
        away = tuple(axis for axis in range(self.law.ndim) if axis not in free)
        found: Floats = self.law.sum(axis=away).transpose(np.argsort(np.argsort(free)))
        return found

    def _solve(self, model: FactorGraph) -> Enumeration:
        return enumerate_states(model, self.law.size)

    @cached_property
    def assignment_codes(self) -> Ints:
        """State codes of a most probable state."""
        return np.array(np.unravel_index(int(self.law.argmax()), self.law.shape), np.int64)

    def rank(self, many: int) -> Ints:
        """Return the most probable states of positive probability in order, as codes (states, sites)."""
        many = check_integer("many", many, 0)
        order = np.argsort(-self.probabilities, kind="stable")[:many]
        ranked: Ints = self.states[order[self.probabilities[order] > 0.0]]
        return ranked


@checked
def enumerate_states(model: FactorGraph, limit: int = LIMIT) -> Enumeration:
    """Compute the joint distribution of a model with at most ``limit`` states.

    Parameters
    ----------
    model : FactorGraph
        The model.
    limit : int
        Largest number of joint states.

    Returns
    -------
    Enumeration

    Raises
    ------
    TooLargeError
        If there are more states.
    SupportError
        If no state is possible.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = enumerate_states(gs.ising_grid((5,), coupling=0.4))
    >>> bool(np.isclose(exact.log_z, np.log(2 * (2 * np.cosh(0.4)) ** 4)))
    True
    """
    cards = [int(k) for k in model.cards]
    size = math.prod(cards)
    if size > check_integer("limit", limit, 0):
        states = f"{size:.3g}" if size < 1e300 else f"2^{size.bit_length() - 1}"
        raise TooLargeError(f"Enumeration needs {states} states, more than the limit of {limit:,}; use a sampler.")
    logs = np.full(cards, float(model.log_offset))
    n = len(cards)
    for group in model.groups:
        tables = group.log_tables(model.cards)
        for f in range(group.size):
            scope = group.scopes[f].tolist()
            table = tables[f if len(tables) > 1 else 0]
            # axes in the order of the sites, length one where a site is not in the scope
            shape = [1] * n
            for site in scope:
                shape[site] = cards[site]
            logs += table.transpose(np.argsort(scope)).reshape(shape)
    top = logs.max(initial=-np.inf)
    if top == -np.inf:
        raise SupportError("No state has positive probability; check the zeros and the evidence.")
    law = np.exp(logs - top)
    total = law.sum()
    law /= total
    return Enumeration(model, law, float(top + np.log(total)))
