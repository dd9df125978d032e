"""Chains on real workers of Dask: the same bytes as on threads, whatever happens to the workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import alone
from gibbsite.sampling.executors import dask as dask_module
from gibbsite.sampling.executors import remote as executor_module
from gibbsite.sampling.executors.dask import DaskExecutor
from gibbsite.sampling.executors.partitions.together import TogetherExecutor
from gibbsite.sampling.executors.remote import RemoteExecutor, Returned
from gibbsite.sampling.executors.segment import Done, checksum, cut_segment, join_segment, move_segment
from gibbsite.sampling.executors.warming import Warmed, warm_up
from gibbsite.sampling.setup import Recipe
from gibbsite.sampling.sweep import sweep_chain
from gibbsite.sampling.tape import BATCHES
from tests.sampling.executors.machines import Machines
from tests.sampling.executors.running import local_client, same, sample

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")

KERNELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "one after another": (gs.ising_grid((6, 6), coupling=0.3, field=0.1), {}),
    "many at once": (gs.ising_grid((70, 70), coupling=0.3), {"sweeps": 60}),
    "side by side": (gs.ising_grid((8, 8), coupling=0.3), {"chains": 20}),
    "draws and energies": (gs.potts_grid((4, 4), 3, 0.5), {"record": ["draws", "energy", "pairs"]}),
    "herded": (gs.ising_grid((5, 5), coupling=0.3), {"kernel": gs.HerdedGibbs()}),
    "blocks": (gs.ising_grid((5, 5), coupling=0.6), {"kernel": gs.BlockGibbs()}),
    "tempered": (gs.ising_grid((4, 4), coupling=0.7), {"kernel": gs.Tempered(ladder=(0.0, 0.5, 1.0))}),
    "bugs": (
        gs.bugs("model { for (i in 1:2) { y[i] ~ dnorm(m, t) }  m ~ dnorm(0, 1)  t ~ dexp(1) }", {"y": [1, 2]}),
        {"record": ["marginals", "draws"]},
    ),
    "minibatch": (gs.potts_grid((4, 4), 3, 0.5), {"kernel": gs.PoissonGibbs()}),
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with local_client(2) as found:
        yield found


@pytest.mark.parametrize("name", KERNELS)
def test_workers_give_the_bytes_of_threads(client: Any, name: str) -> None:
    model, how = KERNELS[name]
    assert same(sample(model, **how), sample(model, **how, on=client))


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_where_segments_end_does_not_matter(client: Any, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model, how = KERNELS["draws and energies"]
    monkeypatch.setattr(DaskExecutor, "block_seconds", seconds)
    here, there = sample(model, sweeps=12, **how), sample(model, sweeps=12, **how, on=client)
    assert same(here, there)
    assert here.draws.tobytes() == there.draws.tobytes()


@pytest.mark.parametrize("rounds", [pytest.param(1, marks=pytest.mark.campaign), 7, 300, 2000])
@pytest.mark.parametrize("kernel", [gs.Gibbs(), gs.HerdedGibbs()])
def test_means_of_batches_are_merged_as_on_threads(rounds: int, kernel: Any) -> None:
    """Segments that merge none, some, or all of the means there are, once or several times."""
    recipe = Recipe(gs.ising_grid((3, 3), coupling=0.3), kernel, gs.Systematic(), None, 1)
    form = recipe.lay_out().layout
    parameters, schedule, n = kernel.parameters(form.moving), form.schedule(), form.graph.n_units
    whole, parts = ((form.start([np.zeros(9, form.graph.state_dtype)], [stream(1, 0)]), form.tape(1)) for _ in range(2))
    for done in range(0, 6000, rounds):
        many = min(rounds, 6000 - done)
        segment = cut_segment(*parts, 1, many, n, True, 1)
        parts = join_segment(move_segment(repr(kernel), recipe, segment), *parts)
    sweep_chain(parameters, form.arrays(1), schedule, *whole, 6000, n, True, alone())
    batches = int(whole[1].counters[BATCHES])
    assert whole[1].counters.tolist() == parts[1].counters.tolist()
    assert whole[1].trace[:batches].tobytes() == parts[1].trace[:batches].tobytes()
    assert whole[1].total.tobytes() == parts[1].total.tobytes()
    assert whole[1].pulse[: batches // 8].tobytes() == parts[1].pulse[: batches // 8].tobytes()
    assert whole[0].x.tobytes() == parts[0].x.tobytes()


def test_a_run_goes_on_elsewhere(client: Any, tmp_path: Path) -> None:
    """Begun on threads, continued on workers, ended on threads."""
    model, path = gs.ising_grid((6, 6), coupling=0.3, field=0.1), tmp_path / "run.chk"
    how: dict[str, Any] = {"checkpoint": gs.Checkpoint(path, resume=True), "warmup": 20}
    sample(model, sweeps=50, **how)
    sample(model, sweeps=120, **how, on=client)
    assert same(sample(model, sweeps=200, warmup=20), sample(model, sweeps=200, **how))


def test_nothing_of_a_run_stays_with_the_scheduler(client: Any) -> None:
    """Dask logs the messages to each worker, with the states that they carry."""

    def sent(dask_scheduler: Any) -> list[str]:
        logs = [comm.recent_message_log for comm in dask_scheduler.stream_comms.values()]
        return [str(each) for log in logs for batch in log for each in batch if each["op"] == "compute-task"]

    client.submit(len, "abc").result()
    assert client.run_on_scheduler(sent) != []  # there is such a log
    sample(gs.ising_grid((6, 6)), on=client)
    assert client.run_on_scheduler(sent) == []


@pytest.mark.long
def test_killed_workers_change_nothing() -> None:
    """Workers are killed three times while a run goes on; each costs the segment it was at."""
    model = gs.ising_grid((60, 60), coupling=0.3, field=0.1)
    how: dict[str, Any] = {"sweeps": 24_000, "scan": gs.Systematic()}
    undisturbed = sample(model, **how)
    with Machines(workers=2) as machines:
        over, killed = threading.Event(), []

        def kill() -> None:
            while len(killed) < 3 and not over.wait(1.0):
                machines.replace_worker(len(killed) % 2)
                killed.append(time.monotonic())

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            disturbed = sample(model, **how, on=machines.client)
        finally:
            over.set()
            killer.join()
    assert len(killed) == 3
    assert same(undisturbed, disturbed)


class Liars(RemoteExecutor):
    """Two workers in this process, the first of which returns wrong numbers or is lost."""

    def __init__(self, lost: bool) -> None:
        super().__init__()
        self.lost, self.dropped = lost, False
        self.said: list[str] = []

    def send_recipe(self, recipe: Any) -> None:
        self.recipe, self.say = recipe, self.said.append

    def threads_each(self, bundles: int) -> int:
        return 1

    def places(self) -> int:
        return 2

    def hand_out(self, work: Any, tasks: Any) -> Iterator[tuple[int, Returned]]:
        for k, (number, task) in enumerate(tasks):
            done = work.function(self.run, self.recipe, task)
            if k % 2 == 0 and self.lost and self.blocks % 2:
                self.blocks += 1
                yield number, Returned(None, "")
                continue
            if k % 2 == 0 and not self.lost and not self.dropped:
                x = done.arrays["state/x"].copy()
                x[0] ^= 1
                done = done._replace(arrays={**done.arrays, "state/x": x})
            yield number, Returned(done, f"worker-{k % 2}")

    def drop(self, worker: str) -> None:
        assert worker == "worker-0"
        self.dropped = True


@pytest.mark.parametrize("lost", [True, False])
def test_wrong_and_lost_segments_are_made_again(lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, executor = gs.ising_grid((5, 5), coupling=0.3), Liars(lost)
    monkeypatch.setattr("gibbsite.sampling.executors.choosing._employ", lambda *client: executor)

    class Client:
        submit = scatter = staticmethod(lambda: None)

    assert same(sample(model), sample(model, on=Client()))
    assert executor.dropped is not lost
    assert any("worker-0 returned wrong numbers" in text for text in executor.said) is not lost


def test_what_is_always_lost_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Liars, "hand_out", lambda executor, work, tasks: ((k, Returned(None, "")) for k, _ in tasks))
    monkeypatch.setattr("gibbsite.sampling.executors.choosing._employ", lambda *client: Liars(lost=True))

    class Client:
        submit = scatter = staticmethod(lambda: None)

    with pytest.raises(gs.errors.SamplingError, match=f"lost {executor_module.MOST_ATTEMPTS} times"):
        sample(gs.ising_grid((3, 3)), on=Client())


def test_steps_that_go_wrong_are_reported(client: Any) -> None:
    model = gs.LogDensity(lambda x: np.log(1.0 - x[0] ** 2), dim=1)
    with pytest.raises(gs.errors.SamplingError) as here:
        gs.sample(model, gs.Metropolis(scale=9.0), sweeps=500, rng=1, start=[0.5], progress=False)
    with pytest.raises(gs.errors.SamplingError) as there:
        gs.sample(model, gs.Metropolis(scale=9.0), sweeps=500, rng=1, start=[0.5], progress=False, on=client)
    assert str(here.value) == str(there.value)


def test_no_scheduler_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_module, "PATIENCE", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as lonely,
        pytest.raises(gs.errors.SamplingError, match="no worker for 1 seconds"),
    ):
        sample(gs.ising_grid((3, 3)), on=lonely)


@pytest.mark.parametrize("partitions", [None, 2])
def test_a_client_that_is_not_the_current_one(
    client: Any, partitions: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked of Dask is asked of the client that was given; others have other event loops."""
    wait, asked = distributed.wait, []

    def waiting(*given: Any, **more: Any) -> Any:
        asked.append(distributed.Client.current())
        return wait(*given, **more)

    monkeypatch.setattr(distributed, "wait", waiting)
    model = gs.ising_grid((70, 61), coupling=0.3)
    with client.as_current(), closing(distributed.Client(client.scheduler.address, set_as_default=False)) as mine:
        assert same(sample(model, sweeps=20), sample(model, sweeps=20, on=gs.Cluster(mine, partitions)))
        assert asked
        assert all(one is mine for one in asked)


def test_a_client_that_is_closed_in_the_middle(client: Any) -> None:
    """Everything that is asked of it is lost, and said to be so."""
    mine = distributed.Client(client.scheduler.address, set_as_default=False)
    executor = TogetherExecutor(mine)
    future = mine.submit(int)
    mine.close()
    mine.status = "running"  # as it was when it was looked at
    assert executor.workers() == {}
    mine.status = "closed"
    assert executor.on_each("none", ["worker"], int, [()]) is None
    assert list(executor._take(future)) == [None, "", ""]
    executor.cancel([future])
    executor.drop("worker")
    executor.tell_to_forget(int, ["worker"])
    executor.dismiss()


def test_workers_are_asked_for(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client asks its scheduler for other things, too, now and then, and remembers the last answer."""
    last = property(lambda one: {"workers": {}}, lambda one, told: None)
    monkeypatch.setattr(distributed.Client, "_scheduler_identity", last, raising=False)
    assert len(DaskExecutor(client).workers()) == 2


def test_what_cannot_be_sent(client: Any) -> None:
    lock = threading.Lock()
    ends = gs.Observable("ends", lambda x: x[0] if lock else x[1])
    with pytest.raises(gs.errors.ArgumentError, match=r"cannot be sent to workers: .*locks and the like"):
        sample(gs.ising_grid((3, 3)), record=ends, on=client)
    gone = distributed.Client(client.scheduler.address, set_as_default=False)
    gone.close()
    with pytest.raises(gs.errors.ArgumentError, match="on is closed; connect to its cluster anew"):
        sample(gs.ising_grid((3, 3)), on=gone)
    with pytest.raises(gs.errors.ArgumentError, match=r"must be a client of Dask.*cluster\.get_client\(\)"):
        sample(gs.ising_grid((3, 3)), on=client.cluster)
    with pytest.raises(gs.errors.ArgumentError, match="'ray' is unknown; choose one of local-dask, or the address"):
        warm_up("ray")


def test_other_versions_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = dask_module.installed_versions()
    monkeypatch.setattr(dask_module, "installed_versions", lambda: {**here, "numba": "0.1"})
    with pytest.raises(gs.errors.ArgumentError, match=r"Worker tcp://.* other versions .*numba \S+ instead of 0\.1"):
        sample(gs.ising_grid((3, 3)), on=client)


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("local-dusk", "did you mean 'local-dask'"),
        ("tcp://127.0.0.1:9", "no scheduler of Dask at tcp://127.0.0.1:9"),
        (3, "must be a client of Dask"),
    ],
)
def test_what_is_no_cluster(on: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.sampling.executors.choosing.CONNECT_SECONDS", 0.5)
    with pytest.raises(gs.errors.ArgumentError, match=said):
        sample(gs.ising_grid((3, 3)), on=on)


def test_budgets_are_kept(client: Any) -> None:
    model = gs.ising_grid((20, 20), coupling=0.3)
    sample(model, on=client, sweeps=2)  # compiled
    begun = time.monotonic()
    result = sample(model, on=client, sweeps=None, seconds=2.0)
    assert result.n_draws > 10
    assert time.monotonic() - begun < 30.0  # a run that forgot its limit would not end


def test_checksums_see_every_part() -> None:
    arrays = {"a": np.arange(3), "b": np.zeros((2, 2))}
    done = Done(arrays, checksum(arrays), 0.0)
    for other in (
        {**arrays, "a": np.arange(1, 4)},
        {**arrays, "a": np.arange(3, dtype=np.int32)},
        {**arrays, "b": np.zeros((4, 1))},
        {"a": arrays["a"], "c": arrays["b"]},
    ):
        assert checksum(other) != done.checksum


def test_machines_are_warmed_up_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of one machine: one of them compiles, in a process of its own."""
    from gibbsite.sampling.executors import warming

    monkeypatch.setattr(warming, "_warm", _say_who)
    said = warming.warm_up("local-dask", jobs=1)
    assert len(said) == 1
    assert int(next(iter(said.values())).said) != os.getpid()


def _say_who(jobs: int | None) -> Warmed:
    assert jobs == 1
    return Warmed(str(os.getpid()), True)


def test_a_machine_that_cannot_be_warmed_up_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from gibbsite.cli.warmup import command

    found = {"a": Warmed("all kernels compiled", True), "b": Warmed("Error: no space left", False)}
    monkeypatch.setattr("gibbsite.sampling.executors.warming.warm_up", lambda on, jobs: found)
    told = CliRunner().invoke(command, ["--on", "tcp://host:8786", "--quiet"])
    assert (told.exit_code, told.output) == (1, "b: Error: no space left\n")
