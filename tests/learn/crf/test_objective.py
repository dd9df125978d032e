"""Functions of ``gibbsite.learn.crf.objective`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.crf.objective import Weights
from gibbsite.learn.crf.structure import Structure


def test_weights_whiches_weights_there() -> None:
    free = Structure(np.ones((2, 2), bool), np.ones(2, bool), np.ones(2, bool))
    assert Weights(np.array([0, 2, 3]), np.array([0, 1, 1], np.uint8), free).size == 11
