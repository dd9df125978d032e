"""The local conditional of one site, for every graph kind.

Four generic functions are all a kernel needs to know of a model:

* :func:`log_odds`: binary kinds only, ``log P(x_i = 1 | rest) - log P(x_i = 0 | rest)``;
* :func:`weights`: every kind, unnormalised conditional weights of all states of a site;
* :func:`log_weights`: the same in logarithms, however small they are;
* :func:`log_potential`: every kind, the log-potential of a whole state (up to ``Graph.log_offset``).

On binary kinds these are linear in the code of every single site, so that codes may be replaced by
independent sites' probabilities of state 1: that gives expectations (:mod:`gibbsite.variational`).

Weights are products of table entries (each at most one). A product that becomes tiny is computed again
in logarithms, so nothing underflows to a wrong answer; which way is taken depends on the neighbours only.
Agreements multiply the weight of one state per neighbour, by a factor of any size; where products could
leave the range of floats, which the graph knows, they are sums of logarithms from the start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, generic, implement, inlined
from gibbsite.graph.decay import Decay, fall
from gibbsite.graph.kinds import IsingGraph, KernelGraph, LatticeGraph, PairwiseGraph, PottsGraph, TableGraph

State = NDArray[np.signedinteger[Any]]
Work = NDArray[np.float64]

_ONE = np.uintp(1)
_TINY = 1e-150  # below this the product of weights is taken again in logarithms


@generic
def log_odds(graph: Any, x: State, i: Integer) -> float:
    """Log-odds of state 1 against state 0 at site i given its neighbours (binary kinds)."""
    raise NotImplementedError


@generic
def weights(graph: Any, x: State, i: Integer, w: Work) -> tuple[Integer, float]:
    """Fill ``w`` with the conditional weights of site i; return the number of states and their sum."""
    raise NotImplementedError


@generic
def log_weights(graph: Any, x: State, i: Integer, w: Work) -> Integer:
    """Fill ``w`` with the logarithms of the conditional weights of site i; return the number of states."""
    raise NotImplementedError


@generic
def log_potential(graph: Any, x: NDArray[Any]) -> float:
    """Log-potential of the whole state, without the graph's constant."""
    raise NotImplementedError


@implement(log_odds, IsingGraph)
def _log_odds_ising(graph: IsingGraph, x: State, i: Integer) -> float:
    total: Any = graph.field[i]
    for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
        total += graph.coupling[k] * x[np.uintp(graph.neighbour[k])]
    return total  # type: ignore[no-any-return]


@inlined
def _axis_field(
    x: State, i: Integer, at: Integer, size: int, wrap: int, stride: int, coupling: Work, step: int
) -> float:
    """Coupling field on site i from its two neighbours along one axis; ``at`` is its coordinate."""
    total = 0.0
    unit = np.uintp(stride)
    if at > 0:
        total += coupling[np.uintp(step) * (i - unit)] * (2 * x[i - unit] - 1)
    elif wrap:
        last = i + np.uintp((size - 1) * stride)
        total += coupling[np.uintp(step) * last] * (2 * x[last] - 1)
    if at < size - 1:
        total += coupling[np.uintp(step) * i] * (2 * x[i + unit] - 1)
    elif wrap:
        first = i - np.uintp((size - 1) * stride)
        total += coupling[np.uintp(step) * i] * (2 * x[first] - 1)
    return total


@implement(log_odds, LatticeGraph)
def _log_odds_lattice(graph: LatticeGraph, x: State, i: Integer) -> float:
    g = graph
    total: float = g.field[np.uintp(g.step_field) * i]
    row = np.uint32(i) // np.uint32(g.size_2)
    at_2 = np.int64(np.uint32(i) - row * np.uint32(g.size_2))
    total += _axis_field(x, i, at_2, g.size_2, g.wrap_2, 1, g.coupling_2, g.step_2)
    if g.size_0 == 1:
        at_0, at_1 = np.int64(0), np.int64(row)
    else:
        plane = row // np.uint32(g.size_1)
        at_0, at_1 = np.int64(plane), np.int64(row - plane * np.uint32(g.size_1))
        total += _axis_field(x, i, at_0, g.size_0, g.wrap_0, g.size_1 * g.size_2, g.coupling_0, g.step_0)
    total += _axis_field(x, i, at_1, g.size_1, g.wrap_1, g.size_2, g.coupling_1, g.step_1)
    return 2.0 * total


@implement(weights, IsingGraph)
@implement(weights, LatticeGraph)
def _weights_binary(graph: Any, x: State, i: Integer, w: Work) -> tuple[Integer, float]:
    odds = log_odds(graph, x, i)
    if odds >= 0.0:  # both are exact in the tails, and their sum is one
        tail = math.exp(-odds)
        w[0] = tail / (1.0 + tail)
        w[1] = 1.0 / (1.0 + tail)
    else:
        tail = math.exp(odds)
        w[0] = 1.0 / (1.0 + tail)
        w[1] = tail / (1.0 + tail)
    return 2, w[0] + w[1]


@implement(log_weights, IsingGraph)
@implement(log_weights, LatticeGraph)
def _log_weights_binary(graph: Any, x: State, i: Integer, w: Work) -> Integer:
    w[0], w[1] = 0.0, log_odds(graph, x, i)
    return 2


@inlined
def from_logs(w: Work, size: Integer) -> float:
    """Turn log-weights into weights with maximum one; return their sum (0 if all are impossible)."""
    top = -np.inf
    for a in range(size):
        top = max(top, w[a])
    total = 0.0
    if top > -np.inf:
        for a in range(size):
            w[a] = math.exp(w[a] - top)
            total += w[a]
    return total


@implement(log_weights, PottsGraph)
def _log_weights_potts(graph: PottsGraph, x: State, i: Integer, w: Work) -> Integer:
    size = np.uintp(graph.card[i])
    cell, step = np.uintp(graph.offset[i]), np.uintp(graph.step)
    for a in range(size):
        w[a] = graph.log_unary[cell + a]
    for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
        w[np.uintp(x[np.uintp(graph.neighbour[k])])] += graph.coupling[step * k]
    return np.int64(size)


@implement(weights, PottsGraph)
def _weights_potts(graph: PottsGraph, x: State, i: Integer, w: Work) -> tuple[Integer, float]:
    size = np.uintp(graph.card[i])
    cell, step = np.uintp(graph.offset[i]), np.uintp(graph.step)
    first, last = np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])
    total = 0.0
    if graph.steep[i]:
        log_weights(graph, x, i, w)
        total = from_logs(w, size)
    else:
        for a in range(size):
            w[a] = graph.unary[cell + a]
        for k in range(first, last):
            w[np.uintp(x[np.uintp(graph.neighbour[k])])] *= graph.factor[step * k]
        for a in range(size):
            total += w[a]
    return np.int64(size), total


@inlined
def coupling_at(positions: Work, decay: Decay, i: Integer, j: Integer) -> float:
    """Return the coupling of two positions, one at distance zero."""
    square = 0.0
    for axis in range(np.uintp(positions.shape[1])):
        gap = positions[i, axis] - positions[j, axis]
        square += gap * gap
    return fall(decay, square)


@implement(log_weights, KernelGraph)
def _log_weights_kernel(graph: KernelGraph, x: State, i: Integer, w: Work) -> Integer:
    size = np.uintp(graph.card[i])
    cell = np.uintp(graph.offset[i])
    for a in range(size):
        w[a] = graph.log_unary[cell + a]
    for j in range(np.uintp(x.size)):
        if j != i:
            w[np.uintp(x[j])] += graph.beta * coupling_at(graph.positions, graph.decay, i, j)
    return np.int64(size)


@implement(weights, KernelGraph)
def _weights_kernel(graph: KernelGraph, x: State, i: Integer, w: Work) -> tuple[Integer, float]:
    size = np.int64(log_weights(graph, x, i, w))
    return size, from_logs(w, size)


@implement(log_weights, PairwiseGraph)
def _log_weights_pairwise(graph: PairwiseGraph, x: State, i: Integer, w: Work) -> Integer:
    size = np.uintp(graph.card[i])
    cell = np.uintp(graph.offset[i])
    for a in range(size):
        w[a] = graph.log_unary[cell + a]
    for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
        row = np.uintp(graph.table[k]) + np.uintp(x[np.uintp(graph.neighbour[k])]) * size
        for a in range(size):
            w[a] += graph.log_value[row + a]
    return np.int64(size)


@implement(weights, PairwiseGraph)
def _weights_pairwise(graph: PairwiseGraph, x: State, i: Integer, w: Work) -> tuple[Integer, float]:
    size = np.uintp(graph.card[i])
    cell = np.uintp(graph.offset[i])
    first, last = np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])
    for a in range(size):
        w[a] = graph.unary[cell + a]
    for k in range(first, last):
        row = np.uintp(graph.table[k]) + np.uintp(x[np.uintp(graph.neighbour[k])]) * size
        for a in range(size):
            w[a] *= graph.value[row + a]
    total = 0.0
    for a in range(size):
        total += w[a]
    if total < _TINY:
        log_weights(graph, x, i, w)
        total = from_logs(w, size)
    return np.int64(size), total


@inlined
def entry_of(graph: TableGraph, x: State, f: Integer) -> Integer:
    """Position in the value array of the entry of factor f at state x."""
    entry = graph.table[f]
    for m in range(np.uintp(graph.member_start[f]), np.uintp(graph.member_start[f + _ONE])):
        entry += graph.stride[m] * x[np.uintp(graph.member[m])]
    return np.uintp(entry)


@implement(log_weights, TableGraph)
def _log_weights_table(graph: TableGraph, x: State, i: Integer, w: Work) -> Integer:
    size = np.uintp(graph.card[i])
    cell = np.uintp(graph.offset[i])
    now = np.uintp(x[i])
    for a in range(size):
        w[a] = graph.log_unary[cell + a]
    for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
        own = np.uintp(graph.own_stride[k])
        entry = entry_of(graph, x, np.uintp(graph.factor[k])) - own * now
        for a in range(size):
            w[a] += graph.log_value[entry + own * a]
    return np.int64(size)


@implement(weights, TableGraph)
def _weights_table(graph: TableGraph, x: State, i: Integer, w: Work) -> tuple[Integer, float]:
    size = np.uintp(graph.card[i])
    cell = np.uintp(graph.offset[i])
    first, last = np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])
    now = np.uintp(x[i])
    for a in range(size):
        w[a] = graph.unary[cell + a]
    for k in range(first, last):
        own = np.uintp(graph.own_stride[k])
        entry = entry_of(graph, x, np.uintp(graph.factor[k])) - own * now
        for a in range(size):
            w[a] *= graph.value[entry + own * a]
    total = 0.0
    for a in range(size):
        total += w[a]
    if total < _TINY:
        log_weights(graph, x, i, w)
        total = from_logs(w, size)
    return np.int64(size), total


@implement(log_potential, IsingGraph)
def _log_potential_ising(graph: IsingGraph, x: State) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        if x[i]:
            total += graph.field[i] * x[i]
            for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
                j = np.uintp(graph.neighbour[k])
                if j > i:
                    total += graph.coupling[k] * x[i] * x[j]
    return total


@implement(log_potential, LatticeGraph)
def _log_potential_lattice(graph: LatticeGraph, x: State) -> float:
    # every pair is seen from both ends, every field once: half the sum of s (field + h) is the total
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        spin = 2 * x[i] - 1
        field = graph.field[np.uintp(graph.step_field) * i]
        total += 0.5 * spin * (0.5 * log_odds(graph, x, i) + field)
    return total


@implement(log_potential, PottsGraph)
def _log_potential_potts(graph: PottsGraph, x: State) -> float:
    total = 0.0
    step = np.uintp(graph.step)
    for site in range(x.size):
        i = np.uintp(site)
        total += graph.log_unary[np.uintp(graph.offset[i]) + np.uintp(x[i])]
        for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
            j = np.uintp(graph.neighbour[k])
            if j > i and x[j] == x[i]:
                total += graph.coupling[step * k]
    return total


@implement(log_potential, KernelGraph)
def _log_potential_kernel(graph: KernelGraph, x: State) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += graph.log_unary[np.uintp(graph.offset[i]) + np.uintp(x[i])]
        for j in range(i):
            if x[j] == x[i]:
                total += graph.beta * coupling_at(graph.positions, graph.decay, i, j)
    return total


@implement(log_potential, PairwiseGraph)
def _log_potential_pairwise(graph: PairwiseGraph, x: State) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += graph.log_unary[np.uintp(graph.offset[i]) + np.uintp(x[i])]
        for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + _ONE])):
            j = np.uintp(graph.neighbour[k])
            if j > i:
                row = np.uintp(graph.table[k]) + np.uintp(x[j]) * np.uintp(graph.card[i])
                total += graph.log_value[row + np.uintp(x[i])]
    return total


@implement(log_potential, TableGraph)
def _log_potential_table(graph: TableGraph, x: State) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += graph.log_unary[np.uintp(graph.offset[i]) + np.uintp(x[i])]
    for f in range(graph.table.size):
        total += graph.log_value[entry_of(graph, x, np.uintp(f))]
    return total
