"""Functions of ``gibbsite.lab.herded.incomplete_graph`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.herded.incomplete_graph import make_model


def test_make_model_draws_the_energies_of_a_model() -> None:
    assert make_model(np.random.default_rng(1)).n_sites == 4
