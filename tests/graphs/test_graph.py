"""Every graph kind says the same about a model: its log-potentials, and its conditionals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite.graphs.graph import KINDS
from gibbsite.graphs.local import log_potential, weights
from gibbsite.graphs.rows import MANY, gather, sum_ends
from gibbsite.testing import tiny_models


@compiled
def whole(graph, x):
    return log_potential(graph, x)


@compiled
def local(graph, x, i, w):
    return weights(graph, x, i, w)


def all_kinds(model: gs.FactorGraph) -> dict[str, gs.graphs.Graph]:
    found = {}
    for kind in KINDS:
        try:
            found[kind] = gs.graphs.compile_graph(model, kind)
        except gs.errors.IncompatibleError:
            continue
    return found


@pytest.mark.parametrize("name", list(tiny_models()))
def test_kinds_agree_with_the_model(name: str) -> None:
    model = tiny_models()[name]
    exact = gs.exact.enumerate(model)
    for graph in all_kinds(model).values():
        w = np.zeros(int(graph.cards.max()))
        for number, codes in enumerate(exact.states):
            x = codes.astype(graph.state_dtype)
            value = whole(graph.arrays, x) + graph.log_offset
            assert value == pytest.approx(model.log_potential(codes), rel=1e-12, abs=1e-12)
            if exact.probabilities[number] > 0:
                for i in range(graph.n_sites):
                    size, total = local(graph.arrays, x, np.uintp(i), w)
                    row = exact.law[tuple(codes[:i])][(slice(None), *codes[i + 1 :])]
                    assert w[:size] / total == pytest.approx(row / row.sum(), rel=1e-9, abs=1e-15)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_random_models(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    cards = [data.draw(st.integers(1, 3)) for _ in range(n)]
    value = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    factors = []
    for _ in range(data.draw(st.integers(0, 5))):
        scope = data.draw(st.permutations(range(n)))[: data.draw(st.integers(1, min(n, 3)))]
        shape = [cards[i] for i in scope]
        table = np.array([data.draw(value) for _ in range(int(np.prod(shape)))]).reshape(shape)
        if table.any():
            factors.append((tuple(str(i) for i in scope), table))
    model = gs.FactorGraph({str(i): k for i, k in enumerate(cards)}, factors)
    try:
        graphs = all_kinds(model)
    except gs.errors.SupportError:
        with pytest.raises(gs.errors.SupportError):
            gs.exact.enumerate(model)
        return
    assert "table" in graphs
    for codes in itertools.product(*(range(k) for k in cards)):
        for graph in graphs.values():
            seen = whole(graph.arrays, np.array(codes, graph.state_dtype)) + graph.log_offset
            assert seen == pytest.approx(model.log_potential(np.array(codes)), rel=1e-12, abs=1e-12)


def test_the_most_special_kind_is_chosen() -> None:
    assert gs.graphs.compile_graph(gs.ising_grid((3, 3))).kind == "lattice"
    assert gs.graphs.compile_graph(gs.ising_grid((3, 3)).observe({"4": 1})).kind == "ising"
    assert gs.graphs.compile_graph(gs.ising_grid((2, 2, 2, 2))).kind == "ising"
    assert gs.graphs.compile_graph(gs.potts_grid((3, 3), 3, 0.5)).kind == "potts"
    assert gs.graphs.compile_graph(gs.potts_grid((3, 3), 3, 0.5).observe({"4": 1})).kind == "potts"
    assert gs.graphs.compile_graph(gs.potts_grid((3, 3), 2, 0.5)).kind == "ising"
    assert gs.graphs.compile_graph(gs.potts_grid((3, 3), 2, 0.5, field=[0.0, -np.inf])).kind == "potts"
    assert gs.graphs.compile_graph(gs.FactorGraph(2, [((0, 1), np.ones((3, 3)))], states=3)).kind == "pairwise"
    with pytest.raises(gs.errors.IncompatibleError):
        gs.graphs.compile_graph(gs.potts_grid((3, 3), 3, 0.5), "ising")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_random_agreements(data: st.DataObject) -> None:
    n, states = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    weight = st.sampled_from([-1000.0, -2.5, 0.0, 0.25, 0.25, 3.0, 500.0])
    pairs = [pair for pair in itertools.permutations(range(n), 2) if data.draw(st.booleans())]
    tables = np.array([[data.draw(st.sampled_from([-np.inf, -800.0, 0.0, 1.5])) for _ in range(states)]])
    tables[0, data.draw(st.integers(0, states - 1))] = 0.0
    groups: list[gs.factors.FactorGroup] = [gs.factors.TableFactors([[data.draw(st.integers(0, n - 1))]], tables)]
    if pairs:
        groups.append(gs.factors.AgreementFactors(pairs, [data.draw(weight) for _ in pairs]))
    model = gs.FactorGraph(n, groups=groups, states=states)
    potts, table = (gs.graphs.compile_graph(model, kind).arrays for kind in ("potts", "table"))
    assert ((potts.dense.size > 0) == (len(pairs) > 0)) or 2 * len(pairs) < 0.25 * n * n
    w, v = np.zeros(states), np.zeros(states)
    for codes in itertools.product(range(states), repeat=n):
        x = np.array(codes, np.int16)
        value = whole(potts, x) + gs.graphs.compile_graph(model, "potts").log_offset
        assert value == pytest.approx(model.log_potential(x), rel=1e-12, abs=1e-12)
        for i in range(n):
            size, total = local(potts, x, np.uintp(i), w)
            _, other = local(table, x, np.uintp(i), v)
            assert size == states
            assert total > 0
            assert w / total == pytest.approx(v / other, rel=1e-9, abs=1e-140)


def test_agreements_take_the_memory_of_their_edges() -> None:
    uniform = gs.graphs.compile_graph(gs.potts_grid((100, 100), 5, 0.5))
    assert uniform.arrays.coupling.tolist() == [0.5]
    random = gs.graphs.compile_graph(gs.potts_grid((100, 100), 5, np.random.default_rng(1).random((2, 100, 100))))
    assert uniform.arrays.dense.size == random.arrays.dense.size == 0
    cells = 2 * 8 * 5 + 8 + 4 + 4 + 1  # unary factors, offset, number of states, row start, steepness
    assert uniform.nbytes < 10_001 * (cells + 4 * 4)
    assert random.nbytes < 10_001 * (cells + 4 * (4 + 8 + 8))
    matrix = np.triu(np.random.default_rng(2).normal(size=(50, 50)), 1)
    full = gs.graphs.compile_graph(gs.potts(matrix, 30))
    assert np.array_equal(full.arrays.dense.reshape(50, 50), matrix + matrix.T)
    assert full.nbytes < 50 * 50 * (20 + 8) + 50 * (2 * 8 * 30 + 30)


def test_reweighting_shares_the_structure() -> None:
    rng = np.random.default_rng(1)
    couplings = np.triu(rng.normal(size=(6, 6)), 1)
    model = gs.ising(couplings, np.zeros(6))
    graph = gs.graphs.compile_graph(model)
    pairs = model.group("couplings").scopes
    fresh = rng.normal(size=len(pairs))
    again = gs.graphs.compile_graph(model.reweight(couplings=fresh, fields=np.ones(6)))
    assert again.arrays.neighbour is graph.arrays.neighbour
    dense = np.zeros((6, 6))
    dense[pairs[:, 0], pairs[:, 1]] = fresh
    other = gs.graphs.compile_graph(gs.ising(dense, np.ones(6)))
    assert np.array_equal(again.arrays.coupling, other.arrays.coupling)
    assert np.array_equal(again.arrays.field, other.arrays.field)
    assert again.digest != graph.digest


@pytest.mark.parametrize("tables", [False, True])
def test_new_weights_of_a_large_model_give_the_graph_of_a_fresh_one(tables: bool) -> None:
    rng = np.random.default_rng(4)
    pairs = rng.integers(0, 300, (MANY, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    assert 2 * len(pairs) >= MANY
    scopes = {"random": pairs, "sorted": pairs[np.argsort(pairs[:, 0], kind="stable")]}
    weights = {name: rng.normal(size=(len(pairs), 2, 2) if tables else len(pairs)) for name in scopes}
    make = gs.factors.TableFactors if tables else gs.factors.SpinFactors

    def weigh(scale: float) -> gs.FactorGraph:
        groups = [make(scopes[name], scale * weights[name], name=name) for name in scopes]
        return gs.FactorGraph(300, groups=[*groups, gs.factors.SpinFactors([[0]], [0.5])], states=2)

    wanted, model = gs.graphs.compile_graph(weigh(2.0), "ising"), weigh(1.0)
    for _ in range(3):  # what depends on the structure is kept in the second round, and used in the third
        model = model.reweight(**{name: 2.0 * weights[name] for name in scopes})
        found = gs.graphs.compile_graph(model, "ising")
        assert all(np.array_equal(a, b) for a, b in zip(found.arrays, wanted.arrays, strict=True))
        assert found.log_offset == wanted.log_offset


@pytest.mark.parametrize("equal", [False, True])
def test_spins_have_the_graph_of_their_tables(equal: bool) -> None:
    rng = np.random.default_rng(3)
    pairs = np.array([[i, j] for i in range(9) for j in range(i)] + [[2, 1], [3, 7]])
    groups = []
    for scopes in (pairs, np.arange(9)[:, None], np.array([[4], [4]])):
        weights = np.full(len(scopes), 0.3) if equal else rng.normal(size=len(scopes))
        groups.append(gs.factors.SpinFactors(scopes, weights))
    cards = np.full(9, 2, np.int32)
    tables = [gs.factors.TableFactors(group.scopes, group.log_tables(cards)) for group in groups]
    models = [gs.FactorGraph(9, groups=each, states=2) for each in (groups, tables)]
    ours, theirs = (gs.graphs.compile_graph(model, "ising") for model in models)
    assert all(np.array_equal(a, b) for a, b in zip(ours.arrays, theirs.arrays, strict=True))
    assert ours.log_offset == theirs.log_offset


def test_arrays_are_read_only_and_small() -> None:
    graph = gs.graphs.compile_graph(gs.ising_grid((200, 200), coupling=0.1), "ising")
    with pytest.raises(ValueError, match="read-only"):
        graph.arrays.coupling[0] = 1.0
    assert graph.nbytes <= 60 * graph.n_sites
    assert gs.graphs.compile_graph(gs.ising_grid((1000, 1000), coupling=0.1)).nbytes < 100


def test_impossible_site_is_named() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [("a", [0, 1]), ("a", [1, 0]), (("a", "b"), np.ones((2, 2)))])
    with pytest.raises(gs.errors.SupportError, match="'a'"):
        gs.graphs.compile_graph(model)


def test_sums_of_pairs_are_those_of_numpy_to_the_last_bit() -> None:
    rng = np.random.default_rng(6)
    for order in (np.arange(2000), rng.permutation(2000)):
        pairs = np.sort(rng.integers(0, 50, (2000, 2)).astype(np.int32), axis=0)[order]
        numbers = rng.normal(size=(2, 2000)) * 10.0 ** rng.integers(-9, 9, (2, 2000))
        wanted = [np.bincount(pairs[:, k], numbers[k], 60) for k in range(2)]
        assert np.array_equal(sum_ends(pairs, 60, *numbers), wanted)
        at = pairs[:, 0].astype(np.uint32)
        assert np.array_equal(gather(numbers[0], at), numbers[0][at])
    assert not sum_ends(np.zeros((0, 2), np.int32), 3, np.zeros(0), np.zeros(0)).any()
