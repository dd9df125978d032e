"""The energy of a site that is a function of its value, from all of its factors or from a minibatch of them.

Whatever the method, an update first decides which factors it is about (:mod:`.continuous_batch`): some in
full, each worth its height phi above its floor, some drawn s times, each worth ``s log(1 + phi / (tau M))``
(see :mod:`.poisson`). Then the energy of any value of the site is one function, :func:`energies`. It goes
through the factors once for many values, because a factor is costly to find and cheap to call again.

A height that is no number, or not between 0 and M, is noted as a *fault*: the step that meets one changes
nothing, and neither does any later one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._foreign import call_at
from gibbsite._jit import Integer, called, inlined
from gibbsite.graph.continuous import ContinuousGraph

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

# Positions in the counts of a chain.
UPDATES, KEPT, FACTORS, CALLS, PROPOSED, ACCEPTED = range(6)
# Kinds of faults, in the first entry of the record.
FINE, OUTSIDE, FULL, HOPELESS = range(4)
# In the record of a fault: the factor, its value, from where on the values of its sites are.
FACTOR, VALUE, VALUES = 1, 2, 3
# Products of terms 1 + phi / (tau M) are kept below the root of the largest float; logarithms are taken of
# what exceeds _LARGE, so single powers must stay below the same.
_LARGE, _MOST_POWER = 1e100, 4


class Desk(NamedTuple):
    """Scratch arrays: values of the sites of a factor, candidates and their energies, the minibatch.

    Factor ``factor[k]`` is in the minibatch ``count[k]`` times, and ``scale[k]`` is 1 / (tau M); ``table`` is
    a hash table of them, empty between two updates, ``place`` says where they are in it. ``reach`` tells up
    to which place of the row factors are evaluated in full, and how many are in the minibatch.
    """

    work: Floats
    points: Floats
    energy: Floats
    height: Floats
    product: Floats
    factor: Ints
    count: Ints
    scale: Floats
    place: Ints
    table: Ints
    reach: NDArray[np.int64]

    @property
    def fleeting(self) -> bool:
        """Every update begins anew."""
        return True


class ContinuousMemory(NamedTuple):
    """Memory of a chain: scratch arrays, room for polynomials, counts, and the record of a fault."""

    desk: Desk
    poly: NamedTuple
    counts: NDArray[np.int64]
    fault: Floats


@called
def note_fault(
    memory: ContinuousMemory, kind: Integer, f: Integer, floor: float, arity: Integer, at: Integer
) -> None:
    """Note which factor had which height, the one at ``at``, at which values of its sites."""
    fault = memory.fault
    if fault[0] == FINE:
        fault[0] = kind
        fault[FACTOR] = f
        fault[VALUE] = memory.desk.height[at] + floor
        for k in range(arity):
            fault[VALUES + k] = memory.desk.work[k]


@inlined
def heights(
    graph: ContinuousGraph,
    memory: ContinuousMemory,
    f: Integer,
    x: Floats,
    i: Integer,
    at: Integer,
    many: Integer,
) -> None:
    """Write the heights of factor f above its floor, with x[i] replaced by the points from ``at`` on."""
    groups, work, points, height = graph.groups, memory.desk.work, memory.desk.points, memory.desk.height
    g = graph.group[f]
    rank = f - groups.first[g]
    arity, width, weight, address = groups.arity[g], groups.width[g], groups.weight[g], groups.address[g]
    first = groups.member_at[g] + groups.member_step[g] * rank
    own = 0
    for k in range(arity):
        j = graph.member[first + k]
        work[k] = x[j]
        if j == i:
            own = k
    spot = groups.parameter_at[g] + width * rank
    floor, bound = graph.floor[f], graph.bound[f]
    for a in range(at, at + many):
        work[own] = points[a]
        value = call_at(address, work, 0, arity, graph.parameter, spot, width, groups.nothing)
        height[a] = weight * value - floor
        if not (height[a] >= 0.0 and height[a] <= bound):
            note_fault(memory, OUTSIDE, f, floor, arity, a)


@called
def energies(
    graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, at: Integer, many: Integer
) -> bool:
    """Write the energies of site i at ``many`` points, from number ``at`` on; tell whether all went well."""
    desk = memory.desk
    height, energy, product = desk.height, desk.energy, desk.product
    end = at + many
    for a in range(at, end):
        energy[a] = 0.0
        product[a] = 1.0
    begin = graph.start[graph.row[i]]
    for k in range(begin, desk.reach[0]):
        heights(graph, memory, graph.factor[k], x, i, at, many)
        for a in range(at, end):
            energy[a] += height[a]
    for k in range(desk.reach[1]):
        heights(graph, memory, desk.factor[k], x, i, at, many)
        scale, count = desk.scale[k], desk.count[k]
        if count > _MOST_POWER or scale * graph.bound[desk.factor[k]] > 1e20:
            for a in range(at, end):
                energy[a] += count * math.log1p(scale * height[a])
        else:
            # log(1 + phi / (tau M)) of many factors at once: the logarithm of a product
            for a in range(at, end):
                term = 1.0 + scale * height[a]
                power = term
                for _ in range(count - 1):
                    power *= term
                product[a] *= power
                if product[a] > _LARGE:
                    energy[a] += math.log(product[a])
                    product[a] = 1.0
    if desk.reach[1] > 0:
        for a in range(at, end):
            energy[a] += math.log(product[a])
    memory.counts[CALLS] += many * (desk.reach[0] - begin + desk.reach[1])
    return memory.fault[0] == FINE  # type: ignore[no-any-return]


@inlined
def energy_at(graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, v: Any) -> float:
    """Return the energy of site i at one value."""
    spare = memory.desk.points.size - 1
    memory.desk.points[spare] = v
    energies(graph, memory, x, i, spare, 1)
    return memory.desk.energy[spare]  # type: ignore[no-any-return]
