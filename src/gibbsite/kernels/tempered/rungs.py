"""The models between reference and target, as graphs of the kind of the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Floats, Words64
from gibbsite._numba.shelf import make_shelf
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.tempered.energy import energy_of
from gibbsite.models.tempered import blend, has_soft_zeros

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.kernels.tempered.ladder import Ladder


@dataclass(frozen=True, eq=False)
class Rungs:
    """Graphs of all rungs, and what the inner kernel makes of them.

    Attributes
    ----------
    graphs, inner : Shelf
        Arrays of the graphs, and parameters of the inner kernel on each.
    like : NamedTuple
        Parameters on the target.
    kernel : Kernel
        The inner kernel, with all decided that it reads off the weights of the target.
    beyond : NamedTuple
        Arrays whose log-potential, plus ``constant``, is what the model has beyond the reference.
    hard : bool
        Whether the target excludes states that other rungs allow.
    """

    graphs: Words64
    inner: Words64
    like: Any
    kernel: Kernel
    beyond: Any
    constant: float
    hard: bool


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
    """Return the logarithms of equal probabilities of all states that factors of single sites allow.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2, "b": 3}, [("b", [1, 0, 2])])
    >>> np.exp(even_reference(gs.graphs.compile_graph(model))).round(3).tolist()
    [0.5, 0.5, 0.5, 0.0, 0.5]
    """
    return fit_reference(graph, None)


def fit_reference(graph: Graph, marginals: Floats | None, even: float = 1.0) -> Floats:
    """Return the logarithms of a product law: ``even`` parts of equal probabilities, the rest of marginals.

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
    """Return the log-probability that all states have in a reference; NaN where they differ.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((2, 2)))
    >>> bool(np.isclose(level_of(even_reference(graph), graph), 4 * np.log(0.5)))
    True
    """
    cards = graph.cards.astype(np.int64)
    possible = np.where(np.isfinite(log_reference), log_reference, -np.inf)
    top = np.maximum.reduceat(possible, np.cumsum(cards) - cards) if cards.size else np.zeros(0)
    even = (log_reference == np.repeat(top, cards)) | np.isneginf(log_reference)
    return float(top.sum()) if even.all() else float("nan")
