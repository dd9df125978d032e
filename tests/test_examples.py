"""The scripts in examples/ run, and say what is true."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from tests.data import DATA, ROOT, needs_data

EXACT = "physics/ising2d/exact.json"
BETAS = (0.35, 0.4, 0.42, 0.4406868, 0.46, 0.5)


def run_critical(*words: str) -> list[list[float]]:
    """Return the rows of numbers that the script prints."""
    script = ROOT / "examples" / "ising_critical.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), *words], capture_output=True, text=True, check=True
    )
    rows = done.stdout.splitlines()[1:]
    return [[float(word) for word in re.findall(r"-?\d+\.\d+", row.replace("+-", " "))] for row in rows]


def test_scribbles_find_the_regions() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "scribbles.py")], capture_output=True, text=True, check=True
    )
    shares = dict(line.split() for line in done.stdout.splitlines())
    # of the picture, by its formulas: lake, hills, sky, moon
    for colour, share in (("#0072b2", 25.56), ("#009e73", 22.52), ("#56b4e9", 49.85), ("#f0e442", 2.07)):
        assert float(shares[colour].rstrip("%")) == pytest.approx(share, abs=1.0)


def test_critical_ising_model_agrees_with_enumeration() -> None:
    """Six standard errors of 18 numbers: a false alarm rate of 4e-8."""
    model = gs.ising_grid((4, 4), coupling=1.0, periodic=True)
    x = 2.0 * ((np.arange(1 << 16)[:, None] >> np.arange(16)) & 1) - 1.0
    grid = x.reshape(-1, 4, 4)
    energy = -(grid * np.roll(grid, 1, 1)).sum((1, 2)) - (grid * np.roll(grid, 1, 2)).sum((1, 2))
    assert model.log_potential(np.ones(16, int)) == pytest.approx(-energy[-1])
    m = x.mean(axis=1)
    for beta, row in zip(BETAS, run_critical("4", "6000"), strict=True):
        weight = np.exp(-beta * (energy - energy.min()))
        law = weight / weight.sum()
        mean = law @ energy
        heat = beta**2 * (law @ energy**2 - mean**2) / 16
        binder = 1 - (law @ m**4) / (3 * (law @ m**2) ** 2)
        for exact, found, error in ((mean / 16, *row[1:3]), (heat, *row[3:5]), (binder, *row[5:7])):
            assert abs(found - exact) < 6 * error + 2e-4, (beta, exact, found, error)
        assert row[7] >= 0.9 and row[8] >= 0.9


def test_the_potts_model_at_its_transition_agrees_with_an_exact_solution() -> None:
    """Of 3 x 3 sites: the energy is a derivative of log Z. Six standard errors: a false alarm in 5e8."""
    script = ROOT / "examples" / "potts_first_order.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), "3", "4000"], capture_output=True, text=True, check=True
    )
    found, error = (float(word) for word in re.findall(r"energy (-\d+\.\d+) \+-(\d+\.\d+)", done.stdout)[0])
    beta, step = math.log(1 + math.sqrt(10)), 1e-4
    low, high = (
        gs.solve_exact(gs.potts_grid((3, 3), states=10, coupling=beta + d, periodic=True), task="PR").log_z
        for d in (-step, step)
    )
    assert abs(found + (high - low) / (2 * step) / 9) < 6 * error + 1e-4
    assert "of the draws" in done.stdout


@pytest.mark.campaign
@needs_data(EXACT)
@pytest.mark.parametrize("size", [8, 16])
def test_critical_ising_model_agrees_with_published_values(size: int) -> None:
    rows = json.loads((DATA / EXACT).read_text())["rows"]
    known: dict[float, Any] = {row["beta"]: row for row in rows if row["L"] == size}
    compared = 0
    for found in run_critical(str(size), "40000"):
        exact = next((row for beta, row in known.items() if abs(beta - found[0]) < 1e-4), None)
        if exact is not None:
            compared += 1
            assert abs(found[1] - exact["energy_per_spin"]) < 6 * found[2]
            assert abs(found[3] - exact["heat_capacity_per_spin"]) < 6 * found[4]
    assert compared >= 2
