"""Swaps of neighbouring rungs, and their statistics.

Rung k has the distribution p_k(x) proportional to exp(R(x) + beta_k U(x)), where R is the logarithm of the reference
and R + U the log-potential of the model. Two neighbours swap their states with probability

    min(1, exp((beta_{k+1} - beta_k) (U(x_k) - U(x_{k+1})))),

Pairs that begin at an even rung swap after one sweep, and pairs that begin at an odd rung after the next: states then
travel instead of diffusing (Okabe et al. 2001; Syed et al. 2022). A state that only the target excludes, because a
zero of the model is softened at other rungs, never reaches the target.

The statistics are the probabilities of swaps, round trips of states from the reference to the target and back,
and the averages from which free energies are computed (:mod:`.ladder`). They have no influence on the chain.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.random.generators import Words, uniform

#: Largest numbers of batches whose averages are kept, and of samples of U; when full, they are thinned by two.
ROWS, SAMPLES = 256, 1024

# Positions in ``counts``: whether the replicas have been set up; sweeps; round trips; closed batches, sweeps in the
# open batch, and sweeps per batch; samples, and sweeps between samples; sweeps since counting began; sweeps until U is
# computed again, if it is updated incrementally.
BEGUN, SWEEPS, TRIPS, BATCHES, FILL, LENGTH, TAKEN, STRIDE, COUNTED, SUMMED = range(10)

# The end of the ladder at which a replica was last.
_NOWHERE, _AT_REFERENCE, _AT_TARGET = range(3)


class Workspace(NamedTuple):
    """Packed memories of the inner kernel, one for each rung, and one of them for its type."""

    shelf: Words64
    like: Any

    @property
    def rebuildable(self) -> bool:
        """True: only inner kernels whose memories do not influence the draws are accepted."""
        return True


class TemperedMemory(NamedTuple):
    """The memory of a chain of replicas, besides the state of its target."""

    # states of the other rungs, where rung k has row ``place[k]`` of K - 1; or, side by side, states of all rungs,
    # where rung k has lane ``place[k]`` of each site
    states: Array
    words: Words64  # (K, 4): generators of the rungs
    # place, label, last: (K,): row of the state of each rung; replica at each rung; end at which each replica was last
    place: Ints
    label: Ints
    last: Ints
    counts: Ints  # see the constants of this file
    gain: Floats  # (K,): U of the state of each rung, after its last sweep
    accepted: Floats  # (K - 1,): sums of the probabilities of swaps
    # open_batch, batches: (2 (K - 1),), (ROWS, 2 (K - 1)): averages at both rungs of each pair, as sums of the open
    # batch and means of closed batches
    open_batch: Floats
    batches: Floats
    samples: Floats  # (SAMPLES, K): U of all rungs, at regular intervals
    sums: Floats  # (K, cells): counts of each state of each site at each rung, if these are kept
    # betas, cut: (K,): the ladder, for results
    betas: Floats
    cut: Floats
    level: Floats  # (1,): log-probability of every state in the reference; NaN if these differ
    work: Any  # memories of the inner kernel, or keys and buffers for replicas side by side

    @property
    def constant(self) -> tuple[str, ...]:
        """Arrays that never change."""
        return ("betas", "cut", "level")

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may contain NaN."""
        return ("level",)

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        most = np.full(self.counts.size, 1 << 62)
        most[[BEGUN, BATCHES, TAKEN]] = 1, ROWS - 1, SAMPLES - 1
        most[FILL] = max(int(self.counts[LENGTH]) - 1, 0)
        least = np.zeros(self.counts.size, np.int64)
        least[[LENGTH, STRIDE]] = 1
        return {"counts": (least, most), "last": (_NOWHERE, _AT_TARGET), "states": (0, self._codes(cards))}

    def _codes(self, cards: Array) -> Any:
        """Return the largest code of each entry of the states."""
        replicas = self.states.size // max(cards.size, 1)
        if hasattr(self.work, "key"):  # side by side
            return np.repeat(cards, replicas) - 1
        return np.tile(cards, replicas) - 1

    def follows(self, fresh: TemperedMemory) -> bool:
        """Return whether rows and replicas are permutations of those of a new memory."""
        pairs = ((self.place, fresh.place), (self.label, fresh.label))
        return all(np.array_equal(np.sort(one), np.sort(other)) for one, other in pairs)


def forget_counts(memory: TemperedMemory) -> None:
    """Set all counts to zero, as at the end of a warmup."""
    for part in (memory.accepted, memory.open_batch, memory.batches, memory.samples, memory.sums, memory.last):
        part[...] = 0
    before = memory.counts.copy()
    memory.counts[:] = 0
    memory.counts[[LENGTH, STRIDE]] = 1
    for which in (BEGUN, SWEEPS, SUMMED):
        memory.counts[which] = before[which]


@inlined
def swap_chance(gap: float, low: float, high: float) -> float:
    """Return the probability of a swap, given the difference of beta and the U of the states of both rungs."""
    drop = gap * (low - high)
    return 1.0 if drop >= 0.0 else math.exp(drop)


@inlined
def _share(x: float) -> float:
    """Return 1 / (1 + exp(-x))."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    tail = math.exp(x)
    return tail / (1.0 + tail)


@called
def exchange(
    gap: Floats, cut: Floats, memory: TemperedMemory, x: Array, possible: bool, by_place: bool, rng: Words
) -> Words:
    """Count, then swap every second pair of neighbours; return the advanced generator.

    ``possible`` tells whether the target allows the state of the rung before it, and ``by_place`` whether the state of
    the target has a place like all others.
    """
    gain, counts = memory.gain, memory.counts
    pairs = gain.size - 1
    _count(gap, cut, memory, possible)
    for k in range(counts[SWEEPS] % 2, pairs, 2):
        rng, u = uniform(rng)
        if u < swap_chance(gap[k], gain[k], gain[k + 1]) and (possible or k < pairs - 1):
            _swap(memory, x, k, by_place)
    counts[SWEEPS] += 1
    _follow(memory)
    return rng


@inlined
def _swap(memory: TemperedMemory, x: Array, k: Integer, by_place: bool) -> None:
    """Exchange the places of the states of rungs k and k + 1, or copy the state of the target site by site."""
    place, label, gain = memory.place, memory.label, memory.gain
    if by_place or k + 2 < gain.size:
        place[k], place[k + 1] = place[k + 1], place[k]
    else:
        other = memory.states[place[k] * x.size : (place[k] + 1) * x.size]
        for i in range(x.size):
            other[i], x[i] = x[i], other[i]
    label[k], label[k + 1] = label[k + 1], label[k]
    gain[k], gain[k + 1] = gain[k + 1], gain[k]


@inlined
def _follow(memory: TemperedMemory) -> None:
    """Store which replicas are at the ends, and count round trips."""
    last, label = memory.last, memory.label
    hot, cold = label[0], label[label.size - 1]
    if last[hot] == _AT_TARGET:
        memory.counts[TRIPS] += 1
    last[hot] = _AT_REFERENCE
    if last[cold] == _AT_REFERENCE:
        last[cold] = _AT_TARGET


@inlined
def _count(gap: Floats, cut: Floats, memory: TemperedMemory, possible: bool) -> None:
    """Add the probabilities of swaps and both averages of every pair; store U at intervals."""
    gain, counts, batch = memory.gain, memory.counts, memory.open_batch
    pairs = gain.size - 1
    for k in range(pairs):
        if possible or k < pairs - 1:
            memory.accepted[k] += swap_chance(gap[k], gain[k], gain[k + 1])
            batch[2 * k] += _share(gap[k] * gain[k] - cut[k])
        batch[2 * k + 1] += _share(cut[k] - gap[k] * gain[k + 1])
    if counts[COUNTED] % counts[STRIDE] == 0:
        for k in range(pairs + 1):
            memory.samples[counts[TAKEN], k] = gain[k]
        counts[TAKEN] += 1
        if counts[TAKEN] == SAMPLES:
            for row in range(SAMPLES // 2):
                for k in range(pairs + 1):
                    memory.samples[row, k] = memory.samples[2 * row, k]
            counts[TAKEN] = SAMPLES // 2
            counts[STRIDE] *= 2
    counts[COUNTED] += 1
    counts[FILL] += 1
    if counts[FILL] == counts[LENGTH]:
        for c in range(batch.size):
            memory.batches[counts[BATCHES], c] = batch[c] / counts[LENGTH]
            batch[c] = 0.0
        counts[FILL] = 0
        counts[BATCHES] += 1
        if counts[BATCHES] == ROWS:
            for row in range(ROWS // 2):
                for c in range(batch.size):
                    both = memory.batches[2 * row, c] + memory.batches[2 * row + 1, c]
                    memory.batches[row, c] = 0.5 * both
            counts[BATCHES] = ROWS // 2
            counts[LENGTH] *= 2
