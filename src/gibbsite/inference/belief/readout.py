"""Answers from messages: log-partition functions, a state, and joint probabilities of sites that share a factor.

With unnormalised beliefs b_i of sites and b_f = T_f^(1 / c_f) prod_i b_i / m_fi of factors, the model is prod_f b_f^c_f
prod_i b_i^(1 - sum_f c_f) for any messages. If beliefs agree on the sites, the log-partition function of Bethe and its
fractional variants is the sum of the logarithms of their totals with these powers [1]_.

The upper bound holds for any messages. Let forests of factors be drawn such that factor f is in one with probability
c_f, and with site i towards the root with probability c_fi; r_i is the probability that i is a root. The entropy of any
distribution is at most sum_i r_i H(x_i) + sum_fi c_fi H(x_f | x_i) [2]_. Split the log-potential among these terms,

    phi_fi = c_fi (log T_f / c_f + sum_(j != i) log q_jf - log M_fi),
    psi_i = the rest, which depends on x_i alone,

where M_fi is the message computed from q. Then max_p E[phi_fi] + c_fi H(x_f | x_i) = 0, and log Z is at most sum_i r_i
log sum exp(psi_i / r_i). At a fixed point psi_i = r_i log b_i, and this is the value of [3]_.

A state is decoded from max-product messages site by site, in breadth-first order, each given those decided before. On a
tree the state is a most probable one, even with ties, because messages from undecided parts contain the best
continuation.

References
----------
.. [1] Yedidia, J. S., Freeman, W. T. and Weiss, Y. (2005). Constructing free-energy approximations and generalized
   belief propagation algorithms. IEEE Transactions on Information Theory 51.
.. [2] Globerson, A. and Jaakkola, T. (2007). Approximate inference using conditional entropy decompositions. AISTATS.
.. [3] Wainwright, M. J., Jaakkola, T. S. and Willsky, A. S. (2005). A new class of upper bounds on the log partition
   function. IEEE Transactions on Information Theory 51.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.inference.belief.lattice import OddsLattice, edges_of
from gibbsite.inference.belief.layout import ForestShares, MessageGraph
from gibbsite.inference.belief.messages import ONE, LogMessages, Messages, log_message


@inlined
def _log_total(logs: Floats, first: Integer, size: Integer, by: float) -> float:
    """Return ``by`` times the logarithm of the sum of exp(logs / by); the largest logarithm if ``by`` is zero."""
    top = -np.inf
    for a in range(size):
        top = max(top, logs[first + a])
    if top == -np.inf or by <= 0.0:
        return top
    total = 0.0
    for a in range(size):
        total += math.exp((logs[first + a] - top) / by)
    return top + by * math.log(total)


@compiled_loop
def add_logs(graph: MessageGraph, state: Messages) -> None:
    """Set beliefs to the logarithms of unary weights and messages, without normalising them."""
    for site in range(graph.card.size):
        i = np.uintp(site)
        cell = np.uintp(graph.offset[i])
        for a in range(np.uintp(graph.card[i])):
            total = -np.inf
            if state.belief[cell + a] > -np.inf:
                total = graph.log_unary[cell + a]
                for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + ONE])):
                    power = graph.power[np.uintp(graph.factor[k])]
                    total += power * state.message[np.uintp(graph.place[k]) + a]
            state.belief[cell + a] = total


@compiled_loop
def log_z_of_beliefs(ring: LogMessages, graph: MessageGraph, state: Messages) -> float:
    """Return the (fractional) Bethe log-partition function, for sum-product messages in logarithms."""
    total = 0.0
    for site in range(graph.card.size):
        i = np.uintp(site)
        count = 1.0
        for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + ONE])):
            count -= graph.power[np.uintp(graph.factor[k])]
        total += count * _log_total(state.belief, np.uintp(graph.offset[i]), np.uintp(graph.card[i]), 1.0)
    for factor in range(graph.table.size):
        f = np.uintp(factor)
        e = np.uintp(graph.member[np.uintp(graph.member_start[f])])
        cell, place = np.uintp(graph.offset[np.uintp(graph.site[e])]), np.uintp(graph.place[e])
        size, scale = log_message(ring, graph, state, e)
        for a in range(size):
            belief = state.belief[cell + a]
            state.fresh[a] += belief - state.message[place + a] if belief > -np.inf else -np.inf
        total += graph.power[f] * (scale + _log_total(state.fresh, np.uintp(0), size, 1.0))
    return total


@compiled_loop
def upper_bound(
    ring: LogMessages, graph: MessageGraph, state: Messages, lead: Floats, root: Floats, psi: Floats
) -> float:
    """Return an upper bound of log Z, for any messages in logarithms; ``psi`` (cells,) is scratch space."""
    for c in range(psi.size):
        psi[c] = graph.log_unary[c] if state.belief[c] > -np.inf else -np.inf
    total = 0.0
    for edge in range(graph.site.size):
        e = np.uintp(edge)
        cell, place = np.uintp(graph.offset[np.uintp(graph.site[e])]), np.uintp(graph.place[e])
        rest = graph.power[np.uintp(graph.factor[e])] - lead[e]
        size, scale = log_message(ring, graph, state, e)
        for a in range(size):
            if psi[cell + a] > -np.inf:
                q = state.belief[cell + a] - state.message[place + a]
                psi[cell + a] += (lead[e] * (state.fresh[a] + scale) if lead[e] > 0.0 else 0.0) - rest * q
    for site in range(graph.card.size):
        i = np.uintp(site)
        total += _log_total(psi, np.uintp(graph.offset[i]), np.uintp(graph.card[i]), root[i])
    return total


@compiled_loop
def decode(ring: LogMessages, graph: MessageGraph, state: Messages, sites: Ints, score: Floats, codes: Ints) -> None:
    """Decide sites in the order of ``sites``; the beliefs (logarithms) of decided sites become point masses."""
    for t in range(sites.size):
        i = np.uintp(sites[t])
        cell, size = np.uintp(graph.offset[i]), np.uintp(graph.card[i])
        for a in range(size):
            score[a] = graph.log_unary[cell + a]
        for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + ONE])):
            log_message(ring, graph, state, k)
            for a in range(size):
                score[a] += state.fresh[a]
        best: Integer = np.uintp(0)
        for a in range(size):
            # if the earlier decisions leave no possible state, the belief decides
            if score[a] > score[best]:
                best = a
        if score[best] == -np.inf:
            for a in range(size):
                if state.belief[cell + a] > state.belief[cell + best]:
                    best = a
        codes[i] = np.int64(best)
        for a in range(size):
            if a != best:
                state.belief[cell + a] = -np.inf


class BeliefAnswers(NamedTuple):
    """Probabilities of states, log-partition function and decoded state; messages and beliefs as logarithms."""

    cells: Floats
    log_z: float
    codes: Ints | None
    message: Floats
    belief: Floats


def read_off(graph: MessageGraph, state: Messages, shares: ForestShares | None, sites: Ints | None) -> BeliefAnswers:
    """Turn messages in logarithms into answers: a state if ``sites`` are to be decided, otherwise log Z."""
    add_logs(graph, state)
    belief = state.belief.copy()
    cells = _normalise(belief, graph)
    codes, log_z = None, math.nan
    if sites is not None:
        codes = np.zeros(graph.n_sites, np.int64)
        decode(LogMessages(True), graph, state, sites, np.zeros(state.fresh.size), codes)
    elif shares is not None:
        log_z = upper_bound(LogMessages(False), graph, state, *shares, np.zeros(belief.size))
    else:
        log_z = log_z_of_beliefs(LogMessages(False), graph, state)
    return BeliefAnswers(cells, float(log_z), codes, state.message, belief)


def _normalise(logs: Floats, graph: MessageGraph) -> Floats:
    """Turn logarithms of the weights of all states into probabilities of each site."""
    if not graph.n_sites:
        return np.zeros(0)
    first = graph.offset[:-1]
    weights = np.exp(logs - np.repeat(np.maximum.reduceat(logs, first), graph.card))
    return np.asarray(weights / np.repeat(np.add.reduceat(weights, first), graph.card))


class JointBeliefs(Protocol):
    """Joint beliefs of several sites."""

    def joint(self, sites: list[int]) -> Floats | None:
        """Return joint probabilities, one axis per site; None if the sites share no factor."""


@dataclass(frozen=True)
class TableBeliefs:
    """Messages and unnormalised beliefs, as logarithms."""

    graph: MessageGraph
    message: Floats
    belief: Floats

    def joint(self, sites: list[int]) -> Floats | None:
        """Return joint probabilities, one axis per site; None if the sites share no factor."""
        graph, wanted = self.graph, set(sites)
        for e in range(int(graph.start[sites[0]]), int(graph.start[sites[0] + 1])):
            f = int(graph.factor[e])
            edges = graph.member[int(graph.member_start[f]) : int(graph.member_start[f + 1])]
            scope = graph.site[edges].tolist()
            if wanted <= set(scope):
                shape, begin = graph.card[scope], int(graph.table[f])
                logs = graph.log_value[begin : begin + int(shape.prod())].reshape(shape).copy()
                for axis, edge in enumerate(edges.tolist()):
                    logs += self._message_to_factor(edge).reshape([-1 if d == axis else 1 for d in range(len(scope))])
                table = np.exp(logs - logs.max())
                table = table.sum(axis=tuple(d for d, site in enumerate(scope) if site not in wanted))
                kept = [site for site in scope if site in wanted]
                return np.asarray(table.transpose([kept.index(site) for site in sites]) / table.sum())
        return None

    def _message_to_factor(self, edge: int) -> Floats:
        """Return the message of a site to a factor, as logarithms."""
        i = int(self.graph.site[edge])
        cell, size, place = int(self.graph.offset[i]), int(self.graph.card[i]), int(self.graph.place[edge])
        belief = self.belief[cell : cell + size]
        return np.where(np.isneginf(belief), -np.inf, belief - self.message[place : place + size])


@dataclass(frozen=True)
class LatticeBeliefs:
    """Messages of a binary lattice, and the log-odds of all sites."""

    lattice: OddsLattice
    log_odds: Floats

    def joint(self, sites: list[int]) -> Floats | None:
        """Return joint probabilities of two neighbours; None if they are not neighbours."""
        if len(sites) != 2:
            return None
        for w, ahead, back, far in edges_of(self.lattice):
            for near, other in (sites, sites[::-1]):
                if far[near] == other and w[near] != 1.0:
                    half = 0.5 * np.array(
                        [self.log_odds[near] - np.log(back[near]), self.log_odds[other] - np.log(ahead[near])]
                    )
                    spin = np.array([-1.0, 1.0])
                    logs = np.add.outer(half[0] * spin, half[1] * spin)
                    logs += 0.5 * np.log(w[near]) * np.outer(spin, spin)
                    table = np.exp(logs - logs.max())
                    table = table if near == sites[0] else table.T
                    return np.asarray(table / table.sum())
        return None
