"""Blocks that cover all sites: as large as possible while their clique tables stay small.

One pass takes the sites of the whole graph out in greedy order, smallest clique table first. When even the
smallest table would be too large, a site is *cut* instead: taken out of the graph, because it will not be
part of the block. What is left after a pass is a block of bounded width, usually of most sites. Sites that
were cut are in one of the next blocks, where they are the last to be cut; so blocks overlap, and every site
is in at least one.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Ints32
from gibbsite.kernels.blocks.tables import Interactions

# By how much, in the number of neighbours, a site is less likely to be cut because it is in no block yet.
_UNCOVERED = 1e6
# How many neighbours a strong tie counts for.
_TIE = 4.0
# Noise of covers that are drawn at random, as a part of the cost.
_NOISE = 0.3


@dataclass(frozen=True)
class Limit:
    """What the tables of a block may be: of ``log2`` entries at most, and of ``sites`` sites.

    A forest has tables of two sites.
    """

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

    Parameters
    ----------
    near : Interactions
        Neighbours.
    log_card : float array
        log2 of the numbers of states.
    limit : Limit
        Of the tables.
    allowed : bool array
        Sites that may be in the block.
    covered : bool array
        Sites that are in another block already; they are cut first.
    tie : float array
        How strongly a site depends on its neighbours, from 0 to 1; sites with weak ties are cut first.
    rng : Generator, optional
        For blocks that differ from call to call.

    Examples
    --------
    >>> ring = Interactions(np.array([0, 2, 4, 6, 8]), np.array([1, 3, 0, 2, 1, 3, 0, 2]))
    >>> none = np.zeros(4, bool)
    >>> sorted(grow_block(ring, np.ones(4), Limit(2.0), ~none, none, np.zeros(4)).tolist())
    [0, 1, 2]
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
            continue  # gone, or its cost has changed since
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
    """Return blocks of bounded width that cover all sites, each in an order of elimination.

    ``seed`` draws them at random; None takes the greedy choice. ``among`` says which sites to cover, and to
    cover them with.

    Examples
    --------
    >>> ring = Interactions(np.array([0, 2, 4, 6, 8]), np.array([1, 3, 0, 2, 1, 3, 0, 2]))
    >>> blocks = cover_sites(ring, np.full(4, 2, np.int32), Limit(2.0), np.zeros(4))
    >>> [sorted(block.tolist()) for block in blocks]
    [[0, 1, 2], [0, 2, 3]]
    """
    n = cards.size
    rng = None if seed is None else np.random.default_rng([seed, n])
    log_card = np.log2(cards)
    everywhere = np.ones(n, bool) if among is None else among
    covered = ~everywhere
    blocks = []
    while not covered.all():
        block = grow_block(near, log_card, limit, everywhere, covered, tie, rng)
        if covered[block].all():  # no uncovered site was left in: begin with those alone
            block = grow_block(near, log_card, limit, ~covered, covered, tie, rng)
        covered[block] = True
        blocks.append(block)
    return blocks
