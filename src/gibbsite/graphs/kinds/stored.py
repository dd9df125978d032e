"""Stored models: the rows of an Ising or a Potts graph, mapped from files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words32
from gibbsite._numba.intrinsic import fetch
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite.graphs.graph import Graph, graph_of
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.local import ONE, from_logs, log_odds, log_potential, log_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import Repeated, code, entry_at, fetch_entry
from gibbsite.models.stored import OFFSET, WHICH, StoredPairs, StoredPotts

# States and entries are prefetched this many entries ahead of a row; a line of the cache has 16 entries. Measured on
# rows of 20 entries; speed is the same from 48 to 128 states, and from 128 to 512 entries.
_STATES, _ENTRIES, _LINE = np.uintp(64), np.uintp(256), np.uintp(16)


class StoredGraph(IsingGraph):
    """An Ising graph in files, whose sites are visited in order.

    Its states exceed the caches of the processor, which cannot predict the states that a row needs. Each update
    therefore prefetches the entries and states of later rows.
    """


class StoredPottsGraph(NamedTuple):
    """A Potts graph in files.

    The log-weight of state a at site i is ``field[own * offset[i] + a]`` plus the sum of the couplings of
    the neighbours in its row that are in state a; ``own`` is 0 if all sites have the same fields.
    """

    start: Words32
    neighbour: Words32
    coupling: Any
    field: Floats
    offset: Ints
    own: int
    states: int


@register(name="ising", binary=True, model="StoredPairs")
def compile_stored(model: StoredPairs) -> Graph:
    """Map the arrays of a stored Ising model."""
    arrays = StoredGraph(model.array("start"), model.array("neighbour"), _column(model), model.array("field"))
    return graph_of(model, "ising", arrays, log_offset=model.log_offset, on_disk=True)


@register(name="potts", model="StoredPotts")
def compile_stored_potts(model: StoredPotts) -> Graph:
    """Map the arrays of a stored Potts model."""
    field = model.array("field")
    arrays = StoredPottsGraph(
        model.array("start"),
        model.array("neighbour"),
        _column(model),
        field,
        model.array(OFFSET),
        int(field.size > model.n_states),
        model.n_states,
    )
    return graph_of(model, "potts", arrays, log_offset=model.log_offset, on_disk=True)


def _column(model: StoredPairs) -> Any:
    """Return the couplings of all entries as they are stored."""
    coupling = model.array("coupling")
    if model.coded:
        return code(model.array(WHICH), coupling)
    return Repeated(coupling[0], coupling.size) if model.couplings == "equal" else coupling


@inlined
def _look_ahead(arrays: Any, begin: Integer) -> None:
    """Prefetch the entries of later rows."""
    for line in range(2):
        ahead = begin + _ENTRIES + np.uintp(line) * _LINE
        fetch(arrays.neighbour, ahead)
        fetch_entry(arrays.coupling, ahead)


@implement(log_odds, StoredGraph)
def _log_odds_stored(arrays: StoredGraph, x: Codes, i: Integer) -> float:
    total: Any = arrays.field[i]
    begin, end = np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])
    _look_ahead(arrays, begin)
    if end + _STATES <= np.uintp(arrays.neighbour.size):
        for k in range(begin, end):
            fetch(x, arrays.neighbour[k + _STATES])
            total += entry_at(arrays.coupling, k) * x[np.uintp(arrays.neighbour[k])]
    else:  # the last rows
        for k in range(begin, end):
            total += entry_at(arrays.coupling, k) * x[np.uintp(arrays.neighbour[k])]
    return total  # type: ignore[no-any-return]


@implement(log_weights, StoredPottsGraph)
def _log_weights_stored(arrays: StoredPottsGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    cell = np.uintp(arrays.own) * np.uintp(arrays.offset[i])
    for a in range(np.uintp(arrays.states)):
        w[a] = arrays.field[cell + a]
    begin, end = np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])
    _look_ahead(arrays, begin)
    if end + _STATES <= np.uintp(arrays.neighbour.size):
        for k in range(begin, end):
            fetch(x, arrays.neighbour[k + _STATES])
            w[np.uintp(x[np.uintp(arrays.neighbour[k])])] += entry_at(arrays.coupling, k)
    else:
        for k in range(begin, end):
            w[np.uintp(x[np.uintp(arrays.neighbour[k])])] += entry_at(arrays.coupling, k)
    return np.int64(arrays.states)


@implement(weights, StoredPottsGraph)
def _weights_stored(arrays: StoredPottsGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    size = log_weights(arrays, x, i, w)
    return size, from_logs(w, size)


@implement(log_potential, StoredPottsGraph)
def _log_potential_stored(arrays: StoredPottsGraph, x: Codes) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += arrays.field[np.uintp(arrays.own) * np.uintp(arrays.offset[i]) + np.uintp(x[i])]
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
            j = np.uintp(arrays.neighbour[k])
            if j > i and x[j] == x[i]:
                total += entry_at(arrays.coupling, k)
    return total
