"""Ising models as networkx graphs: couplings on edges, fields on nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.notice import warn_user
from gibbsite._common.reals import read_real
from gibbsite._common.wording import argument, site_name
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.formats.network import network_tables
from gibbsite.formats.objects.bqm import import_extra, ising_terms, sum_pairs
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.zoo import ising


@checked
def from_networkx(G: Any, weight: str = "weight", bias: str = "bias") -> FactorGraph:
    """Build the Ising model ``p(s) ~ exp(sum_edges w s_u s_v + sum_nodes b s_u)``.

    Parameters
    ----------
    G : networkx.Graph
        Undirected. Parallel edges of a multigraph add up.
    weight : str
        Edge attribute with the coupling. Edges without the attribute "weight" have couplings of 1.0, as in networkx.
        Any other name that no edge has is refused; edges that lack it where others have it get 1.0, with a warning.
    bias : str
        Node attribute with the field, 0.0 where it is missing; a name other than "bias" that no node has is refused.

    Returns
    -------
    FactorGraph
        Sites in the order of ``G.nodes``, named by the texts of the nodes; see `gibbsite.models.ising`. Nodes
        that are no strings or integers, such as those of grids, find their sites, too: ``marginals[(0, 1)]``.
        An integer is a position, so that the node 7 is ``marginals["7"]``. Nodes with equal texts are refused.
        Arrays of results are in the order of ``G.nodes``.

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
        raise IncompatibleError("the graph is directed, but couplings have no direction; pass G.to_undirected().")
    index = {node: k for k, node in enumerate(G.nodes)}
    _check_attribute(bias, "bias", "node", [data for _, data in G.nodes(data=True)])
    without = _check_attribute(weight, "weight", "edge", [data for *_, data in G.edges(data=True)])
    if without and weight != "weight":
        many = f"{without} of {G.number_of_edges()} edges"
        warn_user(f"{many} have no attribute {weight!r} and get the coupling 1.0.")
    fields = np.empty(len(index))
    for node, value in G.nodes(data=bias, default=0.0):
        fields[index[node]] = _number(value, bias, f"node {node!r}")
    ends = np.empty((G.number_of_edges(), 2), np.int32)
    weights = np.empty(len(ends))
    for k, (u, v, value) in enumerate(G.edges(data=weight, default=1.0)):
        if u == v:
            raise ModelError(f"the node {u!r} has an edge to itself; a site is not coupled to itself, remove it.")
        ends[k] = index[u], index[v]
        weights[k] = _number(value, weight, f"edge {(u, v)!r}")
    pairs, sums = sum_pairs(len(index), ends, weights)
    i, j = pairs.T
    return ising((i, j, sums), fields, sites=[str(site_name(node)) for node in index])


@checked
def to_networkx(
    model: FactorGraph, weight: str = "weight", bias: str = "bias", nodes: Iterable[Any] | None = None
) -> Any:
    """Return a Bayesian network, or a model of two-state sites and pairs, as a networkx graph.

    Parameters
    ----------
    model : FactorGraph
        A Bayesian network (all factors are directed); or a model in which every site has two states, no
        factor more than two sites, and no potential is zero.
    weight, bias : str
        Names of the edge and node attributes to write.
    nodes : iterable, optional
        What the nodes are, in the order of the sites, such as the graph that the model was made from. By
        default they are the names of the sites, which are texts.

    Returns
    -------
    networkx.DiGraph or networkx.Graph
        Of a Bayesian network, edges lead from parents to children. Nodes have the attributes ``states``, and ``table``:
        the probabilities, an axis for each of the nodes in ``scope``, itself last. Otherwise, the spin of a site is -1
        in its first state and +1 in its second, and the constant is the graph attribute ``log_offset``.

    Raises
    ------
    IncompatibleError
        When the model is not of that kind.

    Examples
    --------
    >>> from gibbsite.models import ising
    >>> to_networkx(ising([[0, 0.5], [0.5, 0]])).edges(data="weight")
    EdgeDataView([('0', '1', 0.5)])
    """
    networkx = import_extra("networkx")
    if not isinstance(model, FactorGraph):
        raise IncompatibleError(f"to_networkx takes a FactorGraph, got {type(model).__name__}.")
    names = list(model.sites if nodes is None else nodes)
    if len(names) != model.n_sites:
        raise ArgumentError(f"{argument('nodes')} must be one for each of {model.n_sites} sites, got {len(names)}.")
    if model.groups and all(getattr(group, "directed", False) or not group.size for group in model.groups):
        graph = networkx.DiGraph()
        for k, name in enumerate(names):
            graph.add_node(name, states=model.labels(k))
        for scope, logs in network_tables(model, "networkx"):
            *parents, child = (names[k] for k in scope)
            graph.add_edges_from((parent, child) for parent in parents)
            graph.nodes[child].update(scope=(*parents, child), table=np.exp(logs))
        return graph
    terms = ising_terms(model)
    graph = networkx.Graph(log_offset=terms.offset)
    for name, value in zip(names, terms.fields.tolist(), strict=True):
        graph.add_node(name, **{bias: value})
    for (i, j), value in zip(terms.pairs.tolist(), terms.couplings.tolist(), strict=True):
        graph.add_edge(names[i], names[j], **{weight: value})
    return graph


def _check_attribute(name: str, default: str, what: str, data: list[dict[str, Any]]) -> int:
    """Refuse an attribute that is missing everywhere, unless it is the default; return the number without it."""
    having = sum(name in each for each in data)
    if data and not having and name != default:
        others = sorted({str(key) for each in data for key in each})
        known = f"they have {', '.join(map(repr, others))}" if others else "they have no attributes"
        raise ModelError(f"no {what} of the graph has the attribute {name!r}; {known}.")
    return len(data) - having if having else 0


def _number(value: Any, attribute: str, owner: str) -> float:
    try:
        return read_real(value, attribute)
    except ModelError:
        raise ModelError(f"the {owner} has {attribute} = {value!r}, which is not a number.") from None
