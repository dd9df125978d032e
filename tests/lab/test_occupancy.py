"""Functions of ``gibbsite.lab.occupancy`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.lab.occupancy import watch


def test_watch_follows_chains_from_equal_values_everywhere_and_measure_their_counts() -> None:
    model = gs.potts_grid((3, 3), states=2, coupling=0.1)
    seen = watch(model, gs.Gibbs(), np.array([1, 20_000]), lambda n: n[0, 0] / n[0].sum(), cells=2)
    assert bool(seen.errors[0, 0] > 0.9 > 0.6 > seen.errors[0, 1] > 0.4)
