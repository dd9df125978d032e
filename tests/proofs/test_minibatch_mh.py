"""Metropolis-Hastings judged by minibatches keeps the law; bounds and slopes that are wrong are caught."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from tests.proofs.density_laws import FALSE_ALARM, Floats, Grid, move_each, p_value
from tests.proofs.minibatch_laws import counts_of

pytestmark = pytest.mark.long

SITES = {"a": gs.Interval(-1.0, 2.0), "b": gs.Interval(-2.0, 1.0)}
DATA = np.array([-0.3, 0.4, 1.1, 0.2, -1.4, 0.9, 2.0])


def waves(x: Floats, p: Floats) -> Any:
    return np.sin(p[0] * x[0] + x[1])


class Function:
    """The density of the model below, in NumPy."""

    @staticmethod
    def function(x: Floats) -> Any:
        total = 1.5 * x[0] * x[1] - 0.5 * ((x[0] - 0.3) / 0.8) ** 2
        for p in (1.0, 2.0, 3.0):
            total = total + np.sin(p * x[0] + x[1])
        for y in DATA:
            first, second = -0.5 * (y - x[0]) ** 2, -0.5 * (y - x[0] - x[1]) ** 2
            total = total + np.logaddexp(first, second)
        return total


@cache
def model() -> gs.ContinuousModel:
    return gs.ContinuousModel(
        SITES,
        [
            gs.factors.product_factors([[0, 1]], 1.5),
            gs.factors.normal_factors([0], 0.3, 0.8, always=True),
            gs.factors.FunctionFactors(
                waves, [0, 1], [[1.0], [2.0], [3.0]], slopes=lambda p, low, high: np.hypot(p[:, 0], 1.0)
            ),
            gs.factors.mixture_factors([0, 1], DATA, 1.0),
        ],
    )


@cache
def grid() -> Grid:
    low, high = np.array([-1.0, -2.0]), np.array([2.0, 1.0])
    return Grid(Function, low, high, 600)  # type: ignore[arg-type]


def stretching(x: Floats, rng: Any) -> Any:
    return x * np.exp(0.5 * rng.normal(size=2))


STRETCH = gs.kernels.Proposal(stretching, log_ratio=lambda to, at: np.log(np.abs(to / at)).sum())
UPSIDE_DOWN = gs.kernels.Proposal(stretching, log_ratio=lambda to, at: -np.log(np.abs(to / at)).sum())
KERNELS = {
    "Poisson": gs.kernels.PoissonMH(minibatch=20.0, scale=0.7),
    "Poisson, small batches": gs.kernels.PoissonMH(minibatch=1.0, scale=0.4),
    "Poisson, uniform moves": gs.kernels.PoissonMH("uniform", minibatch=30.0, scale=0.5),
    "Poisson, stretched": gs.kernels.PoissonMH(STRETCH, minibatch=20.0),
    "Tuna": gs.kernels.TunaMH(chi=0.05, scale=0.5),
    "Tuna, small batches": gs.kernels.TunaMH(chi=1e-3, scale=0.3),
    "Tuna, stretched": gs.kernels.TunaMH(STRETCH, chi=0.05),
}


# small batches run the same code as large ones
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.campaign] if "small" in name else []) for name in KERNELS]
)
def test_the_law_is_kept(name: str) -> None:
    truth = grid()
    starts = truth.draw(4000, np.random.default_rng(3))
    assert p_value(truth.law, starts) > FALSE_ALARM
    ends = move_each(model(), KERNELS[name], starts, 10)
    assert (ends != starts).any(axis=1).mean() > 0.2
    assert p_value(truth.law, ends) > FALSE_ALARM


@pytest.mark.parametrize("chi", [0.03, 0.1, 1.0])
def test_acceptance_rates_of_tuna_respect_the_bound(chi: float) -> None:
    """Acceptance rates summed over all numbers of kept factors, against those of Metropolis-Hastings."""
    rng = np.random.default_rng(4)
    for length in (0.1, 1.0, 3.0):
        slopes = rng.uniform(0.2, 1.0, 2)
        most, reach = slopes * length, slopes.sum() * length
        for _ in range(20):
            rises = most * (rng.uniform(-1.0, 1.0, 2) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], 2))
            ahead, back = (chi * most * reach + 0.5 * (most - sign * rises) for sign in (1.0, -1.0))
            counts, chance = counts_of(ahead.tolist())
            with np.errstate(divide="ignore"):
                gains = np.log(back / ahead)
            accepted = float(chance @ np.exp(np.minimum(counts @ gains, 0.0)))
            exact = math.exp(min(float(rises.sum()), 0.0))
            assert accepted <= exact + 1e-12
            assert accepted >= 0.5 * math.exp(-reach / (1.0 + 4.0 * chi * reach)) * exact
            # reversible: both directions have the same flow
            counts, chance = counts_of(back.tolist())
            returned = float(chance @ np.exp(np.minimum(counts @ -gains, 0.0)))
            assert accepted == pytest.approx(math.exp(float(rises.sum())) * returned, rel=1e-9)


def test_results_of_tuna_state_the_bound() -> None:
    result = gs.sample(model(), gs.kernels.TunaMH(chi=0.05), sweeps=1000, rng=1, progress=False)
    assert any(f"exp(-1 / (4 chi)) / 2 = {0.5 * math.exp(-5.0):.3g} times" in remark for remark in result.remarks)


def test_the_ratio_as_printed_is_wrong() -> None:
    truth = grid()
    starts = truth.draw(4000, np.random.default_rng(3))
    ends = move_each(model(), gs.kernels.PoissonMH(UPSIDE_DOWN, minibatch=20.0), starts, 10)
    assert p_value(truth.law, ends) < FALSE_ALARM


def test_a_run_tells_what_it_cost() -> None:
    result = gs.sample(model(), gs.kernels.PoissonMH(minibatch=20.0), sweeps=3000, rng=1, progress=False)
    assert 0.1 < result.report["acceptance"] < 0.6
    assert result.report["minibatch"] > 20.0
    assert result.report["evaluations"] > result.report["minibatch"]
    assert any("spectral gap" in remark for remark in result.remarks)


@pytest.mark.parametrize(
    "kernel", [gs.kernels.PoissonMH(minibatch=10.0), gs.kernels.ContinuousGibbs(minibatch=10.0)], ids=str
)
def test_a_bound_that_is_violated_is_named(kernel: gs.kernels.Kernel) -> None:
    wrong = gs.factors.FunctionFactors(waves, [0, 1], [[1.0], [2.0]], bounds=(-0.5, 1.0), name="waves")
    with pytest.raises(gs.errors.SamplingError, match=r"factor [01] of 'waves' is -0.*which is outside its bounds"):
        gs.sample(gs.ContinuousModel(SITES, [wrong]), kernel, sweeps=2000, rng=1, progress=False)


def test_a_slope_that_is_wrong_is_named() -> None:
    wrong = gs.factors.FunctionFactors(waves, [0, 1], [[1.0], [3.0]], slopes=1.0, name="waves")
    with pytest.raises(gs.errors.SamplingError, match="of 'waves' is steeper than declared"):
        gs.sample(gs.ContinuousModel(SITES, [wrong]), gs.kernels.TunaMH(chi=0.1), sweeps=2000, rng=1, progress=False)


def test_what_makes_no_sense() -> None:
    unsaid = gs.ContinuousModel(SITES, [gs.factors.FunctionFactors(waves, [0, 1], [[1.0]])])
    with pytest.raises(gs.errors.IncompatibleError, match="have no slopes"):
        gs.sample(unsaid, gs.kernels.TunaMH(), sweeps=10, progress=False)
    with pytest.raises(gs.errors.ModelError, match="minibatch of PoissonMH"):
        gs.sample(unsaid, gs.kernels.PoissonMH(minibatch=0.0), sweeps=10, progress=False)
    with pytest.raises(gs.errors.IncompatibleError, match="ContinuousGibbs"):
        gs.kernels.PoissonMH(one_by_one=True)
    with pytest.raises(gs.errors.ModelError, match="chi"):
        gs.sample(model(), gs.kernels.TunaMH(chi=-1.0), sweeps=10, progress=False)
