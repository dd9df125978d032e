"""Gibbs sampling of many chains of a model of two dense layers, a layer at a time, by matrix products.

The layout is for binary graphs of two layers, each site coupled to most of the other layer: restricted
Boltzmann machines. The sites of a layer depend on the other layer alone, so their log-odds in many chains are
the product of couplings and states, in 32-bit floats. It is computed for one tile of sites at a time, which are
drawn before the next tile, so the product never leaves the nearest cache. The order of summation depends on the
model alone: the numbers of a chain depend neither on the other chains nor on the number of threads.

Draws do not depend on rounding. A random word gives a bit s and a number v in (0, 1); with u = v / 2 where s
is 0 and u = 1 - v / 2 where s is 1, a site takes state 1 if u < 1 / (1 + exp(-y)). That is, it takes its
more probable state unless s selects the other one and v (1 + exp|y|) < 2. Small errors of y matter only where
that product is close to 2. The margin of a site bounds the difference between the matrix product and the sum in
64-bit floats. Draws within the margin, a few in ten thousand, are made again with log-odds in 64-bit floats, added
up in the order of the plain kernel. So states have the conditionals of the model to the resolution of u, 2^-32,
for couplings of any size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Floats32, Integers, Ints, Ints8, Ints32, Words32
from gibbsite._numba.intrinsic import VECTOR
from gibbsite._numba.jit import DISABLED, Integer, called, implement, inlined, intrinsic_for
from gibbsite._numba.random.generators import WORDS, Words
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.rows import gather, row_lengths
from gibbsite.kernels.base import Kernel, Span
from gibbsite.kernels.batched.base import PackedModel, Permutation, Streams, register_batched
from gibbsite.kernels.batched.heatbath import MOST, HeatBath, add_chances, exponential, unit
from gibbsite.kernels.batched.replicated import chain_keys, draw_words

if TYPE_CHECKING:
    from gibbsite.models import Model

# Sites of a layer whose log-odds are computed together.
TILE = 8
# Products that are added up from zero before they are added to the log-odds: errors grow with the number of
# additions a product takes part in.
PIECE = 64
# Least number of sites of a layer, and least share of coupled pairs between the layers. Below that, multiplying by
# zeros takes longer than looking neighbours up.
LEAST_LAYER = 16
LEAST_SHARE = 0.3
# Largest error of log-odds; beyond it, too many draws would have to be made again.
MOST_ERROR = 0.1
# Relative error of 1 + exp|y| and of its product with a random number, in 32-bit floats.
DRAW_ERROR = 1e-5


class LayeredGraph(NamedTuple):
    """Two layers; ``start[l]`` to ``start[l + 1]`` are the positions of layer l.

    The coupling of the u-th site of the t-th tile of layer l to input k, the k-th site of the other layer, is
    ``weight[tile_start[l] + (t * inputs + k) * TILE + u]``; the last tile is padded with zeros. A draw whose random
    number times ``1 + exp|y|`` is within ``margin`` of 2 is made again from ``rows``, the graph in the model's order;
    ``site`` converts positions to this order and ``position`` converts them back. Entry ``p * chains + c`` of a state
    is position p of chain c.
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

    ``least_layer`` is the number of sites of the smallest layer for which the layout is faster.
    """
    rows = graph.arrays
    if not isinstance(rows, IsingGraph) or not _may_be_dense(graph.n_sites, rows.neighbour.size, least_layer):
        return None
    color = color_sites(graph)
    sizes = np.bincount(color, minlength=2)
    pairs = rows.neighbour.size // 2
    if sizes.size > 2 or sizes.min() < least_layer or pairs < LEAST_SHARE * sizes[0] * sizes[1]:
        return None
    known = graph.shared.get(_Structure)
    structure = known or graph.shared.put(_find_structure(rows, color))
    order, coupling = structure.order, np.asarray(rows.coupling)
    margin = _margins(np.abs(rows.field) + _row_sums(rows.start, np.abs(coupling)), sizes[1 - color])
    if margin is None:
        return None
    if structure.cell.size:  # the couplings of a pair with several factors are added up
        coupling = np.bincount(structure.cell, coupling)
    padded = np.append(coupling.astype(np.float32), np.float32(0.0))
    arrays = LayeredGraph(
        start=np.array([0, sizes[0], order.size], np.int64),
        tile_start=np.array([0, structure.second], np.int64),
        weight=padded[structure.slot] if known is None else gather(padded, structure.slot),
        field=rows.field[order].astype(np.float32),
        margin=margin[order],
        rows=rows,
        site=order,
        position=structure.position,
        chains=1,
    )
    return PackedModel(arrays, Permutation(order), int(sizes.max()), graph.log_offset)


def _may_be_dense(sites: int, entries: int, least: int) -> bool:
    """Whether the number of stored couplings, two for each pair, is large enough for two dense layers."""
    return sites >= 2 * least > 0 and entries >= 2 * LEAST_SHARE * least * (sites - least)


class _Structure(NamedTuple):
    """The part of a layout that is shared by all models that differ only in their weights.

    Weight t is that of stored coupling ``slot[t]``, or zero if there is no such coupling. Where a pair has several
    factors, ``cell`` numbers the entries of both matrices of couplings; ``slot`` then refers to the sums of the cells.
    The weights of the second layer begin at ``second``.
    """

    order: Ints32
    position: Ints32
    slot: Integers
    cell: Ints
    second: int


def _find_structure(rows: IsingGraph, color: Ints32) -> _Structure:
    """Return the places of the couplings of a graph of two layers among the weights."""
    order = np.argsort(color, kind="stable").astype(np.int32)
    position = np.empty_like(order)
    position[order] = np.arange(order.size, dtype=np.int32)
    first = order.size - int(np.count_nonzero(color))
    shape, total = (first, order.size - first), rows.neighbour.size
    at = np.repeat(position, row_lengths(rows.start)).astype(np.int64)
    other = position[rows.neighbour]
    cell = np.where(at < first, at * shape[1] + other - first, (first + other) * shape[1] + at - first)
    number = np.full((2, *shape), total)
    number.ravel()[cell] = np.arange(total)
    if np.count_nonzero(number < total) == total:
        cell = np.zeros(0, np.int64)
    else:
        total = int(cell.max()) + 1
        number = np.where(number < rows.neighbour.size, np.arange(number.size).reshape(number.shape), total)
    tiles = [_tiles(number[0], total), _tiles(number[1].T, total)]
    slot = np.concatenate(tiles).astype(np.min_scalar_type(total))
    return _Structure(order, position, slot, cell, tiles[0].size)


def _tiles(values: Ints, absent: int) -> Ints:
    """Return entries (sites, inputs) tile by tile, the sites of a tile side by side."""
    sites, inputs = values.shape
    count = -(-sites // TILE)
    padded = np.full((count * TILE, inputs), absent)
    padded[:sites] = values
    return padded.reshape(count, TILE, inputs).transpose(0, 2, 1).ravel()


def _row_sums(start: Words32, values: Floats) -> Floats:
    """Return the sum of each row; some rows may be empty, but not all."""
    sums: Floats = np.add.reduceat(values, np.minimum(start[:-1], values.size - 1))
    return np.where(start[1:] > start[:-1], sums, 0.0)


def _margins(reach: Floats, inputs: Ints) -> Floats32 | None:
    """Bound the effect of rounding on the draw of each site; return None if it is too large.

    ``reach`` bounds the log-odds of each site: the sum of the absolute values of its field and couplings. A coupling
    is rounded once and takes part in at most PIECE additions of its piece and one for every piece:
    that number, times the sum of all absolute values, times half a unit of the last place, bounds the error of the
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


_U, _U32 = np.uintp, np.uint32
F = np.float32
_ZERO, _ONE, _TWO = F(0.0), F(1.0), F(2.0)
_BIT = _U32(1)
# Three vectors of chains times half a tile of sites: as many sums as registers can hold.
_VECTORS = 3 * VECTOR
_MOST_EXPONENT = 700.0


class LayerRoom(NamedTuple):
    """Buffers for random words, the states of a layer as floats, and the log-odds of a tile."""

    words: Words32
    inputs: Floats32
    odds: Floats32

    @property
    def rebuildable(self) -> bool:
        """True: nothing is kept from one layer to the next, so checkpoints need not contain it."""
        return True


class LayerMemory(NamedTuple):
    """The keys of the chains, first halves before second ones, and buffers."""

    key: Words32
    room: LayerRoom


@implement(log_potential, LayeredGraph)
def _unknown(arrays: LayeredGraph, x: Ints8) -> float:
    return np.nan  # the states of many chains have no common energy; runs that record energies take another layout


def add_product(
    weight: Floats32,
    first: Any,
    x: Floats32,
    at: Any,
    chains: Any,
    count: Any,
    out: Floats32,
    to: Any,
    sites: int,
    width: int,
) -> None:
    """Add the contributions of some inputs to the log-odds of sites of a tile in ``width`` chains.

    Input k has the states ``x[at + k * chains]``, ... and the couplings ``weight[first + k * TILE]``, ...; ``out[to + u
    * chains]``, ... are the log-odds of site u. Contributions are added up from zero, input by input.
    """
    for u in range(sites):
        for c in range(width):
            total = _ZERO
            for k in range(count):
                total += weight[first + k * _U(TILE) + _U(u)] * x[at + k * chains + _U(c)]
            out[to + _U(u) * chains + _U(c)] += total


def _add_three(weight: Any, first: Any, x: Any, at: Any, chains: Any, count: Any, out: Any, to: Any) -> None:
    """Add up half a tile in three vectors of chains."""
    add_product(weight, first, x, at, chains, count, out, to, TILE // 2, _VECTORS)


def _add_one(weight: Any, first: Any, x: Any, at: Any, chains: Any, count: Any, out: Any, to: Any) -> None:
    """Add up a tile in one vector of chains."""
    add_product(weight, first, x, at, chains, count, out, to, TILE, VECTOR)


if not DISABLED:
    from gibbsite._numba.tiles import make_tile

    _three, _one = make_tile(TILE // 2, 3, TILE), make_tile(TILE, 1, TILE)

    @intrinsic_for(_add_three)
    def _choose_three(weight, first, x, at, chains, count, out, to):  # type: ignore[no-untyped-def]
        return lambda weight, first, x, at, chains, count, out, to: _three(
            weight, _U(first), x, _U(at), _U(chains), _U(count), out, _U(to)
        )

    @intrinsic_for(_add_one)
    def _choose_one(weight, first, x, at, chains, count, out, to):  # type: ignore[no-untyped-def]
        return lambda weight, first, x, at, chains, count, out, to: _one(
            weight, _U(first), x, _U(at), _U(chains), _U(count), out, _U(to)
        )


@called
def _add_up(arrays: LayeredGraph, first: Integer, base: Integer, inputs: Integer, room: LayerRoom) -> None:
    """Write the log-odds of the tile at position ``base``, whose couplings begin at ``first``."""
    chains, odds, x = _U(arrays.chains), room.odds, room.inputs
    for u in range(_U(TILE)):
        field = arrays.field[min(base + u, _U(arrays.field.size) - _U(1))]
        for c in range(chains):
            odds[u * chains + c] = field
    for k in range(_U(0), inputs, _U(PIECE)):
        count = min(_U(PIECE), inputs - k)
        weight, row = first + k * _U(TILE), k * chains
        at, half = _U(0), _U(TILE // 2)
        while at + _U(_VECTORS) <= chains:
            _add_three(arrays.weight, weight, x, row + at, chains, count, odds, at)
            _add_three(arrays.weight, weight + half, x, row + at, chains, count, odds, half * chains + at)
            at += _U(_VECTORS)
        while at < chains:
            _add_one(arrays.weight, weight, x, row + at, chains, count, odds, at)
            at += _U(VECTOR)


@called
def _draw(
    odds: Floats32,
    at: Integer,
    words: Words32,
    word_at: Integer,
    x: Ints8,
    first: Integer,
    chains: Integer,
    margin: Any,
) -> bool:
    """Draw a site in all chains; return whether rounding may have changed the draw in any of them.

    The log-odds are overwritten by ``1 + exp|y|``, negative where state 1 is the less probable one.
    """
    doubts = _U32(0)
    for r in range(chains):
        y, word = odds[at + r], words[word_at + r]
        inverse = _ONE + exponential(min(abs(y), MOST))
        up = y > _ZERO
        product = unit(word) * inverse
        x[first + r] = up != ((product < _TWO) & (((word & _BIT) != _U32(0)) == up))
        doubts |= _U32(abs(product - _TWO) <= margin)
        odds[at + r] = inverse if up else -inverse
    return bool(doubts != _U32(0))


@inlined
def _decide(word: np.uint32, y: float) -> bool:
    """Return the state of a site, given its word and its log-odds in 64-bit floats."""
    up = y > 0.0
    v = (np.int64(word >> _BIT) + 0.5) * 2.0**-31
    less = v * (1.0 + math.exp(min(abs(y), _MOST_EXPONENT))) < 2.0
    return bool(up != (less & (((word & _BIT) != _U32(0)) == up)))


@called
def _draw_again(
    arrays: LayeredGraph, p: Integer, odds: Floats32, at: Integer, words: Words32, word_at: Integer, x: Ints8
) -> None:
    """Draw position p once more, in the chains in which rounding may have changed it."""
    chains, rows = _U(arrays.chains), arrays.rows
    site = _U(arrays.site[p])
    for r in range(chains):
        word = words[word_at + r]
        if abs(unit(word) * abs(odds[at + r]) - _TWO) <= arrays.margin[p]:
            y: Any = rows.field[site]
            for k in range(_U(rows.start[site]), _U(rows.start[site + _U(1)])):
                there = _U(arrays.position[rows.neighbour[k]])
                y += rows.coupling[k] * x[there * chains + r]
            x[p * chains + r] = _decide(word, y)


def _move_layers(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Draw both layers in all chains, tile by tile."""
    where, stop = span.where, span.stop
    chains, room = _U(arrays.chains), memory.room
    for layer in range(2):
        start, end = _U(arrays.start[layer]), _U(arrays.start[layer + 1])
        other, inputs = _U(arrays.start[1 - layer]), _U(arrays.start[2 - layer] - arrays.start[1 - layer])
        low, high = max(where, start), min(stop, end)
        if low < high:
            for i in range(inputs * chains):
                room.inputs[i] = F(x[other * chains + i])
            for tile in range((low - start) // _U(TILE), (high - start + _U(TILE - 1)) // _U(TILE)):
                base = start + tile * _U(TILE)
                _add_up(arrays, _U(arrays.tile_start[layer]) + tile * inputs * _U(TILE), base, inputs, room)
                for u in range(_U(TILE)):
                    p, word_at = base + u, (u & _U(3)) * chains
                    if word_at == _U(0):
                        draw_words(room.words, memory.key, chains, span.turn, p, WORDS)
                    if low <= p < high:
                        _settle(arrays, p, u * chains, word_at, room, x, cond, keep)
    return rng


@inlined
def _settle(
    arrays: LayeredGraph,
    p: Integer,
    at: Integer,
    word_at: Integer,
    room: LayerRoom,
    x: Ints8,
    sums: Floats32,
    keep: bool,
) -> None:
    """Draw position p in all chains, and add its probabilities to the sums if ``keep`` is set."""
    chains, odds, words = _U(arrays.chains), room.odds, room.words
    if _draw(odds, at, words, word_at, x, p * chains, chains, arrays.margin[p]):
        _draw_again(arrays, p, odds, at, words, word_at, x)
    if keep:
        add_chances(odds, at, sums, p * chains, chains)


@register_batched(kernel="Gibbs", kinds=("ising",))
class Layers(HeatBath):
    """The heat bath on many chains of a binary model of two dense layers."""

    name, form, rank = "layers", "layered", -10
    lanes = VECTOR
    layouts = (LayeredGraph,)
    move = staticmethod(_move_layers)

    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a binary model out, if it has two layers and most pairs between them are coupled."""
        return pack_layers(graph)

    def arrays(self, packed: PackedModel, chains: int) -> LayeredGraph:
        """Return the graph for ``chains`` chains."""
        arrays: LayeredGraph = packed.arrays
        return arrays._replace(chains=chains)

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> LayerMemory:
        """Allocate the keys of all chains, and buffers for a layer and a tile of them."""
        chains = len(streams)
        room = LayerRoom(
            words=np.zeros(4 * chains, np.uint32),
            inputs=np.zeros(packed.longest * chains, np.float32),
            odds=np.zeros(TILE * chains, np.float32),
        )
        return LayerMemory(chain_keys(streams), room)
