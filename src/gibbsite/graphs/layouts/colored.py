"""Binary pairwise graphs laid out color by color, for updates of many sites at once.

Sites of a color stand side by side, within a color those of equal degree. A class (equal color, equal degree)
of small degree keeps the conditional of every configuration of a site's neighbours as a threshold for random
integers; the others keep their couplings. Among themselves the sites of a class stand in an order that brings
neighbours closer together, where there is one (:mod:`gibbsite.graphs.nearness`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats, Floats32, Ints, Ints32, Words32
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.layouts.site_order import PackedModel, Permutation
from gibbsite.graphs.nearness import rank_sites
from gibbsite.graphs.rows import row_lengths, row_starts

if TYPE_CHECKING:
    from gibbsite.models import Model


# Log-odds are summed up in 32-bit floats if no sum can be larger; the error is then below 1e-5 and far less
# where it matters.
MOST_ODDS = 64.0
# Thresholds are probabilities in units of 2^-32, at most one unit below certainty. Their upper bytes stand
# apart: they decide 255 times out of 256, and the cache holds four times as many.
SCALE = 1 << 32
MOST_TABLED = 4


class ColoredGraph(NamedTuple):
    """Binary sites in compressed columns, color by color.

    Color c holds the positions from ``color_start[c]`` and the classes from ``color_class[c]`` on, up to the
    next color's; class k the positions ``first[k]`` to ``first[k + 1]``, each with ``degree[k]`` neighbours.
    Neighbour q of position p is entry ``edge[k] + q * size + p - first[k]``. The log-odds are
    ``field[p] + sum of coupling * x[neighbour]``. Where ``table[k]`` is not negative, the thresholds of
    position p begin at ``table[k] + (p - first[k]) * 2^degree``, neighbour q being bit q.
    """

    color_start: Ints
    color_class: Ints
    first: Ints
    degree: Ints
    edge: Ints
    table: Ints
    neighbour: Words32
    coupling: Floats32
    field: Floats32
    upper: Bytes
    threshold: Words32


def pack_columns(model: Model, graph: Graph, most_tabled: int = MOST_TABLED) -> PackedModel | None:
    """Lay a binary model out color by color; None if it is none, or its couplings are too large for it.

    Sites of at most ``most_tabled`` neighbours have tables of thresholds.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((2, 2), coupling=1.0)
    >>> packed = pack_columns(model, gs.graphs.compile_graph(model))
    >>> packed.arrays.color_start.tolist(), packed.order.order.tolist()
    ([0, 2, 4], [0, 3, 1, 2])
    """
    if not graph.binary:
        return None
    rows = graph if isinstance(graph.arrays, IsingGraph) else compile_graph(model, "ising")
    if not _fits(rows.arrays):
        return None
    arrays, order, near = _color_rows(rows, most_tabled)
    return PackedModel(arrays, order, int(np.diff(arrays.color_start).max(initial=0)), rows.log_offset, near)


def _color_rows(graph: Graph, most_tabled: int) -> tuple[ColoredGraph, Permutation, Ints32]:
    """Turn the compressed rows of a binary graph into columns, color by color."""
    arrays: IsingGraph = graph.arrays
    start, degree = arrays.start.astype(np.int64), row_lengths(arrays.start)
    color = color_sites(graph)
    near = rank_sites(arrays.start, arrays.neighbour)
    order = np.lexsort((degree, color) if near is None else (near, degree, color))
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    keys = np.stack([color[order], degree[order]])
    new = np.ones(order.size, np.bool_)
    new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    first = np.append(np.flatnonzero(new), order.size)
    size, degree = np.diff(first), degree[order][first[:-1]]
    edge = row_starts(size * degree)
    neighbour = np.empty(int(edge[-1]), np.uint32)
    coupling = np.empty(int(edge[-1]), np.float32)
    field = arrays.field[order]
    table = np.full(size.size, -1, np.int64)
    thresholds, used = [np.zeros(0, np.uint32)], 0
    for k in range(size.size):
        sites = order[first[k] : first[k + 1]]
        rows = start[sites][:, None] + np.arange(degree[k])
        odds = arrays.coupling[rows]
        part = slice(edge[k], edge[k + 1])
        neighbour[part] = position[arrays.neighbour[rows]].T.ravel()
        coupling[part] = odds.T.ravel()
        if degree[k] <= most_tabled:
            table[k] = used
            thresholds.append(_thresholds(field[first[k] : first[k + 1]], odds))
            used += thresholds[-1].size
    # the last table can be read like one of full size
    limits = np.concatenate([*thresholds, np.zeros(1 << most_tabled, np.uint32)])
    colors = keys[0][first[:-1]] if order.size else np.zeros(0, np.int32)
    count = int(colors.max(initial=-1)) + 1
    arrays_out = ColoredGraph(
        color_start=np.searchsorted(keys[0], np.arange(count + 1)).astype(np.int64),
        color_class=np.searchsorted(colors, np.arange(count + 1)).astype(np.int64),
        first=first.astype(np.int64),
        degree=degree.astype(np.int64),
        edge=edge,
        table=table,
        neighbour=neighbour,
        coupling=coupling,
        field=field.astype(np.float32),
        upper=(limits >> 24).astype(np.uint8),
        threshold=limits,
    )
    rank = order if near is None else near[order]
    return arrays_out, Permutation(order.astype(np.int32)), rank.astype(np.int32)


def _fits(arrays: IsingGraph) -> bool:
    """Tell whether all log-odds stay within bounds."""
    row = np.repeat(np.arange(arrays.field.size), row_lengths(arrays.start))
    reach = np.abs(arrays.field) + np.bincount(row, np.abs(arrays.coupling), arrays.field.size)
    return bool((reach <= MOST_ODDS).all())


def _thresholds(field: Floats, coupling: Floats) -> Words32:
    """Return the probabilities of state 1 for every configuration of the neighbours, as integers."""
    odds = field[:, None]
    for q in range(coupling.shape[1]):  # neighbour q is bit q
        odds = np.concatenate([odds, odds + coupling[:, q : q + 1]], axis=1)
    return np.minimum(np.rint(SCALE / (1.0 + np.exp(-odds))), SCALE - 1).astype(np.uint32).ravel()
