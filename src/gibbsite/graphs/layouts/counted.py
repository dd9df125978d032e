"""Lattices of one coupling, laid out like a checkerboard: conditionals depend on a number of neighbours.

With c neighbours in state 1 the log-odds of a site are ``base + coupling * c``. The probabilities for every c
are kept as integers, in units of 2^-32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Words32
from gibbsite._numba.jit import compiled
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import LatticeGraph, Triple
from gibbsite.graphs.layouts.checkered import Checkerboard, n_directions, pack_two_colors, takes_two_colors
from gibbsite.graphs.layouts.site_order import PackedModel, Parity

_SCALE = 2.0**32
# Entries between the planes of two numbers of neighbours: planes a power of two apart compete for the cache.
APART = 80
# Log-odds beyond this are the same within the resolution of the shares.
_MOST = 300.0


class CountedUniform(NamedTuple):
    """One field for all sites; ``share[d, c]`` belongs to sites with d neighbours."""

    board: Checkerboard
    coupling: float
    field: float
    share: Words32


class CountedPlanes(NamedTuple):
    """A field of its own for each site: ``base`` in checkerboard order, ``share[c]`` in the same."""

    board: Checkerboard
    coupling: float
    base: Floats
    share: Words32


def counts_suffice(g: LatticeGraph) -> bool:
    """Tell whether the conditionals of a lattice depend on how many neighbours are in state 1.

    Not if axes have different couplings, or around a ring of two, where a neighbour counts twice.
    """
    axes = [(float(w[0]), size, wrap) for w, size, wrap in zip(g[10:13], g[0:3], g[3:6], strict=True)]
    used = {w for w, size, _ in axes if size > 1}
    doubled = any(wrap and size == 2 for _, size, wrap in axes)
    return len(used) <= 1 and not (g.step_0 or g.step_1 or g.step_2) and not doubled


def pack_counted(graph: Graph) -> PackedModel | None:
    """Lay a lattice of one coupling out by color; None for any other graph.

    Examples
    --------
    >>> import gibbsite as gs
    >>> packed = pack_counted(gs.graphs.compile_graph(gs.ising_grid((4, 4), coupling=0.25)))
    >>> (packed.arrays.share[4] / 2.0**32).round(3).tolist()
    [0.119, 0.269, 0.5, 0.731, 0.881]
    """
    g = graph.arrays
    if not isinstance(g, LatticeGraph) or not counts_suffice(g):
        return None
    shape, wraps = (g.size_0, g.size_1, g.size_2), (g.wrap_0, g.wrap_1, g.wrap_2)
    if not takes_two_colors(shape, wraps):
        return None
    order = Parity(shape)
    board = Checkerboard(*shape, *wraps, order.starts())
    coupling = next((4.0 * float(w[0]) for w, size in zip(g[10:13], shape, strict=True) if size > 1), 0.0)
    most = n_directions(shape)
    arrays: CountedUniform | CountedPlanes
    if g.step_field:
        base = order.pack((2.0 * g.field.reshape(shape) - 0.5 * coupling * _degrees(shape, wraps)).ravel())
        share = np.empty((most + 1, graph.n_sites + APART), np.uint32)
        _fill_shares(share, base, coupling)
        arrays = CountedPlanes(board, coupling, base, share)
    else:
        field = 2.0 * float(g.field[0])
        share = np.empty((most + 1, most + 1), np.uint32)
        _fill_shares(share.T, field - 0.5 * coupling * np.arange(most + 1.0), coupling)
        arrays = CountedUniform(board, coupling, field, share)
    return pack_two_colors(graph, arrays, order)


def _degrees(shape: Triple, wraps: Triple) -> Floats:
    """Return the number of neighbours of every site of a lattice, or an array that broadcasts to it.

    Examples
    --------
    >>> _degrees((1, 2, 3), (0, 0, 0)).tolist()
    [[[2.0, 3.0, 2.0], [2.0, 3.0, 2.0]]]
    """
    degree = np.zeros((1, 1, 1))
    for axis, (size, wrap) in enumerate(zip(shape, wraps, strict=True)):
        if size > 1:
            along = np.full(size, 2.0)
            if not wrap:
                along[[0, -1]] = 1.0
            degree = degree + np.expand_dims(along, tuple({0, 1, 2} - {axis}))
    return degree


@compiled
def _fill_shares(share: Words32, base: Floats, coupling: float) -> None:
    """Write the probabilities of state 1 for every number of neighbours; none is ever zero or one.

    They are 1 / (1 + exp(-base) exp(-coupling)^c): one exponential per site.
    """
    odds = np.empty(base.size)
    for p in range(base.size):
        odds[p] = math.exp(min(max(-base[p], -_MOST), _MOST))
    factor = math.exp(min(max(-coupling, -_MOST), _MOST))
    for c in range(share.shape[0]):
        for p in range(base.size):
            part = np.rint(_SCALE / (1.0 + odds[p]))
            share[c, p] = np.uint32(np.int64(min(max(part, 1.0), _SCALE - 1.0)))
            odds[p] *= factor
