"""Proposals that account for the evidence: belief propagation weights the conditional distributions.

Messages are passed over the factors of the network, conditional distributions and likelihoods, for some passes. The
product of the messages to a site from all factors but its own conditional distribution tells how much later evidence
supports each state; the proposal of the site is its conditional distribution times that product, row by row (evidence
pre-propagation, Yuan and Druzdzel 2003). On networks without loops this is the posterior itself, and all weights are
equal. States with small messages keep a small part, so that weights stay bounded where messages are wrong.

References
----------
.. [1] Yuan, C. and Druzdzel, M. J. (2003). An importance sampling algorithm based on evidence pre-propagation.
   Uncertainty in Artificial Intelligence.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.importance.network import BayesNetwork
from gibbsite.inference.importance.tables import NetworkLayout

_LEAST = 1e-30  # no message is smaller: products of a few stay above zero
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
    """Return the product of messages to each position from all factors but its own, by state; largest 1."""
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
    _collect(messages, len(network.laws), heard)
    return heard


@compiled_loop
def _pass_messages(m: _Messages, space: _Space, laws: int, passes: int) -> None:
    """Send messages forwards along the network once, then backwards and forwards until nothing changes."""
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
def _collect(m: _Messages, laws: int, heard: Floats) -> None:
    """Divide the messages to each position by that of its own conditional distribution."""
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
