"""The rows of :mod:`.factors` for each kind of graph, with the functions that draw and evaluate factors.

*Agreements*: factors of pairs that depend on whether their states agree, as in Potts and binary models. A factor adds a
constant to the log-weight of one state, so the cost of a minibatch does not depend on the number of states. The view of
a factor is the state of the neighbour.

*Positions*: agreements whose weights are a function of positions, drawn without a table of pairs. A site draws a node
of a tree over the positions (:mod:`gibbsite.graphs.tree`) by a bound of the weights in it, then one of its points,
which is kept with probability weight / bound. By this thinning, the distribution of the kept factors is exact.

*Tables*: factors of two sites, or of any number. The view of a factor is the place of its first entry for the site;
entries for successive states of the site are ``stride`` apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Codes, Floats, Ints, Ints32, Words32, Words64
from gibbsite._numba.jit import Integer, generic, implement
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below, uniform
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.distance import Decay, coupling_at
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.kinds.stored import StoredPottsGraph
from gibbsite.graphs.kinds.table import TableGraph, entry_of
from gibbsite.graphs.tree import build_tree, list_nodes
from gibbsite.kernels.minibatch.factors import (
    NOTHING,
    add_factor,
    add_gain,
    bound_of,
    builds_rows,
    draw_factor,
    factor_at,
    is_counted,
    row_sums,
    share_of,
    shares_of,
)

_ONE = np.uintp(1)


class AgreementRows(NamedTuple):
    """Pairs with a weight for equal states: positive weights favour them, and negative weights all other states.

    ``table`` has the alias tables of the rows; it is empty if all weights are equal. ``sign`` is the common sign of all
    weights, or 0 if signs differ; then that of slot k is the sign of ``weight[step * k]``. ``complete`` means that
    every row lists all other sites in order, so that the column determines the neighbour.
    """

    start: Words32
    neighbour: Words32
    table: Words64
    sign: float
    weight: Floats
    step: int
    complete: bool
    local: Floats
    rate: Floats
    degree: Ints
    total: float
    offset: Ints
    log_unary: Floats


@builds_rows("ising", "potts")
def agreement_rows(graph: Graph) -> AgreementRows:
    """Build the alias tables of a graph of agreements, or of two states."""
    arrays: Any = graph.arrays
    if isinstance(arrays, PottsGraph):
        weight, step = arrays.coupling, arrays.step
        log_unary, offset = arrays.log_unary, arrays.offset
    elif isinstance(arrays, StoredPottsGraph):
        weight, step = np.asarray(arrays.coupling, np.float64), 1
        log_unary = arrays.field if arrays.own else np.tile(arrays.field, graph.n_sites)
        offset = arrays.offset
    else:
        # w x y = (w / 2) ([x = y] + x + y - 1) for x, y in {0, 1}: half the bound of w x y itself
        weight, step = 0.5 * np.asarray(arrays.coupling), 1
        offset = 2 * np.arange(graph.n_sites + 1, dtype=np.int64)
        log_unary = np.zeros(2 * graph.n_sites)
        log_unary[1::2] = arrays.field + row_sums(arrays.start, weight, 1)
    bound = np.abs(weight)
    local = row_sums(arrays.start, bound, step)
    signs = np.sign(weight)
    low, high = float(signs.min(initial=1.0)), float(signs.max(initial=-1.0))
    return AgreementRows(
        start=arrays.start,
        neighbour=arrays.neighbour,
        table=build_alias_rows(arrays.start, bound) if step else np.zeros(0, np.uint64),
        sign=1.0 if low >= 0.0 else -1.0 if high <= 0.0 else 0.0,
        weight=weight,
        step=step,
        complete=_lists_all(arrays.start, arrays.neighbour),
        local=local,
        rate=local,
        degree=np.diff(arrays.start.astype(np.int64)),
        total=float(local.sum()) / 2.0,
        offset=offset,
        log_unary=log_unary,
    )


def _lists_all(start: Words32, neighbour: Words32) -> bool:
    """Return whether every row has all other sites in ascending order."""
    n = start.size - 1
    if neighbour.size != n * (n - 1) or not (np.diff(start.astype(np.int64)) == n - 1).all():
        return False
    others = np.arange(n - 1)
    return all(np.array_equal(neighbour[i * (n - 1) : (i + 1) * (n - 1)], others + (others >= i)) for i in range(n))


@implement(draw_factor, AgreementRows)
def _draw_agreement(rows: AgreementRows, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    many = np.uintp(rows.start[i + _ONE]) - first
    if rows.table.size > 0:
        rng, column = draw_column(rows.table, first, many, rng)
    else:
        rng, drawn = below(rng, many)
        column = np.uintp(drawn)
    k = first + column
    j = column + np.uintp(column >= i) if rows.complete else np.uintp(rows.neighbour[k])
    return rng, k, np.int64(x[j])


@implement(factor_at, AgreementRows)
def _agreement_at(rows: AgreementRows, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    k = np.uintp(rows.start[i]) + np.uintp(number)
    return k, np.int64(x[np.uintp(rows.neighbour[k])])


@implement(share_of, AgreementRows)
def _agreement_share(rows: AgreementRows, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    sign = rows.sign
    if sign == 0.0:
        sign = rows.weight[np.uintp(rows.step) * k]
    return 1.0 if (a == view) == (sign > 0.0) else 0.0


@implement(add_gain, AgreementRows)
def _add_agreement_gain(rows: AgreementRows, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    sign = rows.sign
    if sign == 0.0:
        sign = rows.weight[np.uintp(rows.step) * k]
    # favouring every other state is equivalent to a loss of this one
    w[np.uintp(view)] += gain[0] if sign > 0.0 else -gain[0]


@implement(add_factor, AgreementRows)
def _add_agreement(rows: AgreementRows, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    w[np.uintp(view)] += scale * rows.weight[np.uintp(rows.step) * k]


@implement(bound_of, AgreementRows)
def _agreement_bound(rows: AgreementRows, k: Integer, i: Integer) -> float:
    return abs(float(rows.weight[np.uintp(rows.step) * k]))


class PositionRows(NamedTuple):
    """The nodes of the tree from which each site draws, with bounds of the weights in them.

    ``rate`` is the sum of these bounds, and ``local`` is a closer bound of the sum of weights L_i.
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
def _draw_position(rows: PositionRows, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
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
def _position_at(rows: PositionRows, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    j = np.uintp(number) + np.uintp(np.uintp(number) >= i)
    return j, np.int64(x[j])


@implement(share_of, PositionRows)
def _position_share(rows: PositionRows, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    return 1.0 if (a == view) == (rows.beta > 0.0) else 0.0


@implement(add_gain, PositionRows)
def _add_position_gain(rows: PositionRows, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    w[np.uintp(view)] += gain[0] if rows.beta > 0.0 else -gain[0]


@implement(add_factor, PositionRows)
def _add_position(rows: PositionRows, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    w[np.uintp(view)] += scale * rows.beta * coupling_at(rows.positions, rows.decay, i, k)


@implement(bound_of, PositionRows)
def _position_bound(rows: PositionRows, k: Integer, i: Integer) -> float:
    return abs(rows.beta) * coupling_at(rows.positions, rows.decay, i, k)


class TableRows(NamedTuple):
    """Tables of a graph; ``counts`` marks the slots of the first two sites of each factor, and is empty if all are."""

    graph: Any
    table: Words64
    bound: Floats
    share: Floats
    counts: Bools
    local: Floats
    rate: Floats
    degree: Ints
    total: float
    offset: Ints
    log_unary: Floats


@builds_rows("pairwise")
def pair_rows(graph: Graph) -> TableRows:
    """Build the alias tables of a graph of tables of two sites."""
    arrays: PairwiseGraph = graph.arrays
    bound, share = shares_of(arrays.log_value, arrays.table)
    return _rows_of_tables(arrays, bound, share, np.zeros(0, np.bool_), float(bound.sum()) / 2.0)


@builds_rows("table")
def table_rows(graph: Graph) -> TableRows:
    """Build the alias tables of a graph of any tables."""
    arrays: TableGraph = graph.arrays
    bound, share = shares_of(arrays.log_value, arrays.table)
    begin = arrays.member_start.astype(np.int64)
    place = np.arange(arrays.member.size) - np.repeat(begin[:-1], np.diff(begin))
    by_site = np.argsort(arrays.member, kind="stable")  # the order of slots in rows
    return _rows_of_tables(arrays, bound[arrays.factor], share, place[by_site] < 2, float(bound.sum()))


def _rows_of_tables(arrays: Any, bound: Floats, share: Floats, counts: Bools, total: float) -> TableRows:
    local = row_sums(arrays.start, bound)
    return TableRows(
        graph=arrays,
        table=build_alias_rows(arrays.start, bound),
        bound=bound,
        share=share,
        counts=counts,
        local=local,
        rate=local,
        degree=np.diff(arrays.start.astype(np.int64)),
        total=total,
        offset=arrays.offset,
        log_unary=arrays.log_unary,
    )


@generic
def view_of(arrays: Any, k: Integer, i: Integer, x: Codes) -> Integer:
    """Return where the entries of slot k of site i begin, given the other sites."""
    raise NotImplementedError


@generic
def stride_of(arrays: Any, k: Integer) -> Integer:
    """Return the distance of successive entries of a slot."""
    raise NotImplementedError


@implement(view_of, PairwiseGraph)
def _view_pair(arrays: PairwiseGraph, k: Integer, i: Integer, x: Codes) -> Integer:
    return arrays.table[k] + np.int64(x[np.uintp(arrays.neighbour[k])]) * arrays.card[i]


@implement(stride_of, PairwiseGraph)
def _stride_pair(arrays: PairwiseGraph, k: Integer) -> Integer:
    return _ONE


@implement(view_of, TableGraph)
def _view_table(arrays: TableGraph, k: Integer, i: Integer, x: Codes) -> Integer:
    entry = entry_of(arrays, x, np.uintp(arrays.factor[k]))
    return np.int64(entry) - arrays.own_stride[k] * np.int64(x[i])


@implement(stride_of, TableGraph)
def _stride_table(arrays: TableGraph, k: Integer) -> Integer:
    return np.uintp(arrays.own_stride[k])


@implement(is_counted, TableRows)
def _is_counted(rows: TableRows, k: Integer) -> bool:
    return bool(rows.counts.size == 0 or rows.counts[k])


@implement(draw_factor, TableRows)
def _draw_table(rows: TableRows, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.graph.start[i])
    rng, column = draw_column(rows.table, first, np.uintp(rows.graph.start[i + _ONE]) - first, rng)
    k = first + column
    return rng, k, view_of(rows.graph, k, i, x)


@implement(factor_at, TableRows)
def _table_at(rows: TableRows, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    k = np.uintp(rows.graph.start[i]) + np.uintp(number)
    return k, view_of(rows.graph, k, i, x)


@implement(share_of, TableRows)
def _table_share(rows: TableRows, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    return float(rows.share[np.uintp(view) + stride_of(rows.graph, k) * np.uintp(a)])


@implement(add_gain, TableRows)
def _add_table_gain(rows: TableRows, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    at, stride = np.uintp(view), stride_of(rows.graph, k)
    for a in range(np.uintp(rows.graph.card[i])):
        w[a] += gain[at + stride * a]


@implement(add_factor, TableRows)
def _add_table(rows: TableRows, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    at, stride, bound = np.uintp(view), stride_of(rows.graph, k), scale * rows.bound[k]
    for a in range(np.uintp(rows.graph.card[i])):
        w[a] += bound * rows.share[at + stride * a]


@implement(bound_of, TableRows)
def _table_bound(rows: TableRows, k: Integer, i: Integer) -> float:
    return float(rows.bound[k])
