"""Houdayer's move: two states of a model exchange a cluster of the sites at which they differ.

A cluster is connected and takes in all neighbours at which the states differ, so that every factor that it
touches sees, at its sites outside, the same in both. The exchange therefore moves log-potential from one
state to the other and keeps the sum, whatever the factors are: it leaves the product of the target with itself
stationary, without rejection. On sparse graphs clusters are neither single sites nor the whole graph, and make
moves that single sites cannot, also where couplings are frustrated.

The move is for two states at one temperature, as replicas in tempering are. It is not ergodic by itself: sites at
which the states agree do not change.

References
----------
.. [1] Houdayer, J. (2001). A cluster Monte Carlo algorithm for 2-dimensional spin glasses. EPJ B 22.
.. [2] Zhu, Z., Ochoa, A. J. and Katzgraber, H. G. (2015). Efficient cluster algorithm for spin glasses in any
       space dimension. PRL 115.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Ints32, Words32, Words64
from gibbsite._numba.jit import Integer, compiled, inlined
from gibbsite._numba.random.generators import Words, below, load, store
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph


class ExchangeMemory(NamedTuple):
    """Room for a cluster."""

    # start, neighbour: sites that share a factor with site i: ``neighbour[start[i] : start[i + 1]]``
    start: Words32
    neighbour: Words32
    todo: Ints32  # (sites,): the sites at which states differ, then the cluster
    mark: Bytes  # (sites,): whether a site is in the cluster; zeros between moves

    @property
    def rebuildable(self) -> bool:
        """Every move begins anew."""
        return True


def exchange_memory(graph: Graph) -> ExchangeMemory:
    """Return room for exchanges between states of a model."""
    start, neighbour = markov_graph(graph)
    return ExchangeMemory(start, neighbour, np.zeros(graph.n_sites, np.int32), np.zeros(graph.n_sites, np.uint8))


def exchange(memory: ExchangeMemory, x: Array, y: Array, words: Words64) -> int:
    """Exchange a random cluster between two states, in place; return its size, 0 where the states agree.

    Parameters
    ----------
    memory : ExchangeMemory
        As :func:`exchange_memory` makes it.
    x, y : int arrays (sites,)
        State codes.
    words : uint64 array (4,)
        The generator, which is advanced.
    """
    return int(_exchange(memory, x, y, words))


@compiled
def _exchange(memory: ExchangeMemory, x: Array, y: Array, words: Words64) -> Integer:
    rng, size = exchange_cluster(memory, x, y, load(words))
    store(words, rng)
    return size


@inlined
def exchange_cluster(memory: ExchangeMemory, x: Array, y: Array, rng: Words) -> tuple[Words, Integer]:
    """Exchange the cluster of a random site at which two states differ; for compiled code."""
    rng, size = choose_cluster(memory, x, y, rng)
    swap_cluster(memory, x, y, size)
    return rng, size


@inlined
def choose_cluster(memory: ExchangeMemory, x: Array, y: Array, rng: Words) -> tuple[Words, Integer]:
    """Write the cluster of a random site at which two states differ to ``todo``; return its size."""
    todo, apart = memory.todo, np.int64(0)
    for i in range(x.size):
        todo[apart] = i
        apart += x[i] != y[i]
    if apart == 0:
        return rng, apart
    rng, which = below(rng, apart)
    return rng, find_cluster(memory, x, y, np.intp(todo[which]))


@inlined
def exchange_around(memory: ExchangeMemory, x: Array, y: Array, seed: Integer) -> Integer:
    """Exchange the sites at which states differ that are connected with a seed; return how many they are."""
    size = find_cluster(memory, x, y, seed)
    swap_cluster(memory, x, y, size)
    return size


@inlined
def find_cluster(memory: ExchangeMemory, x: Array, y: Array, seed: Integer) -> Integer:
    """Write the sites at which states differ that are connected with a seed to ``todo``, and mark them."""
    todo, mark = memory.todo, memory.mark
    todo[0], mark[seed] = seed, 1
    done, known = np.int64(0), np.int64(1)
    while done < known:
        i = np.intp(todo[done])
        done += 1
        for k in range(np.uintp(memory.start[i]), np.uintp(memory.start[i + 1])):
            j = np.intp(memory.neighbour[k])
            if mark[j] == 0 and x[j] != y[j]:
                mark[j] = 1
                todo[known] = j
                known += 1
    return known


@inlined
def swap_cluster(memory: ExchangeMemory, x: Array, y: Array, size: Integer) -> None:
    """Exchange the sites in ``todo``, and unmark them."""
    for k in range(size):
        i = np.intp(memory.todo[k])
        memory.mark[i] = 0
        kept = x[i]
        x[i] = y[i]
        y[i] = kept
