"""The pass from the roots to the leaves, which finds the most probable states or draws independent states.

After the pass towards the roots, the weights of a clique's own sites given all sites eliminated later are read off
its tables: forward filtering, backward sampling on a tree.

The most probable states in order are found by a best-first search with an exact bound. After a pass of maxima, the
weights show the loss of each choice if all later choices are optimal. The log-potential of every state is that of the
best one minus the losses of its choices. The next best state deviates from a state found before at one choice, and is
optimal after it (Nilsson 1998; Yanover and Weiss 2004).
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop
from gibbsite._numba.random.generators import load, store, uniform
from gibbsite.graphs.elimination.rings import Max, Ring, join
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.exact.potentials import Operands
from gibbsite.inference.exact.tree import MOST_AXES, CliqueTree

if TYPE_CHECKING:
    from gibbsite.inference.exact.plan import EliminationPlan


class Slate(NamedTuple):
    """Space for the weights of the own states of a clique, and for counting through them."""

    weight: Floats
    digit: Ints


def make_slate(tree: CliqueTree) -> Slate:
    """Allocate a slate for the largest number of own states."""
    return Slate(np.empty(int((tree.size / tree.separator).max(initial=1.0)) + 1), np.zeros(MOST_AXES, np.int64))


@compiled_loop
def trace_draws(
    ring: Ring, tree: CliqueTree, operands: Operands, pool: Floats, slate: Slate, words: Words64, states: Ints
) -> None:
    """Write independent draws into the rows of ``states``."""
    rng = load(words)
    for c in range(tree.own.size - 1, -1, -1):
        for row in range(states.shape[0]):
            n = weigh(ring, tree, operands, pool, c, states[row], slate)
            if ring.one == 0.0:
                top = -np.inf
                for k in range(n):
                    top = max(top, slate.weight[k])
                for k in range(n):
                    slate.weight[k] = math.exp(slate.weight[k] - top)
            total = 0.0
            for k in range(n):
                total += slate.weight[k]
            rng, u = uniform(rng)
            left = u * total
            chosen = 0
            for k in range(n):
                if slate.weight[k] > 0.0:
                    chosen = k  # rounding must not lead outside the support
                    left -= slate.weight[k]
                    if left < 0.0:
                        break
            assign(tree, c, states[row], chosen)
    store(words, rng)


@called
def weigh(ring: Ring, tree: CliqueTree, operands: Operands, pool: Floats, c: int, x: Ints, slate: Slate) -> int:
    """Compute the weights of the states of a clique's own sites given its separator; return their number."""
    begin, own = tree.start[c], tree.own[c]
    n = 1
    for a in range(own):
        n *= tree.card[tree.site[begin + a]]
        slate.digit[a] = 0
    for k in range(n):
        slate.weight[k] = ring.one
    for t in range(operands.start[c], operands.start[c + 1]):
        at, mask = operands.table[t], operands.mask[t]
        step = 1
        for a in range(tree.start[c + 1] - begin - 1, own - 1, -1):
            if mask >> a & 1:
                at += x[tree.site[begin + a]] * step
                step *= tree.card[tree.site[begin + a]]
        for k in range(n):
            slate.weight[k] = join(ring, slate.weight[k], pool[at])
            stride = step
            for a in range(own - 1, -1, -1):
                card = tree.card[tree.site[begin + a]]
                inside = mask >> a & 1
                slate.digit[a] += 1
                if slate.digit[a] < card:
                    at += inside * stride
                    break
                slate.digit[a] = 0
                at -= inside * stride * (card - 1)
                if inside:
                    stride *= card
    return n


@called
def assign(tree: CliqueTree, c: int, x: Ints, number: int) -> None:
    """Decode a state number into the states of a clique's own sites."""
    for a in range(tree.own[c] - 1, -1, -1):
        i = tree.site[tree.start[c] + a]
        x[i] = number % tree.card[i]
        number //= tree.card[i]


def rank_states(plan: EliminationPlan, pool: Floats, many: int) -> Ints:
    """Return the best states of the undetermined sites, a row each, the best first; ``pool`` holds passed maxima."""
    ring, tree = Max(), plan.tree
    slate, cliques = make_slate(tree), tree.own.size
    own = np.rint(tree.size / tree.separator).astype(np.int64)
    start = row_starts(own)
    losses = np.zeros(int(start[-1]))
    found: list[Ints] = []
    number = itertools.count()  # ties are resolved by age
    x = np.zeros(tree.card.size, np.int64)
    waiting: list[tuple[float, int, Ints, int, int]] = [(0.0, next(number), x, cliques, 0)]
    while waiting and len(found) < many:
        lost, _, before, clique, choice = heapq.heappop(waiting)
        x = before.copy()
        assign_best(ring, tree, plan.operands, pool, slate, x, clique, choice, losses, start)
        found.append(x)
        if len(found) == many:
            break
        # all states that first differ from this one at some clique
        tail = losses[: start[clique]]
        near = np.flatnonzero((tail > -1.0) & np.isfinite(tail))
        if near.size > many:
            near = near[np.argpartition(tail[near], many)[:many]]
        at = np.searchsorted(start, near, side="right") - 1
        for cell, where in zip(near.tolist(), at.tolist(), strict=True):
            entry = (lost + float(tail[cell]), next(number), x, where, cell - int(start[where]))
            heapq.heappush(waiting, entry)
    return np.array(found, np.int64).reshape(len(found), tree.card.size)


@compiled_loop
def assign_best(
    ring: Max,
    tree: CliqueTree,
    operands: Operands,
    pool: Floats,
    slate: Slate,
    x: Ints,
    clique: int,
    choice: int,
    losses: Floats,
    start: Ints,
) -> None:
    """Choose a state for a clique and the best one for all after it; write the losses of others (-1: chosen)."""
    if clique < tree.own.size:
        assign(tree, clique, x, choice)
    for c in range(clique - 1, -1, -1):
        n, best = choose_best(ring, tree, operands, pool, c, x, slate)
        for k in range(n):
            losses[start[c] + k] = slate.weight[best] - slate.weight[k]
        losses[start[c] + best] = -1.0


@called
def choose_best(
    ring: Max, tree: CliqueTree, operands: Operands, pool: Floats, c: int, x: Ints, slate: Slate
) -> tuple[int, int]:
    """Give a clique's own sites their best states given its separator; return how many there are, and the best."""
    n = weigh(ring, tree, operands, pool, c, x, slate)
    best = 0
    for k in range(1, n):
        if slate.weight[k] > slate.weight[best]:
            best = k
    assign(tree, c, x, best)
    return n, best
