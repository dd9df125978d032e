"""Draws of cutsets at a temperature, against enumeration, and searches that use them."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.inference.best_states.blocks import BlockMoves
from gibbsite.inference.best_states.cutsets import CutsetMoves, find_cutset_moves
from gibbsite.inference.best_states.search import search_best

pytestmark = pytest.mark.long

RING = [np.array(t) for t in ([[3, 1], [0, 2]], [[1, 4], [2, 0.5]], [[1, 0], [2, 1]], [[5, 1], [1, 2]])]


def ring_model() -> gs.FactorGraph:
    scopes = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    return gs.FactorGraph(dict.fromkeys("abcd", 2), list(zip(scopes, RING, strict=True)))


@pytest.mark.parametrize("price", [np.inf, 4.0])
def test_cutsets_are_drawn_from_the_law_at_their_temperature(price: float) -> None:
    # The cutset of a ring is one site, so that draws are independent. The temperature changes after every
    # draw: messages must not be kept. 15,000 draws at each in up to 16 cells; the chi-square statistic
    # exceeds its mean by 40 + 10 sqrt(degrees) with probability below 1e-6.
    graph = gs.graphs.compile_graph(ring_model(), "table")
    blocks = BlockMoves(graph, 1e4)
    moves = CutsetMoves(blocks, width=2.0)
    cutset = moves.cutsets[0]
    assert cutset.tree.site.size == 1
    work = moves.workspace(cutset)
    work.words[:] = stream(5, 0)
    x = np.zeros(4, graph.state_dtype)
    levels = (0.6, 1.7)
    cooled = [blocks.cooled(inverse, price) for inverse in levels]
    counts = np.zeros((2, 2, 2, 2, 2))
    for _ in range(15_000):
        for k, inverse in enumerate(levels):
            moves.draw(cutset, cooled[k], inverse, price, work, x)
            counts[(k, *x)] += 1
    with np.errstate(divide="ignore"):
        # log-potentials are measured from the largest of each factor, and so is the price
        logs = [np.maximum(np.log(t) - np.log(t.max()), -price) for t in RING]
    total = np.zeros((2, 2, 2, 2))
    for table, letters in zip(logs, ("ab", "bc", "cd", "da"), strict=True):
        axes = sorted(letters)
        table = table if axes == list(letters) else table.T
        total = total + table.reshape([2 if letter in axes else 1 for letter in "abcd"])
    for k, inverse in enumerate(levels):
        law = np.exp(inverse * total)
        law /= law.sum()
        expected = law * counts[k].sum()
        assert (counts[k][law == 0.0] == 0).all()
        seen = law > 0.0
        statistic = float(((counts[k] - expected)[seen] ** 2 / expected[seen]).sum())
        degrees = int(seen.sum()) - 1
        assert statistic < degrees + 40 + 10 * np.sqrt(degrees)


def test_models_without_zeros_have_no_cutset_moves() -> None:
    graph = gs.graphs.compile_graph(gs.ising_grid((5, 5), coupling=0.1))
    assert find_cutset_moves(BlockMoves(graph, 1.0)) is None
    assert find_cutset_moves(None) is None
    assert find_cutset_moves(BlockMoves(gs.graphs.compile_graph(ring_model()), 1.0)) is not None


def noisy_or(seed: int, causes: int = 14, findings: int = 10) -> gs.FactorGraph:
    """Return findings, all of them present, each the disjunction of three rare causes, chained in pairs."""
    rng = np.random.default_rng(seed)
    disjunction = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        disjunction[a, b, a | b] = 1.0
    sizes: dict[str, int] = {f"c{i}": 2 for i in range(causes)}
    factors: list[tuple[tuple[str, ...], np.ndarray]] = []
    for i in range(causes):
        p = float(rng.uniform(0.001, 0.05))
        factors.append(((f"c{i}",), np.array([1.0 - p, p])))
    for f in range(findings):
        one, two, three = rng.choice(causes, 3, replace=False)
        sizes[f"p{f}"] = sizes[f"f{f}"] = 2
        factors.append(((f"c{one}", f"c{two}", f"p{f}"), disjunction))
        factors.append(((f"p{f}", f"c{three}", f"f{f}"), disjunction))
        factors.append(((f"f{f}",), np.array([0.0, 1.0])))
    return gs.FactorGraph(sizes, factors)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_with_cutsets_finds_the_best_state(seed: int) -> None:
    model = noisy_or(seed)
    found = search_best(model, sweeps=300, chains=2, rng=seed, progress=False)
    assert found.log_potential == pytest.approx(gs.solve_exact(model).log_potential, abs=1e-9)
