"""Uphill from a state: move one site at a time to its most probable value until none can be improved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite.graphs.graph import compile_graph
from gibbsite.kernels.gibbs.uphill import go_uphill

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


def climb(model: FactorGraph, x: Array) -> Array:
    """Return a local maximum of the log-potential reached from ``x``, as codes.

    Examples
    --------
    >>> import gibbsite as gs
    >>> climb(gs.ising_grid((3,), coupling=1.0, field=0.1), np.array([1, 0, 1])).tolist()
    [1, 1, 1]
    """
    graph = compile_graph(model)
    top = np.array(x, graph.state_dtype)
    go_uphill(graph.arrays, top, np.zeros(max(int(graph.cards.max(initial=1)), 2)))
    return top
