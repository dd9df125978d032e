"""Stored Ising models: the arrays of an Ising graph, mapped from files."""

from __future__ import annotations

from gibbsite.graph.kinds.ising import IsingGraph
from gibbsite.graph.registry import CompiledModel, compiles
from gibbsite.model.stored import ARRAYS, StoredPairs


@compiles(StoredPairs)
def compile_stored(model: StoredPairs) -> CompiledModel:
    """Map the arrays of a stored model."""
    arrays = IsingGraph(*(model.array(name) for name in ARRAYS))
    return CompiledModel("ising", arrays, log_offset=model.log_offset, on_disk=True)
