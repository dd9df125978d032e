"""Repair of states by local search, which walks from a state outside the support into it.

Each step chooses a random violated factor and changes one of its members. There are two rules, because some models are
solved by only one of them. The greedy rule takes the move that leaves the fewest violated factors (min-conflicts:
Minton et al. 1992), and rarely a random one. The other rule takes the move that satisfies this factor and violates the
fewest others; if it violates some, a random move that satisfies the factor is often taken (WalkSAT: Selman, Kautz and
Cohen 1994).

Updates are incremental: the current entry of every factor is stored, and the violated factors are a list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop
from gibbsite._numba.random.generators import Words, below, load, store, uniform
from gibbsite.graphs.support.possible import Constraints, LiveStates, Whole

_NOISE, _GREEDY_NOISE = 0.4, 0.05
_STAYS_BROKEN = 2**30  # the cost of a move that leaves the chosen factor violated


class _Walk(NamedTuple):
    """Current entry of each factor; the list of violated factors, and the place of each factor in it (-1: none)."""

    entry: Ints
    violated: Ints
    place: Ints
    length: Ints


def repair(
    constraints: Constraints, board: LiveStates, x: Array, words: Words64, patience: int, greedy: bool, culprits: Ints
) -> int:
    """Walk until no factor is violated, or until reading ``patience`` table entries has brought no progress.

    ``x``, a state of living codes, is changed in place. Return the smallest number of violated factors; zero means that
    ``x`` is in the support. ``culprits`` receives some of the factors that were violated in that state, followed by -1.
    """
    n = constraints.table.size
    entry, violated, place = np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1)
    walk = _Walk(entry, violated, place, np.zeros(1, np.int64))
    return int(_repair(constraints, board, walk, x, words, patience, greedy, culprits))


@called
def _mark(c: Constraints, w: _Walk, f: Whole) -> None:
    """Add factor f to the list of violated factors or remove it, according to its entry."""
    bad = not c.allowed[w.entry[f]]
    place = w.place[f]
    if bad and place < 0:
        w.place[f] = w.length[0]
        w.violated[w.length[0]] = f
        w.length[0] += 1
    elif not bad and place >= 0:
        w.length[0] -= 1
        moved = w.violated[w.length[0]]
        w.violated[place] = moved
        w.place[moved] = place
        w.place[f] = -1


@called
def _cost(c: Constraints, w: _Walk, i: Whole, change: Whole, greedy: bool) -> Whole:
    """Return the number of factors that a change of site i violates; if greedy, minus those that it satisfies."""
    total = np.int64(0)
    for k in range(c.start[i], c.start[i + 1]):
        entry = w.entry[c.factor[k]]
        before, after = c.allowed[entry], c.allowed[entry + c.own_stride[k] * change]
        if before and not after:
            total += 1
        elif greedy and after and not before:
            total -= 1
    return total


@called
def _choose_move(
    c: Constraints, b: LiveStates, w: _Walk, x: Array, f: Whole, greedy: bool, rng: Words
) -> tuple[Words, Whole, Whole, Whole]:
    """Choose a member of f (-1: none) and a living state for it; also return the work of the choice."""
    best: Whole = np.int64(2**62)
    ties, ways, work = 0, 0, np.int64(1)
    site, state, any_site, any_state = np.int64(-1), np.int64(0), np.int64(-1), np.int64(0)
    for m in range(c.member_start[f], c.member_start[f + 1]):
        i = c.member[m]
        if b.living[i] < 2:
            continue
        work += (c.start[i + 1] - c.start[i]) * (b.living[i] - 1)
        for a in range(c.card[i]):
            change = np.int64(a) - x[i]
            if change == 0 or not b.alive[c.offset[i] + a]:
                continue
            cost = _cost(c, w, i, change, greedy)
            mends = c.allowed[w.entry[f] + c.stride[m] * change]
            if not mends and not greedy:
                cost += _STAYS_BROKEN
            if mends:
                ways += 1
                rng, pick = below(rng, ways)
                if pick == 0:
                    any_site, any_state = i, np.int64(a)
            if cost < best:
                best, ties = cost, 0
            if cost == best:
                ties += 1
                rng, pick = below(rng, ties)
                if pick == 0:
                    site, state = i, np.int64(a)
    rng, u = uniform(rng)
    noise = _GREEDY_NOISE if greedy else _NOISE
    if ways > 0 and u < noise and (greedy or best > 0):
        site, state = any_site, any_state
    return rng, site, state, work


@compiled_loop
def _repair(
    c: Constraints, b: LiveStates, w: _Walk, x: Array, words: Words64, patience: Whole, greedy: bool, culprits: Ints
) -> Whole:
    for f in range(c.table.size):
        entry = c.table[f]
        for m in range(c.member_start[f], c.member_start[f + 1]):
            entry += c.stride[m] * x[c.member[m]]
        w.entry[f] = entry
        _mark(c, w, f)
    rng = load(words)
    fewest, left = np.int64(c.table.size + 1), patience
    while True:
        if w.length[0] < fewest:
            fewest, left = w.length[0], patience
            for q in range(culprits.size):
                culprits[q] = w.violated[q] if q < fewest else -1
        if fewest == 0 or left <= 0:
            break
        rng, pick = below(rng, w.length[0])
        f = w.violated[np.int64(pick)]
        rng, i, a, work = _choose_move(c, b, w, x, f, greedy, rng)
        left -= work
        if i >= 0:
            change = a - x[i]
            x[i] = a
            for k in range(c.start[i], c.start[i + 1]):
                f = c.factor[k]
                w.entry[f] += c.own_stride[k] * change
                _mark(c, w, f)
    store(words, rng)
    return fewest
