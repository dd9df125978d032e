"""Binary lattices without stored indices."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints32
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite.graphs.kinds.base import all_binary
from gibbsite.graphs.local import log_odds, log_potential, log_weights, log_weights_binary, weights, weights_binary
from gibbsite.graphs.registry import register
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.lattice import FieldFactors, LatticeFactors

Triple = tuple[int, int, int]


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

    def pairs(self) -> Ints32:
        """Return all pairs of neighbours."""
        sizes = (self.size_0, self.size_1, self.size_2)
        sites = np.arange(np.prod(sizes), dtype=np.int32).reshape(sizes)
        found = []
        for axis, wrap in enumerate((self.wrap_0, self.wrap_1, self.wrap_2)):
            if sizes[axis] > 1:
                near, far = sites, np.roll(sites, -1, axis)
                if not wrap:
                    keep = np.arange(sizes[axis] - 1)
                    near, far = near.take(keep, axis), far.take(keep, axis)
                found.append(np.stack([near.ravel(), far.ravel()], axis=1))
        return np.concatenate(found) if found else np.zeros((0, 2), np.int32)

    def colors(self) -> Ints32 | None:
        """Return the colors of a checkerboard, or None if an odd periodic axis rules them out."""
        sizes = (self.size_0, self.size_1, self.size_2)
        wraps = (self.wrap_0, self.wrap_1, self.wrap_2)
        if any(wrap and size % 2 for size, wrap in zip(sizes, wraps, strict=True)):
            return None
        parity = np.zeros(sizes, np.int32)
        for axis, size in enumerate(sizes):
            shape = [1, 1, 1]
            shape[axis] = size
            parity ^= (np.arange(size, dtype=np.int32) & 1).reshape(shape)
        return parity.ravel()


@register(name="lattice", rank=0, binary=True, arity=2, group="LatticeFactors")
def build_lattice(model: FactorGraph) -> tuple[LatticeGraph, float] | None:
    """Build the graph of one binary lattice of at most three dimensions, and fields."""
    lattices = [g for g in model.groups if isinstance(g, LatticeFactors)]
    fields = [g for g in model.groups if isinstance(g, FieldFactors)]
    if len(lattices) != 1 or len(fields) > 1 or len(lattices) + len(fields) != len(model.groups):
        return None
    lattice = lattices[0]
    if not lattice.spin or len(lattice.shape) > 3 or not all_binary(model):
        return None
    shape, wrap, axes = three_axes(lattice)
    bias = np.ascontiguousarray(fields[0].weights).ravel() if fields else np.zeros(1)
    steps = [int(a.size > 1) for a in (*axes, bias)]
    parts: tuple[Any, ...] = (*shape, *wrap, *steps, *axes, bias)
    return LatticeGraph(*parts), 0.0


def three_axes(lattice: LatticeFactors) -> tuple[Triple, Triple, list[Floats]]:
    """Return sizes, periodicity and couplings of a lattice with three axes; missing leading axes have size one."""
    spare = 3 - len(lattice.shape)
    shape = (1,) * spare + tuple(int(size) for size in lattice.shape)
    wraps = (0,) * spare + tuple(int(flag) for flag in lattice.periodic)
    couplings = [np.zeros(1)] * spare + [np.ascontiguousarray(w).ravel() for w in lattice.weights]
    return cast("Triple", shape), cast("Triple", wraps), couplings


@inlined
def _axis_field(
    x: Codes, i: Integer, at: Integer, size: int, wrap: int, stride: int, coupling: Floats, step: int
) -> float:
    """Return the field on site i of its two neighbours along an axis; ``at`` is its coordinate."""
    total = 0.0
    unit = np.uintp(stride)
    if at > 0:
        total += coupling[np.uintp(step) * (i - unit)] * (2 * x[i - unit] - 1)
    elif wrap:
        last = i + np.uintp((size - 1) * stride)
        total += coupling[np.uintp(step) * last] * (2 * x[last] - 1)
    if at < size - 1:
        total += coupling[np.uintp(step) * i] * (2 * x[i + unit] - 1)
    elif wrap:
        first = i - np.uintp((size - 1) * stride)
        total += coupling[np.uintp(step) * i] * (2 * x[first] - 1)
    return total


@implement(log_odds, LatticeGraph)
def _log_odds_lattice(arrays: LatticeGraph, x: Codes, i: Integer) -> float:
    g = arrays
    total: float = g.field[np.uintp(g.step_field) * i]
    row = np.uint32(i) // np.uint32(g.size_2)
    at_2 = np.int64(np.uint32(i) - row * np.uint32(g.size_2))
    total += _axis_field(x, i, at_2, g.size_2, g.wrap_2, 1, g.coupling_2, g.step_2)
    if g.size_0 == 1:
        at_0, at_1 = np.int64(0), np.int64(row)
    else:
        plane = row // np.uint32(g.size_1)
        at_0, at_1 = np.int64(plane), np.int64(row - plane * np.uint32(g.size_1))
        total += _axis_field(x, i, at_0, g.size_0, g.wrap_0, g.size_1 * g.size_2, g.coupling_0, g.step_0)
    total += _axis_field(x, i, at_1, g.size_1, g.wrap_1, g.size_2, g.coupling_1, g.step_1)
    return 2.0 * total


implement(weights, LatticeGraph)(weights_binary)
implement(log_weights, LatticeGraph)(log_weights_binary)


@implement(log_potential, LatticeGraph)
def _log_potential_lattice(arrays: LatticeGraph, x: Codes) -> float:
    # pairs are counted from both ends and fields once, so half the sum of s (field + h) is the total
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        spin = 2 * x[i] - 1
        field = arrays.field[np.uintp(arrays.step_field) * i]
        total += 0.5 * spin * (0.5 * log_odds(arrays, x, i) + field)
    return total
