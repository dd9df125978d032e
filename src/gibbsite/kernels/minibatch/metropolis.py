"""The base of Metropolis-Hastings kernels with minibatches: all factors, drawn by weight, with their bounds checked."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints32, Words64
from gibbsite._numba.foreign import stack_room
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.functions.bounds import Bounds
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph, factor_value
from gibbsite.kernels.continuous.energy import OUTSIDE, VALUES
from gibbsite.kernels.continuous.fault import raise_fault
from gibbsite.kernels.density.metropolis import Metropolis
from gibbsite.kernels.density.moves import CALLS, DRAWS, MOVES, MoveMemory, complain

if TYPE_CHECKING:
    from gibbsite.models import Model

#: Of fewer factors minibatches may be larger than all of them.
FEW = 32
# What went wrong, besides what all walks have: a factor outside of its bounds, or too steep.
BOUND, STEEP = 101, 102


class Drawn(NamedTuple):
    """All factors of a model: those that are drawn, with an alias table of their weights, and the others."""

    factor: Ints32
    table: Words64
    total: float
    sure: Ints32
    bounds: Bounds


def draw_by(graph: Graph, weights: Floats, bounds: Bounds) -> Drawn:
    """Return all factors, to be drawn in proportion to weights; those of weight zero never are."""
    arrays: ContinuousGraph = graph.arrays
    always = np.zeros(arrays.group.size, bool)
    for row in range(arrays.sure.size):
        always[arrays.factor[arrays.start[row] : arrays.sure[row]]] = True
    drawn = np.flatnonzero(~always & (weights > 0.0)).astype(np.int32)
    chosen = np.ascontiguousarray(weights[drawn])
    table = build_alias_rows(np.array([0, drawn.size]), chosen)
    return Drawn(drawn, table, float(chosen.sum()), np.flatnonzero(always).astype(np.int32), bounds)


@inlined
def draw_one(drawn: Drawn, rng: Words) -> tuple[Words, Integer]:
    """Draw a factor."""
    rng, column = draw_column(drawn.table, 0, drawn.factor.size, rng)
    return rng, np.int64(drawn.factor[column])


@inlined
def height_at(arrays: ContinuousGraph, bounds: Bounds, memory: MoveMemory, f: Integer, place: Floats) -> Any:
    """Return the height of a factor above its floor; complain if it is not between 0 and its bound."""
    memory.counts[CALLS] += 1
    height = factor_value(arrays, f, place, -1, 0.0, stack_room()) - bounds.floor[f]
    known = bounds.bound[f] < math.inf
    if not (0.0 <= height <= bounds.bound[f] if known else abs(height) < math.inf):
        complain(memory, BOUND, f, place)
    return height


@inlined
def sure_gain(drawn: Drawn, arrays: ContinuousGraph, memory: MoveMemory, x: Floats) -> Any:
    """Return what the factors gain that are always evaluated."""
    gain = 0.0
    for k in range(drawn.sure.size):
        f = np.int64(drawn.sure[k])
        gain += height_at(arrays, drawn.bounds, memory, f, memory.there)
        gain -= height_at(arrays, drawn.bounds, memory, f, x)
    return gain


@dataclass(frozen=True)
class MinibatchMetropolis(Metropolis):
    """Metropolis-Hastings whose moves are judged by a minibatch of factors."""

    kinds: ClassVar[frozenset[str]] = frozenset({"functions"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.one_by_one:
            raise IncompatibleError(
                f"{type(self).__name__} moves all sites at once; for one at a time there is "
                "ContinuousGibbs(minibatch=...)."
            )

    def check(self, graph: Graph) -> None:
        """Refuse a graph of another kind, or without bounds that are needed."""
        super().check(graph)
        self.bounds(graph)

    @abstractmethod
    def bounds(self, graph: Graph) -> Bounds:
        """Return the bounds between which factors must stay."""

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return acceptance, scale, factors drawn and evaluations of factors per move."""
        found = super().report(memories)
        counts = np.sum([memory.counts for memory in memories], axis=0)
        moves = max(int(counts[MOVES]), 1)
        return {**found, "minibatch": counts[DRAWS] / moves, "evaluations": counts[CALLS] / moves}

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise the error of a failed step; name a factor outside of its bounds."""
        if memory.trouble[0] == BOUND:
            arrays: ContinuousGraph = graph.arrays
            f, place = int(memory.trouble[1]), memory.trouble[2:].copy()
            values, _ = arrays.call_of(f, place)
            fault = np.concatenate([np.zeros(VALUES), values])
            fault[:VALUES] = OUTSIDE, f, factor_value(arrays, f, place, -1, 0.0, stack_room())
            raise_fault(model, graph, self.bounds(graph), fault)
        super().inspect(model, graph, memory)
