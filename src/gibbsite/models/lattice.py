"""Regular lattices without stored indices: nearest-neighbour couplings and per-site fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains, frozen
from gibbsite.models.evidence import Folding
from gibbsite.models.factor import LARGEST, TOO_LARGE, FactorGroup, WeightedGroup, group_text, store
from gibbsite.models.weighted import AgreementFactors, SpinFactors, agreement_tables, spin_tables


@dataclass(frozen=True, eq=False, init=False)
class LatticeFactors(WeightedGroup):
    """Nearest-neighbour couplings of a row-major lattice of any dimension.

    Parameters
    ----------
    shape : tuple of int
        Sites per axis.
    periodic : tuple of bool
        Whether each axis closes into a ring; such an axis has at least 3 sites.
    weights : scalar, tuple, or array (d, ...)
        One scalar or array per axis, see `read_couplings`. Stored as a tuple of arrays of shape (1,) (uniform) or (n,):
        entry i couples site i with its successor along that axis, and is zero in the last layer of an open axis.
    spin : bool
        True: ``w * s_i * s_j``; False: ``w * [x_i == x_j]``.
    name : str, optional
        Name of the group.

    Notes
    -----
    `scopes` (and `edge_weights`) list the pairs axis by axis, each in row-major order of the
    first site; they are computed at every access and not kept.

    Examples
    --------
    >>> ring = LatticeFactors((4,), (True,), 0.5)
    >>> ring.size, ring.scopes.tolist()
    (4, [[0, 1], [1, 2], [2, 3], [3, 0]])
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    weights: tuple[Floats, ...]
    spin: bool
    name: str | None

    @checked
    def __init__(
        self, shape: Sequence[int], periodic: Sequence[bool], weights: Any, spin: bool = True, name: str | None = None
    ) -> None:
        shape = read_lengths(shape)
        periodic = read_rings(periodic, len(shape))
        if not shape or min(shape) < 1:
            raise ModelError(f"a lattice needs at least one site along each axis, got {shape}.")
        if math.prod(shape) >= 2**31:
            raise ModelError(f"the lattice {shape} has 2**31 or more sites; make it smaller.")
        for axis, length in enumerate(shape):
            if periodic[axis] and length < 3:
                raise ModelError(
                    f"axis {axis} of the lattice {shape} is periodic but has only {length} sites; "
                    "a ring needs at least 3, or make the axis open."
                )
        arrays = read_couplings(shape, periodic, weights)
        store(self, shape=shape, periodic=periodic, weights=arrays, spin=bool(spin), name=name)

    @property
    def size(self) -> int:
        """Number of couplings."""
        n = math.prod(self.shape)
        return sum(n if ring else n - n // length for length, ring in zip(self.shape, self.periodic, strict=True))

    @property
    def scopes(self) -> Ints32:
        """All pairs (site, successor), axis by axis; made anew at every access."""
        index = np.arange(math.prod(self.shape), dtype=np.int32).reshape(self.shape)
        scopes = np.empty((self.size, 2), np.int32)
        at = 0
        for axis in range(len(self.shape)):
            site, successor = self._ends(index, axis)
            scopes[at : at + site.size, 0] = site.ravel()
            scopes[at : at + site.size, 1] = successor.ravel()
            at += site.size
        scopes.setflags(write=False)
        return scopes

    def edge_weights(self) -> Floats:
        """Return one weight per row of `scopes`."""
        parts = [
            self._ends(np.broadcast_to(w if w.size == 1 else w.reshape(self.shape), self.shape), a)[0].ravel()
            for a, w in enumerate(self.weights)
        ]
        weights = np.concatenate(parts)
        weights.setflags(write=False)
        return weights

    def explicit(self) -> SpinFactors | AgreementFactors:
        """Return the same factors with stored scopes."""
        kind = SpinFactors if self.spin else AgreementFactors
        return kind(self.scopes, self.edge_weights(), self.name)

    def log_tables(self, cards: Ints32) -> Floats:
        """Return the tables, one for all when the weights are equal."""
        weights = self.edge_weights()
        return spin_tables(weights, 2) if self.spin else agreement_tables(weights, int(cards[0]))

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at ``x``."""
        codes = x.reshape(self.shape)
        total = 0.0
        for axis, weights in enumerate(self.weights):
            site, successor = self._ends(codes, axis)
            terms = (site == successor).astype(np.float64)
            if self.spin:
                terms = 2.0 * terms - 1.0
            if weights.size == 1:
                total += float(weights[0]) * float(terms.sum())
            else:
                total += float((self._ends(weights.reshape(self.shape), axis)[0] * terms).sum())
        return total

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless the sites are those of the lattice."""
        n = math.prod(self.shape)
        if n != domains.n_sites:
            raise ModelError(
                f"{group_text(self.name)} is a lattice {self.shape} of {n} sites, but the model has {domains.n_sites}."
            )
        check_equal_states(self.spin, domains, group_text(self.name))

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Fold as explicit pairs: a lattice with holes is no longer regular."""
        return self.explicit().fold(folding)

    def _ends(self, values: Array, axis: int) -> tuple[Array, Array]:
        """Return the values at both ends of all couplings along an axis."""
        if self.periodic[axis]:
            return values, np.roll(values, -1, axis)
        before = (slice(None),) * axis
        return values[(*before, slice(None, -1))], values[(*before, slice(1, None))]


@dataclass(frozen=True, eq=False, init=False)
class FieldFactors(WeightedGroup):
    """One factor on each site of the model, in order, without stored scopes.

    Parameters
    ----------
    n_sites : int
        Number of sites.
    weights : scalar or array
        ``spin=True``: fields of shape (1,) for a uniform field, or one per site;
        ``spin=False``: log-potentials of shape (1, K) or (n, K), ``-inf`` allowed. Arrays with the
        shape of a lattice (and K last) are flattened in row-major order.
    spin : bool
        True: ``w * s_i``; False: ``w[x_i]``.
    name : str, optional
        Name of the group.

    Examples
    --------
    >>> FieldFactors(1_000_000, 0.5).log_tables(np.array([2])).tolist()
    [[-0.5, 0.5]]
    """

    n_sites: int
    weights: Floats
    spin: bool
    name: str | None

    @checked
    def __init__(self, n_sites: int, weights: npt.ArrayLike, spin: bool = True, name: str | None = None) -> None:
        if not isinstance(n_sites, (int, np.integer)) or n_sites < 0:
            raise ModelError(f"{group_text(name)} needs a number of sites, got {n_sites!r}.")
        array = read_reals(weights, f"the weights of {group_text(name)}")
        per_site = 1 if spin else array.shape[-1] if array.ndim else 0
        if per_site == 0 or array.size not in (per_site, per_site * n_sites):
            wanted = "one number" if spin else "K numbers"
            raise ModelError(
                f"{group_text(name)} needs {wanted} for all or for each of {n_sites} sites, got "
                f"an array of shape {array.shape}."
            )
        array = array.reshape(-1) if spin else array.reshape(-1, per_site)
        array = frozen(array, np.float64)
        store(self, n_sites=int(n_sites), weights=array, spin=bool(spin), name=name)

    @property
    def size(self) -> int:
        """Number of factors, one per site."""
        return self.n_sites

    @property
    def arity(self) -> int:
        """One site per factor."""
        return 1

    @property
    def scopes(self) -> Ints32:
        """The sites 0, 1, ..., n - 1; made anew at every access."""
        scopes = np.arange(self.n_sites, dtype=np.int32)[:, None]
        scopes.setflags(write=False)
        return scopes

    def log_tables(self, cards: Ints32) -> Floats:
        """Return the tables, one for all when the field is uniform."""
        return spin_tables(self.weights, 1) if self.spin else self.weights

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at ``x``."""
        return float(self._at(x, self.weights).sum())

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless weights and sites fit."""
        if self.n_sites != domains.n_sites:
            raise ModelError(
                f"{group_text(self.name)} is for {self.n_sites} sites, but the model has {domains.n_sites}."
            )
        check_equal_states(self.spin, domains, group_text(self.name))
        weights = self.weights
        states = int(domains.cards[0]) if domains.n_sites else 0
        if not self.spin and domains.n_sites and weights.shape[1] != states:
            raise ModelError(
                f"{group_text(self.name)} has {weights.shape[1]} log-potentials per site, but the "
                f"sites have {states} states."
            )
        fine = np.abs(weights) <= LARGEST
        if not self.spin:
            fine |= weights == -np.inf
        if not fine.all():
            at = int(np.argmin(fine)) // math.prod(weights.shape[1:])
            owner = "every site" if len(weights) == 1 else f"the site {domains.names[at]!r}"
            value = weights[~fine][0]
            advice = TOO_LARGE if np.isfinite(value) else "give a finite number"
            raise ModelError(f"{group_text(self.name)} gives {owner} the weight {value:g}; {advice}.")
        if not self.spin and weights.size and (weights.max(axis=1) == -np.inf).any():
            k = int(np.argmax(weights.max(axis=1) == -np.inf))
            raise ModelError(
                f"{group_text(self.name)} makes every state of the site {domains.names[k]!r} "
                "impossible; leave at least one log-potential finite."
            )

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Keep the fields of the free sites."""
        codes = folding.codes
        seen = codes >= 0
        uniform = len(self.weights) == 1
        terms = self._at(codes[seen], self.weights if uniform else self.weights[seen])
        if terms.size and terms.min() == -np.inf:
            site = np.flatnonzero(seen)[int(np.argmin(terms))]
            raise folding.impossible(f"{group_text(self.name)} at that site", [site])
        weights = self.weights if uniform else self.weights[~seen]
        n_free = int(np.count_nonzero(~seen))
        return [FieldFactors(n_free, weights, self.spin, self.name)], float(terms.sum())

    def _at(self, codes: Ints32, weights: Floats) -> Floats:
        if self.spin:
            spins: Floats = weights * (2.0 * codes - 1.0)
            return spins
        which = np.zeros(1, np.intp) if len(weights) == 1 else np.arange(len(codes))
        values: Floats = weights[which, codes]
        return values


def read_lengths(shape: Any) -> tuple[int, ...]:
    """Return the lengths of a lattice, given as a number or one number per axis."""
    try:
        lengths = np.atleast_1d(np.asarray(shape))
    except ValueError:
        lengths = np.zeros(0, object)
    if lengths.ndim != 1 or (lengths.dtype.kind not in "iu" and lengths.size):
        raise ModelError(f"the shape of a lattice must be whole numbers, one per axis, got {shape!r}.")
    return tuple(lengths.tolist())


def read_rings(periodic: Any, axes: int) -> tuple[bool, ...]:
    """Return whether each axis of a lattice is a ring, given for all or for each."""
    if isinstance(periodic, (bool, np.bool_)):
        return (bool(periodic),) * axes
    listed = isinstance(periodic, (Sequence, np.ndarray)) and getattr(periodic, "ndim", 1) != 0
    rings = tuple(periodic) if listed else ()
    if len(rings) != axes or not all(isinstance(ring, (bool, int, np.bool_)) for ring in rings):
        raise ModelError(
            f"periodic must be True or False for a lattice of {axes} axes, or one of them for each, got {periodic!r}."
        )
    return tuple(bool(ring) for ring in rings)


def read_couplings(shape: tuple[int, ...], periodic: tuple[bool, ...], coupling: Any) -> tuple[Floats, ...]:
    """Return the couplings of a lattice, one array of shape (1,) or (n,) per axis.

    They are given as a scalar for all; a sequence with one scalar or array per axis, an array having the shape of the
    lattice or, along an open axis, being one shorter on that axis; or one array of shape (d, ...). The unused last
    layer of an open axis is zero.
    """
    d = len(shape)
    if isinstance(coupling, (tuple, list)) and len(coupling) == d:
        per_axis: Sequence[Any] = coupling
    else:
        array = read_reals(coupling, "the couplings")
        if array.ndim == 0:
            per_axis = [array] * d
        elif array.shape in ((d, *shape), (d,)):
            per_axis = list(array)
        elif d == 1:
            per_axis = [array]
        else:
            raise ModelError(
                f"couplings of shape {array.shape} do not fit the lattice {shape}; pass a number, "
                f"one number or array per axis, or an array of shape {(d, *shape)}."
            )
    return tuple(_axis_couplings(shape, periodic, axis, w) for axis, w in enumerate(per_axis))


def _axis_couplings(shape: tuple[int, ...], periodic: tuple[bool, ...], axis: int, given: Any) -> Floats:
    array = read_reals(given, f"the couplings along axis {axis}")
    n = math.prod(shape)
    last = (slice(None),) * axis + (slice(-1, None),)
    shorter = tuple(length - (a == axis) for a, length in enumerate(shape))
    if array.ndim == 0 or array.shape == (1,):
        array = np.array(array, ndmin=1)
    elif array.shape in (shape, (n,)):
        array = array.reshape(shape).copy()
        if not periodic[axis]:
            array[last] = 0.0
    elif array.shape == shorter and not periodic[axis]:
        padded = np.zeros(shape)
        padded[(slice(None),) * axis + (slice(None, -1),)] = array
        array = padded
    else:
        open_too = "" if periodic[axis] else f" or {shorter}"
        raise ModelError(
            f"the couplings along axis {axis} have shape {array.shape}; expected a number or an "
            f"array of shape {shape}{open_too}."
        )
    if not np.isfinite(array).all():
        bad = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        where = f" at {tuple(map(int, bad))}" if array.size > 1 else ""
        raise ModelError(f"the coupling along axis {axis}{where} is {array[bad]}; couplings are finite.")
    if array.size and np.abs(array).max() > LARGEST:
        value = array.flat[int(np.argmax(np.abs(array)))]
        raise ModelError(f"a coupling along axis {axis} is {value:g}; {TOO_LARGE}.")
    array = array.reshape(-1)
    array.setflags(write=False)
    return array


def check_equal_states(spin: bool, domains: Domains, text: str) -> None:
    """Raise `ModelError` unless all sites have the same number of states, two for spins."""
    if domains.n_sites == 0:
        return
    states = 2 if spin else int(domains.cards[0])
    # Checking the kinds first avoids an array over all sites.
    if any(len(kind) != states for kind in domains.kinds) and (domains.cards != states).any():
        site = int(np.argmax(domains.cards != states))
        raise ModelError(
            f"{text} needs {states} states at every site, but {domains.names[site]!r} has {domains.cards[site]}."
        )
