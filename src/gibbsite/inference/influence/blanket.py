"""Exact influence, by enumerating all configurations of the neighbours of a site."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Words32
from gibbsite._numba.jit import Integer, called, compiled
from gibbsite.graphs.kinds.table import TableGraph


@called
def _conditional(arrays: TableGraph, i: Integer, x: Ints, law: Floats) -> None:
    """Write the conditional distribution of site i; uniform where every state is excluded."""
    top = -np.inf
    for a in range(law.size):
        law[a] = arrays.log_unary[arrays.offset[i] + a]
    for k in range(arrays.start[i], arrays.start[i + 1]):
        f = arrays.factor[k]
        at = arrays.table[f]
        for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
            if arrays.member[m] != i:
                at += arrays.stride[m] * x[arrays.member[m]]
        for a in range(law.size):
            law[a] += arrays.log_value[at + a * arrays.own_stride[k]]
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
    arrays: TableGraph, start: Words32, neighbour: Words32, most: Integer, value: Floats, exact: Bools
) -> None:
    """Replace the rows of sites whose neighbours have at most ``most`` configurations by exact influence."""
    x = np.zeros(start.size - 1, np.int64)
    for i in range(start.size - 1):
        first, degree = np.int64(start[i]), np.int64(start[i + 1]) - np.int64(start[i])
        count = np.int64(1)
        for k in range(degree):
            count *= arrays.card[neighbour[first + k]]
            if count > most:
                break
        states = np.int64(arrays.card[i])
        if count > most or count * states > 1024 * most:
            continue
        exact[i] = True
        law = np.empty((count, states))
        for number in range(count):
            rest = number
            for k in range(degree):
                j = neighbour[first + k]
                x[j] = rest % arrays.card[j]
                rest //= arrays.card[j]
            _conditional(arrays, i, x, law[number])
        stride = np.int64(1)
        for k in range(degree):
            card = np.int64(arrays.card[neighbour[first + k]])
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
