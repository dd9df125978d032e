"""Partitions of a model that is laid out by color, and the positions of other parts that each part reads.

A *segment* is a range of positions of one color, in an order that brings neighbours together: a
color of a lattice, a class of sites of equal color and degree otherwise. A part is a range of every segment.
Lattices are cut between rows, into strips. Other models are cut so that all parts have equally many sites of a
color, at the same ranks in all segments of the color; the sites of a part are close together in the graph if the
layout brings neighbours together. Positions do not depend on the number of parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Ints
from gibbsite.kernels.batched.base import PackedModel
from gibbsite.kernels.batched.board import BoardShape
from gibbsite.kernels.batched.colored import ColoredGraph


def color_starts(arrays: Any) -> Ints:
    """Return where each color begins, and where the last one ends."""
    if isinstance(arrays, ColoredGraph):
        return arrays.color_start
    start = arrays.board.start
    return np.array([0, start[0, -1], start[0, -1] + start[1, -1]], np.int64)


def segment_colors(arrays: Any) -> Ints:
    """Return the first segment of each color, and the number of segments."""
    return arrays.color_class if isinstance(arrays, ColoredGraph) else np.arange(3)


def cut_positions(packed: PackedModel, parts: int) -> Ints:
    """Cut every segment into parts; entry (s, k) of the result is where part k of segment s begins."""
    arrays, share = packed.arrays, np.arange(parts + 1)
    if isinstance(arrays, ColoredGraph):
        return _cut_classes(arrays, packed.near, share)
    starts = color_starts(arrays)
    rows = arrays.board.start.shape[1] - 1
    if rows >= parts:
        found: Ints = starts[:-1, None] + arrays.board.start[:, rows * share // parts]
        return found
    return starts[:-1, None] + np.diff(starts)[:, None] * share // parts


def _cut_classes(arrays: ColoredGraph, near: Array | None, share: Ints) -> Ints:
    """Cut all classes of a color at the same ranks, so that parts have equally many sites of the color."""
    assert near is not None
    found = np.empty((arrays.first.size - 1, share.size), np.int64)
    for color in range(arrays.color_start.size - 1):
        own = np.sort(near[arrays.color_start[color] : arrays.color_start[color + 1]])
        # ranks are distinct; one more is appended as the end of the last part
        bounds = np.append(own, own[-1] + 1)[own.size * share // share[-1]]
        for k in range(arrays.color_class[color], arrays.color_class[color + 1]):
            low, high = arrays.first[k], arrays.first[k + 1]
            found[k] = low + np.searchsorted(near[low:high], bounds)
    return found


def look_across(arrays: Any, ranges: Ints) -> Ints:
    """Return the positions outside of a part that its sites depend on, in ascending order.

    ``ranges`` (segments, 2) are the first position of the part in each segment, and the one after its last.
    """
    seen = np.zeros(int(color_starts(arrays)[-1]), np.bool_)
    for segment, (low, high) in enumerate(ranges.tolist()):
        if low < high:
            if isinstance(arrays, ColoredGraph):
                _see_columns(arrays, segment, low, high, seen)
            else:
                _see_rows(arrays.board, segment, low, high, seen)
    for low, high in ranges.tolist():
        seen[low:high] = False
    return np.flatnonzero(seen)


def _see_columns(arrays: ColoredGraph, k: int, low: int, high: int, seen: Bools) -> None:
    """Mark the neighbours of positions low to high of class k."""
    first, end = int(arrays.first[k]), int(arrays.first[k + 1])
    edges = arrays.neighbour[arrays.edge[k] : arrays.edge[k + 1]].reshape(int(arrays.degree[k]), end - first)
    seen[edges[:, low - first : high - first].ravel()] = True


def _see_rows(board: BoardShape, color: int, low: int, high: int, seen: Bools) -> None:
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
