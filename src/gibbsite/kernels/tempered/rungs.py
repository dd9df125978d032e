"""The models between reference and target, as graphs of the kind of the target, and the energy between them.

Every swap needs U, what a model has beyond its reference, of two states after every sweep. The arrays of a graph
are laid out for the conditional of one site: every pair is stored in the rows of both of its sites. For sums over
whole states every pair is stored once, and the loop has no branches that depend on the state. Kinds without such
a layout are summed up as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Positions, Words32, Words64
from gibbsite._numba.jit import implement
from gibbsite._numba.shelf import make_shelf
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.local import log_potential
from gibbsite.models.tempered import blend, has_soft_zeros

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.kernels.tempered.ladder import Ladder


class AgreementEnergy(NamedTuple):
    """Pairs whose states may agree, each once.

    ``coupling`` has length one (``step`` 0) where all are equal. ``log_unary`` is empty where no site prefers a state.
    """

    first: Words32
    second: Words32
    step: int
    coupling: Floats
    offset: Ints
    log_unary: Floats


class PairEnergy(NamedTuple):
    """Tables of pairs, each once: ``log_value[table + stride * x_second + x_first]``, and single sites."""

    first: Words32
    second: Words32
    table: Ints
    stride: Ints
    log_value: Floats
    offset: Ints
    log_unary: Floats


@singledispatch
def energy_of(arrays: Any) -> Any:
    """Return arrays of the same log-potential, faster to sum up where there are such."""
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
    """Graphs of all rungs, and what the inner kernel makes of them."""

    # graphs, inner: arrays of the graphs, and parameters of the inner kernel on each
    graphs: Words64
    inner: Words64
    like: Any  # parameters on the target
    kernel: Kernel  # the inner kernel, with all decided that it reads off the weights of the target
    beyond: Any  # arrays whose log-potential, plus ``constant``, is what the model has beyond the reference
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
        make_shelf([one.arrays for one in graphs]),
        make_shelf(parameters),
        parameters[-1],
        settled,
        energy_of(beyond.arrays),
        beyond.log_offset,
        has_soft_zeros(model),
    )


def rung_memory(inner: Kernel, graph: Graph, stream: Words64) -> NamedTuple:
    """Allocate the memory of one replica; where that of the kernel may depend on its state, another one."""
    allocate = getattr(inner, "rung_memory", inner.memory)
    return cast("NamedTuple", allocate(graph, stream))


def even_reference(graph: Graph) -> Floats:
    """Return the logarithms of equal probabilities of all states that factors of single sites allow."""
    return fit_reference(graph, None)


def fit_reference(graph: Graph, marginals: Floats | None, even: float = 1.0) -> Floats:
    """Return the logarithms of a product distribution: ``even`` parts of equal probabilities, the rest of marginals.

    States that factors of single sites exclude have probability zero.
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
    """Return the log-probability that all states have in a reference; NaN where they differ."""
    cards = graph.cards.astype(np.int64)
    possible = np.where(np.isfinite(log_reference), log_reference, -np.inf)
    top = np.maximum.reduceat(possible, np.cumsum(cards) - cards) if cards.size else np.zeros(0)
    even = (log_reference == np.repeat(top, cards)) | np.isneginf(log_reference)
    return float(top.sum()) if even.all() else float("nan")
