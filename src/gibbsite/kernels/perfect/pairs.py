"""Two-state models of pairs: the lowest and the highest state that a chain can be in, from any past.

A site is set to its second state if logistic noise is below its log-odds. Bounds of the log-odds follow from
the bounds of its neighbours, whatever the sign of a coupling: this is monotone coupling from the past for
models without frustration [1]_, and that of anti-monotone systems [2]_ for others.

References
----------
.. [1] Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and applications to
       statistical mechanics. Random Structures and Algorithms 9.
.. [2] Häggström, O. and Nelander, K. (1998). Exact sampling from anti-monotone systems. Statistica
       Neerlandica 52.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Ints8
from gibbsite._numba.jit import Integer, inlined
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.kernels.perfect.past import two_numbers


class PairBounds(NamedTuple):
    """The lowest and the highest state of every site."""

    low: Ints8
    high: Ints8


@inlined
def come_from(model: IsingGraph, bounds: PairBounds, key: np.uint64, span: Integer) -> Integer:
    """Make sweeps from ``span`` sweeps ago until now; return at how many sites bounds differ now."""
    n, apart = bounds.low.size, np.int64(bounds.low.size)
    for i in range(n):
        bounds.low[i] = 0
        bounds.high[i] = 1
    for back in range(span):
        time = span - back
        if apart > 0:
            apart = _sweep_both(model, bounds, key, time)
        else:
            _sweep_one(model, bounds.low, key, time)
    if n > 0 and apart == 0:
        for i in range(n):
            bounds.high[i] = bounds.low[i]
    return apart


@inlined
def _noise(u: float) -> float:
    return math.log(u / (1.0 - u))


@inlined
def _sweep_both(model: IsingGraph, bounds: PairBounds, key: np.uint64, time: Integer) -> Integer:
    low, high, apart = bounds.low, bounds.high, np.int64(0)
    spare = 0.0
    for site in range(low.size):
        i = np.intp(site)
        if site % 2 == 0:
            u, spare = two_numbers(key, time, site // 2, 0)
        else:
            u = spare
        noise = _noise(u)
        least: Any = model.field[i]
        most: Any = model.field[i]
        for k in range(np.uintp(model.start[i]), np.uintp(model.start[i + 1])):
            j, c = np.intp(model.neighbour[k]), model.coupling[k]
            if c >= 0.0:
                least += c * low[j]
                most += c * high[j]
            else:
                least += c * high[j]
                most += c * low[j]
        low[i] = noise < least
        high[i] = noise < most
        apart += low[i] != high[i]
    return apart


@inlined
def _sweep_one(model: IsingGraph, x: Ints8, key: np.uint64, time: Integer) -> None:
    spare = 0.0
    for site in range(x.size):
        i = np.intp(site)
        if site % 2 == 0:
            u, spare = two_numbers(key, time, site // 2, 0)
        else:
            u = spare
        odds: Any = model.field[i]
        for k in range(np.uintp(model.start[i]), np.uintp(model.start[i + 1])):
            odds += model.coupling[k] * x[np.intp(model.neighbour[k])]
        x[i] = _noise(u) < odds
