"""The last method for finding a start: randomised backtracking that keeps the tables consistent.

After every decision the zeros of all factors are propagated, so dead ends that propagation can detect are avoided.
Sites are chosen near the last changes, preferring few living states and factors that have caused failures (dom/wdeg:
Boussemart et al. 2004). The search restarts with growing limits and keeps the weights of factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop
from gibbsite._numba.random.generators import Words, below, load, store, uniform
from gibbsite.graphs.support.possible import TRAIL, WORK, Constraints, LiveStates, Whole, give, kill, propagate, revive

FOUND, IMPOSSIBLE, UNDECIDED = 1, 0, -1

_WINDOW = 1024  # sites or changes compared at one decision
_FIRST_LIMIT = 50  # failures before the first restart
_WANDER = 0.1  # how often a restarted search disregards the hint


class _Tree(NamedTuple):
    """The decisions made so far: site and state of each level, and the lengths of trail and list before it.

    ``sites`` lists the sites to decide, the decided ones towards the end; ``weight`` is by site.
    """

    site: Ints
    state: Ints
    trail: Ints
    undecided: Ints
    sites: Ints
    weight: Floats


def search(constraints: Constraints, board: LiveStates, x: Array, words: Words64, budget: int) -> int:
    """Search for a state of positive probability from a propagated board, which is overwritten.

    ``x`` holds the preferred states and receives the state that is found. At most ``budget`` table entries are read.
    Return FOUND, UNDECIDED, or IMPOSSIBLE if the search proves that there is no such state.
    """
    degree = np.diff(constraints.start)
    sites = np.flatnonzero((board.living > 1) & (degree > 0))
    site, state, trail, undecided = np.zeros((4, sites.size + 1), np.int64)
    weight = np.maximum(degree, 1).astype(np.float64)
    tree = _Tree(site, state, trail, undecided, sites, weight)
    answer = int(_search(constraints, board, tree, x, words, budget))
    if answer == FOUND:
        decided = np.flatnonzero(degree > 0)
        living = np.flatnonzero(board.alive)
        x[decided] = (living - constraints.offset[board.owner[living]])[
            np.searchsorted(living, constraints.offset[decided])
        ]
    return answer


@called
def _blame(c: Constraints, b: LiveStates, weight: Floats) -> None:
    """Count a failure on the members of the factor that excluded the last state."""
    f = b.killer[b.trail[b.counters[TRAIL] - 1]]
    if f >= 0:
        for m in range(c.member_start[f], c.member_start[f + 1]):
            weight[c.member[m]] += 1.0


@called
def _choose_site(b: LiveStates, t: _Tree, size: Whole, rng: Words) -> tuple[Words, Whole, Whole]:
    """Return an undecided site (-1: none), and the length of the list without the decided sites at its end."""
    found, best = np.int64(-1), np.inf
    length = b.counters[TRAIL]
    for back in range(min(length, _WINDOW)):
        i = b.owner[b.trail[length - 1 - back]]
        if b.living[i] > 1:
            rng, u = uniform(rng)
            score = b.living[i] / t.weight[i] * (1.0 + 1e-3 * u)
            if score < best:
                best, found = score, i
    while found < 0 and size > 0:
        width = min(size, _WINDOW)
        rng, first = below(rng, size - width + 1)
        for p in range(first + width - 1, first - 1, -1):
            i = t.sites[p]
            if b.living[i] == 1:
                size -= 1
                t.sites[p], t.sites[size] = t.sites[size], i
                continue
            rng, u = uniform(rng)
            score = b.living[i] / t.weight[i] * (1.0 + 1e-3 * u)
            if score < best:
                best, found = score, i
    return rng, found, size


@called
def _choose_state(
    c: Constraints, b: LiveStates, i: Whole, hint: Whole, wander: bool, rng: Words
) -> tuple[Words, Whole]:
    """Return the hinted state if it lives, otherwise a random living one."""
    rng, u = uniform(rng)
    if b.alive[c.offset[i] + hint] and not (wander and u < _WANDER):
        return rng, hint
    rng, left = below(rng, b.living[i])
    cell = c.offset[i]
    while left > 0 or not b.alive[cell]:
        left -= b.alive[cell]
        cell += 1
    return rng, cell - c.offset[i]


@compiled_loop
def _search(c: Constraints, b: LiveStates, t: _Tree, x: Array, words: Words64, budget: int) -> int:
    """Decide sites one by one, propagate each decision, take back refuted ones, and restart after many failures."""
    rng = load(words)
    stop = b.counters[WORK] + budget
    size: Whole = np.int64(t.sites.size)
    answer, level = UNDECIDED, np.int64(0)
    failures, limit = np.int64(0), np.int64(_FIRST_LIMIT)
    while b.counters[WORK] < stop:
        if failures >= limit and level > 0:
            revive(b, t.trail[0])
            level, size, failures = np.int64(0), np.int64(t.sites.size), np.int64(0)
            limit += limit // 2
        rng, i, size = _choose_site(b, t, size, rng)
        if i < 0:
            answer = FOUND
            break
        rng, a = _choose_state(c, b, i, np.int64(x[i]), bool(limit > _FIRST_LIMIT), rng)
        t.site[level], t.state[level] = i, a
        t.trail[level], t.undecided[level] = b.counters[TRAIL], size
        level += 1
        b.counters[WORK] += 100  # approximate cost of choosing
        give(c, b, i, a)
        wiped = propagate(c, b)
        while wiped >= 0 and level > 0:
            # the decision is refuted: take it back and exclude its state at the level above
            failures += 1
            _blame(c, b, t.weight)
            level -= 1
            revive(b, t.trail[level])
            size = t.undecided[level]
            kill(c, b, t.site[level], t.state[level], np.int64(-1))
            wiped = propagate(c, b)
        if wiped >= 0:
            answer = IMPOSSIBLE
            break
    store(words, rng)
    return answer
