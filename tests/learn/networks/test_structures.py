"""Structures of highest score: against all structures of few sites, and those of real networks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.arrays import Bools
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.learn import Cases, learn_structure, score_structure, structural_distance
from gibbsite.learn.networks.equivalence import complete_pattern
from gibbsite.learn.networks.structure import check_acyclic


def all_structures(n: int) -> list[Bools]:
    """Return all acyclic structures of n sites."""
    found = []
    pairs = list(itertools.combinations(range(n), 2))
    for directions in itertools.product(range(3), repeat=len(pairs)):
        edges = np.zeros((n, n), bool)
        for (i, j), way in zip(pairs, directions, strict=True):
            if way:
                edges[(i, j) if way == 1 else (j, i)] = True
        power = edges.astype(int)
        for _ in range(n):
            power = (power @ edges > 0).astype(int)
        if not power.any():
            found.append(edges)
    return found


def parents_of(edges: Bools) -> dict[str, tuple[str, ...]]:
    return {str(j): tuple(str(i) for i in np.flatnonzero(edges[:, j])) for j in range(len(edges))}


def random_cases(n: int, rows: int, seed: int) -> Cases:
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, rows), np.int16)
    for i in range(n):
        push = codes[rng.permutation(n)[:2]].sum(axis=0) % 2 if i else 0
        codes[i] = rng.random(rows) < 0.2 + 0.5 * push
    return Cases(tuple(map(str, range(n))), ((0, 1),) * n, codes, np.ones(rows))


def test_there_are_as_many_structures_as_robinson_counted() -> None:
    assert [len(all_structures(n)) for n in (1, 2, 3, 4)] == [1, 3, 25, 543]


@pytest.mark.parametrize("score", ["bic", "bdeu:2", "k2", "aic"])
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_search_finds_the_best_of_all(score: str, seed: int) -> None:
    cases = random_cases(4, 150, seed)
    values = [score_structure(cases, parents_of(edges), score=score) for edges in all_structures(4)]
    exact = learn_structure(cases, score=score)
    assert exact.method == "exact"
    assert exact.score == pytest.approx(max(values), rel=1e-12)
    assert score_structure(cases, exact, score=score) == pytest.approx(exact.score, rel=1e-12)
    hill = learn_structure(cases, score=score, method="hill")
    assert hill.score == pytest.approx(max(values), rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "hill"])
def test_rules_are_kept(method: str) -> None:
    cases = random_cases(4, 150, 5)
    rules: dict[str, Any] = {"required": [("3", "0"), ("0", "2")], "forbidden": [("3", "1"), ("1", "3")]}
    fit = learn_structure(cases, method=method, max_parents=2, **rules)
    assert set(rules["required"]) <= set(fit.edges)
    assert not set(rules["forbidden"]) & set(fit.edges)
    check_acyclic(fit.parents)
    values = [
        score_structure(cases, parents_of(edges))
        for edges in all_structures(4)
        if edges[3, 0] and edges[0, 2] and not edges[3, 1] and not edges[1, 3] and edges.sum(axis=0).max() <= 2
    ]
    assert fit.score == pytest.approx(max(values), rel=1e-9)


def test_equivalent_structures_have_equal_scores_and_others_do_not() -> None:
    """Of all structures of four sites, patterns are equal exactly where BDeu is."""
    cases = random_cases(4, 100, 7)
    by_pattern: dict[bytes, set[float]] = {}
    for edges in all_structures(4):
        value = round(score_structure(cases, parents_of(edges), score="bdeu:3"), 7)
        by_pattern.setdefault(complete_pattern(edges).tobytes(), set()).add(value)
    assert len(by_pattern) == 185  # classes of four sites, as counted by Gillispie and Perlman
    assert all(len(values) == 1 for values in by_pattern.values())
    assert len(set.union(*by_pattern.values())) == 185


def draw(name: str, rows: int) -> tuple[gs.FactorGraph, Cases]:
    model = gs.example(name)
    codes = gs.solve_exact(model, task="PR").draw(rows, np.random.default_rng(1)).T.astype(np.int16)
    states = tuple(tuple(model.labels(k)) for k in range(model.n_sites))
    return model, Cases(tuple(model.sites), states, np.ascontiguousarray(codes), np.ones(rows))


def test_a_real_network_is_recovered() -> None:
    model, cases = draw("asia", 20_000)
    exact = learn_structure(cases, method="exact")
    hill = learn_structure(cases, method="hill")
    assert hill.score == pytest.approx(exact.score, rel=1e-9)
    assert exact.score >= score_structure(cases, model) - 1e-6
    assert structural_distance(exact, model) <= 2
    assert hill.converged
    fit = gs.learn.fit_tables(cases, exact, prior="bdeu")
    assert fit.network.edges


def test_a_large_network_is_climbed_above_its_greedy_structure() -> None:
    model, cases = draw("alarm", 2000)
    one = learn_structure(cases, restarts=0)
    more = learn_structure(cases, restarts=6)
    assert one.converged is None
    assert more.score >= one.score
    assert more.score > score_structure(cases, {})
    assert structural_distance(more, model) < 46
    again = learn_structure(cases, start=more, restarts=0)
    assert again.score >= more.score - 1e-6


def test_incomplete_cases() -> None:
    data = {"a": [0, 1, None, 1], "b": [0, 1, 1, 0]}
    with pytest.raises(ArgumentError, match="'a' in row 3"):
        learn_structure(data)
    with pytest.warns(UserWarning, match="1 of 4 cases"):
        fit = learn_structure(data, incomplete="drop")
    assert fit.cases.n_cases == 3


def test_structures_are_shown() -> None:
    fit = learn_structure({"a": [0, 1] * 50, "b": [0, 1] * 50, "c": [0, 0, 1, 1] * 25})
    assert fit.undirected == [("a", "b")]
    assert "exact: no structure" in fit.summary()
    assert "1 edges have" in repr(fit)
    assert "parents" in fit._repr_html_()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"score": "bix"}, ArgumentError, "score"),
        ({"score": "bic:3"}, ArgumentError, "no equivalent sample size"),
        ({"method": "greedy"}, ArgumentError, "method"),
        ({"required": [("a", "b"), ("b", "a")]}, ModelError, "cycle"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, ArgumentError, "both required and forbidden"),
        ({"required": [("a", "x")]}, ArgumentError, "'x' is unknown"),
        ({"required": [("a", "b")], "max_parents": 0}, ArgumentError, "more required parents"),
        ({"forbidden": ["ab"]}, ArgumentError, "edges"),
        ({"start": [("a", "b")], "forbidden": [("a", "b")], "method": "hill"}, ModelError, "forbidden edges"),
        ({"incomplete": "keep"}, ArgumentError, "refuse, drop"),
    ],
)
def test_mistakes(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        learn_structure({"a": [0, 1, 1], "b": [0, 1, 0]}, **given)


def test_too_many_sites_for_the_exact_search() -> None:
    data = {f"x{k}": [0, 1] for k in range(21)}
    with pytest.raises(ArgumentError, match="at most 20 sites"):
        learn_structure(data, method="exact")


def test_distances() -> None:
    first = {"a": (), "b": ("a",), "c": ("b",)}
    assert structural_distance(first, {"c": (), "b": ("c",), "a": ("b",)}) == 0
    assert structural_distance(first, [("a", "b"), ("c", "b")]) == 2
    assert structural_distance(first, {"a": (), "b": (), "c": ()}) == 2
