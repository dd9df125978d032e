"""Expectations under a product law q, one law per site, for every graph kind.

q is laid out as cells: one entry per state of each site, for binary kinds one per site, the probability of
state 1. The log-potential of binary kinds is linear in the state of every single site, so its mean is the
log-potential *at* the mean: the functions of :mod:`gibbsite.graph.local`, given q for the state. The other
kinds share what stands here and differ in one function, which takes the mean over one factor.

A configuration of weight zero has log-potential minus infinity. With probability zero it counts for nothing;
otherwise its probability is added up apart (``barred``), so that sums stay finite and states can be compared
by how much they are in conflict with the rest.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import Integer, generic, implement, inlined
from gibbsite.graph.graph import Graph
from gibbsite.graph.kinds.distance import KernelGraph, coupling_at
from gibbsite.graph.kinds.ising import IsingGraph
from gibbsite.graph.kinds.lattice import LatticeGraph
from gibbsite.graph.kinds.pairwise import PairwiseGraph
from gibbsite.graph.kinds.potts import PottsGraph
from gibbsite.graph.kinds.table import TableGraph
from gibbsite.graph.local import log_potential

Floats = NDArray[np.float64]

_ONE = np.uintp(1)


class Desk(NamedTuple):
    """Scratch space.

    Attributes
    ----------
    logs : float (largest number of states,)
        Expected log-weights of the states of a site, over possible configurations.
    barred : float (largest number of states,)
        Expected number of factors that exclude the state; infinite if the site by itself does.
    code, entry, share
        The present state of each member of a table, the position in the table it leads to, and the
        probability of the members before it.
    """

    logs: Floats
    barred: Floats
    code: NDArray[np.int64]
    entry: NDArray[np.int64]
    share: Floats


def make_desk(graph: Graph) -> Desk:
    """Allocate the scratch space for a graph."""
    states = int(graph.cards.max(initial=1))
    widest = 0
    if isinstance(graph.arrays, TableGraph):
        widest = int(np.diff(graph.arrays.member_start.astype(np.int64)).max(initial=0))
    return Desk(
        np.zeros(max(states, 2)),
        np.zeros(max(states, 2)),
        np.zeros(widest, np.int64),
        np.zeros(widest, np.int64),
        np.zeros(widest),
    )


@generic
def row_of(graph: Any, i: Integer) -> tuple[Integer, Integer]:
    """Return the first number of a factor of site i, and the one after the last."""
    raise NotImplementedError


@generic
def add_mean_logs(graph: Any, q: Floats, i: Integer, k: Integer, desk: Desk) -> None:
    """Add the mean of factor k of site i to ``desk``, given each state of the site."""
    raise NotImplementedError


@generic
def owns(graph: Any, i: Integer, k: Integer) -> bool:
    """Whether factor k of site i is counted there; true at one of its sites."""
    raise NotImplementedError


@generic
def mean_log_potential(graph: Any, q: Floats, desk: Desk) -> float:
    """Mean of the log-potential, without the graph's constant."""
    raise NotImplementedError


@generic
def entropy(graph: Any, q: Floats) -> float:
    """Entropy of the product law."""
    raise NotImplementedError


@inlined
def mean_log_weights(graph: Any, q: Floats, i: Integer, desk: Desk) -> Integer:
    """Fill ``desk`` with the expected log-weights of the states of site i; return their number."""
    cell, size = np.uintp(graph.offset[i]), np.uintp(graph.card[i])
    for a in range(size):
        log = graph.log_unary[cell + a]
        desk.logs[a] = log if log > -np.inf else 0.0
        desk.barred[a] = 0.0 if log > -np.inf else np.inf
    first, last = row_of(graph, i)
    for k in range(first, last):
        add_mean_logs(graph, q, i, k, desk)
    return size


@inlined
def _add(desk: Desk, a: Integer, p: float, log: float) -> None:
    if log > -np.inf:
        desk.logs[a] += p * log
    else:
        desk.barred[a] += p


@implement(row_of)
def _stored_row(graph: Any, i: Integer) -> tuple[Integer, Integer]:
    return np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])


@implement(row_of, KernelGraph)
def _all_sites(graph: KernelGraph, i: Integer) -> tuple[Integer, Integer]:
    return np.uintp(0), np.uintp(graph.card.size)  # a factor goes by the number of the other site


@implement(add_mean_logs, KernelGraph)
def _add_kernel(graph: KernelGraph, q: Floats, i: Integer, k: Integer, desk: Desk) -> None:
    if k != i:
        cell = np.uintp(graph.offset[k])
        coupling = graph.beta * coupling_at(graph.positions, graph.decay, i, k)
        for a in range(np.uintp(graph.card[i])):
            desk.logs[a] += coupling * q[cell + a]


@implement(add_mean_logs, PottsGraph)
def _add_potts(graph: PottsGraph, q: Floats, i: Integer, k: Integer, desk: Desk) -> None:
    cell = np.uintp(graph.offset[np.uintp(graph.neighbour[k])])
    coupling = graph.coupling[np.uintp(graph.step) * k]
    for a in range(np.uintp(graph.card[i])):
        desk.logs[a] += coupling * q[cell + a]


@implement(add_mean_logs, PairwiseGraph)
def _add_pairwise(graph: PairwiseGraph, q: Floats, i: Integer, k: Integer, desk: Desk) -> None:
    j, size = np.uintp(graph.neighbour[k]), np.uintp(graph.card[i])
    cell, row = np.uintp(graph.offset[j]), np.uintp(graph.table[k])
    for b in range(np.uintp(graph.card[j])):
        p = q[cell + b]
        if p > 0.0:
            for a in range(size):
                _add(desk, a, p, graph.log_value[row + b * size + a])


@implement(add_mean_logs, TableGraph)
def _add_table(graph: TableGraph, q: Floats, i: Integer, k: Integer, desk: Desk) -> None:
    """Go through the configurations of the other members, depth first; improbable branches end at once."""
    f = np.uintp(graph.factor[k])
    first = np.int64(graph.member_start[f])
    last = np.int64(graph.member_start[f + _ONE]) - first - 1
    own, size = graph.own_stride[k], np.int64(graph.card[i])
    code, entry, share = desk.code, desk.entry, desk.share
    depth = 0
    code[0], entry[0], share[0] = -1, graph.table[f], 1.0
    while depth >= 0:
        member = np.int64(graph.member[first + depth])
        mine = member == np.int64(i)
        code[depth] += 1
        if code[depth] == (1 if mine else graph.card[member]):
            depth -= 1
            continue
        p = share[depth]
        if not mine:
            p *= q[graph.offset[member] + code[depth]]
        if p > 0.0:
            at = entry[depth] + graph.stride[first + depth] * code[depth]
            if depth < last:
                depth += 1
                code[depth], entry[depth], share[depth] = -1, at, p
            else:
                for a in range(size):
                    _add(desk, a, p, graph.log_value[at + own * a])


@implement(owns, PottsGraph)
@implement(owns, PairwiseGraph)
def _owns_pair(graph: Any, i: Integer, k: Integer) -> bool:
    return bool(graph.neighbour[k] > i)


@implement(owns, KernelGraph)
def _owns_coupling(graph: KernelGraph, i: Integer, k: Integer) -> bool:
    return bool(k > i)


@implement(owns, TableGraph)
def _owns_table(graph: TableGraph, i: Integer, k: Integer) -> bool:
    return bool(graph.member[np.uintp(graph.member_start[np.uintp(graph.factor[k])])] == i)


@implement(mean_log_potential)
def _mean_of_tables(graph: Any, q: Floats, desk: Desk) -> float:
    total = 0.0
    for site in range(graph.card.size):
        i = np.uintp(site)
        cell, size = np.uintp(graph.offset[i]), np.uintp(graph.card[i])
        for a in range(size):
            desk.logs[a] = graph.log_unary[cell + a]
            desk.barred[a] = 0.0
        first, last = row_of(graph, i)
        for k in range(first, last):
            if owns(graph, i, k):
                add_mean_logs(graph, q, i, k, desk)
        for a in range(size):
            if q[cell + a] > 0.0:
                total += q[cell + a] * desk.logs[a] if desk.barred[a] == 0.0 else -np.inf
    return total


@implement(mean_log_potential, IsingGraph)
@implement(mean_log_potential, LatticeGraph)
def _mean_of_binary(graph: Any, q: NDArray[Any], desk: Desk) -> float:
    return log_potential(graph, q)


@implement(entropy)
def _entropy_of_tables(graph: Any, q: Floats) -> float:
    total = 0.0
    for c in range(q.size):
        if q[c] > 0.0:
            total -= q[c] * math.log(q[c])
    return total


@implement(entropy, IsingGraph)
@implement(entropy, LatticeGraph)
def _entropy_of_binary(graph: Any, q: Floats) -> float:
    total = 0.0
    for c in range(q.size):
        if 0.0 < q[c] < 1.0:
            total -= q[c] * math.log(q[c]) + (1.0 - q[c]) * math.log1p(-q[c])
    return total
