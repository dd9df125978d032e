"""Paths of single-site moves, and uphill walks, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.support.reach import leads_to
from gibbsite.sampling.climb import climb


def random_zero_model(seed: int) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    table = (rng.random((2, 3, 2)) < 0.5).astype(float)
    table[0, 0, 0] = 1.0
    return gs.FactorGraph({"a": 2, "b": 3, "c": 2}, [(("a", "b", "c"), table), (("a", "b"), np.ones((2, 3)))])


def components(model: gs.FactorGraph) -> dict[tuple[int, ...], int]:
    """Number the regions of the support that single-site moves connect."""
    support = [c for c in itertools.product(range(2), range(3), range(2)) if model.log_potential(np.array(c)) > -np.inf]
    number: dict[tuple[int, ...], int] = {}
    for root in support:
        if root in number:
            continue
        todo, label = [root], len(set(number.values()))
        while todo:
            here = todo.pop()
            number[here] = label
            todo += [
                there
                for there in support
                if there not in number and sum(p != q for p, q in zip(here, there, strict=True)) == 1
            ]
    return number


@pytest.mark.parametrize("seed", range(25))
def test_a_found_path_is_a_proof(seed: int) -> None:
    model = random_zero_model(seed)
    graph = gs.graphs.compile_graph(model)
    region = components(model)
    rng = np.random.default_rng(seed)
    for start, goal in itertools.product(region, repeat=2):
        # on a small model the search looks at everything there is
        assert leads_to(graph, np.array(start), np.array(goal), rng) == (region[start] == region[goal])


def test_colorings_with_spare_colors_are_connected() -> None:
    # with two colors more than neighbours every coloring can be reached; a lattice has four neighbours
    sites = {f"{r},{c}": 6 for r in range(12) for c in range(12)}
    differ = 1.0 - np.eye(6)
    links = [((f"{r},{c}", f"{r + 1},{c}"), differ) for r in range(11) for c in range(12)]
    links += [((f"{r},{c}", f"{r},{c + 1}"), differ) for r in range(12) for c in range(11)]
    graph = gs.graphs.compile_graph(gs.FactorGraph(sites, links))
    row, column = np.divmod(np.arange(144), 12)
    stripes = (row + 2 * column) % 6
    checks = (row + column) % 2
    assert leads_to(graph, stripes, checks, np.random.default_rng(1))
    assert leads_to(graph, checks, stripes, np.random.default_rng(2))


@pytest.mark.parametrize("seed", range(10))
def test_the_top_is_a_local_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = gs.potts(np.triu(rng.normal(size=(6, 6)), 1), 3, rng.normal(size=(6, 3)))
    top = climb(model, rng.integers(0, 3, 6))
    best = model.log_potential(top)
    for i, code in itertools.product(range(6), range(3)):
        other = top.copy()
        other[i] = code
        assert model.log_potential(other) <= best + 1e-9
