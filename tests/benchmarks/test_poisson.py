"""The benchmark of Poisson-Gibbs times what it says, and its machinery runs."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from benchmarks import poisson
from benchmarks.loop import mover
from gibbsite.kernels.minibatch.factors import local_energies


def test_the_model_is_that_of_the_paper() -> None:
    model = poisson.dense_potts(20)
    assert round(local_energies(gs.graphs.compile_graph(model, "potts")).largest, 4) == 5.0878
    assert 5.0878 <= local_energies(gs.graphs.compile_graph(model, "distance")).largest < 5.1


def test_movers_move() -> None:
    model = poisson.dense_potts(6)
    for move in (
        mover(model, gs.PoissonGibbs(2.0), kind="distance"),
        mover(model, gs.Gibbs(), kind="distance"),
        poisson.numpy_mover(model, 2.0),
    ):
        move(50)
    assert poisson.grid(3).shape == (9, 2)
    assert np.isfinite(poisson.megabytes(6))
