"""Partitions on real workers of Dask: the same bytes as on threads, whatever happens to the workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.scale.partitions import crew as crew_module
from gibbsite.scale.partitions.crew import PartitionedCrew
from tests.scale.machines import Machines

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning"),
]


def random_graph() -> gs.FactorGraph:
    rng = np.random.default_rng(5)
    pairs = np.unique(np.sort(rng.integers(0, 4500, (9000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return gs.ising((pairs[:, 0], pairs[:, 1], rng.normal(0, 0.3, len(pairs))))


MODELS: dict[str, Any] = {
    "lattice": lambda: gs.ising_grid((70, 61), coupling=0.3),
    "Potts": lambda: gs.potts_grid((67, 64), 3, 0.5),
    "random graph": random_graph,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def sample(model: Any, **how: Any) -> gs.Result:
    kernel = how.pop("kernel", None)
    options = {"sweeps": 70, "rng": 3, "progress": False, "second_look": False, "chains": 2, **how}
    return gs.sample(model, kernel, **options)


def same(one: gs.Result, other: gs.Result) -> bool:
    return bool(
        one.marginals.cells.tobytes() == other.marginals.cells.tobytes()
        and one.mcse.cells.tobytes() == other.mcse.cells.tobytes()
        and one.diagnostics.line() == other.diagnostics.line()
    )


@pytest.mark.parametrize("name", MODELS)
def test_partitions_give_the_bytes_of_threads(client: Any, name: str) -> None:
    model = MODELS[name]()
    alone = sample(model)
    for partitions in (1, 2, 3, 7):
        assert same(alone, sample(model, on=client, partitions=partitions)), partitions
    patience = time.monotonic() + 60.0
    while set(client.run(lambda: len(crew_module._OPENED)).values()) != {0}:  # nothing stays behind for long
        assert time.monotonic() < patience
        time.sleep(0.1)


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_where_blocks_end_does_not_matter(
    client: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartitionedCrew, "block_seconds", seconds)
    model = MODELS["lattice"]()
    how: dict[str, Any] = {"sweeps": 30, "thin": 2, "record": gs.Marginals(rao_blackwell=False)}
    assert same(sample(model, **how), sample(model, **how, on=client, partitions=2))


def test_a_run_goes_on_elsewhere(client: Any, tmp_path: Path) -> None:
    """Begun on threads, continued in partitions, then in others, ended on threads; with a part of a sweep."""
    model, path = MODELS["Potts"](), tmp_path / "run.chk"
    how: dict[str, Any] = {"checkpoint": path, "warmup": 20, "resume": True, "sweeps": None}
    n = model.n_sites
    sample(model, steps=20 * n, **how)
    sample(model, steps=40 * n, **how, on=client, partitions=2)
    sample(model, steps=60 * n, **how, on=client, partitions=3)
    assert same(sample(model, warmup=20, steps=80 * n, sweeps=None), sample(model, steps=80 * n, **how))
    whole = {"warmup": 20, "steps": 20 * n + 100, "sweeps": None}
    assert same(sample(model, **whole), sample(model, **whole, on=client, partitions=2))


def test_killed_workers_change_nothing() -> None:
    """Workers are killed three times while a run goes on; its block is made again each time."""
    model = gs.ising_grid((300, 300), coupling=0.3)
    how: dict[str, Any] = {"sweeps": 3000, "chains": 2}
    undisturbed = sample(model, **how)
    with Machines(workers=2) as machines, pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartitionedCrew, "block_seconds", 0.5)
        over, killed = threading.Event(), []

        def kill() -> None:
            while len(killed) < 3 and not over.wait(1.0):
                machines.replace_worker(len(killed) % 2)
                killed.append(0)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            disturbed = sample(model, **how, on=machines.client, partitions=2)
        finally:
            over.set()
            killer.join()
    assert len(killed) == 3
    assert same(undisturbed, disturbed)


@pytest.mark.parametrize(
    ("model", "how", "said"),
    [
        (gs.ising_grid((80, 80)), {"scan": gs.Systematic()}, "layout \\('plain'\\)"),
        (gs.ising_grid((5, 5)), {}, "layout \\('plain'\\)"),
        (gs.ising_grid((80, 80)), {"chains": 16}, "layout \\('arranged'\\)"),
        (gs.ising_grid((80, 80)), {"scan": gs.Chromatic(), "kernel": gs.HerdedGibbs()}, "another layout"),
        (gs.ising_grid((80, 80)), {"record": ["marginals", "energy"]}, "records marginals only"),
    ],
)
def test_what_cannot_be_partitioned(client: Any, model: Any, how: Any, said: str) -> None:
    with pytest.raises(gs.IncompatibleError, match=said):
        sample(model, **how, on=client, partitions=2)


def test_partitions_need_workers(client: Any) -> None:
    for on in (None, "ray"):
        with pytest.raises(gs.ArgumentError, match="workers of a Dask cluster"):
            sample(gs.ising_grid((80, 80)), on=on, partitions=2)
    with pytest.raises(gs.ArgumentError, match="at least 1"):
        sample(gs.ising_grid((80, 80)), on=client, partitions=0)
