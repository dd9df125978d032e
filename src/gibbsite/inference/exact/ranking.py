"""The most probable states in order: a best-first search with an exact bound.

After a pass of maxima towards the roots of a clique tree, the weights of a clique's own sites, given all sites decided
before, show what each choice loses if everything after it is chosen optimally. Every state is thus the best one minus
the losses of its choices, and the next best state differs from one found before in a first choice and is optimal after
it (Nilsson 1998; Yanover and Weiss 2004).
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import compiled_loop
from gibbsite.graphs.elimination.rings import Max
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.exact.potentials import Operands
from gibbsite.inference.exact.trace import Slate, assign, make_slate, weigh
from gibbsite.inference.exact.tree import CliqueTree

if TYPE_CHECKING:
    from gibbsite.inference.exact.plan import EliminationPlan


def rank_states(plan: EliminationPlan, pool: Floats, many: int) -> Ints:
    """Return the best states of the undetermined sites, a row each, the best one first.

    ``pool`` holds the messages of a pass of maxima. There are fewer rows if fewer states are possible.
    """
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
        # all states that agree with this one up to some clique, and differ there for the first time
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
    """Choose a state for a clique, and the best one for every clique after it.

    ``losses`` is set to the cost of every other choice; -1 marks the choice that was made.
    """
    if clique < tree.own.size:
        assign(tree, clique, x, choice)
    for c in range(clique - 1, -1, -1):
        n = weigh(ring, tree, operands, pool, c, x, slate)
        best = 0
        for k in range(1, n):
            if slate.weight[k] > slate.weight[best]:
                best = k
        for k in range(n):
            losses[start[c] + k] = slate.weight[best] - slate.weight[k]
        losses[start[c] + best] = -1.0
        assign(tree, c, x, best)
