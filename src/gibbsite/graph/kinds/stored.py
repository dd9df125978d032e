"""Stored Ising models: the arrays of an Ising graph, mapped from files."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._compile.intrinsic import fetch
from gibbsite._compile.jit import Integer, implement
from gibbsite.graph.column import Repeated, code, entry_at, fetch_entry
from gibbsite.graph.kinds.ising import IsingGraph
from gibbsite.graph.local import ONE, State, log_odds
from gibbsite.graph.registry import CompiledModel, compiles
from gibbsite.model.stored import ARRAYS, WHICH, StoredPairs

# How many entries ahead of a row are asked for: entries themselves, in lines of the cache, and the states
# that entries name. Measured on rows of 20 entries; from 48 to 128 and from 128 to 512 it is all the same.
_STATES, _ENTRIES, _LINE = np.uintp(64), np.uintp(256), np.uintp(16)


class StoredGraph(IsingGraph):
    """An Ising graph in files, whose sites are visited in order: the next rows are known in time.

    Its states are too many for the caches near the processor, and which of them a row needs, the processor
    cannot foretell. So every row asks for what rows some way ahead will need.
    """


@compiles(StoredPairs)
def compile_stored(model: StoredPairs) -> CompiledModel:
    """Map the arrays of a stored model."""
    arrays = StoredGraph(*(model.array(name) for name in ARRAYS))
    coupling = arrays.coupling
    if model.coded:
        arrays = arrays._replace(coupling=code(model.array(WHICH), coupling))
    elif model.couplings == "equal":
        arrays = arrays._replace(coupling=Repeated(coupling[0], coupling.size))
    return CompiledModel("ising", arrays, log_offset=model.log_offset, on_disk=True)


@implement(log_odds, StoredGraph)
def _log_odds_stored(arrays: StoredGraph, x: State, i: Integer) -> float:
    total: Any = arrays.field[i]
    begin, end = np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])
    for line in range(2):
        ahead = begin + _ENTRIES + np.uintp(line) * _LINE
        fetch(arrays.neighbour, ahead)
        fetch_entry(arrays.coupling, ahead)
    if end + _STATES <= np.uintp(arrays.neighbour.size):
        for k in range(begin, end):
            fetch(x, arrays.neighbour[k + _STATES])
            total += entry_at(arrays.coupling, k) * x[np.uintp(arrays.neighbour[k])]
    else:  # the last rows
        for k in range(begin, end):
            total += entry_at(arrays.coupling, k) * x[np.uintp(arrays.neighbour[k])]
    return total  # type: ignore[no-any-return]
