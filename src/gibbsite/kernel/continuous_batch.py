"""Which factors an update of a site is about: all of them, or a Poisson minibatch (see :mod:`.poisson`).

A factor is drawn s times, s Poisson of mean ``tau M + phi(x)``. What is kept are the factors drawn and how
often, each once: near neighbours with large bounds are drawn again and again, and evaluated once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, called, inlined
from gibbsite._poisson import poisson
from gibbsite._random import Words
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.batched import stays_in
from gibbsite.kernel.continuous_energy import (
    CALLS,
    FACTORS,
    FULL,
    KEPT,
    ContinuousMemory,
    Desk,
    Floats,
    heights,
    note_fault,
)
from gibbsite.kernel.continuous_rows import FunctionRows, draw_function

_HASH = np.uint64(0x9E3779B97F4A7C15)


class Batch(NamedTuple):
    """How minibatches are drawn: rows of factors, tau, and which sites are updated in full instead."""

    rows: FunctionRows
    tau: float
    plain: NDArray[np.bool_]

    def room(self) -> int:
        """Return how many different factors a minibatch can have, but for chances below e^-100."""
        most = 0
        for local, many in zip(
            self.rows.local[~self.plain], self.rows.many[self.rows.row[~self.plain]], strict=True
        ):
            rate = (1.0 + self.tau) * float(local)
            most = max(most, min(int(many), math.ceil(rate + 20.0 * math.sqrt(rate)) + 100))
        return most


def make_desk(room: int, points: int, arity: int) -> Desk:
    """Allocate scratch arrays for minibatches of so many factors, candidates, and sites of a factor."""
    slots = 1 << max(2 * room - 1, 1).bit_length()
    return Desk(
        work=np.zeros(max(arity, 1)),
        points=np.zeros(points),
        energy=np.zeros(points),
        height=np.zeros(points),
        product=np.zeros(points),
        factor=np.zeros(room, np.int32),
        count=np.zeros(room, np.int32),
        scale=np.zeros(room),
        place=np.zeros(room, np.int32),
        table=np.zeros(slots, np.int32),
        reach=np.zeros(2, np.int64),
    )


@inlined
def _put(memory: ContinuousMemory, f: Integer, scale: Any) -> None:
    """Add a factor to the minibatch, or count it once more."""
    desk = memory.desk
    mask = np.int64(desk.table.size - 1)
    at = np.int64((np.uint64(f) * _HASH) >> np.uint64(33)) & mask
    while desk.table[at] != 0 and desk.factor[desk.table[at] - 1] != f:
        at = (at + 1) & mask
    if desk.table[at] != 0:
        desk.count[desk.table[at] - 1] += 1
        return
    size = desk.reach[1]
    if size == desk.factor.size:
        note_fault(memory, FULL, f, 0.0, 0, 0)
        return
    desk.factor[size] = f
    desk.count[size] = 1
    desk.scale[size] = scale
    desk.place[size] = at
    desk.reach[1] = size + 1
    desk.table[at] = size + 1


@called
def gather(
    batch: Batch, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> Words:
    """Choose the factors that the update of site i is about."""
    desk, rows, counts = memory.desk, batch.rows, memory.counts
    row = np.int64(graph.row[i])
    desk.reach[1] = 0
    if batch.plain[i]:
        desk.reach[0] = graph.start[row + 1]
        counts[FACTORS] += graph.start[row + 1] - graph.start[row]
        counts[KEPT] += graph.start[row + 1] - graph.start[row]
        return rng
    desk.reach[0] = graph.sure[row]
    energy = rows.local[i]
    rng, kept = poisson(rng, batch.tau * energy)  # means tau M
    for _ in range(kept):
        rng, k = draw_function(rows, row, rng)
        f = graph.factor[k]
        _put(memory, f, 1.0 / (batch.tau * graph.bound[f]))
    rng, more = poisson(rng, energy)  # means phi(x), thinned from M
    spare = desk.points.size - 1
    desk.points[spare] = x[i]
    for _ in range(more):
        rng, k = draw_function(rows, row, rng)
        f = graph.factor[k]
        heights(graph, memory, f, x, i, spare, 1)
        rng, stays = stays_in(rng, desk.height[spare] / graph.bound[f])
        if stays:
            _put(memory, f, 1.0 / (batch.tau * graph.bound[f]))
            kept += 1
    for k in range(desk.reach[1]):
        desk.table[desk.place[k]] = 0
    counts[KEPT] += kept
    counts[CALLS] += more
    counts[FACTORS] += desk.reach[0] - graph.start[row] + desk.reach[1]
    return rng
