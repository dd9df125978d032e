"""Gibbs sampling of ordered partitions of the sites, from which structures are drawn [1]_.

The first element of a partition has the sites without parents, and every site of a later element has a parent in the
element before it and further ones in any earlier element: each acyclic structure belongs to one partition. The
probability of a partition is the product over sites of the sum of the scores of all sets of parents that it allows.
An update takes a site out and puts it back, into an element or between two, in proportion to these probabilities. Then
a structure of the partition is drawn, and edges are turned in it between sites that have the same other parents, which
leads to other structures that the cases can hardly tell apart.

Unlike orders, of which a structure may agree with many, partitions leave the prior on structures as it is.

References
----------
.. [1] Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. Journal of the American
   Statistical Association 112, 282-299.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Floats32, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.graphs.rows import row_starts

MOST_SITES = 62  # bits of a set of parents
_NEGLIGIBLE = 40.0  # natural logarithms below the largest score that matters


class Families(NamedTuple):
    """Sets of parents of each site as bits, and their scores, highest first: those of site i from ``start[i]`` on.

    ``sorted`` are the sets by number, and ``value`` their scores.
    """

    start: Ints
    mask: Ints
    score: Floats
    sorted: Ints
    value: Floats


class Walk(NamedTuple):
    """State of a chain: element of each site, sites of each element and of those before, parents, and workspace."""

    place: Ints
    element: Ints
    below: Ints
    weight: Floats
    share: Floats
    parents: Ints


class Trace(NamedTuple):
    """What is recorded of each draw: probabilities of edges (parent, child), parents as bits, and the log-score."""

    edge: Floats32
    parents: Ints
    score: Floats


def make_families(sets: list[tuple[Ints, Floats]]) -> Families:
    """Sort the sets of parents of all sites by their scores."""
    orders = [np.argsort(-score, kind="stable") for _, score in sets]
    numbers = [np.argsort(mask) for mask, _ in sets]
    return Families(
        row_starts(np.array([score.size for _, score in sets], np.int64)),
        np.concatenate([mask[order] for (mask, _), order in zip(sets, orders, strict=True)]),
        np.concatenate([score[order] for (_, score), order in zip(sets, orders, strict=True)]),
        np.concatenate([mask[order] for (mask, _), order in zip(sets, numbers, strict=True)]),
        np.concatenate([score[order] for (_, score), order in zip(sets, numbers, strict=True)]),
    )


def run_chain(families: Families, words: Words64, warmup: int, draws: int, thin: int, order: Ints) -> Trace:
    """Sample one chain from the partition of a structure that agrees with an order of the sites."""
    n = families.start.size - 1
    walk = Walk(
        np.zeros(n, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 2, np.int64),
        np.zeros(2 * n + 2),
        np.zeros(n),
        np.zeros(n, np.int64),
    )
    trace = Trace(np.zeros((draws, n, n), np.float32), np.zeros((draws, n), np.int64), np.zeros(draws))
    _start(families, walk, order)
    _run(families, walk, trace, words, warmup, thin)
    return trace


@compiled_loop
def _start(families: Families, walk: Walk, order: Ints) -> None:
    """Give each site its best parents among those before it in an order, and find the partition of this structure."""
    before = 0
    for v in order:
        walk.place[v] = 0
        for k in range(families.start[v], families.start[v + 1]):
            mask = families.mask[k]
            if mask & ~before == 0:
                for u in range(order.size):
                    if mask >> u & 1:
                        walk.place[v] = max(walk.place[v], walk.place[u] + 1)
                break
        before |= 1 << v


@compiled_loop
def _run(families: Families, walk: Walk, trace: Trace, words: Words64, warmup: int, thin: int) -> None:
    rng = load(words)
    n = walk.place.size
    for sweep in range(warmup + thin * trace.score.size):
        for v in range(n):
            rng = _move(families, walk, rng, v)
        rng = _turn(families, walk, rng)
        done = sweep + 1 - warmup
        if done > 0 and done % thin == 0:
            rng = _record(families, walk, rng, trace, done // thin - 1)
    store(words, rng)


@called
def _outline(walk: Walk, without: int) -> int:
    """Find the elements and the unions of those before, without one site; return the number of elements."""
    n = walk.place.size
    count = 0
    for e in range(n + 1):
        walk.element[e] = 0
    for w in range(n):
        if w != without:
            walk.element[walk.place[w]] |= 1 << w
            count = max(count, walk.place[w] + 1)
    if without >= 0 and count and walk.element[walk.place[without]] == 0 and walk.place[without] < count:
        gone = walk.place[without]  # the site was alone
        for w in range(n):
            if walk.place[w] > gone:
                walk.place[w] -= 1
        for e in range(gone, count):
            walk.element[e] = walk.element[e + 1]
        count -= 1
    walk.below[0] = 0
    for e in range(count):
        walk.below[e + 1] = walk.below[e] | walk.element[e]
    return count


@called
def _add(a: float, b: float) -> float:
    """Return the logarithm of the sum of two exponentials."""
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + math.log(math.exp(a - top) + math.exp(b - top))


@called
def _sum_own(families: Families, v: int, below: int, needed: int) -> float:
    """Return the log-sum of the scores of the parents of a site: some of ``below``, and one of ``needed``."""
    first, total = -np.inf, 0.0
    for k in range(families.start[v], families.start[v + 1]):
        mask = families.mask[k]
        if mask & ~below == 0 and (mask & needed or below == 0):
            score = families.score[k]
            if first == -np.inf:
                first = score
            if score < first - _NEGLIGIBLE:
                break
            total += math.exp(score - first)
    return -np.inf if total == 0.0 else first + math.log(total)


@called
def _sum_others(families: Families, w: int, below: int, needed: int, v: int) -> tuple[float, float, float]:
    """Return log-sums for the parents of a site when another site v may be one of them.

    Those without v that are allowed now, those with v, and those with v that would be allowed without it, too. The sums
    end where scores are negligible beside the first sum, which every place that matters has as a factor or exceeds.
    """
    bit, allowed = 1 << v, below | 1 << v
    now, with_, also = 0.0, 0.0, 0.0
    first_now, first_with, first_also = -np.inf, -np.inf, -np.inf
    for k in range(families.start[w], families.start[w + 1]):
        mask = families.mask[k]
        if mask & ~allowed:
            continue
        score = families.score[k]
        if score < first_now - _NEGLIGIBLE:
            break
        if mask & bit:
            if first_with == -np.inf:
                first_with = score
            with_ += math.exp(score - first_with)
            if mask & needed:
                if first_also == -np.inf:
                    first_also = score
                also += math.exp(score - first_also)
        elif mask & needed or below == 0:
            if first_now == -np.inf:
                first_now = score
            now += math.exp(score - first_now)
    return (
        -np.inf if now == 0.0 else first_now + math.log(now),
        -np.inf if with_ == 0.0 else first_with + math.log(with_),
        -np.inf if also == 0.0 else first_also + math.log(also),
    )


@called
def _move(families: Families, walk: Walk, rng: Words, v: int) -> Words:
    """Take a site out of the partition and put it back; place 2 g is before element g, 2 g + 1 in it."""
    n = walk.place.size
    count = _outline(walk, v)
    weight = walk.weight
    for g in range(count + 1):
        own = _sum_own(families, v, walk.below[g], walk.element[g - 1] if g else 0)
        weight[2 * g] = weight[2 * g + 1] = own
    for w in range(n):
        if w == v:
            continue
        e = walk.place[w]
        now, with_, also = _sum_others(families, w, walk.below[e], walk.element[e - 1] if e else 0, v)
        either, earlier = _add(now, with_), _add(now, also)
        for g in range(e - 1):
            weight[2 * g] += earlier
            weight[2 * g + 1] += earlier
        if e:
            weight[2 * e - 2] += earlier
            weight[2 * e - 1] += either
        weight[2 * e] += with_
        for at in range(2 * e + 1, 2 * count + 1):
            weight[at] += now
    top, total = -np.inf, 0.0
    for at in range(2 * count + 1):
        top = max(top, weight[at])
    for at in range(2 * count + 1):
        weight[at] = math.exp(weight[at] - top)
        total += weight[at]
    rng, u = uniform(rng)
    rest, at = u * total, 0
    while at < 2 * count and rest >= weight[at]:
        rest -= weight[at]
        at += 1
    if at % 2 == 0:
        for w in range(n):
            if w != v and walk.place[w] >= at // 2:
                walk.place[w] += 1
    walk.place[v] = at // 2
    return rng


@called
def _turn(families: Families, walk: Walk, rng: Words) -> Words:
    """Draw a structure of the partition, turn edges in it, and find its partition.

    A turn is proposed for random pairs of sites, and accepted in proportion to the scores.
    """
    n = walk.place.size
    _outline(walk, -1)
    for v in range(n):
        rng, _ = _draw(families, walk, rng, v)
    for _ in range(4 * n * n):
        rng, a = uniform(rng)
        rng, b = uniform(rng)
        i, j = int(a * n), int(b * n)
        rest = walk.parents[i]
        if walk.parents[j] != rest | 1 << i or i == j:
            continue
        before = _look_up(families, i, rest) + _look_up(families, j, rest | 1 << i)
        after = _look_up(families, j, rest) + _look_up(families, i, rest | 1 << j)
        rng, u = uniform(rng)
        if after > -np.inf and math.log(u + 1e-300) < after - before:
            walk.parents[i], walk.parents[j] = rest | 1 << j, rest
    for v in range(n):
        walk.place[v] = 0
    changed = True
    while changed:  # the longest way from a site without parents
        changed = False
        for v in range(n):
            for u in range(n):
                if walk.parents[v] >> u & 1 and walk.place[v] <= walk.place[u]:
                    walk.place[v] = walk.place[u] + 1
                    changed = True
    return rng


@called
def _look_up(families: Families, v: int, mask: int) -> float:
    """Return the score of a set of parents, minus infinity if it is not allowed."""
    low, high = families.start[v], families.start[v + 1]
    while low < high:
        middle = (low + high) // 2
        if families.sorted[middle] < mask:
            low = middle + 1
        else:
            high = middle
    if low < families.start[v + 1] and families.sorted[low] == mask:
        return float(families.value[low])
    return -np.inf


@called
def _draw(families: Families, walk: Walk, rng: Words, v: int) -> tuple[Words, float]:
    """Draw the parents of a site given the partition; return the log-sum of the scores of those allowed.

    The probabilities of single parents are left in ``share``.
    """
    n = walk.place.size
    e = walk.place[v]
    below, needed = walk.below[e], walk.element[e - 1] if e else 0
    first, total, chosen = -np.inf, 0.0, 0
    for u in range(n):
        walk.share[u] = 0.0
    for k in range(families.start[v], families.start[v + 1]):
        mask = families.mask[k]
        if mask & ~below or not (mask & needed or below == 0):
            continue
        score = families.score[k]
        if first == -np.inf:
            first = score
        if score < first - _NEGLIGIBLE:
            break
        term = math.exp(score - first)
        total += term
        rng, x = uniform(rng)
        if x * total < term:
            chosen = mask
        u = 0
        while mask:
            if mask & 1:
                walk.share[u] += term
            mask >>= 1
            u += 1
    walk.parents[v] = chosen
    for u in range(n):
        walk.share[u] /= total
    return rng, first + math.log(total)


@called
def _record(families: Families, walk: Walk, rng: Words, trace: Trace, draw: int) -> Words:
    """Record the probabilities of edges given the partition, and a structure that is drawn from it."""
    n = walk.place.size
    _outline(walk, -1)
    trace.score[draw] = 0.0
    for v in range(n):
        rng, score = _draw(families, walk, rng, v)
        trace.score[draw] += score
        trace.parents[draw, v] = walk.parents[v]
        for u in range(n):
            trace.edge[draw, u, v] = walk.share[u]
    return rng
