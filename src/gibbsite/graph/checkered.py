"""Lattices laid out like the two colors of a checkerboard, for updates of whole rows at once.

Even sites stand before odd ones, each color row by row. In this order the neighbours of a stretch of a row
are stretches as well: no neighbour is ever looked up. Rows run along the last axis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite.graph.arrangement import Parity
from gibbsite.graph.colored import MOST_ODDS
from gibbsite.graph.kinds import LatticeGraph
from gibbsite.graph.lower import Graph

Floats = NDArray[np.float32]


class Board(NamedTuple):
    """The geometry: sizes, periodic or not, and where the rows of both colors begin (2, rows + 1)."""

    size_0: int
    size_1: int
    size_2: int
    wrap_0: int
    wrap_1: int
    wrap_2: int
    start: NDArray[np.int64]


class UniformBoard(NamedTuple):
    """One coupling per axis and one field for all sites; log-odds ``field + sum coupling (x - 1/2)``."""

    board: Board
    coupling_0: float
    coupling_1: float
    coupling_2: float
    field: float


class PlaneBoard(NamedTuple):
    """A field and couplings of its own for each site: log-odds ``field + sum of coupling * x``.

    Row d of ``coupling`` belongs to one direction: before and after along the last axis, then the middle and
    the first axis; zero where there is no neighbour. Sites are in this order, not the model's.
    """

    board: Board
    coupling: Floats
    field: Floats


def checker_graph(graph: Graph) -> tuple[UniformBoard | PlaneBoard, Parity] | None:
    """Lay a lattice out by color; None if two colors do not suffice or couplings are too large.

    Examples
    --------
    >>> import gibbsite as gs
    >>> arrays, there = checker_graph(gs.compile_graph(gs.ising_grid((4, 4), coupling=0.25, field=1.0)))
    >>> arrays.coupling_2, arrays.field, there.shape
    (1.0, 2.0, (1, 4, 4))
    >>> checker_graph(gs.compile_graph(gs.ising_grid((3, 3), coupling=0.25, periodic=True))) is None
    True
    """
    g = graph.arrays
    if not isinstance(g, LatticeGraph):
        return None
    shape, wraps = (g.size_0, g.size_1, g.size_2), (g.wrap_0, g.wrap_1, g.wrap_2)
    if any(wrap and size % 2 for size, wrap in zip(shape, wraps, strict=True)):
        return None
    couplings, steps = (g.coupling_0, g.coupling_1, g.coupling_2), (g.step_0, g.step_1, g.step_2)
    reach = 2 * np.abs(g.field).max() + sum(4 * np.abs(w).max() for w in couplings)
    if not reach <= MOST_ODDS:
        return None
    there = Parity(shape)
    board = Board(*shape, *wraps, there.starts())
    if not any(steps) and not g.step_field:
        w0, w1, w2 = (4.0 * float(w[0]) for w in couplings)
        return UniformBoard(board, w0, w1, w2, 2.0 * float(g.field[0])), there
    axes = 3 if shape[0] > 1 else 2
    planes = np.zeros((2 * axes, graph.n_sites), np.float32)
    field = np.broadcast_to(2.0 * g.field, graph.n_sites).reshape(shape).copy()
    for d in range(axes):
        axis = 2 - d
        weight = np.broadcast_to(4.0 * couplings[axis], graph.n_sites).reshape(shape).copy()
        if not wraps[axis]:
            np.moveaxis(weight, axis, 0)[-1] = 0.0  # nobody follows the last layer
        before = np.roll(weight, 1, axis)
        field -= 0.5 * (before + weight)
        planes[2 * d], planes[2 * d + 1] = there.pack(before.ravel()), there.pack(weight.ravel())
    return PlaneBoard(board, planes, there.pack(field.ravel()).astype(np.float32)), there
