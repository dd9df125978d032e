"""Exact influence: try all configurations of a site's neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import Integer, called, compiled
from gibbsite.graph.kinds.table import TableGraph

Floats = NDArray[np.float64]
Index = NDArray[np.uint32]


@called
def _conditional(graph: TableGraph, i: Integer, x: NDArray[np.int64], law: Floats) -> None:
    """Write the conditional law of site i; uniform where every state is excluded."""
    top = -np.inf
    for a in range(law.size):
        law[a] = graph.log_unary[graph.offset[i] + a]
    for k in range(graph.start[i], graph.start[i + 1]):
        f = graph.factor[k]
        at = graph.table[f]
        for m in range(graph.member_start[f], graph.member_start[f + 1]):
            if graph.member[m] != i:
                at += graph.stride[m] * x[graph.member[m]]
        for a in range(law.size):
            law[a] += graph.log_value[at + a * graph.own_stride[k]]
    for a in range(law.size):
        top = max(top, law[a])
    if top == -np.inf:
        for a in range(law.size):
            law[a] = 1.0 / law.size
        return
    total = 0.0
    for a in range(law.size):
        law[a] = np.exp(law[a] - top)
        total += law[a]
    for a in range(law.size):
        law[a] /= total


@compiled
def enumerate_blankets(
    graph: TableGraph,
    start: Index,
    neighbour: Index,
    most: Integer,
    value: Floats,
    exact: NDArray[np.bool_],
) -> None:
    """Replace the rows of sites whose neighbours have at most ``most`` configurations by exact influence."""
    x = np.zeros(start.size - 1, np.int64)
    for i in range(start.size - 1):
        first, degree = np.int64(start[i]), np.int64(start[i + 1]) - np.int64(start[i])
        count = np.int64(1)
        for k in range(degree):
            count *= graph.card[neighbour[first + k]]
            if count > most:
                break
        states = np.int64(graph.card[i])
        if count > most or count * states > 1024 * most:
            continue
        exact[i] = True
        law = np.empty((count, states))
        for number in range(count):
            rest = number
            for k in range(degree):
                j = neighbour[first + k]
                x[j] = rest % graph.card[j]
                rest //= graph.card[j]
            _conditional(graph, i, x, law[number])
        stride = np.int64(1)
        for k in range(degree):
            card = np.int64(graph.card[neighbour[first + k]])
            largest = 0.0
            for number in range(count):
                own = (number // stride) % card
                for other in range(own + 1, card):
                    partner = number + (other - own) * stride
                    distance = 0.0
                    for a in range(states):
                        distance += abs(law[number, a] - law[partner, a])
                    largest = max(largest, 0.5 * distance)
            value[first + k] = min(largest, 1.0)
            stride *= card
