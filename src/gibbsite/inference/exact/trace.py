"""From the roots back to the leaves: the most probable state, and independent exact draws.

After the pass towards the roots, the weights of a clique's own sites given all sites eliminated later are read off its
tables: forward filtering, backward sampling on a tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.jit import called, compiled_loop
from gibbsite._numba.random.generators import load, store, uniform
from gibbsite.graphs.elimination.rings import Ring, join
from gibbsite.inference.exact.potentials import Operands
from gibbsite.inference.exact.tree import MOST_AXES, CliqueTree


class Slate(NamedTuple):
    """Space for the weights of the own states of a clique, and for counting through them."""

    weight: Floats
    digit: Ints


def make_slate(tree: CliqueTree) -> Slate:
    """Allocate a slate for the largest number of own states."""
    return Slate(np.empty(int((tree.size / tree.separator).max(initial=1.0)) + 1), np.zeros(MOST_AXES, np.int64))


@compiled_loop
def trace_best(ring: Ring, tree: CliqueTree, operands: Operands, pool: Floats, slate: Slate, x: Ints) -> None:
    """Write a best state into ``x``."""
    for c in range(tree.own.size - 1, -1, -1):
        n = weigh(ring, tree, operands, pool, c, x, slate)
        best = 0
        for k in range(1, n):
            if slate.weight[k] > slate.weight[best]:
                best = k
        assign(tree, c, x, best)


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
                    chosen = k  # rounding must not lead past the support
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
