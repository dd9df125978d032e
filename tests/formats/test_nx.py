"""Ising models from and to networkx graphs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats import from_networkx, to_networkx
from gibbsite.model import FactorGraph, ising_grid

nx: Any = pytest.importorskip("networkx")


def graph() -> Any:
    g = nx.Graph()
    g.add_node("z", bias=0.25)
    g.add_node((0, 1))
    g.add_edge((0, 1), "z", weight=-0.5)
    g.add_edge("a", "z")
    g.add_node(17, bias=-1)
    return g


def test_edges_are_couplings_and_nodes_are_fields() -> None:
    g = graph()
    model = from_networkx(g)
    assert model.sites == ("z", "(0, 1)", "a", "17")
    assert model.labels("z") == (-1, 1)
    for spins in itertools.product((-1, 1), repeat=4):
        s = dict(zip(g.nodes, spins, strict=True))
        expected = sum(w * s[u] * s[v] for u, v, w in g.edges(data="weight", default=1.0))
        expected += sum(b * s[v] for v, b in g.nodes(data="bias", default=0.0))
        x = {str(node): spin for node, spin in s.items()}
        assert model.log_potential(x) == pytest.approx(expected)


def test_other_attributes_and_parallel_edges() -> None:
    g = nx.MultiGraph()
    g.add_edge("a", "b", J=1.0)
    g.add_edge("b", "a", J=0.25)
    g.nodes["a"]["h"] = 2.0
    model = from_networkx(g, weight="J", bias="h")
    assert model.group("couplings").scopes.tolist() == [[0, 1]]
    assert model.log_potential({"a": 1, "b": 1}) == 3.25


def test_round_trip() -> None:
    model = from_networkx(graph())
    back = to_networkx(model)
    assert list(back.nodes(data="bias")) == [("z", 0.25), ("(0, 1)", 0.0), ("a", 0.0), ("17", -1.0)]
    assert from_networkx(back).digest == model.digest
    named = from_networkx(to_networkx(model, "J", "h"), "J", "h")
    assert named.digest == model.digest


def test_other_pairwise_models_become_graphs() -> None:
    grid = to_networkx(ising_grid((3, 4), 0.3, periodic=(True, False)))
    expected = nx.grid_2d_graph(3, 4, periodic=(True, False))
    assert nx.is_isomorphic(grid, expected)
    assert set(nx.get_edge_attributes(grid, "weight").values()) == {0.3}
    table = FactorGraph({"a": 2, "b": 2}, log_factors=[(("a", "b"), [[4.0, 0.0], [0.0, 4.0]])])
    g = to_networkx(table)
    assert (g.edges["a", "b"]["weight"], g.graph["log_offset"]) == (2.0, 2.0)
    with pytest.raises(IncompatibleError, match=r"the site 'a' has 3 states"):
        to_networkx(FactorGraph({"a": 3}))


def test_bad_graphs() -> None:
    with pytest.raises(IncompatibleError, match=r"the graph is directed.*G\.to_undirected\(\)"):
        from_networkx(nx.DiGraph([("a", "b")]))
    with pytest.raises(ModelError, match=r"the node 'a' has an edge to itself"):
        from_networkx(nx.Graph([("a", "a")]))
    g = nx.Graph()
    g.add_edge("a", "b", weight="heavy")
    with pytest.raises(ModelError, match=r"edge \('a', 'b'\) has weight = 'heavy'.* not a number"):
        from_networkx(g)
    g.edges["a", "b"]["weight"] = 1.0
    g.nodes["b"]["bias"] = None
    with pytest.raises(ModelError, match=r"node 'b' has bias = None"):
        from_networkx(g)
    with pytest.raises(ModelError, match=r"the site name '1' is given twice"):
        from_networkx(nx.Graph([(1, "1")]))
