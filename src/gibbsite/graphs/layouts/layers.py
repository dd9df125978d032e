"""Binary graphs of two layers, each site coupled to most of the other layer: restricted Boltzmann machines.

The sites of a layer depend on the other layer alone, so their log-odds in many chains are a product of two
matrices, couplings and states. The product is in 32-bit floats. How far it can be from the sum in 64-bit
floats is bounded beforehand, for each site, and kept as a margin: draws that a change within the margin could
turn are made again from the couplings of the graph itself (:mod:`gibbsite.kernels.batched.layers`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Floats32, Ints, Ints32, Words32
from gibbsite._numba.jit import compiled, interpreted
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.layouts.site_order import PackedModel, Permutation

# Sites of a layer whose log-odds are computed together.
TILE = 8
# Products that are added up from zero before they are added to the log-odds: errors grow with the number of
# additions a product takes part in.
PIECE = 64
# A layer has at least so many sites, and such a share of all pairs between the layers is coupled: otherwise
# it takes longer to multiply by zeros than to look neighbours up.
LEAST_LAYER = 16
LEAST_SHARE = 0.3
# Largest error of log-odds; beyond it, too many draws would have to be made again.
MOST_ERROR = 0.1
# Relative error of 1 + exp|y| and of its product with a random number, in 32-bit floats.
DRAW_ERROR = 1e-5


class LayeredGraph(NamedTuple):
    """Two layers; ``start[l]`` to ``start[l + 1]`` are the positions of layer l.

    The coupling of the u-th site of the t-th tile of layer l to input k, the k-th site of the other layer, is
    ``weight[tile_start[l] + (t * inputs + k) * TILE + u]``; there are zeros for the sites that the last tile
    lacks. A draw whose random number times ``1 + exp|y|`` is within ``margin`` of 2 is made again from
    ``rows``, the graph in the model's order; ``site`` and ``position`` take there and back. Entry
    ``p * chains + c`` of a state is position p of chain c.
    """

    start: Ints
    tile_start: Ints
    weight: Floats32
    field: Floats32
    margin: Floats32
    rows: IsingGraph
    site: Ints32
    position: Ints32
    chains: int


def pack_layers(graph: Graph, least_layer: int = LEAST_LAYER) -> PackedModel | None:
    """Lay a binary graph out in two layers; None if there are not two, or most pairs are not coupled.

    ``least_layer`` is the fewest sites of a layer that is worth while.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.rbm(np.ones((20, 30))))
    >>> packed = pack_layers(graph)
    >>> packed.arrays.start.tolist(), packed.longest
    ([0, 20, 50], 30)
    >>> pack_layers(gs.graphs.compile_graph(gs.ising_grid((20, 20)))) is None
    True
    """
    rows = graph.arrays
    if not isinstance(rows, IsingGraph) or not _may_be_dense(graph.n_sites, rows.neighbour.size, least_layer):
        return None
    color = color_sites(graph)
    sizes = np.bincount(color, minlength=2)
    pairs = rows.neighbour.size // 2
    if sizes.size > 2 or sizes.min() < least_layer or pairs < LEAST_SHARE * sizes[0] * sizes[1]:
        return None
    order = np.argsort(color, kind="stable").astype(np.int32)
    position = np.empty_like(order)
    position[order] = np.arange(order.size, dtype=np.int32)
    weights, reach = np.zeros((sizes[0], sizes[1])), np.zeros(order.size)
    with interpreted(rows.neighbour.size):
        _add_couplings(rows.start, rows.neighbour, rows.coupling, position, weights, reach)
    margin = _margins(np.abs(rows.field) + reach, sizes[1 - color])
    if margin is None:
        return None
    tiles = [_tiles(weights), _tiles(weights.T)]
    arrays = LayeredGraph(
        start=np.array([0, sizes[0], order.size], np.int64),
        tile_start=np.array([0, tiles[0].size], np.int64),
        weight=np.concatenate(tiles),
        field=rows.field[order].astype(np.float32),
        margin=margin[order],
        rows=rows,
        site=order,
        position=position,
        chains=1,
    )
    return PackedModel(arrays, Permutation(order), int(sizes.max()), graph.log_offset)


def _may_be_dense(sites: int, entries: int, least: int) -> bool:
    """Tell from the number of stored couplings, two for each pair, whether there may be two dense layers."""
    return sites >= 2 * least > 0 and entries >= 2 * LEAST_SHARE * least * (sites - least)


@compiled
def _add_couplings(
    start: Words32, neighbour: Words32, coupling: Floats, position: Ints32, weights: Floats, reach: Floats
) -> None:
    """Add up the couplings of the first layer to the second one, and the absolute ones of every site."""
    size = weights.shape[0]
    for i in range(reach.size):
        at = position[i]
        for k in range(start[i], start[i + 1]):
            reach[i] += abs(coupling[k])
            if at < size:
                weights[at, position[neighbour[k]] - size] += coupling[k]


def _tiles(weights: Floats) -> Floats32:
    """Return couplings (sites, inputs) tile by tile, the sites of a tile side by side."""
    sites, inputs = weights.shape
    count = -(-sites // TILE)
    padded = np.zeros((count * TILE, inputs), np.float32)
    padded[:sites] = weights
    return np.ascontiguousarray(padded.reshape(count, TILE, inputs).transpose(0, 2, 1)).ravel()


def _margins(reach: Floats, inputs: Ints) -> Floats32 | None:
    """Bound what rounding can change in the draw of each site; None where it is too much.

    ``reach`` bounds the log-odds of each site: the sum of its field and couplings, all absolute. A coupling
    is rounded once and takes part in at most PIECE additions of its piece and one for every piece:
    so often the sum of all absolute values, times half a unit of the last place, bounds the error of the
    log-odds (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
    """
    with np.errstate(over="ignore"):
        roundings = PIECE + -(-inputs // PIECE) + 2
        error = 1.001 * roundings * 2.0**-24 * reach
    if not (error <= MOST_ERROR).all():
        return None
    relative = np.expm1(error) + DRAW_ERROR
    margin: Floats32 = (2.001 * relative / (1.0 - relative)).astype(np.float32)
    return margin
