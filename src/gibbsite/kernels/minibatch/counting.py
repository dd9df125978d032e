"""What the steps of minibatch kernels have in common: a memory that counts, and a draw from log-weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words64
from gibbsite._common.wording import part
from gibbsite._numba.jit import Integer, generic, implement, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.local import from_logs
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.minibatch.factors import DRAWN_KINDS, check_drawn
from gibbsite.kernels.rules import pick, put_cells

_ONE = np.uintp(1)
# Positions in the counts of a chain.
UPDATES, DRAWN, KEPT, ACCEPTED = range(4)


class Batched(NamedTuple):
    """Memory of a minibatch chain: scratch arrays; counts of updates, of factors seen and kept, of moves."""

    work: Floats
    spare: Floats
    counts: Ints


@dataclass(frozen=True)
class MinibatchKernel(Kernel):
    """A kernel that looks at a random part of the factors of a site."""

    kinds: ClassVar[frozenset[str]] = DRAWN_KINDS
    reads_all: ClassVar[bool] = False
    #: Whether a step may reject what it proposes, so that the share of accepted ones is worth knowing.
    rejects: ClassVar[bool] = False

    def check(self, graph: Graph) -> None:
        """Refuse a graph of another kind, or whose factors are not bounded."""
        super().check(graph)
        name = type(self).__name__
        check_drawn(graph, part(name, name))

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate scratch arrays and counts."""
        return self.workspace(graph)

    def workspace(self, graph: Graph) -> Batched:
        """Allocate scratch arrays and counts."""
        states = max(int(graph.cards.max(initial=1)), 2)
        return Batched(np.zeros(states), np.zeros(states), np.zeros(4, np.int64))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 16 * max(int(graph.cards.max(initial=1)), 2) + 32

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return means per update, the warmup included: factors in the minibatch, and looked at in all."""
        counts = np.sum([memory.counts for memory in memories], axis=0)
        updates = max(int(counts[UPDATES]), 1)
        found = {"minibatch": counts[KEPT] / updates, "factors": counts[DRAWN] / updates}
        if self.rejects:
            found["acceptance"] = counts[ACCEPTED] / updates
        return {name: float(value) for name, value in found.items()}


@inlined
def start_logs(rows: Any, i: Integer, w: Floats) -> Integer:
    """Fill ``w`` with the log-weights of site i without its neighbours; return the number of states."""
    cell = np.uintp(rows.offset[i])
    size = np.uintp(rows.offset[i + _ONE]) - cell
    for a in range(size):
        w[a] = rows.log_unary[cell + a]
    return np.int64(size)


@inlined
def stays_in(rng: Words, share: float) -> tuple[Words, bool]:
    """Toss a coin of this probability; a certain outcome takes no random number."""
    stays = share >= 1.0
    if 0.0 < share < 1.0:
        rng, u = uniform(rng)
        stays = u < share
    return rng, stays


@generic
def draw_from_logs(
    arrays: Any, x: Codes, i: Integer, w: Floats, size: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Give site i a value drawn by the log-weights ``w``, which are overwritten; write them to ``cond``."""
    raise NotImplementedError


@implement(draw_from_logs, IsingGraph)
def _draw_binary(
    arrays: IsingGraph, x: Codes, i: Integer, w: Floats, size: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    if keep:
        cond[i] = w[1] - w[0]
    rng, u = uniform(rng)
    x[i] = pick(w, 2, u * from_logs(w, 2))
    return rng


@implement(draw_from_logs)
def _draw_states(
    arrays: Any, x: Codes, i: Integer, w: Floats, size: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    total = from_logs(w, size)
    if keep:
        put_cells(arrays, w, size, total, i, cond)
    rng, u = uniform(rng)
    x[i] = pick(w, size, u * total)
    return rng
