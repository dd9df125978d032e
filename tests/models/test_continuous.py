"""Models of numbers: what is refused, and bounds of factors against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.logistic import quadratic_factor
from gibbsite.graphs.functions.bounds import all_bounds
from gibbsite.graphs.kinds.functions import evaluate_factors
from gibbsite.graphs.local import log_potential

BOX = gs.Interval(-1.0, 2.0)


def bounds_hold(model: gs.ContinuousModel, tight: float | None = None) -> None:
    """Every factor stays in its bounds on a fine grid, corners included, and comes near to them."""
    compiled = gs.graphs.compile_graph(model)
    graph: Any = compiled.arrays
    bounds = all_bounds(compiled, "this test")
    axes = [np.linspace(low, high, 41) for low, high in zip(graph.low, graph.high, strict=True)]
    out = np.empty(graph.group.size)
    seen = [np.full(out.size, np.inf), np.full(out.size, -np.inf)]
    for place in itertools.product(*axes):
        evaluate_factors(graph, np.array(place), out)
        seen = [np.minimum(seen[0], out), np.maximum(seen[1], out)]
    assert (seen[0] >= bounds.floor).all()
    assert (seen[1] <= bounds.floor + bounds.bound).all()
    if tight is not None:
        assert (bounds.bound - (seen[1] - seen[0]) <= tight * bounds.bound + 1e-9).all()


def test_bounds_of_families_are_attained() -> None:
    rng = np.random.default_rng(1)
    two = {"a": BOX, "b": gs.Interval(-2.0, 1.5)}
    bounds_hold(gs.ContinuousModel(two, [gs.factors.product_factors([[0, 1]] * 3, [1.0, -2.0, 0.3])]), 1e-9)
    bounds_hold(
        gs.ContinuousModel(two, [gs.factors.normal_factors([0, 1, 0], [0.5, 3.0, -2.0], [1.0, 0.5, 2.0])]), 0.01
    )
    bounds_hold(gs.ContinuousModel(two, [gs.factors.difference_factors([[0, 1]], 1.7)]), 0.01)
    rows = rng.normal(size=(20, 2))
    bounds_hold(gs.ContinuousModel(two, [gs.factors.logistic_factors([0, 1], rows, rng.random(20) < 0.5)]), 1e-9)
    bounds_hold(gs.ContinuousModel(two, [gs.factors.mixture_factors([0, 1], rng.normal(size=20), 1.3)]))


def test_bounds_that_are_found() -> None:
    waves = gs.factors.FunctionFactors(
        lambda x, p: np.sin(p[0] * x[0]) * np.exp(-x[1]), [0, 1], [[1.0], [3.0], [7.0]], weight=2.0
    )
    bounds_hold(gs.ContinuousModel({"a": BOX, "b": BOX}, [waves]), 0.02)
    bounds_hold(gs.ContinuousModel({"a": BOX, "s": 3}, [(lambda x: (x[0] - x[1]) ** 3, ("a", "s"))]), 0.02)


def test_bounds_are_found_state_by_state() -> None:
    """A switch on a state is no kink in a number."""
    switch = (lambda x: -((x[0] - (1.5 if x[1] > 0.5 else -0.5)) ** 2), ("a", "s"))
    bounds_hold(gs.ContinuousModel({"a": BOX, "s": 2}, [switch]), 0.02)


def test_a_function_that_is_not_smooth_needs_bounds_where_factors_are_drawn() -> None:
    rough = gs.ContinuousModel({"a": BOX}, [(lambda x: abs(x[0] - 0.3), ("a",))])
    said = r"no safe bounds were found for factor 0 of .*, which .* needs.*gs.kernels.ContinuousGibbs\(method='slice'\)"
    for kernel in (
        gs.kernels.ContinuousGibbs(minibatch=3.0),
        gs.kernels.ContinuousGibbs("rejection"),
        gs.kernels.PoissonMH(),
    ):
        with pytest.raises(gs.errors.IncompatibleError, match=said):
            gs.sample(rough, kernel, sweeps=10, rng=1, progress=False)
    given = gs.factors.FunctionFactors(lambda x, p: abs(x[0] - 0.3), [[0]], bounds=(0.0, 1.7))
    bounds_hold(gs.ContinuousModel({"a": BOX}, [given]))


def test_log_potential_is_the_sum() -> None:
    model = gs.ContinuousModel(
        {"a": BOX, "b": BOX, "s": ["no", "yes"]},
        [gs.factors.product_factors([[0, 1]], 2.0, weight=0.5), (lambda x: x[0] * x[1], ("s", "b"))],
    )
    graph = gs.graphs.compile_graph(model)
    assert log_potential(graph.arrays, np.array([0.5, 1.5, 1.0])) == pytest.approx(0.75 + 1.5)
    assert graph.kind == "functions"
    assert graph.n_cells == 6


def test_rows_of_common_scopes_are_shared() -> None:
    rows = np.ones((1000, 4))
    model = gs.ContinuousModel(4, [gs.factors.logistic_factors(range(4), rows, np.ones(1000, int))], states=BOX)
    arrays: Any = gs.graphs.compile_graph(model).arrays
    assert arrays.factor.size == 1000
    assert (arrays.row == 0).all()


def test_digests_see_every_part() -> None:
    def build(scale: float = 1.0, high: float = 2.0, weight: float = 1.0) -> str:
        sites = {"a": gs.Interval(0.0, high), "b": gs.Interval(0.0, 1.0)}
        return gs.ContinuousModel(sites, [gs.factors.product_factors([[0, 1]], scale, weight=weight)]).digest

    assert build() == build()
    assert len({build(), build(2.0), build(high=3.0), build(weight=2.0)}) == 4


@pytest.mark.parametrize(
    ("sites", "factors", "said"),
    [
        ({"a": gs.Interval(0.0)}, [], "'a' has an interval without bounds"),
        ({"a": BOX}, [(lambda x: x[0], ("b",))], "unknown site 'b'"),
        ({"a": BOX}, ["nonsense"], "factor 0 must be a group"),
        ({"a": BOX}, [gs.factors.product_factors([[0, 1]], 1.0)], "names? site 1"),
        ({"a": BOX, "b": BOX}, [gs.factors.product_factors([[0, 0]], 1.0)], "names a site twice"),
    ],
)
def test_models_that_make_no_sense(sites: Any, factors: Any, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.ContinuousModel(sites, factors)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gs.Interval(1.0, 1.0), "empty"),
        (lambda: gs.Interval(0.0, float("nan")), "must be numbers"),
        (lambda: gs.factors.FunctionFactors(3, [[0]]), "need a function"),
        (lambda: gs.factors.FunctionFactors(abs, [[0]], [[1.0], [2.0]]), "scopes"),
        (lambda: gs.factors.FunctionFactors(abs, [[0]], [[np.nan]]), "not a number, in factor 0"),
        (lambda: gs.factors.FunctionFactors(abs, [[0]], weight=0.0), "weight"),
        (lambda: gs.factors.FunctionFactors(abs, [[0]], degree=3), "degree"),
        (lambda: gs.factors.logistic_factors([0], [[1.0]], [2]), "labels"),
        (lambda: gs.factors.normal_factors([0], 0.0, 0.0), "positive"),
        (lambda: gs.factors.mixture_factors([0, 1], [1.0], -1.0), "sd"),
        (lambda: gs.FactorGraph({"a": BOX}), "gs.ContinuousModel"),
    ],
)
def test_parts_that_make_no_sense(make: Any, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        make()


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (lambda x: x[0], {"bounds": (1.0, 0.0)}, "smaller one first"),
        (lambda x: x[0], {"bounds": (0.0, np.inf)}, "must be finite"),
        (lambda x: x.nonsense(), {}, "cannot be compiled: .*nonsense"),
    ],
)
def test_functions_that_make_no_sense(function: Any, options: Any, said: str) -> None:
    model = gs.ContinuousModel({"a": BOX}, [gs.factors.FunctionFactors(function, [[0]], **options)])
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.graphs.compile_graph(model)


def wave(x: Any, p: Any) -> Any:
    return p[0] * x[0] * x[1]


def test_factors_are_given_sites_by_name() -> None:
    sites = {"a": BOX, "b": BOX, "c": BOX}
    named = [
        gs.factors.FunctionFactors(wave, [["a", "b"], ["c", "b"]], [[1.0], [2.0]]),
        gs.factors.FunctionFactors(wave, ["b", "c"], [[1.0], [2.0]]),
        gs.factors.normal_factors(["c", "a"], 0.0, 1.0),
        gs.factors.normal_factors("c", 0.0, 1.0),
        gs.factors.product_factors([("a", "b")], 1.0),
        gs.factors.difference_factors([("a", "c")], 1.0),
        gs.factors.logistic_factors(["b", "a"], [[1.0, 2.0]], [1]),
        gs.factors.mixture_factors(["b", "a"], [1.0], 1.0),
        quadratic_factor(["b", "a"], [0.0, 0.0], [1.0, 0.0], [[2.0, 0.5], [0.5, 1.0]]),
    ]
    scopes = [[[0, 1], [2, 1]], [1, 2], [[2], [0]], [[2]], [[0, 1]], [[0, 2]], [1, 0], [1, 0], [[1, 0]]]
    model = gs.ContinuousModel(sites, named)
    assert [group.scopes.tolist() for group in model.groups] == scopes
    by_position = [gs.factors.FunctionFactors(wave, [[0, 1], [2, 1]], [[1.0], [2.0]])]
    assert gs.ContinuousModel(sites, named[:1]).digest == gs.ContinuousModel(sites, by_position).digest
    with pytest.raises(gs.errors.ModelError, match="a factor of 'wave' names an unknown site 'd'"):
        gs.ContinuousModel(sites, [gs.factors.FunctionFactors(wave, [["a", "d"]], [[1.0]])])
    with pytest.raises(gs.errors.ModelError, match="names the site 'a' twice"):
        gs.ContinuousModel(sites, [gs.factors.FunctionFactors(wave, [["a", "a"]], [[1.0]])])
    for wrong in ([["a", "b"], ["c"]], [[0.5, 1.0]], [[None]]):
        with pytest.raises(gs.errors.ModelError, match="names or positions of sites"):
            gs.factors.FunctionFactors(wave, wrong, [[1.0]])


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"a": 7.0}, "'a' cannot be observed as 7.0; its values are numbers from -1 to 2"),
        ({"a": "much"}, "'a' cannot be observed as 'much'"),
        ({"a": float("nan")}, "'a' cannot be observed as nan"),
        ({"d": 1.0}, "the evidence names an unknown site 'd'"),
        ({"s": "maybe"}, "no state 'maybe'"),
        ({"s": [0.5, 0.5]}, "must be one of its states"),
        ({"b": 1.0}, "already observed as 0.5"),
        ({"a": 1.0, 0: 1.0}, "twice"),
        (3, "must be a mapping"),
    ],
)
def test_evidence_that_makes_no_sense(evidence: Any, said: str) -> None:
    sites = {"a": BOX, "b": BOX, "s": ["no", "yes"]}
    model = gs.ContinuousModel(sites, [(lambda x: x[0] * x[1], ("a", "s"))]).observe({"b": 0.5})
    with pytest.raises(gs.errors.ModelError, match=said):
        model.observe(evidence)


def test_observed_sites_keep_their_part_of_the_log_potential() -> None:
    sites = {"a": BOX, "b": BOX, "s": ["no", "yes"]}
    factors = [(lambda x: x[0] * (1.0 + x[1]) - x[2], ("a", "s", "b")), (lambda x: x[0] ** 2, ("b",))]
    model = gs.ContinuousModel(sites, factors)
    given = model.observe({"s": "yes"}).observe({"b": 0.5})
    assert given.sites == ("a",)
    assert given.evidence == {"b": 0.5, "s": "yes"}
    whole = log_potential(gs.graphs.compile_graph(model).arrays, np.array([1.5, 0.5, 1.0]))
    assert log_potential(gs.graphs.compile_graph(given).arrays, np.array([1.5])) == pytest.approx(whole)
    assert given.digest != model.observe({"s": "yes", "b": 0.25}).digest
    with pytest.raises(gs.errors.ModelError, match=r"observed as 0.5 and no longer free"):
        given.index("b")


def test_models_that_take_no_evidence_say_so() -> None:
    for model in (gs.LogDensity(lambda x: -(x[0] ** 2), dim=1), gs.Conditionals({"0": lambda x, rng: rng.normal()})):
        with pytest.raises(gs.errors.IncompatibleError, match="cannot fold evidence in"):
            model.observe({"0": 1.0})


def test_evidence_of_a_normal_distribution() -> None:
    pair = gs.Gaussian([1.0, 0.0], [[1.0, 0.8], [0.8, 2.0]], names=["a", "b"])
    given = pair.observe({"b": 1.0})
    assert given.mean == pytest.approx([1.4])
    assert given.evidence == {"b": 1.0}
    assert given.digest != pair.condition({"b": 1.0}).digest
    result = gs.sample(given, gs.kernels.ExactGaussian(), sweeps=100, rng=1, progress=False)
    assert result.marginals["b"] == {"mean": 1.0, "sd": 0.0}
    assert float(result.to_datatree()["observed_data/b"]) == 1.0
    for wrong, said in (({"a": "x", "b": 0.0}, "finite numbers"), ({"a": 0.0, "b": 0.0}, "no site remains")):
        with pytest.raises(gs.errors.ModelError, match=said):
            pair.observe(wrong)
    with pytest.raises(gs.errors.ModelError, match="already observed"):
        given.observe({"b": 2.0})


def test_an_index_beyond_the_end_is_no_silent_number() -> None:
    """x has the values of the two sites of the factor; compiled code would read what stands behind them."""
    sites = {"a": BOX, "b": BOX, "c": BOX}
    model = gs.ContinuousModel(sites, [(lambda x: x[1] * x[2], ("b", "c"))])
    with pytest.raises(gs.errors.ModelError, match=r"IndexError.*values of its own sites, in order"):
        gs.sample(model, sweeps=10, rng=1, progress=False)
    density = gs.LogDensity(lambda x: -(x[2] ** 2), dim=2)
    with pytest.raises(gs.errors.ModelError, match="IndexError"):
        gs.sample(density, sweeps=10, rng=1, progress=False)
    draws = gs.Conditionals({"a": lambda x, rng: gs.random.normal(rng, x[3])})
    with pytest.raises(gs.errors.SamplingError, match=r"conditional of \(a\) raised IndexError"):
        gs.sample(draws, sweeps=10, rng=1, progress=False)
