"""Random starts have positive density, also where data force discrete unknowns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs

FOLDER = Path(__file__).parents[3] / "examples" / "bugs"


@pytest.mark.parametrize("name", ["capture", "occupancy"])
def test_states_that_must_be_one_have_starts(name: str) -> None:
    """Every place where an animal was seen is inhabited, and an animal that is seen later is alive until then."""
    model = gs.bugs(FOLDER / f"{name}.bug", FOLDER / f"{name}-data.json", "p")
    result = model.sample(sweeps=50, rng=1, progress=False)
    assert 0.0 < result.statistics("p")["p"]["mean"] < 1.0


def test_starts_lie_in_the_intervals_that_were_observed() -> None:
    text = """model {
       for (i in 1:4) { seen[i] ~ dinterval(t[i], cut[i,])  t[i] ~ dnorm(m, 1) }
       m ~ dnorm(0, 1)
    }"""
    cut = [[5.0, 9.0], [20.0, 20.5], [-30.0, 0.0], [3.0, 4.0]]
    model = gs.bugs(text, {"cut": cut, "seen": [2, 1, 0, 1]}, "t")
    for seed in range(20):
        start = model.draw_start(np.random.default_rng(seed))
        t = start[[model.index(f"t[{k}]") for k in (1, 2, 3, 4)]]
        assert t[0] > 9.0 and 20.0 < t[1] <= 20.5 and t[2] <= -30.0 and 3.0 < t[3] <= 4.0
