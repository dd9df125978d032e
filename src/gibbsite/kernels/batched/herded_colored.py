"""Herded Gibbs color by color: the states of a site's neighbours select one of its weights.

Sites of a color do not depend on each other, and no random numbers are used, so the result does not depend on the
number of threads that share a color.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats32, Ints8, Words64
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.random.generators import BLOCK, Words
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.rows import row_lengths
from gibbsite.kernels.base import Kernel, Span
from gibbsite.kernels.batched.base import BatchedUpdate, PackedModel, Streams, register_batched
from gibbsite.kernels.batched.colored import ColoredGraph, bits_of_all, bits_of_four, find_columns, pack_columns, share
from gibbsite.kernels.herded.herded import HerdedGibbs
from gibbsite.kernels.herded.herding import HerdedParameters, herd_entry

if TYPE_CHECKING:
    from gibbsite.models import Model

_U, _U64 = np.uintp, np.uint64
F = np.float32
_LOW, _TO_UNIT = _U64(0xFFFFFFFF), F(2.0**-32)
_MOST_BITS = 12  # largest degree for which a table of all configurations of neighbours is worth its memory


class SelectedMemory(NamedTuple):
    """The weights of a chain and their probabilities, an entry for every threshold of the graph."""

    entry: Words64


def _move_selected(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Herd positions color by color."""
    where, stop, team = span.where, span.stop, span.team
    for c in range(arrays.color_start.size - 1):
        start, end = _U(arrays.color_start[c]), _U(arrays.color_start[c + 1])
        low, high = max(where, start), min(stop, end)
        if low < high:
            begin, done = share(low - start, high - start, BLOCK, team)
            a, b = max(low, start + begin * _U(BLOCK)), min(high, start + done * _U(BLOCK))
            for k in range(arrays.color_class[c], arrays.color_class[c + 1]):
                u, v = max(a, _U(arrays.first[k])), min(b, _U(arrays.first[k + 1]))
                if u < v:
                    _herd_class(arrays, k, x, u, v, memory.entry, cond, keep)
            if team.size > 1:
                wait_for_all(team.gate, team.size)
    return rng


@called
def _herd_class(
    arrays: ColoredGraph, k: Integer, x: Ints8, u: Integer, v: Integer, entry: Words64, sums: Floats32, keep: bool
) -> None:
    """Update positions u to v of a class."""
    size, degree, edge, table = find_columns(arrays, k, u)
    neighbour = arrays.neighbour
    if degree == _U(4):
        for i in range(v - u):
            place = table + (i << _U(4)) + bits_of_four(x, neighbour, edge + i, size)
            _herd_place(x, u + i, entry, place, sums, keep)
    else:
        for i in range(v - u):
            place = table + (i << degree) + bits_of_all(x, neighbour, edge + i, size, degree)
            _herd_place(x, u + i, entry, place, sums, keep)


@inlined
def _herd_place(x: Ints8, p: Integer, entry: Words64, place: Integer, sums: Floats32, keep: bool) -> None:
    own: Any = entry[place]
    entry[place], up = herd_entry(own)
    x[p] = up
    if keep:
        sums[p] += F(own & _LOW) * _TO_UNIT


@register_batched(kernel="HerdedGibbs", kinds=("binary",))
class HerdedColors(BatchedUpdate):
    """Herding on binary models, color by color, with states of neighbours as keys."""

    name, form, rank = "herded colors", "arranged", 20
    parameters = HerdedParameters
    layouts = (ColoredGraph,)
    move = staticmethod(_move_selected)
    divisible = True

    def prepare(self, kernel: Kernel, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a binary model of small degree out, with a threshold for every configuration of neighbours."""
        if not isinstance(kernel, HerdedGibbs) or kernel.keys != "blanket" or not kernel.shareable(graph):
            return None
        most = int(row_lengths(kernel.keys_of(graph).others()[0]).max(initial=0))
        return pack_columns(model, graph, most) if most <= _MOST_BITS else None

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> SelectedMemory:
        """Allocate the weights of a chain, with the probabilities of their configurations."""
        assert isinstance(kernel, HerdedGibbs)
        (stream,), thresholds = streams, packed.arrays.threshold
        entry = kernel.first_weights(stream, thresholds.size).astype(np.uint64)
        entry <<= _U64(32)
        entry |= np.maximum(thresholds, 1)
        return SelectedMemory(entry)

    def carried(self, packed: PackedModel, memory: Any, segment: int, low: int, high: int) -> Array:
        """Return the weights of some positions of a class."""
        arrays = packed.arrays
        first, degree = int(arrays.first[segment]), int(arrays.degree[segment])
        begin, end = (int(arrays.table[segment]) + ((p - first) << degree) for p in (low, high))
        found: Words64 = memory.entry[begin:end]
        return found
