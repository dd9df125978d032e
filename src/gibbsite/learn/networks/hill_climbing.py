"""Hill climbing over structures with a list of structures that must not be visited again, and random restarts.

A step adds, removes or reverses the edge that raises the score most, or lowers it least, and leads to a structure that
was not visited lately. Where no step helps, edges are turned at random that can be turned without a change of the
score, those of sites with the same other parents, and the climb goes on: directions that were chosen early are so
revised [1]_. Scores of families are kept in a hash table.

References
----------
.. [1] Castelo, R. and Kočka, T. (2003). On inclusion-driven learning of Bayesian networks. Journal of Machine Learning
   Research 4, 527-574.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.learn.networks.scores import (
    MOST_MASKS,
    Data,
    Scoring,
    Scratch,
    extend,
    make_scratch,
    mask_cases,
    score_family,
    score_masks,
    score_masks_with,
    score_with,
)

_U = np.uint64
_ADD, _REMOVE, _REVERSE = 0, 1, 2
_TIE = 1e-7  # smaller differences are rounding: of equally good steps, the first one is taken
_TURNS = 4  # times that edges are turned without success before a climb ends
_KEPT = 64  # scores in the hash table for each pair of sites
_MOST_BITS = 20  # of the number of scores in it


class Rules(NamedTuple):
    """Which edges (parent, child) are allowed and required, and how many parents a site may have."""

    allowed: Bools
    required: Bools
    most: int


class Memory(NamedTuple):
    """State of a climb: edges, ancestors, scores of families and of their changes, and kept scores with their keys.

    ``gain[child, parent]`` is the change of the score when this edge is added or removed. ``used`` is the number of
    kept scores, and the shift that turns a 64-bit key into a place of their table. ``parent`` and ``queue`` are
    workspace. Keys of families are those of the child and its parents, combined.
    """

    edge: Bools
    above: Bools
    family: Floats
    gain: Floats
    parent: Ints
    queue: Ints
    as_child: Words64
    as_parent: Words64
    as_edge: Words64
    key: Words64
    value: Floats
    used: Ints


class Climb(NamedTuple):
    """The best structure found, its score, and the best scores of climbs that began independently of each other."""

    edges: Bools
    score: float
    scores: tuple[float, ...]


def climb(
    data: Data,
    scoring: Scoring,
    rules: Rules,
    start: Bools,
    restarts: int,
    changes: int,
    tabu: int,
    patience: int,
    seed: np.random.SeedSequence,
) -> Climb:
    """Climb from a structure; then, in turns, from the best one and from the first one after random changes.

    The number of changes of the best one is ``changes``, or 2, 4 or 8 times as many.
    """
    n = data.card.size
    rng = np.random.default_rng(seed)
    words: Words64 = rng.integers(1, 2**63, 4, np.uint64)
    keys = rng.integers(0, 2**64 - 1, (n + 2, max(n, 1)), np.uint64, endpoint=True)
    bits = min(max((_KEPT * n * n).bit_length(), 10), _MOST_BITS)
    memory = Memory(
        start.copy(),
        np.zeros((n, n), np.bool_),
        np.zeros(n),
        np.zeros((n, n)),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
        keys[n],
        keys[n + 1],
        keys[:n],
        np.zeros(1 << bits, np.uint64),
        np.zeros(1 << bits),
        np.array([0, 64 - bits]),
    )
    scratch = make_scratch(data, 1)
    best, top = start.copy(), -np.inf
    scores = []
    for round_ in range(restarts + 1):
        fresh = round_ % 2 == 0
        memory.edge[:] = start if fresh else best
        changed = 0 if round_ == 0 else max(n // 2, 3) if fresh else changes << round_ // 2 % 4
        found = np.zeros((n, n), np.bool_)
        visited = np.zeros(max(tabu, 1), np.uint64)
        score = _climb(data, scoring, scratch, rules, memory, visited, patience, changed, words, found)
        if fresh:
            scores.append(float(score))
        if score > top + 1e-9 * (1.0 + abs(score)):
            best, top = found, float(score)
    return Climb(best, top, tuple(scores))


def score_edges(data: Data, scoring: Scoring, edges: Bools) -> float:
    """Return the score of a structure."""
    scratch, total = make_scratch(data, 1), 0.0
    for child in range(data.card.size):
        parents = np.flatnonzero(edges[:, child])
        total += _score_parents(data, scoring, scratch, child, parents)
    return float(total)


@compiled_loop
def _score_parents(data: Data, scoring: Scoring, scratch: Scratch, child: int, parents: Ints) -> float:
    size, states = 1, 1.0
    scratch.config[0, :] = 0
    for u in parents:
        size = extend(data, scratch, 0, size, u, 0)
        states *= data.card[u]
    return score_family(data, scoring, scratch, 0, size, states, child)


@compiled_loop
def _climb(
    data: Data,
    scoring: Scoring,
    scratch: Scratch,
    rules: Rules,
    memory: Memory,
    visited: Words64,
    patience: int,
    changes: int,
    words: Words64,
    found: Bools,
) -> float:
    n = data.card.size
    rng = load(words)
    edge = memory.edge
    _find_ancestors(memory)
    made = 0
    for _ in range(50 * changes):  # random changes that keep the rules
        if made < changes:
            rng, a = uniform(rng)
            rng, b = uniform(rng)
            rng, c = uniform(rng)
            i, j = int(a * n), int(b * n)
            kind = _ADD
            if i != j and edge[i, j]:
                kind = _REMOVE if c < 0.5 else _REVERSE
            if i != j and _fits(rules, memory, i, j, kind):
                _change(memory, i, j, kind)
                made += 1
    store(words, rng)
    total, hashed = _score(data, scoring, scratch, rules, memory)
    top, idle, steps, turns, since = total, 0, 0, 0, total
    _copy(edge, found)
    while True:
        if idle > patience:
            turns = 0 if top > since else turns + 1
            since = top
            if turns > _TURNS:
                break
            _copy(found, edge)
            rng = load(words)
            rng = _turn(rules, memory, rng)
            store(words, rng)
            total, hashed = _score(data, scoring, scratch, rules, memory)
            idle, steps = 0, 0
        visited[steps % visited.size] = hashed
        steps += 1
        gain, i, j, kind = -np.inf, -1, -1, _ADD
        for v in range(n):
            for u in range(n):
                if u == v:
                    continue
                toggled = hashed ^ memory.as_edge[u, v]
                way = _REMOVE if edge[u, v] else _ADD
                new = memory.gain[v, u] > gain + _TIE and _fits(rules, memory, u, v, way)
                if new and not _seen(visited, steps, toggled):
                    gain, i, j, kind = memory.gain[v, u], u, v, way
                both = memory.gain[v, u] + memory.gain[u, v]
                new = way == _REMOVE and both > gain + _TIE and _fits(rules, memory, u, v, _REVERSE)
                if new and not _seen(visited, steps, toggled ^ memory.as_edge[v, u]):
                    gain, i, j, kind = both, u, v, _REVERSE
        if i < 0:
            idle = patience + 1
            continue
        _change(memory, i, j, kind)
        hashed ^= memory.as_edge[i, j]
        if kind == _REVERSE:
            hashed ^= memory.as_edge[j, i]
            _score_changes(data, scoring, scratch, rules, memory, i)
        _score_changes(data, scoring, scratch, rules, memory, j)
        total = 0.0
        for v in range(n):
            total += memory.family[v]
        if total > top + 1e-9 * (1.0 + abs(top)):
            top, idle = total, 0
            _copy(edge, found)
        else:
            idle += 1
    return top


@called
def _score(data: Data, scoring: Scoring, scratch: Scratch, rules: Rules, memory: Memory) -> tuple[float, np.uint64]:
    """Score all families and their changes; return the score and the key of the structure."""
    total, hashed = 0.0, _U(0)
    for v in range(data.card.size):
        _score_changes(data, scoring, scratch, rules, memory, v)
        total += memory.family[v]
        for u in range(data.card.size):
            if memory.edge[u, v]:
                hashed ^= memory.as_edge[u, v]
    return total, hashed


@called
def _turn(rules: Rules, memory: Memory, rng: Words) -> Words:
    """Turn random edges between sites that have the same other parents."""
    n, edge = memory.edge.shape[0], memory.edge
    for _ in range(2 * n * n):
        rng, a = uniform(rng)
        rng, b = uniform(rng)
        i, j = int(a * n), int(b * n)
        if not edge[i, j] or rules.required[i, j] or not rules.allowed[j, i]:
            continue
        same = True
        for k in range(n):
            if k != i and edge[k, i] != edge[k, j]:
                same = False
        if same:
            edge[i, j], edge[j, i] = False, True
    _find_ancestors(memory)
    return rng


@called
def _copy(edge: Bools, found: Bools) -> None:
    for i in range(edge.shape[0]):
        for j in range(edge.shape[0]):
            found[i, j] = edge[i, j]


@called
def _seen(visited: Words64, steps: int, hashed: np.uint64) -> bool:
    for k in range(min(steps, visited.size)):  # noqa: SIM110
        if visited[k] == hashed:
            return True
    return False


@called
def _fits(rules: Rules, memory: Memory, i: int, j: int, kind: int) -> bool:
    """Tell whether a change keeps the rules and makes no cycle."""
    n = memory.edge.shape[0]
    if kind == _REMOVE:
        return not rules.required[i, j]
    if kind == _ADD:
        if not rules.allowed[i, j] or memory.above[j, i] or memory.edge[j, i]:
            return False
        return _count_parents(memory, j) < rules.most
    if rules.required[i, j] or not rules.allowed[j, i] or _count_parents(memory, i) >= rules.most:
        return False
    for k in range(n):  # noqa: SIM110 (another way from i to j would close a cycle)
        if k != j and memory.edge[i, k] and memory.above[k, j]:
            return False
    return True


@called
def _count_parents(memory: Memory, v: int) -> int:
    count = 0
    for u in range(memory.edge.shape[0]):
        if memory.edge[u, v]:
            count += 1
    return count


@called
def _change(memory: Memory, i: int, j: int, kind: int) -> None:
    memory.edge[i, j] = kind == _ADD
    if kind == _REVERSE:
        memory.edge[j, i] = True
    _find_ancestors(memory)


@called
def _find_ancestors(memory: Memory) -> None:
    """Mark all pairs (ancestor, descendant)."""
    n, queue = memory.edge.shape[0], memory.queue
    for i in range(n):
        for j in range(n):
            memory.above[i, j] = False
        queue[0] = i
        first, last = 0, 1
        while first < last:
            k = queue[first]
            first += 1
            for j in range(n):
                if memory.edge[k, j] and not memory.above[i, j]:
                    memory.above[i, j] = True
                    queue[last] = j
                    last += 1


@called
def _place(memory: Memory, key: np.uint64) -> int:
    """Return where a key is in the hash table, or where it may be put; the table is never full."""
    last = _U(memory.key.size - 1)
    at = (key * _U(0x9E3779B97F4A7C15)) >> _U(memory.used[1])
    while memory.key[at & last] != _U(0) and memory.key[at & last] != key:
        at += _U(1)
    return int(at & last)


@called
def _keep(memory: Memory, at: int, key: np.uint64, value: float) -> None:
    if memory.used[0] < memory.key.size // 2:
        memory.key[at], memory.value[at] = key, value
        memory.used[0] += 1


@called
def _score_changes(data: Data, scoring: Scoring, scratch: Scratch, rules: Rules, memory: Memory, child: int) -> None:
    """Score a family, and all families that differ from it by a parent."""
    n, width, key = data.card.size, 0, memory.as_child[child]
    for u in range(n):
        if memory.edge[u, child]:
            memory.parent[width] = u
            width += 1
            key ^= memory.as_parent[u]
    ready, size, states = False, 1, 1.0
    at = _place(memory, key)
    if memory.key[at] == key:
        memory.family[child] = memory.value[at]
    else:
        size, states = _join(data, scratch, memory, width, -1, child)
        ready = True
        memory.family[child] = _score_joined(data, scoring, scratch, size, states, child)
        _keep(memory, at, key, memory.family[child])
    for u in range(n):
        if u == child or memory.edge[u, child] or not rules.allowed[u, child] or width >= rules.most:
            continue
        other = key ^ memory.as_parent[u]
        at = _place(memory, other)
        if memory.key[at] == other:
            memory.gain[child, u] = memory.value[at] - memory.family[child]
            continue
        if not ready:
            size, states = _join(data, scratch, memory, width, -1, child)
            ready = True
        if states < 0.0:
            value = score_masks_with(data, scoring, scratch, size, u, child)
        else:
            value = score_with(data, scoring, scratch, 0, size, states, u, child)
        memory.gain[child, u] = value - memory.family[child]
        _keep(memory, at, other, value)
    for k in range(width):
        u = memory.parent[k]
        other = key ^ memory.as_parent[u]
        at = _place(memory, other)
        if memory.key[at] != other:
            size, states = _join(data, scratch, memory, width, k, child)
            value = _score_joined(data, scoring, scratch, size, states, child)
            memory.gain[child, u] = value - memory.family[child]
            _keep(memory, at, other, value)
        else:
            memory.gain[child, u] = memory.value[at] - memory.family[child]


@called
def _score_joined(data: Data, scoring: Scoring, scratch: Scratch, size: int, states: float, child: int) -> float:
    if states < 0.0:
        return score_masks(data, scoring, scratch, size, child)
    return score_family(data, scoring, scratch, 0, size, states, child)


@called
def _join(data: Data, scratch: Scratch, memory: Memory, width: int, without: int, child: int) -> tuple[int, float]:
    """Find the joint states of the parents, but for one: masks of cases if they are few, or states of each case.

    Returns the number of masks, which are split by the site as well, and -1; or the number of states that were found,
    and the number of all states.
    """
    size, states = 0, float(data.card[child])
    for k in range(width):
        if k != without:
            states *= data.card[memory.parent[k]]
    if data.bit.size and states <= MOST_MASKS:
        for k in range(width):
            if k != without:
                size = mask_cases(data, scratch, memory.parent[k], size)
        return mask_cases(data, scratch, child, size), -1.0
    size, states = 1, 1.0
    for row in range(data.weight.size):
        scratch.config[0, row] = 0
    for k in range(width):
        if k != without:
            u = memory.parent[k]
            size = extend(data, scratch, 0, size, u, 0)
            states *= data.card[u]
    return size, states
