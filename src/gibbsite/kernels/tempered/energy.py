"""What a model has beyond its reference, laid out for sums over whole states.

Every swap needs U of two states, after every sweep. The arrays of a kind of graph are laid out for the
conditional of one site: every pair stands in the rows of both of its sites, and half of the entries are read
in vain. Here every pair stands once, and a sum over all of them has no branches that depend on the state.
Kinds that have no such layout are summed up as they are.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Positions, Words32
from gibbsite._numba.jit import implement
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.local import log_potential


class AgreementEnergy(NamedTuple):
    """Pairs whose states may agree, each once.

    ``coupling`` has length one (``step`` 0) where all are equal. ``log_unary`` is empty where no site
    prefers a state.
    """

    first: Words32
    second: Words32
    step: int
    coupling: Floats
    offset: Ints
    log_unary: Floats


class PairEnergy(NamedTuple):
    """Tables of pairs, each once: ``log_value[table + stride * x_second + x_first]``, and single sites."""

    first: Words32
    second: Words32
    table: Ints
    stride: Ints
    log_value: Floats
    offset: Ints
    log_unary: Floats


@singledispatch
def energy_of(arrays: Any) -> Any:
    """Return arrays of the same log-potential, faster to sum up where there are such.

    Examples
    --------
    >>> import gibbsite as gs
    >>> energy_of(gs.graphs.compile_graph(gs.potts_grid((2, 2), states=3, coupling=1.0)).arrays).first.tolist()
    [0, 0, 1, 2]
    """
    return arrays


@energy_of.register
def _of_agreements(arrays: PottsGraph) -> AgreementEnergy:
    first, rows = _once(arrays.start, arrays.neighbour)
    return AgreementEnergy(
        first=first,
        second=arrays.neighbour[rows],
        step=arrays.step,
        coupling=arrays.coupling[rows] if arrays.step else arrays.coupling,
        offset=arrays.offset,
        log_unary=_needed(arrays.log_unary),
    )


@energy_of.register
def _of_pairs(arrays: PairwiseGraph) -> PairEnergy:
    first, rows = _once(arrays.start, arrays.neighbour)
    return PairEnergy(
        first=first,
        second=arrays.neighbour[rows],
        table=arrays.table[rows],
        stride=arrays.card[first].astype(np.int64),
        log_value=arrays.log_value,
        offset=arrays.offset,
        log_unary=_needed(arrays.log_unary),
    )


def _once(start: Words32, neighbour: Words32) -> tuple[Words32, Positions]:
    """Return the smaller site of every pair, and where the pair stands in its row."""
    degree = start[1:].astype(np.int64) - start[:-1]
    sites = np.repeat(np.arange(start.size - 1, dtype=np.uint32), degree)
    rows = np.flatnonzero(neighbour > sites)
    return sites[rows], rows


def _needed(log_unary: Floats) -> Floats:
    return log_unary if log_unary.any() else np.zeros(0)


@implement(log_potential, AgreementEnergy)
def _sum_agreements(arrays: AgreementEnergy, x: Codes) -> float:
    total = 0.0
    if arrays.step == 0 and arrays.coupling.size > 0:
        agree = np.int64(0)
        for k in range(np.uintp(arrays.first.size)):
            agree += x[np.uintp(arrays.first[k])] == x[np.uintp(arrays.second[k])]
        total = arrays.coupling[0] * np.float64(agree)
    elif arrays.step > 0:
        for k in range(np.uintp(arrays.first.size)):
            agree = np.int64(x[np.uintp(arrays.first[k])] == x[np.uintp(arrays.second[k])])
            total += arrays.coupling[k] * np.float64(agree)
    for k in range(np.uintp(x.size if arrays.log_unary.size > 0 else 0)):
        total += arrays.log_unary[np.uintp(arrays.offset[k]) + np.uintp(x[k])]
    return total


@implement(log_potential, PairEnergy)
def _sum_pairs(arrays: PairEnergy, x: Codes) -> float:
    total = 0.0
    for k in range(np.uintp(arrays.first.size)):
        row = arrays.table[k] + arrays.stride[k] * np.int64(x[np.uintp(arrays.second[k])])
        total += arrays.log_value[np.uintp(row) + np.uintp(x[np.uintp(arrays.first[k])])]
    for k in range(np.uintp(x.size if arrays.log_unary.size > 0 else 0)):
        total += arrays.log_unary[np.uintp(arrays.offset[k]) + np.uintp(x[k])]
    return total
