"""The local conditional of one site, which every graph kind implements.

Kernels read models through four generic functions:

* :func:`log_odds`: binary kinds only, ``log P(x_i = 1 | rest) - log P(x_i = 0 | rest)``;
* :func:`weights`: every kind, unnormalised conditional weights of all states of a site;
* :func:`log_weights`: their logarithms, without underflow;
* :func:`log_potential`: every kind, the log-potential of a whole state (up to ``Graph.log_offset``).

On binary kinds these are linear in the code of every single site. If codes are replaced by probabilities of
independent sites, the functions therefore return expectations (:mod:`gibbsite.inference.mean_field`).

Weights are products of table entries (each at most one). A tiny product is computed again in logarithms, so no
underflow changes a result; whether that happens depends on the neighbours only. Potts couplings multiply the weight of
one state per neighbour by a factor of any size. Sites whose products could leave the range of floats are marked in the
graph, and their weights are always computed in logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Codes, Floats
from gibbsite._numba.jit import Integer, generic, inlined

ONE = np.uintp(1)
TINY = 1e-150  # products below this are computed again in logarithms


@generic
def log_odds(arrays: Any, x: Codes, i: Integer) -> float:
    """Return the log-odds of state 1 against state 0 at site i given its neighbours (binary kinds)."""
    raise NotImplementedError


@generic
def weights(arrays: Any, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    """Fill ``w`` with the conditional weights of site i; return the number of states and their sum."""
    raise NotImplementedError


@generic
def log_weights(arrays: Any, x: Codes, i: Integer, w: Floats) -> Integer:
    """Fill ``w`` with the logarithms of the conditional weights of site i; return the number of states."""
    raise NotImplementedError


@generic
def log_potential(arrays: Any, x: Array) -> float:
    """Return the log-potential of the whole state, without the graph's constant."""
    raise NotImplementedError


def weights_binary(arrays: Any, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    """Fill ``w`` with the conditional weights of a binary kind, computed from the log-odds."""
    odds = log_odds(arrays, x, i)
    if odds >= 0.0:  # both are exact in the tails, and their sum is one
        tail = math.exp(-odds)
        w[0] = tail / (1.0 + tail)
        w[1] = 1.0 / (1.0 + tail)
    else:
        tail = math.exp(odds)
        w[0] = 1.0 / (1.0 + tail)
        w[1] = tail / (1.0 + tail)
    return 2, w[0] + w[1]


def log_weights_binary(arrays: Any, x: Codes, i: Integer, w: Floats) -> Integer:
    """Fill ``w`` with the log-weights of a binary kind, computed from the log-odds."""
    w[0], w[1] = 0.0, log_odds(arrays, x, i)
    return 2


@inlined
def own_weights(arrays: Any, values: Floats, i: Integer, w: Floats) -> Integer:
    """Fill ``w`` with the cells of site i in an array of all cells; return the number of states."""
    size = np.uintp(arrays.card[i])
    cell = np.uintp(arrays.offset[i])
    for a in range(size):
        w[a] = values[cell + a]
    return size


@inlined
def from_logs(w: Floats, size: Integer) -> float:
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
