"""The theorems of interpolants: limits, and gaps of transition operators that are integrated exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import stats

import gibbsite as gs
from gibbsite.kernels.continuous.theorem import degrees_needed, kept_double, kept_single

Floats = NDArray[np.float64]

STRENGTH, SIZE = 0.5, 10.0  # one factor 0.5 x y of numbers in [0, 1]: M = L = 0.5


def interpolated(values: Floats, degree: int) -> Floats:
    """Return the series through values at the Chebyshev points of a degree."""
    points = np.cos(np.pi * np.arange(degree + 1) / degree)
    return np.linalg.solve(chebyshev.chebvander(points, degree), values)


def gap(points: int, double: tuple[int, int] | None, single: int | None = None) -> float:
    """Return the spectral gap of random scans of both sites; of plain Gibbs without degrees."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    at, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    energy = STRENGTH * np.outer(at, at)  # (x, y)
    kernel = np.zeros((points, points, points))  # y, from x, to x'
    for j, y in enumerate(at):
        if double is None and single is None:
            law = np.exp(energy[:, j])
            kernel[j] = (weights * law) / (weights @ law)
            continue
        for s in range(80):
            drawn = stats.poisson.pmf(s, SIZE + energy[:, j])

            def power(v: Floats, s: int = s, y: float = y) -> Floats:
                return s * np.log1p(STRENGTH * v * y / SIZE)

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
    m, k = degrees_needed(SIZE, STRENGTH, 1, double=True)  # type: ignore[misc]
    assert gap(12, (m, k)) / plain >= kept_double(SIZE, STRENGTH, 1, m, k) > 0.45
    (one,) = degrees_needed(SIZE, STRENGTH, 1, double=False)  # type: ignore[misc]
    assert gap(12, None, one) / plain >= kept_single(SIZE, STRENGTH, 1, one) > 0.45


def test_coarse_interpolants_cost_what_the_theorem_cannot_say() -> None:
    assert kept_double(SIZE, STRENGTH, 1, 2, 4) == 0.0
    assert 0.99 < gap(12, (2, 4)) / gap(12, None) < 1.0


@pytest.mark.parametrize("power", [1, 2])
def test_fine_interpolants_keep_what_minibatches_keep(power: int) -> None:
    limit = math.exp(-4.0 * 0.05**2 / 10.0)
    for kept in (kept_double(10.0, 0.05, power, 2000, 4000), kept_single(10.0, 0.05, power, 4000)):
        assert 0.999 * limit < kept <= limit


@pytest.mark.parametrize("setting", [(10.0, 0.5, 1), (50.0, 3.0, 1), (100.0, 3.0, 2), (1e3, 0.0, 1)])
def test_needed_degrees_keep_half(setting: tuple[float, float, int]) -> None:
    half = 0.5 * math.exp(-4.0 * setting[1] ** 2 / setting[0])
    m, k = degrees_needed(*setting, double=True)  # type: ignore[misc]
    assert half <= kept_double(*setting, m, k) < 2.0 * half or setting[1] == 0.0
    (one,) = degrees_needed(*setting, double=False)  # type: ignore[misc]
    assert kept_single(*setting, one) >= half
    assert one == 1 or kept_single(*setting, one - 1) < half


def test_degrees_can_be_out_of_reach() -> None:
    assert degrees_needed(1e5, 300.0, 1, double=True) is None


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
    assert "not all factors are declared as polynomials" in remark.text
    largest = gs.kernels.local_energies(gs.graphs.compile_graph(model)).largest
    (degree,) = degrees_needed(10.0, largest, 2, double=False)  # type: ignore[misc]
    assert f"of degree 2, degree m = {degree} guarantees half of that" in remark.text
