"""An upper bound of all weights of a proposal: their largest value, by mini-buckets.

A log-weight is a sum of tables, the ratios of laws to proposals and the likelihoods. Sites are maximised out
one after another. Where the tables of a site would make too large a table together, they are split into parts
that are maximised on their own, which can only make the result larger (Dechter and Rish 2003).

References
----------
.. [1] Dechter, R. and Rish, I. (2003). Mini-buckets: a general scheme for bounded inference. Journal of the
   ACM 50(2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.graphs.elimination.order import find_order, interaction_graph

Table = tuple[tuple[int, ...], Floats]


def bound_sum(tables: Sequence[Table], cards: Ints, entries: int) -> float:
    """Return an upper bound of the sum of tables, whatever the states; the largest sum if nothing is split.

    Parameters
    ----------
    tables : sequence of (sites, array)
        Numbers over sites, an axis each.
    cards : int array
        Number of states of each site.
    entries : int
        Largest number of entries of a table.

    Examples
    --------
    >>> one, other = np.array([[1.0, 2.0], [5.0, 0.0]]), np.array([[0.0, 3.0], [1.0, 0.0]])
    >>> bound_sum([((0, 1), one), ((1, 2), other)], np.array([2, 2, 2]), 8)
    8.0
    """
    constant = sum(float(table) for sites, table in tables if not sites)
    left = [one for one in tables if one[0]]
    if not left:
        return constant
    member = np.array([site for sites, _ in left for site in sites], np.int64)
    start = np.concatenate([[0], np.cumsum([len(sites) for sites, _ in left])]).astype(np.int64)
    rows = interaction_graph(start, member, cards.size)
    order = find_order(*rows, np.maximum(cards, 2), tries=10).sites
    rank = np.empty(cards.size, np.int64)
    rank[order] = np.arange(cards.size)
    buckets: list[list[Table]] = [[] for _ in range(cards.size)]

    def put(sites: tuple[int, ...], table: Floats) -> float:
        if not sites:
            return float(table)
        by_rank = sorted(range(len(sites)), key=lambda a: rank[sites[a]])
        buckets[rank[sites[by_rank[0]]]].append((tuple(sites[a] for a in by_rank), table.transpose(by_rank)))
        return 0.0

    for sites, table in left:
        constant += put(sites, table)
    for bucket in buckets:
        for part in _split(bucket, cards, entries):
            members = sorted({site for sites, _ in part for site in sites}, key=lambda site: rank[site])
            total = np.zeros((1,) * len(members))
            for sites, table in part:
                has = set(sites)
                total = total + table.reshape([int(cards[site]) if site in has else 1 for site in members])
            constant += put(tuple(members[1:]), total.max(axis=0))
        bucket.clear()
    return constant


def _split(bucket: list[Table], cards: Ints, entries: int) -> list[list[Table]]:
    """Put the tables of a site together, large ones first, where what they make stays within ``entries``."""
    parts: list[tuple[set[int], list[Table]]] = []
    for one in sorted(bucket, key=lambda one: -one[1].size):
        for sites, tables in parts:
            joined = sites.union(one[0])
            if math.prod(int(cards[site]) for site in joined) <= entries:
                sites |= joined
                tables.append(one)
                break
        else:
            parts.append((set(one[0]), [one]))
    return [tables for _, tables in parts]
