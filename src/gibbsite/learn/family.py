"""Exponential families of pairwise models: models by parameters, and statistics by states.

The log-potential is the inner product of parameters and statistics, theta . t(x). Parameters are one flat vector
with those of pairs first; each *scope* (a pair of sites, or a site) has one block of them.

Parameters of spins can be projected onto the nearest ones with bounded sums around every site, for which Gibbs sampling
mixes fast (Liu and Domke 2014): minimise sum_e (t_e - y_e)^2 / 2 over 0 <= t_e <= box with a sum of t_e around each
site of at most c. With multipliers mu_i >= 0 the solution is t_e = clip(y_e - mu_i - mu_j, 0, box) for the pair e = (i,
j); the method solves for one multiplier at a time, which is coordinate ascent on the dual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32
from gibbsite.errors import TooLargeError
from gibbsite.models import FactorGraph, SpinFactors, TableFactors
from gibbsite.models.domain import read_labels

if TYPE_CHECKING:
    from gibbsite.models import FactorGroup


from gibbsite._common.arrays import Integers
from gibbsite.graphs.rows import build_rows

_ROUNDS, _CLOSE = 200, 1e-10


def project_rows(weights: Floats, pairs: Integers, n_sites: int, bound: float, box: float = np.inf) -> Floats:
    """Return the nearest weights of pairs, from 0 to ``box``, with a sum of at most ``bound`` at every site."""
    rows = build_rows(pairs, n_sites)
    around = [rows.source[a:b].astype(np.int64) for a, b in zip(rows.start, rows.start[1:], strict=False)]
    others = [rows.neighbour[a:b].astype(np.int64) for a, b in zip(rows.start, rows.start[1:], strict=False)]
    price = np.zeros(n_sites)

    def solution() -> Floats:
        found: Floats = np.clip(weights - price[pairs].sum(axis=1), 0.0, box)
        return found

    def sums(t: Floats) -> Floats:
        return np.bincount(pairs.ravel(), np.repeat(t, 2), n_sites).astype(np.float64)

    for _ in range(_ROUNDS):
        excess = sums(solution()) - bound
        wrong = (excess > _CLOSE) | ((excess < -_CLOSE) & (price > 0.0))
        if not wrong.any():
            break
        for i in np.flatnonzero(wrong):
            price[i] = _solve_multiplier(weights[around[i]] - price[others[i]], bound, box)
    t = solution()
    # scale down sums that are still above the bound, because of rounding or the limit of rounds
    scale = np.minimum(1.0, bound / np.maximum(sums(t), bound))
    kept: Floats = t * scale[pairs].min(axis=1, initial=1.0)
    return kept


def _solve_multiplier(a: Floats, bound: float, box: float) -> float:
    """Return the smallest mu >= 0 with sum clip(a - mu, 0, box) <= bound; the sum is linear between corners."""
    corners = np.concatenate([[0.0], a, a - box])
    corners = np.unique(corners[np.isfinite(corners) & (corners >= 0.0)])
    values = np.clip(a - corners[:, None], 0.0, box).sum(axis=1)
    if values[0] <= bound:
        return 0.0
    return float(np.interp(-bound, -values, corners))


_MOST_PARAMETERS = 1 << 27  # a gigabyte for each of several copies


@dataclass(frozen=True, eq=False)
class Family(ABC):
    """Models with the same sites and pairs."""

    #: Largest Euclidean distance between two values of the statistics of one scope.
    diameter: ClassVar[float]

    base: FactorGraph  # a model of the family, with the groups "couplings" and, if there are any, "fields"
    pairs: Ints32  # (pairs, 2): the sites that are coupled
    fields: bool  # whether single sites have parameters

    @property
    def n_scopes(self) -> int:
        """Number of pairs and of sites with parameters, which bounds the trace of the covariance."""
        return len(self.pairs) + (self.base.n_sites if self.fields else 0)

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the parameters of all pairs and of all sites."""

    @property
    def n_pair_parameters(self) -> int:
        """Number of parameters of pairs."""
        return int(np.prod(self.shapes[0]))

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.n_pair_parameters + int(np.prod(self.shapes[1]))

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the parameters of pairs and of sites."""
        of_pairs, of_sites = np.split(theta, [self.n_pair_parameters])
        return of_pairs.reshape(self.shapes[0]), of_sites.reshape(self.shapes[1])

    def model(self, theta: Floats) -> FactorGraph:
        """Return the model with some parameters."""
        of_pairs, of_sites = self.split(theta)
        extra = {"fields": of_sites} if self.fields else {}
        return self.base.reweight(couplings=of_pairs, **extra)

    @abstractmethod
    def statistics(self, codes: Array) -> Floats:
        """Return the statistics of states (states, sites), a row for each state."""

    def mean(self, codes: Array) -> Floats:
        """Return the mean statistics of states."""
        most = max(1, (1 << 22) // max(self.size, 1))
        total = np.zeros(self.size)
        for first in range(0, len(codes), most):
            total += self.statistics(codes[first : first + most]).sum(axis=0)
        return total / len(codes)

    @property
    @abstractmethod
    def witness(self) -> Ints:
        """The state of an extra site that observes a pair, for each pair of states."""

    @abstractmethod
    def from_marginals(self, of_witnesses: Floats, of_sites: Floats) -> Floats:
        """Return mean statistics, given the distributions of witnesses (pairs, codes) and of sites (sites, states)."""

    @abstractmethod
    def strengths(self, theta: Floats) -> Floats:
        """Return the strength of each coupling, without the part that fields can express."""

    @abstractmethod
    def project(self, theta: Floats, box: float | None, mixing: float | None) -> Floats:
        """Return the nearest parameters whose pairs respect the box and the bound on total influence."""


@dataclass(frozen=True, eq=False)
class SpinFamily(Family):
    """``exp(sum_ij theta_ij s_i s_j + sum_i theta_i s_i)`` with spins -1 and +1."""

    diameter: ClassVar[float] = 2.0

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """One number for each pair and each site."""
        return (len(self.pairs),), (self.base.n_sites if self.fields else 0,)

    def statistics(self, codes: Array) -> Floats:
        """Return the products of pairs of spins, then the spins."""
        spins = 2.0 * codes - 1.0
        found = spins[:, self.pairs[:, 0]] * spins[:, self.pairs[:, 1]]
        return np.concatenate([found, spins], axis=1) if self.fields else found

    @property
    def witness(self) -> Ints:
        """Whether two spins agree."""
        return np.eye(2, dtype=np.int64)

    def from_marginals(self, of_witnesses: Floats, of_sites: Floats) -> Floats:
        """Return means of products of spins, then of spins."""
        found = 2.0 * of_witnesses[:, 1] - 1.0
        return np.concatenate([found, 2.0 * of_sites[:, 1] - 1.0]) if self.fields else found

    def strengths(self, theta: Floats) -> Floats:
        """Return the absolute couplings."""
        return np.abs(self.split(theta)[0])

    def project(self, theta: Floats, box: float | None, mixing: float | None) -> Floats:
        """Return the nearest parameters with abs(theta_ij) <= box and sum_j abs(theta_ij) <= mixing for every site i.

        Because tanh(abs(theta_ij)) bounds the influence (theorem 10), no total influence is above ``mixing``.
        """
        of_pairs, of_sites = np.split(theta, [self.n_pair_parameters])
        largest = np.inf if box is None else box
        if mixing is None:
            kept = np.clip(of_pairs, -largest, largest)
        else:
            kept = np.sign(of_pairs) * project_rows(np.abs(of_pairs), self.pairs, self.base.n_sites, mixing, largest)
        return np.concatenate([kept, of_sites])


@dataclass(frozen=True, eq=False)
class TableFamily(Family):
    """A table of log-potentials for each pair and each site; all sites have K states."""

    diameter: ClassVar[float] = float(np.sqrt(2.0))

    @property
    def states(self) -> int:
        """Number of states of each site."""
        return int(self.base.cards[0])

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A table (K, K) for each pair, K numbers for each site."""
        k = self.states
        return (len(self.pairs), k, k), (self.base.n_sites if self.fields else 0, k)

    def statistics(self, codes: Array) -> Floats:
        """Return indicators of pairs of states, then of states."""
        k, m = self.states, len(codes)
        both = codes[:, self.pairs[:, 0]].astype(np.int64) * k + codes[:, self.pairs[:, 1]]
        found = np.zeros((m, self.size))
        rows = np.arange(m)[:, None]
        found[rows, np.arange(len(self.pairs)) * k * k + both] = 1.0
        if self.fields:
            found[rows, self.n_pair_parameters + np.arange(codes.shape[1]) * k + codes] = 1.0
        return found

    @property
    def witness(self) -> Ints:
        """The number of a pair of states."""
        return np.arange(self.states**2).reshape(self.states, self.states)

    def from_marginals(self, of_witnesses: Floats, of_sites: Floats) -> Floats:
        """Return the distributions of pairs, then of sites."""
        parts = [of_witnesses.ravel(), of_sites.ravel()]
        return np.concatenate(parts if self.fields else parts[:1])

    def strengths(self, theta: Floats) -> Floats:
        """Return the largest entry of each table minus its row and column means."""
        table = self.split(theta)[0]
        table = table - table.mean(axis=1, keepdims=True)
        table = table - table.mean(axis=2, keepdims=True)
        found: Floats = np.abs(table).max(axis=(1, 2), initial=0.0)
        return found

    def project(self, theta: Floats, box: float | None, mixing: float | None) -> Floats:
        """Clip entries of pair tables to the box, so that total influence on each site is at most ``mixing``.

        With entries up to B, the influence is at most tanh(B) (theorem 10); the bound of a pair is
        B = atanh(mixing / D), where D is the larger number of neighbours of its sites.
        """
        tables, of_sites = np.split(theta, [self.n_pair_parameters])
        largest = np.full(len(self.pairs), np.inf if box is None else box)
        if mixing is not None:
            degree = np.bincount(self.pairs.ravel(), minlength=self.base.n_sites)
            largest = np.minimum(largest, np.arctanh(mixing / degree[self.pairs].max(axis=1, initial=1)))
        limit = np.repeat(largest, self.states**2)
        return np.concatenate([np.clip(tables, -limit, limit), of_sites])


def make_spins(n: int, pairs: Ints32, fields: bool, sites: Any = None) -> SpinFamily:
    """Return the Ising models on some pairs; ``sites`` are names, or states by name."""
    groups: list[FactorGroup] = [SpinFactors(pairs, 0.0, name="couplings")]
    if fields:
        groups.append(SpinFactors(np.arange(n, dtype=np.int32)[:, None], 0.0, name="fields"))
    states = None if isinstance(sites, dict) else (-1, 1)
    return SpinFamily(FactorGraph(n if sites is None else sites, groups=groups, states=states), pairs, fields)


def make_tables(n: int, pairs: Ints32, fields: bool, states: Any, sites: Any = None) -> TableFamily:
    """Return the models with a table for each pair; ``sites`` are names, or K states by name."""
    k = len(read_labels(states, "every site"))
    size = len(pairs) * k * k
    if size > _MOST_PARAMETERS:
        raise TooLargeError(
            f"{len(pairs):,} pairs of sites with {k:,} states have {size:,} parameters, more than "
            f"{_MOST_PARAMETERS:,}; give fewer pairs, or join states."
        )
    groups: list[FactorGroup] = [TableFactors(pairs, np.zeros((len(pairs), k, k)), name="couplings")]
    if fields:
        scopes = np.arange(n, dtype=np.int32)[:, None]
        groups.append(TableFactors(scopes, np.zeros((n, k)), name="fields"))
    known = None if isinstance(sites, dict) else states
    return TableFamily(FactorGraph(n if sites is None else sites, groups=groups, states=known), pairs, fields)
