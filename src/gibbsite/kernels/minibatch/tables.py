"""Minibatches of factors that are tables, over two sites or any number of them.

The view of a factor is where its entries for the states of the site begin; they are ``stride`` apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Codes, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, generic, implement
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.table import TableGraph, entry_of
from gibbsite.kernels.minibatch.factors import (
    add_factor,
    add_gain,
    builds_rows,
    draw_factor,
    factor_at,
    is_counted,
    row_sums,
    share_of,
    shares_of,
)

_ONE = np.uintp(1)


class TableRows(NamedTuple):
    """Tables of a graph; ``counts``: slots of the first two sites of each factor, empty if all slots are."""

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
    return _rows(arrays, bound, share, np.zeros(0, np.bool_), float(bound.sum()) / 2.0)


@builds_rows("table")
def table_rows(graph: Graph) -> TableRows:
    """Build the alias tables of a graph of any tables."""
    arrays: TableGraph = graph.arrays
    bound, share = shares_of(arrays.log_value, arrays.table)
    begin = arrays.member_start.astype(np.int64)
    place = np.arange(arrays.member.size) - np.repeat(begin[:-1], np.diff(begin))
    by_site = np.argsort(arrays.member, kind="stable")  # as rows are made
    return _rows(arrays, bound[arrays.factor], share, place[by_site] < 2, float(bound.sum()))


def _rows(arrays: Any, bound: Floats, share: Floats, counts: Bools, total: float) -> TableRows:
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
    """Return how far apart they are."""
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
def _draw(rows: TableRows, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.graph.start[i])
    rng, column = draw_column(rows.table, first, np.uintp(rows.graph.start[i + _ONE]) - first, rng)
    k = first + column
    return rng, k, view_of(rows.graph, k, i, x)


@implement(factor_at, TableRows)
def _at(rows: TableRows, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    k = np.uintp(rows.graph.start[i]) + np.uintp(number)
    return k, view_of(rows.graph, k, i, x)


@implement(share_of, TableRows)
def _share(rows: TableRows, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    return float(rows.share[np.uintp(view) + stride_of(rows.graph, k) * np.uintp(a)])


@implement(add_gain, TableRows)
def _add_gain(rows: TableRows, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    at, stride = np.uintp(view), stride_of(rows.graph, k)
    for a in range(np.uintp(rows.graph.card[i])):
        w[a] += gain[at + stride * a]


@implement(add_factor, TableRows)
def _add_factor(rows: TableRows, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    at, stride, bound = np.uintp(view), stride_of(rows.graph, k), scale * rows.bound[k]
    for a in range(np.uintp(rows.graph.card[i])):
        w[a] += bound * rows.share[at + stride * a]
