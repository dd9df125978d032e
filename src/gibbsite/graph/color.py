"""Coloring of the Markov graph: sites of one color do not depend on each other.

Two colors where two suffice (bipartite graphs, found by breadth-first search), otherwise greedy in
order of falling degree, which never needs more than the largest degree plus one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import compiled, interpreted
from gibbsite.errors import IncompatibleError, TooLargeError
from gibbsite.graph.graph import Graph
from gibbsite.graph.kinds.distance import DistanceGraph
from gibbsite.graph.kinds.lattice import LatticeGraph
from gibbsite.graph.rows import build_rows

_MOST_LISTED = 4096  # sites whose neighbours are listed where all are neighbours


def color_sites(graph: Graph) -> NDArray[np.int32]:
    """Return the color of every site, 0 .. number of colors - 1.

    The coloring depends on the structure only and is kept for all models that share it.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.compile_graph(gs.ising_grid((2, 3), coupling=1.0))
    >>> color_sites(graph).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    if not isinstance(graph, Graph):
        raise IncompatibleError(
            f"color_sites takes a compiled graph, gs.compile_graph(model), got {type(graph).__name__}."
        )
    key = f"colors-{'pairs' if graph.kind != 'table' else 'table'}"
    if key not in graph.structure:
        colors = _lattice_parity(graph.arrays) if isinstance(graph.arrays, LatticeGraph) else None
        if isinstance(graph.arrays, DistanceGraph):  # all depend on all
            colors = np.arange(graph.n_sites, dtype=np.int32)
        if colors is None:
            start, neighbour = markov_graph(graph)
            colors = np.full(graph.n_sites, -1, np.int32)
            with interpreted(2.0 * (colors.size + neighbour.size)):
                if not _two_colors(start, neighbour, colors):
                    order = np.argsort(-np.diff(start.astype(np.int64)), kind="stable")
                    _greedy(start, neighbour, order, colors)
        colors.setflags(write=False)
        graph.structure[key] = colors
    found: NDArray[np.int32] = graph.structure[key]
    return found


def markov_graph(graph: Graph) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return row starts and neighbours of the graph that joins sites sharing a factor.

    Examples
    --------
    >>> import gibbsite as gs
    >>> start, neighbour = markov_graph(gs.compile_graph(gs.ising_grid((1, 3), coupling=1.0)))
    >>> start.tolist(), neighbour.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    arrays: Any = graph.arrays
    if hasattr(arrays, "neighbour"):
        return arrays.start, arrays.neighbour
    if isinstance(arrays, DistanceGraph):
        return _all_others(graph.n_sites)
    if isinstance(arrays, LatticeGraph):
        pairs: NDArray[Any] = _lattice_pairs(arrays)
    elif not graph.discrete:
        pairs = arrays.pairs()
    else:
        pairs = _table_pairs(arrays.member_start, arrays.member)
        low, high = pairs.min(axis=1).astype(np.int64), pairs.max(axis=1)
        keys = np.unique(low * graph.n_sites + high)
        pairs = np.stack(np.divmod(keys, max(graph.n_sites, 1)), axis=1)
    rows = build_rows(pairs, graph.n_sites)
    return rows.start, rows.neighbour


def _all_others(n: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Rows of a graph that joins all sites, up to a size."""
    if n > _MOST_LISTED:
        raise TooLargeError(
            f"Every site depends on all others, and neighbours of {n:,} sites are not listed beyond "
            f"{_MOST_LISTED:,}; sample the model with gs.PoissonGibbs() or gs.Gibbs()."
        )
    others = np.arange(n * max(n - 1, 0)).reshape(n, -1) % max(n - 1, 1)
    neighbour = others + (others >= np.arange(n)[:, None])
    return np.arange(n + 1, dtype=np.uint32) * np.uint32(max(n - 1, 0)), neighbour.ravel().astype(np.uint32)


def _table_pairs(member_start: NDArray[np.uint32], member: NDArray[np.uint32]) -> NDArray[np.int64]:
    """All pairs of sites that share a factor, repeats included."""
    width = np.diff(member_start.astype(np.int64))
    found = [np.zeros((0, 2), np.int64)]
    for arity in np.unique(width):
        first = member_start[:-1][width == arity].astype(np.int64)
        scope = member[first[:, None] + np.arange(arity)].astype(np.int64)
        a, b = np.triu_indices(int(arity), 1)
        found.append(np.stack([scope[:, a].ravel(), scope[:, b].ravel()], axis=1))
    return np.concatenate(found)


def _lattice_pairs(graph: LatticeGraph) -> NDArray[np.int32]:
    """All pairs of lattice neighbours."""
    sizes = (graph.size_0, graph.size_1, graph.size_2)
    sites = np.arange(np.prod(sizes), dtype=np.int32).reshape(sizes)
    found = []
    for axis, wrap in enumerate((graph.wrap_0, graph.wrap_1, graph.wrap_2)):
        if sizes[axis] > 1:
            near, far = sites, np.roll(sites, -1, axis)
            if not wrap:
                keep = np.arange(sizes[axis] - 1)
                near, far = near.take(keep, axis), far.take(keep, axis)
            found.append(np.stack([near.ravel(), far.ravel()], axis=1))
    return np.concatenate(found) if found else np.zeros((0, 2), np.int32)


def _lattice_parity(graph: LatticeGraph) -> NDArray[np.int32] | None:
    """Checkerboard colors, or None where an odd periodic axis rules them out."""
    sizes = (graph.size_0, graph.size_1, graph.size_2)
    wraps = (graph.wrap_0, graph.wrap_1, graph.wrap_2)
    if any(wrap and size % 2 for size, wrap in zip(sizes, wraps, strict=True)):
        return None
    parity = np.zeros(sizes, np.int32)
    for axis, size in enumerate(sizes):
        shape = [1, 1, 1]
        shape[axis] = size
        parity ^= (np.arange(size, dtype=np.int32) & 1).reshape(shape)
    return parity.ravel()


@compiled
def _two_colors(start: NDArray[np.uint32], neighbour: NDArray[np.uint32], colors: NDArray[np.int32]) -> bool:
    """Color by breadth-first search; return False (colors unusable) if an odd cycle is met."""
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


@compiled
def _greedy(
    start: NDArray[np.uint32],
    neighbour: NDArray[np.uint32],
    order: NDArray[np.int64],
    colors: NDArray[np.int32],
) -> None:
    """Give each site, in the given order, the smallest color no neighbour has."""
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
