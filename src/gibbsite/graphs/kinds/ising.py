"""Binary sites with pairwise log-linear interactions, in compressed rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Integers, Ints32, Words32
from gibbsite._numba.jit import Integer, implement
from gibbsite.graphs.kinds.base import all_binary, groups_of, pair_rows, too_many
from gibbsite.graphs.local import ONE, log_odds, log_potential, log_weights, log_weights_binary, weights, weights_binary
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import MANY, Rows, entry_at, gather, sum_ends
from gibbsite.models.factor import FactorGroup
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.weighted import SpinFactors, one_if_equal


class IsingGraph(NamedTuple):
    """Binary sites with pairwise log-linear interactions, in compressed rows.

    ``log(P(x_i = 1 | rest) / P(x_i = 0 | rest)) = field[i] + sum_k coupling[k] * x[neighbour[k]]`` with k
    from ``start[i]`` to ``start[i + 1]``. Every edge is stored in both rows. Couplings are an array, or
    another column of :mod:`gibbsite.graphs.rows`.
    """

    start: Words32
    neighbour: Words32
    coupling: Any
    field: Floats


def _as_polynomials(group: FactorGroup, cards: Ints32) -> tuple[Floats, tuple[Floats, ...], Floats] | None:
    """Return the coefficients of 1, of each x_i, and of the product x_i x_j; None if one is infinite.

    There is a single row if all factors are equal. For spin factors, they are computed without making tables.
    """
    if isinstance(group, SpinFactors):
        w = one_if_equal(group.weights)
        if not np.isfinite(w).all():
            return None
        return (-w, (2.0 * w,), w) if group.arity == 1 else (w, (-2.0 * w,) * 2, 4.0 * w)
    tables = group.log_tables(cards)
    if not np.isfinite(tables).all():
        return None
    base = tables.reshape(len(tables), -1)[:, 0]
    if group.arity < 2:
        return base, (tables[:, 1] - base,), base
    first, second = tables[:, 1, 0] - base, tables[:, 0, 1] - base
    return base, (first, second), tables[:, 1, 1] - base - first - second


@register(name="ising", rank=1, binary=True, arity=2)
def build_ising(model: FactorGraph) -> tuple[IsingGraph, float] | None:
    """Build the graph of binary sites and factors of at most two sites without zeros."""
    if not all_binary(model) or any(group.arity > 2 for group in groups_of(model)) or too_many(model):
        return None
    kept = model.shared.get(Rows)
    again = kept is not None and kept.source.size >= MANY  # a large model that gets new weights again and again
    fields, constant = np.zeros(model.n_sites), 0.0
    pair_weights: list[Floats] = []
    for group in groups_of(model):
        found = _as_polynomials(group, model.cards)
        if found is None:
            return None
        base, linear, pair = found
        constant += float(base.sum()) * (group.size if len(base) == 1 else 1)
        if again and len(base) == group.size and group.arity == 2:
            for ends in sum_ends(group.scopes, fields.size, *linear):
                fields += ends
        else:
            for member, each in enumerate(linear):
                _add(fields, group.scopes[:, member], each)
        if group.arity == 2:
            pair_weights.append(np.broadcast_to(pair, (group.size,)))
    rows = pair_rows(model)
    joined = np.concatenate(pair_weights) if pair_weights else np.zeros(0)
    coupling = gather(joined, rows.source) if again else joined[rows.source]
    return IsingGraph(rows.start, rows.neighbour, coupling, fields), constant


def _add(fields: Floats, sites: Integers, values: Floats) -> None:
    """Add values, or one value for all, to the fields of some sites."""
    if values.size == 1 and sites.size == fields.size:
        fields += float(values[0])
    else:
        fields += np.bincount(sites, np.broadcast_to(values, sites.shape), fields.size)


@implement(log_odds, IsingGraph)
def _log_odds_ising(arrays: IsingGraph, x: Codes, i: Integer) -> float:
    total: Any = arrays.field[i]
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        total += entry_at(arrays.coupling, k) * x[np.uintp(arrays.neighbour[k])]
    return total  # type: ignore[no-any-return]


implement(weights, IsingGraph)(weights_binary)
implement(log_weights, IsingGraph)(log_weights_binary)


@implement(log_potential, IsingGraph)
def _log_potential_ising(arrays: IsingGraph, x: Codes) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        if x[i]:
            total += arrays.field[i] * x[i]
            for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
                j = np.uintp(arrays.neighbour[k])
                if j > i:
                    total += entry_at(arrays.coupling, k) * x[i] * x[j]
    return total
