"""Chains on Ray, where it is installed."""

from __future__ import annotations

import pytest

import gibbsite as gs

pytest.importorskip("ray")


@pytest.mark.filterwarnings("default")
def test_workers_give_the_bytes_of_threads() -> None:
    model = gs.ising_grid((6, 6), coupling=0.3, field=0.1)
    here, there = (
        gs.sample(model, sweeps=200, rng=1, progress=False, second_look=False, on=on) for on in (None, "ray")
    )
    assert here.marginals.cells.tobytes() == there.marginals.cells.tobytes()
