"""The factors of an update of a site: all of them, or a Poisson minibatch (see :mod:`.minibatch.poisson`).

As on graphs of pairs, factors that are drawn are shifted to minimum zero, and drawn with probability M / L_i, by
alias tables that sites with the same factors share; factors that are always evaluated are neither drawn nor counted
in L_i, Psi and Delta. A factor is drawn s times, s Poisson of mean ``tau M + phi(x)``. Each factor drawn is kept
once, with its number of draws: neighbours with large bounds are drawn again and again, and evaluated once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.functions.bounds import Bounds, all_bounds
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.continuous.energy import (
    CALLS,
    FACTORS,
    FULL,
    KEPT,
    STAGES,
    ContinuousMemory,
    EnergyWorkspace,
    heights,
)
from gibbsite.kernels.minibatch.factors import builds_rows, row_sums, stays_in


class FunctionRows(NamedTuple):
    """The factors of each row that may be drawn."""

    row: Ints32  # (sites,): row of each site
    # first, many: (rows,): where the factors of a row that are drawn begin in ``ContinuousGraph.factor``, and their
    # number
    first: Ints
    many: Ints
    # start, table: alias tables of the rows; empty for rows whose bounds are all equal
    start: Ints
    table: Words64
    # local, degree: (sites,): L_i, the sum of their bounds, and their number
    local: Floats
    degree: Ints
    total: float  # Psi, the sum of the bounds of all factors that are drawn, each once


@builds_rows("functions")
def function_rows(graph: Graph) -> FunctionRows:
    """Build the alias tables of a graph of functions."""
    arrays: ContinuousGraph = graph.arrays
    ends = arrays.start[1:]
    many = ends - arrays.sure
    place = np.arange(arrays.factor.size)
    row_of = np.repeat(np.arange(many.size), np.diff(arrays.start))
    drawn = place >= arrays.sure[row_of]
    bounds = all_bounds(graph, "drawing factors at random").bound
    bound = bounds[arrays.factor[drawn]]
    begin = row_starts(many)
    sums = row_sums(begin, bound)
    widest = np.zeros(many.size)
    np.maximum.at(widest, row_of[drawn], bound)
    narrowest = np.full(many.size, np.inf)
    np.minimum.at(narrowest, row_of[drawn], bound)
    uneven = (many > 0) & (narrowest < widest)
    start = row_starts(np.where(uneven, many, 0))
    is_drawn = np.zeros(bounds.size, bool)
    is_drawn[arrays.factor[drawn]] = True
    return FunctionRows(
        row=arrays.row.copy(),
        first=arrays.sure.copy(),
        many=many,
        start=start,
        table=build_alias_rows(start, bound[uneven[row_of[drawn]]]),
        local=sums[arrays.row],
        degree=many[arrays.row],
        total=float(bounds[is_drawn].sum()),
    )


def no_rows(graph: Graph) -> FunctionRows:
    """Return rows of which nothing is drawn, for updates in full."""
    arrays: ContinuousGraph = graph.arrays
    rows = arrays.sure.size
    return seal(
        FunctionRows(
            row=arrays.row.copy(),
            first=arrays.sure.copy(),
            many=np.zeros(rows, np.int64),
            start=np.zeros(rows + 1, np.int64),
            table=build_alias_rows(np.zeros(1, np.int64), np.zeros(0)),
            local=np.zeros(graph.n_sites),
            degree=np.zeros(graph.n_sites, np.int64),
            total=0.0,
        )
    )


@inlined
def draw_function(rows: FunctionRows, row: Integer, rng: Words) -> tuple[Words, Integer]:
    """Draw a factor of a row with probability M / L_i; return its place in ``ContinuousGraph.factor``."""
    many = rows.many[row]
    begin = rows.start[row]
    if rows.start[row + 1] > begin:
        rng, column = draw_column(rows.table, begin, many, rng)
        return rng, rows.first[row] + np.int64(column)
    rng, place = below(rng, many)
    return rng, rows.first[row] + place


_HASH = np.uint64(0x9E3779B97F4A7C15)


class Batch(NamedTuple):
    """How minibatches are drawn: rows of factors, tau, which sites are updated in full, bounds of factors."""

    rows: FunctionRows
    tau: float
    plain: Bools
    bounds: Bounds

    def room(self) -> int:
        """Return how many different factors a minibatch can have, but for chances below e^-100."""
        rate = (1.0 + self.tau) * self.rows.local
        most = np.minimum(self.rows.degree, np.ceil(rate + 20.0 * np.sqrt(rate)) + 100.0)
        return int(most[~self.plain].max(initial=0.0))


def make_workspace(room: int, points: int, arity: int) -> EnergyWorkspace:
    """Allocate scratch arrays for the largest numbers of factors, candidates, and sites of a factor."""
    slots = 1 << max(2 * room - 1, 1).bit_length()
    return EnergyWorkspace(
        work=np.zeros(max(arity, 1)),
        points=np.zeros(points),
        energy=np.zeros(points),
        height=np.zeros(points),
        product=np.zeros(points),
        stage=np.zeros(STAGES),
        factor=np.zeros(room, np.int32),
        times=np.zeros(room, np.int32),
        scale=np.zeros(room),
        place=np.zeros(room, np.int32),
        table=np.zeros(slots, np.int32),
        reach=np.zeros(2, np.int64),
    )


@inlined
def _put(bounds: Bounds, memory: ContinuousMemory, f: Integer, tau: float) -> None:
    """Add a factor to the minibatch, or count it once more."""
    workspace = memory.workspace
    mask = np.int64(workspace.table.size - 1)
    at = np.int64((np.uint64(f) * _HASH) >> np.uint64(33)) & mask
    while workspace.table[at] != 0 and workspace.factor[workspace.table[at] - 1] != f:
        at = (at + 1) & mask
    size = workspace.reach[1]
    if workspace.table[at] != 0:
        workspace.times[workspace.table[at] - 1] += 1
    elif size == workspace.factor.size:
        memory.fault[0] = FULL
    else:
        workspace.factor[size] = f
        workspace.times[size] = 1
        workspace.scale[size] = 1.0 / (tau * bounds.bound[f])
        workspace.place[size] = at
        workspace.reach[1] = size + 1
        workspace.table[at] = size + 1


@inlined
def gather(batch: Batch, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words) -> Words:
    """Choose the factors that the update of site i is about."""
    workspace, rows, counts, bounds = memory.workspace, batch.rows, memory.counts, batch.bounds
    row = np.int64(arrays.row[i])
    begin = arrays.start[row]
    plain = batch.plain[i]
    workspace.reach[0] = (arrays.start[row + 1] if plain else arrays.sure[row]) - begin
    workspace.reach[1] = 0
    always, more = 0, 0
    if not plain:
        energy = rows.local[i]
        rng, always = poisson(rng, batch.tau * energy)  # means tau M
        rng, more = poisson(rng, energy)  # means phi(x), thinned from M
    kept = always
    workspace.points[0] = x[i]
    for n in range(always + more):
        rng, k = draw_function(rows, row, rng)
        f = arrays.factor[k]
        stays = True
        if n >= always:
            heights(arrays, bounds, memory, f, x, i, 1)
            rng, stays = stays_in(rng, workspace.height[0] / bounds.bound[f])
            kept += stays
        if stays:
            _put(bounds, memory, f, batch.tau)
    for n in range(workspace.reach[1]):
        workspace.table[workspace.place[n]] = 0
    counts[KEPT] += kept
    counts[CALLS] += more
    counts[FACTORS] += workspace.reach[0] + workspace.reach[1]
    return rng
