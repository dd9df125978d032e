"""Values of all variables of a program, computed by compiled code at given values of its unknowns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.model import BugsModel
from gibbsite.applications.bugs.starts import log_density


def values_at(model: BugsModel, unknowns: Mapping[str, Any]) -> Floats:
    """Return the values of all places, deterministic ones not yet computed."""
    values = model.start_values.copy()
    for name, array in unknowns.items():
        begin = model.assembly.offset[name]
        flat = np.asarray(array, float).ravel(order="F")
        hidden = np.isnan(model.start_values[begin : begin + flat.size])
        values[begin : begin + flat.size] = np.where(hidden, flat, values[begin : begin + flat.size])
    return values


def arrays_of(model: BugsModel, values: Floats) -> dict[str, Array]:
    """Return the variables of a model as arrays."""
    found = {}
    for name, begin in model.assembly.offset.items():
        shape = model.assembly.values.arrays[name].shape
        size = int(np.prod(shape, dtype=np.int64))
        found[name] = values[begin : begin + size].reshape(shape, order="F")
    return found


def computed(text: str, data: Mapping[str, Any], unknowns: Mapping[str, Any]) -> dict[str, Array]:
    """Return all variables of a program at values of its unknowns."""
    model = read_bugs(text, data)
    values = values_at(model, unknowns)
    log_density(model, values)
    return arrays_of(model, values)
