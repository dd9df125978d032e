"""Starting points of mean field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.support.start import find_start
from gibbsite.inference.mean_field._sweep import ExpectationWorkspace, sweep
from gibbsite.results.compare import same_layout
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.sampling.climb import climb

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

STARTS = ("uniform", "unary", "random", "support")


def start_law(
    model: FactorGraph, graph: Graph, arrays: Any, start: Any, rng: np.random.Generator, workspace: ExpectationWorkspace
) -> Floats:
    """Return the cells of the product distribution that ``start`` asks for (see :func:`gibbsite.mean_field`).

    ``arrays`` are those of the graph, with impossible states of single sites excluded.
    """
    possible = np.ones(int(graph.cards.sum(dtype=np.int64)))
    if not graph.binary:
        possible[np.isneginf(arrays.log_unary)] = 0.0
    if not isinstance(start, str):
        return _cells(graph, _read_given(model, start))
    if start == "uniform":
        return _cells(graph, possible)
    if start == "unary":
        uniform = _cells(graph, possible)
        law = np.empty_like(uniform)
        sweep(arrays, graph.n_sites, uniform, law, 1.0, workspace)
        return law
    if start == "random":
        return _cells(graph, possible * rng.exponential(size=possible.size))
    if start == "support":
        codes = climb(model, find_start(model, graph, rng))
        point = np.zeros(possible.size)
        point[np.cumsum(graph.cards) - graph.cards + codes] = 1.0
        return _cells(graph, point)
    raise ArgumentError(unknown("start", start, STARTS, ", or give probabilities"))


def _cells(graph: Graph, weights: Floats) -> Floats:
    """Normalise weights of all states, site after site, to the cells of a product distribution."""
    if not graph.n_sites:
        return np.zeros(0)
    first = np.cumsum(graph.cards) - graph.cards
    law: Floats = weights / np.repeat(np.add.reduceat(weights, first), graph.cards)
    return law[1::2].copy() if graph.binary else law


def _read_given(model: FactorGraph, start: Any) -> Floats:
    """Return given probabilities as weights of all states, site after site."""
    table = start if isinstance(start, SiteTable) else getattr(start, "marginals", None)
    if isinstance(table, SiteTable):
        seen = observed_cells(model.evidence, model.evidence_labels, 1.0)
        if not same_layout(table, SiteTable(model.domains, table.cells, observed=seen)):
            raise ArgumentError("start has other sites, states or evidence than the model; give marginals of it.")
        start = table.to_array()
    try:
        given: Floats = np.asarray(start, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{argument('start')} must hold probabilities, got {describe(start)}.") from None
    cards = np.asarray(model.cards)
    shape = (cards.size, int(cards.max(initial=1)))
    if given.shape == (cards.size,) and (cards == 2).all():
        given = np.stack([1.0 - given, given], axis=1)
    if given.shape != shape:
        also = f" or {(cards.size,)}" if (cards == 2).all() else ""
        raise ArgumentError(f"{argument('start')} must have the shape {shape}{also}, got {given.shape}.")
    used = np.arange(shape[1]) < cards[:, None]
    bad = np.flatnonzero((~np.isfinite(given) | (given < 0.0) | ((given > 0.0) & ~used)).any(axis=1))
    if bad.size:
        site, row = model.sites[int(bad[0])], given[int(bad[0])].tolist()
        raise ArgumentError(
            f"{argument('start')} must hold probabilities, zero beyond the last state, but site {site!r} has {row}."
        )
    empty = np.flatnonzero(given.sum(axis=1) <= 0.0)
    if empty.size:
        raise ArgumentError(f"start gives no probability to any state of site {model.sites[int(empty[0])]!r}.")
    return given[used]
