"""Collapsed Gibbs steps: cutset sites with everything else summed out, then everything else given them."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.pointer import pointed
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.graphs.kinds.table import TableGraph, entry_of
from gibbsite.graphs.local import from_logs
from gibbsite.kernels.blocks.message_tables import CutTree, CutWorkspace
from gibbsite.kernels.blocks.messages import (
    column_weights,
    keep_trial,
    move_to,
    need_down,
    need_up,
    notice,
    send_down,
    send_up,
    sum_states,
    sum_table,
)
from gibbsite.kernels.rules import pick


@inlined
def _own_logs(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, j: Integer) -> None:
    """Write the log-weights of cutset site number j from the cutset alone to ``chance``."""
    i = np.uintp(tree.site[j])
    size, now = np.int64(arrays.card[i]), np.int64(x[i])
    for a in range(size):
        work.chance[a] = arrays.log_unary[arrays.offset[i] + a]
    for k in range(tree.own[j], tree.own[j + 1]):
        own = tree.own_stride[k]
        entry = np.int64(entry_of(arrays, x, np.uintp(tree.own_factor[k]))) - own * now
        for a in range(size):
            work.chance[a] += arrays.log_value[entry + own * a]


@called
def weigh(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, j: Integer) -> float:
    """Write the weights of the states of cutset site number j to ``chance``; return their sum.

    The subtree that the site touches is gone through once for every state; messages that enter it do not
    depend on the site. The present state comes first, and its messages are kept; the others are tried.
    """
    tables, i = tree.tables, tree.site[j]
    size, now = np.int64(arrays.card[i]), np.int64(x[i])
    begin, end = tree.span[j], tree.span[j + 1]
    for k in range(begin, end):
        work.inside[tree.spanned[k]] = 1
    for k in range(begin, end):
        t = tree.spanned[k]
        for o in range(tables.operand[t], tables.operand[t + 1]):
            if tables.child[o] >= 0 and work.inside[tables.child[o]] == 0:
                need_up(tree, arrays, work, x, tables.child[o])
        if tree.top[k] == 1:
            need_down(tree, arrays, work, x, t)
    _own_logs(tree, arrays, work, x, j)
    for turn in range(size):
        state, trial = (now + turn) % size, turn > 0
        x[i] = state
        for k in range(begin, end):
            t = tree.spanned[k]
            if work.chance[state] == -np.inf:
                break
            if tree.top[k] == 1:
                work.chance[state] += sum_table(tree, arrays, work, x, t, trial)
            elif trial or work.valid[t] == 0:
                send_up(tree, arrays, work, x, t, trial)
    x[i] = now
    for k in range(begin, end):
        work.inside[tree.spanned[k]] = 0
    return from_logs(work.chance, size)


@called
def draw_site(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, j: Integer, rng: Words) -> Words:
    """Draw cutset site number j given the rest of the cutset; its conditional becomes its marginal."""
    i = tree.site[j]
    size, now = np.int64(arrays.card[i]), np.int64(x[i])
    total = weigh(tree, arrays, work, x, j)
    rng, u = uniform(rng)
    if total > 0.0:
        state = np.int64(pick(work.chance, size, u * total))
        for a in range(size):
            work.marginal[arrays.offset[i] + a] = work.chance[a] / total
        if state != now:
            x[i] = state
            move_to(tree, work, x, j)
            if state == (now + size - 1) % size:  # the one that was tried last
                for k in range(tree.span[j], tree.span[j + 1]):
                    if tree.top[k] == 0:
                        keep_trial(tree, work, tree.spanned[k])
    return rng


@called
def gather_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer) -> bool:
    """Make all messages up valid; False: nothing is possible, given the cutset."""
    possible = True
    for t in range(tree.tables.start[u], tree.tables.start[u + 1]):
        if work.valid[t] == 0:
            send_up(tree, arrays, work, x, t, False)
        possible = possible and work.scale[t] > -np.inf
    return possible


@called
def draw_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer, rng: Words) -> Words:
    """Draw the sites outside the cutset, those eliminated last first; messages up are valid."""
    tables = tree.tables
    for t in range(tables.start[u + 1] - 1, tables.start[u] - 1, -1):
        i = tables.site[t]
        total = column_weights(tree, arrays, work, x, t)
        rng, level = uniform(rng)
        x[i] = pick(work.weight, np.int64(arrays.card[i]), level * total)
    return rng


@called
def _chance_of_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer) -> float:
    """Return the probability that :func:`draw_rest` draws what is there."""
    tables, chance = tree.tables, 1.0
    for t in range(tables.start[u + 1] - 1, tables.start[u] - 1, -1):
        total = column_weights(tree, arrays, work, x, t)
        chance *= work.weight[np.int64(x[tables.site[t]])] / total if total > 0.0 else 0.0
    return chance


@called
def _marginals_of_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer) -> None:
    """Write the marginals of the sites outside the cutset; messages up are valid."""
    tables, count = tree.tables, tree.tables.site.size
    for t in range(tables.start[u + 1] - 1, tables.start[u] - 1, -1):
        if tables.parent[t] >= 0 and work.valid[count + t] == 0:
            send_down(tree, arrays, work, x, t)
        i = tables.site[t]
        total = sum_states(tree, arrays, work, x, t, work.chance)
        for a in range(np.int64(arrays.card[i])):
            work.marginal[arrays.offset[i] + a] = work.chance[a] / total


#: What is asked of :func:`collapse`.
DRAW, MARGINALS, WEIGH, CHANCE = range(4)


@pointed
def collapse(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array) -> None:
    """Draw cutset number ``work.what[1]`` site by site, then all other sites, with ``what[0]`` DRAW.

    MARGINALS: write the marginals, too. WEIGH: write the conditional of the site that is number ``what[2]``
    in ``tree.site`` to ``chance``, and CHANCE: the probability of the other sites given the cutset; nothing
    moves. ``what[3]`` becomes 1 if that was possible. It does not depend on kernel, scan and graph kind, so
    loops call it by its address, and it is compiled once.
    """
    what = work.what
    u = what[1]
    what[3] = 0
    notice(tree, work, x, u)
    if what[0] == WEIGH:
        j = what[2]
        total = weigh(tree, arrays, work, x, j)
        if total > 0.0:
            what[3] = 1
            for a in range(np.int64(arrays.card[tree.site[j]])):
                work.chance[a] /= total
    elif what[0] == CHANCE:
        if gather_rest(tree, arrays, work, x, u):
            what[3] = 1
            work.chance[0] = _chance_of_rest(tree, arrays, work, x, u)
    else:
        rng = load(work.words)
        for j in range(tree.start[u], tree.start[u + 1]):
            rng = draw_site(tree, arrays, work, x, j, rng)
        if gather_rest(tree, arrays, work, x, u):
            what[3] = 1
            rng = draw_rest(tree, arrays, work, x, u, rng)
            if what[0] == MARGINALS and work.fresh[0] != u + 1:
                _marginals_of_rest(tree, arrays, work, x, u)
                work.fresh[0] = u + 1
        store(work.words, rng)
