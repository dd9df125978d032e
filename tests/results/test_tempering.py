"""Estimates of log Z and their standard errors: on random models, errors in units of the standard error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gibbsite as gs


def random_model(rng: np.random.Generator) -> gs.FactorGraph:
    """Return a model of six to ten two-state sites with strong couplings of either sign, and fields."""
    n = int(rng.integers(6, 11))
    strength = rng.uniform(0.3, 1.2)
    couplings = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.5), 1)
    return gs.ising(strength * couplings, 0.3 * rng.normal(size=n))


def pulls(models: int, seed: int) -> np.ndarray:
    """Return (estimate - exact) / standard error on a number of models."""
    rng, found = np.random.default_rng(seed), []
    for number in range(models):
        model = random_model(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.ConvergenceWarning)
            run = gs.sample(
                model,
                gs.Tempered(),
                sweeps=2000,
                rng=number,
                progress=False,
                threads=1,
                criteria=gs.Criteria(dispersed_starts=False),
            )
        found.append((run.log_z - gs.solve_exact(model).log_z) / run.log_z_error)
    return np.array(found)


def check(found: np.ndarray, sigmas: float) -> None:
    """Compare mean and variance with those of a standard normal, whose errors are 1/sqrt(m), sqrt(2/m)."""
    m = found.size
    assert abs(found.mean()) < sigmas / np.sqrt(m), (found.mean(), found.std())
    # standard errors are themselves estimated, by a few per cent
    assert abs(found.var() - 1.0) < sigmas * np.sqrt(2.0 / m) + 0.1, (found.mean(), found.std())


def test_errors_of_log_z_are_calibrated() -> None:
    check(pulls(60, seed=1), sigmas=5.0)


@pytest.mark.campaign
def test_errors_of_log_z_are_calibrated_on_200_models() -> None:
    check(pulls(200, seed=2), sigmas=3.0)
