"""Colorings are proper, and two colors are found where they exist."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite.graphs.color import color_sites, markov_graph


def assert_proper(graph: gs.graphs.Graph) -> int:
    colors = color_sites(graph)
    start, neighbour = markov_graph(graph)
    rows = np.repeat(np.arange(graph.n_sites), np.diff(start.astype(int)))
    assert (colors[rows] != colors[neighbour]).all()
    used = np.unique(colors)
    assert used.tolist() == list(range(used.size))
    assert used.size <= np.diff(start.astype(int)).max(initial=0) + 1
    return int(used.size)


@pytest.mark.parametrize(
    ("shape", "periodic", "colors"),
    [
        ((5, 7), False, 2),
        ((4, 6), True, 2),
        ((5, 4), True, 3),
        ((3, 3, 3), True, 3),
        ((4, 4, 4), True, 2),
        ((1, 1), False, 1),
        ((7,), True, 3),
    ],
)
def test_lattices(shape: tuple[int, ...], periodic: bool, colors: int) -> None:
    model = gs.ising_grid(shape, coupling=0.1, periodic=periodic)
    assert assert_proper(gs.graphs.compile_graph(model)) <= colors + 1
    if colors <= 2:
        assert assert_proper(gs.graphs.compile_graph(model, "ising")) == colors
        assert assert_proper(gs.graphs.compile_graph(model, "table")) == colors


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 10**6))
def test_random_graphs(n: int, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    links = np.triu(rng.random((n, n)) < density, 1)
    assert_proper(gs.graphs.compile_graph(gs.ising(links.astype(float))))
    sides = rng.random(n) < 0.5
    bipartite = links & (sides[:, None] != sides[None, :])
    assert assert_proper(gs.graphs.compile_graph(gs.ising(bipartite.astype(float)))) <= 2


def test_agreements() -> None:
    assert assert_proper(gs.graphs.compile_graph(gs.potts_grid((4, 5), 3, 0.1))) == 2
    assert assert_proper(gs.graphs.compile_graph(gs.potts(np.triu(np.ones((5, 5)), 1), 3))) == 5


def test_complete_graph_and_large_factors() -> None:
    assert assert_proper(gs.graphs.compile_graph(gs.ising(np.triu(np.ones((9, 9)), 1)))) == 9
    model = gs.FactorGraph(5, [((0, 1, 2), np.ones((2, 2, 2))), ((2, 3), np.ones((2, 2)))], states=2)
    graph = gs.graphs.compile_graph(model, "table")
    assert assert_proper(graph) == 3
