"""The energy of a site as a function of its value, from all of its factors or from a minibatch of them.

With every method, an update first selects factors (:func:`gather`): all of them, each adding its height phi above its
floor, or a Poisson minibatch (see :mod:`gibbsite.kernels.minibatch.poisson`), in which a factor that was drawn s times
adds ``s log(1 + phi / (tau M))``. Then :func:`energies` computes the energy of any value of the site. It loops over the
factors once for many values, because a factor is costly to find and cheap to call again.

As on graphs of pairs, factors that are drawn are shifted to minimum zero and drawn with probability M / L_i, by alias
tables that sites with the same factors share. Factors that are always evaluated are neither drawn nor counted in L_i,
Psi and Delta. The number s of draws of a factor has a Poisson distribution of mean ``tau M + phi(x)``. Each drawn
factor is stored once, with its number of draws, so factors with large bounds are drawn many times but evaluated once.

A value that is NaN, plus infinity or outside the known bounds of its factor is recorded as a *fault*. The step that
meets it changes nothing, and neither does any later step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Ints32, Words64
from gibbsite._numba.foreign import call_at
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below
from gibbsite._numba.random.poisson import poisson
from gibbsite.errors import SamplingError
from gibbsite.graphs.functions.bounds import Bounds, all_bounds
from gibbsite.graphs.functions.failure import cause_text
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.minibatch.factors import builds_rows, row_sums, stays_in

# Positions in the counts of a chain.
UPDATES, KEPT, FACTORS, CALLS, PROPOSED, ACCEPTED = range(6)
# Kinds of faults, in the first entry of the record.
FINE, OUTSIDE, FULL, HOPELESS, EMPTY = range(5)
# Positions in the record of a fault: the factor, its value, and the first of the values of its sites.
FACTOR, VALUE, VALUES = 1, 2, 3
# The logarithm of a product of terms 1 + phi / (tau M) is taken when the product exceeds _LARGE; a single factor
# contributes at most _MOST_TERM to the power of _MOST_POWER.
_LARGE, _MOST_TERM, _MOST_POWER = 1e100, 1e20, 4
#: Number of proposals after which rejection gives up.
MOST_TRIES = 1 << 20
#: Number of entries of ``EnergyWorkspace.stage``, the scratch values of a method; the first one is the new value.
STAGES, CHOSEN = 8, 0


class EnergyWorkspace(NamedTuple):
    """Scratch arrays: values of the sites of a factor, candidates and their energies, and the minibatch.

    Factor ``factor[k]`` is in the minibatch ``times[k]`` times, and ``scale[k]`` is 1 / (tau M). ``table`` is a hash
    table of these factors, which is empty between updates, and ``place`` their places in it. ``reach`` has the number
    of factors of the row that are always evaluated, and the number of factors in the minibatch.
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
        """True: no update reads what an earlier one has written."""
        return True


class ContinuousMemory(NamedTuple):
    """Memory of a chain: scratch arrays, polynomials, counts, and the record of a fault."""

    workspace: EnergyWorkspace
    poly: Any
    counts: Ints
    fault: Floats

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may contain NaN."""
        return ("fault",)


@inlined
def heights(
    arrays: ContinuousGraph, bounds: Bounds, memory: ContinuousMemory, f: Integer, x: Floats, i: Integer, many: Integer
) -> None:
    """Write the heights of factor f above its floor, with x[i] replaced by each point."""
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
        for a in range(many):  # multiply factors, so that one logarithm serves many of them
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
            f"{MOST_TRIES:,} proposals for the site {name!r} were rejected, because its factors vary "
            "too much for method='rejection'; use 'double'."
        )
    if fault[0] == EMPTY:
        raise SamplingError(
            f"the density is zero in a part of the interval of the site {model.domains.names[number]!r}, "
            "where no interpolant of its logarithm exists; use method='slice'."
        )
    if fault[0] == FULL:
        raise SamplingError("A minibatch was larger than can occur by chance; please report this as a bug.")
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
    # round the digits away by which bounds were widened against rounding
    low, high = (round(bound, 9 - math.floor(math.log10(width or 1.0))) + 0.0 for bound in (low, low + width))
    raise SamplingError(
        f"{text}, which is outside its bounds from {low:g} to {high:g}, declared or found; "
        f"give wider bounds=(low, high) for {group.name!r}."
    )


def _value_text(domains: Any, site: int, value: float) -> str:
    return f"{value:.10g}" if domains.numbers[site] else repr(domains.labels(site)[int(value)])


class FunctionRows(NamedTuple):
    """The factors of each row that may be drawn."""

    row: Ints32  # (sites,): row of each site
    # first, many: (rows,): the place in ``ContinuousGraph.factor`` of a row's first factor that may be drawn, and the
    # number of such factors
    first: Ints
    many: Ints
    # start, table: alias tables of the rows; empty for rows whose bounds are all equal
    start: Ints
    table: Words64
    # local, degree: (sites,): the sum L_i of the bounds of these factors, and their number
    local: Floats
    degree: Ints
    total: float  # Psi, the sum of the bounds of all factors that may be drawn, each counted once


@builds_rows("functions")
def function_rows(graph: Graph) -> FunctionRows:
    """Build the alias tables of a graph of functions."""
    arrays: ContinuousGraph = graph.arrays
    ends = arrays.start[1:]
    many = ends - arrays.sure
    place = np.arange(arrays.factor.size)
    row_of = np.repeat(np.arange(many.size), np.diff(arrays.start))
    drawn = place >= arrays.sure[row_of]
    bounds = all_bounds(graph, "drawing factors at random").bound
    bound = bounds[arrays.factor[drawn]]
    begin = row_starts(many)
    sums = row_sums(begin, bound)
    widest = np.zeros(many.size)
    np.maximum.at(widest, row_of[drawn], bound)
    narrowest = np.full(many.size, np.inf)
    np.minimum.at(narrowest, row_of[drawn], bound)
    uneven = (many > 0) & (narrowest < widest)
    start = row_starts(np.where(uneven, many, 0))
    is_drawn = np.zeros(bounds.size, bool)
    is_drawn[arrays.factor[drawn]] = True
    return FunctionRows(
        row=arrays.row.copy(),
        first=arrays.sure.copy(),
        many=many,
        start=start,
        table=build_alias_rows(start, bound[uneven[row_of[drawn]]]),
        local=sums[arrays.row],
        degree=many[arrays.row],
        total=float(bounds[is_drawn].sum()),
    )


def no_rows(graph: Graph) -> FunctionRows:
    """Return rows without factors that may be drawn, for updates that evaluate all factors."""
    arrays: ContinuousGraph = graph.arrays
    rows = arrays.sure.size
    return seal(
        FunctionRows(
            row=arrays.row.copy(),
            first=arrays.sure.copy(),
            many=np.zeros(rows, np.int64),
            start=np.zeros(rows + 1, np.int64),
            table=build_alias_rows(np.zeros(1, np.int64), np.zeros(0)),
            local=np.zeros(graph.n_sites),
            degree=np.zeros(graph.n_sites, np.int64),
            total=0.0,
        )
    )


@inlined
def draw_function(rows: FunctionRows, row: Integer, rng: Words) -> tuple[Words, Integer]:
    """Draw a factor of a row with probability M / L_i; return its place in ``ContinuousGraph.factor``."""
    many = rows.many[row]
    begin = rows.start[row]
    if rows.start[row + 1] > begin:
        rng, column = draw_column(rows.table, begin, many, rng)
        return rng, rows.first[row] + np.int64(column)
    rng, place = below(rng, many)
    return rng, rows.first[row] + place


_HASH = np.uint64(0x9E3779B97F4A7C15)


class Batch(NamedTuple):
    """Parameters of minibatches: rows of factors, tau, the sites updated with all factors, and bounds of factors."""

    rows: FunctionRows
    tau: float
    plain: Bools
    bounds: Bounds

    def room(self) -> int:
        """Return the largest number of different factors of a minibatch; more have a probability below e^-100."""
        rate = (1.0 + self.tau) * self.rows.local
        most = np.minimum(self.rows.degree, np.ceil(rate + 20.0 * np.sqrt(rate)) + 100.0)
        return int(most[~self.plain].max(initial=0.0))


def make_workspace(room: int, points: int, arity: int) -> EnergyWorkspace:
    """Allocate scratch arrays for the largest numbers of factors, candidates, and sites of a factor."""
    slots = 1 << max(2 * room - 1, 1).bit_length()
    return EnergyWorkspace(
        work=np.zeros(max(arity, 1)),
        points=np.zeros(points),
        energy=np.zeros(points),
        height=np.zeros(points),
        product=np.zeros(points),
        stage=np.zeros(STAGES),
        factor=np.zeros(room, np.int32),
        times=np.zeros(room, np.int32),
        scale=np.zeros(room),
        place=np.zeros(room, np.int32),
        table=np.zeros(slots, np.int32),
        reach=np.zeros(2, np.int64),
    )


@inlined
def _put(bounds: Bounds, memory: ContinuousMemory, f: Integer, tau: float) -> None:
    """Add a factor to the minibatch, or count it once more."""
    workspace = memory.workspace
    mask = np.int64(workspace.table.size - 1)
    at = np.int64((np.uint64(f) * _HASH) >> np.uint64(33)) & mask
    while workspace.table[at] != 0 and workspace.factor[workspace.table[at] - 1] != f:
        at = (at + 1) & mask
    size = workspace.reach[1]
    if workspace.table[at] != 0:
        workspace.times[workspace.table[at] - 1] += 1
    elif size == workspace.factor.size:
        memory.fault[0] = FULL
    else:
        workspace.factor[size] = f
        workspace.times[size] = 1
        workspace.scale[size] = 1.0 / (tau * bounds.bound[f])
        workspace.place[size] = at
        workspace.reach[1] = size + 1
        workspace.table[at] = size + 1


@inlined
def gather(batch: Batch, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words) -> Words:
    """Select the factors for an update of site i."""
    workspace, rows, counts, bounds = memory.workspace, batch.rows, memory.counts, batch.bounds
    row = np.int64(arrays.row[i])
    begin = arrays.start[row]
    plain = batch.plain[i]
    workspace.reach[0] = (arrays.start[row + 1] if plain else arrays.sure[row]) - begin
    workspace.reach[1] = 0
    always, more = 0, 0
    if not plain:
        energy = rows.local[i]
        rng, always = poisson(rng, batch.tau * energy)  # means tau M
        rng, more = poisson(rng, energy)  # means phi(x), thinned from M
    kept = always
    workspace.points[0] = x[i]
    for n in range(always + more):
        rng, k = draw_function(rows, row, rng)
        f = arrays.factor[k]
        stays = True
        if n >= always:
            heights(arrays, bounds, memory, f, x, i, 1)
            rng, stays = stays_in(rng, workspace.height[0] / bounds.bound[f])
            kept += stays
        if stays:
            _put(bounds, memory, f, batch.tau)
    for n in range(workspace.reach[1]):
        workspace.table[workspace.place[n]] = 0
    counts[KEPT] += kept
    counts[CALLS] += more
    counts[FACTORS] += workspace.reach[0] + workspace.reach[1]
    return rng
