"""The structure of highest score, by dynamic programming over sets of sites.

For every site and every set of others, the best parents in this set are found; then, for every set, the best site to
come last (Silander and Myllymäki, 2006). Time and memory double with each site.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._numba.jit import compiled_loop
from gibbsite.errors import ModelError, TooLargeError
from gibbsite.learn.networks.scores import Data, Scoring, count_sets, make_scratch, score_sets

MOST_SITES = 20


def score_all(
    data: Data, scoring: Scoring, allowed: Bools, required: Bools, most: int, threads: int
) -> list[tuple[Ints, Floats]]:
    """Return, for each site, all sets of at most ``most`` parents as bits, and their scores.

    ``allowed`` and ``required`` are matrices (parent, child).
    """

    def work(child: int) -> tuple[Ints, Floats]:
        candidate = np.flatnonzero(allowed[:, child] | required[:, child])
        needed = sum(1 << int(i) for i in np.flatnonzero(required[:, child]))
        depth = min(most, candidate.size)
        count = count_sets(candidate.size, depth)
        member, size = np.zeros((2, depth + 2), np.int64)
        mask, score = np.zeros(count, np.int64), np.zeros(count)
        scratch = make_scratch(data, depth)
        found = score_sets(data, scoring, scratch, child, candidate, needed, depth, member, size, mask, score)
        if not found:
            raise ModelError("a site has more required parents than it may have; raise max_parents.")
        return mask[:found], score[:found]

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(data.card.size)))


def find_best(families: list[tuple[Ints, Floats]]) -> tuple[Bools, float]:
    """Return the edges (parent, child) of a structure of highest score, and the score."""
    n = len(families)
    if n > MOST_SITES:
        raise TooLargeError(
            f"The exact search takes at most {MOST_SITES} sites, and there are {n}; use the method hill."
        )
    best = np.full((n, 1 << max(n - 1, 0)), -np.inf)
    for child, (mask, score) in enumerate(families):
        low = mask & ((1 << child) - 1)
        best[child, low | (mask >> (child + 1) << child)] = score
    total = np.zeros(1 << n)
    _fill(best, total)
    if total[-1] == -np.inf:
        raise ModelError("no acyclic structure has all required edges and none of the forbidden ones.")
    edges = np.zeros((n, n), np.bool_)
    _trace(best, total, edges)
    return edges, float(total[-1])


@compiled_loop
def _fill(best: Floats, total: Floats) -> None:
    """Find the best parents within each set, and the score of the best structure of each set of sites."""
    n = best.shape[0]
    for v in range(n):
        for s in range(best.shape[1]):
            for i in range(n - 1):
                if s >> i & 1:
                    best[v, s] = max(best[v, s], best[v, s ^ (1 << i)])
    for s in range(1, total.size):
        total[s] = -np.inf
        for v in range(n):
            if s >> v & 1:
                rest = s ^ (1 << v)
                place = (rest & ((1 << v) - 1)) | (rest >> (v + 1) << v)
                total[s] = max(total[s], total[rest] + best[v, place])


@compiled_loop
def _trace(best: Floats, total: Floats, edges: Bools) -> None:
    """Write the edges of the best structure, from the last site to the first."""
    n = best.shape[0]
    s = total.size - 1
    while s:
        last, place = 0, 0
        for v in range(n):
            if s >> v & 1:
                rest = s ^ (1 << v)
                place = (rest & ((1 << v) - 1)) | (rest >> (v + 1) << v)
                if total[rest] + best[v, place] == total[s]:
                    last = v
                    break
        smaller = True
        while smaller:  # the smallest set of the same score
            smaller = False
            for i in range(n - 1):
                if place >> i & 1 and best[last, place ^ (1 << i)] == best[last, place]:
                    place ^= 1 << i
                    smaller = True
                    break
        for i in range(n - 1):
            if place >> i & 1:
                edges[i if i < last else i + 1, last] = True
        s ^= 1 << last
