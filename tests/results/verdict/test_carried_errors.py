"""A site that moves a little with a slow one is known no better than that slow part of it."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.results.measure.measurement import measure_errors
from gibbsite.results.verdict import conditional_marginals
from gibbsite.results.verdict.carried_errors import carry_errors
from tests.campaigns.conditional_marginals import ACCURACY, try_once


def _trace(rng: np.random.Generator, cells: int) -> np.ndarray:
    """Return batches of a slow cell and of fast ones, which have a fifth of the slow one in them."""
    steps = rng.normal(size=(4, 512))
    slow = np.zeros_like(steps)
    for k in range(1, steps.shape[1]):
        slow[:, k] = 0.98 * slow[:, k - 1] + 0.2 * steps[:, k]
    fast = rng.normal(size=(*slow.shape, cells))
    return np.concatenate([slow[:, :, None], 0.2 * slow[:, :, None] + fast], axis=2) * 0.1 + 0.5


def test_the_slow_part_of_fast_cells_is_in_their_standard_errors() -> None:
    """The mean of a fast cell has a fifth of the error of the slow one, and an error of its own."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(20):
        trace = _trace(rng, 20)
        errors = measure_errors(trace)
        errors[0] = 0.1 * np.sqrt(99.0 / 2048)  # its autocorrelation time is 99 batches
        found = carry_errors(trace, np.full(21, 0.5), errors)
        wanted = np.hypot(0.2 * errors[0], 0.1 / np.sqrt(2048))
        assert found[0] == errors[0]
        ratios.append(found[1:] / wanted)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.25)
    assert np.min(ratios) > 0.4


def test_independent_cells_keep_their_errors() -> None:
    rng = np.random.default_rng(2)
    trace = 0.5 + 0.1 * rng.normal(size=(4, 512, 200))
    errors = measure_errors(trace)
    found = carry_errors(trace, np.full(200, 0.5), errors)
    assert (found >= errors).all()
    assert np.mean(found / errors) < 1.1


def test_cells_that_never_change_keep_their_errors() -> None:
    trace = np.ones((4, 64, 3))
    assert carry_errors(trace, np.ones(3), np.full(3, 1e-3)).tolist() == [1e-3] * 3


def test_sites_that_are_tied_to_a_slow_region_are_not_said_to_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The causes of this gate are within four standard errors; a site of the grid was off by 4.7 of its own."""
    found = try_once("gates", 103)
    assert found["error"] == 0.0 and found["gap"] > ACCURACY
    monkeypatch.setattr(conditional_marginals, "carry_errors", lambda trace, mean, errors: errors)
    alone = try_once("gates", 103)
    assert alone["converged"] and alone["error"] > ACCURACY
