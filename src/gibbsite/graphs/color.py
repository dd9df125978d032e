"""Coloring of the Markov graph: sites of one color do not depend on each other.

Bipartite graphs, which a breadth-first search finds, get two colors. Others are colored greedily in order of decreasing
degree, with at most one color more than the largest degree. Graphs in files are colored by two streaming algorithms,
each of which reads the rows once in order: one joins sites into components with parities, and the other colors greedily
in the order of the sites.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, compiled, inlined, interpreted
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.graph import Graph, as_tables
from gibbsite.graphs.rows import build_rows


class _Colorings(dict[bool, Ints32]):
    """Colorings of a model, computed from tables (True) or from pairs (False)."""


def color_sites(graph: Graph) -> Ints32:
    """Return the color of every site, 0 .. number of colors - 1.

    The coloring depends on the structure only and is kept for all models that share it.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((2, 3), coupling=1.0))
    >>> color_sites(graph).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    if not isinstance(graph, Graph):
        raise IncompatibleError(
            f"color_sites takes a compiled graph, gs.graphs.compile_graph(model), got {type(graph).__name__}."
        )
    kept, tables = graph.shared[_Colorings], graph.kind == "table"
    if tables not in kept:
        known = getattr(graph.arrays, "colors", None)
        colors: Ints32 | None = None if known is None else known()
        if colors is None:
            start, neighbour = markov_graph(graph)
            colors = np.full(graph.n_sites, -1, np.int32)
            with interpreted(2.0 * (colors.size + neighbour.size)):
                if graph.on_disk:
                    if not _two_streamed(start, neighbour, colors):
                        _greedy(start, neighbour, np.arange(colors.size), colors)
                elif not _two_colors(start, neighbour, colors):
                    order = np.argsort(-np.diff(start.astype(np.int64)), kind="stable")
                    _greedy(start, neighbour, order, colors)
        colors.setflags(write=False)
        kept[tables] = colors
    return kept[tables]


def markov_graph(graph: Graph) -> tuple[Words32, Words32]:
    """Return row starts and neighbours of the graph that joins sites sharing a factor."""
    arrays: Any = graph.arrays
    if hasattr(arrays, "neighbour"):
        return arrays.start, arrays.neighbour
    if not hasattr(arrays, "pairs"):  # a kind without a list of pairs
        return markov_graph(as_tables(graph))
    rows = build_rows(arrays.pairs(), graph.n_sites)
    return rows.start, rows.neighbour


@compiled
def _two_colors(start: Words32, neighbour: Words32, colors: Ints32) -> bool:
    """Color by breadth-first search; return False (colors unusable) if an odd cycle is found."""
    n = colors.size
    queue = np.empty(n, np.int32)
    for root in range(n):
        if colors[root] >= 0:
            continue
        colors[root] = 0
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(start[i], start[i + 1]):
                j = neighbour[k]
                if colors[j] < 0:
                    colors[j] = 1 - colors[i]
                    queue[tail] = j
                    tail += 1
                elif colors[j] == colors[i]:
                    return False
    return True


@inlined
def _climb(parent: Ints32, parity: Ints32, i: Integer) -> tuple[Integer, Integer]:
    """Return the root of the component of site i, and 1 if their colors differ; compress the path."""
    other: Integer = np.int32(0)
    while parent[i] != i:
        above = parent[i]
        parity[i] ^= parity[above]
        parent[i] = parent[above]
        other ^= parity[i]
        i = parent[i]
    return i, other


@compiled
def _two_streamed(start: Words32, neighbour: Words32, colors: Ints32) -> bool:
    """Color by joining sites into components, row by row; return False if an odd cycle is found."""
    n = colors.size
    parent = np.arange(n).astype(np.int32)
    colors[:] = 0  # until the end, the parity of each site relative to its parent
    for i in range(n):
        for k in range(start[i], start[i + 1]):
            j = np.int64(neighbour[k])
            if j < i:
                first, here = _climb(parent, colors, i)
                second, there = _climb(parent, colors, j)
                if first == second:
                    if here == there:
                        return False
                else:  # the first site of a component is the smallest
                    low, high = min(first, second), max(first, second)
                    parent[high] = low
                    colors[high] = here ^ there ^ 1
    for i in range(n):
        root, other = _climb(parent, colors, i)
        parent[i], colors[i] = root, other
    return True


@compiled
def _greedy(start: Words32, neighbour: Words32, order: Ints, colors: Ints32) -> None:
    """Give each site, in the given order, the smallest color that no neighbour has."""
    n = colors.size
    colors[:] = -1
    taken = np.full(n + 1, -1, np.int64)
    for position in range(n):
        i = order[position]
        for k in range(start[i], start[i + 1]):
            c = colors[neighbour[k]]
            if c >= 0:
                taken[c] = i
        c = 0
        while taken[c] == i:
            c += 1
        colors[i] = c
