"""The layout color by color that suits a model: a checkerboard for lattices, compressed columns otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite.graph.compile import compile_graph
from gibbsite.graph.graph import Graph
from gibbsite.graph.layouts.checkered import checker_graph
from gibbsite.graph.layouts.checkered_potts import checker_potts
from gibbsite.graph.layouts.colored import MOST_TABLED, ColoredGraph, color_graph
from gibbsite.graph.layouts.site_order import PackedModel, Permutation

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph


def arrange_by_color(model: FactorGraph, graph: Graph) -> PackedModel | None:
    """Lay a model out color by color, if it is a lattice or binary, and its couplings allow it.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.25)
    >>> arrange_by_color(model, gs.compile_graph(model)).name
    'checkered'
    """
    board = checker_graph(graph) or checker_potts(model, graph)
    if board is not None:
        arrays, there = board
        return PackedModel(graph, arrays, there, graph.n_sites // 2, "checkered")
    return arrange_columns(model, graph)


def arrange_columns(model: FactorGraph, graph: Graph, most_tabled: int = MOST_TABLED) -> PackedModel | None:
    """Lay a binary model out in compressed columns, color by color; see :func:`color_graph`."""
    found = color_binary(model, graph, most_tabled)
    if found is None:
        return None
    graph, colored, there = found
    return PackedModel(graph, colored, there, int(np.diff(colored.color_start).max(initial=0)), "arranged")


def color_binary(
    model: FactorGraph, graph: Graph, most_tabled: int = MOST_TABLED
) -> tuple[Graph, ColoredGraph, Permutation] | None:
    """Return a binary model in compressed rows, and color by color, if its couplings allow it."""
    if not graph.binary:
        return None
    graph = graph if graph.kind == "ising" else compile_graph(model, "ising")
    found = color_graph(graph, most_tabled)
    return None if found is None else (graph, *found)
