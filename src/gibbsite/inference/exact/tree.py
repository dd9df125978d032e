"""Clique trees of elimination orders.

Eliminating a site makes a table over the site and its neighbours at that moment, its clique; the separator, which is
the clique without the site, goes to the clique of the neighbour that is eliminated next. A clique contained in one
below it is merged with it. No memory of the size of a table is allocated here.

Children are numbered before parents. Members are listed in order of elimination: a clique begins with its own sites,
which are eliminated there, and ends with its separator, and axes have the same relative order in every table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite.graphs.elimination.order import EliminationOrder

MOST_AXES = 60  # A clique is a set of axes in the bits of an integer; tables of more than 2^60 entries are impossible


class CliqueTree(NamedTuple):
    """Cliques, children before parents.

    Clique c has the members ``site[start[c]]`` to ``site[start[c + 1]]``, of which the first ``own[c]`` are its own,
    and passes its separator to ``parent[c]`` (-1: none). ``home[i]`` is the clique where site i is eliminated;
    ``size`` and ``separator`` are numbers of entries.
    """

    start: Ints
    site: Ints
    own: Ints
    parent: Ints
    home: Ints
    card: Ints
    size: Floats
    separator: Floats


def build_tree(
    order: EliminationOrder, start: Ints, neighbour: Ints, cards: Ints, *, most_own: float = np.inf
) -> CliqueTree:
    """Build the clique tree of an order whose cliques have at most 60 members, for a graph in compressed rows.

    Cliques contained in another are merged while their own sites have at most ``most_own`` joint states.
    """
    n = cards.size
    links = [np.full(n, -1, np.int64) for _ in range(6)]
    lists = _Lists._make([*links, np.zeros(n + 1, np.int64), np.empty(order.members, np.int64)])
    count = int(_eliminate(order.sites, start, neighbour, lists))
    _merge(order.sites, cards, lists, float(most_own))
    tree = CliqueTree(
        start=np.zeros(n + 1, np.int64),
        site=np.empty(count + n, np.int64),
        own=np.zeros(n, np.int64),
        parent=np.full(n, -1, np.int64),
        home=np.empty(n, np.int64),
        card=np.ascontiguousarray(cards),
        size=np.ones(n),
        separator=np.ones(n),
    )
    m = int(_write(order.sites, lists, tree))
    used = int(tree.start[m])
    return CliqueTree(
        tree.start[: m + 1],
        tree.site[:used],
        tree.own[:m],
        tree.parent[:m],
        tree.home,
        tree.card,
        tree.size[:m],
        tree.separator[:m],
    )


class _Lists(NamedTuple):
    """Cliques while they are found, by rank, the position in the order of elimination.

    ``pool[first[v]]`` to ``pool[first[v + 1]]`` are the ranks of the members of clique v after v itself, ascending.
    ``child`` and ``sibling`` link the cliques that pass their separators to v. Merged cliques have the same
    ``bottom``, the first of them, and ``top[bottom]`` is the last.
    """

    rank: Ints
    mark: Ints
    child: Ints
    sibling: Ints
    bottom: Ints
    top: Ints
    first: Ints
    pool: Ints


@compiled_loop
def _eliminate(order: Ints, start: Ints, neighbour: Ints, lists: _Lists) -> Integer:
    """Eliminate symbolically; a clique consists of the later neighbours and the separators of its children."""
    n = order.size
    for v in range(n):
        lists.rank[order[v]] = v
    for v in range(n):
        begin = lists.first[v]
        end = begin
        lists.mark[v] = v
        for k in range(start[order[v]], start[order[v] + 1]):
            u = lists.rank[neighbour[k]]
            if u > v and lists.mark[u] != v:
                lists.mark[u] = v
                end = _insert(lists.pool, begin, end, u)
        c = lists.child[v]
        while c >= 0:
            for k in range(lists.first[c], lists.first[c + 1]):
                u = lists.pool[k]
                if lists.mark[u] != v:
                    lists.mark[u] = v
                    end = _insert(lists.pool, begin, end, u)
            c = lists.sibling[c]
        lists.first[v + 1] = end
        if end > begin:
            up = lists.pool[begin]
            lists.sibling[v] = lists.child[up]
            lists.child[up] = v
    return lists.first[n]


@compiled_loop
def _merge(order: Ints, cards: Ints, lists: _Lists, most_own: float) -> None:
    """Merge a clique with the child whose separator it equals."""
    n = order.size
    states = lists.mark  # of the own sites together, by the first of them
    for v in range(n):
        lists.bottom[v] = lists.top[v] = v
        states[v] = cards[order[v]]
    for v in range(n):
        width = lists.first[v + 1] - lists.first[v]
        if width > 0:
            up, low = lists.pool[lists.first[v]], lists.bottom[v]
            equal = width - 1 == lists.first[up + 1] - lists.first[up] and lists.bottom[up] == up
            if equal and float(states[low]) * cards[order[up]] <= most_own:
                lists.bottom[up] = low
                lists.top[low] = up
                states[low] *= cards[order[up]]


@compiled_loop
def _write(order: Ints, lists: _Lists, tree: CliqueTree) -> int:
    """Write the merged cliques, ordered by their last own site, which is later for a parent."""
    n = order.size
    number = lists.mark
    count = 0
    for v in range(n):
        low = lists.bottom[v]
        if lists.top[low] == v:
            number[low] = count
            count += 1
    at = 0
    for v in range(n):
        low = lists.bottom[v]
        c = number[low]
        tree.home[order[v]] = c
        tree.own[c] += 1
        if lists.top[low] == v:
            tree.site[at] = order[low]
            at += 1
            for k in range(lists.first[low], lists.first[low + 1]):
                tree.site[at] = order[lists.pool[k]]
                at += 1
            tree.start[c + 1] = at
            if lists.first[v + 1] > lists.first[v]:
                tree.parent[c] = number[lists.bottom[lists.pool[lists.first[v]]]]
    for c in range(count):
        for k in range(tree.start[c], tree.start[c + 1]):
            card = tree.card[tree.site[k]]
            tree.size[c] *= card
            if k >= tree.start[c] + tree.own[c]:
                tree.separator[c] *= card
    return count


@called
def _insert(pool: Ints, begin: int, end: int, u: int) -> int:
    """Insert into an ascending list; return its new end."""
    at = end
    while at > begin and pool[at - 1] > u:
        pool[at] = pool[at - 1]
        at -= 1
    pool[at] = u
    return end + 1
