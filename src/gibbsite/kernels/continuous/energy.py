"""The energy of a site that is a function of its value, from all of its factors or from a minibatch of them.

Whatever the method, an update first selects factors (:mod:`.batch`): some in full, each adding its height phi
above its floor, some drawn s times, each adding ``s log(1 + phi / (tau M))``
(see :mod:`.poisson`). Then the energy of any value of the site is one function, :func:`energies`. It goes
through the factors once for many values, because a factor is costly to find and cheap to call again.

A value that is NaN or plus infinity, or outside of the bounds of its factor where these are known, is noted
as a *fault*: the step that meets one changes nothing, and neither does any later one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite._numba.foreign import call_at
from gibbsite._numba.jit import Integer, inlined
from gibbsite.errors import SamplingError
from gibbsite.graphs.functions.bounds import Bounds
from gibbsite.graphs.functions.failure import cause_text
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph

# Positions in the counts of a chain.
UPDATES, KEPT, FACTORS, CALLS, PROPOSED, ACCEPTED = range(6)
# Kinds of faults, in the first entry of the record.
FINE, OUTSIDE, FULL, HOPELESS, EMPTY = range(5)
# In the record of a fault: the factor, its value, from where on the values of its sites are.
FACTOR, VALUE, VALUES = 1, 2, 3
# Products of terms 1 + phi / (tau M) have their logarithm taken when they exceed _LARGE; a single one is
# at most _MOST_TERM to the power of _MOST_POWER.
_LARGE, _MOST_TERM, _MOST_POWER = 1e100, 1e20, 4
#: Proposals after which rejection gives up.
MOST_TRIES = 1 << 20
#: What a method may remember during an update, as entries of ``EnergyWorkspace.stage``; the first is the new
#: value.
STAGES, CHOSEN = 8, 0


class EnergyWorkspace(NamedTuple):
    """Scratch arrays: values of the sites of a factor, candidates and their energies, the minibatch.

    Factor ``factor[k]`` is in the minibatch ``times[k]`` times, and ``scale[k]`` is 1 / (tau M); ``table`` is
    a hash table of them, empty between two updates, ``place`` is where they are in it. ``reach`` is how
    many factors of the row are evaluated in full, and how many are in the minibatch.
    """

    work: Floats
    points: Floats
    energy: Floats
    height: Floats
    product: Floats
    stage: Floats
    factor: Ints32
    times: Ints32
    scale: Floats
    place: Ints32
    table: Ints32
    reach: Ints

    @property
    def rebuildable(self) -> bool:
        """Every update begins anew."""
        return True


class ContinuousMemory(NamedTuple):
    """Memory of a chain: scratch arrays, room for polynomials, counts, and the record of a fault."""

    workspace: EnergyWorkspace
    poly: Any
    counts: Ints
    fault: Floats

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may hold NaN."""
        return ("fault",)


@inlined
def heights(
    arrays: ContinuousGraph, bounds: Bounds, memory: ContinuousMemory, f: Integer, x: Floats, i: Integer, many: Integer
) -> None:
    """Write the heights of factor f above its floor, with x[i] replaced by each of the points."""
    groups, work, points, height = (
        arrays.groups,
        memory.workspace.work,
        memory.workspace.points,
        memory.workspace.height,
    )
    g = arrays.group[f]
    rank = f - groups.first[g]
    arity, width, weight, address = groups.arity[g], groups.width[g], groups.weight[g], groups.address[g]
    first = groups.member_at[g] + groups.member_step[g] * rank
    own = 0
    for k in range(arity):
        j = arrays.member[first + k]
        work[k] = x[j] if j >= 0 else arrays.known[-1 - j]
        if j == i:
            own = k
    spot = groups.parameter_at[g] + width * rank
    floor, bound = bounds.floor[f], bounds.bound[f]
    free = bound == math.inf
    for a in range(many):
        work[own] = points[a]
        value = weight * call_at(address, work, 0, arity, arrays.parameter, spot, width, groups.nothing)
        height[a] = value - floor
        fine = value < math.inf if free else value >= floor and value - floor <= bound
        if not fine and memory.fault[0] == FINE:
            memory.fault[0], memory.fault[FACTOR], memory.fault[VALUE] = OUTSIDE, f, value
            for k in range(arity):
                memory.fault[VALUES + k] = work[k]


@inlined
def energies(
    arrays: ContinuousGraph, bounds: Bounds, memory: ContinuousMemory, x: Floats, i: Integer, many: Integer
) -> bool:
    """Write the energies of site i at the first ``many`` points; return whether that succeeded."""
    workspace = memory.workspace
    height, energy, product = workspace.height, workspace.energy, workspace.product
    for a in range(many):
        energy[a] = 0.0
        product[a] = 1.0
    begin, whole = arrays.start[arrays.row[i]], workspace.reach[0]
    for n in range(whole + workspace.reach[1]):
        k = n - whole
        f = arrays.factor[begin + n] if k < 0 else workspace.factor[k]
        heights(arrays, bounds, memory, f, x, i, many)
        if k < 0:
            for a in range(many):
                energy[a] += height[a]
            continue
        scale, times = workspace.scale[k], workspace.times[k]
        if times > _MOST_POWER or scale * bounds.bound[f] > _MOST_TERM:
            for a in range(many):
                energy[a] += times * math.log1p(scale * height[a])
            continue
        for a in range(many):  # logarithms of many factors at once: that of their product
            term = 1.0 + scale * height[a]
            power = term
            for _ in range(times - 1):
                power *= term
            product[a] *= power
            if product[a] > _LARGE:
                energy[a] += math.log(product[a])
                product[a] = 1.0
    if workspace.reach[1] > 0:
        for a in range(many):
            energy[a] += math.log(product[a])
    memory.counts[CALLS] += many * (whole + workspace.reach[1])
    return memory.fault[0] == FINE  # type: ignore[no-any-return]


_DEMAND = {True: "it must be a number wherever the sites can be", False: "it must be finite there"}


def raise_fault(model: Any, graph: Graph, bounds: Bounds, fault: Floats) -> NoReturn:
    """Raise the error that a record of a fault describes."""
    number = int(fault[FACTOR])
    if fault[0] == HOPELESS:
        name = model.domains.names[number]
        raise SamplingError(
            f"{MOST_TRIES:,} proposals for the site {name!r} were rejected; its factors differ by "
            "too much for method='rejection', use 'double'."
        )
    if fault[0] == EMPTY:
        raise SamplingError(
            f"the density is zero in a part of the interval of the site {model.domains.names[number]!r}, "
            "where no interpolant of its logarithm exists; use method='slice'."
        )
    if fault[0] == FULL:
        raise SamplingError("A minibatch was larger than any that has a chance to come up; please report this.")
    arrays: ContinuousGraph = graph.arrays
    g = int(arrays.group[number])
    group, rank = model.groups[g], number - int(arrays.groups.first[g])
    scope = group.scopes if group.common else group.scopes[rank]
    where = ", ".join(
        f"{model.whole.names[int(site)]}={_value_text(model.whole, int(site), float(value))}"
        for site, value in zip(scope, fault[VALUES:], strict=False)
    )
    value = float(fault[VALUE]) / group.weight
    text = f"factor {rank} of {group.name!r} is {value:.10g} at {where}"
    if not math.isfinite(value):
        raised = graph.functions[g].cause_at(fault[VALUES:][: scope.size], group.parameters[rank])
        raise SamplingError(f"{text}; {_DEMAND[math.isnan(value)]}.{cause_text(raised)}") from raised
    low, width = float(bounds.floor[number]) / group.weight, float(bounds.bound[number]) / group.weight
    # not the digits by which bounds were widened for rounding
    low, high = (round(bound, 9 - math.floor(math.log10(width or 1.0))) + 0.0 for bound in (low, low + width))
    raise SamplingError(
        f"{text}: a bound that is violated, because it was declared or found to be between {low:g} and "
        f"{high:g}; give wider bounds=(low, high) for {group.name!r}."
    )


def _value_text(domains: Any, site: int, value: float) -> str:
    return f"{value:.10g}" if domains.numbers[site] else repr(domains.labels(site)[int(value)])
