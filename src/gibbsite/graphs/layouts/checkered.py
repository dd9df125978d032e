"""Lattices laid out like the two colors of a checkerboard, for updates of whole rows at once.

Even sites stand before odd ones, each color row by row. In this order the neighbours of a stretch of a row
are stretches as well: no neighbour is ever looked up. Rows run along the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Floats32, Ints
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import LatticeGraph, Triple
from gibbsite.graphs.layouts.colored import MOST_ODDS
from gibbsite.graphs.layouts.site_order import PackedModel, Parity


class Checkerboard(NamedTuple):
    """The geometry: sizes, periodic or not, and where the rows of both colors begin (2, rows + 1)."""

    size_0: int
    size_1: int
    size_2: int
    wrap_0: int
    wrap_1: int
    wrap_2: int
    start: Ints


class UniformBoard(NamedTuple):
    """One coupling per axis and one field for all sites; log-odds ``field + sum coupling (x - 1/2)``."""

    board: Checkerboard
    coupling_0: float
    coupling_1: float
    coupling_2: float
    field: float


class PlaneBoard(NamedTuple):
    """A field and couplings of its own for each site: log-odds ``field + sum of coupling * x``.

    Row d of ``coupling`` belongs to one direction: before and after along the last axis, then the middle and
    the first axis; zero where there is no neighbour. Sites are in this order, not the model's.
    """

    board: Checkerboard
    coupling: Floats32
    field: Floats32


def pack_checkerboard(graph: Graph) -> PackedModel | None:
    """Lay a lattice out by color; None if two colors do not suffice or couplings are too large.

    Examples
    --------
    >>> import gibbsite as gs
    >>> packed = pack_checkerboard(gs.graphs.compile_graph(gs.ising_grid((4, 4), coupling=0.25, field=1.0)))
    >>> packed.arrays.coupling_2, packed.arrays.field, packed.order.shape
    (1.0, 2.0, (1, 4, 4))
    >>> pack_checkerboard(gs.graphs.compile_graph(gs.ising_grid((3, 3), coupling=0.25, periodic=True))) is None
    True
    """
    g = graph.arrays
    if not isinstance(g, LatticeGraph):
        return None
    shape, wraps = (g.size_0, g.size_1, g.size_2), (g.wrap_0, g.wrap_1, g.wrap_2)
    if not takes_two_colors(shape, wraps):
        return None
    couplings, steps = (g.coupling_0, g.coupling_1, g.coupling_2), (g.step_0, g.step_1, g.step_2)
    reach = 2 * np.abs(g.field).max() + sum(4 * np.abs(w).max() for w in couplings)
    if not reach <= MOST_ODDS:
        return None
    order = Parity(shape)
    board = Checkerboard(*shape, *wraps, order.starts())
    arrays: UniformBoard | PlaneBoard
    if not any(steps) and not g.step_field:
        w0, w1, w2 = (4.0 * float(w[0]) for w in couplings)
        arrays = UniformBoard(board, w0, w1, w2, 2.0 * float(g.field[0]))
    else:
        planes = np.zeros((n_directions(shape), graph.n_sites), np.float32)
        field = np.broadcast_to(2.0 * g.field, graph.n_sites).reshape(shape).copy()
        for d, weight in enumerate(toward_neighbours([4.0 * w for w in couplings], shape, wraps)):
            field -= 0.5 * weight
            planes[d] = order.pack(weight.ravel())
        arrays = PlaneBoard(board, planes, order.pack(field.ravel()).astype(np.float32))
    return pack_two_colors(graph, arrays, order)


def pack_two_colors(graph: Graph, arrays: Any, order: Parity) -> PackedModel:
    """Return a lattice laid out like a checkerboard; what its arrays leave out is what the graph's do."""
    return PackedModel(arrays, order, graph.n_sites // 2, graph.log_offset)


def takes_two_colors(shape: Triple, wraps: Triple) -> bool:
    """Tell whether the sites of even coordinate sum have odd neighbours only: no periodic axis is odd."""
    return not any(wrap and size % 2 for size, wrap in zip(shape, wraps, strict=True))


def n_directions(shape: Triple) -> int:
    """Return in how many directions a site of a board looks for neighbours."""
    return 6 if shape[0] > 1 else 4


def toward_neighbours(couplings: Sequence[Floats], shape: Triple, wraps: Triple) -> Iterator[Floats]:
    """Yield the couplings of all sites by direction: before and after along the last axis, then the others.

    Sites are in the model's order; the coupling is zero where there is no neighbour.

    Examples
    --------
    >>> before, after, *_ = toward_neighbours([np.ones(1), np.ones(1), np.array([5.0, 6.0, 7.0])],
    ...                                       (1, 1, 3), (0, 0, 0))
    >>> before.tolist(), after.tolist()
    ([[[0.0, 5.0, 6.0]]], [[[5.0, 6.0, 0.0]]])
    """
    for axis in range(2, 2 - n_directions(shape) // 2, -1):
        after = np.broadcast_to(couplings[axis], math.prod(shape)).reshape(shape).copy()
        if not wraps[axis]:
            np.moveaxis(after, axis, 0)[-1] = 0.0  # nobody follows the last layer
        yield np.roll(after, 1, axis)
        yield after
