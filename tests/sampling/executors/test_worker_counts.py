"""The bytes of threads on 1, 2, 3 and 5 real workers of Dask, fresh and resumed on another number of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.sampling.executors.dask import DaskExecutor
from tests.sampling.executors.machines import Machines
from tests.sampling.executors.running import same, sample

pytest.importorskip("distributed")
# by default, `test_dask.py` compares workers with threads
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]

# Seven chains: neither 2 nor 3 nor 5 workers have the same number of them each.
KERNELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Gibbs": (gs.ising_grid((6, 6), coupling=0.3, field=0.1), {}),
    "Gibbs, many sites at once": (gs.ising_grid((16, 16), coupling=0.3), {"scan": gs.Chromatic()}),
    "Tempered": (gs.ising_grid((4, 4), coupling=0.7), {"kernel": gs.Tempered(ladder=(0.0, 0.5, 1.0))}),
    "SwendsenWang": (gs.ising_grid((5, 5), coupling=0.4, field=0.1), {"kernel": gs.SwendsenWang()}),
    "HerdedGibbs": (gs.ising_grid((5, 5), coupling=0.3), {"kernel": gs.HerdedGibbs()}),
}
COUNTS = (1, 2, 3, 5)
FEW = ("Gibbs", "Tempered")  # of which runs go on elsewhere, too
SWEEPS = 60


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    with Machines(workers=1) as found, pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskExecutor, "block_seconds", 0.05)  # several segments
        yield found


def how(name: str) -> dict[str, Any]:
    return {"chains": 7, "warmup": 10, "sweeps": SWEEPS, **KERNELS[name][1]}


@functools.cache
def on_threads(name: str) -> gs.Result:
    """Return what one thread gives, and two."""
    model = KERNELS[name][0]
    found = sample(model, **how(name), threads=1)
    assert same(found, sample(model, **how(name), threads=2))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.mark.parametrize(
    ("names", "count"),
    [(FEW, count) for count in COUNTS]
    + [pytest.param(tuple(KERNELS), count, marks=pytest.mark.campaign) for count in COUNTS],
)
def test_numbers_of_workers_give_the_bytes_of_threads(
    names: tuple[str, ...], count: int, machines: Machines, folder: Path
) -> None:
    """Each kernel in a fresh run; besides, runs that are begun on threads go on from count to count."""
    machines.have(count)
    for name in names:
        model = KERNELS[name][0]
        assert same(on_threads(name), sample(model, **how(name), on=machines.client)), name
    for name in FEW:
        model, path = KERNELS[name][0], folder / f"{name} of {len(names)}.chk"
        resumed = {**how(name), "checkpoint": gs.Checkpoint(path, every=1e9, resume=True)}
        # a sixth of the run is made on threads, one on each number of workers, and the last on threads
        parts, part = len(COUNTS) + 2, COUNTS.index(count) + 1
        if part == 1:
            sample(model, **resumed | {"sweeps": SWEEPS // parts})
        sample(model, **resumed | {"sweeps": SWEEPS * (part + 1) // parts}, on=machines.client)
        if part == len(COUNTS):
            assert same(on_threads(name), sample(model, **resumed)), name


@pytest.mark.campaign
def test_fewer_workers_go_on(machines: Machines, folder: Path) -> None:
    """From threads to 3 workers to 5, to 2, and back to threads."""
    name, path = "Gibbs", folder / "down.chk"
    model, resumed = KERNELS[name][0], {**how(name), "checkpoint": gs.Checkpoint(path, every=1e9, resume=True)}
    sample(model, **resumed | {"sweeps": 10})
    for sweeps, count in ((20, 3), (35, 5), (50, 2)):
        machines.have(count)
        sample(model, **resumed | {"sweeps": sweeps}, on=machines.client)
    assert same(on_threads(name), sample(model, **resumed))


@pytest.mark.campaign
def test_threads_of_a_worker_share_the_rungs_of_a_chain() -> None:
    model = gs.potts_grid((6, 6), 3, 1.0)
    how = {"kernel": gs.Tempered(ladder=(0.0, 0.3, 0.6, 1.0)), "chains": 1, "sweeps": SWEEPS, "warmup": 10}
    with Machines(workers=1, threads=2) as machines:
        assert DaskExecutor(machines.client).threads_each(1) == 2
        assert same(sample(model, **how, threads=1), sample(model, **how, on=machines.client))
