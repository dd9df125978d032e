"""Factors with a single weight each: products of spins (Ising) and agreements (Potts); reading such weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gibbsite._common.arrays import Array, Bools, Floats, Integers, Ints, Ints32
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains, frozen, make_domains
from gibbsite.models.evidence import Folding
from gibbsite.models.factor import (
    LARGEST,
    TOO_LARGE,
    FactorGroup,
    TableFactors,
    WeightedGroup,
    check_scopes,
    factor_text,
    group_text,
    read_scopes,
    store,
)


@dataclass(frozen=True, eq=False, init=False)
class SpinFactors(WeightedGroup):
    """Factors ``weight * product of spins`` on two-state sites, a spin being ``2 * code - 1``.

    Parameters
    ----------
    scopes : int array (m, r)
        Positions of the sites: r = 1 are fields, r = 2 couplings, any r is allowed.
    weights : float array (m,) or float
        One finite weight per factor.
    name : str, optional
        Name of the group.

    Examples
    --------
    >>> pair = SpinFactors([[0, 1]], [0.5])
    >>> pair.log_tables(np.array([2, 2])).tolist()
    [[[0.5, -0.5], [-0.5, 0.5]]]
    """

    scopes: Ints32
    weights: Floats
    name: str | None

    def __init__(self, scopes: npt.ArrayLike, weights: npt.ArrayLike, name: str | None = None) -> None:
        rows = read_scopes(scopes)
        store(self, scopes=rows, weights=_read_weights(weights, len(rows), name), name=name)

    @property
    def arity(self) -> int:
        """Number of sites per factor."""
        return int(self.scopes.shape[1])

    def log_tables(self, cards: Ints32) -> Floats:
        """Return the tables, one for all when the weights are equal."""
        return spin_tables(self.weights, self.arity)

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at ``x``."""
        spins = 2 * x[self.scopes].astype(np.int64) - 1
        return float(self.weights @ spins.prod(axis=1))

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless every site has two states and every weight is finite."""
        check_scopes(self, domains)
        wrong = domains.cards[self.scopes] != 2
        if wrong.any():
            site = int(self.scopes[wrong][0])
            raise ModelError(
                f"the site {domains.names[site]!r} has {domains.cards[site]} states, but spin factors "
                "need two; use TableFactors or AgreementFactors."
            )
        self.check_weights(domains)

    def check_weights(self, domains: Domains) -> None:
        """Raise `ModelError` unless every weight is finite."""
        _check_weights(self, self.weights, domains)

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Multiply the observed spins into the weights."""
        codes = folding.codes[self.scopes]
        free = codes < 0
        weights = self.weights * np.where(free, 1, 2 * codes - 1).prod(axis=1)
        left = np.count_nonzero(free, axis=1)
        groups: list[FactorGroup] = []
        for r in range(1, self.arity + 1):
            rows = left == r
            if r < self.arity and not rows.any():
                continue
            scopes = folding.position[self.scopes[rows][free[rows]]].reshape(-1, r)
            if r == self.arity:
                groups.append(SpinFactors(scopes, weights[rows], self.name))
            elif r == 1:
                touched, at = np.unique(scopes[:, 0], return_inverse=True)
                groups.append(SpinFactors(touched[:, None], _sums(at, weights[rows], len(touched))))
            else:
                groups.append(SpinFactors(scopes, weights[rows]))
        return groups, float(weights[left == 0].sum())


@dataclass(frozen=True, eq=False, init=False)
class AgreementFactors(WeightedGroup):
    """Factors ``weight * [x_i == x_j]`` between sites with the same number of states (Potts).

    Parameters
    ----------
    scopes : int array (m, 2)
        Positions of the sites.
    weights : float array (m,) or float
        One finite weight per factor.
    name : str, optional
        Name of the group.

    Examples
    --------
    >>> AgreementFactors([[0, 1]], [2.0]).log_tables(np.array([3, 3]))[0].tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """

    scopes: Ints32
    weights: Floats
    name: str | None

    def __init__(self, scopes: npt.ArrayLike, weights: npt.ArrayLike, name: str | None = None) -> None:
        rows = read_scopes(scopes)
        if rows.shape[1] != 2:
            raise ModelError(
                f"{group_text(name)} has scopes of shape {rows.shape}; an agreement is between two sites, shape (m, 2)."
            )
        store(self, scopes=rows, weights=_read_weights(weights, len(rows), name), name=name)

    def log_tables(self, cards: Ints32) -> Floats:
        """Return the tables, one for all when the weights are equal."""
        return agreement_tables(self.weights, int(cards[self.scopes[0, 0]]) if self.size else 0)

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at ``x``."""
        return float(self.weights @ (x[self.scopes[:, 0]] == x[self.scopes[:, 1]]))

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless all sites have the same number of states and weights are finite."""
        check_scopes(self, domains)
        cards = domains.cards[self.scopes]
        if self.size and (cards != cards[0, 0]).any():
            k = int(np.argmax((cards != cards[0, 0]).any(axis=1)))
            raise ModelError(
                f"{factor_text(self, k, domains)} joins sites of {cards[k, 0]} and {cards[k, 1]} "
                f"states in a group of {cards[0, 0]} states; agreement needs equal numbers."
            )
        self.check_weights(domains)

    def check_weights(self, domains: Domains) -> None:
        """Raise `ModelError` unless every weight is finite."""
        _check_weights(self, self.weights, domains)

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Turn a pair with one observed site into a table that favours the observed state."""
        codes = folding.codes[self.scopes]
        free = codes < 0
        left = np.count_nonzero(free, axis=1)
        both, one, none = left == 2, left == 1, left == 0
        groups: list[FactorGroup] = [
            AgreementFactors(folding.position[self.scopes[both]], self.weights[both], self.name)
        ]
        if one.any():
            site = folding.position[self.scopes[one][free[one]]]
            states = int(folding.domains.cards[self.scopes[0, 0]])
            touched, at = np.unique(site, return_inverse=True)
            entry = at * states + codes[one][~free[one]]
            tables = _sums(entry, self.weights[one], len(touched) * states)
            groups.append(TableFactors(touched[:, None], tables.reshape(-1, states)))
        agreeing = codes[none, 0] == codes[none, 1]
        return groups, float(self.weights[none] @ agreeing)


def spin_tables(weights: Floats, arity: int) -> Floats:
    """Return weight * product of spins as tables (m or 1, 2, ..., 2)."""
    signs = np.ones((2,) * arity)
    for axis in range(arity):
        np.moveaxis(signs, axis, 0)[0] *= -1
    return one_if_equal(weights).reshape(-1, *(1,) * arity) * signs


def agreement_tables(weights: Floats, states: int) -> Floats:
    """Return weight * identity as tables (m or 1, K, K)."""
    return one_if_equal(weights)[:, None, None] * np.eye(states)


def _check_weights(group: FactorGroup, weights: Floats, domains: Domains) -> None:
    """Raise `ModelError` unless all weights are finite."""
    fine = np.abs(weights) <= LARGEST
    if not fine.all():
        k = int(np.argmin(fine))
        if np.isfinite(weights[k]):
            raise ModelError(f"{factor_text(group, k, domains)} has the weight {weights[k]:g}; {TOO_LARGE}.")
        raise ModelError(
            f"{factor_text(group, k, domains)} has the weight {weights[k]}; weights are finite, "
            "hard constraints go into TableFactors."
        )


def one_if_equal(weights: Floats) -> Floats:
    """Return the first weight alone where all are equal, otherwise all of them."""
    return weights[:1] if len(weights) and (weights == weights[0]).all() else weights


def _read_weights(weights: npt.ArrayLike, m: int, name: str | None) -> Floats:
    array = read_reals(weights, f"the weights of {group_text(name)}")
    if array.ndim == 0:
        array = np.full(m, array)
    elif array.shape != (m,):
        raise ModelError(
            f"{group_text(name)} has {m} factors here, so it needs weights of shape ({m},) or a "
            f"single number, got shape {array.shape}."
        )
    result: Floats = frozen(array, np.float64)
    return result


def _sums(at: Array, weights: Floats, n: int) -> Floats:
    """Return the sum of the weights at each of n places."""
    return np.bincount(at, weights, n).astype(np.float64, copy=False)


# ---- reading couplings

Couplings: TypeAlias = Any
"""A dense array, a SciPy sparse matrix, or a tuple of arrays (i, j, w)."""

_SYMMETRY_TOLERANCE = 1e-9  # rounding makes matrices that are symmetric in theory differ in the last bits


def read_pairs(
    couplings: Couplings, sites: Sequence[str] | None, fields: npt.ArrayLike | None, field_axes: int
) -> tuple[int, Ints32, Floats]:
    """Return the number of sites, and the pairs i < j sorted by (i, j) with their weights."""
    named = None if sites is None else make_domains(sites, 2).n_sites
    is_matrix = not isinstance(couplings, tuple)
    if isinstance(couplings, tuple):
        i, j, w = _read_edges(couplings)
        given = None if fields is None else read_reals(fields, "fields")
        sized = named is None and given is not None and given.ndim == field_axes
        largest = int(max(i.max(), j.max())) + 1 if i.size else 0
        n = len(given) if sized and given is not None else named if named is not None else largest
        if largest > n or (i.size and min(i.min(), j.min()) < 0):
            raise ModelError(
                f"couplings name sites from {min(i.min(), j.min())} to {largest - 1}, but there are {n} sites."
            )
    else:
        n, i, j, w = _read_matrix(couplings)
        if named is not None and n != named:
            raise ModelError(f"the couplings are for {n} sites, but {named} names are given.")
    loops = (i == j) & (w != 0)
    if loops.any():
        k = int(np.argmax(loops))
        raise ModelError(
            f"the couplings have {w[k]:g} on the diagonal at site {i[k]}; a site is not coupled to itself, use fields."
        )
    scopes, weights = _unordered(n, i, j, w, is_matrix)
    return n, scopes, weights


def _read_edges(couplings: tuple[Any, ...]) -> tuple[Integers, Integers, Floats]:
    if len(couplings) != 3:
        raise ModelError(f"couplings must be a tuple (i, j, w), got {len(couplings)} entries.")
    try:
        i, j = (np.atleast_1d(np.asarray(part)) for part in couplings[:2])
    except ValueError:
        raise ModelError("couplings (i, j, w) need integer site positions i and j.") from None
    w = read_reals(couplings[2], "couplings")
    w = np.full(i.shape, w) if w.ndim == 0 else w
    if not (i.ndim == 1 and i.shape == j.shape == w.shape):
        raise ModelError(f"couplings (i, j, w) must have equal lengths, got shapes {i.shape}, {j.shape} and {w.shape}.")
    if i.size and not (i.dtype.kind in "iu" and j.dtype.kind in "iu"):
        raise ModelError("couplings (i, j, w) need integer site positions i and j.")
    return i, j, w


def _read_matrix(couplings: Any) -> tuple[int, Integers, Integers, Floats]:
    if hasattr(couplings, "tocsr"):
        matrix = couplings.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    else:
        matrix = read_reals(couplings, "couplings")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ModelError(f"couplings must be a square matrix, got shape {matrix.shape}.")
    if isinstance(matrix, np.ndarray):
        i, j = np.nonzero(matrix)
        return len(matrix), i, j, matrix[i, j]
    i = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    return int(matrix.shape[0]), i, matrix.indices, read_reals(matrix.data, "couplings")


def _unordered(n: int, i: Integers, j: Integers, w: Floats, is_matrix: bool) -> tuple[Ints32, Floats]:
    """Return each pair once, sorted, from entries of which some are (i, j) and some (j, i)."""
    upper, lower = _sorted_side(n, i, j, w, i < j), _sorted_side(n, j, i, w, i > j)
    for key, _ in (upper, lower):
        twice = np.flatnonzero(key[1:] == key[:-1])
        if twice.size:
            raise _given_twice(n, int(key[twice[0]]))
    if is_matrix and not lower[1].any():
        key, weights = upper
    elif is_matrix and not upper[1].any():
        key, weights = lower
    elif is_matrix or np.array_equal(upper[0], lower[0]):
        _check_symmetric(n, upper, lower)
        key, weights = upper
    else:
        both = np.intersect1d(upper[0], lower[0], assume_unique=True)
        if both.size:
            raise _given_twice(n, int(both[0]))
        key, weights = (np.concatenate(parts) for parts in zip(upper, lower, strict=True))
        order = np.argsort(key)
        key, weights = key[order], weights[order]
    scopes = np.empty((len(key), 2), np.int32)
    np.floor_divide(key, max(n, 1), out=scopes[:, 0], casting="unsafe")
    scopes[:, 1] = key - scopes[:, 0] * np.int64(n)
    for array in (scopes, weights):
        array.setflags(write=False)
    return scopes, weights


def _sorted_side(n: int, low: Integers, high: Integers, w: Floats, chosen: Bools) -> tuple[Ints, Floats]:
    """Return one triangle as ascending keys ``low * n + high`` and weights."""
    key = low[chosen].astype(np.int64) * n + high[chosen]
    weights = w[chosen]
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key, weights = key[order], weights[order]
    return key, weights


def _check_symmetric(n: int, upper: tuple[Ints, Floats], lower: tuple[Ints, Floats]) -> None:
    if not np.array_equal(upper[0], lower[0]):
        # Zeros that are stored on one side only are ignored.
        upper, lower = ((key[w != 0], w[w != 0]) for key, w in (upper, lower))
    alone = np.setxor1d(upper[0], lower[0], assume_unique=True)
    if alone.size:
        bad = int(alone[0])
    else:
        finite = np.isfinite(upper[1]) & np.isfinite(lower[1])
        largest = np.abs(upper[1]).max(initial=0.0, where=finite)
        with np.errstate(invalid="ignore"):
            close = np.abs(upper[1] - lower[1]) <= _SYMMETRY_TOLERANCE * largest
        close |= ~finite  # infinite and NaN weights are refused elsewhere
        if close.all():
            return
        bad = int(upper[0][np.argmin(close)])
    i, j = divmod(bad, n)
    raise ModelError(
        f"the couplings of sites {i} and {j} differ between ({i}, {j}) and ({j}, {i}); give a "
        "symmetric or a triangular matrix."
    )


def _given_twice(n: int, key: int) -> ModelError:
    i, j = divmod(key, n)
    return ModelError(
        f"the coupling of sites {i} and {j} is given twice; list each pair once, or all pairs in both directions."
    )
