"""Potts lattices laid out like a checkerboard: factors of equal neighbours instead of couplings.

The weight of a state is a product: of the site's own weight of that state, and of exp(coupling) for every
neighbour that is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Floats32
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.lattice import three_axes
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.layouts.checkered import (
    Checkerboard,
    n_directions,
    pack_two_colors,
    takes_two_colors,
    toward_neighbours,
)
from gibbsite.graphs.layouts.colored import MOST_ODDS
from gibbsite.graphs.layouts.site_order import PackedModel, Parity

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, LatticeFactors


class PottsWeights(NamedTuple):
    """Of single sites: state q has ``all[q]``, times ``own[q, p]`` at position p where that is not empty."""

    all: Floats
    own: Floats32


class UniformPotts(NamedTuple):
    """One factor per axis for neighbours in the same state."""

    board: Checkerboard
    factor_0: float
    factor_1: float
    factor_2: float
    weight: PottsWeights


class PlanePotts(NamedTuple):
    """Factors of its own for each site, by direction as in ``PlaneBoard``; 1 where there is no neighbour."""

    board: Checkerboard
    factor: Floats32
    weight: PottsWeights


def pack_potts_checkerboard(model: FactorGraph, graph: Graph) -> PackedModel | None:
    """Lay a Potts lattice out by color; None if it is none, needs a third color, or is too strongly coupled.

    Impossible states have weight zero, which is exact. All other products stay within exp(64) of each other,
    far inside the range of 32-bit floats.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.potts_grid((4, 6), 3, coupling=np.log(2.0), field=[0.0, -np.inf, 0.0])
    >>> packed = pack_potts_checkerboard(model, gs.graphs.compile_graph(model))
    >>> round(packed.arrays.factor_2, 9), packed.arrays.weight.all.tolist(), packed.order.shape
    (2.0, [1.0, 0.0, 1.0], (1, 4, 6))
    """
    g = graph.arrays
    lattice = _only_lattice(model) if isinstance(g, PottsGraph) else None
    if lattice is None:
        return None
    shape, wraps, couplings = three_axes(lattice)
    logs = g.log_unary.reshape(graph.n_sites, -1)
    spread = -np.min(logs, where=np.isfinite(logs), initial=0.0)  # the largest of each site is zero
    reach = spread + sum(2 * np.abs(w).max() for w in couplings)
    if not takes_two_colors(shape, wraps) or not reach <= MOST_ODDS:
        return None
    order = Parity(shape)
    board = Checkerboard(*shape, *wraps, order.starts())
    weight = _weights(logs, order)
    arrays: UniformPotts | PlanePotts
    if all(w.size == 1 for w in couplings):
        f0, f1, f2 = (float(np.exp(w[0])) for w in couplings)
        arrays = UniformPotts(board, f0, f1, f2, weight)
    else:
        factor = np.empty((n_directions(shape), graph.n_sites), np.float32)
        for d, coupling in enumerate(toward_neighbours(couplings, shape, wraps)):
            factor[d] = order.pack(np.exp(coupling).ravel())
        arrays = PlanePotts(board, factor, weight)
    return pack_two_colors(graph, arrays, order)


def _only_lattice(model: FactorGraph) -> LatticeFactors | None:
    """Return the lattice of agreements that holds all pairs of a model; None if there is no such thing."""
    from gibbsite.models import LatticeFactors

    pairs = [g for g in model.groups if isinstance(g, LatticeFactors) or (g.size and g.arity > 1)]
    if len(pairs) != 1 or not isinstance(pairs[0], LatticeFactors):
        return None
    lattice = pairs[0]
    return None if lattice.spin or len(lattice.shape) > 3 else lattice


def _weights(logs: Floats, order: Parity) -> PottsWeights:
    """Return the weights of single sites, given their logarithms by site and state."""
    n, states = logs.shape
    if (logs == logs[:1]).all():
        return PottsWeights(np.exp(logs[0]), np.zeros((states, 0), np.float32))
    own = np.empty((states, n), np.float32)
    for q in range(states):
        own[q] = order.pack(np.exp(logs[:, q]))
    return PottsWeights(np.ones(states), own)
