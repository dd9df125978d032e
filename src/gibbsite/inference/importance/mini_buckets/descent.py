"""Weighted draws from the messages of mini-buckets, beginning with the last site of the order.

Given the sites drawn already, a site is drawn in proportion to the product of all tables of its bucket. That is the
weighted geometric mean of the distributions of its mini-buckets (each given its other sites), divided by the sum over
the states of the site, which Hoelder's inequality bounds by one. So a weight, the unnormalised probability of a state
over the probability of drawing it, never exceeds the bound of the partition function. The same holds for the arithmetic
mean of [1]_, which also draws states that one mini-bucket allows and another excludes. Without splits all weights equal
the partition function, and the draws are draws from the model.

Draws are made in parallel, site by site, and each table is looked up for all of them before the next one.

References
----------
.. [1] Liu, Q., Fisher, J. and Ihler, A. (2015). Probabilistic variational bounds for graphical models. NIPS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words32
from gibbsite._numba.exponential import exp_below, log_above
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite._numba.random.generators import Words, philox, uniform
from gibbsite.inference.importance.base import BLOCK
from gibbsite.inference.importance.mini_buckets.buckets import Buckets, BucketTables
from gibbsite.inference.importance.tally import Tally, tally_block

POSSIBLE = 1e-307  # the computed exponential of minus infinity is below this; larger values are possible states


class Lanes(NamedTuple):
    """Space for a block of draws, one per column.

    ``state`` has a row per place in the order, ``codes`` a row per queried site; ``score`` and ``known`` have a row
    per state: the log-weights of the states of a site, and the part of its potentials.
    """

    state: Ints32
    codes: Ints32
    offset: Ints
    score: Floats
    known: Floats
    total: Floats
    top: Floats
    log_weight: Floats

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may hold NaN."""
        return ("score", "known", "total", "top")

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays read from a file."""
        return {"codes": (0, cards[:, None] - 1), "state": (0, int(cards.max(initial=1)) - 1)}


class Answers(NamedTuple):
    """Which codes are recorded: row r has the codes of place ``place[r]``, from ``first[r]`` on in ``code``.

    A negative place is a determined site, whose code is ``first[r]``.
    """

    place: Ints
    first: Ints
    code: Ints


class DrawTables(NamedTuple):
    """The distribution of draws: buckets, their tables with the entries in ``pool``, and the codes to record."""

    tables: BucketTables
    buckets: Buckets
    pool: Floats
    answers: Answers


def make_lanes(buckets: Buckets, rows: int) -> Lanes:
    """Allocate space for a block of draws of which ``rows`` sites are recorded."""
    most = int(buckets.card.max(initial=1))
    return Lanes(
        np.zeros((buckets.card.size, BLOCK), np.int32),
        np.zeros((rows, BLOCK), np.int32),
        np.zeros(BLOCK, np.int64),
        np.zeros((most, BLOCK)),
        np.zeros((most, BLOCK)),
        np.zeros(BLOCK),
        np.zeros(BLOCK),
        np.zeros(BLOCK),
    )


@compiled_loop
def draw_blocks(
    source: DrawTables,
    lanes: Lanes,
    key: Words32,
    log_constant: float,
    equal: bool,
    tally: Tally,
    group: int,
    first: int,
    blocks: int,
    step: int,
) -> None:
    """Draw blocks and add them to a group of a tally; a block depends on the key and its number alone.

    The constant is added to log-weights or, if all weights are equal, is their value, without rounding.
    """
    for number in range(blocks):
        rng = _block_words(first + number * step, key)
        draw_lanes(source, lanes, rng)
        for b in range(BLOCK):
            lanes.log_weight[b] = log_constant if equal else lanes.log_weight[b] + log_constant
        write_codes(source.answers, lanes)
        tally_block(tally, group, lanes.codes, lanes.log_weight, lanes.total, BLOCK)


@called
def _block_words(number: Integer, key: Words32) -> Words:
    """Return the start words of the generator of a block."""
    word, up = np.uint64(number), np.uint64(32)
    low, high = np.uint32(word & np.uint64(0xFFFFFFFF)), np.uint32(word >> up)
    zero, one = np.uint32(0), np.uint32(1)
    a, b, c, d = philox(low, high, zero, zero, key[0], key[1])
    e, f, g, h = philox(low, high, one, zero, key[0], key[1])
    return (
        np.uint64(a) << up | np.uint64(b),
        np.uint64(c) << up | np.uint64(d),
        np.uint64(e) << up | np.uint64(f),
        np.uint64(g) << up | np.uint64(h) | np.uint64(1),  # the generator must not start at zero
    )


@called
def write_codes(answers: Answers, lanes: Lanes) -> None:
    """Translate states into codes of the model."""
    n = np.uintp(BLOCK)
    for row in range(answers.place.size):
        r = np.uintp(row)
        place, code = answers.place[r], answers.first[r]
        if place < 0:
            for b in range(n):
                lanes.codes[r, b] = code
        else:
            for b in range(n):
                lanes.codes[r, b] = answers.code[code + lanes.state[place, b]]


@called
def draw_lanes(source: DrawTables, lanes: Lanes, rng: Words) -> Words:
    """Draw states by place in the order, and their log-weights."""
    tables, buckets, pool = source.tables, source.buckets, source.pool
    n = np.uintp(BLOCK)
    for b in range(n):
        lanes.log_weight[b] = 0.0
    for p in range(buckets.card.size - 1, -1, -1):
        card = buckets.card[p]
        for k in range(card):
            for b in range(n):
                lanes.score[k, b] = 0.0
        first, last = buckets.draw_start[p], buckets.draw_start[p + 1]
        inner = first + buckets.potentials[p]
        for at in range(first, inner):
            _look_up(tables, pool, lanes, buckets.drawn[at], card)
        for k in range(card):
            for b in range(n):
                lanes.known[k, b] = lanes.score[k, b]
        for at in range(inner, last):
            _look_up(tables, pool, lanes, buckets.drawn[at], card)
        for b in range(n):
            lanes.top[b] = -np.inf
            lanes.total[b] = 0.0
        for k in range(card):
            for b in range(n):
                lanes.top[b] = max(lanes.top[b], lanes.score[k, b])
        for k in range(card):
            for b in range(n):
                lanes.score[k, b] = exp_below(lanes.score[k, b] - lanes.top[b])
                lanes.total[b] += lanes.score[k, b]
        for b in range(n):
            rng, u = uniform(rng)
            left = u * lanes.total[b]
            chosen = 0
            for k in range(card):
                if lanes.score[k, b] > POSSIBLE:
                    chosen = k  # rounding must not lead outside the support
                    left -= lanes.score[k, b]
                    if left < 0.0:
                        break
            lanes.state[p, b] = chosen
            lanes.top[b] = lanes.score[chosen, b]
            lanes.log_weight[b] += lanes.known[chosen, b]
        for b in range(n):  # the probability of a draw is its score divided by the total
            lanes.log_weight[b] += log_above(lanes.total[b] / lanes.top[b])
    return rng


@called
def _look_up(tables: BucketTables, pool: Floats, lanes: Lanes, t: Integer, card: Integer) -> None:
    """Add the entries of a table to the scores of the states of its first site."""
    n = np.uintp(BLOCK)
    for b in range(n):
        lanes.offset[b] = tables.at[t]
    for a in range(tables.start[t] + 1, tables.start[t + 1]):
        site, stride = np.uintp(tables.site[a]), tables.stride[a]
        for b in range(n):
            lanes.offset[b] += lanes.state[site, b] * stride
    step = tables.stride[tables.start[t]]
    for k in range(card):
        for b in range(n):
            lanes.score[k, b] += pool[np.uintp(lanes.offset[b] + k * step)]
