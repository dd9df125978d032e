"""Messages of a clique tree, kept from step to step, and the collapsed Gibbs steps that use them.

A step draws the cutset sites one after another with all other sites summed out, and then the others given them.

The tables of a block form a tree (:mod:`.tables`): the parent of a site's table is the table of the first site of its
separator. Every edge carries two messages over the states of the separator: one up, from the tables below, and one
down, from all other tables. A message depends only on those cutset sites that occur in a factor on its side. When a
cutset site changes, the messages that lead away from its factors become invalid, and they are computed again when they
are needed. The cutset states of the messages are kept and compared with those of the chain, so that messages of one
state are never used for another.

A message is scaled to maximum one, and the logarithm of its scale is kept. If a product could underflow, the table is
computed in logarithms, and so is its message if its entries are too far apart. The bits of a message depend only on the
factors and on the states of the cutset, not on when it is computed.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.pointer import pointed
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite.graphs.elimination.rings import LogSum
from gibbsite.graphs.kinds.table import TableGraph, entry_of
from gibbsite.graphs.local import from_logs
from gibbsite.kernels.blocks.filtering import fill_field, next_run
from gibbsite.kernels.blocks.message_tables import (
    CutTree,
    CutWorkspace,
    count_runs,
    fill_table,
    finish_message,
    message_begin,
    multiply_operand,
    project_table,
)
from gibbsite.kernels.rules import pick


@called
def send_up(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer, trial: bool) -> None:
    """Compute the message of a table to its parent; the messages from its children must be valid."""
    count = tree.tables.site.size
    logs, scale = fill_table(tree, arrays, work, x, t, np.int64(-1), False, trial)
    size, many = np.int64(arrays.card[tree.tables.site[t]]), tree.tables.separator[t]
    s = 2 * count + t if trial else t
    at, pool, table = message_begin(tree, s), work.pool, work.table
    if logs:
        for k in range(many):
            top = -np.inf
            for a in range(size):
                top = max(top, float(table[a * many + k]))
            total = 0.0
            for a in range(size):
                total += math.exp(table[a * many + k] - top) if top > -np.inf else 0.0
            pool[at + k] = top + math.log(total) if top > -np.inf else -np.inf
    else:
        for k in range(many):
            pool[at + k] = table[k]
        for a in range(1, size):
            for k in range(many):
                pool[at + k] += table[a * many + k]
    finish_message(work, s, at, many, logs, scale)
    if not trial:
        work.valid[t] = 1


@called
def _maxima(tree: CutTree, o: Integer, digit: Ints, table: Floats, out: Floats) -> None:
    """Take the maximum of a table over the axes that an operand lacks."""
    tables = tree.tables
    first, begin = tables.loop[o], tree.inner[o]
    last, length = first + tree.outer[o], tree.inner[o + 1] - begin
    at, s = np.int64(0), np.int64(0)
    for _ in range(count_runs(tables, first, last, digit)):
        for k in range(length):
            cell = s + tree.step[begin + k]
            out[cell] = max(out[cell], table[at + k])
        at += length
        s = next_run(tables, digit, first, last, s)


@called
def send_down(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer) -> None:
    """Compute the message to a table from its parent; the messages that it depends on must be valid."""
    tables, count = tree.tables, tree.tables.site.size
    above, o, many = tables.parent[t], tables.via[t], tables.separator[t]
    logs, scale = fill_table(tree, arrays, work, x, above, o, tables.parent[above] >= 0, False)
    out, table, nothing = work.column, work.table, np.int64(0)
    at = message_begin(tree, count + t)
    if logs:
        for k in range(many):
            out[k] = -np.inf
        _maxima(tree, o, work.digit, table, out)
        for k in range(many):
            work.pool[at + k] = out[k]
            out[k] = -out[k] if out[k] > -np.inf else 0.0
        multiply_operand(LogSum(), tree, o, work.digit, table, out, nothing)
        for k in range(tables.separator[above] * np.int64(arrays.card[tables.site[above]])):
            table[k] = math.exp(table[k])
    for k in range(many):
        out[k] = 0.0
    project_table(tree, o, work.digit, table, out)
    for k in range(many):
        if not logs:
            work.pool[at + k] = out[k]
        elif work.pool[at + k] > -np.inf:
            work.pool[at + k] += math.log(out[k])
    finish_message(work, count + t, at, many, logs, scale)
    work.valid[count + t] = 1


@called
def need_up(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer) -> None:
    """Make the message of a table to its parent valid."""
    tables, stack = tree.tables, work.stack
    if work.valid[t] == 1:
        return
    stack[0], height = t, 1
    while height > 0:
        u = stack[height - 1]
        before = height
        for o in range(tables.operand[u], tables.operand[u + 1]):
            c = tables.child[o]
            if c >= 0 and work.valid[c] == 0:
                stack[height] = c
                height += 1
        if height == before:
            send_up(tree, arrays, work, x, u, False)
            height -= 1


@called
def need_down(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer) -> None:
    """Make the message to a table from its parent valid; a root has none."""
    tables, count, path = tree.tables, tree.tables.site.size, work.path
    length, u = 0, t
    while tables.parent[u] >= 0 and work.valid[count + u] == 0:
        path[length] = u
        length += 1
        u = tables.parent[u]
    for k in range(length - 1, -1, -1):
        u = path[k]
        above = tables.parent[u]
        for o in range(tables.operand[above], tables.operand[above + 1]):
            if tables.child[o] >= 0 and tables.child[o] != u:
                need_up(tree, arrays, work, x, tables.child[o])
        send_down(tree, arrays, work, x, u)


@called
def invalidate(tree: CutTree, work: CutWorkspace, t: Integer) -> None:
    """Invalidate all messages that lead away from a table, because one of its factors has changed."""
    tables, count, stack = tree.tables, tree.tables.site.size, work.stack
    none = np.int64(-1)
    height = _drop_down(tree, work, t, none, _drop_up(tree, work, t, 0))
    while height > 0:
        height -= 1
        s = stack[height]
        if s < count:
            above = tables.parent[s]
            height = _drop_down(tree, work, above, s, _drop_up(tree, work, above, height))
        else:
            height = _drop_down(tree, work, s - count, none, height)


@called
def notice(tree: CutTree, work: CutWorkspace, x: Array, u: Integer) -> None:
    """Invalidate the messages of cutset number u that do not belong to the states ``x``."""
    for j in range(tree.start[u], tree.start[u + 1]):
        if work.seen[j] != np.int64(x[tree.site[j]]):
            move_to(tree, work, x, j)


@inlined
def move_to(tree: CutTree, work: CutWorkspace, x: Array, j: Integer) -> None:
    """Store the new state of cutset site number j, and invalidate the messages that depend on it."""
    work.seen[j] = np.int64(x[tree.site[j]])
    work.fresh[0] = 0
    for k in range(tree.touch[j], tree.touch[j + 1]):
        invalidate(tree, work, tree.touched[k])


@inlined
def _drop_up(tree: CutTree, work: CutWorkspace, u: Integer, height: Integer) -> Integer:
    """Invalidate the message that a table sends up, and put it on the stack; return the height of the stack."""
    if work.valid[u] == 1:
        work.valid[u] = 0
        if tree.tables.parent[u] >= 0:
            work.stack[height] = u
            height += 1
    return height


@inlined
def _drop_down(tree: CutTree, work: CutWorkspace, u: Integer, but: Integer, height: Integer) -> Integer:
    """Invalidate the messages that a table sends to its children, except child ``but``; return the stack's height."""
    tables, count = tree.tables, tree.tables.site.size
    for o in range(tables.operand[u], tables.operand[u + 1]):
        c = tables.child[o]
        if c >= 0 and c != but and work.valid[count + c] == 1:
            work.valid[count + c] = 0
            work.stack[height] = count + c
            height += 1
    return height


@called
def keep_trial(tree: CutTree, work: CutWorkspace, t: Integer) -> None:
    """Make the upward trial message of a table its valid one."""
    s = 2 * tree.tables.site.size + t
    at, source = message_begin(tree, t), message_begin(tree, s)
    for k in range(tree.tables.separator[t]):
        work.pool[at + k] = work.pool[source + k]
    work.scale[t], work.low[t], work.logs[t] = work.scale[s], work.low[s], work.logs[s]
    work.valid[t] = 1


@called
def sum_table(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer, trial: bool) -> float:
    """Return the logarithm of the sum over all states of the tree that contains a table."""
    tables = tree.tables
    logs, scale = fill_table(tree, arrays, work, x, t, np.int64(-1), tables.parent[t] >= 0, trial)
    entries = tables.separator[t] * np.int64(arrays.card[tables.site[t]])
    top, total = -np.inf, 0.0
    for k in range(entries):
        top = max(top, work.table[k])
    if top == (-np.inf if logs else 0.0):
        return -np.inf
    for k in range(entries):
        total += math.exp(work.table[k] - top) if logs else work.table[k]
    return scale + math.log(total) + (top if logs else 0.0)


@called
def sum_states(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer, out: Floats) -> float:
    """Write the marginal weights of the states of a table's site; return their sum."""
    tables = tree.tables
    logs, _ = fill_table(tree, arrays, work, x, t, np.int64(-1), tables.parent[t] >= 0, False)
    size, many = np.int64(arrays.card[tables.site[t]]), tables.separator[t]
    top = -np.inf
    if logs:
        for k in range(size * many):
            top = max(top, float(work.table[k]))
    sum_of_all = 0.0
    for a in range(size):
        out[a] = 0.0
        for k in range(many):
            if not logs:
                out[a] += work.table[a * many + k]
            elif top > -np.inf:
                out[a] += math.exp(work.table[a * many + k] - top)
        sum_of_all += out[a]
    return sum_of_all


@called
def column_weights(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, t: Integer) -> float:
    """Write the weights of a site's states given its separator to ``weight``; upward messages must be valid."""
    tables, w = tree.tables, work.weight
    i = tables.site[t]
    size, now = np.int64(arrays.card[i]), np.int64(x[i])
    fill_field(tables, arrays, x, t, w)
    for o in range(tables.operand[t], tables.operand[t + 1]):
        c = tables.child[o]
        if c >= 0:
            at, step = message_begin(tree, c), np.int64(0)
            for k in range(tables.axis[c], tables.axis[c + 1]):
                if tables.axis_site[k] == i:
                    step = tables.axis_stride[k]
                else:
                    at += tables.axis_stride[k] * np.int64(x[tables.axis_site[k]])
            for a in range(size):
                value = work.pool[at + step * a]
                if work.logs[c] == 0:
                    value = math.log(value) if value > 0.0 else -np.inf
                w[a] += value
        else:
            f = tables.factor[o]
            at, step = arrays.table[f], np.int64(0)
            for m in range(np.int64(arrays.member_start[f]), np.int64(arrays.member_start[f + 1])):
                at += arrays.stride[m] * np.int64(x[arrays.member[m]])
                if np.int64(arrays.member[m]) == i:
                    step = np.int64(arrays.stride[m])
            for a in range(size):
                w[a] += arrays.log_value[at + step * (a - now)]
    return from_logs(w, size)


@inlined
def _own_logs(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, j: Integer) -> None:
    """Write the log-weights of cutset site number j from factors within the cutset to ``chance``."""
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

    The subtree that the site touches is traversed once for every state; messages that enter it do not depend on the
    site. The current state comes first, and its messages are kept; those of the other states are trials.
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
            if state == (now + size - 1) % size:  # trial messages are those of the last state
                for k in range(tree.span[j], tree.span[j + 1]):
                    if tree.top[k] == 0:
                        keep_trial(tree, work, tree.spanned[k])
    return rng


@called
def gather_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer) -> bool:
    """Make all upward messages valid; return whether any state is possible given the cutset."""
    possible = True
    for t in range(tree.tables.start[u], tree.tables.start[u + 1]):
        if work.valid[t] == 0:
            send_up(tree, arrays, work, x, t, False)
        possible = possible and work.scale[t] > -np.inf
    return possible


@called
def draw_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer, rng: Words) -> Words:
    """Draw the sites outside the cutset in reverse order of elimination; upward messages must be valid."""
    tables = tree.tables
    for t in range(tables.start[u + 1] - 1, tables.start[u] - 1, -1):
        i = tables.site[t]
        total = column_weights(tree, arrays, work, x, t)
        rng, level = uniform(rng)
        x[i] = pick(work.weight, np.int64(arrays.card[i]), level * total)
    return rng


@called
def _chance_of_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer) -> float:
    """Return the probability that :func:`draw_rest` draws the current states."""
    tables, chance = tree.tables, 1.0
    for t in range(tables.start[u + 1] - 1, tables.start[u] - 1, -1):
        total = column_weights(tree, arrays, work, x, t)
        chance *= work.weight[np.int64(x[tables.site[t]])] / total if total > 0.0 else 0.0
    return chance


@called
def _marginals_of_rest(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array, u: Integer) -> None:
    """Write the marginals of the sites outside the cutset; upward messages must be valid."""
    tables, count = tree.tables, tree.tables.site.size
    for t in range(tables.start[u + 1] - 1, tables.start[u] - 1, -1):
        if tables.parent[t] >= 0 and work.valid[count + t] == 0:
            send_down(tree, arrays, work, x, t)
        i = tables.site[t]
        total = sum_states(tree, arrays, work, x, t, work.chance)
        for a in range(np.int64(arrays.card[i])):
            work.marginal[arrays.offset[i] + a] = work.chance[a] / total


#: Tasks of :func:`collapse`.
DRAW, MARGINALS, WEIGH, CHANCE = range(4)


@pointed
def collapse(tree: CutTree, arrays: TableGraph, work: CutWorkspace, x: Array) -> None:
    """Do the task ``work.what[0]`` for cutset number ``what[1]``; ``what[3]`` becomes 1 if that was possible.

    DRAW: draw the cutset site by site, then all other sites. MARGINALS: write the marginals, too. WEIGH: write the
    conditional of site number ``what[2]`` of ``tree.site`` to ``chance``. CHANCE: write the probability of the other
    sites' states given the cutset to ``chance``. Loops call this function by its address, so it is compiled only once.
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
