"""Ratios of times and their spread, of known times."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.lab.timing import compare_times


def test_ratios_have_the_quantiles_of_all_pairs() -> None:
    rng = np.random.default_rng(1)
    slow, fast = rng.uniform(2.0, 3.0, 7), rng.uniform(1.0, 1.5, 5)
    ratios = [a / b for a in slow for b in fast]
    assert compare_times(slow, fast) == pytest.approx(tuple(np.quantile(ratios, [0.1, 0.5, 0.9])))


def test_a_ratio_decides_only_if_its_spread_lies_on_one_side_of_the_bound() -> None:
    slow, fast = [2.0, 2.2, 2.1], [1.0, 1.1]
    assert compare_times(slow, fast).exceeds() is True
    assert compare_times(fast, slow).exceeds() is False
    assert compare_times([1.0, 2.0], [1.0, 2.0]).exceeds() is None
    assert compare_times(slow, fast).exceeds(2.0) is None
