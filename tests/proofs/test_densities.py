"""Kernels in densities: exact ones keep the law, wrong ones do not, biased ones go by the formulas.

Statistical tests have fixed seeds and raise false alarms with probability below 1e-6 each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
import numba
from tests.proofs.density_laws import FALSE_ALARM, Floats, Grid, Normal, move_each, p_value

pytestmark = pytest.mark.long

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 2.0, -0.3], [0.0, -0.3, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)


def log_normal(x: Floats) -> Any:
    return -0.5 * (x - MEAN) @ PRECISION @ (x - MEAN)


@numba.njit
def slope_normal(x: Floats) -> Any:
    return -PRECISION @ (x - MEAN)


def log_banana(x: Floats) -> Any:
    return -(x[0] ** 2) / 10 - x[1] ** 4 / 10 - 2 * (x[1] - x[0] ** 2) ** 2


def slope_banana(x: Floats) -> Any:
    return np.array([-x[0] / 5 + 8 * x[0] * (x[1] - x[0] ** 2), -2 * x[1] ** 3 / 5 - 4 * (x[1] - x[0] ** 2)])


def log_humps(x: Floats) -> Any:
    return math.log(math.exp(-8 * (x[0] - 0.5) ** 2) + 0.3 * math.exp(-3 * (x[0] - 2.0) ** 2))


def slope_humps(x: Floats) -> Any:
    a, b = math.exp(-8 * (x[0] - 0.5) ** 2), 0.3 * math.exp(-3 * (x[0] - 2.0) ** 2)
    return np.array([(-16 * (x[0] - 0.5) * a - 6 * (x[0] - 2.0) * b) / (a + b)])


NORMAL = gs.LogDensity(log_normal, slope_normal, dim=3)
BANANA = gs.LogDensity(log_banana, slope_banana, dim=2, names=["x", "y"])
HUMPS = gs.LogDensity(log_humps, slope_humps, dim=1, bounds=(0.0, 3.0))  # cut off where it is not small
TARGETS: dict[str, tuple[gs.LogDensity, Callable[[], Any]]] = {
    "normal": (NORMAL, lambda: Normal(MEAN, COVARIANCE)),
    "banana": (BANANA, lambda: Grid(BANANA, np.array([-3.5, -3.0]), np.array([3.5, 6.0]), 2000)),
    "humps": (HUMPS, lambda: Grid(HUMPS, np.zeros(1), np.array([3.0]), 100_000)),
}
SHAPES = {1: [[0.4]], 2: [[1.0, 0.3], [0.3, 0.5]], 3: COVARIANCE}
TOGETHER: dict[str, Callable[[int], gs.kernels.Kernel]] = {
    "Metropolis": lambda n: gs.Metropolis(scale=0.7, adapt=False),
    "Metropolis, uniform": lambda n: gs.Metropolis("uniform", scale=0.7, adapt=False),
    "Metropolis, shaped": lambda n: gs.Metropolis(covariance=SHAPES[n], adapt=False),
    "MALA": lambda n: gs.MALA(step=0.15),
    "MALA, shaped": lambda n: gs.MALA(step=0.3, preconditioner=SHAPES[n]),
}
ALONE = {
    "Metropolis": gs.Metropolis(scale=1.2, one_by_one=True, adapt=False),
    "Metropolis, uniform": gs.Metropolis("uniform", scale=1.2, one_by_one=True, adapt=False),
    "Slice": gs.Slice(width=0.8),
}


@cache
def drawn(target: str, count: int) -> tuple[gs.LogDensity, Any, Floats]:
    model, make = TARGETS[target]
    law = make()
    return model, law, law.draw(count, np.random.default_rng(3))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TOGETHER)
def test_joint_moves_keep_the_law(name: str, target: str) -> None:
    model, law, starts = drawn(target, 20_000)
    ends = move_each(model, TOGETHER[name](model.n_sites), starts, 5)
    assert (ends != starts).any(axis=1).mean() > 0.5
    assert p_value(law.law, ends) > FALSE_ALARM


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ALONE)
def test_moves_of_single_coordinates_keep_the_law(name: str, target: str) -> None:
    model, law, starts = drawn(target, 20_000)
    ends = move_each(model, ALONE[name], starts, 3)
    assert (ends != starts).any(axis=1).mean() > 0.5
    assert p_value(law.law, ends) > FALSE_ALARM


def test_single_coordinates_move_in_any_order() -> None:
    model, law, starts = drawn("normal", 20_000)
    ends = move_each(model, ALONE["Metropolis"], starts, 3, gs.RandomScan())
    assert p_value(law.law, ends) > FALSE_ALARM


def test_factors_that_are_functions_are_walked_in_too() -> None:
    box = gs.Interval(-2.0, 2.0)
    pair = [(lambda x: -((x[1] - x[0] ** 2) ** 2), (0, 1)), (lambda x: -0.5 * x[0] ** 2, (0,))]
    model = gs.ContinuousModel({"a": box, "b": box}, pair)
    same = gs.LogDensity(lambda x: -((x[1] - x[0] ** 2) ** 2) - 0.5 * x[0] ** 2, dim=2, bounds=(-2.0, 2.0))
    law = Grid(same, np.full(2, -2.0), np.full(2, 2.0), 2000)
    starts = law.draw(10_000, np.random.default_rng(4))
    for kernel in ALONE.values():
        assert p_value(law.law, move_each(model, kernel, starts, 3)) > FALSE_ALARM


@numba.njit
def stretching(x: Floats, rng: Any) -> Any:
    return x * math.exp(0.5 * gs.random.normal(rng))


def test_an_asymmetric_proposal_needs_its_ratio() -> None:
    # y = x exp(s z) in one dimension: q(y | x) = N(log y; log x, s^2) / y, so q(x | y) / q(y | x) = y / x
    model, law, starts = drawn("humps", 20_000)
    right = gs.kernels.Proposal(stretching, log_ratio=lambda to, at: math.log(to[0]) - math.log(at[0]))
    dense = gs.kernels.Proposal(
        stretching, log_density=lambda to, at: -2.0 * math.log(to[0] / at[0]) ** 2 - math.log(to[0])
    )
    for proposal in (right, dense):
        assert p_value(law.law, move_each(model, gs.Metropolis(proposal), starts, 3)) > FALSE_ALARM
    wrong = gs.kernels.Proposal(stretching, symmetric=True)
    assert p_value(law.law, move_each(model, gs.Metropolis(wrong), starts, 3)) < FALSE_ALARM


def test_an_independence_proposal_keeps_the_law() -> None:
    model, law, starts = drawn("banana", 10_000)
    wide = np.array([2.0, 2.5])
    proposal = gs.kernels.Proposal(
        lambda x, rng: rng.standard_normal(2) * wide + np.array([0.0, 1.0]),
        log_density=lambda to, at: -0.5 * (((to - np.array([0.0, 1.0])) / wide) ** 2).sum(),
    )
    ends = move_each(model, gs.Metropolis(proposal), starts, 4)
    assert (ends != starts).any(axis=1).mean() > 0.3
    assert p_value(law.law, ends) > FALSE_ALARM


@pytest.mark.parametrize("variance", ["right", "as printed"])
def test_the_covariance_of_mala_is_two_steps_not_its_root(variance: str) -> None:
    """The notes print sqrt(2 g) where 2 g is meant; with the density of the right one the law is another."""
    model, law, starts = drawn("normal", 20_000)
    g = 0.1
    spread = 2 * g if variance == "right" else math.sqrt(2 * g)

    @numba.njit
    def draw(x: Floats, rng: Any) -> Any:
        y = x + g * slope_normal(x)
        for k in range(3):
            y[k] += math.sqrt(spread) * gs.random.normal(rng)
        return y

    proposal = gs.kernels.Proposal(
        draw, log_density=lambda to, at: -((to - at - g * slope_normal(at)) ** 2).sum() / (4 * g)
    )
    found = p_value(law.law, move_each(model, gs.Metropolis(proposal), starts, 5))
    assert (found > FALSE_ALARM) == (variance == "right")


def test_moves_without_accepting_leave_the_law() -> None:
    model, law, starts = drawn("normal", 20_000)
    assert p_value(law.law, move_each(model, gs.kernels.ULA(0.4), starts, 10)) < FALSE_ALARM


def test_learning_ends_with_the_warmup() -> None:
    for kernel in (gs.Metropolis(), gs.MALA(preconditioner="adapt"), gs.Metropolis(one_by_one=True), gs.Slice()):
        short, long = (
            gs.sample(BANANA, kernel, sweeps=sweeps, warmup=200, chains=1, rng=1, progress=False)
            for sweeps in (100, 2000)
        )
        name = kernel.size_name
        assert short.report[name] == long.report[name] != 1.0


def ar_variance(result: gs.Result, a: float, variance: float) -> tuple[float, float]:
    """Return how far the variance of draws is from another, in standard errors of an AR(1) process.

    The variance of a sample variance of a stationary normal AR(1) process with coefficient a is
    2 variance^2 (1 + a^2) / (1 - a^2) / count.
    """
    count = result.n_draws * 4
    found = result.marginals["0"]["sd"] ** 2
    error = variance * math.sqrt(2.0 * (1.0 + a * a) / (1.0 - a * a) / count)
    return (found - variance) / error, found


WIDE = gs.LogDensity(lambda x: -(x[0] ** 2) / 4.0, lambda x: -x / 2.0, dim=1)


# the smaller the step, the longer it takes to tell the variance from that of the target
@pytest.mark.parametrize(
    ("g", "sweeps"),
    [(0.5, 100_000), (3.0, 100_000), *(pytest.param(g, 1_000_000, marks=pytest.mark.campaign) for g in (0.1, 1.0))],
)
def test_the_variance_of_ula(g: float, sweeps: int) -> None:
    s2 = 2.0
    result = gs.sample(WIDE, gs.kernels.ULA(g), sweeps=sweeps, chains=4, rng=5, progress=False)
    a = 1.0 - g / s2
    off, found = ar_variance(result, a, 2.0 * s2**2 / (2.0 * s2 - g))
    assert abs(off) < 5.5  # 4e-8
    assert abs(ar_variance(result, a, s2)[0]) > 5.5  # and it is not that of the target
    if g < s2:
        assert abs(found - 2.0 * s2**2 / (s2 - g)) > 0.5 * s2  # as printed


ROWS = np.random.default_rng(6).uniform(-3.0, 3.0, 500)
LOCATION = gs.DataDensity(
    lambda theta: -0.5 * theta[0] ** 2,
    lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
    ROWS,
    prior_grad=lambda theta: -theta,
    likelihood_grad=lambda theta, row: np.array([row[0] - theta[0]]),
    dim=1,
)


@pytest.mark.parametrize("way", ["with", "without", "control variates"])
def test_the_variance_of_sgld(way: str) -> None:
    """Noise 2 g + g^2 V, and V is known: gradients of rows of a normal likelihood differ by their data alone.

    The data are uniform, so sums of ten of them have less kurtosis than normal numbers, and so has the
    process: standard errors of a normal one are too large rather than too small.
    """
    data, size, g = ROWS, 10, 2e-4
    rows = data.size
    kernel = gs.kernels.SGLD(
        g, size, replace=way != "without", control_variates=[0.3] if way == "control variates" else None
    )
    noise = {
        "with": rows**2 / size * data.var(),
        "without": rows**2 / size * data.var() * (rows - size) / (rows - 1),
        "control variates": 0.0,
    }[way]
    a = 1.0 - g * (rows + 1)
    variance = (2.0 * g + g**2 * noise) / (1.0 - a * a)
    result = gs.sample(LOCATION, kernel, sweeps=200_000, chains=4, rng=6, progress=False)
    off, _ = ar_variance(result, a, variance)
    assert abs(off) < 5.5
    mean = result.marginals["0"]["mean"]
    error = math.sqrt(variance / (4 * result.n_draws) * (1 + a) / (1 - a))
    assert abs(mean - data.sum() / (rows + 1)) < 5.5 * error


def test_rows_without_replacement_are_different_and_equally_likely() -> None:
    """Gradients of rows are bits here, so that the sum of a batch shows which rows were in it."""
    rows, size, many = 12, 5, 40_000
    data = 2.0 ** np.arange(rows)
    model = gs.DataDensity(
        None, lambda theta, row: theta[0] * row[0], data, likelihood_grad=lambda theta, row: row, dim=1
    )
    kernel = gs.kernels.SGLD(1e-4, size, replace=False)
    graph = gs.graphs.compile_graph(model)
    memory = kernel.memory(graph, np.zeros(4, np.uint64))
    from gibbsite._numba.random.generators import load, stream
    from gibbsite.kernels.density.sgld import draw_rows

    parameters, rng = kernel.parameters(graph), load(stream(1, 0))
    seen = np.zeros(rows)
    for _ in range(many // 10):
        rng = draw_rows(parameters, graph.arrays, memory, rng)
        memory.steps[0] += 1
        assert len(set(memory.rows.tolist())) == size
        seen[memory.rows] += 1
    p = size / rows
    assert np.abs(seen - p * many / 10).max() < 6.0 * math.sqrt(many / 10 * p * (1 - p))
