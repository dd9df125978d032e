"""Rings: joining, gathering and taking out again, against NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gibbsite.graphs.elimination.rings import LogSum, Max, Ring, Sum, cancel, gather, join

VALUES = [0.0, 1e-300, 0.3, 1.0, 2.5, 1e200]


def written(ring: Ring, value: float) -> float:
    """Return a number as the ring writes it."""
    if isinstance(ring, Sum):
        return value
    return math.log(value) if value > 0.0 else -math.inf


@pytest.mark.parametrize("ring", [Sum(), Max(), LogSum()], ids=lambda ring: type(ring).__name__)
def test_operations_are_those_of_numbers(ring: Ring) -> None:
    assert written(ring, 0.0) == ring.zero
    assert written(ring, 1.0) == ring.one
    for a, b in itertools.product(VALUES, VALUES):
        x, y = written(ring, a), written(ring, b)
        product = a * b if isinstance(ring, Sum) else float(np.add(x, y))
        assert join(ring, x, y) == product
        total = max(a, b) if isinstance(ring, Max) else a + b
        assert gather(ring, x, y) == pytest.approx(written(ring, total), rel=1e-14, abs=1e-14)
        assert gather(ring, x, y) == gather(ring, y, x)
        if b > 0.0 and 0.0 < a * b < math.inf:
            assert cancel(ring, join(ring, x, y), y) == pytest.approx(x, rel=1e-12, abs=1e-12)
        assert cancel(ring, x, ring.zero) == ring.zero
        assert join(ring, x, ring.one) == gather(ring, x, ring.zero) == x


def test_logarithms_far_apart_and_beyond_floats() -> None:
    assert gather(LogSum(), 5000.0, 5000.0) == pytest.approx(5000.0 + math.log(2.0), rel=1e-15)
    assert gather(LogSum(), -5000.0, -5000.0) == pytest.approx(-5000.0 + math.log(2.0), rel=1e-15)
    assert gather(LogSum(), 1000.0, -1000.0) == 1000.0
    assert gather(LogSum(), -40.0, 0.0) == np.logaddexp(-40.0, 0.0) > 0.0
    assert gather(LogSum(), -math.inf, -math.inf) == -math.inf
