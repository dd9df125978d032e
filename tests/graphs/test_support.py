"""Propagation of zeros against brute force, on many random small models."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.graphs.support.possible import alive_states, has_zeros


@st.composite
def zero_models(draw: Callable[[Any], Any], most_sites: int = 5) -> gs.FactorGraph:
    """Small models with many zeros; some have no possible state at all."""
    n = draw(st.integers(1, most_sites))
    cards = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    factors = []
    for _ in range(draw(st.integers(1, 6))):
        scope = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=min(3, n), unique=True))
        size = int(np.prod([cards[i] for i in scope]))
        table = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=size, max_size=size))
        if any(table):  # a model refuses a factor that is zero everywhere
            factors.append((tuple(scope), table))
    return gs.FactorGraph({f"s{i}": card for i, card in enumerate(cards)}, factors)


def support(model: gs.FactorGraph) -> NDArray[np.int64]:
    """All states of positive probability, by enumeration."""
    states = itertools.product(*(range(card) for card in model.cards.tolist()))
    found = [x for x in states if model.log_potential(np.array(x, np.int64)) > -np.inf]
    return np.array(found, np.int64).reshape(-1, model.n_sites)


def supported_graphs(model: gs.FactorGraph) -> list[gs.graphs.Graph]:
    graphs = [gs.graphs.compile_graph(model, "table")]
    if all(group.arity <= 2 for group in model.groups):
        graphs.append(gs.graphs.compile_graph(model, "pairwise"))
    return graphs


def naive_alive(model: gs.FactorGraph) -> NDArray[np.bool_]:
    """Generalised arc consistency by its definition: repeat until nothing dies."""
    alive = [np.ones(card, bool) for card in model.cards.tolist()]
    before = -1
    while before != sum(int(flags.sum()) for flags in alive):
        before = sum(int(flags.sum()) for flags in alive)
        for group in model.groups:
            tables = group.log_tables(model.cards)
            for k, scope in enumerate(group.scopes.tolist()):
                possible = tables[k if len(tables) > 1 else 0] > -np.inf
                for axis, i in enumerate(scope):
                    possible = possible & np.expand_dims(alive[i], [a for a in range(len(scope)) if a != axis])
                for axis, i in enumerate(scope):
                    others = tuple(a for a in range(len(scope)) if a != axis)
                    alive[i] = alive[i] & possible.any(axis=others)
    return np.concatenate(alive)


@settings(max_examples=300, deadline=None)
@given(zero_models())
def test_it_kills_exactly_what_the_definition_says(model: gs.FactorGraph) -> None:
    expected = naive_alive(model)
    try:
        graphs = supported_graphs(model)
        found = [alive_states(graph, model) for graph in graphs]
    except gs.errors.SupportError:
        starts = np.cumsum(model.cards) - model.cards
        assert not np.logical_or.reduceat(expected, starts).all()  # the definition empties a site, too
        return
    for alive in found:
        np.testing.assert_array_equal(alive, expected)


@settings(max_examples=300, deadline=None)
@given(zero_models())
def test_what_occurs_never_dies(model: gs.FactorGraph) -> None:
    states = support(model)
    try:
        alive = alive_states(gs.graphs.compile_graph(model), model)
    except gs.errors.SupportError:
        assert len(states) == 0
        return
    start = np.concatenate([[0], np.cumsum(model.cards)[:-1]])
    assert alive[states + start].all()


def test_without_zeros_everything_is_alive() -> None:
    for model in (
        gs.ising_grid((3, 4), coupling=0.3),
        gs.potts_grid((3, 3), states=3, coupling=0.5),
        gs.FactorGraph(3, [((0, 1, 2), np.arange(1, 9))], states=2),
        gs.ising([[0.0, 0.4], [0.4, 0.0]]),
    ):
        graph = gs.graphs.compile_graph(model)
        assert not has_zeros(graph)
        alive = alive_states(graph)
        assert alive.size == model.cards.sum()
        assert alive.all()


def test_agreements_have_zeros_at_single_sites_only() -> None:
    model = gs.potts_grid((2, 2), 3, -1e6, field=[0.0, -np.inf, -5.0])
    graph = gs.graphs.compile_graph(model)
    assert graph.kind == "potts"
    assert has_zeros(graph)
    assert alive_states(graph).tolist() == 4 * [True, False, True]
    assert gs.sample(model, sweeps=10, rng=1, progress=False).marginals["0"][1] == 0.0


def test_a_tiny_value_is_not_a_zero() -> None:
    model = gs.FactorGraph(2, log_factors=[((0, 1), [0.0, -2000.0, -1e90, 0.0])], states=2)
    for kind in ("pairwise", "table"):
        assert not has_zeros(gs.graphs.compile_graph(model, kind))


def test_a_zero_of_a_single_site_counts() -> None:
    model = gs.FactorGraph({"a": 3}, [("a", [0, 1, 1])])
    graph = gs.graphs.compile_graph(model)
    assert has_zeros(graph)
    assert alive_states(graph).tolist() == [False, True, True]


def test_the_error_names_site_and_factors() -> None:
    differ = 1 - np.eye(2)
    model = gs.FactorGraph(
        {"a": 2, "b": 2, "c": 2, "unrelated": 2},
        [("a", [1, 0]), (("a", "b"), differ), (("a", "c"), np.eye(2)), (("b", "c"), np.eye(2))],
    )
    graph = gs.graphs.compile_graph(model)
    with pytest.raises(gs.errors.SupportError, match=r"Site '[abc]' has no possible state.*\([abc], [abc]\)") as why:
        alive_states(graph, model)
    assert "unrelated" not in str(why.value)
    with pytest.raises(gs.errors.SupportError, match=r"Site '[012]'"):
        alive_states(graph)


def test_the_error_names_the_evidence() -> None:
    equal = np.eye(2)
    model = gs.FactorGraph({"a": 2, "b": 2, "c": 2, "d": 2}, [((x, y), equal) for x, y in ("ab", "bc", "cd")]).observe(
        {"a": 0, "d": 1}
    )
    with pytest.raises(gs.errors.SupportError, match=r"given a=0, d=1"):
        alive_states(gs.graphs.compile_graph(model), model)


def test_reweighting_does_not_leave_old_zeros_behind() -> None:
    links = gs.factors.TableFactors([[0, 1]], np.log([[[1.0, 1.0], [1.0, 1.0]]]), name="links")
    model = gs.FactorGraph({"a": 2, "b": 2}, [("a", [0, 1])], groups=[links])
    with np.errstate(divide="ignore"):
        other = model.reweight(links=np.log(np.eye(2)))
    assert alive_states(gs.graphs.compile_graph(model)).tolist() == [False, True, True, True]
    assert alive_states(gs.graphs.compile_graph(other)).tolist() == [False, True, False, True]


def test_a_long_chain_of_deaths() -> None:
    n = 20_000
    scopes = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    with np.errstate(divide="ignore"):
        copy = gs.factors.TableFactors(scopes, np.log(np.eye(3))[None])
    model = gs.FactorGraph(n, [((0,), [0, 1, 0])], groups=[copy], states=3)
    alive = alive_states(gs.graphs.compile_graph(model)).reshape(n, 3)
    assert (alive == [False, True, False]).all()


def test_large_tables_take_seconds_at_most() -> None:
    rng = np.random.default_rng(1)
    # 2^18 entries of which few are positive, and a parity that gives way only at its last members
    sparse = (rng.random((2,) * 18) < 1e-3).astype(float)
    sparse.flat[0] = 1.0
    parity = (np.indices((2,) * 18).sum(axis=0) % 2 == 0).astype(float)
    factors = [(tuple(range(18)), sparse), (tuple(range(10, 28)), parity)]
    factors += [((i,), [1.0, 0.0]) for i in range(10, 27)]
    scopes = np.array([rng.choice(5000, 4, replace=False) for _ in range(15_000)])
    with np.errstate(divide="ignore"):
        many = gs.factors.TableFactors(scopes, np.log((rng.random((15_000, 2, 2, 2, 2)) > 0.1).astype(float)))
    model = gs.FactorGraph(5000, factors, groups=[many], states=2)
    graph = gs.graphs.compile_graph(model)
    alive_states(gs.graphs.compile_graph(gs.FactorGraph(2, [((0, 1), np.eye(2))], states=2)))  # compile
    begin = time.perf_counter()
    alive = alive_states(graph, model).reshape(-1, 2)
    assert time.perf_counter() - begin < 10
    assert alive[27].tolist() == [True, False]
