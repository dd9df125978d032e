"""The graph kinds: frozen flat arrays, one named tuple per representation.

Each tuple is what compiled code sees of a model. State codes are 0..K-1 everywhere. Tables are stored
shifted to a maximum of one (zero in logarithms); the shifts are collected in ``Graph.log_offset``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite.graph.decay import Decay

Floats = NDArray[np.float64]
Index = NDArray[np.uint32]


class IsingGraph(NamedTuple):
    """Binary sites with pairwise log-linear interactions, in compressed rows.

    ``log(P(x_i = 1 | rest) / P(x_i = 0 | rest)) = field[i] + sum_k coupling[k] * x[neighbour[k]]`` with k
    from ``start[i]`` to ``start[i + 1]``. Every edge is stored in both rows.
    """

    start: Index
    neighbour: Index
    coupling: Floats
    field: Floats


class LatticeGraph(NamedTuple):
    """Binary sites on a regular lattice of up to three dimensions, without stored indices.

    In spins s = 2 x - 1, the weight is ``exp(sum_axis coupling_axis s_i s_next + field s_i)``. An array
    of length one is uniform (its ``*_step`` is 0), otherwise entry i belongs to site i (step 1).
    """

    size_0: int
    size_1: int
    size_2: int
    wrap_0: int
    wrap_1: int
    wrap_2: int
    step_0: int
    step_1: int
    step_2: int
    step_field: int
    coupling_0: Floats
    coupling_1: Floats
    coupling_2: Floats
    field: Floats


class PottsGraph(NamedTuple):
    """Sites with equally many states whose pairs only ask whether their states agree, in compressed rows.

    The log-weight of state a at site i is ``log_unary[offset[i] + a]`` plus the sum of ``coupling[step * k]``
    over the neighbours k of its row that are in state a; ``factor`` is exp(coupling). Both have length one
    (step 0) where all couplings are equal. Rows of ``steep`` sites have couplings so large that products of
    factors could leave the range of floats. Where most pairs are coupled, ``dense`` is the matrix of
    couplings, row after row; otherwise it is empty.
    """

    start: Index
    neighbour: Index
    step: int
    coupling: Floats
    factor: Floats
    steep: NDArray[np.bool_]
    dense: Floats
    card: NDArray[np.int32]
    offset: NDArray[np.int64]
    unary: Floats
    log_unary: Floats


class KernelGraph(NamedTuple):
    """Sites with equally many states, every pair of which has a coupling that is computed when it is needed.

    The coupling of sites i and j is ``beta`` times what ``decay`` says (:mod:`.decay`) of the distance of
    their ``positions``; it is added to the log-weight of the neighbour's state, as in :class:`PottsGraph`.
    """

    positions: Floats
    decay: Decay
    beta: float
    card: NDArray[np.int32]
    offset: NDArray[np.int64]
    unary: Floats
    log_unary: Floats


class PairwiseGraph(NamedTuple):
    """Sites of any cardinality with tables over pairs.

    Row k of site i is the table of the pair (i, ``neighbour[k]``), oriented so that the entries for one
    neighbour state are contiguous: ``table[k] + x_j * card[i] + x_i``. ``offset`` locates the cells of a
    site; ``unary`` and ``log_unary`` are laid out by it.
    """

    start: Index
    neighbour: Index
    table: NDArray[np.int64]
    card: NDArray[np.int32]
    offset: NDArray[np.int64]
    unary: Floats
    log_unary: Floats
    value: Floats
    log_value: Floats


class TableGraph(NamedTuple):
    """Sites of any cardinality with tables over any number of sites.

    Row k of site i names one factor it touches and its own stride in that table. Factor f has members
    ``member[member_start[f] : member_start[f + 1]]`` with their strides and starts at ``table[f]``.
    """

    start: Index
    factor: Index
    own_stride: NDArray[np.int64]
    member_start: Index
    member: Index
    stride: NDArray[np.int64]
    table: NDArray[np.int64]
    card: NDArray[np.int32]
    offset: NDArray[np.int64]
    unary: Floats
    log_unary: Floats
    value: Floats
    log_value: Floats


Arrays = IsingGraph | LatticeGraph | PottsGraph | KernelGraph | PairwiseGraph | TableGraph
