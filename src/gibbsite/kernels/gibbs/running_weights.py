"""Local log-weights kept up to date, for sites with many neighbours.

Summing over neighbours takes time proportional to their number at every visit, even if nothing has changed. Here the
log-weights of all states of all sites are kept: a visit reads one number per state, and only a change of value takes
time proportional to the number of neighbours. With a full matrix of couplings, that is two passes through memory.

Adding and subtracting accumulates rounding errors, so all sums are computed again after a fixed number of changes. The
memory of the chain counts the changes, so a resumed chain computes the sums again at the same moment.
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
# The method is faster if the mean degree is at least _DEGREE_PER_STATE per state plus _DEGREE, by timings with 3 to 40
# states. Without a matrix of couplings, a change costs more, and the bound is twice as high.
_DEGREE_PER_STATE, _DEGREE = 6, 8
# Sums up to this size keep ten decimal places through all changes before they are computed again.
_LARGEST_SUM = 1e4
# Changes per site after which all sums are computed again, which takes a hundredth of the time.
_CHANGES_PER_SITE = 64


class Running(NamedTuple):
    """Memory of a chain that keeps its log-weights.

    ``logs[a * n + i]`` is the log-weight of state a at site i, so that a change of one site affects two runs of n
    numbers. ``left[0]`` is the number of changes before all sums are computed again, zero at the start.
    """

    work: Floats
    logs: Floats
    left: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
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
    """Update the log-weights of the neighbours of site i after it has changed its state."""
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
    """Compute all sums again."""
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
