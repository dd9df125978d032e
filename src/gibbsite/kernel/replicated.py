"""Gibbs sampling of many chains of one binary model, a site of all chains at a time.

The chains stand side by side in memory, so the model is read once for all of them and every loop over chains
compiles to vector instructions. Each chain finds the same random numbers, and adds up the same log-odds in
the same order, as it would alone: its states are those of :mod:`gibbsite.kernel.colored`, bit by bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, called, implement
from gibbsite._random import BLOCK, LANES, Words, chain_key, philox
from gibbsite.graph.colored import CERTAIN, ColoredGraph
from gibbsite.kernel._local import log_potential
from gibbsite.kernel.base import Team, sums_up, walk
from gibbsite.kernel.gibbs import GibbsParameters
from gibbsite.kernel.heatbath import settle

_U = np.uintp
_U8, _U32, _U64 = np.uint8, np.uint32, np.uint64
F = np.float32
_LOW, _HIGH = _U64(0xFFFFFFFF), _U64(32)
_TO_UNIT = 1.0 / CERTAIN


class ReplicatedGraph(NamedTuple):
    """A colored graph for several chains; entry ``p * chains + c`` of a state is position p of chain c."""

    colored: ColoredGraph
    chains: int


class ReplicaMemory(NamedTuple):
    """The keys of the chains, and room for four random words, log-odds and table places of each."""

    key_0: NDArray[np.uint32]
    key_1: NDArray[np.uint32]
    words: NDArray[np.uint32]
    odds: NDArray[np.float32]
    place: NDArray[np.uint8]


def replica_memory(streams: list[NDArray[np.uint64]]) -> ReplicaMemory:
    """Allocate the memory of chains with the given generator words."""
    keys = np.stack([chain_key(words) for words in streams], axis=1)
    r = len(streams)
    return ReplicaMemory(
        keys[0].copy(),
        keys[1].copy(),
        np.zeros((4, r), np.uint32),
        np.zeros(r, np.float32),
        np.zeros(r, np.uint8),
    )


@implement(log_potential, ReplicatedGraph)
def _unknown(graph: ReplicatedGraph, x: NDArray[np.int8]) -> float:
    return np.nan  # there is not one state but many; runs that record energies take another form


@implement(sums_up, ReplicatedGraph)
def _adds(graph: ReplicatedGraph) -> bool:
    return True


@implement(walk, GibbsParameters, ReplicatedGraph)
def _walk_replicas(
    kernel: GibbsParameters,
    graph: ReplicatedGraph,
    schedule: Any,
    memory: ReplicaMemory,
    x: NDArray[np.int8],
    order: NDArray[np.int32],
    where: Integer,
    stop: Integer,
    turn: Integer,
    rng: Words,
    cond: NDArray[np.float64],
    keep: bool,
    team: Team,
) -> Words:
    colored = graph.colored
    for c in range(colored.color_start.size - 1):
        low, high = max(where, _U(colored.color_start[c])), min(stop, _U(colored.color_start[c + 1]))
        if low < high:
            for block in range(low // _U(BLOCK), (high + _U(BLOCK - 1)) // _U(BLOCK)):
                base = block * _U(BLOCK)
                for lane in range(min(_U(LANES), high - base)):
                    # four positions share a counter; sites of a color may come in any order
                    _draw_words(memory, turn, block * _U(LANES) + lane)
                    for w in range(_U(4)):
                        p = base + w * _U(LANES) + lane
                        if low <= p < high:
                            _update(
                                colored,
                                _U(graph.chains),
                                _class_of(colored, c, p),
                                p,
                                x,
                                memory,
                                w,
                                cond,
                                keep,
                            )
    return rng


@called
def _draw_words(memory: ReplicaMemory, turn: Integer, counter: Integer) -> None:
    """Write the four words of a counter for every chain."""
    at, sweep = _U64(counter), _U64(turn)
    a, b, c, d = _U32(at & _LOW), _U32(at >> _HIGH), _U32(sweep & _LOW), _U32(sweep >> _HIGH)
    one, two, three, four = memory.words[0], memory.words[1], memory.words[2], memory.words[3]
    key_0, key_1 = memory.key_0, memory.key_1
    for r in range(_U(key_0.size)):
        one[r], two[r], three[r], four[r] = philox(a, b, c, d, key_0[r], key_1[r])


@called
def _class_of(colored: ColoredGraph, c: Integer, p: Integer) -> Integer:
    """Return the class of a position of a color."""
    k = colored.color_class[c]
    while p >= _U(colored.first[k + 1]):
        k += 1
    return k


@called
def _update(
    graph: ColoredGraph,
    chains: Integer,
    k: Integer,
    p: Integer,
    x: NDArray[np.int8],
    memory: ReplicaMemory,
    w: Integer,
    sums: NDArray[np.float64],
    keep: bool,
) -> None:
    """Update one position of class k in all chains."""
    size, inside = _U(graph.first[k + 1] - graph.first[k]), p - _U(graph.first[k])
    degree, edge = _U(graph.degree[k]), _U(graph.edge[k]) + inside
    here, words = p * chains, memory.words[w]
    if graph.table[k] >= 0:
        place = memory.place
        for r in range(chains):
            place[r] = _U8(0)
        for q in range(degree):
            there = _U(graph.neighbour[edge + q * size]) * chains
            for r in range(chains):
                place[r] |= _U8(x[there + r]) << _U8(q)
        table = _U(graph.table[k]) + (inside << degree)
        for r in range(chains):
            x[here + r] = (words[r] >> _U32(1)) < graph.threshold[table + _U(place[r])]
        if keep:
            for r in range(chains):
                sums[here + r] += graph.threshold[table + _U(place[r])] * _TO_UNIT
    else:
        odds = memory.odds
        for r in range(chains):
            odds[r] = graph.field[p]
        for q in range(degree):
            e = edge + q * size
            there, weight = _U(graph.neighbour[e]) * chains, graph.coupling[e]
            for r in range(chains):
                odds[r] += weight * F(x[there + r])
        settle(odds, words, _U(0), x, here, chains, sums, keep)
