"""Sums over weighted draws of any proposal, from which estimates, errors and diagnostics are computed.

Draws come in blocks, and block j belongs to group j mod :data:`GROUPS`. Groups have only the proposal in common, so
that their agreement is informative, and the result is bit-identical for any number of threads that work on different
groups. Weights are stored relative to the largest one of their group.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Integers, Ints, Ints32
from gibbsite._numba.jit import Integer, called, compiled_loop, inlined

GROUPS = 16
#: Number of largest weights kept of each group; the tail that is fitted has at most half as many.
KEPT = 2048
TOTAL, SQUARES = 0, 1  # columns of ``sums``: total weight, total of squares
DRAWN, POSITIVE = 0, 1  # columns of ``counts``: draws, draws of positive weight


class Tally(NamedTuple):
    """Sums over the draws from one proposal, a row for each group.

    The cells (states) of recorded site k begin at ``offset[k]``, and its codes are in row ``row[k]`` of a block.
    ``first`` and ``second`` (groups, cells) are the total weight of the draws with the state, and the total of the
    squares of weights; ``sums`` (groups, 2) are both totals over all draws. ``scale`` (groups,) is the log-weight that
    counts as one there, the largest of the group so far. ``counts`` (groups, 2) are draws, and draws of positive
    weight; ``tail`` (groups, KEPT) the largest log-weights, as a heap with the least of them first.
    """

    offset: Ints
    row: Ints
    first: Floats
    second: Floats
    sums: Floats
    scale: Floats
    counts: Ints
    tail: Floats

    @property
    def draws(self) -> int:
        """Draws made."""
        return int(self.counts[:, DRAWN].sum())

    @property
    def positive(self) -> int:
        """Draws of positive weight."""
        return int(self.counts[:, POSITIVE].sum())


def make_tally(cards: Integers, rows: Integers | None = None) -> Tally:
    """Return an empty tally for sites of these numbers of states, in ``rows`` of a block, by default in order."""
    offset = np.zeros(len(cards) + 1, np.int64)
    np.cumsum(cards, out=offset[1:])
    cells = int(offset[-1])
    return Tally(
        offset,
        np.arange(len(cards)) if rows is None else np.asarray(rows, np.int64),
        np.zeros((GROUPS, cells)),
        np.zeros((GROUPS, cells)),
        np.zeros((GROUPS, 2)),
        np.full(GROUPS, -np.inf),
        np.zeros((GROUPS, 2), np.int64),
        np.full((GROUPS, KEPT), -np.inf),
    )


@compiled_loop
def add_block(tally: Tally, group: int, x: Ints32, log_weights: Floats, w: Floats) -> None:
    """Add a block of draws to a group: ``x`` has a row per site, ``w`` is scratch space for the draws."""
    tally_block(tally, group, x, log_weights, w, log_weights.size)


@called
def tally_block(tally: Tally, group: Integer, x: Ints32, log_weights: Floats, w: Floats, many: Integer) -> None:
    """Add the first ``many`` draws of a block to a group."""
    g = np.uintp(group)
    top = -np.inf
    for b in range(many):
        top = max(top, log_weights[b])
        _keep(tally, g, log_weights[b])
    tally.counts[g, DRAWN] += many
    if top == -np.inf:
        return
    if top > tally.scale[g]:
        _rescale(tally, g, top)
    scale = tally.scale[g]
    total, squares, positive = 0.0, 0.0, 0
    for b in range(many):
        w[b] = math.exp(log_weights[b] - scale)
        total += w[b]
        squares += w[b] * w[b]
        positive += w[b] > 0.0
    tally.sums[g, TOTAL] += total
    tally.sums[g, SQUARES] += squares
    tally.counts[g, POSITIVE] += positive
    for site in range(tally.offset.size - 1):
        i = np.uintp(tally.row[site])
        cell = np.uintp(tally.offset[site])
        if tally.offset[site + 1] - tally.offset[site] == 2:
            _add_binary(tally, g, cell, x, i, w, many, total, squares)
        else:
            for b in range(many):
                at = cell + np.uintp(x[i, b])
                tally.first[g, at] += w[b]
                tally.second[g, at] += w[b] * w[b]


@inlined
def _add_binary(
    tally: Tally,
    g: Integer,
    cell: Integer,
    x: Ints32,
    i: Integer,
    w: Floats,
    many: Integer,
    total: float,
    squares: float,
) -> None:
    """Add a site of two states: two pairs of interleaved sums for state 1; those of state 0 are the rest."""
    a0, a1, b0, b1, ones = 0.0, 0.0, 0.0, 0.0, 0
    for half in range(many // 2):
        b = np.uintp(2 * half)
        c = b + np.uintp(1)
        u, v = w[b] * x[i, b], w[c] * x[i, c]
        a0 += u
        a1 += v
        b0 += u * w[b]
        b1 += v * w[c]
        ones += x[i, b] + x[i, c]
    if many % 2:
        b = np.uintp(many - 1)
        u = w[b] * x[i, b]
        a0 += u
        b0 += u * w[b]
        ones += x[i, b]
    one, square = a0 + a1, b0 + b1
    tally.first[g, cell + np.uintp(1)] += one
    tally.second[g, cell + np.uintp(1)] += square
    if ones < many:  # otherwise the difference is rounding
        tally.first[g, cell] += max(total - one, 0.0)
        tally.second[g, cell] += max(squares - square, 0.0)


@called
def _rescale(tally: Tally, g: Integer, top: float) -> None:
    """Rescale the sums of a group so that the log-weight ``top`` counts as one."""
    if tally.scale[g] > -np.inf:
        by = math.exp(tally.scale[g] - top)
        tally.sums[g, TOTAL] *= by
        tally.sums[g, SQUARES] *= by * by
        for c in range(tally.first.shape[1]):
            tally.first[g, c] *= by
            tally.second[g, c] *= by * by
    tally.scale[g] = top


@inlined
def _keep(tally: Tally, g: Integer, log_weight: float) -> None:
    """Keep a log-weight if it is among the largest."""
    if log_weight > tally.tail[g, 0]:
        _sift(tally.tail, g, log_weight)


@called
def _sift(tail: Floats, g: Integer, value: float) -> None:
    """Replace the least value of a heap."""
    k = 0
    size = tail.shape[1]
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and tail[g, child + 1] < tail[g, child]:
            child += 1
        if tail[g, child] >= value:
            break
        tail[g, k] = tail[g, child]
        k = child
    tail[g, k] = value
