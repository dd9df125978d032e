"""Whole runs as tasks of real workers: the results of this process, in its order."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.sampling.executors.choosing import find_executor
from gibbsite.sampling.executors.tasks import map_tasks
from tests.sampling.executors.machines import Machines

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    with Machines(workers=2) as found:
        yield found


def test_results_come_in_order_and_are_taken_as_they_come(machines: Machines) -> None:
    seeds, taken = list(range(7)), dict[int, bytes]()

    def cells(seed: int) -> bytes:
        model = gs.ising_grid((5, 5), coupling=0.3)
        found = gs.sample(
            model, sweeps=50, rng=seed, threads=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
        )
        return bytes(found.marginals.cells.tobytes())

    with find_executor(machines.client) as executor:
        found = map_tasks(executor, lambda seed: (os.getpid(), cells(seed)), seeds)
        again = map_tasks(executor, cells, seeds, take=taken.__setitem__)
    assert [each for _, each in found] == again == map_tasks(None, cells, seeds)
    assert taken == dict(zip(seeds, again, strict=True))
    assert {process for process, _ in found} <= {worker.pid for worker in machines.workers}


def test_errors_of_tasks_are_reported(machines: Machines) -> None:
    def refuse(seed: int) -> None:
        raise gs.errors.ArgumentError(f"There is no {seed}.")

    with find_executor(machines.client) as executor, pytest.raises(gs.errors.ArgumentError, match=r"There is no 1\."):
        map_tasks(executor, refuse, [1])


def test_tasks_that_are_lost_are_made_again(machines: Machines, tmp_path: Path) -> None:
    """A worker is killed when it has begun; the task finds the sign that it was begun, and ends."""
    began = tmp_path / "began"

    def wait(item: int) -> int:
        import time
        from pathlib import Path

        sign = Path(str(began))
        if not sign.exists():
            sign.write_text(str(os.getpid()))
            time.sleep(600)
        return 2 * item

    def kill() -> None:
        while not began.exists() or not began.read_text():
            threading.Event().wait(0.05)
        number = [worker.pid for worker in machines.workers].index(int(began.read_text()))
        machines.replace_worker(number)

    killer = threading.Thread(target=kill)
    killer.start()
    with find_executor(machines.client) as executor:
        assert map_tasks(executor, wait, [1, 2, 3]) == [2, 4, 6]
    killer.join()


@pytest.mark.campaign
def test_the_lab_finds_the_same(machines: Machines) -> None:
    here, there = (
        gs.lab.run("herded-discrepancy", quick=True, progress=False, on=on) for on in (None, machines.client)
    )
    told, same = here.to_dict(), there.to_dict()
    del told["seconds"], same["seconds"]
    assert told == same
