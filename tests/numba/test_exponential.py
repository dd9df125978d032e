"""Exponentials and logarithms by additions and multiplications, against those of NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._numba.exponential import exp_below, log_above
from gibbsite._numba.jit import compiled_loop

Floats = NDArray[np.float64]


@compiled_loop
def _exponentials(x: Floats, out: Floats) -> None:
    for i in range(x.size):
        out[i] = exp_below(x[i])


@compiled_loop
def _logarithms(x: Floats, out: Floats) -> None:
    for i in range(x.size):
        out[i] = log_above(x[i])


def test_exponentials() -> None:
    x = np.concatenate([-np.geomspace(1e-18, 700.0, 20_000), np.linspace(-40.0, 40.0, 20_001), [0.0]])
    out = np.empty_like(x)
    _exponentials(x, out)
    assert np.abs(out / np.exp(x) - 1.0).max() < 5e-16
    assert out[-1] == 1.0
    low = np.array([-1e300, -np.inf, np.nan, -709.0])
    _exponentials(low, out)
    assert (out[:4] < 1e-307).all()
    assert (out[:4] >= 0.0).all()


def test_logarithms() -> None:
    x = np.concatenate([1.0 + np.geomspace(1e-16, 1.0, 20_000), np.geomspace(1.0, 1e300, 20_000)])
    out = np.empty_like(x)
    _logarithms(x, out)
    assert (np.abs(out - np.log(x)) <= 4e-16 * np.maximum(1.0, np.log(x))).all()


def test_they_are_the_same_in_plain_python() -> None:
    x = np.linspace(-50.0, 0.0, 101)
    out = np.empty_like(x)
    _exponentials(x, out)
    assert out.tolist() == [float(exp_below(value)) for value in x]
    _logarithms(1.0 + np.exp(x), out)
    assert out.tolist() == [float(log_above(1.0 + value)) for value in np.exp(x)]
