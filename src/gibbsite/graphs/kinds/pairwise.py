"""Sites of any number of states with tables over pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, implement
from gibbsite.graphs.kinds.base import Cells, Tables, groups_of, pair_rows
from gibbsite.graphs.local import ONE, TINY, from_logs, log_potential, log_weights, weights
from gibbsite.graphs.registry import register

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


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
    """Any cardinalities, factors of at most two sites, zeros allowed."""
    if any(group.arity > 2 for group in groups_of(model)):
        return None
    cells, tables = Cells.collect(model), Tables()
    forward: list[Ints] = []
    backward: list[Ints] = []
    for group in groups_of(model):
        if group.arity == 0:
            tables.constant += float(np.broadcast_to(group.log_tables(model.cards), group.size).sum())
        elif group.arity == 2:
            shifted = tables.add(group, model.cards)
            # seen from the first site the second is the row, so its states must be the outer axis
            forward.append(tables.keep(shifted.swapaxes(1, 2), group.size))
            backward.append(tables.keep(shifted, group.size))
    rows = pair_rows(model)
    both = np.stack([np.concatenate(f) if f else np.zeros(0, np.int64) for f in (forward, backward)])
    logs = tables.joined()
    arrays = PairwiseGraph(
        start=rows.start,
        neighbour=rows.neighbour,
        table=both[rows.side, rows.source],
        card=np.ascontiguousarray(model.cards),
        offset=cells.offset,
        unary=np.exp(cells.log_unary),
        log_unary=cells.log_unary,
        value=np.exp(logs),
        log_value=logs,
    )
    return arrays, cells.constant + tables.constant


@implement(log_weights, PairwiseGraph)
def _log_weights_pairwise(arrays: PairwiseGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    size = np.uintp(arrays.card[i])
    cell = np.uintp(arrays.offset[i])
    for a in range(size):
        w[a] = arrays.log_unary[cell + a]
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        row = np.uintp(arrays.table[k]) + np.uintp(x[np.uintp(arrays.neighbour[k])]) * size
        for a in range(size):
            w[a] += arrays.log_value[row + a]
    return np.int64(size)


@implement(weights, PairwiseGraph)
def _weights_pairwise(arrays: PairwiseGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    size = np.uintp(arrays.card[i])
    cell = np.uintp(arrays.offset[i])
    first, last = np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])
    for a in range(size):
        w[a] = arrays.unary[cell + a]
    for k in range(first, last):
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
