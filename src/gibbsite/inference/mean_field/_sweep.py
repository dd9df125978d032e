"""A sweep of mean field, in which every site takes the best distribution given those of the others.

A product distribution q is stored as cells: one entry per state of each site; for binary kinds one per site, the
probability of state 1. The log-potential of binary kinds is linear in the state of every single site, so that its mean
is the log-potential *at* the mean: the functions of :mod:`gibbsite.graphs.local`, given q for the state. The other
kinds share the code here and differ in one function, which takes the mean over one factor.

Given the others, the bound is largest at q_i(a) proportional to exp(expected log-weight of a). A configuration of
weight zero has log-potential minus infinity. It is ignored if it has probability zero; otherwise its probability is
summed separately (``barred``), and states that it excludes get probability zero, even where steps are damped, because
the bound is minus infinity until then. If all states of a site are excluded that way, those excluded with the least
probability share the site as if they were not excluded: this is the limit of zeros replaced by exp(-M) for growing M. A
sweep in place thus removes excluded configurations until none is left, or no single site can improve.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, generic, implement, inlined
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.distance import DistanceGraph, coupling_at
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.local import from_logs, log_potential, weights

#: Kinds whose expectations are implemented here; other models are compiled to one of them.
KINDS = ("lattice", "ising", "potts", "distance", "pairwise", "table")
_ONE = np.uintp(1)


class ExpectationWorkspace(NamedTuple):
    """Scratch space.

    ``logs`` (states,) holds the expected log-weights of the states of a site over possible configurations, ``barred``
    (states,) the expected number of factors that exclude a state, infinite if the site by itself does. ``code``,
    ``entry`` and ``share`` are, for each member of a table, its present state, the position in the table that it leads
    to, and the probability of the members before it.
    """

    logs: Floats
    barred: Floats
    code: Ints
    entry: Ints
    share: Floats


def make_workspace(graph: Graph) -> ExpectationWorkspace:
    """Allocate the scratch space for a graph."""
    states = int(graph.cards.max(initial=1))
    widest = 0
    if isinstance(graph.arrays, TableGraph):
        widest = int(np.diff(graph.arrays.member_start.astype(np.int64)).max(initial=0))
    return ExpectationWorkspace(
        np.zeros(max(states, 2)),
        np.zeros(max(states, 2)),
        np.zeros(widest, np.int64),
        np.zeros(widest, np.int64),
        np.zeros(widest),
    )


@generic
def row_of(arrays: Any, i: Integer) -> tuple[Integer, Integer]:
    """Return the first number of a factor of site i, and the one after the last."""
    raise NotImplementedError


@generic
def add_mean_logs(arrays: Any, q: Floats, i: Integer, k: Integer, workspace: ExpectationWorkspace) -> None:
    """Add the mean of factor k of site i to ``workspace``, given each state of the site."""
    raise NotImplementedError


@generic
def owns(arrays: Any, i: Integer, k: Integer) -> bool:
    """Whether factor k of site i is counted at this site; true at exactly one of its sites."""
    raise NotImplementedError


@generic
def mean_log_potential(arrays: Any, q: Floats, workspace: ExpectationWorkspace) -> float:
    """Return the mean of the log-potential, without the graph's constant."""
    raise NotImplementedError


@generic
def entropy(arrays: Any, q: Floats) -> float:
    """Return the entropy of the product distribution."""
    raise NotImplementedError


@inlined
def mean_log_weights(arrays: Any, q: Floats, i: Integer, workspace: ExpectationWorkspace) -> Integer:
    """Fill ``workspace`` with the expected log-weights of the states of site i; return their number."""
    cell, size = np.uintp(arrays.offset[i]), np.uintp(arrays.card[i])
    for a in range(size):
        log = arrays.log_unary[cell + a]
        workspace.logs[a] = log if log > -np.inf else 0.0
        workspace.barred[a] = 0.0 if log > -np.inf else np.inf
    first, last = row_of(arrays, i)
    for k in range(first, last):
        add_mean_logs(arrays, q, i, k, workspace)
    return size


@inlined
def _add(workspace: ExpectationWorkspace, a: Integer, p: float, log: float) -> None:
    if log > -np.inf:
        workspace.logs[a] += p * log
    else:
        workspace.barred[a] += p


@implement(row_of)
def _stored_row(arrays: Any, i: Integer) -> tuple[Integer, Integer]:
    return np.uintp(arrays.start[i]), np.uintp(arrays.start[i + _ONE])


@implement(row_of, DistanceGraph)
def _all_sites(arrays: DistanceGraph, i: Integer) -> tuple[Integer, Integer]:
    return np.uintp(0), np.uintp(arrays.card.size)  # factors are numbered by the other site


@implement(add_mean_logs, DistanceGraph)
def _add_kernel(arrays: DistanceGraph, q: Floats, i: Integer, k: Integer, workspace: ExpectationWorkspace) -> None:
    if k != i:
        cell = np.uintp(arrays.offset[k])
        coupling = arrays.beta * coupling_at(arrays.positions, arrays.decay, i, k)
        for a in range(np.uintp(arrays.card[i])):
            workspace.logs[a] += coupling * q[cell + a]


@implement(add_mean_logs, PottsGraph)
def _add_potts(arrays: PottsGraph, q: Floats, i: Integer, k: Integer, workspace: ExpectationWorkspace) -> None:
    cell = np.uintp(arrays.offset[np.uintp(arrays.neighbour[k])])
    coupling = arrays.coupling[np.uintp(arrays.step) * k]
    for a in range(np.uintp(arrays.card[i])):
        workspace.logs[a] += coupling * q[cell + a]


@implement(add_mean_logs, PairwiseGraph)
def _add_pairwise(arrays: PairwiseGraph, q: Floats, i: Integer, k: Integer, workspace: ExpectationWorkspace) -> None:
    j, size = np.uintp(arrays.neighbour[k]), np.uintp(arrays.card[i])
    cell, row = np.uintp(arrays.offset[j]), np.uintp(arrays.table[k])
    for b in range(np.uintp(arrays.card[j])):
        p = q[cell + b]
        if p > 0.0:
            for a in range(size):
                _add(workspace, a, p, arrays.log_value[row + b * size + a])


@implement(add_mean_logs, TableGraph)
def _add_table(arrays: TableGraph, q: Floats, i: Integer, k: Integer, workspace: ExpectationWorkspace) -> None:
    """Visit the configurations of the other members, depth first; branches of probability zero end at once."""
    f = np.uintp(arrays.factor[k])
    first = np.int64(arrays.member_start[f])
    last = np.int64(arrays.member_start[f + _ONE]) - first - 1
    own, size = arrays.own_stride[k], np.int64(arrays.card[i])
    code, entry, share = workspace.code, workspace.entry, workspace.share
    depth = 0
    code[0], entry[0], share[0] = -1, arrays.table[f], 1.0
    while depth >= 0:
        member = np.int64(arrays.member[first + depth])
        mine = member == np.int64(i)
        code[depth] += 1
        if code[depth] == (1 if mine else arrays.card[member]):
            depth -= 1
            continue
        p = share[depth]
        if not mine:
            p *= q[arrays.offset[member] + code[depth]]
        if p > 0.0:
            at = entry[depth] + arrays.stride[first + depth] * code[depth]
            if depth < last:
                depth += 1
                code[depth], entry[depth], share[depth] = -1, at, p
            else:
                for a in range(size):
                    _add(workspace, a, p, arrays.log_value[at + own * a])


@implement(owns, PottsGraph)
@implement(owns, PairwiseGraph)
def _owns_pair(arrays: Any, i: Integer, k: Integer) -> bool:
    return bool(arrays.neighbour[k] > i)


@implement(owns, DistanceGraph)
def _owns_coupling(arrays: DistanceGraph, i: Integer, k: Integer) -> bool:
    return bool(k > i)


@implement(owns, TableGraph)
def _owns_table(arrays: TableGraph, i: Integer, k: Integer) -> bool:
    return bool(arrays.member[np.uintp(arrays.member_start[np.uintp(arrays.factor[k])])] == i)


@implement(mean_log_potential)
def _mean_of_tables(arrays: Any, q: Floats, workspace: ExpectationWorkspace) -> float:
    total = 0.0
    for site in range(arrays.card.size):
        i = np.uintp(site)
        cell, size = np.uintp(arrays.offset[i]), np.uintp(arrays.card[i])
        for a in range(size):
            workspace.logs[a] = arrays.log_unary[cell + a]
            workspace.barred[a] = 0.0
        first, last = row_of(arrays, i)
        for k in range(first, last):
            if owns(arrays, i, k):
                add_mean_logs(arrays, q, i, k, workspace)
        for a in range(size):
            if q[cell + a] > 0.0:
                total += q[cell + a] * workspace.logs[a] if workspace.barred[a] == 0.0 else -np.inf
    return total


@implement(mean_log_potential, IsingGraph)
@implement(mean_log_potential, LatticeGraph)
def _mean_of_binary(arrays: Any, q: Array, workspace: ExpectationWorkspace) -> float:
    return log_potential(arrays, q)


@implement(entropy)
def _entropy_of_tables(arrays: Any, q: Floats) -> float:
    total = 0.0
    for c in range(q.size):
        if q[c] > 0.0:
            total -= q[c] * math.log(q[c])
    return total


@implement(entropy, IsingGraph)
@implement(entropy, LatticeGraph)
def _entropy_of_binary(arrays: Any, q: Floats) -> float:
    total = 0.0
    for c in range(q.size):
        if 0.0 < q[c] < 1.0:
            total -= q[c] * math.log(q[c]) + (1.0 - q[c]) * math.log1p(-q[c])
    return total


_TIE = 1.0 + 1e-12  # largest ratio of two sums of the same probabilities, which differ by rounding


@generic
def renew(arrays: Any, q: Floats, fresh: Floats, i: Integer, damping: float, workspace: ExpectationWorkspace) -> float:
    """Write the new distribution of site i to ``fresh``; return the distance of the undamped one from the old."""
    raise NotImplementedError


@implement(renew, IsingGraph)
@implement(renew, LatticeGraph)
def _renew_binary(
    arrays: Any, q: Any, fresh: Floats, i: Integer, damping: float, workspace: ExpectationWorkspace
) -> float:
    weights(arrays, q, i, workspace.logs)  # their sum is one
    best: float = workspace.logs[1]
    old: float = q[i]
    fresh[i] = (1.0 - damping) * old + damping * best
    return abs(best - old)


@implement(renew)
def _renew_cells(
    arrays: Any, q: Floats, fresh: Floats, i: Integer, damping: float, workspace: ExpectationWorkspace
) -> float:
    size = mean_log_weights(arrays, q, i, workspace)
    cell = np.uintp(arrays.offset[i])
    best, barred = workspace.logs, workspace.barred
    least = _least_barred(barred, size)
    left = 0.0  # old probability of the states that stay possible
    for a in range(size):
        if barred[a] > least:
            best[a] = -np.inf
        else:
            left += q[cell + a]
    scale = 1.0 / from_logs(best, size)
    share = 1.0 / ((1.0 - damping) * left + damping)
    change = 0.0
    for a in range(size):
        p = best[a] * scale
        old = q[cell + a]
        kept = 0.0 if barred[a] > least else (1.0 - damping) * old
        fresh[cell + a] = (kept + damping * p) * share
        change = max(change, abs(p - old))
    return change


@inlined
def _least_barred(barred: Floats, size: Integer) -> float:
    least = np.inf
    for a in range(size):
        least = min(least, barred[a])
    return least * _TIE


@compiled_loop
def sweep(arrays: Any, n: int, q: Floats, fresh: Floats, damping: float, workspace: ExpectationWorkspace) -> float:
    """Update all sites from ``q`` to ``fresh``, in place if both are the same; return the largest change."""
    largest = 0.0
    for site in range(n):
        largest = max(largest, renew(arrays, q, fresh, np.uintp(site), damping, workspace))
    return largest


@compiled_loop
def bound(arrays: Any, q: Floats, workspace: ExpectationWorkspace) -> float:
    """Return mean log-potential plus entropy, a lower bound of the log-partition function for any q."""
    return mean_log_potential(arrays, q, workspace) + entropy(arrays, q)
