"""Blocks and cutsets are climbed and drawn at a temperature, against enumeration, and used by searches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.inference.best_states.moves import BlockMoves, Cover, CutsetMoves, find_block_moves, find_cutset_moves
from gibbsite.inference.best_states.search import search_best
from gibbsite.kernels.blocks.filtering import climb_blocks, make_workspace
from gibbsite.kernels.blocks.tables import lay_out_blocks


def random_model(seed: int, sites: int = 7, zeros: bool = True) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    sizes = {f"s{i}": int(rng.integers(2, 4)) for i in range(sites)}
    names = list(sizes)
    factors = []
    for _ in range(sites + 3):
        scope = tuple(sorted(rng.choice(names, size=int(rng.integers(1, 4)), replace=False)))
        table = rng.random([sizes[name] for name in scope])
        if zeros:
            table[rng.random(table.shape) < 0.2] = 0.0
            table.flat[rng.integers(table.size)] = 1.0  # something is possible
        factors.append((scope, table))
    return gs.FactorGraph(sizes, factors)


@pytest.mark.parametrize("seed", range(20))
def test_a_climb_puts_a_block_into_its_best_state(seed: int) -> None:
    model = random_model(seed, zeros=False)
    graph = gs.graphs.compile_graph(model, "table")
    rng = np.random.default_rng(seed)
    x = rng.integers(0, graph.cards, dtype=graph.state_dtype)
    block = rng.permutation(7)[:4].astype(np.int64)
    tables, pool = lay_out_blocks(graph.arrays, [block])
    best = -np.inf
    for states in itertools.product(*(range(graph.cards[i]) for i in block)):
        y = x.copy()
        y[block] = states
        best = max(best, model.log_potential(y))
    climbed = x.copy()
    climb_blocks(tables, graph.arrays, make_workspace(tables, graph.arrays, pool), climbed)
    rest = np.setdiff1d(np.arange(7), block)
    assert (climbed[rest] == x[rest]).all()
    assert model.log_potential(climbed) == pytest.approx(best, abs=1e-12)
    again = climbed.copy()
    climb_blocks(tables, graph.arrays, make_workspace(tables, graph.arrays, pool), again)
    assert (again == climbed).all()


def test_a_state_that_ties_with_the_best_one_stays() -> None:
    model = gs.ising_grid((3, 3), coupling=0.0)
    graph = gs.graphs.compile_graph(model, "table")
    tables, pool = lay_out_blocks(graph.arrays, [np.arange(9)])
    x = np.array([1, 0, 0, 1, 1, 0, 1, 0, 1], graph.state_dtype)
    climbed = x.copy()
    climb_blocks(tables, graph.arrays, make_workspace(tables, graph.arrays, pool), climbed)
    assert (climbed == x).all()


@pytest.mark.parametrize("price", [np.inf, 4.0])
def test_blocks_are_drawn_from_the_law_at_their_temperature(price: float) -> None:
    # One block of all sites: draws are independent. 40,000 of them in up to 24 cells; the chi-square
    # statistic exceeds its mean by 40 + 10 sqrt(degrees) with probability below 1e-6.
    tables = [np.array([[3, 1, 0], [1, 2, 0.5]]), np.array([[1, 4], [2, 0], [1, 1]])]
    scopes = [("a", "b"), ("b", "c")]
    model = gs.FactorGraph({"a": 2, "b": 3, "c": 2}, list(zip(scopes, tables, strict=True)))
    graph = gs.graphs.compile_graph(model, "table")
    moves = BlockMoves(graph, 1e4)
    moves.add_cover()
    cover: Cover = moves.covers[0]
    inverse = 0.6
    work = moves.workspace(cover)
    work.words[:] = stream(5, 0)
    x, counts = np.zeros(3, graph.state_dtype), np.zeros((2, 3, 2))
    arrays = moves.cooled(inverse, price)
    for _ in range(40_000):
        moves.draw_cover(cover, arrays, inverse, price, work, x)
        counts[tuple(x)] += 1
    with np.errstate(divide="ignore"):
        first, second = (np.log(table) for table in tables)
    # log-potentials are measured from the largest of each factor, and so is the price
    first, second = (np.maximum(t - t.max(), -price) for t in (first, second))
    law = np.exp(inverse * (first[:, :, None] + second[None]))
    law /= law.sum()
    expected = law * counts.sum()
    assert (counts[law == 0.0] == 0).all()
    seen = law > 0.0
    statistic = float(((counts - expected)[seen] ** 2 / expected[seen]).sum())
    degrees = int(seen.sum()) - 1
    assert statistic < degrees + 40 + 10 * np.sqrt(degrees)


def test_dense_and_large_models_have_no_block_moves() -> None:
    dense = gs.ising(np.triu(np.ones((80, 80)), 1))
    assert find_block_moves(gs.graphs.compile_graph(dense), 1.0) is None
    assert find_block_moves(gs.graphs.compile_graph(gs.ising_grid((200, 200), coupling=0.1)), 1.0) is None
    assert find_block_moves(gs.graphs.compile_graph(gs.ising_grid((5, 5), coupling=0.1)), 1.0) is not None


def test_covers_are_the_same_in_any_process() -> None:
    graph = gs.graphs.compile_graph(gs.ising_grid((30, 30), coupling=0.5))
    one, two = BlockMoves(graph, 1.0), BlockMoves(graph, 1.0)
    for moves in (one, two):
        moves.add_cover()
        moves.add_cover()
    for a, b in zip(one.covers, two.covers, strict=True):
        assert (a.tables.site == b.tables.site).all()
    assert not np.array_equal(one.covers[0].tables.site, one.covers[1].tables.site)


RING = [np.array(t) for t in ([[3, 1], [0, 2]], [[1, 4], [2, 0.5]], [[1, 0], [2, 1]], [[5, 1], [1, 2]])]


def ring_model() -> gs.FactorGraph:
    scopes = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    return gs.FactorGraph(dict.fromkeys("abcd", 2), list(zip(scopes, RING, strict=True)))


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_search_with_cutsets_finds_the_best_state(seed: int) -> None:
    model = noisy_or(seed)
    found = search_best(model, sweeps=300, chains=2, rng=seed, progress=False)
    assert found.log_potential == pytest.approx(gs.solve_exact(model).log_potential, abs=1e-9)
