"""Gibbs sampling of many chains of one binary model, a site of all chains at a time.

The chains stand side by side in memory, so the model is read once for all of them and every loop over chains
compiles to vector instructions. Each chain finds the same random numbers, and adds up the same log-odds in
the same order, as it would alone: its states are those of :mod:`gibbsite.kernel.colored`, bit by bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, called, implement, inlined
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
    """The keys of the chains, and room for each of them.

    Four random words; log-odds; a random byte, its limit and the limit's place in the table; whether both are
    equal, and that for eight chains at a time.
    """

    key_0: NDArray[np.uint32]
    key_1: NDArray[np.uint32]
    words: NDArray[np.uint32]
    odds: NDArray[np.float32]
    draw: NDArray[np.uint8]
    limit: NDArray[np.uint8]
    place: NDArray[np.uint8]
    tie: NDArray[np.uint8]
    ties: NDArray[np.uint64]


def replica_memory(streams: list[NDArray[np.uint64]]) -> ReplicaMemory:
    """Allocate the memory of chains with the given generator words."""
    keys = np.stack([chain_key(words) for words in streams], axis=1)
    r = len(streams)
    ties = np.zeros(-(-r // 8), np.uint64)
    return ReplicaMemory(
        key_0=keys[0].copy(),
        key_1=keys[1].copy(),
        words=np.zeros((4, r), np.uint32),
        odds=np.zeros(r, np.float32),
        draw=np.zeros(r, np.uint8),
        limit=np.zeros(r, np.uint8),
        place=np.zeros(r, np.uint8),
        tie=ties.view(np.uint8),
        ties=ties,
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


@inlined
def _draw_words(memory: ReplicaMemory, turn: Integer, counter: Integer, branch: np.uint32) -> None:
    """Write the four words of a counter for every chain."""
    at, sweep = _U64(counter), _U64(turn)
    a, b, c, d = _U32(at & _LOW), _U32(at >> _HIGH) | branch, _U32(sweep & _LOW), _U32(sweep >> _HIGH)
    one, two, three, four = memory.words[0], memory.words[1], memory.words[2], memory.words[3]
    key_0, key_1 = memory.key_0, memory.key_1
    for r in range(_U(key_0.size)):
        one[r], two[r], three[r], four[r] = philox(a, b, c, d, key_0[r], key_1[r])


@inlined
def _class_of(colored: ColoredGraph, c: Integer, p: Integer) -> Integer:
    """Return the class of a position of a color."""
    k = colored.color_class[c]
    while p >= _U(colored.first[k + 1]):
        k += 1
    return k


@inlined
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
    _take_bytes(words, shift, chains, draw)
    _select(graph.upper, table, (_U(1) << degree) - _U(1), chains, x, n0, n1, n2, n3, limit)
    _compare(draw, limit, chains, x, here, memory.tie)
    few = (_U(1) << degree) - _U(1)
    if keep:
        _add_chances(graph.threshold, table, few, chains, x, n0, n1, n2, n3, memory.place, sums, here)
    some = _U64(0)
    for w in range(_U(memory.ties.size)):
        some |= memory.ties[w]
    if some:
        _break_ties(graph, table, few, chains, p, x, n0, n1, n2, n3, memory, turn)


@called
def _break_ties(
    graph: ColoredGraph,
    table: Integer,
    few: Integer,
    chains: Integer,
    p: Integer,
    x: NDArray[np.int8],
    n0: Integer,
    n1: Integer,
    n2: Integer,
    n3: Integer,
    memory: ReplicaMemory,
    turn: Integer,
) -> None:
    """Decide where one byte did not."""
    for w in range(_U(memory.ties.size)):
        if memory.ties[w]:
            for r in range(_U(8) * w, min(_U(8) * (w + _U(1)), chains)):
                if memory.tie[r]:
                    code = x[n0 + r] + 2 * x[n1 + r] + 4 * x[n2 + r] + 8 * x[n3 + r]
                    place = table + (_U(code) & few)
                    key_0, key_1 = memory.key_0[r], memory.key_1[r]
                    x[p * chains + r] = passes(graph, memory.draw[r], place, key_0, key_1, turn, p)


@inlined
def _take_bytes(
    words: NDArray[np.uint32], shift: np.uint32, chains: Integer, draw: NDArray[np.uint8]
) -> None:
    """Take one byte of each chain's word."""
    for r in range(chains):
        draw[r] = _U8((words[r] >> shift) & _U32(255))


@inlined
def _compare(
    draw: NDArray[np.uint8],
    limit: NDArray[np.uint8],
    chains: Integer,
    x: NDArray[np.int8],
    here: Integer,
    tie: NDArray[np.uint8],
) -> None:
    """Decide where a byte suffices, and mark where it does not."""
    for r in range(chains):
        x[here + r] = draw[r] < limit[r]
    for r in range(chains):
        tie[r] = draw[r] == limit[r]


@inlined
def _add_chances(
    threshold: NDArray[np.uint32],
    table: Integer,
    few: Integer,
    chains: Integer,
    x: NDArray[np.int8],
    n0: Integer,
    n1: Integer,
    n2: Integer,
    n3: Integer,
    place: NDArray[np.uint8],
    sums: NDArray[np.float64],
    here: Integer,
) -> None:
    """Add the probabilities of state 1 to the sums."""
    mask = _U8(few)
    for r in range(chains):
        low = _U8(x[n0 + r]) | _U8(_U8(x[n1 + r]) << _U8(1))
        high = _U8(_U8(x[n2 + r]) << _U8(2)) | _U8(_U8(x[n3 + r]) << _U8(3))
        place[r] = _U8((low | high) & mask)
    for r in range(chains):
        sums[here + r] += threshold[table + _U(place[r])] * _TO_UNIT


@inlined
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
    t0, d0 = _pair(upper, table, mask, _U(0))
    t2, d2 = _pair(upper, table, mask, _U(2))
    t4, d4 = _pair(upper, table, mask, _U(4))
    t6, d6 = _pair(upper, table, mask, _U(6))
    t8, d8 = _pair(upper, table, mask, _U(8))
    ta, da = _pair(upper, table, mask, _U(10))
    tc, dc = _pair(upper, table, mask, _U(12))
    te, de = _pair(upper, table, mask, _U(14))
    for r in range(chains):
        a, b = _U8(-x[n0 + r]), _U8(-x[n1 + r])  # all bits, or none
        c, d = _U8(-x[n2 + r]), _U8(-x[n3 + r])
        one = _choose(_U8(t0 ^ (d0 & a)), _U8(t2 ^ (d2 & a)), b)
        two = _choose(_U8(t4 ^ (d4 & a)), _U8(t6 ^ (d6 & a)), b)
        three = _choose(_U8(t8 ^ (d8 & a)), _U8(ta ^ (da & a)), b)
        four = _choose(_U8(tc ^ (dc & a)), _U8(te ^ (de & a)), b)
        limit[r] = _choose(_choose(one, two, c), _choose(three, four, c), d)


@inlined
def _pair(upper: NDArray[np.uint8], table: Integer, mask: Integer, at: Integer) -> tuple[np.uint8, np.uint8]:
    """Return a threshold, and what turns it into the next."""
    first = upper[table + (at & mask)]
    return first, _U8(first ^ upper[table + ((at + _U(1)) & mask)])


@inlined
def _choose(no: np.uint8, yes: np.uint8, bits: np.uint8) -> np.uint8:
    """Return one of two bytes by a mask of all bits or none."""
    return _U8(no ^ ((no ^ yes) & bits))


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
