"""Ising models from and to networkx graphs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats import from_networkx, to_networkx
from gibbsite.models import FactorGraph, ising_grid

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


def test_an_attribute_that_no_edge_has_is_no_coupling_of_one() -> None:
    g = nx.Graph()
    g.add_edge("a", "b", J=0.3)
    g.add_edge("b", "c", J=0.4)
    with pytest.raises(ModelError, match="no edge of the graph has the attribute 'j'; they have 'J'"):
        from_networkx(g, weight="j")
    with pytest.raises(ModelError, match="no node of the graph has the attribute 'h'; they have no attributes"):
        from_networkx(g, weight="J", bias="h")
    g.add_edge("c", "d")
    with pytest.warns(UserWarning, match=r"1 of 3 edges have no attribute 'J' and get the coupling 1\.0"):
        model = from_networkx(g, weight="J")
    assert model.log_potential(dict.fromkeys("abcd", 1)) == pytest.approx(1.7)
    assert from_networkx(nx.path_graph(3)).log_potential({"0": 1, "1": 1, "2": 1}) == 2.0


def test_nodes_are_found_again() -> None:
    g = nx.grid_2d_graph(2, 3)
    back = to_networkx(from_networkx(g), nodes=g)
    assert set(back.nodes) == set(g.nodes)
    assert {frozenset(edge) for edge in back.edges} == {frozenset(edge) for edge in g.edges}
    with pytest.raises(ModelError, match="nodes must be one for each of 6 sites, got 2"):
        to_networkx(from_networkx(g), nodes=["a", "b"])


def test_a_bayesian_network_is_a_directed_graph() -> None:
    g = to_networkx(gs.example("asia"))
    assert nx.is_directed_acyclic_graph(g)
    assert set(g.predecessors("either")) == {"lung", "tub"}
    node = g.nodes["either"]
    assert node["states"] == ("yes", "no") and node["scope"][-1] == "either"
    assert node["table"].shape == (2, 2, 2)
    assert node["table"].sum(axis=-1) == pytest.approx(np.ones((2, 2)))


def test_sites_are_found_by_their_nodes() -> None:
    model = from_networkx(nx.grid_2d_graph(2, 3), bias="bias")
    assert model.index((1, 2)) == 5 and model.index((np.int64(1), np.int64(2))) == 5
    seen = model.observe({(0, 0): 1})
    answer = gs.solve_exact(seen)
    assert answer.marginals[(0, 0)] == {-1: 0.0, 1: 1.0} == answer.marginals["(0, 0)"]
    assert answer.marginals[(0, 1)] == answer.marginals["(0, 1)"] and (0, 1) in answer.marginals
    assert (9, 9) not in answer.marginals
    assert answer.joint((0, 0), (0, 1)).shape == (2, 2)
    assert gs.solve_exact(seen).mcse[(1, 1)] == {-1: 0.0, 1: 0.0}
    x = {(i, j): 1 for i in range(2) for j in range(3)}
    assert seen.log_potential(x) == model.log_potential(x) == 7.0
    with pytest.raises(ModelError, match=r"the site '\(0, 0\)' is already observed"):
        seen.observe({(0, 0): 1})
    with pytest.raises(ModelError, match=r"there is no site \(5, 5\)"):
        model.index((5, 5))
    with pytest.raises(ModelError, match="the site name '1' is given twice"):
        from_networkx(nx.Graph([(1, "1")]))
    assert from_networkx(nx.Graph([(0.5, frozenset())])).index(frozenset()) == 1


def test_a_result_of_a_run_is_read_by_nodes(tmp_path: Any) -> None:
    model = from_networkx(nx.grid_2d_graph(2, 2))
    result = gs.sample(model, sweeps=50, rng=1, progress=False)
    assert result.marginals[(1, 1)] == result.marginals["(1, 1)"]
    gs.save(result, tmp_path / "run.npz")
    assert gs.load(tmp_path / "run.npz").marginals[(1, 1)] == result.marginals["(1, 1)"]
