"""Particles between a product law and a model: unbiased weights, brackets, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.partition.sequential import choose_evenly


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
    found = gs.annealed_importance(model, steps=8, particles=400, rng=1)
    weights = np.exp(found.forward - exact)
    assert abs(weights.mean() - 1.0) < 5 * weights.std() / math.sqrt(400)
    assert found.converged
    assert found.upper > exact - 1.0
    assert found.lower < exact + 1.0
    assert found.gap < 2.0
    if name != "zeros":  # where softened states that the model excludes make backward weights too small
        back = np.exp(found.backward + exact)
        assert abs(back.mean() - 1.0) < 6 * back.std() / math.sqrt(400)


@pytest.mark.parametrize("name", models())
def test_particles_that_multiply(name: str) -> None:
    model = models()[name]
    found = gs.particle_log_z(model, steps=12, particles=100, repeats=8, rng=3)
    # seven degrees of freedom: t beyond 12 has a probability below 1e-5, twice over
    assert abs(found.log_z - gs.solve_exact(model).log_z) < 12 * found.log_z_error < 3.0
    again = gs.particle_log_z(model, steps=12, particles=100, repeats=8, rng=3)
    assert (found.estimates == again.estimates).all()


def test_every_particle_goes_on_as_often_as_its_share_says() -> None:
    rng = np.random.default_rng(1)
    weights = rng.random(50)
    counts = np.mean([np.bincount(choose_evenly(weights, rng), minlength=50) for _ in range(2000)], axis=0)
    assert counts == pytest.approx(50 * weights / weights.sum(), abs=5 * 0.5 / math.sqrt(2000))


def test_bad_input() -> None:
    model = models()["zeros"]
    with pytest.raises(gs.ArgumentError, match="steps"):
        gs.annealed_importance(model, steps=0)
    with pytest.raises(gs.ArgumentError, match="particles"):
        gs.particle_log_z(model, particles=1)
    with pytest.raises(gs.IncompatibleError, match="models of states"):
        gs.particle_log_z(gs.Gaussian(covariance=np.eye(2)))  # type: ignore[arg-type]
