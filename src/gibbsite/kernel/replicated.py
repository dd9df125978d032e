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
from gibbsite._random import BLOCK, BYTES, LANES, WORDS, Words, chain_key, philox
from gibbsite.graph.colored import SCALE, ColoredGraph
from gibbsite.kernel._local import log_potential
from gibbsite.kernel.base import Team, sums_up, walk
from gibbsite.kernel.colored import UNIT, passes
from gibbsite.kernel.gibbs import GibbsParameters
from gibbsite.kernel.heatbath import settle

_U = np.uintp
_U8, _U32, _U64 = np.uint8, np.uint32, np.uint64
F = np.float32
_TO_UNIT = 1.0 / SCALE
_LOW, _HIGH = _U64(0xFFFFFFFF), _U64(32)


class ReplicatedGraph(NamedTuple):
    """A colored graph for several chains; entry ``p * chains + c`` of a state is position p of chain c."""

    colored: ColoredGraph
    chains: int


class ReplicaMemory(NamedTuple):
    """The keys of the chains, and room for four random words, log-odds, a draw and its limit of each."""

    key_0: NDArray[np.uint32]
    key_1: NDArray[np.uint32]
    words: NDArray[np.uint32]
    odds: NDArray[np.float32]
    draw: NDArray[np.uint8]
    limit: NDArray[np.uint8]


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
    colored, chains = graph.colored, _U(graph.chains)
    for c in range(colored.color_start.size - 1):
        # classes with thresholds come first; sites of a color may come in any order
        split = _first_without_table(colored, c)
        low, high = max(where, _U(colored.color_start[c])), min(stop, split)
        for unit in range(low // _U(UNIT), (max(low, high) + _U(UNIT - 1)) // _U(UNIT)):
            base = unit * _U(UNIT)
            for lane in range(min(_U(LANES), (high - base + _U(3)) // _U(4))):
                _draw_words(memory, turn, unit * _U(LANES) + lane, BYTES)
                for quarter in range(_U(16)):
                    p = base + (quarter >> _U(2)) * _U(BLOCK) + _U(4) * lane + (quarter & _U(3))
                    if low <= p < high:
                        _look_up(
                            colored, chains, _class_of(colored, c, p), p, x, memory, quarter, turn, cond, keep
                        )
        low, high = max(where, split), min(stop, _U(colored.color_start[c + 1]))
        for block in range(low // _U(BLOCK), (max(low, high) + _U(BLOCK - 1)) // _U(BLOCK)):
            base = block * _U(BLOCK)
            for lane in range(min(_U(LANES), high - base)):
                _draw_words(memory, turn, block * _U(LANES) + lane, WORDS)
                for w in range(_U(4)):
                    p = base + w * _U(LANES) + lane
                    if low <= p < high:
                        _add_up(colored, chains, _class_of(colored, c, p), p, x, memory)
                        settle(memory.odds, memory.words[w], _U(0), x, p * chains, chains, cond, keep)
    return rng


@called
def _first_without_table(colored: ColoredGraph, c: Integer) -> Integer:
    """Return the first position of a color that has no thresholds."""
    k = colored.color_class[c]
    while k < colored.color_class[c + 1] and colored.table[k] >= 0:
        k += 1
    return _U(colored.first[k])


@called
def _draw_words(memory: ReplicaMemory, turn: Integer, counter: Integer, branch: np.uint32) -> None:
    """Write the four words of a counter for every chain."""
    at, sweep = _U64(counter), _U64(turn)
    a, b, c, d = _U32(at & _LOW), _U32(at >> _HIGH) | branch, _U32(sweep & _LOW), _U32(sweep >> _HIGH)
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
def _look_up(
    graph: ColoredGraph,
    chains: Integer,
    k: Integer,
    p: Integer,
    x: NDArray[np.int8],
    memory: ReplicaMemory,
    quarter: Integer,
    turn: Integer,
    sums: NDArray[np.float64],
    keep: bool,
) -> None:
    """Update one position with thresholds in all chains, with one byte of their words."""
    size, inside = _U(graph.first[k + 1] - graph.first[k]), p - _U(graph.first[k])
    degree, edge = _U(graph.degree[k]), _U(graph.edge[k]) + inside
    table = _U(graph.table[k]) + (inside << degree)
    here = p * chains
    words, shift = memory.words[quarter >> _U(2)], _U32(8) * _U32(quarter & _U(3))
    draw, limit = memory.draw, memory.limit
    # a missing neighbour is read from anywhere: its bit selects between equal thresholds
    n0 = n1 = n2 = n3 = here
    if degree > _U(0):
        n0 = _U(graph.neighbour[edge]) * chains
    if degree > _U(1):
        n1 = _U(graph.neighbour[edge + size]) * chains
    if degree > _U(2):
        n2 = _U(graph.neighbour[edge + _U(2) * size]) * chains
    if degree > _U(3):
        n3 = _U(graph.neighbour[edge + _U(3) * size]) * chains
    for r in range(chains):
        draw[r] = _U8((words[r] >> shift) & _U32(255))
    _select(graph.upper, table, (_U(1) << degree) - _U(1), chains, x, n0, n1, n2, n3, limit)
    ties = _U8(0)
    for r in range(chains):
        x[here + r] = draw[r] < limit[r]
        ties |= _U8(draw[r] == limit[r])
    if ties or keep:
        for r in range(chains):
            if keep or draw[r] == limit[r]:
                place = (
                    _U(x[n0 + r])
                    + (_U(x[n1 + r]) << _U(1))
                    + (_U(x[n2 + r]) << _U(2))
                    + (_U(x[n3 + r]) << _U(3))
                )
                place = table + (place & ((_U(1) << degree) - _U(1)))
                if draw[r] == limit[r]:
                    x[here + r] = passes(graph, draw[r], place, memory.key_0[r], memory.key_1[r], turn, p)
                if keep:
                    sums[here + r] += graph.threshold[place] * _TO_UNIT


@called
def _select(
    upper: NDArray[np.uint8],
    table: Integer,
    mask: Integer,
    chains: Integer,
    x: NDArray[np.int8],
    n0: Integer,
    n1: Integer,
    n2: Integer,
    n3: Integer,
    limit: NDArray[np.uint8],
) -> None:
    """Write the threshold that four neighbours select, for all chains: a tree of choices between bytes."""
    t0, t1, t2, t3 = (
        upper[table],
        upper[table + (_U(1) & mask)],
        upper[table + (_U(2) & mask)],
        upper[table + (_U(3) & mask)],
    )
    t4, t5 = upper[table + (_U(4) & mask)], upper[table + (_U(5) & mask)]
    t6, t7 = upper[table + (_U(6) & mask)], upper[table + (_U(7) & mask)]
    t8, t9 = upper[table + (_U(8) & mask)], upper[table + (_U(9) & mask)]
    ta, tb = upper[table + (_U(10) & mask)], upper[table + (_U(11) & mask)]
    tc, td = upper[table + (_U(12) & mask)], upper[table + (_U(13) & mask)]
    te, tf = upper[table + (_U(14) & mask)], upper[table + (_U(15) & mask)]
    for r in range(chains):
        a, b, c, d = x[n0 + r] != 0, x[n1 + r] != 0, x[n2 + r] != 0, x[n3 + r] != 0
        low = (t3 if a else t2) if b else (t1 if a else t0)
        next_ = (t7 if a else t6) if b else (t5 if a else t4)
        high = (tb if a else ta) if b else (t9 if a else t8)
        top = (tf if a else te) if b else (td if a else tc)
        limit[r] = (top if c else high) if d else (next_ if c else low)


@called
def _add_up(
    graph: ColoredGraph, chains: Integer, k: Integer, p: Integer, x: NDArray[np.int8], memory: ReplicaMemory
) -> None:
    """Write the log-odds of one position in all chains."""
    size, inside = _U(graph.first[k + 1] - graph.first[k]), p - _U(graph.first[k])
    degree, edge = _U(graph.degree[k]), _U(graph.edge[k]) + inside
    odds = memory.odds
    for r in range(chains):
        odds[r] = graph.field[p]
    for q in range(degree):
        e = edge + q * size
        there, weight = _U(graph.neighbour[e]) * chains, graph.coupling[e]
        for r in range(chains):
            odds[r] += weight * F(x[there + r])
