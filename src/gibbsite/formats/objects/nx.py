"""Ising models as networkx graphs: couplings on edges, fields on nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats.objects.bqm import import_extra, ising_terms, sum_pairs
from gibbsite.model.factorgraph import FactorGraph
from gibbsite.model.reals import read_real
from gibbsite.model.zoo import ising


def from_networkx(G: Any, weight: str = "weight", bias: str = "bias") -> FactorGraph:
    """Build the Ising model ``p(s) ~ exp(sum_edges w s_u s_v + sum_nodes b s_u)``.

    Parameters
    ----------
    G : networkx.Graph
        Undirected. Parallel edges of a multigraph add up.
    weight : str
        Edge attribute with the coupling, 1.0 where it is missing.
    bias : str
        Node attribute with the field, 0.0 where it is missing.

    Returns
    -------
    FactorGraph
        Sites in the order of ``G.nodes``, named by ``str(node)``; see `gibbsite.model.ising`.

    Examples
    --------
    >>> import networkx as nx
    >>> model = from_networkx(nx.path_graph(["a", "b", "c"]))
    >>> model.sites, model.log_potential({"a": 1, "b": 1, "c": -1})
    (('a', 'b', 'c'), 0.0)
    """
    if not (hasattr(G, "is_directed") and hasattr(G, "nodes") and hasattr(G, "edges")):
        raise IncompatibleError(f"from_networkx takes a networkx graph, got {type(G).__name__}.")
    if G.is_directed():
        raise IncompatibleError(
            "the graph is directed, but couplings have no direction; pass G.to_undirected()."
        )
    index = {node: k for k, node in enumerate(G.nodes)}
    fields = np.empty(len(index))
    for node, value in G.nodes(data=bias, default=0.0):
        fields[index[node]] = _number(value, bias, f"node {node!r}")
    ends = np.empty((G.number_of_edges(), 2), np.int32)
    weights = np.empty(len(ends))
    for k, (u, v, value) in enumerate(G.edges(data=weight, default=1.0)):
        if u == v:
            raise ModelError(
                f"the node {u!r} has an edge to itself; a site is not coupled to itself, remove it."
            )
        ends[k] = index[u], index[v]
        weights[k] = _number(value, weight, f"edge {(u, v)!r}")
    pairs, sums = sum_pairs(len(index), ends, weights)
    i, j = pairs.T
    return ising((i, j, sums), fields, sites=[str(node) for node in index])


def to_networkx(model: FactorGraph, weight: str = "weight", bias: str = "bias") -> Any:
    """Return a model of two-state sites and at most pairwise factors as a networkx graph.

    Parameters
    ----------
    model : FactorGraph
        Every site has two states, no factor more than two sites, no potential is zero.
    weight, bias : str
        Names of the edge and node attributes to write.

    Returns
    -------
    networkx.Graph
        Nodes are the site names; the spin of a site is -1 in its first state and +1 in its second.
        The constant is the graph attribute ``log_offset``.

    Raises
    ------
    IncompatibleError
        When the model is not of that kind.

    Examples
    --------
    >>> from gibbsite.model import ising
    >>> to_networkx(ising([[0, 0.5], [0.5, 0]])).edges(data="weight")
    EdgeDataView([('0', '1', 0.5)])
    """
    networkx = import_extra("networkx")
    terms = ising_terms(model)
    names = model.sites
    graph = networkx.Graph(log_offset=terms.offset)
    for name, value in zip(names, terms.fields.tolist(), strict=True):
        graph.add_node(name, **{bias: value})
    for (i, j), value in zip(terms.pairs.tolist(), terms.couplings.tolist(), strict=True):
        graph.add_edge(names[i], names[j], **{weight: value})
    return graph


def _number(value: Any, attribute: str, owner: str) -> float:
    try:
        return read_real(value, attribute)
    except ModelError:
        raise ModelError(f"the {owner} has {attribute} = {value!r}, which is not a number.") from None
