"""Fixed orders: every site once per sweep, forward and backward, or any sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gibbsite._common.arrays import Integers, Ints32
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph
from gibbsite.models.base import Model
from gibbsite.scans.base import Ordered, Raster, Scan, in_order, site_sequence
from gibbsite.scans.registry import register

Sites = Sequence[Any] | Integers


def _permutation(order: Sites, graph: Graph, model: Model | None) -> Ints32:
    """Resolve an order and insist that it names every site once."""
    sites = site_sequence(order, graph, model)
    times = np.bincount(sites, minlength=graph.n_units)
    wrong = np.flatnonzero(times != 1)
    if wrong.size:
        raise ArgumentError(
            f"A sweep must visit every site once, but site {wrong[0]} is visited {times[wrong[0]]} "
            "times; use FixedOrder for other orders."
        )
    return sites


@register(name="systematic", default=True, proof=lambda n: [{}, {"order": np.arange(n)[::-1].copy()}])
@dataclass(frozen=True)
class Systematic(Scan):
    """Every site once per sweep, in a fixed order.

    Parameters
    ----------
    order : sequence of sites, optional
        A permutation of all free sites (names or positions); the default is their own order.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.Systematic(order=[2, 0, 1]).schedule(graph).order.tolist()
    [2, 0, 1]
    """

    once: ClassVar[bool] = True
    order: Sites | None = None

    def schedule(self, graph: Graph, model: Model | None = None) -> Raster | Ordered:
        """Return the visits."""
        if self.order is None:
            return Raster(graph.n_units)
        return in_order(_permutation(self.order, graph, model))


@register(name="palindromic")
@dataclass(frozen=True)
class Palindromic(Scan):
    """Forward and backward sweeps alternate, which makes the chain of pairs of sweeps reversible.

    Parameters
    ----------
    order : sequence of sites, optional
        The forward order.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.scans.Palindromic().schedule(graph).order.tolist()
    [0, 1, 2, 2, 1, 0]
    """

    once: ClassVar[bool] = True
    order: Sites | None = None

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits."""
        if self.order is None:
            forward = np.arange(graph.n_units, dtype=np.int32)
        else:
            forward = _permutation(self.order, graph, model)
        return in_order(np.concatenate([forward, forward[::-1]]))


def _longer_than_a_sweep(n: int) -> list[dict[str, Any]]:
    """Return an order with more visits than sites, so that periods and sweeps have different lengths."""
    backwards = np.arange(n)[::-1]
    return [{"order": np.concatenate([backwards, backwards[: n // 2 + 1]])}]


@register(proof=_longer_than_a_sweep)
@dataclass(frozen=True)
class FixedOrder(Scan):
    """Any sequence of sites, repeated.

    A sweep has as many steps as there are free sites, so it may end within the sequence. Sites that are
    not in the sequence keep their start state; the result reports them as never visited.

    Parameters
    ----------
    order : sequence of sites
        Names or positions; a site may appear any number of times.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.scans.FixedOrder([0, 1, 0, 2]).schedule(graph).order.tolist()
    [0, 1, 0, 2]
    """

    order: Sites

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits."""
        return in_order(site_sequence(self.order, graph, model))
