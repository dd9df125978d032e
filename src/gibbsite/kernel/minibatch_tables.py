"""Minibatches of factors that are tables, over two sites or any number of them.

The view of a factor is where its entries for the states of the site begin; they are ``stride`` apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, generic, implement
from gibbsite._random import Words
from gibbsite.graph.kinds import PairwiseGraph, TableGraph
from gibbsite.graph.lower import Graph
from gibbsite.kernel._local import entry_of
from gibbsite.kernel.minibatch import (
    Floats,
    Index,
    Longs,
    State,
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
from gibbsite.scan.alias import build_alias_rows, draw_column

_ONE = np.uintp(1)


class PairRows(NamedTuple):
    """Tables of two sites: slot k has ``share[place[k] + b * card[i] + a]`` at states a of i and b of j."""

    start: Index
    neighbour: Index
    place: Longs
    card: NDArray[np.int32]
    table: NDArray[np.uint64]
    bound: Floats
    share: Floats
    local: Floats
    rate: Floats
    degree: Longs
    total: float
    offset: Longs
    log_unary: Floats


class TableRows(NamedTuple):
    """Tables of any number of sites, of a :class:`TableGraph`.

    ``counts``: slots of the first two sites of each factor.
    """

    start: Index
    graph: TableGraph
    counts: NDArray[np.bool_]
    card: NDArray[np.int32]
    table: NDArray[np.uint64]
    bound: Floats
    share: Floats
    local: Floats
    rate: Floats
    degree: Longs
    total: float
    offset: Longs
    log_unary: Floats


@builds_rows("pairwise")
def pair_rows(graph: Graph) -> PairRows:
    """Build the alias tables of a graph of tables of two sites."""
    arrays: PairwiseGraph = graph.arrays
    bound, share = shares_of(arrays.log_value, arrays.table)
    return PairRows(
        neighbour=arrays.neighbour,
        place=arrays.table,
        total=float(bound.sum()) / 2.0,
        **_common(arrays, bound, share),
    )


@builds_rows("table")
def table_rows(graph: Graph) -> TableRows:
    """Build the alias tables of a graph of any tables."""
    arrays: TableGraph = graph.arrays
    bound, share = shares_of(arrays.log_value, arrays.table)
    begin = arrays.member_start.astype(np.int64)
    place = np.arange(arrays.member.size) - np.repeat(begin[:-1], np.diff(begin))
    by_site = np.argsort(arrays.member, kind="stable")  # as rows are made
    return TableRows(
        graph=arrays,
        counts=place[by_site] < 2,
        total=float(bound.sum()),
        **_common(arrays, bound[arrays.factor], share),
    )


def _common(arrays: Any, bound: Floats, share: Floats) -> dict[str, Any]:
    local = row_sums(arrays.start, bound)
    return {
        "start": arrays.start,
        "card": arrays.card,
        "table": build_alias_rows(arrays.start, bound),
        "bound": bound,
        "share": share,
        "local": local,
        "rate": local,
        "degree": np.diff(arrays.start.astype(np.int64)),
        "offset": arrays.offset,
        "log_unary": arrays.log_unary,
    }


@generic
def view_of(rows: Any, k: Integer, i: Integer, x: State) -> Integer:
    """Return where the entries of slot k of site i begin, given the other sites."""
    raise NotImplementedError


@generic
def stride_of(rows: Any, k: Integer) -> Integer:
    """Return how far apart they are."""
    raise NotImplementedError


@implement(view_of, PairRows)
def _view_pair(rows: PairRows, k: Integer, i: Integer, x: State) -> Integer:
    state = np.int64(x[np.uintp(rows.neighbour[k])])
    return np.int64(rows.place[k]) + state * np.int64(rows.card[i])


@implement(stride_of, PairRows)
def _stride_pair(rows: PairRows, k: Integer) -> Integer:
    return _ONE


@implement(view_of, TableRows)
def _view_table(rows: TableRows, k: Integer, i: Integer, x: State) -> Integer:
    entry = entry_of(rows.graph, x, np.uintp(rows.graph.factor[k]))
    return np.int64(entry) - rows.graph.own_stride[k] * np.int64(x[i])


@implement(stride_of, TableRows)
def _stride_table(rows: TableRows, k: Integer) -> Integer:
    return np.uintp(rows.graph.own_stride[k])


@implement(is_counted, TableRows)
def _is_counted(rows: TableRows, k: Integer) -> bool:
    return bool(rows.counts[k])


@implement(draw_factor, PairRows)
@implement(draw_factor, TableRows)
def _draw(rows: Any, i: Integer, x: State, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    rng, column = draw_column(rows.table, first, np.uintp(rows.start[i + _ONE]) - first, rng)
    k = first + column
    return rng, k, view_of(rows, k, i, x)


@implement(factor_at, PairRows)
@implement(factor_at, TableRows)
def _at(rows: Any, i: Integer, x: State, number: Integer) -> tuple[Integer, Integer]:
    k = np.uintp(rows.start[i]) + np.uintp(number)
    return k, view_of(rows, k, i, x)


@implement(share_of, PairRows)
@implement(share_of, TableRows)
def _share(rows: Any, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    return rows.share[np.uintp(view) + stride_of(rows, k) * np.uintp(a)]  # type: ignore[no-any-return]


@implement(add_gain, PairRows)
@implement(add_gain, TableRows)
def _add_gain(rows: Any, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    at, stride = np.uintp(view), stride_of(rows, k)
    for a in range(np.uintp(rows.card[i])):
        w[a] += gain[at + stride * a]


@implement(add_factor, PairRows)
@implement(add_factor, TableRows)
def _add_factor(rows: Any, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    at, stride, bound = np.uintp(view), stride_of(rows, k), scale * rows.bound[k]
    for a in range(np.uintp(rows.card[i])):
        w[a] += bound * rows.share[at + stride * a]
