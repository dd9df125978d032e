"""Minibatches of agreements whose weights are a function of positions, drawn without a table of pairs.

A site draws a node of a tree over the positions (:mod:`gibbsite.graphs.tree`) by a bound of the weights in it,
then one of its points, which stays with probability weight / bound: thinning, so that the distribution of what stays
is exact. The view of a factor is the state of the neighbour.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Ints32, Words32, Words64
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below, uniform
from gibbsite.graphs.decay import Decay
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.distance import coupling_at
from gibbsite.graphs.tree import build_tree, list_nodes
from gibbsite.kernels.minibatch.factors import (
    NOTHING,
    add_factor,
    add_gain,
    builds_rows,
    draw_factor,
    factor_at,
    row_sums,
    share_of,
)

_ONE = np.uintp(1)


class PositionRows(NamedTuple):
    """Nodes of each site with bounds of the weights in them.

    ``rate`` is the sum of these bounds, ``local`` a closer bound of the sum of weights L_i.
    """

    start: Ints
    node: Words32
    table: Words64
    bound: Floats
    first: Ints32
    last: Ints32
    order: Ints32
    positions: Floats
    decay: Decay
    beta: float
    local: Floats
    rate: Floats
    degree: Ints
    total: float
    offset: Ints
    log_unary: Floats


@builds_rows("distance")
def position_rows(graph: Graph) -> PositionRows:
    """List the nodes of all sites, and build their alias tables."""
    arrays: Any = graph.arrays
    tree = build_tree(arrays.positions)
    nodes = list_nodes(tree, arrays.positions, arrays.decay)
    size = (tree.last - tree.first)[nodes.node]
    weight, strength = size * nodes.bound, abs(arrays.beta)
    local = strength * nodes.sums
    return PositionRows(
        start=nodes.start,
        node=nodes.node,
        table=build_alias_rows(nodes.start, weight),
        bound=nodes.bound,
        first=tree.first,
        last=tree.last,
        order=tree.order,
        positions=arrays.positions,
        decay=arrays.decay,
        beta=arrays.beta,
        local=local,
        rate=strength * row_sums(nodes.start, weight),
        degree=np.full(graph.n_sites, max(graph.n_sites - 1, 0)),
        total=float(local.sum()) / 2.0,
        offset=arrays.offset,
        log_unary=arrays.log_unary,
    )


@implement(draw_factor, PositionRows)
def _draw(rows: PositionRows, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    rng, column = draw_column(rows.table, first, np.uintp(rows.start[i + _ONE]) - first, rng)
    k = first + column
    node = np.uintp(rows.node[k])
    begin = np.uintp(rows.first[node])
    many = np.uintp(rows.last[node]) - begin
    j = np.uintp(rows.order[begin])
    if many > _ONE:
        rng, which = below(rng, many)
        j = np.uintp(rows.order[begin + np.uintp(which)])
        rng, u = uniform(rng)
        if u * rows.bound[k] >= coupling_at(rows.positions, rows.decay, i, j):
            return rng, k, NOTHING
    return rng, k, (NOTHING if j == np.uintp(i) else np.int64(x[j]))


@implement(factor_at, PositionRows)
def _at(rows: PositionRows, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    j = np.uintp(number) + np.uintp(np.uintp(number) >= i)
    return j, np.int64(x[j])


@implement(share_of, PositionRows)
def _share(rows: PositionRows, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    return 1.0 if (a == view) == (rows.beta > 0.0) else 0.0


@implement(add_gain, PositionRows)
def _add_gain(rows: PositionRows, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    w[np.uintp(view)] += gain[0] if rows.beta > 0.0 else -gain[0]


@implement(add_factor, PositionRows)
def _add_factor(rows: PositionRows, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    w[np.uintp(view)] += scale * rows.beta * coupling_at(rows.positions, rows.decay, i, k)
