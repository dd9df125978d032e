"""Blocks that cover all sites: as large as possible while their clique tables stay small.

One pass eliminates the sites of the whole graph in greedy order, smallest clique table first. When even the
smallest table would be too large, a site is *cut* instead: it is removed from the graph and will not be part of
the block. The sites left after a pass are a block of bounded width, usually of most sites. Sites that were cut are in
one of the next blocks, where they are the last to be cut, so blocks overlap, and every site is in at least one.

*Ties* measure how strongly factors couple their sites: from 0 for independent sites to 1 for factors with zeros.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Ints32
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths
from gibbsite.kernels.blocks.tables import Interactions


def tie_factors(arrays: TableGraph) -> Floats:
    """Return the strength of every factor: tanh(r / 4), where r is the range of its log-potentials; 1 if it has zeros.

    For a pair of two-state sites with log-potentials J and -J that is tanh(J / 2), about the influence of one
    site on the other.
    """
    count = arrays.table.size
    found = np.zeros(count)
    if not count:
        return found
    sizes = np.multiply.reduceat(arrays.card[arrays.member].astype(np.int64), arrays.member_start[:-1].astype(np.int64))
    known: dict[tuple[int, int], float] = {}
    for f, (first, size) in enumerate(zip(arrays.table.tolist(), sizes.tolist(), strict=True)):
        if (first, size) not in known:
            logs = arrays.log_value[first : first + size]
            low, high = logs.min(), logs.max()
            known[first, size] = 1.0 if low == -np.inf else float(np.tanh((high - low) / 4.0))
        found[f] = known[first, size]
    return found


def tie_sites(arrays: TableGraph) -> Floats:
    """Return the strength of the strongest factor of every site."""
    strength = np.repeat(tie_factors(arrays), row_lengths(arrays.member_start))
    found = np.zeros(arrays.card.size)
    np.maximum.at(found, arrays.member.astype(np.int64), strength)
    return found


def tied_groups(arrays: TableGraph, least: float) -> Ints:
    """Return the group number of every site; factors whose strength is at least ``least`` join their sites."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, width = arrays.card.size, row_lengths(arrays.member_start)
    strong = np.repeat(tie_factors(arrays) >= least, width)
    factor = np.repeat(np.arange(width.size), width)[strong] + n  # factors are vertices, too
    member = arrays.member.astype(np.int64)[strong]
    size = n + width.size
    links = coo_array((np.ones(member.size), (factor, member)), shape=(size, size))
    labels = connected_components(links, directed=False)[1][:n]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


# Preference for cutting a site that is in another block already, in numbers of neighbours.
_UNCOVERED = 1e6
# Preference for keeping a site with a strong tie, in numbers of neighbours.
_TIE = 4.0
# Noise of random covers, as a fraction of the cost.
_NOISE = 0.3


@dataclass(frozen=True)
class Limit:
    """Limits of the tables of a block: 2^log2 entries and ``sites`` sites; tables of a forest have two sites."""

    log2: float
    sites: float = math.inf


def grow_block(
    near: Interactions,
    log_card: Floats,
    limit: Limit,
    allowed: Bools,
    covered: Bools,
    tie: Floats,
    rng: np.random.Generator | None = None,
) -> Ints:
    """Return the sites of a block of bounded width, in an order of elimination.

    Only sites in ``allowed`` may be in the block. Sites in ``covered``, which are in another block already, are cut
    first, and sites with weak ties are cut before others. Blocks are random if ``rng`` is given.
    """
    n = log_card.size
    noise = np.zeros(n) if rng is None else _NOISE * rng.random(n)
    around: list[set[int]] = [set() for _ in range(n)]
    for i in np.flatnonzero(allowed).tolist():
        row = near.neighbour[near.start[i] : near.start[i + 1]]
        around[i] = set(row[allowed[row]].tolist())
    log2 = log_card.tolist()
    size = [log2[i] + sum(log2[j] for j in around[i]) for i in range(n)]
    wiggle = (1.0 + noise).tolist()
    left = allowed.tolist()
    heap = [(size[i] * wiggle[i], i) for i in np.flatnonzero(allowed).tolist()]
    heapq.heapify(heap)
    chosen: list[int] = []

    def changed(i: int) -> None:
        heapq.heappush(heap, (size[i] * wiggle[i], i))

    def cut(i: int) -> None:
        left[i] = False
        for j in around[i]:
            around[j].discard(i)
            size[j] -= log2[i]
            changed(j)
        around[i] = set()

    while heap:
        key, v = heapq.heappop(heap)
        if not left[v] or key != size[v] * wiggle[v]:
            continue  # removed, or its cost has changed
        if len(around[v]) > 0 and (size[v] > limit.log2 + 1e-9 or len(around[v]) >= limit.sites):
            worst = max(
                (v, *around[v]), key=lambda i: (_UNCOVERED * covered[i] + len(around[i]) * wiggle[i] - _TIE * tie[i], i)
            )
            cut(worst)
            if left[v]:
                changed(v)
            continue
        chosen.append(v)
        left[v] = False
        others = around[v]
        for j in others:
            mine = around[j]
            mine.discard(v)
            new = others - mine
            new.discard(j)
            size[j] += sum(log2[k] for k in new) - log2[v]
            mine |= new
        for j in others:
            changed(j)
        around[v] = set()
    return np.array(chosen, np.int64)


def cover_sites(
    near: Interactions, cards: Ints32, limit: Limit, tie: Floats, seed: int | None = None, among: Bools | None = None
) -> list[Ints]:
    """Return blocks of bounded width that cover the sites ``among``, each in an order of elimination.

    Blocks are random if ``seed`` is given, otherwise greedy.
    """
    n = cards.size
    rng = None if seed is None else np.random.default_rng([seed, n])
    log_card = np.log2(cards)
    everywhere = np.ones(n, bool) if among is None else among
    covered = ~everywhere
    blocks = []
    while not covered.all():
        block = grow_block(near, log_card, limit, everywhere, covered, tie, rng)
        if covered[block].all():  # all uncovered sites were cut: grow a block from those alone
            block = grow_block(near, log_card, limit, ~covered, covered, tie, rng)
        covered[block] = True
        blocks.append(block)
    return blocks


# Budget of the search for a cutset, in examined sites; a hundred thousand take a few seconds.
_LOOKS = 100_000
_MOST_TRIES = 40
# Factor by which the cost of cutting a site is larger if it is in another cutset already.
_AGAIN = 4.0


def choose_rest(near: Interactions, cards: Ints32, log2: float, tie: Floats, before: Bools | None = None) -> Ints:
    """Return the sites outside a cutset, in an order of elimination with tables of at most 2^log2 entries.

    Blocks are grown greedily with noise, and the one that cuts the fewest states is kept; then sites that need not be
    cut are added again. Sites in ``before``, which are outside another cutset, are cut first, so that the two
    cutsets have little in common.
    """
    n, log_card, limit = cards.size, np.log2(cards), Limit(log2)
    every, inside = np.ones(n, bool), np.zeros(n, bool)
    covered = np.zeros(n, bool) if before is None else before
    cost = np.where(covered, 1.0, _AGAIN) * log_card
    best = grow_block(near, log_card, limit, every, covered, tie)
    looks = _LOOKS - n
    for seed in range(_MOST_TRIES):
        if best.size == n or looks < 2 * n:
            break
        looks -= n
        other = grow_block(near, log_card, limit, every, covered, tie, np.random.default_rng([seed, n]))
        if cost[other].sum() > cost[best].sum():
            best = other
    inside[best] = True
    for i in np.flatnonzero(~inside).tolist():
        if looks < n:
            break
        looks -= n
        inside[i] = True
        other = grow_block(near, log_card, limit, inside, covered, tie)
        if other.size > best.size:
            best = other
        else:
            inside[i] = False
    return best
