"""Functions of ``gibbsite.learn.crf.chain`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.crf.chain import Chain, Weights, prune
from gibbsite.learn.crf.structure import Structure


def test_prune_returns_a_chain_without_the_weights_of_features_that_are_zero() -> None:
    free = Structure(np.ones((1, 1), bool), np.ones(1, bool), np.ones(1, bool), boundaries=False)
    weights = Weights(np.array([0, 1, 2]), np.zeros(2, np.uint8), free)
    small, left = prune(Chain(("O",), weights, np.array([0.0, 2.0, 0.0])))
    assert (small.x.tolist(), left.tolist()) == ([2.0, 0.0], [1])


def test_weights_whiches_weights_there() -> None:
    free = Structure(np.ones((2, 2), bool), np.ones(2, bool), np.ones(2, bool))
    assert Weights(np.array([0, 2, 3]), np.array([0, 1, 1], np.uint8), free).size == 11
