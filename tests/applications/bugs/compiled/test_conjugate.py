"""Normal numbers between bounds have their distribution, also far from the mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gibbsite._common.arrays import Floats, Words64
from gibbsite._numba.jit import compiled
from gibbsite.applications.bugs.compiled import conjugate

DRAWS = 4000
BOUNDS = [(-1.0, 2.0), (0.5, math.inf), (-math.inf, -3.0), (8.0, 8.5), (-1e-3, 1e-3), (40.0, math.inf), (-51.0, -50.0)]


@compiled
def fill(words: Words64, found: Floats, mean: float, sd: float, low: float, high: float) -> None:
    for k in range(found.size):
        found[k] = conjugate.draw_bounded_normal(words, mean, sd, low, high)


def draws(mean: float, sd: float, low: float, high: float) -> Floats:
    found = np.empty(DRAWS)
    fill(np.arange(11, 15, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15), found, mean, sd, low, high)
    return found


@pytest.mark.parametrize(("a", "b"), BOUNDS)
@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (3.0, 0.1)])
def test_draws_between_bounds(a: float, b: float, mean: float, sd: float) -> None:
    found = draws(mean, sd, mean + sd * a, mean + sd * b)
    assert (mean + sd * a - 1e-12 <= found).all()
    assert (found <= mean + sd * b + 1e-12).all()
    # 14 tests at 1e-8 raise a false alarm with a probability below 1e-6
    assert stats.kstest((found - mean) / sd, stats.truncnorm(a, b).cdf).pvalue > 1e-8


def test_wrong_bounds_are_seen() -> None:
    found = draws(0.0, 1.0, 0.5, math.inf)
    assert stats.kstest(found, stats.truncnorm(0.4, math.inf).cdf).pvalue < 1e-8


def test_empty_intervals_have_no_draws() -> None:
    assert np.isnan(draws(0.0, 1.0, 2.0, 1.0)).all()
