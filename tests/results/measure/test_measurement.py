"""Mean and standard deviation of numbers, with errors, from sums of values and squares alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gibbsite.results.measure.diagnostics import ess, mcse, rhat
from gibbsite.results.measure.measurement import CellNumbers, measure_cells


def measure(draws: NDArray[np.float64], length: int = 1) -> CellNumbers:
    cells = np.stack([draws, draws**2], axis=-1)
    chains, count, _ = cells.shape
    trace = cells.reshape(chains, count // length, length, 2).mean(axis=2)
    return measure_cells(cells.sum(axis=1), trace, count, length, numbers=np.array([0]))


def autoregressive(rho: float, shape: tuple[int, int], seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=shape) * np.sqrt(1 - rho**2)
    x = np.empty(shape)
    x[:, 0] = rng.normal(size=shape[0])
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_numbers_agree_with_the_draws(rho: float) -> None:
    draws = 100.0 + 0.1 * autoregressive(rho, (4, 4000), 1)
    found = measure(draws)
    assert found.mean[0] == pytest.approx(draws.mean())
    assert found.mean[1] == pytest.approx(draws.std())
    assert found.error[0] == pytest.approx(float(mcse(draws)))
    assert found.error[1] == pytest.approx(float(mcse(draws, "sd")), rel=0.2)
    assert found.ess[0] == pytest.approx(float(ess(draws)), rel=1e-3)
    assert found.rhat[0] == pytest.approx(float(rhat(draws, "split")), abs=1e-4)
    assert found.scale[0] == pytest.approx(draws.std())


def test_chains_that_differ_in_location_or_width_are_seen() -> None:
    rng = np.random.default_rng(2)
    same = rng.normal(size=(4, 2000))
    apart = same + np.arange(4)[:, None]
    wider = same * np.array([1.0, 1.0, 1.0, 3.0])[:, None]
    assert measure(same).rhat.max() < 1.01
    assert measure(apart).rhat[0] > 1.3
    assert measure(wider).rhat[0] < 1.01
    assert measure(wider).rhat[1] > 1.1


def test_batches_give_the_same_means() -> None:
    draws = autoregressive(0.9, (4, 4096), 3)
    one, many = measure(draws), measure(draws, 8)
    assert many.mean == pytest.approx(one.mean)
    assert many.error == pytest.approx(one.error, rel=0.3)


def test_a_constant_has_no_error() -> None:
    found = measure(np.full((2, 100), 7.25))
    assert found.mean.tolist() == [7.25, 0.0]
    assert found.error[0] == 0.0
    assert found.rhat[0] == 1.0
