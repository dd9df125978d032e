"""The two-dimensional Ising model: energy and specific heat by Kaufman's formula for a torus."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from tests.data import DATA, needs_data

# exact figures from the density of states, where they are at hand
REFERENCE = "physics/ising2d/exact.json"
SIDE = 16
CRITICAL = 2.0 / math.log(1.0 + math.sqrt(2.0))
TEMPERATURES = (1.8, 2.1, CRITICAL, 2.5, 3.5)
# ten figures, each of them 5.4 standard errors off by chance once in 1.5e7
MOST_ERRORS = 5.4


def log_z(coupling: float, side: int) -> float:
    """Kaufman (1949): the partition function of a torus, as a sum of four products."""
    k2 = 2.0 * coupling
    steps = np.arange(2 * side)
    cosh = math.cosh(k2) / math.tanh(k2) - np.cos(np.pi * steps / side)
    gamma = np.arccosh(cosh)
    gamma[0] = k2 + math.log(math.tanh(coupling))
    odd, even = 0.5 * side * gamma[1::2], 0.5 * side * gamma[0::2]
    terms = []
    for angles, sign in ((odd, 1), (odd, -1), (even, 1), (even, -1)):
        size = np.abs(angles)
        logs = size + np.log1p(sign * np.exp(-2.0 * size))
        minus = sign < 0 and bool((angles < 0).sum() % 2)
        terms.append((float(logs.sum()), -1.0 if minus else 1.0))
    top = max(value for value, _ in terms)
    total = sum(s * math.exp(value - top) for value, s in terms)
    return 0.5 * side**2 * math.log(2.0 * math.sinh(k2)) + top + math.log(0.5 * total)


def exact(temperature: float, side: int = SIDE) -> tuple[float, float]:
    """Energy and specific heat per site, as derivatives of the logarithm."""
    k, h, n = 1.0 / temperature, 2e-3, side**2
    z = [log_z(k + j * h, side) for j in (-3, -2, -1, 0, 1, 2, 3)]
    first = (-z[0] + 9 * z[1] - 45 * z[2] + 45 * z[4] - 9 * z[5] + z[6]) / (60 * h)
    second = (2 * z[0] - 27 * z[1] + 270 * z[2] - 490 * z[3] + 270 * z[4] - 27 * z[5] + 2 * z[6]) / (180 * h**2)
    return -first / n, k**2 * second / n


def test_the_formula_is_right() -> None:
    model = gs.ising_grid((4, 4), coupling=0.4, periodic=True)
    assert abs(log_z(0.4, 4) - gs.solve_exact(model).log_z) < 1e-10


@needs_data(REFERENCE)
def test_the_formula_agrees_with_the_density_of_states() -> None:
    for row in json.loads((DATA / REFERENCE).read_text())["rows"]:
        energy, heat = exact(1.0 / row["beta"], row["L"])
        assert abs(log_z(row["beta"], row["L"]) - row["lnZ"]) < 1e-8
        assert abs(energy - row["energy_per_spin"]) < 1e-6
        assert abs(heat - row["heat_capacity_per_spin"]) < 1e-4


def estimates(energy: Any, temperature: float, side: int) -> list[tuple[float, float]]:
    """Energy and specific heat per site with standard errors: jackknife over blocks of all chains."""
    n, blocks = side**2, 20
    chains, draws = energy.shape
    parts = temperature * energy[:, : draws // blocks * blocks].reshape(chains * blocks, -1)
    first, second = parts.mean(axis=1), (parts**2).mean(axis=1)
    count = len(first)
    left_1 = (first.sum() - first) / (count - 1)
    left_2 = (second.sum() - second) / (count - 1)
    found = []
    for whole, left in (
        (first.mean() / n, left_1 / n),
        ((second.mean() - first.mean() ** 2) / (n * temperature**2), (left_2 - left_1**2) / (n * temperature**2)),
    ):
        error = math.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum())
        found.append((float(whole), error))
    return found


@pytest.mark.parametrize("form", ["checkered", "colors"])
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_energy_and_specific_heat(temperature: float, form: str) -> None:
    model = gs.ising_grid((SIDE, SIDE), coupling=1.0 / temperature, periodic=True)
    if form == "colors":
        i = np.arange(SIDE**2).reshape(SIDE, SIDE)
        pairs = [np.stack([i.ravel(), np.roll(i, -1, axis).ravel()], axis=1) for axis in (0, 1)]
        j = np.concatenate(pairs)
        model = gs.ising((j[:, 0], j[:, 1], np.full(len(j), 1.0 / temperature)))
    result = gs.sample(
        model, scan=gs.Chromatic(), sweeps=20_000, warmup=2_000, chains=8, rng=7, record="energy", progress=False
    )
    assert result.plan.form == ("checkered" if form == "checkered" else "arranged")
    for (value, error), true in zip(estimates(result.energy, temperature, SIDE), exact(temperature), strict=True):
        off = (value - true) / error
        print(f"T {temperature:.4f} {form}: {value:.5f} +- {error:.5f}, exact {true:.5f}, {off:+.2f}")
        assert abs(off) < MOST_ERRORS
