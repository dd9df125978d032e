"""Partitions on real workers of Dask: the same bytes as on threads, whatever happens to the workers."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.checkpoint import load_checkpoint
from gibbsite.sampling.executors.partitions import serving
from gibbsite.sampling.executors.partitions import site_executor as executor_module
from gibbsite.sampling.executors.partitions.site_executor import PartitionExecutor
from gibbsite.sampling.executors.partitions.together import TogetherExecutor
from tests.sampling.executors import running
from tests.sampling.executors.machines import Machines
from tests.sampling.executors.running import local_client, same

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.long,
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
    with local_client(5) as found:
        yield found


def sample(model: Any, **how: Any) -> gs.Result:
    return running.sample(model, **{"sweeps": 70, "chains": 2, **how})


def sample_on(client: Any, workers: int, partitions: int, model: Any, **how: Any) -> gs.Result:
    """Sample with the first of the workers, as if there were no others."""
    with pytest.MonkeyPatch.context() as patch:
        known = TogetherExecutor.workers
        patch.setattr(TogetherExecutor, "workers", lambda executor: dict(sorted(known(executor).items())[:workers]))
        return sample(model, **how, on=gs.Cluster(client, partitions))


# Chains of replicas are shared out by their rungs.
LADDER = np.linspace(0.0, 1.0, 19)  # two groups of rungs side by side
TEMPERED: dict[str, Any] = {
    "Potts": (lambda: gs.potts_grid((12, 10), 3, 0.9), gs.Tempered(ladder=LADDER)),
    "side by side": (lambda: gs.ising_grid((12, 10), coupling=0.6), gs.Tempered(ladder=LADDER)),
}

# Workers and partitions: every number of both, and every number of hosts. The campaign takes all pairs.
FEW = {
    "lattice": [(1, 7), (2, 2), (2, 3), (3, 3), (3, 7), (5, 7), (5, 1)],
    "Potts": [(2, 2), (3, 7)],
    "random graph": [(2, 2), (3, 7)],
}
ALL = {name: list(product((1, 2, 3, 5), (1, 2, 3, 7))) for name in MODELS}


@pytest.mark.parametrize(
    ("name", "pairs"), [*FEW.items(), *(pytest.param(*each, marks=pytest.mark.campaign) for each in ALL.items())]
)
def test_partitions_give_the_bytes_of_threads(client: Any, name: str, pairs: list[tuple[int, int]]) -> None:
    model = MODELS[name]()
    alone = sample(model)
    for workers, partitions in pairs:
        assert same(alone, sample_on(client, workers, partitions, model)), (workers, partitions)
    patience = time.monotonic() + 60.0
    while set(client.run(lambda: len(serving._OPENED)).values()) != {0}:  # nothing stays behind for long
        assert time.monotonic() < patience
        time.sleep(0.1)


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_where_blocks_end_does_not_matter(client: Any, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionExecutor, "block_seconds", seconds)
    model = MODELS["lattice"]()
    how: dict[str, Any] = {"sweeps": gs.Sweeps(30, thin=2), "record": gs.Marginals(rao_blackwell=False)}
    assert same(sample(model, **how), sample(model, **how, on=gs.Cluster(client, partitions=2)))


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("Potts", [(2, 2), (3, 7)]),
        *(
            pytest.param(name, [one, other], marks=pytest.mark.campaign)
            for name in MODELS
            for one, other in (((1, 7), (5, 7)), ((5, 7), (2, 3)), ((3, 3), (1, 1)), ((3, 7), (5, 2)))
        ),
    ],
)
def test_a_run_goes_on_elsewhere(client: Any, tmp_path: Path, name: str, places: list[tuple[int, int]]) -> None:
    """Begun on threads, continued in partitions, then on other workers, ended on threads."""
    model, path = MODELS[name](), tmp_path / "run.chk"
    how: dict[str, Any] = {"checkpoint": gs.Checkpoint(path, resume=True), "warmup": 20}
    sample(model, sweeps=20, **how)
    for number, (workers, partitions) in enumerate(places):
        sample_on(client, workers, partitions, model, sweeps=40 + 20 * number, **how)
    assert same(sample(model, warmup=20, sweeps=80), sample(model, sweeps=80, **how))


@pytest.mark.parametrize("name", TEMPERED)
def test_rungs_give_the_bytes_of_threads(client: Any, tmp_path: Path, name: str) -> None:
    """On other workers in other shares; and a run that is begun on threads, and ended there."""
    make, kernel = TEMPERED[name]
    model, path = make(), tmp_path / "run.chk"
    how: dict[str, Any] = {"kernel": kernel, "warmup": 20}
    saved = {"checkpoint": gs.Checkpoint(path, resume=True), **how}
    alone = sample(model, sweeps=80, **how)
    assert same(alone, sample_on(client, 3, 3, model, sweeps=80, **how))
    sample(model, sweeps=20, **saved)
    for workers, partitions, sweeps in ((2, 2, 40), (5, 7, 60), (1, 3, 70)):
        sample_on(client, workers, partitions, model, sweeps=sweeps, **saved)
    assert same(alone, sample(model, sweeps=80, **saved))


def test_what_depends_on_all_sites(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Energies and functions of states: begun on threads, continued in partitions with room for few draws."""
    monkeypatch.setattr(executor_module, "_KEPT_BYTES", 10_000)
    record = ["marginals", "energy", "best", gs.Draws(["3", "4000"]), gs.recorders.Magnetisation()]
    model, path = MODELS["lattice"](), tmp_path / "run.chk"
    how: dict[str, Any] = {"warmup": 20, "record": record}
    saved = {"checkpoint": gs.Checkpoint(path, resume=True), **how}
    sample(model, sweeps=20, **saved)
    sample_on(client, 2, 3, model, sweeps=60, **saved)
    assert same(sample(model, sweeps=80, **how), sample(model, sweeps=80, **saved))


def test_a_function_that_fails(client: Any) -> None:
    """The draw at which it fails is the one at which it fails on threads."""
    model = MODELS["lattice"]()
    how = {"record": gs.Observable("root", lambda x: math.sqrt(x.sum() + 100.0)), "chains": 1}
    said = []
    for place in (None, gs.Cluster(client, partitions=2)):
        with pytest.raises(gs.errors.SamplingError, match="recorder 'root'") as wrong:
            sample(model, **how, on=place)
        said.append(str(wrong.value))
    assert said[0] == said[1]


def test_a_part_of_a_sweep_is_made_at_last(client: Any) -> None:
    model = MODELS["Potts"]()
    whole = {"warmup": 20, "sweeps": gs.Steps(20 * model.n_sites + 100)}
    assert same(sample(model, **whole), sample(model, **whole, on=gs.Cluster(client, partitions=2)))


def test_a_client_that_cannot_reach_workers(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded comes by way of the scheduler, and is the same."""
    monkeypatch.setattr(executor_module, "call_all", lambda *given: None)
    model = MODELS["Potts"]()
    assert same(sample(model), sample(model, on=gs.Cluster(client, partitions=2)))


def test_wrong_numbers_are_noticed(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose numbers have another checksum than it says is dropped, and they are made again."""
    fill, dropped = executor_module._fill, []

    def fill_wrongly(*given: Any) -> tuple[int, int]:
        found, said = fill(*given)
        return (found, said) if dropped else (found ^ 1, said)

    monkeypatch.setattr(executor_module, "_fill", fill_wrongly)
    monkeypatch.setattr(PartitionExecutor, "drop", lambda executor, worker: dropped.append(worker))
    model = MODELS["lattice"]()
    assert same(sample(model), sample(model, on=gs.Cluster(client, partitions=2)))
    assert len(dropped) == 1


def test_a_run_that_cannot_go_on_keeps_what_came_here(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are lost again and again: the checkpoint is of the last moment when everything was here."""
    model, path = MODELS["lattice"](), tmp_path / "run.chk"
    fetch, fetched = PartitionExecutor._fetch, []

    def fetch_twice(executor: PartitionExecutor, chains: Any) -> bool:
        fetched.append(0)
        return len(fetched) <= 2 and fetch(executor, chains)

    monkeypatch.setattr(PartitionExecutor, "block_seconds", 0.0)
    monkeypatch.setattr(executor_module, "_SHARE", math.inf)
    monkeypatch.setattr(executor_module, "MOST_ATTEMPTS", 2)
    monkeypatch.setattr(PartitionExecutor, "_fetch", fetch_twice)
    how: dict[str, Any] = {"checkpoint": gs.Checkpoint(path, resume=True), "warmup": 0, "sweeps": 50}
    with pytest.raises(gs.errors.SamplingError, match="lost 2 times"):
        sample(model, **how, on=gs.Cluster(client, partitions=2))
    _, arrays = load_checkpoint(path)
    assert 0 < int(arrays["0/tape/counters"][0]) < 50
    assert same(sample(model, warmup=0, sweeps=50), sample(model, **how))


SHARED = pytest.mark.parametrize(
    ("model", "kernel", "sweeps"),
    [
        (gs.ising_grid((300, 300), coupling=0.3), None, 3000),
        (gs.potts_grid((60, 60), 3, 0.9), gs.Tempered(ladder=np.linspace(0.0, 1.0, 7)), 1500),
    ],
    ids=["sites", "rungs"],
)


@SHARED
def test_killed_workers_change_nothing(model: Any, kernel: Any, sweeps: int) -> None:
    """Workers are killed three times while a run goes on; its block is made again each time."""
    how: dict[str, Any] = {"kernel": kernel, "sweeps": sweeps, "chains": 2}
    undisturbed = sample(model, **how)
    with Machines(workers=2) as machines, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TogetherExecutor, "block_seconds", 0.5)
        over, killed = threading.Event(), []

        def kill() -> None:
            while len(killed) < 3 and not over.wait(1.0):
                machines.replace_worker(len(killed) % 2)
                killed.append(0)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            disturbed = sample(model, **how, on=gs.Cluster(machines.client, partitions=2))
        finally:
            over.set()
            killer.join()
    assert len(killed) == 3
    assert same(undisturbed, disturbed)


@pytest.mark.campaign
@pytest.mark.parametrize("what", ["a silent worker", "another scheduler"])
@SHARED
def test_a_cluster_that_is_not_well(what: str, model: Any, kernel: Any, sweeps: int) -> None:
    """A worker that is stopped is done without; a scheduler that is started again is waited for."""
    how: dict[str, Any] = {"kernel": kernel, "sweeps": sweeps, "chains": 2}
    undisturbed = sample(model, **how)
    with Machines(workers=2) as machines, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TogetherExecutor, "block_seconds", 0.5)
        patch.setattr("gibbsite.sampling.executors.dask.SILENCE", 3.0)
        done: list[int] = []

        def disturb() -> None:
            time.sleep(4.0)
            if what == "a silent worker":
                os.kill(machines.workers[0].pid, signal.SIGSTOP)
            else:
                machines.replace_scheduler(1.0)
            done.append(0)

        disturber = threading.Thread(target=disturb)
        disturber.start()
        disturbed = sample(model, **how, on=gs.Cluster(machines.client, partitions=2))
        early = not done
        disturber.join()
    assert not early
    assert same(undisturbed, disturbed)


@pytest.mark.parametrize(
    ("model", "how", "said"),
    [
        (gs.ising_grid((80, 80)), {"scan": gs.Systematic()}, "layout \\('plain'\\)"),
        (gs.ising_grid((5, 5)), {}, "has 25 sites, too few for a partitioned run"),
        (gs.ising_grid((20, 20)), {}, r"and this one has 400\. Give scan as gs\.Chromatic\(\)"),
        (gs.ising_grid((80, 80)), {"chains": 16}, "layout \\('arranged'\\)"),
        (gs.ising_grid((80, 80)), {"scan": gs.Chromatic(), "kernel": gs.AnnealedGibbs()}, "another layout"),
        (
            gs.ising_grid((5, 5)),
            {"kernel": gs.kernels.PairedTempered(ladder=LADDER)},
            "PairedTempered cannot be shared",
        ),
    ],
)
def test_what_cannot_be_partitioned(client: Any, model: Any, how: Any, said: str) -> None:
    with pytest.raises(gs.errors.IncompatibleError, match=said):
        sample(model, **how, on=gs.Cluster(client, partitions=2))


def test_partitions_need_workers(client: Any) -> None:
    for on in (None, "ray"):
        with pytest.raises(gs.errors.ArgumentError, match="workers of a Dask cluster"):
            sample(gs.ising_grid((80, 80)), on=gs.Cluster(on, partitions=2))
    with pytest.raises(gs.errors.ArgumentError, match="at least 1"):
        sample(gs.ising_grid((80, 80)), on=gs.Cluster(client, partitions=0))
