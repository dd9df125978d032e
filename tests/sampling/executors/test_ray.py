"""Chains and tasks on Ray, where it is installed."""

from __future__ import annotations

import pytest

import gibbsite as gs
from gibbsite.sampling.executors.choosing import find_executor
from gibbsite.sampling.executors.tasks import map_tasks

pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("default")


def test_workers_give_the_bytes_of_threads() -> None:
    model = gs.ising_grid((6, 6), coupling=0.3, field=0.1)
    how = {"record": ["marginals", "draws", "energy"], "sweeps": 200, "rng": 1}
    here, there = (
        gs.sample(model, **how, progress=False, criteria=gs.Criteria(dispersed_starts=False), on=on)
        for on in (None, "ray")
    )
    assert here.marginals.cells.tobytes() == there.marginals.cells.tobytes()
    assert here.draws.tobytes() == there.draws.tobytes()


def test_tasks_come_back_in_order() -> None:
    with find_executor("ray") as executor:
        assert map_tasks(executor, lambda number: number**2, list(range(9))) == [k**2 for k in range(9)]
