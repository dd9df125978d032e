"""Proposals learned from weighted draws: adaptive importance sampling on networks (AIS-BN).

Draws come in stages. After each, the table of a site moves towards the distribution of its states given its parents
among the weighted draws so far, as far as their effective number for that row of the table allows; a part of the
earlier table is kept, so that weights stay bounded. Draws come from the mixture of the learned proposal and those it
is learned from, so that no stage can lose the support of an earlier one. Draws made while learning are not used for
estimates: the proposal is frozen first (Cheng and Druzdzel 2000).

References
----------
.. [1] Cheng, J. and Druzdzel, M. J. (2000). AIS-BN: an adaptive importance sampling algorithm for evidential reasoning
   in large Bayesian networks. Journal of Artificial Intelligence Research 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.inference.importance.base import BLOCK
from gibbsite.inference.importance.tables import (
    NetworkLayout,
    NetworkScratch,
    ProposalTables,
    draw_blocks,
    make_scratch,
    proposal_tables,
)
from gibbsite.inference.importance.tally import make_tally

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
    key: tuple[np.uint32, np.uint32],
    draws: float,
    stopped: Callable[[], bool],
) -> tuple[Floats, Floats]:
    """Learn a proposal from at most ``draws`` draws of others; return it, and the efficiency of all proposals.

    Rows without draws stay those of the last of ``proposals``; 131,072 draws are enough. ``stopped`` is asked after
    each stage whether to end early. The efficiency is the effective size per draw of each proposal, and of the learned
    one in the last stage but one.
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
            draw_blocks(structure, tables, *key, block, 1, 1, scratch, nowhere, -1)
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
    """Write tables between ``base`` and the shares of counts; ``pseudo`` counts are added according to ``base``.

    The share ``least`` of each row of ``base`` is kept.
    """
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
