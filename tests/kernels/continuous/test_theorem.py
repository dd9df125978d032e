"""The theorems of interpolants: limits, and gaps of transition operators that are integrated exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import stats

import gibbsite as gs
from gibbsite.graphs.functions.bounds import all_bounds, factors_of
from gibbsite.kernels.continuous.theorem import (
    _ELLIPSES,
    degrees_needed,
    growth_of,
    kept_double,
    kept_single,
    polynomial_growth,
)

Floats = NDArray[np.float64]

STRENGTH, SIZE = 0.5, 10.0  # one factor 0.5 x y of numbers in [0, 1]: M = L = 0.5


def interpolated(values: Floats, degree: int) -> Floats:
    """Return the series through values at the Chebyshev points of a degree."""
    points = np.cos(np.pi * np.arange(degree + 1) / degree)
    return np.linalg.solve(chebyshev.chebvander(points, degree), values)


def product(x: Floats, y: Floats) -> Floats:
    return STRENGTH * x * y


def raised_logistic(x: Floats, y: Floats) -> Floats:
    """Return the height of a logistic factor above its floor; at most HEIGHT."""
    return math.log(2.0) - np.logaddexp(0.0, -x - y)


HEIGHT = math.log(2.0) - math.log1p(math.exp(-2.0))


def gap(points: int, double: tuple[int, int] | None, single: int | None = None, factor=product) -> float:
    """Return the spectral gap of random scans of both sites; of plain Gibbs without degrees.

    The only factor is symmetric, not negative, and L is its bound.
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)
    at, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    energy = factor(at[:, None], at)  # (x, y)
    kernel = np.zeros((points, points, points))  # y, from x, to x'
    for j, y in enumerate(at):
        if double is None and single is None:
            law = np.exp(energy[:, j])
            kernel[j] = (weights * law) / (weights @ law)
            continue
        for s in range(80):
            drawn = stats.poisson.pmf(s, SIZE + energy[:, j])  # lambda M / L = lambda

            def power(v: Floats, s: int = s, y: float = y) -> Floats:
                return s * np.log1p(factor(v, np.float64(y)) / SIZE)

            exact = np.exp(power(at))
            if single is not None:
                ends = 0.5 * (np.cos(np.pi * np.arange(single + 1) / single) + 1.0)
                series = interpolated(np.exp(power(ends)), single)
            else:
                m, k = double  # type: ignore[misc]
                ends = 0.5 * (np.cos(np.pi * np.arange(m + 1) / m) + 1.0)
                rough = interpolated(power(ends), m)
                fine = np.cos(np.pi * np.arange(k + 1) / k)
                series = interpolated(np.exp(chebyshev.chebval(fine, rough)), k)
            proposal = chebyshev.chebval(nodes, series)
            assert (proposal > 0.0).all()
            ratio = (exact / proposal)[None, :] / (exact / proposal)[:, None]
            moves = np.minimum(1.0, ratio) * (weights * proposal)[None, :] / (weights @ proposal)
            moves[np.diag_indices(points)] += 1.0 - moves.sum(axis=1)
            kernel[j] += drawn[:, None] * moves
    target = np.exp(energy) * np.outer(weights, weights)
    eye = np.eye(points)
    one = np.einsum("jab,jk->ajbk", kernel, eye)  # x moves, y stays
    other = np.einsum("jab,jk->jakb", kernel, eye)  # the model is symmetric
    whole = 0.5 * (one + other).reshape(points**2, points**2)
    root = np.sqrt(target.ravel())
    even = whole * root[:, None] / root[None, :]
    assert np.abs(even - even.T).max() < 1e-12  # reversible
    return float(1.0 - np.linalg.eigvalsh(0.5 * (even + even.T))[-2])


def test_measured_gaps_are_above_the_bounds() -> None:
    plain = gap(12, None)
    m, k = degrees_needed(SIZE, STRENGTH, polynomial_growth(1), double=True)  # type: ignore[misc]
    assert gap(12, (m, k)) / plain >= kept_double(SIZE, STRENGTH, polynomial_growth(1), m, k) > 0.45
    (one,) = degrees_needed(SIZE, STRENGTH, polynomial_growth(1), double=False)  # type: ignore[misc]
    assert gap(12, None, one) / plain >= kept_single(SIZE, STRENGTH, polynomial_growth(1), one) > 0.45


def test_coarse_interpolants_cost_what_the_theorem_cannot_say() -> None:
    assert kept_double(SIZE, STRENGTH, polynomial_growth(1), 2, 4) == 0.0
    assert 0.99 < gap(12, (2, 4)) / gap(12, None) < 1.0


@pytest.mark.parametrize("power", [1, 2])
def test_fine_interpolants_keep_what_minibatches_keep(power: int) -> None:
    limit = math.exp(-4.0 * 0.05**2 / 10.0)
    for kept in (
        kept_double(10.0, 0.05, polynomial_growth(power), 2000, 4000),
        kept_single(10.0, 0.05, polynomial_growth(power), 4000),
    ):
        assert 0.999 * limit < kept <= limit


@pytest.mark.parametrize("setting", [(10.0, 0.5, 1), (50.0, 3.0, 1), (100.0, 3.0, 2), (1e3, 0.0, 1)])
def test_needed_degrees_keep_half(setting: tuple[float, float, int]) -> None:
    half = 0.5 * math.exp(-4.0 * setting[1] ** 2 / setting[0])
    given = (*setting[:2], polynomial_growth(setting[2]))
    m, k = degrees_needed(*given, double=True)  # type: ignore[misc]
    assert half <= kept_double(*given, m, k) < 2.0 * half or setting[1] == 0.0
    (one,) = degrees_needed(*given, double=False)  # type: ignore[misc]
    assert kept_single(*given, one) >= half
    assert one == 1 or kept_single(*given, one - 1) < half


def test_degrees_can_be_out_of_reach() -> None:
    assert degrees_needed(1e5, 300.0, polynomial_growth(1), double=True) is None


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (gs.kernels.ContinuousGibbs("double", 10.0, 40, 80), "m = 40 and k = 80 it is at least 0.672 times"),
        (gs.kernels.ContinuousGibbs("its", 10.0, 40), "m = 40 it is at least 0.799 times (theorem 5)"),
        (gs.kernels.ContinuousGibbs("double", 10.0, 3, 10), "does not cover interpolants of degree m = 3 and k = 10"),
        (gs.kernels.ContinuousGibbs("double", 10.0), "Degree m = 24 and k = 42 guarantees half"),
        (gs.kernels.ContinuousGibbs("double", 1.1), "because lambda is below 2.885"),
    ],
)
def test_users_are_warned(kernel: gs.kernels.ContinuousGibbs, said: str) -> None:
    box = gs.Interval(0, 1)
    model = gs.ContinuousModel({"x": box, "y": box}, [gs.factors.product_factors([[0, 1]], [STRENGTH])])
    (remark,) = kernel.warnings(model, gs.graphs.compile_graph(model), gs.RandomScan())
    assert said in remark.text


def model_of_sine() -> gs.ContinuousModel:
    box = gs.Interval(0, 1)
    return gs.ContinuousModel({"x": box, "y": box}, [(lambda x: np.sin(x[0] * x[1]), ("x", "y"))])


def test_remarks_on_other_functions_name_degrees_that_would_do() -> None:
    model = model_of_sine()
    (remark,) = gs.kernels.ContinuousGibbs("its", 10.0, 40).warnings(
        model, gs.graphs.compile_graph(model), gs.RandomScan()
    )
    assert "some factors declare neither a degree nor their growth" in remark.text
    largest = gs.kernels.local_energies(gs.graphs.compile_graph(model)).largest
    (degree,) = degrees_needed(10.0, largest, polynomial_growth(2), double=False)  # type: ignore[misc]
    assert f"of degree 2, degree m = {degree} guarantees half of that" in remark.text


def test_remarks_name_factors_that_are_always_evaluated() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 2))
    box = gs.Interval(-1, 1)
    prior = gs.factors.normal_factors([0, 1], 0.0, 1.0, always=True)
    likelihood = gs.factors.logistic_factors([0, 1], rows, rows[:, 0] > 0)
    model = gs.ContinuousModel({"x": box, "y": box}, [likelihood, prior])
    graph = gs.graphs.compile_graph(model)
    size = 3.0 * gs.kernels.local_energies(graph).largest
    (remark,) = gs.kernels.ContinuousGibbs("its", size, 40).warnings(model, graph, gs.RandomScan())
    assert "because some factors are evaluated at every update" in remark.text


def complex_logistic(values: list, p: Floats):
    return -np.log1p(np.exp(-(p[0] * values[0] + p[1] * values[1])))


def complex_mixture(values: list, p: Floats):
    first, second = (-0.5 * ((p[0] - mean) / p[1]) ** 2 for mean in (values[0], values[0] + values[1]))
    return first + np.log1p(np.exp(second - first))  # up to a constant


@pytest.mark.parametrize(
    ("factors", "function"),
    [
        (gs.factors.logistic_factors([0, 1], [[1.0, -0.7], [0.2, 3.0], [0.0, 2.0]], [1, 0, 1]), complex_logistic),
        (gs.factors.mixture_factors([0, 1], [0.3, -2.0, 4.0], sd=1.5), complex_mixture),
    ],
)
def test_growth_bounds_factors_in_the_ellipses(factors, function) -> None:
    rng, low, high = np.random.default_rng(1), np.array([-1.0, -0.5]), np.array([1.5, 2.0])
    tight = []
    for rho in (1.01, 1.1, 1.3, 1.6):
        bound = factors.grown(low, high, rho)
        turn = np.exp(2j * np.pi * rng.random(4000)) * rho
        for f, site in np.ndindex(bound.shape):
            if not np.isfinite(bound[f, site]):
                continue
            middle, half = 0.5 * (low + high)[site], 0.5 * (high - low)[site]
            inside = rng.random(4000)  # ellipses within the ellipse
            inner = turn / rho * (1.0 + (rho - 1.0) * inside)
            place = middle + half * 0.5 * (inner + 1.0 / inner)
            nearest = np.clip(place.real, low[site], high[site])
            other = low[1 - site] + (high - low)[1 - site] * rng.random(4000)
            pairs = [[v, other] if site == 0 else [other, v] for v in (place, nearest)]
            far = np.abs(function(pairs[0], factors.parameters[f]) - function(pairs[1], factors.parameters[f])).max()
            assert far <= bound[f, site] + 1e-14  # rounding, where the site does not matter
            tight.append(far / bound[f, site] if bound[f, site] else 1.0)
    assert len(tight) > 12
    assert max(tight) > 0.5  # not far too large
    # the nearest zeros of the densities are outside of every ellipse with a finite bound
    assert not np.isfinite(factors.grown(low, high, 20.0)).all()


def test_measured_gaps_of_a_logistic_factor_are_above_the_bounds() -> None:
    box = gs.Interval(0, 1)
    model = gs.ContinuousModel({"x": box, "y": box}, [gs.factors.logistic_factors([0, 1], [[1.0, 1.0]], [1])])
    graph = gs.graphs.compile_graph(model)
    assert all_bounds(graph, "a test").bound[0] == pytest.approx(HEIGHT)
    growth = growth_of(factors_of(graph), all_bounds(graph, "a test"), SIZE / (2.0 * HEIGHT))
    assert growth is not None
    assert (np.diff(growth[np.isfinite(growth)]) >= 0.0).all()
    assert _ELLIPSES[np.isfinite(growth)].max() > 2.0
    (m,) = degrees_needed(SIZE, HEIGHT, growth, double=False)  # type: ignore[misc]
    plain = gap(12, None, None, raised_logistic)
    assert gap(12, None, m, raised_logistic) / plain >= kept_single(SIZE, HEIGHT, growth, m) > 0.4
    fine, density = degrees_needed(SIZE, HEIGHT, growth, double=True)  # type: ignore[misc]
    kept = kept_double(SIZE, HEIGHT, growth, fine, density)
    assert gap(12, (fine, density), None, raised_logistic) / plain >= kept > 0.4
    (remark,) = gs.kernels.ContinuousGibbs("its", SIZE, m).warnings(model, graph, gs.RandomScan())
    assert f"With interpolants of degree m = {m} it is at least 0." in remark.text


@pytest.mark.parametrize("wrong", [lambda p, low, high, rho: -np.ones(2), lambda p, low, high, rho: "far"])
def test_growth_that_is_not_a_distance_is_refused(wrong) -> None:
    box = gs.Interval(0, 1)
    factors = gs.factors.FunctionFactors(lambda x: np.sin(x[0] * x[1]), [[0, 1]], growth=wrong)
    model = gs.ContinuousModel({"x": box, "y": box}, [factors])
    with pytest.raises(gs.errors.ModelError, match="the growth of the factors"):
        gs.kernels.ContinuousGibbs("its", 10.0, 40).warnings(model, gs.graphs.compile_graph(model), gs.RandomScan())
