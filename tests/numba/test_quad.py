"""Four numbers at a time: compiled, they are what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._numba.jit import compiled
from gibbsite._numba.quad import logarithm, minus, over, plus, put, reached, spread, take, times


@compiled
def _all(a: Any, b: Any, out: Any) -> None:
    for k in range(0, a.size, 4):
        one, two = take(a, k), take(b, k)
        put(out[0], k, plus(one, two))
        put(out[1], k, minus(one, two))
        put(out[2], k, times(one, two))
        put(out[3], k, over(one, two))
        put(out[4], k, reached(minus(one, two)))
        put(out[5], k, logarithm(one))
        put(out[6], k, spread(2.5))


def test_operations_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    a, b = np.exp(rng.uniform(-600, 600, 400)), np.exp(rng.uniform(-5, 5, 400))
    a[:8] = [1.0, 2.0, 0.5, np.sqrt(0.5), np.sqrt(2.0), 1.0 + 2e-16, 1.0 - 1e-16, 3.0]
    a[8:200] = b[8:200] ** 0.01  # near one, where a logarithm is small
    out = np.zeros((7, a.size))
    _all(a, b, out)
    expected = [a + b, a - b, a * b, a / b, (a >= b) * 1.0]
    assert all(np.array_equal(got, want) for got, want in zip(out, expected, strict=False))
    assert np.abs(out[5] - np.log(a)).max() < 5e-13 and (out[6] == 2.5).all()
    near = np.abs(np.log(a)) > 0
    assert np.abs(out[5][near] / np.log(a)[near] - 1.0).max() < 1e-15
