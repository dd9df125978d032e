"""The rungs: graphs between reference and target, the energy U of swaps, and a sweep of all replicas.

After every sweep, swaps need U, the log-potential of the model minus that of the reference, for the states of all
rungs. The arrays of a graph are laid out for the conditional of one site: every pair is stored in the rows of both of
its sites. For sums over whole states, every pair is stored once, and the loop has no branches that depend on the state.
Kinds without such a layout are summed with the arrays of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Array, Codes, Floats, Ints, Positions, Words32, Words64
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.packed import pack_values, take
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Span, Team, visit
from gibbsite.kernels.rules import pick
from gibbsite.kernels.tempered.exchange import BEGUN, TemperedMemory, exchange
from gibbsite.models.tempered import blend, has_soft_zeros
from gibbsite.scans.base import period

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.kernels.tempered.ladder import Ladder


class AgreementEnergy(NamedTuple):
    """Pairs with a coupling for equal states, each stored once.

    ``coupling`` has length one (``step`` 0) if all are equal. ``log_unary`` is empty if no site prefers a state.
    """

    first: Words32
    second: Words32
    step: int
    coupling: Floats
    offset: Ints
    log_unary: Floats


class PairEnergy(NamedTuple):
    """Tables of pairs, each stored once (``log_value[table + stride * x_second + x_first]``), and single sites."""

    first: Words32
    second: Words32
    table: Ints
    stride: Ints
    log_value: Floats
    offset: Ints
    log_unary: Floats


@singledispatch
def energy_of(arrays: Any) -> Any:
    """Return arrays of the same log-potential that are faster to sum, if the kind of graph has them."""
    return arrays


@energy_of.register
def _of_agreements(arrays: PottsGraph) -> AgreementEnergy:
    first, rows = _once(arrays.start, arrays.neighbour)
    return AgreementEnergy(
        first=first,
        second=arrays.neighbour[rows],
        step=arrays.step,
        coupling=arrays.coupling[rows] if arrays.step else arrays.coupling,
        offset=arrays.offset,
        log_unary=_needed(arrays.log_unary),
    )


@energy_of.register
def _of_pairs(arrays: PairwiseGraph) -> PairEnergy:
    first, rows = _once(arrays.start, arrays.neighbour)
    return PairEnergy(
        first=first,
        second=arrays.neighbour[rows],
        table=arrays.table[rows],
        stride=arrays.card[first].astype(np.int64),
        log_value=arrays.log_value,
        offset=arrays.offset,
        log_unary=_needed(arrays.log_unary),
    )


def _once(start: Words32, neighbour: Words32) -> tuple[Words32, Positions]:
    """Return the smaller site of every pair, and the position of the pair in its row."""
    degree = start[1:].astype(np.int64) - start[:-1]
    sites = np.repeat(np.arange(start.size - 1, dtype=np.uint32), degree)
    rows = np.flatnonzero(neighbour > sites)
    return sites[rows], rows


def _needed(log_unary: Floats) -> Floats:
    return log_unary if log_unary.any() else np.zeros(0)


@implement(log_potential, AgreementEnergy)
def _sum_agreements(arrays: AgreementEnergy, x: Codes) -> float:
    total = 0.0
    if arrays.step == 0 and arrays.coupling.size > 0:
        agree = np.int64(0)
        for k in range(np.uintp(arrays.first.size)):
            agree += x[np.uintp(arrays.first[k])] == x[np.uintp(arrays.second[k])]
        total = arrays.coupling[0] * np.float64(agree)
    elif arrays.step > 0:
        for k in range(np.uintp(arrays.first.size)):
            agree = np.int64(x[np.uintp(arrays.first[k])] == x[np.uintp(arrays.second[k])])
            total += arrays.coupling[k] * np.float64(agree)
    for k in range(np.uintp(x.size if arrays.log_unary.size > 0 else 0)):
        total += arrays.log_unary[np.uintp(arrays.offset[k]) + np.uintp(x[k])]
    return total


@implement(log_potential, PairEnergy)
def _sum_pairs(arrays: PairEnergy, x: Codes) -> float:
    total = 0.0
    for k in range(np.uintp(arrays.first.size)):
        row = arrays.table[k] + arrays.stride[k] * np.int64(x[np.uintp(arrays.second[k])])
        total += arrays.log_value[np.uintp(row) + np.uintp(x[np.uintp(arrays.first[k])])]
    for k in range(np.uintp(x.size if arrays.log_unary.size > 0 else 0)):
        total += arrays.log_unary[np.uintp(arrays.offset[k]) + np.uintp(x[k])]
    return total


@dataclass(frozen=True, eq=False)
class Rungs:
    """Graphs of all rungs, and the parameters of the inner kernel on them."""

    # graphs, inner: arrays of the graphs, and parameters of the inner kernel on each
    graphs: Words64
    inner: Words64
    like: Any  # parameters on the target
    kernel: Kernel  # the inner kernel, with all choices made that depend on the weights of the target
    beyond: Any  # arrays whose log-potential, plus ``constant``, is U
    constant: float
    hard: bool  # whether the target excludes states that other rungs allow


def make_rungs(graph: Graph, inner: Kernel, ladder: Ladder) -> Rungs:
    """Build the graphs of a ladder."""
    model = graph.model
    assert model is not None
    settled: Kernel = inner.settle(graph) if hasattr(inner, "settle") else inner
    logs = ladder.log_reference

    def between(scale: float, pull: float) -> Graph:
        found = compile_graph(blend(model, scale, pull, logs), graph.kind)
        return replace(found, units=graph.units)

    graphs = [between(beta, 1.0 - beta) for beta in ladder.betas[:-1].tolist()] + [graph]
    beyond = between(1.0, -1.0)
    parameters = [settled.parameters(one) for one in graphs]
    return Rungs(
        pack_values([one.arrays for one in graphs]),
        pack_values(parameters),
        parameters[-1],
        settled,
        energy_of(beyond.arrays),
        beyond.log_offset,
        has_soft_zeros(model),
    )


def rung_memory(inner: Kernel, graph: Graph, stream: Words64) -> NamedTuple:
    """Allocate the memory of one replica, by the kernel's ``rung_memory`` if it has one."""
    allocate = getattr(inner, "rung_memory", inner.memory)
    return cast("NamedTuple", allocate(graph, stream))


def even_reference(graph: Graph) -> Floats:
    """Return the logarithms of equal probabilities of all states that factors of single sites allow."""
    return fit_reference(graph, None)


def fit_reference(graph: Graph, marginals: Floats | None, even: float = 1.0) -> Floats:
    """Return the logarithms of a product distribution: a mixture of equal probabilities and of marginals.

    ``even`` is the weight of equal probabilities. States that factors of single sites exclude have probability zero.
    """
    cards = graph.cards.astype(np.int64)
    start = np.cumsum(cards) - cards
    allowed = np.ones(int(cards.sum()), bool) if graph.binary else np.isfinite(graph.arrays.log_unary)
    many = np.repeat(np.add.reduceat(allowed, start) if cards.size else cards, cards)
    law = allowed / np.maximum(many, 1)
    if marginals is not None:
        law = np.where(allowed, even * law + (1.0 - even) * marginals, 0.0)
        law = law / np.repeat(np.add.reduceat(law, start), cards)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(law))


def level_of(log_reference: Floats, graph: Graph) -> float:
    """Return the log-probability that all states have in a reference; NaN if these differ."""
    cards = graph.cards.astype(np.int64)
    possible = np.where(np.isfinite(log_reference), log_reference, -np.inf)
    top = np.maximum.reduceat(possible, np.cumsum(cards) - cards) if cards.size else np.zeros(0)
    even = (log_reference == np.repeat(top, cards)) | np.isneginf(log_reference)
    return float(top.sum()) if even.all() else float("nan")


class TemperedParameters(NamedTuple):
    """Graphs and parameters of the rungs, and the differences of their betas, for compiled code.

    ``reference`` has the probabilities of all states of all sites at the first rung, those of site i from
    ``cell[i]`` on, if that rung is the reference itself; otherwise it is empty.
    """

    graphs: Words64
    inner: Words64
    like: Any
    beyond: Any
    constant: float
    hard: bool
    gap: Floats
    cut: Floats
    cell: Ints
    reference: Floats


@implement(visit, TemperedParameters)
def _visit(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Array, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Move the replicas of all rungs by a span of visits, and make swaps at the end of a sweep."""
    rungs, team = memory.gain.size, span.team
    if memory.counts[BEGUN] == 0:
        if team.member == 0:
            for k in range(memory.states.size):
                memory.states[k] = x[k % x.size]
        if team.size > 1:
            wait_for_all(team.gate, team.size)
        if team.member == 0:
            memory.counts[BEGUN] = 1
    whole = span.stop == np.uintp(period(schedule))
    own = Span(span.order, span.where, span.stop, span.turn, Team(0, 1, team.gate))
    for k in range(team.member, rungs, team.size):
        move_rung(params, arrays, schedule, memory, x, own, cond, keep, k, whole)
    if whole:
        if team.size > 1:
            wait_for_all(team.gate, team.size)
        if team.member == 0:
            possible = is_possible(params, arrays, memory, x)
            rng = exchange(params.gap, params.cut, memory, x, possible, False, rng)
        if team.size > 1:
            wait_for_all(team.gate, team.size)
    return rng


@inlined
def move_rung(
    parameters: TemperedParameters,
    arrays: Any,
    schedule: Any,
    memory: TemperedMemory,
    x: Array,
    span: Span,
    cond: Floats,
    keep: bool,
    k: Integer,
    whole: bool,
) -> None:
    """Move the replica of rung k; store its U at the end of a sweep."""
    rungs = memory.gain.size
    graph, own = take(parameters.graphs, k, arrays), take(parameters.inner, k, parameters.like)
    work, first = take(memory.work.shelf, k, memory.work.like), memory.place[k] * x.size
    state = memory.states[first : first + x.size] if k < rungs - 1 else x
    words = memory.words
    r = words[k, 0], words[k, 1], words[k, 2], words[k, 3]
    put = keep and k == rungs - 1
    if k > 0 or parameters.reference.size == 0:
        r = visit(own, graph, schedule, work, state, span, r, cond, put)
    elif whole:
        r = _draw_reference(parameters, state, r)
    words[k, 0], words[k, 1], words[k, 2], words[k, 3] = r
    if whole:
        memory.gain[k] = log_potential(parameters.beyond, state) + parameters.constant
        for i in range(x.size if memory.sums.size > 0 else 0):
            memory.sums[k, parameters.cell[i] + np.int64(state[i])] += 1.0


@inlined
def is_possible(parameters: TemperedParameters, arrays: Any, memory: TemperedMemory, x: Array) -> bool:
    """Return whether the target allows the state of the rung before it."""
    if not parameters.hard:
        return True
    first = memory.place[memory.gain.size - 2] * x.size
    return bool(log_potential(arrays, memory.states[first : first + x.size]) > -np.inf)


@inlined
def _draw_reference(parameters: TemperedParameters, x: Array, rng: Words) -> Words:
    """Draw all sites of the first rung from the reference."""
    for i in range(x.size):
        rng, u = uniform(rng)
        first, last = parameters.cell[i], parameters.cell[i + 1]
        x[i] = pick(parameters.reference[first:last], last - first, u)
    return rng
