"""Functions of ``gibbsite.lab.poisson.potts`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.kernels.minibatch.factors import local_energies
from gibbsite.lab.poisson.potts import distance_from_uniform, make_model


def test_make_model_returns_the_model() -> None:
    seen = local_energies(gs.graphs.compile_graph(make_model()))
    assert (round(seen.largest, 4), round(seen.total, 2)) == (5.0878, 957.13)


def test_distance_from_uniform_returns_the_mean_over_sites_of_the_euclidean_distance() -> None:
    assert distance_from_uniform(np.array([[7, 0], [1, 1]])) == 0.3535533905932738
