"""Gibbs sampling of many chains of one binary model, a site of all chains at a time.

The states of all chains are contiguous, so the model is read once for all of them and every loop over chains
compiles to vector instructions. Each chain uses the same random numbers, and adds up the same log-odds in the same
order, as it would alone: its states are those of :mod:`gibbsite.kernels.batched.colored`, bit by bit.

A site is updated in 32 chains at once: thresholds selected by the neighbours are compared with random bytes.
Processors with AVX2 use vector instructions (:mod:`gibbsite._numba.vector`); others loop over the chains, with
the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats32, Ints8, Words32
from gibbsite._numba.intrinsic import WIDTH
from gibbsite._numba.jit import DISABLED, Integer, called, implement, inlined, intrinsic_for
from gibbsite._numba.random.generators import BLOCK, BYTES, WORDS, Words, chain_key, philox
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Kernel, Span
from gibbsite.kernels.batched.base import PackedModel, Streams, register_batched
from gibbsite.kernels.batched.colored import (
    SCALE,
    ColoredGraph,
    counters,
    find_columns,
    first_without_table,
    pack_columns,
    rest_passes,
)
from gibbsite.kernels.batched.heatbath import UNIT, HeatBath, draw_at_once

if TYPE_CHECKING:
    from gibbsite.models import Model

_U, _U8, _U32, _U64 = np.uintp, np.uint8, np.uint32, np.uint64
_TO_UNIT = np.float32(1.0 / SCALE)


class Near(NamedTuple):
    """Where the states of a site's four neighbours begin; the bit of a missing one is not in the mask."""

    first: Integer
    second: Integer
    third: Integer
    fourth: Integer
    mask: Integer


def draw_lanes(
    x: Ints8, here: Any, near: Any, upper: Bytes, table: Any, words: Words32, at: Any, shift: Any, place: Bytes, k: Any
) -> Any:
    """Update a site in 32 chains, whose states begin at ``x[here]``; return the undecided chains as bits.

    The neighbours' bits select one of sixteen bytes from ``upper[table]`` on; its index is written to
    ``place`` from k on. A chain takes state 1 if the byte of its word (from ``words[at]`` on) that begins
    at bit ``shift`` is smaller. If both are equal, the chain's bit of the result is set.
    """
    ties = _U32(0)
    for r in range(_U(WIDTH)):
        low = _U8(x[near.first + r]) | _U8(_U8(x[near.second + r]) << _U8(1))
        high = _U8(_U8(x[near.third + r]) << _U8(2)) | _U8(_U8(x[near.fourth + r]) << _U8(3))
        code = _U8((low | high) & _U8(near.mask))
        byte, limit = _U8((words[at + r] >> _U32(shift)) & _U32(255)), upper[table + code]
        place[k + r] = code
        x[here + r] = byte < limit
        ties |= _U32(byte == limit) << _U32(r)
    return ties


def add_lanes(sums: Floats32, here: Any, threshold: Words32, table: Any, place: Bytes, k: Any) -> None:
    """Add to 32 sums the probabilities that ``place`` selects from sixteen thresholds."""
    for r in range(_U(WIDTH)):
        sums[here + r] += np.float32(threshold[table + place[k + r]]) * _TO_UNIT


if not DISABLED:
    from gibbsite._numba.vector import add_vector, draw_vector, has_shuffles

    _settle_one_by_one, _add_one_by_one = inlined(draw_lanes), inlined(add_lanes)

    @intrinsic_for(draw_lanes)
    def _choose_settle(x, here, near, upper, table, words, at, shift, place, k):  # type: ignore[no-untyped-def]
        if has_shuffles():
            return lambda x, here, near, upper, table, words, at, shift, place, k: draw_vector(
                x, _U(here), near, upper, _U(table), words, _U(at), _U32(shift), place, _U(k)
            )
        return lambda x, here, near, upper, table, words, at, shift, place, k: _settle_one_by_one(
            x, here, near, upper, table, words, at, shift, place, k
        )

    @intrinsic_for(add_lanes)
    def _choose_add(sums, here, threshold, table, place, k):  # type: ignore[no-untyped-def]
        if has_shuffles():
            return lambda sums, here, threshold, table, place, k: add_vector(
                sums, _U(here), threshold, _U(table), place, _U(k)
            )
        return lambda sums, here, threshold, table, place, k: _add_one_by_one(sums, here, threshold, table, place, k)


F = np.float32
_LOW, _HIGH = _U64(0xFFFFFFFF), _U64(32)


class ReplicatedGraph(NamedTuple):
    """A colored graph for several chains; entry ``p * chains + c`` of a state is position p of chain c."""

    colored: ColoredGraph
    chains: int


class ReplicaMemory(NamedTuple):
    """The keys of the chains, first halves before second ones, and buffers with entries for each chain.

    These are for four random words, for log-odds, and for the threshold that a site's neighbours select.
    """

    key: Words32
    words: Words32
    odds: Floats32
    place: Bytes


@implement(log_potential, ReplicatedGraph)
def _unknown(arrays: ReplicatedGraph, x: Ints8) -> float:
    return np.nan  # the states of many chains have no common energy; runs that record energies take another layout


def _move_replicas(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Draw positions in all chains, color by color: those with thresholds first, then the others."""
    where, stop, turn = span.where, span.stop, span.turn
    colored, chains = arrays.colored, _U(arrays.chains)
    for c in range(colored.color_start.size - 1):
        start, end = _U(colored.color_start[c]), _U(colored.color_start[c + 1])
        split = first_without_table(colored, c)
        low, high = max(where, start), min(stop, split)
        for base in range(start, max(low, high), _U(UNIT)):
            lanes = counters(base, split, UNIT, 16)
            for lane in range(lanes if low < base + _U(UNIT) else _U(0)):
                draw_words(memory.words, memory.key, chains, turn, base + lane, BYTES)
                for quarter in range(_U(16)):
                    p = base + _U(4) * ((quarter >> _U(2)) * lanes + lane) + (quarter & _U(3))
                    if low <= p < high:
                        k = _class_of(colored, c, p)
                        _look_up(colored, chains, k, p, x, memory, quarter, turn, cond, keep)
        low, high = max(where, split), min(stop, end)
        for base in range(split, max(low, high), _U(BLOCK)):
            lanes = counters(base, end, BLOCK, 4)
            for lane in range(lanes if low < base + _U(BLOCK) else _U(0)):
                draw_words(memory.words, memory.key, chains, turn, base + lane, WORDS)
                for w in range(_U(4)):
                    p = base + w * lanes + lane
                    if low <= p < high:
                        _add_up(colored, chains, _class_of(colored, c, p), p, x, memory)
                        draw_at_once(memory.odds, memory.words, w * chains, x, p * chains, chains, cond, keep)
    return rng


@called
def draw_words(
    words: Words32, key: Words32, chains: Integer, turn: Integer, counter: Integer, branch: np.uint32
) -> None:
    """Write the four words of a counter for every chain; first halves of keys come before second ones."""
    at, sweep = _U64(counter), _U64(turn)
    a, b, c, d = _U32(at & _LOW), _U32(at >> _HIGH) | branch, _U32(sweep & _LOW), _U32(sweep >> _HIGH)
    for r in range(chains):
        one, two, three, four = philox(a, b, c, d, key[r], key[chains + r])
        words[r] = one
        words[chains + r] = two
        words[_U(2) * chains + r] = three
        words[_U(3) * chains + r] = four


@inlined
def _class_of(colored: ColoredGraph, c: Integer, p: Integer) -> Integer:
    """Return the class of a position of a color."""
    k = colored.color_class[c]
    while p >= _U(colored.first[k + 1]):
        k += 1
    return k


@inlined
def _look_up(
    arrays: ColoredGraph,
    chains: Integer,
    k: Integer,
    p: Integer,
    x: Ints8,
    memory: ReplicaMemory,
    quarter: Integer,
    turn: Integer,
    sums: Floats32,
    keep: bool,
) -> None:
    """Update one position with thresholds in all chains, with one byte of their words."""
    size, degree, edge, table = find_columns(arrays, k, p)
    here = p * chains
    word, shift = (quarter >> _U(2)) * chains, _U32(8) * _U32(quarter & _U(3))
    # for a missing neighbour, any state is read and masked out
    n0 = n1 = n2 = n3 = here
    if degree > _U(0):
        n0 = _U(arrays.neighbour[edge]) * chains
    if degree > _U(1):
        n1 = _U(arrays.neighbour[edge + size]) * chains
    if degree > _U(2):
        n2 = _U(arrays.neighbour[edge + _U(2) * size]) * chains
    if degree > _U(3):
        n3 = _U(arrays.neighbour[edge + _U(3) * size]) * chains
    mask = (_U(1) << degree) - _U(1)
    for r in range(_U(0), chains, _U(WIDTH)):
        near = Near(n0 + r, n1 + r, n2 + r, n3 + r, mask)
        ties = draw_lanes(x, here + r, near, arrays.upper, table, memory.words, word + r, shift, memory.place, r)
        if ties:
            _break_ties(arrays, table, ties, r, chains, p, x, memory, turn)
        if keep:
            add_lanes(sums, here + r, arrays.threshold, table, memory.place, r)


@called
def _break_ties(
    arrays: ColoredGraph,
    table: Integer,
    ties: np.uint32,
    r: Integer,
    chains: Integer,
    p: Integer,
    x: Ints8,
    memory: ReplicaMemory,
    turn: Integer,
) -> None:
    """Decide the undecided chains from r on."""
    for lane in range(r, r + _U(WIDTH)):
        if ties & _U32(1):
            place = table + _U(memory.place[lane])
            key_0, key_1 = memory.key[lane], memory.key[chains + lane]
            x[p * chains + lane] = rest_passes(arrays, place, key_0, key_1, turn, p)
        ties >>= _U32(1)


@called
def _add_up(arrays: ColoredGraph, chains: Integer, k: Integer, p: Integer, x: Ints8, memory: ReplicaMemory) -> None:
    """Write the log-odds of one position in all chains."""
    size, degree, edge, _ = find_columns(arrays, k, p)
    odds = memory.odds
    for r in range(chains):
        odds[r] = arrays.field[p]
    for q in range(degree):
        e = edge + q * size
        there, weight = _U(arrays.neighbour[e]) * chains, arrays.coupling[e]
        for r in range(chains):
            odds[r] += weight * F(x[there + r])


def chain_keys(streams: Streams) -> Words32:
    """Return the keys of some chains, first halves before second ones."""
    return np.stack([chain_key(words) for words in streams], axis=1).ravel()


@register_batched(kernel="Gibbs", kinds=("binary",))
class Replicas(HeatBath):
    """The heat bath on many chains of a binary model, side by side; their states are those of ``Colors``."""

    name, form, rank = "replicas", "arranged", 0
    lanes = WIDTH
    layouts = (ReplicatedGraph,)
    move = staticmethod(_move_replicas)

    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a binary model out, if its couplings allow it."""
        return pack_columns(model, graph)

    def arrays(self, packed: PackedModel, chains: int) -> ReplicatedGraph:
        """Return the graph for ``chains`` chains."""
        return ReplicatedGraph(packed.arrays, chains)

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> ReplicaMemory:
        """Allocate the keys of all chains, and buffers."""
        chains = len(streams)
        return ReplicaMemory(
            key=chain_keys(streams),
            words=np.zeros(4 * chains, np.uint32),
            odds=np.zeros(chains, np.float32),
            place=np.zeros(chains, np.uint8),
        )
