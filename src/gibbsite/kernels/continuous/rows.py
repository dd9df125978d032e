"""Factors that are functions, drawn at random: alias tables by row, which sites share.

As on graphs of pairs (:mod:`.minibatch`), what is drawn are factors shifted to minimum zero, with probability
M / L_i; factors that are always evaluated are neither drawn nor counted in L_i, Psi and Delta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below
from gibbsite.graphs.functions.bounds import all_bounds
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.minibatch.factors import builds_rows, row_sums


class FunctionRows(NamedTuple):
    """The factors of each row that may be drawn.

    Attributes
    ----------
    row : int32 (sites,)
        Row of each site.
    first, many : int64 (rows,)
        Where the factors of a row that are drawn begin in ``ContinuousGraph.factor``, and how many they are.
    start, table
        Alias tables of the rows; empty for rows whose bounds are all equal.
    local, degree : float, int64 (sites,)
        L_i, the sum of their bounds, and their number.
    total : float
        Psi, the sum of the bounds of all factors that are drawn, each once.
    """

    row: Ints32
    first: Ints
    many: Ints
    start: Ints
    table: Words64
    local: Floats
    degree: Ints
    total: float


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
