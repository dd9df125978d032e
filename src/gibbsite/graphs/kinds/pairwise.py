"""Sites of any number of states with tables over pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, implement
from gibbsite.graphs.kinds.base import Cells, Tables, groups_of, pair_rows
from gibbsite.graphs.local import ONE, TINY, from_logs, log_potential, log_weights, own_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.models.factorgraph import FactorGraph


class PairwiseGraph(NamedTuple):
    """Sites of any cardinality with tables over pairs.

    Row k of site i is the table of the pair (i, ``neighbour[k]``), oriented so that the entries for one
    neighbour state are contiguous: ``table[k] + x_j * card[i] + x_i``. ``offset`` locates the cells of a
    site; ``unary`` and ``log_unary`` are laid out by it.
    """

    start: Words32
    neighbour: Words32
    table: Ints
    card: Ints32
    offset: Ints
    unary: Floats
    log_unary: Floats
    value: Floats
    log_value: Floats


@register(name="pairwise", rank=4, arity=2)
def build_pairwise(model: FactorGraph) -> tuple[PairwiseGraph, float] | None:
    """Build the graph of sites of any cardinality and factors of at most two sites, which may contain zeros."""
    if any(group.arity > 2 for group in groups_of(model)):
        return None
    cells, tables = Cells.collect(model), Tables()
    forward: list[Ints] = []
    backward: list[Ints] = []
    for group in groups_of(model):
        if group.arity == 2:
            shifted = tables.add(group, model.cards)
            # for the first site, the states of the second must be the outer axis
            forward.append(tables.keep(shifted.swapaxes(1, 2), group.size))
            backward.append(tables.keep(shifted, group.size))
    rows = pair_rows(model)
    both = np.stack([np.concatenate(f) if f else np.zeros(0, np.int64) for f in (forward, backward)])
    logs = tables.joined()
    arrays = PairwiseGraph(
        start=rows.start,
        neighbour=rows.neighbour,
        table=both[rows.side, rows.source],
        **cells.columns(model),
        value=np.exp(logs),
        log_value=logs,
    )
    return arrays, cells.constant + tables.constant


@implement(log_weights, PairwiseGraph)
def _log_weights_pairwise(arrays: PairwiseGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    size = own_weights(arrays, arrays.log_unary, i, w)
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        row = np.uintp(arrays.table[k]) + np.uintp(x[np.uintp(arrays.neighbour[k])]) * size
        for a in range(size):
            w[a] += arrays.log_value[row + a]
    return np.int64(size)


@implement(weights, PairwiseGraph)
def _weights_pairwise(arrays: PairwiseGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    size = own_weights(arrays, arrays.unary, i, w)
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        row = np.uintp(arrays.table[k]) + np.uintp(x[np.uintp(arrays.neighbour[k])]) * size
        for a in range(size):
            w[a] *= arrays.value[row + a]
    total = 0.0
    for a in range(size):
        total += w[a]
    if total < TINY:
        log_weights(arrays, x, i, w)
        total = from_logs(w, size)
    return np.int64(size), total


@implement(log_potential, PairwiseGraph)
def _log_potential_pairwise(arrays: PairwiseGraph, x: Codes) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += arrays.log_unary[np.uintp(arrays.offset[i]) + np.uintp(x[i])]
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
            j = np.uintp(arrays.neighbour[k])
            if j > i:
                row = np.uintp(arrays.table[k]) + np.uintp(x[j]) * np.uintp(arrays.card[i])
                total += arrays.log_value[row + np.uintp(x[i])]
    return total
