"""Model to arrays: choose a graph kind and build it. The only place where names become integers.

Of a factor graph ``compile_graph`` tries the kinds from the most to the least special; models of other
types have one kind each (:mod:`gibbsite.graphs.kinds`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import gibbsite.graphs.kinds  # noqa: F401  (they register themselves)
from gibbsite._common.arguments import checked
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.registry import compiler_of, registered_kinds
from gibbsite.models import FactorGraph, Model

#: Names of the kinds of factor graphs, from the most to the least special.
KINDS = tuple(registered_kinds())


def _compile_other(model: Any, kind: str | None) -> Graph:
    """Return the graph of a model other than a FactorGraph, made once."""
    function = compiler_of(type(model))
    if function is None:
        raise ArgumentError(
            f"There is no model here, but {type(model).__name__}; make one with gs.FactorGraph, gs.ising and so on."
        )
    graph: Graph | None = model.structure.get("graph")
    if graph is None:
        found = function(model)
        seal(found.arrays)
        model.structure["functions"] = list(found.functions)  # their machine code lives as long as these
        graph = Graph(
            found.kind,
            found.arrays,
            model.cards,
            found.log_offset,
            model.structure,
            found.units,
            on_disk=found.on_disk,
            model_digest=model.digest,
        )
        model.structure["graph"] = graph
    if kind not in (None, graph.kind):
        raise IncompatibleError(f"A {type(model).__name__} cannot be represented as a {kind} graph.")
    return graph


@checked
def compile_graph(model: Model, kind: str | None = None, among: Collection[str] = ()) -> Graph:
    """Turn a model into a graph.

    Parameters
    ----------
    model : Model
        The model.
    kind : str, optional
        Demand this kind instead of the most special one that fits.
    among : collection of str
        Prefer these kinds, as those that a kernel accepts; if none of them fits, others are taken.

    Returns
    -------
    Graph

    Raises
    ------
    IncompatibleError
        If the demanded kind cannot represent the model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 0, 1]])])
    >>> compile_graph(model).kind
    'pairwise'
    """
    if not isinstance(model, FactorGraph):
        return _compile_other(model, kind)
    if kind is not None and kind not in KINDS:
        raise ArgumentError(unknown("Graph kind", kind, KINDS))
    if model.n_sites >= 2**31:
        raise ModelError(f"A graph can have at most 2^31 - 1 sites, this model has {model.n_sites}.")
    preferred = {name for name in among if isinstance(name, str)}
    wanted = sorted(KINDS, key=lambda name: name not in preferred)  # stable: special ones first
    for name in wanted if kind is None else (kind,):
        built = registered_kinds()[name].build(model)
        if built is not None:
            arrays, constant = built
            seal(arrays)
            return Graph(
                kind=name,
                arrays=arrays,
                cards=model.cards,
                log_offset=model.log_offset + constant,
                structure=model.structure,
                model=model,
            )
    raise IncompatibleError(f"This model cannot be represented as a {kind} graph.")


def as_tables(graph: Graph) -> Graph:
    """Return a graph as one of kind "table", which holds any model of states.

    Whoever treats kinds apart takes this for those that it does not know, so that a new kind need not be
    known everywhere.

    Examples
    --------
    >>> import gibbsite as gs
    >>> as_tables(compile_graph(gs.ising_grid((3, 3), coupling=0.5))).kind
    'table'
    """
    if graph.kind == "table":
        return graph
    return compile_graph(graph.require_model(), "table")
