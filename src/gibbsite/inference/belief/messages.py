"""Messages between factors and sites, and the computation of a message from the others.

The message of factor f to site i is the sum (or maximum), over the states of the other members j of f, of T_f^(1 / c_f)
times q_jf, where q_jf = b_j / m_fj, and the belief b_j is the product of the unary weights of j and of all incoming
messages m_gj^c_g; c is the power of a factor, one for plain belief propagation [1]_. Beliefs are stored and follow
every message, so that the cost of a message is that of its table, for any number of neighbours of the site.

Numbers are weights of at most one, or logarithms if a weight of a possible state would become so small that products
might underflow. Impossible states have belief zero and are skipped; after propagation of zeros, every possible state
has positive messages.

References
----------
.. [1] Wiegerinck, W. and Heskes, T. (2003). Fractional belief propagation. NIPS 15.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, generic, implement, inlined
from gibbsite.graphs.elimination.rings import cancel, join
from gibbsite.inference.belief.layout import MessageGraph

ONE = np.uintp(1)
LEAST = 1e-100  # least weight of a possible state in a message, whose largest weight is one
LEAST_BELIEF = 1e-150  # the corresponding limit for beliefs


class PlainMessages(NamedTuple):
    """Messages and beliefs are plain numbers; ``largest`` takes maxima instead of sums."""

    largest: bool
    zero: float = 0.0
    one: float = 1.0


class LogMessages(NamedTuple):
    """Messages and beliefs are logarithms; ``largest`` takes maxima instead of sums."""

    largest: bool
    zero: float = -math.inf
    one: float = 0.0


class Messages(NamedTuple):
    """All messages and beliefs, and scratch space to compute new ones.

    ``message`` is laid out by ``place`` of edges; the largest number of each is one, or zero in logarithms, unless
    damped. ``belief`` (cells,) is known up to a constant for each site. ``fresh`` is the new message, ``top`` the
    largest term of its sums, where they are logarithms. ``q`` has the messages of the other members of a factor, member
    after member: ``other`` are these members, ``at`` where they begin in ``q``, and ``code``, ``entry`` and ``share``
    the present state, the position in the table that it leads to, and the product of ``q`` of the members before it.
    """

    message: Floats
    belief: Floats
    fresh: Floats
    top: Floats
    q: Floats
    other: Ints
    at: Ints
    code: Ints
    entry: Ints
    share: Floats


def new_messages(graph: MessageGraph, logs: bool) -> Messages:
    """Return uniform messages."""
    states = int(graph.card.max(initial=1))
    widest = int(np.diff(graph.member_start).max(initial=2))
    zero = 0.0 if logs else 1.0
    return Messages(
        message=np.full(graph.n_numbers, zero),
        belief=(graph.log_unary if logs else graph.unary).copy(),
        fresh=np.zeros(states),
        top=np.zeros(states),
        q=np.zeros(states * widest),
        other=np.zeros(widest, np.int64),
        at=np.zeros(widest, np.int64),
        code=np.zeros(widest, np.int64),
        entry=np.zeros(widest, np.int64),
        share=np.zeros(widest),
    )


@generic
def renew(ring: Any, graph: MessageGraph, state: Messages, e: Integer, damping: float) -> float:
    """Update the message of an edge; return its change before damping, -1 if numbers are too small."""
    raise NotImplementedError


@generic
def log_of(ring: Any, p: float) -> float:
    """Return the logarithm of a positive weight."""
    raise NotImplementedError


@generic
def of_log(ring: Any, log: float) -> float:
    """Return the weight of a logarithm."""
    raise NotImplementedError


@generic
def table_entry(ring: Any, graph: MessageGraph, at: Integer) -> float:
    """Return an entry of the tables."""
    raise NotImplementedError


@generic
def add(ring: Any, state: Messages, a: Integer, weight: float) -> None:
    """Add a term to the new message."""
    raise NotImplementedError


@implement(join, PlainMessages)
def _multiply_weights(ring: PlainMessages, p: float, q: float) -> float:
    return p * q


@implement(cancel, PlainMessages)
def _divide_weights(ring: PlainMessages, p: float, q: float) -> float:
    return p / q


@implement(log_of, PlainMessages)
def _log_of_weight(ring: PlainMessages, p: float) -> float:
    return math.log(p)


@implement(of_log, PlainMessages)
def _weight_of_log(ring: PlainMessages, log: float) -> float:
    return math.exp(log)


@implement(table_entry, PlainMessages)
def _plain_entry(ring: PlainMessages, graph: MessageGraph, at: Integer) -> float:
    return float(graph.value[at])


@implement(add, PlainMessages)
def _add_weight(ring: PlainMessages, state: Messages, a: Integer, weight: float) -> None:
    old = float(state.fresh[a])
    state.fresh[a] = max(old, weight) if ring.largest else old + weight


@implement(join, LogMessages)
def _multiply_logs(ring: LogMessages, p: float, q: float) -> float:
    return p + q


@implement(cancel, LogMessages)
def _divide_logs(ring: LogMessages, p: float, q: float) -> float:
    return p - q


@implement(log_of, LogMessages)
@implement(of_log, LogMessages)
def _log_itself(ring: LogMessages, log: float) -> float:
    return log


@implement(table_entry, LogMessages)
def _log_entry(ring: LogMessages, graph: MessageGraph, at: Integer) -> float:
    return float(graph.log_value[at])


@implement(add, LogMessages)
def _add_log(ring: LogMessages, state: Messages, a: Integer, weight: float) -> None:
    """Keep the largest term in ``fresh``, and the sum of all relative to it in ``top``."""
    old = state.fresh[a]
    if weight > old:
        state.fresh[a] = weight
        if not ring.largest:
            state.top[a] = 1.0 + state.top[a] * math.exp(old - weight)
    elif weight > -np.inf and not ring.largest:
        state.top[a] += math.exp(weight - old)


@inlined
def _collect(ring: Any, graph: MessageGraph, state: Messages, e: Integer, f: Integer) -> tuple[Integer, float]:
    """Write the messages of the other members of a factor; return their number, and the constant left out."""
    scale = ring.one
    n = np.uintp(0)
    at = np.uintp(0)
    for m in range(np.uintp(graph.member_start[f]), np.uintp(graph.member_start[f + ONE])):
        o = np.uintp(graph.member[m])
        if o != e:
            j = np.uintp(graph.site[o])
            cell, place, card = np.uintp(graph.offset[j]), np.uintp(graph.place[o]), np.uintp(graph.card[j])
            state.other[n], state.at[n] = np.int64(o), np.int64(at)
            top = ring.zero
            for b in range(card):
                belief = state.belief[cell + b]
                q = cancel(ring, belief, state.message[place + b]) if belief > ring.zero else ring.zero
                state.q[at + b] = q
                top = max(top, q)
            if top > ring.zero:
                scale = join(ring, scale, top)
                for b in range(card):
                    state.q[at + b] = cancel(ring, state.q[at + b], top)
            at += card
            n += ONE
    return n, scale


@inlined
def sum_table(
    ring: Any, graph: MessageGraph, state: Messages, f: Integer, n: Integer, size: Integer, own: Integer
) -> None:
    """Sum over the configurations of n other members, depth first; impossible branches end at once."""
    last = np.int64(n) - 1
    depth = 0
    state.code[0], state.entry[0], state.share[0] = -1, graph.table[f], ring.one
    while depth >= 0:
        o = np.uintp(state.other[depth])
        card, at = graph.card[np.uintp(graph.site[o])], np.uintp(state.at[depth])
        if depth == last:
            row, step = np.uintp(state.entry[depth]), np.uintp(graph.stride[o])
            for b in range(np.uintp(card)):
                p = join(ring, state.share[depth], state.q[at + b])
                if p > ring.zero:
                    for a in range(size):
                        add(ring, state, a, join(ring, p, table_entry(ring, graph, row + own * a)))
                row += step
            depth -= 1
            continue
        state.code[depth] += 1
        code = state.code[depth]
        if code == card:
            depth -= 1
            continue
        p = join(ring, state.share[depth], state.q[at + np.uintp(code)])
        if p > ring.zero:
            state.code[depth + 1] = -1
            state.entry[depth + 1] = state.entry[depth] + graph.stride[o] * code
            state.share[depth + 1] = p
            depth += 1


@implement(renew, PlainMessages)
def _renew_weights(ring: PlainMessages, graph: MessageGraph, state: Messages, e: Integer, damping: float) -> float:
    f = np.uintp(graph.factor[e])
    size = np.uintp(graph.card[np.uintp(graph.site[e])])
    own = np.uintp(graph.stride[e])
    first = np.uintp(graph.member_start[f])
    for a in range(size):
        state.fresh[a] = 0.0
    if np.uintp(graph.member_start[f + ONE]) - first == np.uintp(2):  # no list of members is needed
        o = np.uintp(graph.member[first])
        if o == e:
            o = np.uintp(graph.member[first + ONE])
        j = np.uintp(graph.site[o])
        cell, place, step = np.uintp(graph.offset[j]), np.uintp(graph.place[o]), np.uintp(graph.stride[o])
        row = np.uintp(graph.table[f])
        for b in range(np.uintp(graph.card[j])):
            belief = state.belief[cell + b]
            if belief > 0.0:
                q = belief / state.message[place + b]
                for a in range(size):
                    add(ring, state, a, q * graph.value[row + own * a])
            row += step
    else:
        n, _ = _collect(ring, graph, state, e, f)
        sum_table(ring, graph, state, f, n, size, own)
    return _replace_weights(graph, state, e, size, damping)


@inlined
def _replace_weights(graph: MessageGraph, state: Messages, e: Integer, size: Integer, damping: float) -> float:
    """Replace the old message by the new one, update the belief, and return the change."""
    i = np.uintp(graph.site[e])
    power = graph.power[np.uintp(graph.factor[e])]
    cell, place = np.uintp(graph.offset[i]), np.uintp(graph.place[e])
    top = 0.0
    for a in range(size):
        if state.belief[cell + a] > 0.0:
            top = max(top, state.fresh[a])
    if not LEAST < top < np.inf:
        return -1.0
    scale = 1.0 / top
    change, low, high = 0.0, np.inf, 0.0
    for a in range(size):
        belief = state.belief[cell + a]
        if belief > 0.0:
            old = state.message[place + a]
            best = state.fresh[a] * scale
            change = max(change, abs(best - old))
            best = old + damping * (best - old)
            if not best > LEAST:
                return -1.0
            state.fresh[a] = best
            ratio = best / old
            if power != 1.0:
                ratio = math.exp(power * math.log(ratio))
            belief *= ratio
            state.top[a] = belief
            low, high = min(low, belief), max(high, belief)
    if not (low > LEAST_BELIEF * high and high < np.inf):
        return -1.0
    shrink = 1.0 if 1e-50 < high < 1e50 else 1.0 / high
    for a in range(size):
        if state.belief[cell + a] > 0.0:
            state.belief[cell + a] = state.top[a] * shrink
            state.message[place + a] = state.fresh[a]
    return change


@implement(renew, LogMessages)
def _renew_logs(ring: LogMessages, graph: MessageGraph, state: Messages, e: Integer, damping: float) -> float:
    size, _ = log_message(ring, graph, state, e)
    return _replace_logs(graph, state, e, size, damping)


@inlined
def log_message(ring: LogMessages, graph: MessageGraph, state: Messages, e: Integer) -> tuple[Integer, float]:
    """Write the new message of an edge to ``fresh``; return its size, and the constant that it leaves out."""
    f = np.uintp(graph.factor[e])
    size = np.uintp(graph.card[np.uintp(graph.site[e])])
    for a in range(size):
        state.fresh[a], state.top[a] = -np.inf, 0.0
    n, scale = _collect(ring, graph, state, e, f)
    sum_table(ring, graph, state, f, n, size, np.uintp(graph.stride[e]))
    if not ring.largest:
        for a in range(size):
            if state.fresh[a] > -np.inf:
                state.fresh[a] += math.log(state.top[a])
    return size, scale


@inlined
def _replace_logs(graph: MessageGraph, state: Messages, e: Integer, size: Integer, damping: float) -> float:
    """Replace the old message by the new one, update the belief, and return the change."""
    i = np.uintp(graph.site[e])
    power = graph.power[np.uintp(graph.factor[e])]
    cell, place = np.uintp(graph.offset[i]), np.uintp(graph.place[e])
    top = -np.inf
    for a in range(size):
        if state.belief[cell + a] > -np.inf:
            top = max(top, state.fresh[a])
    if top == -np.inf:
        return -1.0
    change, high = 0.0, -np.inf
    for a in range(size):
        belief = state.belief[cell + a]
        if belief > -np.inf:
            old = state.message[place + a]
            best = state.fresh[a] - top
            change = max(change, abs(math.exp(best) - math.exp(old)))
            if damping < 1.0 and best > -np.inf:
                most = max(best, old)
                best = most + math.log(damping * math.exp(best - most) + (1.0 - damping) * math.exp(old - most))
            state.message[place + a] = best
            belief += power * (best - old)
            state.belief[cell + a] = belief
            high = max(high, belief)
    for a in range(size):
        state.belief[cell + a] -= high
    return change


@compiled_loop
def gather_beliefs(ring: Any, graph: MessageGraph, state: Messages) -> None:
    """Compute all beliefs from messages, because updated beliefs accumulate rounding errors."""
    for site in range(graph.card.size):
        i = np.uintp(site)
        cell, size = np.uintp(graph.offset[i]), np.uintp(graph.card[i])
        for a in range(size):
            if state.belief[cell + a] > ring.zero:  # excluded states stay excluded
                total = graph.log_unary[cell + a]
                for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + ONE])):
                    total += graph.power[np.uintp(graph.factor[k])] * log_of(
                        ring, state.message[np.uintp(graph.place[k]) + a]
                    )
                state.fresh[a] = total
            else:
                state.fresh[a] = -np.inf
        top = -np.inf
        for a in range(size):
            top = max(top, state.fresh[a])
        for a in range(size):
            possible = state.fresh[a] > -np.inf
            state.belief[cell + a] = of_log(ring, state.fresh[a] - top) if possible else ring.zero
