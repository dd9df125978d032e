"""Proposals for networks that account for the evidence, by messages of belief propagation or learned from draws.

*Messages* are passed over the factors of the network, conditional distributions and likelihoods, for some passes. The
product of the messages to a site from all factors but its own conditional distribution is the support of each state by
later evidence; the proposal of the site is its conditional distribution times that product, row by row (evidence
pre-propagation [1]_). On networks without loops this is the posterior itself, and all weights are equal. States with
small messages keep a small probability, so that weights stay bounded if messages are wrong.

*Learning* (AIS-BN [2]_) takes draws in stages. After each, the table of a site moves towards the distribution of its
states given its parents among the weighted draws so far, by a step that depends on their effective number in that row;
a part of the earlier table is kept, so that weights stay bounded. Draws come from the mixture of the learned proposal
and those it is learned from, so that no stage can lose the support of an earlier one. They are not used for estimates:
the proposal is frozen first.

References
----------
.. [1] Yuan, C. and Druzdzel, M. J. (2003). An importance sampling algorithm based on evidence pre-propagation.
   Uncertainty in Artificial Intelligence.
.. [2] Cheng, J. and Druzdzel, M. J. (2000). AIS-BN: an adaptive importance sampling algorithm for evidential reasoning
   in large Bayesian networks. Journal of Artificial Intelligence Research 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words32
from gibbsite._numba.jit import Integer, called, compiled_loop, inlined
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.importance.base import BLOCK
from gibbsite.inference.importance.network import BayesNetwork
from gibbsite.inference.importance.tables import (
    NetworkLayout,
    NetworkScratch,
    ProposalTables,
    draw_blocks,
    make_scratch,
    proposal_tables,
)
from gibbsite.inference.importance.tally import make_tally

_LEAST = 1e-30  # lower limit of messages, so that products of a few stay above zero
_MOST_AXES = 64
_MOST_WORK = 1e8  # entries times members, of all passes: about half a second


class _Messages(NamedTuple):
    """Factors over positions, and messages from each to each of its members.

    ``start`` and ``member`` list the members of each factor; its table, last member fastest, begins at ``entry`` of
    ``value``. The message to a member begins at ``cell`` of ``heard``, in logarithms; ``total`` sums these by position
    and state, laid out by ``offset`` and ``card``.
    """

    start: Ints
    member: Ints
    entry: Ints
    value: Floats
    cell: Ints
    offset: Ints
    card: Ints
    heard: Floats
    total: Floats


class _Space(NamedTuple):
    """Scratch space: incoming and outgoing messages of one factor, digits, products before and after."""

    incoming: Floats
    outgoing: Floats
    begin: Ints
    digit: Ints
    before: Floats
    after: Floats


def hear_evidence(network: BayesNetwork, structure: NetworkLayout, passes: int) -> Floats:
    """Return the product of messages to each position from all factors but its own, by state, with maximum 1."""
    factors = [*network.laws, *network.likelihoods]
    place = {site: t for t, site in enumerate(network.order)}
    member = np.array([place[site] for factor in factors for site in factor.sites], np.int64)
    sizes = np.array([len(factor.sites) for factor in factors], np.int64)
    start, entry = row_starts(sizes), row_starts(np.array([factor.logs.size for factor in factors], np.int64))
    value = np.concatenate([np.zeros(0), *(np.exp(f.logs - f.logs.max()).ravel() for f in factors)])
    offset, cell = row_starts(structure.card), row_starts(structure.card[member])
    messages = _Messages(
        start, member, entry, value, cell, offset, structure.card, np.zeros(int(cell[-1])), np.zeros(int(offset[-1]))
    )
    widest = int(np.diff(cell[start]).max(initial=1))
    space = _Space(
        np.zeros(widest),
        np.zeros(widest),
        np.zeros(_MOST_AXES, np.int64),
        np.zeros(_MOST_AXES, np.int64),
        np.zeros(_MOST_AXES + 1),
        np.zeros(_MOST_AXES + 1),
    )
    work = float(np.sum(np.diff(entry) * sizes)) + 1.0
    _pass_messages(messages, space, len(network.laws), max(2, min(passes, int(_MOST_WORK / work))))
    heard = np.zeros(int(offset[-1]))
    _collect(messages, heard)
    return heard


@compiled_loop
def _pass_messages(m: _Messages, space: _Space, laws: int, passes: int) -> None:
    """Send messages forwards along the network once, then backwards and forwards until they converge."""
    for f in range(laws):
        _send(m, space, f)
    factors = m.start.size - 1
    for _ in range(passes):
        change = 0.0
        for k in range(factors):
            change = max(change, _send(m, space, factors - 1 - k))
        for f in range(laws):
            change = max(change, _send(m, space, f))
        if change < 1e-6:
            break


@called
def _send(m: _Messages, space: _Space, f: Integer) -> float:
    """Update the messages of a factor to its members; return the largest change."""
    first, last = m.start[f], m.start[f + 1]
    width = last - first
    here: Any = np.int64(0)
    for k in range(width):
        i: Any = m.member[first + k]
        space.begin[k], space.digit[k] = here, 0
        top: Any = -np.inf
        for a in range(m.card[i]):
            top = max(top, m.total[m.offset[i] + a] - m.heard[m.cell[first + k] + a])
        for a in range(m.card[i]):
            log = m.total[m.offset[i] + a] - m.heard[m.cell[first + k] + a] - top
            space.incoming[here + a] = max(math.exp(log), _LEAST)
            space.outgoing[here + a] = 0.0
        here += m.card[i]
    _sum_out(m, space, f, width)
    change = 0.0
    for k in range(width):
        i = m.member[first + k]
        total = 0.0
        for a in range(m.card[i]):
            total += space.outgoing[space.begin[k] + a]
        for a in range(m.card[i]):
            share = max(space.outgoing[space.begin[k] + a] / total, _LEAST) if total > 0.0 else 1.0
            at = m.cell[first + k] + a
            fresh = math.log(share)
            change = max(change, abs(math.exp(fresh) - math.exp(m.heard[at])))
            m.total[m.offset[i] + a] += fresh - m.heard[at]
            m.heard[at] = fresh
    return change


@called
def _sum_out(m: _Messages, space: _Space, f: Integer, width: Integer) -> None:
    """Sum the entries of a factor, each times the messages of all members but the recipient."""
    begin, digit, before, after = space.begin, space.digit, space.before, space.after
    before[0] = 1.0
    changed = 0
    for at in range(m.entry[f], m.entry[f + 1]):
        for k in range(changed, width):
            before[k + 1] = before[k] * space.incoming[begin[k] + digit[k]]
        value = m.value[at]
        if value > 0.0:
            after[width] = value
            for back in range(width):
                k = width - 1 - back
                space.outgoing[begin[k] + digit[k]] += before[k] * after[k + 1]
                after[k] = after[k + 1] * space.incoming[begin[k] + digit[k]]
        changed = width - 1
        while changed >= 0:
            digit[changed] += 1
            if digit[changed] < m.card[m.member[m.start[f] + changed]]:
                break
            digit[changed] = 0
            changed -= 1
        changed = max(changed, 0)


@compiled_loop
def _collect(m: _Messages, heard: Floats) -> None:
    """Divide the product of messages to each position by the message of its own conditional distribution."""
    for t in range(m.card.size):
        own = m.start[t + 1] - 1  # the site of a conditional table is its last member
        top = -np.inf
        for a in range(m.card[t]):
            top = max(top, m.total[m.offset[t] + a] - m.heard[m.cell[own] + a])
        for a in range(m.card[t]):
            heard[m.offset[t] + a] = math.exp(m.total[m.offset[t] + a] - m.heard[m.cell[own] + a] - top)


@compiled_loop
def guide(structure: NetworkLayout, laws: Floats, heard: Floats, least: float, proposal: Floats) -> None:
    """Write conditional distributions times messages; the share ``least`` of each distribution is kept."""
    cell = 0
    for t in range(structure.card.size):
        card = structure.card[t]
        for row in range(structure.table[t], structure.table[t + 1], card):
            total = 0.0
            for a in range(card):
                proposal[row + a] = math.exp(laws[row + a]) * max(heard[cell + a], _LEAST)
                total += proposal[row + a]
            for a in range(card):
                share = proposal[row + a] / total if total > 0.0 else 1.0 / card
                proposal[row + a] = (1.0 - least) * share + least * math.exp(laws[row + a])
        cell += card


# Columns of the sums of a stage: log-weight that counts as one, total weight, total of squares; then, by proposal,
# weight times the weight of the draw under that proposal alone.
_SCALE, _TOTAL, _SQUARES, _ALONE = 0, 1, 2, 3
# Number of stages, most blocks of a stage, factor of the counts of earlier stages, pseudo-counts, share of the original
# proposal that is kept, share of the learned one in the mixture of the next stage.
_STAGES, _BLOCKS, _FADE, _PSEUDO, _KEPT, _SHARE = 8, 64, 0.5, 20.0, 0.1, 0.5


def learn(
    structure: NetworkLayout,
    laws: Floats,
    proposals: list[Floats],
    key: Words32,
    draws: float,
    stopped: Callable[[], bool],
) -> tuple[Floats, Floats]:
    """Learn a proposal from at most ``draws`` draws of others; return it, and effective sizes per draw of all.

    Rows without draws stay those of the last of ``proposals``; 131,072 draws are enough. ``stopped`` is called after
    each stage.
    """
    base = np.zeros_like(laws)
    learn_tables(structure, proposals[-1], base, 1.0, 1.0, base)
    known, learnt = np.zeros_like(base), base.copy()
    scratch, nowhere = make_scratch(structure), make_tally(np.zeros(0, np.int64))
    old = len(proposals)
    worth = np.ones(old + 1)
    blocks = int(min(max(draws / (_STAGES * BLOCK), 1.0), _BLOCKS))
    for stage in range(_STAGES):
        share = [(1.0 - _SHARE) / old] * old + [_SHARE]
        tables = proposal_tables(structure, laws, np.stack([*proposals, learnt]), share)
        counts, sums = np.zeros_like(base), np.zeros(_ALONE + old + 1)
        sums[_SCALE] = -math.inf
        for block in range(stage * blocks, (stage + 1) * blocks):
            draw_blocks(structure, tables, key, block, 1, 1, scratch, nowhere, -1)
            _count(structure, tables, scratch, counts, sums)
        if sums[_TOTAL] > 0.0:
            known = _FADE * known + counts * (sums[_TOTAL] / sums[_SQUARES])
            learn_tables(structure, base, known, _PSEUDO, _KEPT, learnt)
            with np.errstate(divide="ignore"):
                worth = sums[_TOTAL] ** 2 / (blocks * BLOCK) / sums[_ALONE:]
        if stopped():
            break
    return learnt, worth


@compiled_loop
def _count(
    structure: NetworkLayout, tables: ProposalTables, scratch: NetworkScratch, counts: Floats, sums: Floats
) -> None:
    """Add the weight of each draw of a block to the entries of the tables that it selects."""
    top = -np.inf
    for b in range(BLOCK):
        top = max(top, scratch.log_weights[b])
    if top == -np.inf:
        return
    if top > sums[_SCALE]:
        by = math.exp(sums[_SCALE] - top)
        for c in range(counts.size):
            counts[c] *= by
        sums[_TOTAL] *= by
        for c in range(_SQUARES, sums.size):
            sums[c] *= by * by
        sums[_SCALE] = top
    for b in range(BLOCK):
        w = math.exp(scratch.log_weights[b] - sums[_SCALE])
        scratch.w[b] = w
        sums[_TOTAL] += w
        sums[_SQUARES] += w * w
        if w > 0.0:
            _add_alone(tables, scratch, b, w * w, sums)
    for t in range(structure.card.size):
        card = structure.card[t]
        for b in range(BLOCK):
            if scratch.w[b] > 0.0:
                row = 0
                for k in range(structure.start[t], structure.start[t + 1]):
                    row += structure.stride[k] * scratch.x[structure.parent[k], b]
                counts[structure.table[t] + row * card + scratch.x[t, b]] += scratch.w[b]


@inlined
def _add_alone(tables: ProposalTables, scratch: NetworkScratch, b: Integer, square: float, sums: Floats) -> None:
    """Add weight times weight under each proposal alone, whose mean is the second moment of that proposal."""
    laws = tables.lane.size - 1
    for c in range(laws):
        mixed = 0.0
        for d in range(laws):
            share = (tables.lane[d + 1] - tables.lane[d]) / BLOCK
            mixed += share * math.exp(min(scratch.log_q[d, b] - scratch.log_q[c, b], 700.0))
        sums[_ALONE + c] += square * mixed


@compiled_loop
def learn_tables(
    structure: NetworkLayout, base: Floats, counts: Floats, pseudo: float, least: float, proposal: Floats
) -> None:
    """Write tables between ``base`` (``pseudo`` counts) and shares of counts; keep the share ``least`` of ``base``."""
    for t in range(structure.card.size):
        card = structure.card[t]
        for row in range(structure.table[t], structure.table[t + 1], card):
            mass, total = 0.0, 0.0
            for a in range(card):
                mass += counts[row + a]
                total += base[row + a]
            for a in range(card):
                old = base[row + a] / total if total > 0.0 else 1.0 / card
                share = (counts[row + a] + pseudo * old) / (mass + pseudo)
                proposal[row + a] = (1.0 - least) * share + least * old
