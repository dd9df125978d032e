"""Plans of products of tables: the buckets of an elimination order, split into mini-buckets.

A table belongs to the bucket of its first site in the order. Where the product of all tables of a bucket would be too
large, they are divided among mini-buckets (Dechter and Rish 2003). The message of a mini-bucket, a table without the
site of its bucket, belongs to the bucket of its next site. No memory of the size of a table is allocated here.

Sites are numbered by their place in the order, and the axes of every table are in that order, so that the site of a
bucket is the slowest axis of all its tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.exact.plan import Outline

# Factors of a bucket are multiplied in advance if the product is no larger than the largest factor or than this.
_JOINED = 64


class BucketTables(NamedTuple):
    """Tables of logarithms in one pool, potentials before messages.

    Table t begins at ``at[t]``; its axes are the places ``site[start[t]]``, ... in the order, ascending, with the
    strides ``stride[start[t]]``, ....
    """

    at: Ints
    start: Ints
    site: Ints
    stride: Ints


class Buckets(NamedTuple):
    """Mini-buckets by bucket, in the order of elimination.

    Bucket p has the mini-buckets ``mini[p]`` to ``mini[p + 1]``. Mini-bucket m multiplies the tables
    ``table[first[m]]`` to ``table[first[m + 1]]``; its product has the axes ``site[start[m]]``, ... and ``size[m]``
    entries, its message is table ``message[m]``, or -1 if it is a number. ``mask`` belongs to ``table``: bit a is set
    if the table has axis a of the product. ``drawn[draw_start[p]]``, ... are all tables of bucket p, the first
    ``potentials[p]`` of them potentials.
    """

    card: Ints
    mini: Ints
    first: Ints
    table: Ints
    mask: Ints
    start: Ints
    site: Ints
    size: Ints
    message: Ints
    drawn: Ints
    draw_start: Ints
    potentials: Ints


@dataclass(frozen=True, eq=False)
class BucketPlan:
    """A plan of mini-buckets, before any table is allocated.

    ``order`` are the sites of the reduced model by place in the order, ``group`` the potential of each of its factors.
    Products have at most ``entries`` entries; ``pooled`` and ``scratch`` are the entries of all tables, and of the
    products that are stored at a time, ``work`` those of all products. ``splits`` counts the mini-buckets beyond the
    first of each bucket; with none, everything is exact.
    """

    tables: BucketTables
    buckets: Buckets
    order: Ints
    group: Ints
    entries: int
    pooled: int
    scratch: int
    work: float
    splits: int

    @property
    def bytes(self) -> float:
        """Memory for all tables and products."""
        return 8.0 * (self.pooled + self.scratch)


def largest_table(found: Outline) -> int:
    """Return the entries of the largest table of a model, the least size of mini-buckets."""
    problem = found.reduction.problem
    alone = int(problem.cards.max(initial=1))
    if not problem.table.size:
        return alone
    log_card = np.log2(problem.cards)[problem.member]
    widest = np.add.reduceat(log_card, problem.member_start[:-1])
    f = int(widest.argmax())
    members = problem.member[problem.member_start[f] : problem.member_start[f + 1]]
    return max(alone, int(math.prod(problem.cards[members].tolist())))


def plan_buckets(found: Outline, entries: int) -> BucketPlan:
    """Divide the tables of a model among mini-buckets whose products have at most ``entries`` entries."""
    least = largest_table(found)
    if entries < least:
        raise ArgumentError(
            f"{argument('entries')} must be at least {least:,}, the entries of the model's largest table, "
            f"got {entries:,}."
        )
    draft = _Draft(found, entries)
    for place in range(draft.order.size):
        draft.fill_bucket(place)
    return draft.finish()


def split_bucket(
    scopes: Sequence[tuple[int, ...]], card: Sequence[int], entries: int
) -> list[tuple[tuple[int, ...], list[int]]]:
    """Divide the tables of a bucket among mini-buckets: largest first, each to the first that has space for it.

    Returns the scope of each product and the positions of its tables in ``scopes``.
    """
    minis: list[tuple[tuple[int, ...], list[int]]] = []
    for t in sorted(range(len(scopes)), key=lambda t: -_entries(scopes[t], card)):
        for k, (product, members) in enumerate(minis):
            union = _union(product, scopes[t])
            if _entries(union, card) <= entries:
                minis[k] = (union, [*members, t])
                break
        else:
            minis.append((scopes[t], [t]))
    return minis


def _entries(scope: tuple[int, ...], card: Sequence[int]) -> int:
    return math.prod([card[place] for place in scope])


class _Draft:
    """A plan under construction; scopes are ascending tuples of places in the order."""

    def __init__(self, found: Outline, entries: int) -> None:
        problem = found.reduction.problem
        self.order = found.order.sites
        self.entries = entries
        self.card: list[int] = problem.cards[self.order].tolist()
        self.scopes: list[tuple[int, ...]] = []
        self.by_bucket: list[list[int]] = [[] for _ in self.card]
        self.group = self.join_factors(problem.member_start, problem.member)
        self.n_potentials = len(self.scopes)
        self.mini, self.first, self.table, self.mask = [0], [0], list[int](), list[int]()
        self.products: list[tuple[int, ...]] = []
        self.message, self.drawn, self.draw_start, self.potentials = (list[int](), list[int](), [0], list[int]())
        self.scratch = 0

    def join_factors(self, start: Ints, member: Ints) -> Ints:
        """Combine factors of a bucket whose product is small; return the potential of each factor."""
        place = np.empty(self.order.size, np.int64)
        place[self.order] = np.arange(self.order.size)
        places: list[int] = place[member].tolist()
        bounds: list[int] = start.tolist()
        factors = [tuple(sorted(places[a:b])) for a, b in pairwise(bounds)]
        sizes = [self.entries_of(scope) for scope in factors]
        group = np.zeros(len(factors), np.int64)
        for f in sorted(range(len(factors)), key=lambda f: -sizes[f]):
            scope = factors[f]
            here = self.by_bucket[scope[0]]
            for t in here:
                union = _union(self.scopes[t], scope)
                if union == self.scopes[t] or self.entries_of(union) <= min(_JOINED, self.entries):
                    self.scopes[t], group[f] = union, t
                    break
            else:
                group[f] = len(self.scopes)
                here.append(len(self.scopes))
                self.scopes.append(scope)
        return group

    def entries_of(self, scope: tuple[int, ...]) -> int:
        return _entries(scope, self.card)

    def fill_bucket(self, place: int) -> None:
        """Divide the tables of a bucket, and add the messages."""
        here = self.by_bucket[place]
        shares = split_bucket([self.scopes[t] for t in here], self.card, self.entries)
        minis = [(product, [here[k] for k in members]) for product, members in shares]
        if not minis:  # a site without factors
            minis.append(((place,), []))
        held = 0
        for product, members in minis:
            self.products.append(product)
            self.table += members
            self.mask += [_mask(product, self.scopes[t]) for t in members]
            self.first.append(len(self.table))
            held += self.entries_of(product)
            rest = product[1:]
            self.message.append(len(self.scopes) if rest else -1)
            if rest:
                self.by_bucket[rest[0]].append(len(self.scopes))
                self.scopes.append(rest)
        self.mini.append(len(self.products))
        self.drawn += sorted(here)  # potentials have the lower numbers
        self.draw_start.append(len(self.drawn))
        self.potentials.append(sum(t < self.n_potentials for t in here))
        self.scratch = max(self.scratch, held)

    def finish(self) -> BucketPlan:
        sizes = [self.entries_of(scope) for scope in self.scopes]
        at = np.concatenate([[0], np.cumsum(sizes, dtype=np.float64)])
        strides: list[int] = []
        for scope in self.scopes:
            steps, step = [], 1
            for place in reversed(scope):
                steps.append(step)
                step *= self.card[place]
            strides += steps[::-1]
        tables = BucketTables(
            _longs(at[:-1]),
            row_starts(_longs([len(scope) for scope in self.scopes])),
            _longs([place for scope in self.scopes for place in scope]),
            _longs(strides),
        )
        products = [self.entries_of(product) for product in self.products]
        buckets = Buckets(
            card=_longs(self.card),
            mini=_longs(self.mini),
            first=_longs(self.first),
            table=_longs(self.table),
            mask=_longs(self.mask),
            start=row_starts(_longs([len(product) for product in self.products])),
            site=_longs([place for product in self.products for place in product]),
            size=_longs(products),
            message=_longs(self.message),
            drawn=_longs(self.drawn),
            draw_start=_longs(self.draw_start),
            potentials=_longs(self.potentials),
        )
        splits = len(self.products) - len(self.card)
        return BucketPlan(
            tables,
            buckets,
            self.order,
            self.group,
            self.entries,
            int(at[-1]),
            self.scratch,
            float(sum(products)),
            splits,
        )


def _longs(values: object) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _union(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    both = {*a, *b}
    return a if len(both) == len(a) else tuple(sorted(both))


def _mask(product: tuple[int, ...], scope: tuple[int, ...]) -> int:
    inside = set(scope)
    return sum(1 << axis for axis, place in enumerate(product) if place in inside)
