"""A network and a proposal as flat arrays, and the compiled loop that draws from them.

The proposal has a conditional table for each site, over the parents that the site has in the network. A block of draws
goes site by site: random words for the whole block, the rows of the tables by the states of the parents, the states by
comparing words with the cumulative sums of the rows. A word has 32 bits; if it equals the upper half of a sum, which is
rare, 32 more bits decide, so that probabilities are exact to 2^-64.

Random words are keyed by seed, source, block and position: draws do not depend on the thread that makes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Integers, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite._numba.random.generators import WORDS, fill_keyed, single_word
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.importance.base import BLOCK
from gibbsite.inference.importance.network import EXACT, BayesNetwork, Factor
from gibbsite.inference.importance.tally import Tally, tally_block

#: Most proposals in a mixture.
MOST_MIXED = 4
_LANES = BLOCK // 4
_TO_WORD = 4294967296.0


class NetworkLayout(NamedTuple):
    """The sites that are drawn, in order, with the layout of their tables and of the likelihoods.

    Position t has ``card[t]`` states and the parents ``parent[start[t]:start[t + 1]]``, with strides in rows. Its
    table begins at ``table[t]`` and has a row for each configuration of the parents, with an entry per state.
    Likelihood f has the members ``member[factor_start[f]:...]``, with strides in entries, and begins at ``entry[f]``
    of the log-likelihoods ``logs``. ``constant`` is part of all log-weights.
    """

    card: Ints
    start: Ints
    parent: Ints
    stride: Ints
    table: Ints
    factor_start: Ints
    member: Ints
    member_stride: Ints
    entry: Ints
    logs: Floats
    constant: float


class ProposalTables(NamedTuple):
    """Conditional tables to draw from, one set for each of several mixed proposals.

    ``high`` and ``low`` (proposals, entries) are the upper and lower halves of the cumulative sums of each row, in
    units of 2^-64; ``log_law`` (entries,) and ``log_proposal`` (proposals, entries) logarithms of the conditional
    tables and of the proposals. ``weighs`` (drawn,) tells whether a proposal of a position ever differs from the
    conditional table. Draws ``lane[c]`` to ``lane[c + 1]`` of each block are from proposal c.
    """

    high: Words32
    low: Words32
    log_law: Floats
    log_proposal: Floats
    weighs: Bools
    lane: Ints


class NetworkScratch(NamedTuple):
    """Space for one block: states, random words, positions in tables, log-weights, logarithms of proposals."""

    x: Ints32
    words: Words32
    at: Ints32
    log_weights: Floats
    w: Floats
    log_q: Floats


def lay_out(network: BayesNetwork, cards: Integers, constant: float) -> tuple[NetworkLayout, Floats]:
    """Return a network as arrays, and the logarithms of its conditional tables, table after table."""
    place = {site: t for t, site in enumerate(network.order)}
    card = np.array([cards[site] for site in network.order], np.int64)
    start, parent, stride = _members(network.laws, place, card, last=False)
    sizes = [law.logs.size for law in network.laws]
    factor_start, member, member_stride = _members(network.likelihoods, place, card, last=True)
    entries = [factor.logs.size for factor in network.likelihoods]
    table, entry = row_starts(np.array(sizes, np.int64)), row_starts(np.array(entries, np.int64))
    logs = _joined(network.likelihoods)
    structure = NetworkLayout(
        card, start, parent, stride, table, factor_start, member, member_stride, entry, logs, constant
    )
    return structure, _joined(network.laws)


def _joined(factors: list[Factor]) -> Floats:
    return np.concatenate([np.zeros(0), *(factor.logs.ravel() for factor in factors)])


def _members(factors: list[Factor], place: dict[int, int], card: Ints, last: bool) -> tuple[Ints, Ints, Ints]:
    """Return positions and strides of the members of factors; without ``last``, strides in rows of all but the last."""
    start, member, stride = [0], [], []
    for factor in factors:
        places = [place[site] for site in factor.sites]
        step = 1 if last else card[places[-1]]
        strides = np.cumprod([1, *card[places[:0:-1]]])[::-1] // step
        many = len(places) - (not last)
        member += places[:many]
        stride += strides[:many].tolist()
        start.append(len(member))
    return np.array(start), np.array(member, np.int64), np.array(stride, np.int64)


def proposal_tables(
    structure: NetworkLayout, laws: Floats, proposals: Floats, shares: Sequence[float]
) -> ProposalTables:
    """Return the tables to draw from a mixture of proposals, whose weights have the layout of ``laws``.

    Each proposal gets its share of the draws of each block, at least one; a draw is weighted under the whole mixture.
    Rows of ``proposals`` are normalised here; they may be zero only where draws have weight zero.
    """
    lane = np.round(np.concatenate([[0.0], np.cumsum(shares)]) * BLOCK).astype(np.int64)
    for c in range(len(shares)):
        lane[c + 1 : -1] = np.maximum(lane[c + 1 : -1], lane[c] + 1)
    for c in range(len(shares) - 1, 0, -1):
        lane[c] = min(lane[c], lane[c + 1] - 1)
    high, low = np.zeros(proposals.shape, np.uint32), np.zeros(proposals.shape, np.uint32)
    logs = np.zeros(proposals.shape)
    weighs = np.zeros(structure.card.size, np.bool_)
    for c in range(len(shares)):
        _fill_tables(structure, laws, proposals[c], high[c], low[c], logs[c], weighs)
    return ProposalTables(high, low, laws, logs, weighs, lane)


@compiled_loop
def _fill_tables(
    structure: NetworkLayout, laws: Floats, proposal: Floats, high: Words32, low: Words32, logs: Floats, weighs: Bools
) -> None:
    for t in range(structure.card.size):
        card = structure.card[t]
        for row in range(structure.table[t], structure.table[t + 1], card):
            total = 0.0
            for a in range(card):
                total += proposal[row + a]
            passed = 0.0
            for a in range(card):
                share = proposal[row + a] / total if total > 0.0 else 1.0 / card
                passed += share
                part = min(passed, 1.0) * _TO_WORD
                whole = min(np.floor(part), _TO_WORD - 1.0)
                high[row + a] = np.uint32(whole)
                low[row + a] = np.uint32(min(np.floor((part - whole) * _TO_WORD), _TO_WORD - 1.0))
                logs[row + a] = np.log(share) if share > 0.0 else -np.inf
                if abs(share - np.exp(laws[row + a])) > EXACT * share:
                    weighs[t] = True


def make_scratch(structure: NetworkLayout) -> NetworkScratch:
    """Allocate the space for one block."""
    return NetworkScratch(
        np.zeros((structure.card.size, BLOCK), np.int32),
        np.zeros(BLOCK, np.uint32),
        np.zeros(BLOCK, np.int32),
        np.zeros(BLOCK),
        np.zeros(BLOCK),
        np.zeros((MOST_MIXED, BLOCK)),
    )


@compiled_loop
def draw_blocks(
    structure: NetworkLayout,
    tables: ProposalTables,
    key: Words32,
    first: int,
    blocks: int,
    step: int,
    scratch: NetworkScratch,
    tally: Tally,
    group: int,
) -> None:
    """Draw blocks and add them to a group of a tally; with group -1 the last block stays in ``scratch``."""
    for k in range(blocks):
        draw_block(structure, tables, key, first + k * step, scratch)
        if group >= 0:
            tally_block(tally, group, scratch.x, scratch.log_weights, scratch.w, BLOCK)


@called
def draw_block(
    structure: NetworkLayout, tables: ProposalTables, key: Words32, block: Integer, scratch: NetworkScratch
) -> None:
    """Draw one block: states and log-weights."""
    x, at, log_weights = scratch.x, scratch.at, scratch.log_weights
    laws = tables.lane.size - 1
    for b in range(BLOCK):
        log_weights[b] = structure.constant
        for c in range(laws):
            scratch.log_q[c, b] = 0.0
    weighed = False
    for t in range(structure.card.size):
        fill_keyed(scratch.words, key[0], key[1], block, t * _LANES, _LANES, WORDS)
        card = np.int32(structure.card[t])
        _look_up(at, x, structure.parent, structure.stride, structure.start[t], structure.start[t + 1])
        base = structure.table[t]
        ties = np.int64(0)
        for b in range(BLOCK):
            at[b] *= card
            x[t, b] = 0
        for c in range(laws):
            for a in range(card - 1):
                column = np.uintp(base + a)
                for b in range(tables.lane[c], tables.lane[c + 1]):
                    bar = tables.high[np.uintp(c), column + np.uintp(at[b])]
                    word = scratch.words[b]
                    x[t, b] += np.int32(word > bar)
                    ties += np.int64(word == bar)
        if ties:
            _settle_ties(structure, tables, key, block, scratch, t)
        if tables.weighs[t]:
            weighed = True
            for b in range(BLOCK):
                at[b] += x[t, b]
                log_weights[b] += tables.log_law[np.uintp(base) + np.uintp(at[b])]
            for c in range(laws):
                for b in range(BLOCK):
                    entry = np.uintp(base) + np.uintp(at[b])
                    scratch.log_q[c, b] += tables.log_proposal[np.uintp(c), entry]
    if weighed:
        _weigh(tables, scratch)
    for f in range(structure.entry.size - 1):
        first, last = structure.factor_start[f], structure.factor_start[f + 1]
        _look_up(at, x, structure.member, structure.member_stride, first, last)
        base = structure.entry[f]
        for b in range(BLOCK):
            log_weights[b] += structure.logs[np.uintp(base) + np.uintp(at[b])]


@called
def _weigh(tables: ProposalTables, scratch: NetworkScratch) -> None:
    """Divide weights by the probabilities of the draws under the mixture."""
    laws = tables.lane.size - 1
    for b in range(BLOCK):
        top = scratch.log_q[0, b]
        for c in range(1, laws):
            top = max(top, scratch.log_q[c, b])
        if laws > 1:
            mean = 0.0
            for c in range(laws):
                share = (tables.lane[c + 1] - tables.lane[c]) / BLOCK
                mean += share * math.exp(scratch.log_q[c, b] - top)
            top += math.log(mean)
        scratch.log_weights[b] -= top


@called
def _look_up(at: Ints32, x: Ints32, member: Ints, stride: Ints, first: Integer, last: Integer) -> None:
    """Write, for each draw, the position in the table that the states of the members select."""
    for b in range(BLOCK):
        at[b] = 0
    for k in range(first, last):
        row = np.uintp(member[k])
        by = np.int32(stride[k])
        for b in range(BLOCK):
            at[b] += by * x[row, b]


@called
def _settle_ties(
    structure: NetworkLayout, tables: ProposalTables, key: Words32, block: Integer, scratch: NetworkScratch, t: Integer
) -> None:
    """Draw 32 more bits where a word equals the upper half of a sum."""
    card, base = structure.card[t], structure.table[t]
    c = 0
    for b in range(BLOCK):
        while b >= tables.lane[c + 1]:
            c += 1
        row = base + scratch.at[b]
        word = scratch.words[b]
        tie = False
        for a in range(card - 1):
            tie |= tables.high[c, row + a] == word
        if tie:
            more = single_word(key[0], key[1], block, t * BLOCK + b)
            state = np.int32(0)
            for a in range(card - 1):
                above = word > tables.high[c, row + a]
                level = word == tables.high[c, row + a] and more >= tables.low[c, row + a]
                state += np.int32(above or level)
            scratch.x[t, b] = state
