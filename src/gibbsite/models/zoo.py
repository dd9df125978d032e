"""Builders for well-known models: Ising and Potts, on any graph and on lattices; Boltzmann machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.distance import DistanceFactors
from gibbsite.models.domain import Label, read_labels
from gibbsite.models.factor import TableFactors
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.lattice import FieldFactors, LatticeFactors, read_lengths, read_rings
from gibbsite.models.weighted import AgreementFactors, Couplings, SpinFactors, read_pairs


@checked
def ising(
    couplings: Couplings, fields: npt.ArrayLike | None = None, *, sites: Sequence[str] | None = None
) -> FactorGraph:
    """Build ``p(s) ~ exp(sum_{i<j} J_ij s_i s_j + sum_i h_i s_i)`` with spins -1 and +1.

    Parameters
    ----------
    couplings : array, sparse matrix, or tuple (i, j, w)
        J, each unordered pair being one coupling: a symmetric matrix counts ``J_ij = J_ji`` once, a triangular one
        means the same, and a list of edges holds each edge once (or each in both directions with equal weight).
    fields : float or array (n,), optional
        h, zero by default.
    sites : sequence of str, optional
        Names; "0", "1", ... by default.

    Returns
    -------
    FactorGraph
        With the groups "couplings" (pairs i < j sorted by (i, j); nonzero entries of an array, stored entries of a
        sparse matrix, zeros among them included) and "fields" (one per site). ``reweight(couplings=...)`` takes one
        weight per row of ``group("couplings").scopes``. State labels are -1 (code 0) and 1 (code 1).

    See Also
    --------
    ising_grid : Lattices.
    potts : More than two states.
    FactorGraph : Any factors.

    Examples
    --------
    >>> model = ising([[0.0, 0.5], [0.5, 0.0]], fields=[0.1, 0.0])
    >>> model.log_potential({"0": 1, "1": -1})
    -0.4
    """
    n, scopes, weights = read_pairs(couplings, sites, fields, field_axes=1)
    h = np.zeros(()) if fields is None else read_reals(fields, "fields")
    if h.shape not in ((), (n,)):
        raise ModelError(f"fields have shape {h.shape}; expected a number or {n} fields.")
    groups = (
        SpinFactors(scopes, weights, name="couplings"),
        SpinFactors(np.arange(n, dtype=np.int32)[:, None], h, name="fields"),
    )
    return FactorGraph(n if sites is None else sites, groups=groups, states=(-1, 1))


@checked
def potts(
    couplings: Couplings,
    states: int | Sequence[Label],
    fields: npt.ArrayLike | None = None,
    *,
    sites: Sequence[str] | None = None,
) -> FactorGraph:
    """Build ``p(x) ~ exp(sum_{i<j} J_ij [x_i == x_j] + sum_i h_i(x_i))``.

    Parameters
    ----------
    couplings : array, sparse matrix, or tuple (i, j, w)
        As for `ising`.
    states : int or sequence of labels
        Number of states K, labelled 0 .. K-1, or the labels.
    fields : array (K,) or (n, K), optional
        Log-potentials of the states, for all sites or for each; zero by default.
    sites : sequence of str, optional
        Names; "0", "1", ... by default.

    Returns
    -------
    FactorGraph
        With the groups "couplings" and "fields", ordered as for `ising`.

    See Also
    --------
    potts_grid : Lattices.
    ising : Two states.

    Examples
    --------
    >>> model = potts(([0, 1], [1, 2], [1.0, 2.0]), states=3)
    >>> model.log_potential([2, 2, 0]), model.log_potential([1, 1, 1])
    (1.0, 3.0)
    """
    n, scopes, weights = read_pairs(couplings, sites, fields, field_axes=2)
    h = np.atleast_2d(_read_state_fields(fields, n, states))
    groups = (
        AgreementFactors(scopes, weights, name="couplings"),
        TableFactors(np.arange(n, dtype=np.int32)[:, None], h, name="fields"),
    )
    return FactorGraph(n if sites is None else sites, groups=groups, states=states)


def rbm(
    weights: npt.ArrayLike, visible: npt.ArrayLike | None = None, hidden: npt.ArrayLike | None = None
) -> FactorGraph:
    """Build a restricted Boltzmann machine, ``p(v, h) ~ exp(v' W h + b' v + c' h)`` with units 0 and 1.

    Parameters
    ----------
    weights : float array (m, n)
        W, of m visible and n hidden units.
    visible : float or array (m,), optional
        b, zero by default.
    hidden : float or array (n,), optional
        c, zero by default.

    Returns
    -------
    FactorGraph
        With the sites "v0", "v1", ..., then "h0", "h1", ..., of states 0 and 1. Factors of two-state sites
        are products of spins, and a unit is (1 + s) / 2 of a spin s = -1 or 1; so the group "couplings" has
        the weights W / 4, a pair (v, h) each, row by row of W with its zeros, and the group "fields" has
        b / 2 plus a quarter of the sums of the rows for visible, c / 2 plus a quarter of the sums of the
        columns for hidden units. Log-potentials are those of the formula, constant included.

    Notes
    -----
    Units of a layer are independent given the other one. Runs of 16 chains or more that record marginals
    draw a layer of all chains at a time, by matrix products.

    Examples
    --------
    >>> model = rbm([[1.0, -2.0], [0.5, 0.0]], visible=[0.25, 0.0], hidden=-1.0)
    >>> model.sites
    ('v0', 'v1', 'h0', 'h1')
    >>> model.log_potential({"v0": 1, "v1": 1, "h0": 1, "h1": 0})  # 1 + 0.5 + 0.25 - 1
    0.75
    """
    w = read_reals(weights, "weights")
    if w.ndim != 2:
        raise ModelError(f"weights have shape {w.shape}; expected (visible units, hidden units).")
    m, n = w.shape
    biases = []
    for name, given, size in (("visible", visible, m), ("hidden", hidden, n)):
        bias = np.zeros(()) if given is None else read_reals(given, f"{name} biases")
        if bias.shape not in ((), (size,)):
            raise ModelError(
                f"{name} biases have shape {bias.shape}; expected a number or {size} biases, because the weights "
                f"have shape {w.shape}."
            )
        biases.append(np.broadcast_to(bias, size))
    for what, numbers in (("weights", w), ("visible biases", biases[0]), ("hidden biases", biases[1])):
        fine = np.isfinite(numbers)
        if not fine.all():
            at = tuple(int(k) for k in np.argwhere(~fine)[0])
            where = at if len(at) > 1 else at[0]
            advice = "; observe a unit whose state is certain" if np.isinf(numbers[at]) else ""
            raise ModelError(f"{what} must be finite, got {numbers[at]} at {where}{advice}.")
    with np.errstate(over="ignore", invalid="ignore"):
        fields = np.concatenate([biases[0] / 2 + w.sum(axis=1) / 4, biases[1] / 2 + w.sum(axis=0) / 4])
        constant = float(w.sum() / 4 + biases[0].sum() / 2 + biases[1].sum() / 2)
    if not (np.isfinite(fields).all() and np.isfinite(constant)):
        raise ModelError("weights and biases add up to more than 1.8e308; give smaller ones.")
    pairs = np.stack(np.broadcast_arrays(np.arange(m)[:, None], m + np.arange(n)), axis=-1).reshape(-1, 2)
    groups = (
        SpinFactors(pairs.astype(np.int32), w.ravel() / 4, name="couplings"),
        SpinFactors(np.arange(m + n, dtype=np.int32)[:, None], fields, name="fields"),
    )
    sites = [f"v{i}" for i in range(m)] + [f"h{j}" for j in range(n)]
    return FactorGraph(sites, groups=groups, states=(0, 1), log_factors=[((), constant)])


def distance_potts(
    positions: npt.ArrayLike,
    states: int | Sequence[Label],
    gamma: float = 0.0,
    beta: float = 1.0,
    fields: npt.ArrayLike | None = None,
    *,
    coupling: Any = None,
) -> FactorGraph:
    """Build ``p(x) ~ exp(sum_{i<j} beta exp(-gamma |p_i - p_j|^2) [x_i == x_j] + sum_i h_i(x_i))``.

    All pairs are coupled; from 2048 sites on, couplings are computed when they are needed and not stored.

    Parameters
    ----------
    positions : float array (n, d)
        Where the sites are.
    states : int or sequence of labels
        Number of states K, labelled 0 .. K-1, or the labels.
    gamma, beta : float
        Couplings.
    coupling : callable, optional
        ``f(d)`` in place of exp(-gamma d^2): a function of the distance ``d[0]`` that Numba can compile, not
        negative, and nowhere rising.
    fields : array (K,) or (n, K), optional
        Log-potentials of the states, for all sites or for each; zero by default.

    Returns
    -------
    FactorGraph
        With the groups "couplings" (`DistanceFactors`) and "fields".

    Examples
    --------
    >>> model = distance_potts(np.arange(10000.0)[:, None], states=4, gamma=0.01, beta=0.1)
    >>> round(model.log_potential([0] * 10000), 1)
    8357.3
    """
    pairs = DistanceFactors(positions, gamma, beta, name="couplings", coupling=coupling)
    n = len(pairs.positions)
    h = _read_state_fields(fields, n, states)
    groups = (pairs, FieldFactors(n, h, spin=False, name="fields"))
    return FactorGraph(n, groups=groups, states=states)


def _read_state_fields(fields: npt.ArrayLike | None, n: int, states: int | Sequence[Label]) -> Floats:
    """Return log-potentials of the states, for all sites or for each of n sites."""
    k = len(read_labels(states, "every site"))
    h = np.zeros(k) if fields is None else read_reals(fields, "fields")
    if h.shape not in ((k,), (1, k), (n, k)):
        raise ModelError(f"fields have shape {h.shape}; expected ({k},) or ({n}, {k}).")
    return h


def ising_grid(
    shape: int | Sequence[int],
    coupling: Any = 0.2,
    field: npt.ArrayLike = 0.0,
    *,
    periodic: bool | Sequence[bool] = False,
) -> FactorGraph:
    """Build an Ising model on a row-major lattice of any dimension.

    Parameters
    ----------
    shape : int or sequence of int
        Sites per axis.
    coupling : scalar, sequence, or array (d, ...)
        One coupling for all; or one scalar or array per axis, where entry i of an array couples
        site i with its successor along that axis (arrays may be one shorter along an open axis).
    field : float or array of the lattice's shape
        Field per site.
    periodic : bool or sequence of bool
        Whether the axes close into rings.

    Returns
    -------
    FactorGraph
        With the groups "couplings" (`LatticeFactors`) and "fields" (`FieldFactors`); `reweight`
        takes what this function takes.

    See Also
    --------
    ising : Any graph.
    potts_grid : More than two states.

    Examples
    --------
    >>> ising_grid((1000, 1000), coupling=0.4)
    FactorGraph(1,000,000 sites of 2 states, 2,998,000 factors in 2 groups)
    """
    lengths = read_lengths(shape)
    groups = (
        LatticeFactors(lengths, read_rings(periodic, len(lengths)), coupling, spin=True, name="couplings"),
        FieldFactors(math.prod(lengths), _read_field(field, lengths, 0), name="fields"),
    )
    return FactorGraph(math.prod(lengths), groups=groups, states=(-1, 1))


def potts_grid(
    shape: int | Sequence[int],
    states: int | Sequence[Label],
    coupling: Any,
    field: npt.ArrayLike | None = None,
    periodic: bool | Sequence[bool] = False,
) -> FactorGraph:
    """Build a Potts model on a row-major lattice of any dimension.

    Parameters
    ----------
    shape : int or sequence of int
        Sites per axis.
    states : int or sequence of labels
        Number of states K, labelled 0 .. K-1, or the labels.
    coupling : scalar, sequence, or array (d, ...)
        As for `ising_grid`; the weight of equal neighbours.
    field : array (K,) or (..., K), optional
        Log-potentials of the states, for all sites or for each; zero by default.
    periodic : bool or sequence of bool
        Whether the axes close into rings.

    Returns
    -------
    FactorGraph
        With the groups "couplings" (`LatticeFactors`) and "fields" (`FieldFactors`).

    See Also
    --------
    potts : Any graph.
    ising_grid : Two states.

    Examples
    --------
    >>> potts_grid((4, 5), 3, 1.0, field=[0.0, 0.1, 0.2]).log_potential([1] * 20)
    33.0
    """
    lengths = read_lengths(shape)
    k = len(read_labels(states, "every site"))
    h = np.zeros(k) if field is None else _read_field(field, lengths, 1)
    groups = (
        LatticeFactors(lengths, read_rings(periodic, len(lengths)), coupling, spin=False, name="couplings"),
        FieldFactors(math.prod(lengths), h, spin=False, name="fields"),
    )
    return FactorGraph(math.prod(lengths), groups=groups, states=states)


def _read_field(field: npt.ArrayLike, shape: tuple[int, ...], state_axes: int) -> Floats:
    """Return the field of a lattice; the group of factors checks the number of states."""
    array = read_reals(field, "the field")
    lattice = array.shape[: array.ndim - state_axes]
    if array.ndim < state_axes or lattice not in ((), shape):
        states = "" if state_axes == 0 else "K"
        raise ModelError(
            f"the field has shape {array.shape}; expected {'(K,)' if states else 'a number'} or "
            f"({', '.join([*map(str, shape), *states])})."
        )
    return array
