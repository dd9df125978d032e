"""Many short chains of plain Gibbs sampling on a small model, all of them moved by one call.

The checks of a verdict start dozens of chains for a few sweeps each. On a small model the calls would take
far longer than the sweeps, so the states of all chains stand in the rows of one array here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints, Words64
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store, uniform
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_odds, log_potential, weights
from gibbsite.kernels.rules import pick

_SIDE_BY_SIDE = 8  # chains whose updates of a site a processor can work on at the same time


class Rows:
    """Chains that move by plain Gibbs sampling, site after site.

    Parameters
    ----------
    graph : Graph
        A discrete model.
    x : int array (chains, sites)
        States; moved in place.
    words : uint64 array (chains, 4)
        Generators of the chains; moved in place.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((2, 2), coupling=0.0, field=20.0))
    >>> words = np.arange(1, 13, dtype=np.uint64).reshape(3, 4)
    >>> rows = Rows(graph, np.zeros((3, 4), graph.state_dtype), words)
    >>> rows.move(8).round(6).tolist()[0], rows.x.tolist()[0]
    ([1.0, 1.0, 1.0, 1.0], [1, 1, 1, 1])
    """

    def __init__(self, graph: Graph, x: Array, words: Words64) -> None:
        self.graph, self.x, self.words = graph, x, words
        self.work = np.zeros(int(graph.cards.max(initial=2)))
        self.first = np.asarray(graph.offset[:-1], np.int64)

    def move(self, sweeps: int, held: Bools | None = None, beta: float = 1.0) -> Floats:
        """Make sweeps; return the mean conditional probabilities of all cells (chains, cells) in them.

        Sites of ``held`` (chains, sites) keep their states; their cells are zero. The chains are those of the
        model at the inverse temperature ``beta``, whose conditional weights are powers of those of the model.
        """
        cells = np.zeros((len(self.x), self.graph.n_cells))
        held = np.zeros((0, 0), np.bool_) if held is None else held
        arrays, x, words = self.graph.arrays, self.x, self.words
        if self.graph.binary:
            _move_binary_rows(arrays, x, held, sweeps, words, beta, cells)
        else:
            _move_rows(arrays, x, held, sweeps, words, self.work, self.first, beta, cells)
        return cells / max(sweeps, 1)

    def log_potentials(self) -> Floats:
        """Return the log-potentials of the states."""
        found = np.zeros(len(self.x))
        _sum_potentials(self.graph.arrays, self.x, found)
        return found + self.graph.log_offset


@compiled_loop
def _move_rows(
    arrays: Any,
    x: Array,
    held: Bools,
    sweeps: int,
    words: Words64,
    work: Floats,
    first: Ints,
    beta: float,
    cells: Floats,
) -> None:
    """Draw sites from their conditionals, sweep after sweep, in every row, and add the conditionals up."""
    some = held.shape[0] > 0
    for group in range(0, x.shape[0], _SIDE_BY_SIDE):
        for _ in range(sweeps):
            for i in range(x.shape[1]):
                for chain in range(group, min(group + _SIDE_BY_SIDE, x.shape[0])):
                    if some and held[chain, i]:
                        continue
                    size, total = weights(arrays, x[chain], np.uintp(i), work)
                    if beta != 1.0:
                        total = 0.0
                        for a in range(size):
                            work[a] = work[a] ** beta
                            total += work[a]
                    rng, u = uniform(load(words[chain]))
                    store(words[chain], rng)
                    if total > 0.0:
                        x[chain, i] = pick(work, size, u * total)
                        for a in range(size):
                            cells[chain, first[i] + a] += work[a] / total


@compiled_loop
def _move_binary_rows(
    arrays: Any, x: Array, held: Bools, sweeps: int, words: Words64, beta: float, cells: Floats
) -> None:
    """Do the same where all sites have two states: by log-odds, and without branches that depend on draws."""
    some = held.shape[0] > 0
    for group in range(0, x.shape[0], _SIDE_BY_SIDE):
        for _ in range(sweeps):
            for i in range(x.shape[1]):
                for chain in range(group, min(group + _SIDE_BY_SIDE, x.shape[0])):
                    if some and held[chain, i]:
                        continue
                    p = 1.0 / (1.0 + math.exp(-beta * log_odds(arrays, x[chain], np.uintp(i))))
                    rng, u = uniform(load(words[chain]))
                    store(words[chain], rng)
                    x[chain, i] = u >= 1.0 - p
                    cells[chain, i] += p


@compiled_loop
def _sum_potentials(arrays: Any, x: Array, found: Floats) -> None:
    for chain in range(x.shape[0]):
        found[chain] = log_potential(arrays, x[chain])
