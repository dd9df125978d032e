"""Starts are in the support, differ between chains, and are refused with a reason."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.graphs.support.possible import has_zeros
from gibbsite.graphs.support.start import draw_forward, find_draw_order, find_start, find_state_with, start_states
from tests.data import DATA, needs_data

UAI = DATA / "uai"


@st.composite
def zero_models(draw: Callable[[Any], Any]) -> gs.FactorGraph:
    """Up to six sites and many zeros, so that a good part has no possible state at all."""
    n = draw(st.integers(1, 6))
    cards = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    factors = []
    for _ in range(draw(st.integers(1, 9))):
        scope = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=min(3, n), unique=True))
        size = int(np.prod([cards[i] for i in scope]))
        table = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=size, max_size=size))
        if any(table):  # a model refuses a factor that is zero everywhere
            factors.append((tuple(scope), table))
    return gs.FactorGraph({f"s{i}": card for i, card in enumerate(cards)}, factors)


@st.composite
def networks(draw: Callable[[Any], Any]) -> gs.FactorGraph:
    """Small Bayesian networks with deterministic rows, some given evidence; sites in no particular order."""
    n = draw(st.integers(2, 5))
    place = draw(st.permutations(range(n)))
    tables = []
    for k in range(n):
        parents = draw(st.lists(st.integers(0, k - 1), max_size=2, unique=True)) if k else []
        rows = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=4, max_size=4))[: 2 ** len(parents)]
        table = np.array([[1 - p, p] for p in rows]).reshape((2,) * len(parents) + (2,))
        tables.append(((*(place[j] for j in parents), place[k]), table))
    model = gs.FactorGraph(n, tables, states=2, directed=True)
    if draw(st.booleans()):
        try:
            return model.observe({place[-1]: draw(st.integers(0, 1))})
        except gs.errors.ModelError:
            pass
    return model


def support(model: gs.FactorGraph) -> set[tuple[int, ...]]:
    """All states of positive probability, by enumeration."""
    states = itertools.product(*(range(card) for card in model.cards.tolist()))
    return {x for x in states if model.log_potential(np.array(x, np.int64)) > -np.inf}


def compiled(model: gs.FactorGraph) -> gs.graphs.Graph | None:
    """The graph, None if already the weights of a single site exclude everything."""
    try:
        return gs.graphs.compile_graph(model)
    except gs.errors.SupportError:
        return None


@settings(max_examples=300, deadline=None)
@given(zero_models(), st.integers(0, 2**32))
def test_a_start_is_found_exactly_if_there_is_one(model: gs.FactorGraph, seed: int) -> None:
    possible, graph = support(model), compiled(model)
    if graph is None:
        assert not possible
    elif possible:
        x = find_start(model, graph, np.random.default_rng(seed))
        assert tuple(x.tolist()) in possible
        assert x.dtype == graph.state_dtype
    else:
        with pytest.raises(gs.errors.SupportError):
            find_start(model, graph, np.random.default_rng(seed))


@settings(max_examples=150, deadline=None)
@given(networks(), st.integers(0, 2**32))
def test_networks_start_in_their_support(model: gs.FactorGraph, seed: int) -> None:
    possible, graph = support(model), compiled(model)
    if graph is None or not possible:
        return
    for x in start_states(model, graph, 3, None, seed):
        assert tuple(x.tolist()) in possible


@settings(max_examples=150, deadline=None)
@given(zero_models(), st.integers(0, 2**32))
def test_states_that_occur_are_found_and_others_proved_impossible(model: gs.FactorGraph, seed: int) -> None:
    possible, graph = support(model), compiled(model)
    if graph is None:
        return
    rng = np.random.default_rng(seed)
    for site, card in enumerate(model.cards.tolist()):
        for code in range(card):
            x, proved = find_state_with(model, graph, site, code, rng)
            if any(state[site] == code for state in possible):
                assert x is not None
                assert x[site] == code
                assert tuple(x.tolist()) in possible
                assert not proved
            else:
                assert x is None
                assert proved


# ---- harder than repair alone


def test_the_search_finds_what_repair_cannot() -> None:
    """Copies along a chain: a walk has to move a domain wall out, step by step, at random."""
    n = 1000
    scopes = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    with np.errstate(divide="ignore"):
        links = gs.factors.TableFactors(scopes, np.log(np.eye(2))[None])
    model = gs.FactorGraph(n, groups=[links], states=2)
    graph = gs.graphs.compile_graph(model)
    starts = {int(find_start(model, graph, np.random.default_rng(seed)).sum()) for seed in range(8)}
    assert starts == {0, n}


def latin_square(n: int) -> gs.FactorGraph:
    cells = [(i, j) for i in range(n) for j in range(n)]
    lines = [[c for c in cells if c[axis] == k] for axis in range(2) for k in range(n)]
    pairs = [(n * a[0] + a[1], n * b[0] + b[1]) for line in lines for a, b in itertools.combinations(line, 2)]
    with np.errstate(divide="ignore"):
        differ = np.log(1 - np.eye(n))
    return gs.FactorGraph(n * n, groups=[gs.factors.TableFactors(np.array(pairs), differ[None])], states=n)


def test_latin_squares() -> None:
    model = latin_square(7)
    for x in start_states(model, gs.graphs.compile_graph(model), 3, None, 5):
        square = x.reshape(7, 7)
        assert (np.sort(square, axis=0) == np.arange(7)[:, None]).all()
        assert (np.sort(square, axis=1) == np.arange(7)).all()


def test_impossibility_is_proved() -> None:
    """Five pigeons in four holes: every state survives propagation, no state is possible."""
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    with np.errstate(divide="ignore"):
        differ = gs.factors.TableFactors(pairs, np.log(1 - np.eye(4))[None])
    model = gs.FactorGraph([f"pigeon{k}" for k in range(5)], groups=[differ], states=4)
    graph = gs.graphs.compile_graph(model)
    with pytest.raises(gs.errors.SupportError, match=r"No state of this model has .*\(pigeon\d, pigeon\d\)"):
        find_start(model, graph, np.random.default_rng(1))
    assert find_state_with(model, graph, 0, 0, np.random.default_rng(1)) == (None, True)


def test_giving_up_is_not_called_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    import gibbsite.graphs.support.start as module

    monkeypatch.setattr(module, "_PATIENCE", 10)
    monkeypatch.setattr(module, "_PATIENCE_PER_FACTOR", 0)
    monkeypatch.setattr(module, "_SEARCH", 10)
    monkeypatch.setattr(module, "_SEARCH_PER_SITE", 0)
    model = latin_square(9).observe({0: 3})
    graph = gs.graphs.compile_graph(model)
    with pytest.raises(gs.errors.SupportError, match=r"was found given 0=3; the factors over .* start="):
        find_start(model, graph, np.random.default_rng(1))
    assert find_state_with(model, graph, 0, 1, np.random.default_rng(1)) == (None, False)


def test_large_lattices_with_hard_cores() -> None:
    n = 300
    index = np.arange(n * n).reshape(n, n)
    right = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
    hard = gs.factors.TableFactors(np.concatenate([right, down]), [[[0.0, 0.0], [0.0, -np.inf]]])
    model = gs.FactorGraph(n * n, groups=[hard], states=2)
    x = find_start(model, gs.graphs.compile_graph(model), np.random.default_rng(2))
    assert model.log_potential(x) == 0.0
    assert x.sum() > 0.1 * n * n  # dispersed, not the empty state


# ---- forward sampling


def test_a_network_without_evidence_is_drawn_without_repair() -> None:
    copy, sites = np.array([[1.0, 0.0], [0.0, 1.0]]), [f"x{k}" for k in range(50)]
    tables = [((sites[0],), [0.3, 0.7]), *(((a, b), copy) for a, b in itertools.pairwise(sites))]
    model = gs.FactorGraph(dict.fromkeys(reversed(sites), 2), tables, directed=True)
    graph = gs.graphs.compile_graph(model)
    found = find_draw_order(model, graph)
    assert found is not None
    arrays, network = found
    assert network.order.tolist() == list(range(49, -1, -1))
    x = np.zeros(50, graph.state_dtype)
    ones = 0
    words = np.array([1, 2, 3, 4], np.uint64)
    for _ in range(400):
        draw_forward(arrays, network, np.ones(100, bool), x, words)
        assert x.sum() in (0, 50)
        ones += int(x[0])
    assert abs(ones / 400 - 0.7) < 0.12  # five standard errors


def test_what_is_no_network_is_not_drawn_forward() -> None:
    copy = np.eye(2)
    undirected = gs.FactorGraph(2, [((0, 1), copy)], states=2)
    with np.errstate(divide="ignore"):
        law = gs.factors.TableFactors([[0, 1]], np.log(copy)[None], directed=True)
    partly = gs.FactorGraph(2, groups=[law], states=2)
    for model in (undirected, partly):
        graph = gs.graphs.compile_graph(model)
        assert find_draw_order(model, graph) is None
        assert model.log_potential(find_start(model, graph, np.random.default_rng(0))) == 0.0


# ---- start_states


def equal_pair() -> gs.FactorGraph:
    return gs.FactorGraph({"a": ["x", "y"], "b": ["x", "y"], "free": 3}, [(("a", "b"), np.eye(2)), ("free", [1, 2, 3])])


def test_without_zeros_starts_are_uniform_and_repeatable() -> None:
    model = gs.ising_grid((30, 30), coupling=0.4)
    graph = gs.graphs.compile_graph(model)
    first, again = (start_states(model, graph, 3, None, 11) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert all(350 < x.sum() < 550 for x in first)
    assert (first[0] != first[1]).any()
    # a chain does not depend on how many there are
    np.testing.assert_array_equal(start_states(model, graph, 5, "auto", 11)[:3], first)
    np.testing.assert_array_equal(start_states(model, graph, 3, "random", 11), first)


def test_chains_start_in_different_places() -> None:
    model = equal_pair()
    graph = gs.graphs.compile_graph(model)
    for entropy in range(20):
        starts = start_states(model, graph, 2, None, entropy)
        assert {tuple(x[:2].tolist()) for x in starts} == {(0, 0), (1, 1)}
    assert len(start_states(model, graph, 6, None, 0)) == 6  # more chains than places


def test_unlikely_places_are_tried_as_well() -> None:
    """A network draws its likely state again and again; the second chain must not."""
    copy = np.eye(2)
    model = gs.FactorGraph({"a": 2, "b": 2}, [("a", [1 - 1e-9, 1e-9]), (("a", "b"), copy)], directed=True)
    starts = start_states(model, gs.graphs.compile_graph(model), 2, None, 3)
    assert {tuple(x.tolist()) for x in starts} == {(0, 0), (1, 1)}


def test_given_labels() -> None:
    model = equal_pair()
    graph = gs.graphs.compile_graph(model)
    starts = start_states(model, graph, 2, {"free": "2", "b": "y", 0: "y"}, 1)
    assert [x.tolist() for x in starts] == [[1, 1, 2]] * 2
    starts[0][0] = 0
    assert starts[1][0] == 1  # the chains do not share an array
    observed = model.observe({"a": "x"})
    graph = gs.graphs.compile_graph(observed)
    assert start_states(observed, graph, 1, {"a": "x", "b": "x", "free": 0}, 1)[0].tolist() == [0, 0]
    with pytest.raises(gs.errors.SupportError, match="evidence is 'x'"):
        start_states(observed, graph, 1, {"a": "y", "b": "x", "free": 0}, 1)


def test_given_codes() -> None:
    model = equal_pair()
    graph = gs.graphs.compile_graph(model)
    assert [x.tolist() for x in start_states(model, graph, 2, [1, 1, 0], 1)] == [[1, 1, 0]] * 2
    each = np.array([[1, 1, 0], [0, 0, 2]])
    assert [x.tolist() for x in start_states(model, graph, 2, each, 1)] == each.tolist()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("best", "'best' is unknown"),
        ({"a": "x", "b": "x"}, "no state for the site 'free'"),
        ({"a": "x", "b": "x", "fre": 0}, "'fre'.*did you mean 'free'"),
        ({"a": "z", "b": "x", "free": 0}, "'a' has no state 'z'"),
        ([0, 0], r"shape \(3,\) or \(2, 3\).*got .* of shape \(2,\)"),
        (np.zeros((3, 3), int), r"got .* of shape \(3, 3\)"),
        ([0.0, 0.0, 0.0], "got float64"),
        ([0, 0, 3], "'free' the state code 3; its codes run from 0 to 2"),
        ([[0, 0, 0], [-1, 0, 0]], "'a' the state code -1"),
    ],
)
def test_senseless_starts_are_refused(start: object, message: str) -> None:
    model = equal_pair()
    with pytest.raises(gs.errors.ModelError, match=message):
        start_states(model, gs.graphs.compile_graph(model), 2, start, 1)


def test_impossible_starts_are_refused() -> None:
    model = equal_pair()
    graph = gs.graphs.compile_graph(model)
    with pytest.raises(gs.errors.SupportError, match=r"The start is impossible: the factor over \(a, b\)"):
        start_states(model, graph, 2, {"a": "x", "b": "y", "free": 0}, 1)
    with pytest.raises(gs.errors.SupportError, match=r"start of chain 1 is impossible: the factor over \(a, b\)"):
        start_states(model, graph, 2, [[0, 0, 0], [0, 1, 0]], 1)
    single = gs.FactorGraph({"a": ["x", "y"]}, [("a", [0, 1])])
    with pytest.raises(gs.errors.SupportError, match="a='x' has weight zero"):
        start_states(single, gs.graphs.compile_graph(single), 1, [0], 1)
    with pytest.raises(gs.errors.SupportError, match='use the default start="auto"'):
        for entropy in range(20):
            start_states(model, graph, 1, "random", entropy)


def test_a_model_without_free_sites() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), np.eye(2))]).observe({"a": 1, "b": 1})
    graph = gs.graphs.compile_graph(model)
    assert [x.size for x in start_states(model, graph, 2, None, 1)] == [0, 0]


# ---- published networks


def read_uai(name: str) -> gs.FactorGraph:
    """Read a model with its evidence; just enough of the format for these files."""
    with gzip.open(UAI / f"{name}.uai.gz", "rt") as file:
        words = iter(file.read().split())
    directed = next(words) == "BAYES"
    cards = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    tables = [[float(next(words)) for _ in range(int(next(words)))] for _ in scopes]
    model = gs.FactorGraph(
        {str(i): card for i, card in enumerate(cards)}, list(zip(scopes, tables, strict=True)), directed=directed
    )
    numbers = [int(word) for word in (UAI / f"{name}.uai.evid").read_text().split()]
    pairs = numbers[1 : 1 + 2 * numbers[0]]
    evidence = {str(i): code for i, code in zip(pairs[::2], pairs[1::2], strict=True)}
    return model.observe(evidence) if evidence else model


def read_marginals(name: str) -> list[NDArray[np.float64]]:
    numbers = [float(word) for word in (UAI / f"{name}.uai.MAR").read_text().split()[1:]]
    found, at = [], 1
    for _ in range(int(numbers[0])):
        card = int(numbers[at])
        found.append(np.array(numbers[at + 1 : at + 1 + card]))
        at += 1 + card
    return found


CASES = [
    "objectdetection/ObjectDetection_12",
    "pedigree/Pedigree_12",
    "promedus/Promedus_16",
    "promedus/Promedus_26",
    "linkage/linkage_14",
    "linkage/linkage_22",
    "uai2006_bn/BN_42",
    "uai2006_bn/BN_82",
    "uai2008_bn/90-14-1",
    "map_promedas/Promedas_11",
]


@needs_data("uai")
@pytest.mark.parametrize("name", CASES)
def test_published_networks(name: str) -> None:
    model = read_uai(name)
    graph = gs.graphs.compile_graph(model)
    assert has_zeros(graph)
    starts = start_states(model, graph, 4, None, 1)
    assert all(model.log_potential(x) > -np.inf for x in starts)
    assert len({x.tobytes() for x in starts}) == 4
    if not (UAI / f"{name}.uai.MAR").exists():
        return
    # a state is found if and only if its exact probability is positive (published numbers are rounded)
    marginals = read_marginals(name)
    rng = np.random.default_rng(1)
    for site in rng.choice(model.n_sites, 30, replace=False).tolist():
        for code, probability in enumerate(marginals[int(model.sites[site])].tolist()):
            x, proved = find_state_with(model, graph, site, code, rng)
            if x is None:
                assert proved
                assert probability == 0.0
            else:
                assert x[site] == code
                assert model.log_potential(x) > -np.inf
