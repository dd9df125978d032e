"""An upper bound of all weights of a proposal: their largest value, by mini-buckets.

A log-weight is a sum of tables, the ratios of conditional tables to proposals and the likelihoods. Sites are maximised
out one after another. Where the tables of a site would together be too large, they are split into mini-buckets that
are maximised separately, which can only increase the result (Dechter and Rish 2003).

References
----------
.. [1] Dechter, R. and Rish, I. (2003). Mini-buckets: a general scheme for bounded inference. Journal of the ACM 50(2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.graphs.elimination.order import find_order, interaction_graph
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.importance.mini_buckets.buckets import split_bucket

Table = tuple[tuple[int, ...], Floats]


def bound_sum(tables: Sequence[Table], cards: Ints, entries: int) -> float:
    """Return an upper bound of a sum of tables over all states; the maximum itself if nothing is split.

    Tables are pairs of sites and an array with an axis each; ``entries`` limits the size of their sums.
    """
    constant = sum(float(table) for sites, table in tables if not sites)
    left = [one for one in tables if one[0]]
    if not left:
        return constant
    member = np.array([site for sites, _ in left for site in sites], np.int64)
    start = row_starts(np.array([len(sites) for sites, _ in left]))
    order = find_order(*interaction_graph(start, member, cards.size), np.maximum(cards, 2), tries=10).sites
    rank = np.empty(cards.size, np.int64)
    rank[order] = np.arange(cards.size)
    card: list[int] = cards[order].tolist()
    buckets: list[list[Table]] = [[] for _ in card]
    for sites, table in left:
        axes = np.argsort(rank[list(sites)])
        places = tuple(rank[list(sites)][axes].tolist())
        buckets[places[0]].append((places, table.transpose(axes)))
    for bucket in buckets:
        for product, members in split_bucket([places for places, _ in bucket], card, entries):
            total = np.zeros((1,) * len(product))
            for places, table in (bucket[k] for k in members):
                total = total + table.reshape([card[place] if place in places else 1 for place in product])
            if len(product) > 1:
                buckets[product[1]].append((product[1:], total.max(axis=0)))
            else:
                constant += float(total.max(axis=0))
        bucket.clear()
    return constant
