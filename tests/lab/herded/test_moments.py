"""Functions of ``gibbsite.lab.herded.moments`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.herded.moments import _all_features, _draw, envelope


def test_envelope_returns_the_largest_error_from_a_length_on() -> None:
    assert envelope(np.array([5.0, 1.0, 3.0, 2.0]), [1, 2, 4]).tolist() == [5.0, 3.0, 2.0]


def test_features_of_a_model_have_its_probabilities_as_means() -> None:
    model = gs.ising_grid((2, 2), coupling=0.3, field=0.1)
    features, law = _all_features(model)
    assert features.shape == (16, 4 * 4 + 4 * 2)  # four pairs and four sites
    assert (features.sum(axis=1) == 8).all()
    exact, means, at = gs.solve_exact(model), law @ features / law.sum(), 0
    for group in model.groups:
        for scope in group.scopes.tolist():
            joint = exact.joint(*scope).ravel(order="F")  # the first site of a scope changes fastest
            np.testing.assert_allclose(means[at : at + joint.size], joint, atol=1e-12)
            at += joint.size


def test_random_draws_have_errors_of_chance() -> None:
    law = np.array([0.25, 0.75])
    errors = _draw(np.eye(2), law, 1000, np.array([100, 1000]), np.random.default_rng(1))
    assert 0.0 <= errors[1] < 0.1
