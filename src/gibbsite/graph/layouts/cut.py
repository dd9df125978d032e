"""Positions of a model that is laid out by color, cut into parts; what each part sees of the others.

A part is a range of positions of every color. Lattices are cut between rows, into strips; other models into
ranges of equal length, which are close in the graph where the layout has brought neighbours together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.graph.layouts.checkered import Checkerboard
from gibbsite.graph.layouts.colored import ColoredGraph

Longs = NDArray[np.int64]


def color_starts(arrays: Any) -> Longs:
    """Return where each color begins, and where the last one ends.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.graph.layouts.checkered import pack_checkerboard
    >>> color_starts(pack_checkerboard(gs.compile_graph(gs.ising_grid((3, 3)))).arrays).tolist()
    [0, 5, 9]
    """
    if isinstance(arrays, ColoredGraph):
        return arrays.color_start
    start = arrays.board.start
    return np.array([0, start[0, -1], start[0, -1] + start[1, -1]], np.int64)


def cut_positions(arrays: Any, parts: int) -> Longs:
    """Cut every color into so many parts: part k of color c begins at entry (c, k) of what is returned.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.graph.layouts.checkered import pack_checkerboard
    >>> packed = pack_checkerboard(gs.compile_graph(gs.ising_grid((4, 3))))
    >>> cut_positions(packed.arrays, 2).tolist()
    [[0, 3, 6], [6, 9, 12]]
    """
    starts = color_starts(arrays)
    share = np.arange(parts + 1)
    if not isinstance(arrays, ColoredGraph):
        rows = arrays.board.start.shape[1] - 1
        if rows >= parts:
            found: Longs = starts[:-1, None] + arrays.board.start[:, rows * share // parts]
            return found
    return starts[:-1, None] + np.diff(starts)[:, None] * share // parts


def look_across(arrays: Any, ranges: Longs) -> Longs:
    """Return the positions outside of a part that its sites depend on, in ascending order.

    Parameters
    ----------
    arrays : NamedTuple
        The model as it is laid out.
    ranges : int (colors, 2)
        The first position of the part in each color, and the one behind its last.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.graph.layouts.colored import pack_columns
    >>> model = gs.ising(([0, 1], [1, 2], [1.0, 1.0]))
    >>> packed = pack_columns(model, gs.compile_graph(model))
    >>> packed.arrays.color_start.tolist()
    [0, 2, 3]
    >>> look_across(packed.arrays, np.array([[0, 1], [2, 2]])).tolist()
    [2]
    """
    seen = np.zeros(int(color_starts(arrays)[-1]), np.bool_)
    for color, (low, high) in enumerate(ranges.tolist()):
        if low < high:
            if isinstance(arrays, ColoredGraph):
                _see_columns(arrays, color, low, high, seen)
            else:
                _see_rows(arrays.board, color, low, high, seen)
    for low, high in ranges.tolist():
        seen[low:high] = False
    return np.flatnonzero(seen)


def _see_columns(arrays: ColoredGraph, color: int, low: int, high: int, seen: NDArray[np.bool_]) -> None:
    """Mark the neighbours of positions low to high."""
    for k in range(arrays.color_class[color], arrays.color_class[color + 1]):
        first, end = int(arrays.first[k]), int(arrays.first[k + 1])
        begin, stop = max(low, first) - first, min(high, end) - first
        if begin < stop:
            edges = arrays.neighbour[arrays.edge[k] : arrays.edge[k + 1]]
            seen[edges.reshape(int(arrays.degree[k]), end - first)[:, begin:stop].ravel()] = True


def _see_rows(board: Checkerboard, color: int, low: int, high: int, seen: NDArray[np.bool_]) -> None:
    """Mark all rows of the other color in which positions low to high have neighbours."""
    rows = board.start.shape[1] - 1
    even = int(board.start[0, rows])
    off, other = even * color, even * (1 - color)
    first = int(np.searchsorted(board.start[color], low - off, "right")) - 1
    last = int(np.searchsorted(board.start[color], high - off, "left"))
    row = np.arange(first, last)
    plane, line = np.divmod(row, board.size_1)
    near = [row]
    for axis, size, wrap, step in (
        (line, board.size_1, board.wrap_1, 1),
        (plane, board.size_0, board.wrap_0, board.size_1),
    ):
        for to in (axis - 1, axis + 1):
            there = (to >= 0) & (to < size) if not wrap else np.ones(to.size, np.bool_)
            near.append((row + (to % size - axis) * step)[there])
    starts = board.start[1 - color]
    for r in np.unique(np.concatenate(near)).tolist():
        seen[other + starts[r] : other + starts[r + 1]] = True
