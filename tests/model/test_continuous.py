"""Models of numbers: what is refused, and bounds of factors against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graph.continuous import evaluate_factors
from gibbsite.kernel._local import log_potential

BOX = gs.Interval(-1.0, 2.0)


def bounds_hold(model: gs.ContinuousModel, tight: float | None = None) -> None:
    """Every factor stays in its bounds on a fine grid, corners included, and comes near to them."""
    graph: Any = gs.compile_graph(model).arrays
    axes = [np.linspace(low, high, 41) for low, high in zip(graph.low, graph.high, strict=True)]
    out = np.empty(graph.group.size)
    seen = [np.full(out.size, np.inf), np.full(out.size, -np.inf)]
    for place in itertools.product(*axes):
        evaluate_factors(graph, np.array(place), out)
        seen = [np.minimum(seen[0], out), np.maximum(seen[1], out)]
    assert (seen[0] >= graph.floor).all()
    assert (seen[1] <= graph.floor + graph.bound).all()
    if tight is not None:
        assert (graph.bound - (seen[1] - seen[0]) <= tight * graph.bound + 1e-9).all()


def test_bounds_of_families_are_attained() -> None:
    rng = np.random.default_rng(1)
    two = {"a": BOX, "b": gs.Interval(-2.0, 1.5)}
    bounds_hold(gs.ContinuousModel(two, [gs.product_factors([[0, 1]] * 3, [1.0, -2.0, 0.3])]), 1e-9)
    bounds_hold(
        gs.ContinuousModel(two, [gs.normal_factors([0, 1, 0], [0.5, 3.0, -2.0], [1.0, 0.5, 2.0])]), 0.01
    )
    bounds_hold(gs.ContinuousModel(two, [gs.difference_factors([[0, 1]], 1.7)]), 0.01)
    rows = rng.normal(size=(20, 2))
    bounds_hold(gs.ContinuousModel(two, [gs.logistic_factors([0, 1], rows, rng.random(20) < 0.5)]), 1e-9)
    bounds_hold(gs.ContinuousModel(two, [gs.mixture_factors([0, 1], rng.normal(size=20), 1.3)]))


def test_bounds_that_are_found() -> None:
    waves = gs.FunctionFactors(
        lambda x, p: np.sin(p[0] * x[0]) * np.exp(-x[1]), [0, 1], [[1.0], [3.0], [7.0]], weight=2.0
    )
    bounds_hold(gs.ContinuousModel({"a": BOX, "b": BOX}, [waves]), 0.02)
    bounds_hold(gs.ContinuousModel({"a": BOX, "s": 3}, [(lambda x: (x[0] - x[1]) ** 3, ("a", "s"))]), 0.02)


def test_a_function_that_is_not_smooth_needs_bounds() -> None:
    rough = (lambda x: abs(x[0] - 0.3), ("a",))
    with pytest.raises(gs.ModelError, match="no safe bounds were found for factor 0"):
        gs.compile_graph(gs.ContinuousModel({"a": BOX}, [rough]))
    given = gs.FunctionFactors(lambda x, p: abs(x[0] - 0.3), [[0]], bounds=(0.0, 1.7))
    bounds_hold(gs.ContinuousModel({"a": BOX}, [given]))


def test_log_potential_is_the_sum() -> None:
    model = gs.ContinuousModel(
        {"a": BOX, "b": BOX, "s": ["no", "yes"]},
        [gs.product_factors([[0, 1]], 2.0, weight=0.5), (lambda x: x[0] * x[1], ("s", "b"))],
    )
    graph = gs.compile_graph(model)
    assert log_potential(graph.arrays, np.array([0.5, 1.5, 1.0])) == pytest.approx(0.75 + 1.5)
    assert graph.kind == "functions"
    assert graph.n_cells == 6


def test_rows_of_common_scopes_are_shared() -> None:
    rows = np.ones((1000, 4))
    model = gs.ContinuousModel(4, [gs.logistic_factors(range(4), rows, np.ones(1000, int))], states=BOX)
    arrays: Any = gs.compile_graph(model).arrays
    assert arrays.factor.size == 1000
    assert (arrays.row == 0).all()


def test_digests_see_every_part() -> None:
    def build(scale: float = 1.0, high: float = 2.0, weight: float = 1.0) -> str:
        sites = {"a": gs.Interval(0.0, high), "b": gs.Interval(0.0, 1.0)}
        return gs.ContinuousModel(sites, [gs.product_factors([[0, 1]], scale, weight=weight)]).digest

    assert build() == build()
    assert len({build(), build(2.0), build(high=3.0), build(weight=2.0)}) == 4


@pytest.mark.parametrize(
    ("sites", "factors", "said"),
    [
        ({"a": gs.Interval(0.0)}, [], "'a' has an interval without bounds"),
        ({"a": BOX}, [(lambda x: x[0], ("b",))], "unknown site 'b'"),
        ({"a": BOX}, ["nonsense"], "factor 0 must be a group"),
        ({"a": BOX}, [gs.product_factors([[0, 1]], 1.0)], "names? site 1"),
        ({"a": BOX, "b": BOX}, [gs.product_factors([[0, 0]], 1.0)], "names a site twice"),
    ],
)
def test_models_that_make_no_sense(sites: Any, factors: Any, said: str) -> None:
    with pytest.raises(gs.ModelError, match=said):
        gs.ContinuousModel(sites, factors)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gs.Interval(1.0, 1.0), "empty"),
        (lambda: gs.Interval(0.0, float("nan")), "must be numbers"),
        (lambda: gs.FunctionFactors(3, [[0]]), "need a function"),
        (lambda: gs.FunctionFactors(abs, [[0]], [[1.0], [2.0]]), "scopes"),
        (lambda: gs.FunctionFactors(abs, [[0]], [[np.nan]]), "no number, in factor 0"),
        (lambda: gs.FunctionFactors(abs, [[0]], weight=0.0), "weight"),
        (lambda: gs.FunctionFactors(abs, [[0]], degree=3), "degree"),
        (lambda: gs.logistic_factors([0], [[1.0]], [2]), "labels"),
        (lambda: gs.normal_factors([0], 0.0, 0.0), "positive"),
        (lambda: gs.mixture_factors([0, 1], [1.0], -1.0), "sd"),
        (lambda: gs.FactorGraph({"a": BOX}), "gs.ContinuousModel"),
    ],
)
def test_parts_that_make_no_sense(make: Any, said: str) -> None:
    with pytest.raises(gs.ModelError, match=said):
        make()


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (lambda x: np.log(x[0]), {}, "factor 0 of '<lambda>' is (NaN|infinite)"),
        (lambda x: x[0], {"bounds": (1.0, 0.0)}, "smaller one first"),
        (lambda x: x[0], {"bounds": (0.0, np.inf)}, "must be finite"),
        (lambda x: x.nonsense(), {}, "cannot be compiled: .*nonsense"),
    ],
)
def test_functions_that_make_no_sense(function: Any, options: Any, said: str) -> None:
    model = gs.ContinuousModel({"a": BOX}, [gs.FunctionFactors(function, [[0]], **options)])
    with pytest.raises(gs.ModelError, match=said):
        gs.compile_graph(model)
