"""Binary quadratic models: dimod objects and plain ``(h, J)`` dictionaries.

Sign convention: these formats give an *energy* that is minimised, and the model is
``p(x) ~ exp(-beta * E(x))``. A coupling of gibbsite is therefore ``-beta`` times theirs, and the
log-potential of a state is exactly ``-beta * E``, constant term included.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.model.domain import FloatArray, IntArray, Label
from gibbsite.model.factorgraph import FactorGraph
from gibbsite.model.weighted import SpinFactors


class IsingTerms(NamedTuple):
    """A binary pairwise model as ``offset + sum h_i s_i + sum J_ij s_i s_j``, s in {-1, +1}."""

    fields: FloatArray
    pairs: IntArray
    couplings: FloatArray
    offset: float


def from_bqm(bqm: Any, *, beta: float = 1.0) -> FactorGraph:
    """Build a model from a dimod binary quadratic model.

    Parameters
    ----------
    bqm : dimod.BinaryQuadraticModel
        Of vartype SPIN (state labels -1 and 1) or BINARY (0 and 1).
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``.

    Returns
    -------
    FactorGraph
        Sites in the order of ``bqm.variables``, named by ``str(variable)``, with the groups
        "couplings" and "fields" of spin factors.

    Examples
    --------
    >>> import dimod
    >>> model = from_bqm(dimod.BinaryQuadraticModel({"a": 1.0}, {("a", "b"): -2.0}, 0.5, "BINARY"))
    >>> model.labels("a"), model.log_potential({"a": 1, "b": 1})
    ((0, 1), 0.5)
    """
    vartype = getattr(bqm.vartype, "name", str(bqm.vartype))
    if vartype not in ("SPIN", "BINARY"):
        raise IncompatibleError(f"the BQM has vartype {vartype}; only SPIN and BINARY are binary.")
    variables = list(bqm.variables)
    h, (i, j, w), offset = bqm.to_numpy_vectors(variable_order=variables)
    h, w, offset = np.asarray(h, np.float64), np.asarray(w, np.float64), float(offset)
    labels: tuple[Label, ...] = (-1, 1)
    if vartype == "BINARY":
        # x = (1 + s) / 2, so b x y = b (1 + s + t + s t) / 4.
        labels = (0, 1)
        offset += h.sum() / 2 + w.sum() / 4
        h = h / 2 + np.bincount(i, w / 4, len(h)) + np.bincount(j, w / 4, len(h))
        w = w / 4
    return _spin_model(variables, labels, IsingTerms(h, _columns(i, j), w, offset), beta)


def from_ising(
    h: Mapping[Any, float] | Sequence[float],
    J: Mapping[tuple[Any, Any], float],
    *,
    offset: float = 0.0,
    beta: float = 1.0,
) -> FactorGraph:
    """Build a model from linear and quadratic biases of spins.

    Parameters
    ----------
    h : mapping or sequence
        Variable -> linear bias, or the biases of the variables 0, 1, ....
    J : mapping
        Pair of variables -> quadratic bias; biases of the same pair add up.
    offset : float
        Constant energy.
    beta : float
        Inverse temperature: ``p(s) ~ exp(-beta * E(s))``.

    Returns
    -------
    FactorGraph
        Sites in order of appearance in ``h``, then ``J``; state labels -1 and 1.

    Examples
    --------
    >>> model = from_ising({"a": 0.5}, {("a", "b"): -1.0}, beta=2.0)
    >>> model.log_potential({"a": 1, "b": 1})
    1.0
    """
    biases = dict(h) if isinstance(h, Mapping) else dict(enumerate(h))
    index: dict[Hashable, int] = {}
    for variable in (*biases, *(variable for pair in J for variable in pair)):
        index.setdefault(variable, len(index))
    fields = np.zeros(len(index))
    for variable, bias in biases.items():
        fields[index[variable]] = bias
    for u, v in J:
        if u == v:
            raise ModelError(f"J couples {u!r} with itself; a spin squared is 1, use offset.")
    pairs = np.array([(index[u], index[v]) for u, v in J], np.int32).reshape(-1, 2)
    weights = np.fromiter(J.values(), np.float64, len(J))
    return _spin_model(index, (-1, 1), IsingTerms(fields, pairs, weights, offset), beta)


def to_bqm(model: FactorGraph, *, beta: float = 1.0, vartype: str | None = None) -> Any:
    """Return a model of two-state sites and at most pairwise factors as a dimod BQM.

    Parameters
    ----------
    model : FactorGraph
        Every site has two states, no factor more than two sites, no potential is zero.
    beta : float
        Inverse temperature: the energy is ``-log_potential / beta``.
    vartype : {"SPIN", "BINARY"}, optional
        By default BINARY when the state labels are 0 and 1, otherwise SPIN.

    Returns
    -------
    dimod.BinaryQuadraticModel
        Variables are the site names; state code 1 is spin +1 or bit 1.

    Raises
    ------
    IncompatibleError
        When the model is not of that kind.

    Examples
    --------
    >>> from gibbsite.model import ising
    >>> float(to_bqm(ising([[0, 0.5], [0.5, 0]])).energy({"0": 1, "1": 1}))
    -0.5
    """
    if not (np.isfinite(beta) and beta > 0):
        raise ModelError(f"beta must be positive, got {beta}.")
    dimod = import_module("dimod")
    terms = ising_terms(model)
    if vartype is None:
        bits = all(model.labels(k) == (0, 1) for k in range(model.n_sites))
        vartype = "BINARY" if bits and model.n_sites else "SPIN"
    i, j = terms.pairs.T
    bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(
        -terms.fields / beta,
        (i, j, -terms.couplings / beta),
        -terms.offset / beta,
        "SPIN",
        variable_order=list(model.sites),
    )
    return bqm.change_vartype(vartype, inplace=True)


def ising_terms(model: FactorGraph) -> IsingTerms:
    """Return a binary pairwise model as fields, couplings and a constant.

    Examples
    --------
    >>> model = FactorGraph({"a": 2}, log_factors=[("a", [1.0, 3.0])])
    >>> ising_terms(model).fields.tolist(), ising_terms(model).offset
    ([1.0], 2.0)
    """
    n = model.n_sites
    wrong = model.cards != 2
    if wrong.any():
        k = int(np.argmax(wrong))
        raise IncompatibleError(
            f"the site {model.sites[k]!r} has {model.cards[k]} states; this format needs two."
        )
    fields = np.zeros(n)
    offset = model.log_offset
    pairs: list[IntArray] = [np.zeros((0, 2), np.int32)]
    couplings: list[FloatArray] = [np.zeros(0)]
    for group in model.groups:
        if group.size == 0:
            continue
        scopes, t = group.scopes, group.log_tables(model.cards)
        if group.arity > 2:
            names = ", ".join(model.sites[p] for p in scopes[0])
            raise IncompatibleError(
                f"the factor over ({names}) has {group.arity} sites; this format needs pairs."
            )
        if not np.isfinite(t).all():
            k = int(np.argmin(np.isfinite(t).reshape(len(t), -1).all(axis=1)))
            names = ", ".join(model.sites[p] for p in scopes[k])
            raise IncompatibleError(
                f"the factor over ({names}) has a zero potential; this format has finite energies."
            )
        if group.arity == 1:
            parts = [(t[:, 1] - t[:, 0]) / 2]
            constant = t.mean(axis=1)
        else:
            same, other = t[:, 0, 0] + t[:, 1, 1], t[:, 0, 1] + t[:, 1, 0]
            parts = [
                (t[:, 1].sum(axis=1) - t[:, 0].sum(axis=1)) / 4,
                (t[:, :, 1].sum(axis=1) - t[:, :, 0].sum(axis=1)) / 4,
            ]
            constant = (same + other) / 4
            pairs.append(scopes)
            couplings.append(np.broadcast_to((same - other) / 4, (group.size,)))
        offset += float(np.broadcast_to(constant, (group.size,)).sum())
        for column, part in enumerate(parts):
            weights = np.broadcast_to(part, (group.size,))
            fields += np.bincount(scopes[:, column], weights, n)
    joined, weights = sum_pairs(n, np.concatenate(pairs), np.concatenate(couplings))
    return IsingTerms(fields, joined, weights, offset)


def sum_pairs(n: int, pairs: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each unordered pair once, i < j and sorted, with the sum of its weights.

    Examples
    --------
    >>> pairs, weights = sum_pairs(3, np.array([[2, 1], [1, 2], [0, 1]]), np.array([1.0, 2.0, 3.0]))
    >>> pairs.tolist(), weights.tolist()
    ([[0, 1], [1, 2]], [3.0, 3.0])
    """
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    key, at = np.unique(low.astype(np.int64) * n + high, return_inverse=True)
    sums: npt.NDArray[Any] = np.bincount(at, weights, len(key))
    return _columns(key // max(n, 1), key % max(n, 1)), sums


def _spin_model(
    variables: Iterable[Hashable], labels: tuple[Label, ...], terms: IsingTerms, beta: float
) -> FactorGraph:
    if not (np.isfinite(beta) and beta >= 0):
        raise ModelError(f"beta must be a number not below 0, got {beta}.")
    names = [str(variable) for variable in variables]
    pairs, weights = sum_pairs(len(names), terms.pairs, terms.couplings)
    groups = (
        SpinFactors(pairs, -beta * weights, name="couplings"),
        SpinFactors(np.arange(len(names), dtype=np.int32)[:, None], -beta * terms.fields, name="fields"),
    )
    constant = [((), -beta * terms.offset)] if terms.offset else []
    return FactorGraph(names, groups=groups, states=labels, log_factors=constant)


def _columns(i: npt.NDArray[Any], j: npt.NDArray[Any]) -> IntArray:
    return np.stack([i, j], axis=1).astype(np.int32)
