"""Herded Gibbs color by color: the states of a site's neighbours select one of its weights.

Sites of a color do not look at each other, and there is no chance: threads that share a color give the same
answer as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.intrinsic import wait_for_all
from gibbsite._compile.jit import Integer, called, implement, inlined
from gibbsite._random.generators import BLOCK, Words
from gibbsite.graph.layouts.colored import ColoredGraph
from gibbsite.kernel.at_once.colored import share
from gibbsite.kernel.base import Team, visit
from gibbsite.kernel.herded.herded import arranged_weights
from gibbsite.kernel.herded.herding import herd_entry
from gibbsite.kernel.herded.step import HerdedParameters

_U, _U64 = np.uintp, np.uint64
F = np.float32
_LOW, _TO_UNIT = _U64(0xFFFFFFFF), F(2.0**-32)


class SelectedMemory(NamedTuple):
    """The weights of a chain with their probabilities, one for every threshold of the graph."""

    entry: NDArray[np.uint64]


@implement(arranged_weights, ColoredGraph)
def _selected_memory(
    arrays: ColoredGraph, first: Callable[..., NDArray[np.uint32]], team: int
) -> SelectedMemory:
    entry = first(arrays.threshold.size).astype(np.uint64)
    entry <<= _U64(32)
    entry |= np.maximum(arrays.threshold, 1)
    return SelectedMemory(entry)


@implement(visit, HerdedParameters, ColoredGraph)
def _walk_selected(
    parameters: HerdedParameters,
    arrays: ColoredGraph,
    schedule: Any,
    memory: SelectedMemory,
    x: NDArray[np.int8],
    order: NDArray[np.int32],
    where: Integer,
    stop: Integer,
    turn: Integer,
    rng: Words,
    cond: NDArray[np.float32],
    keep: bool,
    team: Team,
) -> Words:
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
    arrays: ColoredGraph,
    k: Integer,
    x: NDArray[np.int8],
    u: Integer,
    v: Integer,
    entry: NDArray[np.uint64],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    """Update positions u to v of a class."""
    size, inside = _U(arrays.first[k + 1] - arrays.first[k]), u - _U(arrays.first[k])
    degree, edge = _U(arrays.degree[k]), _U(arrays.edge[k]) + inside
    table = _U(arrays.table[k]) + (inside << degree)
    neighbour = arrays.neighbour
    if degree == _U(4):  # the usual case, written out for speed
        for i in range(v - u):
            e = edge + i
            place = table + (i << _U(4)) + _U(x[neighbour[e]]) + (_U(x[neighbour[e + size]]) << _U(1))
            place += _U(x[neighbour[e + _U(2) * size]]) << _U(2)
            place += _U(x[neighbour[e + _U(3) * size]]) << _U(3)
            _herd_place(x, u + i, entry, place, sums, keep)
    else:
        for i in range(v - u):
            place = table + (i << degree)
            for q in range(degree):
                place += _U(x[neighbour[edge + i + q * size]]) << q
            _herd_place(x, u + i, entry, place, sums, keep)


@inlined
def _herd_place(
    x: NDArray[np.int8],
    p: Integer,
    entry: NDArray[np.uint64],
    place: Integer,
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    own: Any = entry[place]
    entry[place], up = herd_entry(own)
    x[p] = up
    if keep:
        sums[p] += F(own & _LOW) * _TO_UNIT
