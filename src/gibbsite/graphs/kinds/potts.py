"""Sites with the same number of states, and pairs that depend on whether states agree, in compressed rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Codes, Floats, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, implement
from gibbsite.graphs.kinds.base import Cells, groups_of, pair_rows, too_many
from gibbsite.graphs.local import ONE, from_logs, log_potential, log_weights, own_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.models.distance import DistanceFactors
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.lattice import LatticeFactors
from gibbsite.models.weighted import AgreementFactors


class PottsGraph(NamedTuple):
    """Sites with the same number of states, and pairs that depend on whether states agree, in compressed rows.

    The log-weight of state a at site i is ``log_unary[offset[i] + a]`` plus the sum of ``coupling[step * k]`` over the
    neighbours k of its row that are in state a; ``factor`` is exp(coupling). Both have length one (step 0) where all
    couplings are equal. Rows of ``steep`` sites have couplings so large that products of factors could leave the range
    of floats. Where most pairs are coupled, ``dense`` is the matrix of couplings, row after row; otherwise it is empty.
    """

    start: Words32
    neighbour: Words32
    step: int
    coupling: Floats
    factor: Floats
    steep: Bools
    dense: Floats
    card: Ints32
    offset: Ints
    unary: Floats
    log_unary: Floats


# Products of factors stay between exp(-300) and exp(300) unless a site is steep.
_STEEP = 300.0
_DENSE = 0.25  # from this share of coupled pairs on, the couplings are also stored as a matrix


@register(name="potts", rank=2, arity=2)
def build_potts(model: FactorGraph) -> tuple[PottsGraph, float] | None:
    """Build the graph of equal numbers of states, pairs that depend on agreement, and any factors of single sites."""
    if too_many(model) or (model.n_sites and (model.cards != model.cards[0]).any()):
        return None
    weights: list[Floats] = []
    for group in groups_of(model):
        if isinstance(group, AgreementFactors):
            weights.append(group.weights)
        elif isinstance(group, DistanceFactors) or (isinstance(group, LatticeFactors) and not group.spin):
            weights.append(group.edge_weights())
        elif group.arity != 1:
            return None
    cells, rows = Cells.collect(model), pair_rows(model)
    joined = np.concatenate(weights) if weights else np.zeros(0)
    uniform = bool((joined == joined[:1]).all())
    coupling = joined[:1].copy() if uniform else joined[rows.source]
    n, each = model.n_sites, np.broadcast_to(coupling, rows.neighbour.shape)
    degree = rows.start[1:].astype(np.int64) - rows.start[:-1]
    site = np.repeat(np.arange(n), degree)
    dense = np.zeros(n * n if each.size and each.size >= _DENSE * n * n else 0)
    if dense.size:
        np.add.at(dense, site * n + rows.neighbour, each)
    arrays = PottsGraph(
        start=rows.start,
        neighbour=rows.neighbour,
        step=int(not uniform),
        coupling=coupling,
        factor=np.exp(np.clip(coupling, -_STEEP, _STEEP)),
        steep=np.bincount(site, np.abs(each), n) > _STEEP,
        dense=dense,
        **cells.columns(model),
    )
    return arrays, cells.constant


@implement(log_weights, PottsGraph)
def _log_weights_potts(arrays: PottsGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    size, step = own_weights(arrays, arrays.log_unary, i, w), np.uintp(arrays.step)
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        w[np.uintp(x[np.uintp(arrays.neighbour[k])])] += arrays.coupling[step * k]
    return np.int64(size)


@implement(weights, PottsGraph)
def _weights_potts(arrays: PottsGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    size, step = np.uintp(arrays.card[i]), np.uintp(arrays.step)
    total = 0.0
    if arrays.steep[i]:
        log_weights(arrays, x, i, w)
        total = from_logs(w, size)
    else:
        own_weights(arrays, arrays.unary, i, w)
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
            w[np.uintp(x[np.uintp(arrays.neighbour[k])])] *= arrays.factor[step * k]
        for a in range(size):
            total += w[a]
    return np.int64(size), total


@implement(log_potential, PottsGraph)
def _log_potential_potts(arrays: PottsGraph, x: Codes) -> float:
    total = 0.0
    step = np.uintp(arrays.step)
    for site in range(x.size):
        i = np.uintp(site)
        total += arrays.log_unary[np.uintp(arrays.offset[i]) + np.uintp(x[i])]
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
            j = np.uintp(arrays.neighbour[k])
            if j > i and x[j] == x[i]:
                total += arrays.coupling[step * k]
    return total
