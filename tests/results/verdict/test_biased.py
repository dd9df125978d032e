"""Kernels that are not exact are called converged only where their bias was computed and is small."""

import warnings
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.kernels.density.bias import bias_of_steps

pytestmark = pytest.mark.long

DATA = np.random.default_rng(1).normal(3.0, 1.0, 10_000)
MEAN = gs.DataDensity(
    None,
    lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
    DATA,
    likelihood_grad=lambda theta, row: np.array([row[0] - theta[0]]),
    dim=1,
)


def sample(model: Any, kernel: Any, **how: Any) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gs.sample(model, kernel, **{"rng": 1, "progress": False, **how})


def test_noise_of_minibatches_is_computed() -> None:
    """The standard deviation is wrong by a factor of about 5: g V / 2 = 4e-5 * 1e4**2 / 100 / 2 = 20."""
    result = sample(MEAN, gs.kernels.SGLD(4e-5, batch=100), sweeps=10_000, start=[3.0])
    assert not result.diagnostics.converged
    [reason] = result.diagnostics.reasons
    assert "SGLD is biased: the standard deviation of 0" in reason
    times = float(reason.split("about ")[1].split(" times")[0])
    assert times == pytest.approx(result.marginals["0"]["sd"] * 100.0, rel=0.1)


def test_control_variates_are_not_refused() -> None:
    kernel = gs.kernels.SGLD(1e-5, batch=100, control_variates=[DATA.mean()])
    result = sample(MEAN, kernel, sweeps=10_000)
    assert result.diagnostics.converged
    assert "2.6 % too large" in result.remarks[-1]  # 1 / sqrt(1 - g H / 2), g H = 0.1


@pytest.mark.parametrize(("step", "right"), [(1.0, False), (0.1, True)])
def test_unadjusted_langevin(step: float, right: bool) -> None:
    target = gs.LogDensity(lambda x: -0.25 * x[0] ** 2, lambda x: -0.5 * x, dim=1)
    assert sample(target, gs.kernels.ULA(step), sweeps=30_000).diagnostics.converged == right


def test_a_bias_that_is_not_known() -> None:
    model = gs.potts(np.full((30, 30), 0.05) - 0.05 * np.eye(30), 3)
    verdict = sample(model, gs.kernels.LocalMinibatchGibbs(8), sweeps=2000).diagnostics
    assert not verdict.converged
    assert any("how much is not known" in reason for reason in verdict.reasons)


def test_the_mean_of_a_skew_target() -> None:
    """A gamma law of shape 4 on a logarithmic scale, whose mean a step of ULA moves."""
    place, g = np.log(np.array([4.0])), 0.02
    gradients = lambda x: 4.0 - np.exp(x)  # noqa: E731
    found = bias_of_steps(gradients, place, np.array([[4.0]]), g, np.eye(1), np.zeros((1, 1)))
    assert found is not None
    rng = np.random.default_rng(1)
    x, total = np.full(4000, place[0]), np.zeros((2, 2))
    for k, h in ((0, g), (1, 1e-3)):
        for t in range(6000):
            x = x + h * gradients(x) + np.sqrt(2.0 * h) * rng.standard_normal(x.size)
            if t >= 1000:
                total[k] += x.mean() / 5000, 0.0
    assert found.mean[0] == pytest.approx(total[0, 0] - total[1, 0], abs=3e-3)


def test_minibatches_are_no_larger_than_the_data() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(100, 2))
    factors = gs.factors.logistic_factors([0, 1], rows, rng.random(100) < 0.5)
    model = gs.ContinuousModel(2, [factors, gs.factors.normal_factors([0, 1], 0.0, 1.0)], states=gs.Interval(-9.0, 9.0))
    poisson = sample(model, gs.kernels.PoissonMH(), sweeps=5000)
    assert "all of them are evaluated instead" in poisson.remarks[0]
    tuna = sample(model, gs.kernels.TunaMH(chi=1.0), sweeps=5000)
    assert tuna.report["minibatch"] <= 102.0
    plain = sample(model, gs.Metropolis(), sweeps=5000)
    for other in (poisson, tuna):
        for name in ("0", "1"):
            gap = abs(other.marginals[name]["mean"] - plain.marginals[name]["mean"])
            assert gap < 6.0 * np.hypot(other.mcse[name]["mean"], plain.mcse[name]["mean"])  # 2e-9


def test_batches_larger_than_the_data_are_refused() -> None:
    with pytest.raises(gs.errors.ArgumentError, match="larger than the data with 10000 rows"):
        sample(MEAN, gs.kernels.SGLD(1e-5, batch=20_000), sweeps=10)
