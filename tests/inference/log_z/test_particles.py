"""Particles between a product law and a model: unbiased weights, brackets, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.log_z.particles import bound_log_mean, choose_evenly


def models() -> dict[str, gs.FactorGraph]:
    zeros = [(("a", "b"), [[1.0, 0.0], [0.5, 2.0]]), (("b", "c"), [[0.3, 1.0], [1.0, 0.0]])]
    return {
        "two modes": gs.ising_grid((3, 3), coupling=0.9, field=0.05),
        "zeros": gs.FactorGraph({"a": 2, "b": 2, "c": 2}, zeros),
    }


@pytest.mark.parametrize("name", models())
def test_weights_are_unbiased_and_bounds_hold(name: str) -> None:
    """Of 400 particles of few steps the mean weight is Z, within five standard errors."""
    model = models()[name]
    exact = gs.solve_exact(model).log_z
    found = gs.log_z.annealed_importance(model, steps=8, particles=400, rng=1)
    weights = np.exp(found.forward - exact)
    assert abs(weights.mean() - 1.0) < 5 * weights.std() / math.sqrt(400)
    assert found.converged
    assert found.lower < exact < found.upper
    assert found.gap < 2.0
    assert found.lower < found.log_z
    if name != "zeros":  # where softened states that the model excludes make backward weights too small
        back = np.exp(found.backward + exact)
        assert abs(back.mean() - 1.0) < 6 * back.std() / math.sqrt(400)


@pytest.mark.parametrize("name", models())
def test_particles_that_multiply(name: str) -> None:
    model = models()[name]
    found = gs.log_z.particle_log_z(model, steps=12, particles=100, repeats=8, rng=3)
    # seven degrees of freedom: t beyond 12 has a probability below 1e-5, twice over
    assert abs(found.log_z - gs.solve_exact(model).log_z) < 12 * found.log_z_error < 3.0
    again = gs.log_z.particle_log_z(model, steps=12, particles=100, repeats=8, rng=3)
    assert (found.estimates == again.estimates).all()


def test_bounds_do_not_cross_and_are_shown_in_a_line() -> None:
    """Two estimates of log Z would cross in nearly half of all runs; bounds that hold do not."""
    model = gs.ising_grid((4, 4), coupling=0.3, periodic=True)
    exact = gs.solve_exact(model).log_z
    for seed in range(8):
        found = gs.log_z.annealed_importance(model, steps=40, particles=32, sweeps=400, rng=seed)
        assert found.lower < exact < found.upper < found.lower + 2.5
        assert len(repr(found)) < 160 and "with probability 0.95 between" in repr(found)


def test_the_lower_bound_of_a_mean_holds_for_any_law() -> None:
    """Logarithms of weights with deviations of 0.1 to 4, so that few decide: it fails in 0.05 at most.

    A binomial number of 400 with probability 0.05 exceeds 45 with a probability below 1e-6.
    """
    rng = np.random.default_rng(1)
    for deviation in (0.1, 1.0, 2.5, 4.0):
        logs = rng.normal(-(deviation**2) / 2, deviation, (400, 64))
        bounds = np.array([bound_log_mean(row, 0.05) for row in logs])
        assert (bounds > 0.0).sum() <= 45
    assert bound_log_mean(np.zeros(64), 0.05) > -0.1
    assert bound_log_mean(np.array([0.0, -np.inf]), 0.05) > -5.0


def test_every_particle_goes_on_as_often_as_its_share_says() -> None:
    rng = np.random.default_rng(1)
    weights = rng.random(50)
    counts = np.mean([np.bincount(choose_evenly(weights, rng), minlength=50) for _ in range(2000)], axis=0)
    assert counts == pytest.approx(50 * weights / weights.sum(), abs=5 * 0.5 / math.sqrt(2000))


def test_bad_input() -> None:
    model = models()["zeros"]
    with pytest.raises(gs.errors.ArgumentError, match="steps"):
        gs.log_z.annealed_importance(model, steps=0)
    with pytest.raises(gs.errors.ArgumentError, match="confidence must be a number between 0 and 1"):
        gs.log_z.annealed_importance(model, confidence=95)
    with pytest.raises(gs.errors.ArgumentError, match="particles"):
        gs.log_z.particle_log_z(model, particles=1)
    with pytest.raises(gs.errors.IncompatibleError, match="models of states"):
        gs.log_z.particle_log_z(gs.Gaussian(covariance=np.eye(2)))  # type: ignore[arg-type]


def test_estimates_are_answers_that_are_saved_and_loaded(tmp_path: Path) -> None:
    model = gs.ising_grid((3, 3), coupling=0.3)
    annealed = gs.log_z.annealed_importance(model, steps=10, particles=16, sweeps=200, rng=1)
    sequential = gs.log_z.particle_log_z(model, steps=10, particles=16, rng=1)
    for number, found in enumerate((annealed, sequential)):
        gs.save(found, tmp_path / f"{number}.npz")
        again = gs.load(tmp_path / f"{number}.npz")
        assert again.log_z == found.log_z
        assert again.diagnostics.figures == found.diagnostics.figures
        assert f"log Z {found.log_z:.10g}" in found.summary()
    assert annealed.converged is False and "tempered run for the upper bound" in annealed.reasons[0]
    assert sequential.log_z_error is not None and sequential.converged is None
