"""Compile a model to arrays: choose a graph kind and build it. Only here do names become integers.

``compile_graph`` tries the kinds of factor graphs from the most to the least specialised; models of other types have
one kind each (:mod:`gibbsite.graphs.kinds`). The arrays are kept with the model.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gibbsite._common.arguments import checked
from gibbsite._common.cache import Cache
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.registry import FACTOR_KINDS, builder_of, kind_of
from gibbsite.models.base import Model
from gibbsite.models.factorgraph import FactorGraph

#: Names of the kinds of factor graphs, from the most to the least specialised.
KINDS = tuple(FACTOR_KINDS)


class _Built(dict[str, "tuple[Any, float, Cache] | None"]):
    """Arrays, constant and cache of a factor graph by kind; None where the model does not fit the kind."""


def _compile_other(model: Any, kind: str | None) -> Graph:
    """Return the graph of a model other than a FactorGraph, made once."""
    declared = kind_of(type(model))
    if declared is None:
        raise ArgumentError(
            f"Expected a model, got {type(model).__name__}; make one with gs.FactorGraph, gs.ising and so on."
        )
    graph: Graph | None = model.cache.get(Graph)
    if graph is None:
        built: Graph = builder_of(declared)(model)
        graph = model.cache.put(built)
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
        The kind to build. By default, it is the most specialised one that fits.
    among : collection of str
        Kinds to prefer, such as those that a kernel accepts; if none of them fits, others are tried.

    Returns
    -------
    Graph

    Raises
    ------
    IncompatibleError
        If the requested kind cannot represent the model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 0, 1]])])
    >>> compile_graph(model).kind
    'pairwise'
    """
    if not isinstance(model, FactorGraph):
        return _compile_other(model, kind)
    if kind is not None and kind not in FACTOR_KINDS:
        raise ArgumentError(unknown("Graph kind", kind, FACTOR_KINDS))
    domains = model.domains
    if domains.n_sites >= 2**31:
        raise ModelError(f"A graph can have at most 2^31 - 1 sites, this model has {domains.n_sites}.")
    # only an automatically chosen kind is cached; a requested one is often large and used once
    known = model.cache.find(_Built, _Built) if kind is None else _Built()
    preferred = filter(set(map(str, among)).__contains__, FACTOR_KINDS)
    wanted = dict.fromkeys((*preferred, *FACTOR_KINDS))
    for name in wanted if kind is None else (kind,):
        if name not in known:
            declared = FACTOR_KINDS[name]
            built = builder_of(declared)(model) if declared.may_fit(model) else None
            known[name] = None if built is None else (seal(built[0]), built[1], Cache())
        found = known[name]
        if found is not None:
            offset = model.log_offset + found[1]
            return Graph(name, found[0], domains.cards, offset, found[2], model.shared, model=model)
    raise IncompatibleError(f"This model cannot be represented as a {kind} graph.")


def as_tables(graph: Graph) -> Graph:
    """Return a graph as one of kind "table", which can represent any model of states.

    Code that distinguishes kinds uses this for all kinds that it does not know.
    """
    return graph if graph.kind == "table" else compile_graph(graph.require_model(), "table")
