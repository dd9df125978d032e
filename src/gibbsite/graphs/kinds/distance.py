"""Couplings of all pairs that are computed from positions when they are needed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Ints32, Words64
from gibbsite._numba.foreign import adopt, call_at, stack_room
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite.errors import ModelError, TooLargeError
from gibbsite.graphs.kinds.base import Cells, groups_of
from gibbsite.graphs.local import from_logs, log_potential, log_weights, own_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.models.distance import MOST_LISTED, DistanceFactors
from gibbsite.models.factorgraph import FactorGraph


class Decay(NamedTuple):
    """The decay of couplings with the distance d: exp(-gamma d^2), or the function at a nonzero address."""

    gamma: float
    address: int
    nothing: Words64


_KEPT: dict[str, Any] = {}  # users' functions by digest; machine code stays until the process ends


def make_decay(gamma: float, function: Any) -> Decay:
    """Return an exponential, or a user's function, for compiled code."""
    address = 0
    if function is not None:
        try:
            code = adopt(function, "value", must_compile=True)
        except ModelError as reason:
            raise ModelError(f"the couplings: {reason}") from None
        address = _KEPT.setdefault(code.digest, code).address
    return Decay(gamma, address, np.zeros(4, np.uint64))


@inlined
def fall(decay: Decay, square: float) -> float:
    """Return the coupling at a squared distance, one at distance zero."""
    if decay.address == 0:
        return math.exp(-decay.gamma * square)
    room = stack_room()
    room[0] = math.sqrt(square)
    return call_at(decay.address, room, 0, 1, room, 0, 0, decay.nothing)


class DistanceGraph(NamedTuple):
    """Sites with the same number of states; the coupling of every pair is computed when it is needed.

    The coupling of two sites is ``beta`` times the value of ``decay`` at the distance of their ``positions``. It is
    added to the log-weight of the neighbour's state, as in :class:`PottsGraph`.
    """

    positions: Floats
    decay: Decay
    beta: float
    card: Ints32
    offset: Ints
    unary: Floats
    log_unary: Floats

    def pairs(self) -> Ints32:
        """Return all pairs; refuse too many sites."""
        n = self.card.size
        if n > MOST_LISTED:
            raise TooLargeError(
                f"Every site depends on all others, and neighbours of {n:,} sites are not listed beyond "
                f"{MOST_LISTED:,}; sample the model with gs.PoissonGibbs() or gs.Gibbs()."
            )
        return np.stack(np.triu_indices(n, 1), axis=1).astype(np.int32)

    def colors(self) -> Ints32:
        """Return a different color for every site, because each depends on all others."""
        return np.arange(self.card.size, dtype=np.int32)


@register(name="distance", rank=3, arity=2, group="DistanceFactors")
def build_distance(model: FactorGraph) -> tuple[DistanceGraph, float] | None:
    """Build the graph of couplings of all pairs by a function of positions, and any factors of single sites."""
    kernels = [group for group in model.groups if isinstance(group, DistanceFactors)]
    others = [group for group in groups_of(model) if not isinstance(group, DistanceFactors)]
    if len(kernels) != 1 or any(group.arity > 1 for group in others):
        return None
    cells, pairs = Cells.collect(model), kernels[0]
    arrays = DistanceGraph(
        positions=pairs.positions,
        decay=make_decay(pairs.gamma, pairs.coupling),
        beta=pairs.beta,
        **cells.columns(model),
    )
    return arrays, cells.constant


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
    size = own_weights(arrays, arrays.log_unary, i, w)
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
