"""Local log-weights kept up to date, for sites with many neighbours.

Summing over all neighbours at every visit costs their number, whether anything has changed or not. Here the log-weights
of all states of all sites are kept: a visit reads as many numbers as the site has states, and only a change of value
costs the number of neighbours; with a full matrix of couplings that is two passes through memory.

Adding and subtracting accumulates rounding errors, so everything is summed up anew after a fixed number of
changes. They are counted in the memory of the chain: a resumed chain does it at the same moment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Codes, Floats, Ints
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.local import from_logs

_ONE = np.uintp(1)
# Mean degree from which on it pays, found by timing 3 to 40 states: per state (a visit takes as many
# exponentials) and beyond. Without a matrix of couplings a change costs more and the bound is twice as high.
_DEGREE_PER_STATE, _DEGREE = 6, 8
# Sums up to this size keep ten digits behind the point through all changes between two fresh starts.
_LARGEST_SUM = 1e4
# Changes per site between two fresh starts: the starts take a hundredth of the time.
_CHANGES_PER_SITE = 64


class Running(NamedTuple):
    """Memory of a chain that keeps its log-weights.

    ``logs[a * n + i]`` is the log-weight of state a at site i, so that a change of one site touches two runs
    of n numbers. ``left[0]`` is how many changes are left before all sums are taken anew; none at the start.
    """

    work: Floats
    logs: Floats
    left: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return between which numbers the entries of arrays from a file lie."""
        return {"left": (0, 1 << 62)}


def running_pays(graph: Graph) -> bool:
    """Return whether keeping log-weights is faster than summing over neighbours, and safe."""
    arrays = graph.arrays
    if not isinstance(arrays, PottsGraph) or not arrays.coupling.size:
        return False
    degree = np.diff(arrays.start.astype(np.int64))
    bound = _DEGREE + _DEGREE_PER_STATE * int(graph.cards[0])
    pays = degree.mean() >= (bound if arrays.dense.size else 2 * bound)
    return bool(pays and degree.max() * np.abs(arrays.coupling).max() <= _LARGEST_SUM)


def running_memory(graph: Graph) -> Running:
    """Allocate the memory of a chain."""
    states = int(graph.cards.max(initial=1))
    return Running(np.zeros(states), np.zeros(states * graph.n_sites), np.zeros(1, np.int64))


@inlined
def running_weights(arrays: PottsGraph, memory: Running, x: Codes, i: Integer) -> tuple[Integer, float]:
    """Fill ``memory.work`` with the weights of site i; return the number of states and their sum."""
    if memory.left[0] == 0:
        _sum_up(arrays, memory, x)
    w, n = memory.work, np.uintp(x.size)
    size = np.uintp(arrays.card[i])
    for a in range(size):
        w[a] = memory.logs[a * n + i]
    return np.int64(size), from_logs(w, size)


@called
def note_change(arrays: PottsGraph, memory: Running, i: Integer, old: Integer, new: Integer) -> None:
    """Carry a change of site i from one state to another to the log-weights of its neighbours."""
    memory.left[0] -= 1
    logs, n = memory.logs, np.uintp(arrays.card.size)
    low, high = np.uintp(old) * n, np.uintp(new) * n
    if arrays.dense.size > 0:
        row = i * n
        for j in range(n):
            logs[low + j] -= arrays.dense[row + j]
            logs[high + j] += arrays.dense[row + j]
    else:
        step = np.uintp(arrays.step)
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + _ONE])):
            near = np.uintp(arrays.neighbour[k])
            logs[low + near] -= arrays.coupling[step * k]
            logs[high + near] += arrays.coupling[step * k]


@called
def _sum_up(arrays: PottsGraph, memory: Running, x: Codes) -> None:
    """Take all sums anew."""
    memory.left[0] = _CHANGES_PER_SITE * x.size
    logs, n, step = memory.logs, np.uintp(x.size), np.uintp(arrays.step)
    for i in range(n):
        cell = np.uintp(arrays.offset[i])
        for a in range(np.uintp(arrays.card[i])):
            logs[a * n + i] = arrays.log_unary[cell + a]
    for i in range(n):
        first = np.uintp(x[i]) * n
        if arrays.dense.size > 0:
            for j in range(n):
                logs[first + j] += arrays.dense[i * n + j]
        else:
            for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + _ONE])):
                logs[first + np.uintp(arrays.neighbour[k])] += arrays.coupling[step * k]
