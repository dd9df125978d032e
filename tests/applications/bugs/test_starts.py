"""Random starts have positive density, also where data force discrete unknowns."""

from __future__ import annotations

from pathlib import Path

import pytest

import gibbsite as gs

FOLDER = Path(__file__).parents[3] / "examples" / "bugs"


@pytest.mark.parametrize("name", ["capture", "occupancy"])
def test_states_that_must_be_one_have_starts(name: str) -> None:
    """Every place where an animal was seen is inhabited, and an animal that is seen later is alive until then."""
    model = gs.bugs(FOLDER / f"{name}.bug", FOLDER / f"{name}-data.json", "p")
    result = model.sample(sweeps=50, rng=1, progress=False)
    assert 0.0 < result.statistics("p")["p"]["mean"] < 1.0
