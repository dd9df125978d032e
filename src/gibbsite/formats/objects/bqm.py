"""Binary quadratic models: dimod objects, plain dictionaries ``(h, J)`` and ``Q``, and what files of them hold.

Sign convention: these formats give an *energy* that is minimised, and the model is
``p(x) ~ exp(-beta * E(x))``. A coupling of gibbsite is therefore ``-beta`` times theirs, and the
log-potential of a state is exactly ``-beta * E``, constant term included.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked, is_iterable
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.reals import read_real, read_reals
from gibbsite._common.wording import argument, missing, site_name
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.formats.parsing.text import Source
from gibbsite.models.domain import Label
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.weighted import SpinFactors


class IsingTerms(NamedTuple):
    """A binary pairwise model as ``offset + sum h_i s_i + sum J_ij s_i s_j``, s in {-1, +1}."""

    fields: Floats
    pairs: Ints32
    couplings: Floats
    offset: float


# What makes a binary quadratic model of other objects of dimod.
_INSTEAD = {
    "ConstrainedQuadraticModel": "dimod.cqm_to_bqm(cqm) turns constraints into penalties",
    "BinaryPolynomial": "use gs.formats.from_polynomial(poly)",
    "DiscreteQuadraticModel": "use gs.formats.from_dqm(dqm)",
}


@checked
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
    kind = type(bqm).__name__
    if not hasattr(bqm, "vartype") or kind in _INSTEAD:
        instead = _INSTEAD.get(kind, "dictionaries go to gs.formats.from_qubo(Q) or gs.formats.from_ising(h, J)")
        raise IncompatibleError(f"from_bqm takes a dimod BinaryQuadraticModel, got {kind}; {instead}.")
    vartype = getattr(bqm.vartype, "name", str(bqm.vartype))
    if vartype not in ("SPIN", "BINARY"):
        raise IncompatibleError(f"the BQM has vartype {vartype}; only SPIN and BINARY are binary.")
    variables = list(bqm.variables)
    h, (i, j, w), offset = bqm.to_numpy_vectors(variable_order=variables)
    terms = IsingTerms(np.asarray(h, np.float64), _columns(i, j), np.asarray(w, np.float64), float(offset))
    return _energy_model(variables, vartype, terms, beta)


@checked
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
    if not isinstance(h, Mapping) and (isinstance(h, (str, bytes)) or not is_iterable(h)):
        raise ModelError(f"h must be a mapping variable -> bias, or a list of biases, got {h!r}.")
    biases: Mapping[Any, Any] = h if isinstance(h, Mapping) else dict(enumerate(h))
    index: dict[Hashable, int] = {variable: k for k, variable in enumerate(biases)}
    pairs, weights = _read_pairs(J, "J", index)
    own = pairs[:, 0] == pairs[:, 1]
    if own.any():
        variable = list(index)[int(pairs[own][0, 0])]
        raise ModelError(f"J couples {variable!r} with itself; a spin squared is 1, use offset.")
    fields = np.zeros(len(index))
    fields[: len(biases)] = _read_biases(biases, "h")
    terms = IsingTerms(fields, pairs, weights, read_real(offset, "offset"))
    return spin_model(index, (-1, 1), terms, beta)


@checked
def from_qubo(Q: Any, *, offset: float = 0.0, beta: float = 1.0) -> FactorGraph:
    """Build a model of bits from a QUBO, the energy ``sum of Q[u, v] x_u x_v`` with x in {0, 1}.

    Parameters
    ----------
    Q : mapping, array (n, n) or sparse matrix
        Pair of variables -> bias, ``(u, u)`` being linear; biases of the same pair add up, and so do both
        triangles of a matrix, whose variables are 0, 1, ....
    offset : float
        Constant energy.
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``.

    Returns
    -------
    FactorGraph
        Sites in order of appearance, named by ``str(variable)``; state labels 0 and 1.

    Examples
    --------
    >>> model = from_qubo({("a", "a"): -1.0, ("a", "b"): 2.0}, beta=3.0)
    >>> model.labels("b"), model.log_potential({"a": 1, "b": 0}), model.log_potential({"a": 1, "b": 1})
    ((0, 1), 3.0, -3.0)
    """
    index: dict[Hashable, int] = {}
    if isinstance(Q, Mapping):
        pairs, weights = _read_pairs(Q, "Q", index)
    else:
        matrix: Any = Q.tocoo() if hasattr(Q, "tocoo") else read_reals(Q, "Q")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ModelError(f"Q must be a mapping (u, v) -> bias or a square matrix, got shape {matrix.shape}.")
        index.update({k: k for k in range(matrix.shape[0])})
        rows, columns = (matrix.row, matrix.col) if hasattr(Q, "tocoo") else np.nonzero(matrix)
        weights = read_reals(matrix.data if hasattr(Q, "tocoo") else matrix[rows, columns], "Q")
        pairs = _columns(rows, columns)
    own = pairs[:, 0] == pairs[:, 1]
    linear = np.bincount(pairs[own, 0], weights[own], len(index)).astype(np.float64)
    terms = IsingTerms(linear, pairs[~own], weights[~own], read_real(offset, "offset"))
    return _energy_model(index, "BINARY", terms, beta)


@checked
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
    >>> from gibbsite.models import ising
    >>> float(to_bqm(ising([[0, 0.5], [0.5, 0]])).energy({"0": 1, "1": 1}))
    -0.5
    """
    beta = read_beta(beta)
    if vartype is not None and not (isinstance(vartype, str) and vartype in ("SPIN", "BINARY")):
        raise ArgumentError(f"{argument('vartype')} must be SPIN or BINARY, got {vartype!r}.")
    dimod = import_extra("dimod")
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
    """Return a binary pairwise model as fields, couplings and a constant."""
    if not isinstance(model, FactorGraph):
        raise IncompatibleError(
            f"only a model of states (gs.FactorGraph, gs.ising and so on) has couplings and fields, got "
            f"{type(model).__name__}."
        )
    n = model.n_sites
    wrong = model.cards != 2
    if wrong.any():
        k = int(np.argmax(wrong))
        raise IncompatibleError(f"the site {model.sites[k]!r} has {model.cards[k]} states; this format needs two.")
    fields = np.zeros(n)
    offset = model.log_offset
    pairs: list[Ints32] = [np.zeros((0, 2), np.int32)]
    couplings: list[Floats] = [np.zeros(0)]
    for group in model.groups:
        if group.size == 0:
            continue
        scopes, t = group.scopes, group.log_tables(model.cards)
        if group.arity > 2:
            names = ", ".join(model.sites[p] for p in scopes[0])
            raise IncompatibleError(f"the factor over ({names}) has {group.arity} sites; this format needs pairs.")
        if not np.isfinite(t).all():
            k = int(np.argmin(np.isfinite(t).reshape(len(t), -1).all(axis=1)))
            names = ", ".join(model.sites[p] for p in scopes[k])
            raise IncompatibleError(f"the factor over ({names}) has a zero potential; this format has finite energies.")
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


def sum_pairs(n: int, pairs: Ints32, weights: Floats) -> tuple[Ints32, Floats]:
    """Return each unordered pair once, i < j and sorted, with the sum of its weights."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    key, at = np.unique(low.astype(np.int64) * n + high, return_inverse=True)
    sums: Array = np.bincount(at, weights, len(key))
    return _columns(key // max(n, 1), key % max(n, 1)), sums


def spin_model(variables: Iterable[Hashable], labels: tuple[Label, ...], terms: IsingTerms, beta: float) -> FactorGraph:
    """Return the model of an energy in terms of spins."""
    beta = read_real(beta, "beta")
    if not 0 <= beta < np.inf:
        raise ArgumentError(f"{argument('beta')} must be a number not below 0, got {beta}.")
    names = [str(site_name(variable)) for variable in variables]
    pairs, weights = sum_pairs(len(names), terms.pairs, terms.couplings)
    groups = (
        SpinFactors(pairs, -beta * weights, name="couplings"),
        SpinFactors(np.arange(len(names), dtype=np.int32)[:, None], -beta * terms.fields, name="fields"),
    )
    constant = [((), -beta * terms.offset)] if terms.offset else []
    return FactorGraph(names, groups=groups, states=labels, log_factors=constant)


def _energy_model(variables: Iterable[Hashable], vartype: str, terms: IsingTerms, beta: float) -> FactorGraph:
    """Return the model of an energy in terms of spins or bits."""
    if vartype == "BINARY":
        return spin_model(variables, (0, 1), _as_spins(terms), beta)
    return spin_model(variables, (-1, 1), terms, beta)


def model_in(source: Source, variables: list[Any], vartype: str, terms: IsingTerms, beta: float) -> FactorGraph:
    """Return the model of the energy that a file holds; refuse numbers that are too large."""
    for values in (terms.fields, terms.couplings, np.array([terms.offset])):
        # The sums that turn bits into spins must stay finite as well.
        with np.errstate(over="ignore"):
            if not np.isfinite(np.abs(values).sum()):
                raise source.error("expected finite biases, found one that is not, or too large ones.")
    try:
        return _energy_model(variables, vartype, terms, beta)
    except (ModelError, IncompatibleError) as error:
        raise source.error(str(error)) from None


def edges_of(model: FactorGraph) -> tuple[Ints32, Floats]:
    """Return the pairs of an Ising model without fields, and their couplings; refuse other models."""
    terms = ising_terms(model)
    # fields that cancel leave rounding errors
    least = 1e-12 * float(np.abs(terms.couplings).max(initial=0.0))
    favoured = np.abs(terms.fields) > least
    if favoured.any():
        k = int(np.argmax(favoured))
        raise IncompatibleError(
            f"the site {model.sites[k]!r} has a field of {terms.fields[k]:g}; this format has edges only, "
            "write .coo or .bqm."
        )
    return terms.pairs, terms.couplings


def decimal(value: float) -> str:
    """Return a number without exponent, which some readers would not read."""
    return np.format_float_positional(value + 0.0, trim="-")


def energy_of(model: FactorGraph, beta: float) -> tuple[str, IsingTerms]:
    """Return the vartype and the biases of the energy in terms of its values."""
    beta = read_beta(beta)
    terms = ising_terms(model)
    h, J, offset = -terms.fields / beta, -terms.couplings / beta, -terms.offset / beta
    bits = model.n_sites > 0 and all(labels == (0, 1) for labels in model.domains.kinds)
    if not bits:
        return "SPIN", IsingTerms(h, terms.pairs, J, offset)
    # s = 2 x - 1, so J s t = J (4 x y - 2 x - 2 y + 1).
    offset += float(J.sum() - h.sum())
    ends = np.bincount(terms.pairs.reshape(-1), np.repeat(J, 2), model.n_sites)
    return "BINARY", IsingTerms(2 * h - 2 * ends, terms.pairs, 4 * J, offset)


def read_beta(beta: Any) -> float:
    """Return an inverse temperature to divide by."""
    found = read_real(beta, "beta")
    if not 0 < found < np.inf:
        raise ArgumentError(f"{argument('beta')} must be positive, got {found:g}.")
    return found


def import_extra(name: str) -> Any:
    """Return a package, or a module of one, that is not always installed; say how to install it where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise IncompatibleError(missing("this needs", package, package)) from None


def _as_spins(terms: IsingTerms) -> IsingTerms:
    """Return the biases of bits as those of spins: x = (1 + s) / 2, so b x y = b (1 + s + t + s t) / 4."""
    h, pairs, w, offset = terms
    ends = np.bincount(pairs.reshape(-1), np.repeat(w / 4, 2), len(h))
    return IsingTerms(h / 2 + ends, pairs, w / 4, offset + float(h.sum() / 2 + w.sum() / 4))


def _read_pairs(given: Any, what: str, index: dict[Hashable, int]) -> tuple[Ints32, Floats]:
    """Return biases by pairs of positions; variables that are not in the index are added to it."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{what} must be a mapping (u, v) -> bias, got {given!r}.")
    ends: list[tuple[int, int]] = []
    for pair in given:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ModelError(f"{what} must have pairs (u, v) as keys, got {pair!r}.")
        u, v = pair
        ends.append((index.setdefault(u, len(index)), index.setdefault(v, len(index))))
    return np.array(ends, np.int32).reshape(-1, 2), _read_biases(given, what)


def _read_biases(given: Mapping[Any, Any], what: str) -> Floats:
    biases = read_reals(list(given.values()), f"the biases of {what}")
    if biases.ndim != 1:
        raise ModelError(f"{what} must have one number for each key.")
    return biases


def _columns(i: Array, j: Array) -> Ints32:
    return np.stack([i, j], axis=1).astype(np.int32)
