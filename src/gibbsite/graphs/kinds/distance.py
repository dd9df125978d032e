"""Couplings of all pairs that are computed from positions when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Ints32
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite.errors import TooLargeError
from gibbsite.graphs.decay import Decay, fall, make_decay
from gibbsite.graphs.kinds.base import Cells, groups_of
from gibbsite.graphs.local import from_logs, log_potential, log_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.models.distance import MOST_LISTED

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


class DistanceGraph(NamedTuple):
    """Sites with equally many states, every pair of which has a coupling that is computed when it is needed.

    The coupling of sites i and j is ``beta`` times what ``decay`` says (:mod:`.decay`) of the distance of
    their ``positions``; it is added to the log-weight of the neighbour's state, as in :class:`PottsGraph`.
    """

    positions: Floats
    decay: Decay
    beta: float
    card: Ints32
    offset: Ints
    unary: Floats
    log_unary: Floats

    def pairs(self) -> Ints32:
        """Return all pairs, up to a number of sites."""
        n = self.card.size
        if n > MOST_LISTED:
            raise TooLargeError(
                f"Every site depends on all others, and neighbours of {n:,} sites are not listed beyond "
                f"{MOST_LISTED:,}; sample the model with gs.PoissonGibbs() or gs.Gibbs()."
            )
        return np.stack(np.triu_indices(n, 1), axis=1).astype(np.int32)

    def colors(self) -> Ints32:
        """Return a color for every site: all depend on all."""
        return np.arange(self.card.size, dtype=np.int32)


@register(name="distance", rank=3, arity=2, group="DistanceFactors")
def build_distance(model: FactorGraph) -> tuple[DistanceGraph, float] | None:
    """Couplings of all pairs that are a function of positions, any factors of single sites."""
    from gibbsite.models import DistanceFactors

    kernels = [group for group in model.groups if isinstance(group, DistanceFactors)]
    others = [group for group in groups_of(model) if not isinstance(group, DistanceFactors)]
    if len(kernels) != 1 or any(group.arity > 1 for group in others):
        return None
    constant = sum(
        float(np.broadcast_to(group.log_tables(model.cards), group.size).sum()) for group in others if group.arity == 0
    )
    cells, pairs = Cells.collect(model), kernels[0]
    arrays = DistanceGraph(
        positions=pairs.positions,
        decay=make_decay(pairs.gamma, pairs.coupling),
        beta=pairs.beta,
        card=np.ascontiguousarray(model.cards),
        offset=cells.offset,
        unary=np.exp(cells.log_unary),
        log_unary=cells.log_unary,
    )
    return arrays, cells.constant + constant


@inlined
def coupling_at(positions: Floats, decay: Decay, i: Integer, j: Integer) -> float:
    """Return the coupling of two positions, one at distance zero."""
    square = 0.0
    for axis in range(np.uintp(positions.shape[1])):
        gap = positions[i, axis] - positions[j, axis]
        square += gap * gap
    return fall(decay, square)


@implement(log_weights, DistanceGraph)
def _log_weights_distance(arrays: DistanceGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    size = np.uintp(arrays.card[i])
    cell = np.uintp(arrays.offset[i])
    for a in range(size):
        w[a] = arrays.log_unary[cell + a]
    for j in range(np.uintp(x.size)):
        if j != i:
            w[np.uintp(x[j])] += arrays.beta * coupling_at(arrays.positions, arrays.decay, i, j)
    return np.int64(size)


@implement(weights, DistanceGraph)
def _weights_distance(arrays: DistanceGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    size = np.int64(log_weights(arrays, x, i, w))
    return size, from_logs(w, size)


@implement(log_potential, DistanceGraph)
def _log_potential_distance(arrays: DistanceGraph, x: Codes) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += arrays.log_unary[np.uintp(arrays.offset[i]) + np.uintp(x[i])]
        for j in range(i):
            if x[j] == x[i]:
                total += arrays.beta * coupling_at(arrays.positions, arrays.decay, i, j)
    return total
