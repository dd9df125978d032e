"""What may go wrong with a cluster: the bytes of an undisturbed run, or one sentence and a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.executors import dask as dask_module
from gibbsite.sampling.executors.dask import DaskExecutor
from tests.sampling.executors.machines import Machines
from tests.sampling.executors.running import same, sample

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")

MODEL = gs.ising_grid((60, 60), coupling=0.3, field=0.1)
HOW: dict[str, Any] = {"chains": 2, "sweeps": 16000, "scan": gs.Systematic(), "warmup": 100}


@pytest.fixture(scope="module")
def undisturbed() -> gs.Result:
    return sample(MODEL, **HOW)


@contextmanager
def disturbing(*deeds: Callable[[], None], when: int, first: bool = False) -> Iterator[list[str]]:
    """Do something, each in its turn, when a run hands out its segments for the ``when``-th time or later.

    ``first`` tells that the first is done before they are handed out. The list that is yielded has what the
    run says.
    """
    due, over, begun, said = threading.Event(), threading.Event(), threading.Event(), list[str]()
    whole = DaskExecutor.hand_out

    def hand_out(executor: DaskExecutor, *words: Any) -> Any:
        tell = executor.say
        executor.say = lambda text: (said.append(text), tell(text))[1]  # type: ignore[method-assign]
        if executor.blocks >= when:
            due.set()
            if first:
                begun.wait()
        try:
            yield from whole(executor, *words)
        finally:
            executor.say = tell  # type: ignore[method-assign]

    def act() -> None:
        due.wait()
        for deed in deeds:
            if over.is_set():
                return
            if not first:
                time.sleep(0.3)
            deed()
            begun.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskExecutor, "hand_out", hand_out)
        patch.setattr(DaskExecutor, "block_seconds", 0.3)
        actor = threading.Thread(target=act)
        actor.start()
        try:
            yield said
        finally:
            over.set()
            due.set()
            actor.join()


@pytest.mark.campaign
@pytest.mark.parametrize("given_up", [False, True])
def test_a_scheduler_that_is_started_again_is_waited_for(undisturbed: gs.Result, given_up: bool) -> None:
    """It is away for a moment; or for so long that the client of the run has given up, and takes another."""
    with Machines(workers=2, timeout=1.0 if given_up else 60.0) as machines:
        first = machines.scheduler.pid
        with disturbing(lambda: machines.replace_scheduler(3.0 * given_up), when=5) as said:
            disturbed = sample(MODEL, **HOW, on=machines.client)
            assert machines.scheduler.pid != first
        assert (machines.client.status == "closed") is given_up
    assert same(undisturbed, disturbed)
    # one that is there again at once may not be missed
    assert any("waiting" in text for text in said) or not given_up


@pytest.mark.long
def test_without_a_scheduler_a_run_ends_with_a_checkpoint(
    undisturbed: gs.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_module, "PATIENCE", 2.0)
    resumed: dict[str, Any] = {**HOW, "checkpoint": gs.Checkpoint(tmp_path / "run.chk", resume=True)}
    with (
        Machines(workers=2, timeout=1.0) as machines,
        disturbing(lambda: machines._kill(machines.scheduler), when=7),
        pytest.raises(
            gs.errors.SamplingError, match="its scheduler is gone; what was recorded before is kept"
        ) as ended,
    ):
        sample(MODEL, **resumed, on=machines.client)
    assert ended.value.recording is not None
    assert same(undisturbed, sample(MODEL, **resumed))


@pytest.mark.campaign
@pytest.mark.parametrize("comes_back", [True, False])
def test_a_worker_that_cannot_be_reached(
    undisturbed: gs.Result, comes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing for longer than is waited for; what it returns later counts for nothing."""
    monkeypatch.setattr(dask_module, "SILENCE", 2.0)
    with Machines(workers=2) as machines:
        away = machines.workers[0].pid

        def leave() -> None:
            os.kill(away, signal.SIGSTOP)

        def return_late() -> None:
            time.sleep(4.0)
            os.kill(away, signal.SIGCONT)

        with disturbing(leave, *([return_late] if comes_back else []), when=4, first=True) as said:
            disturbed = sample(MODEL, **HOW, on=machines.client)
        known = machines.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    assert same(undisturbed, disturbed)
    # of the other one, too, where the machine has much else to do
    assert any("Nothing was heard of worker" in text for text in said)
    assert known <= 1  # nothing but the model is left of the run


@pytest.mark.campaign
def test_a_disk_that_fills_up_leaves_the_old_checkpoint(
    undisturbed: gs.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.chk"
    resumed: dict[str, Any] = {**HOW, "checkpoint": gs.Checkpoint(path, every=0.0, resume=True)}
    write, written = np.savez, list[int]()

    def fill_up(file: Any, **arrays: Any) -> None:
        if len(written) == 3:
            file.write(b"a part of the archive")
            raise OSError(28, "No space left on device")
        written.append(len(arrays))
        write(file, **arrays)

    with Machines(workers=1) as machines, disturbing(when=1):
        monkeypatch.setattr(np, "savez", fill_up)
        with pytest.raises(gs.errors.CheckpointError, match=r"No space left on device.*free space"):
            sample(MODEL, **resumed, on=machines.client)
        assert [each.name for each in tmp_path.iterdir()] == ["run.chk"]
        monkeypatch.undo()
        assert same(undisturbed, sample(MODEL, **resumed, on=machines.client))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A Python that has all but gibbsite; and a place that claims another version of Numba."""
    place = tmp_path_factory.mktemp("stranger")
    venv.create(place, symlinks=True, with_pip=False)
    own = next(place.glob("lib/python*/site-packages"))
    for there in {Path(folder) for folder in sys.path if folder.endswith("site-packages")}:
        for each in there.iterdir():
            target = own / each.name
            if "gibbsite" not in each.name.lower() and each.suffix != ".pth" and not target.exists():
                target.symlink_to(each)
    told = tmp_path_factory.mktemp("versions") / "numba-0.1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: numba\nVersion: 0.1\n")
    return str(place / "bin" / "python"), {"PYTHONPATH": str(told.parent)}


@pytest.mark.long
def test_tasks_of_a_worker_that_is_gone_are_handed_out_again(
    undisturbed: gs.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are meant for it alone, as the other one was not heard; that is idle, and gets them soon."""
    monkeypatch.setattr(dask_module, "PATIENCE", 600.0)
    known, submit, given = DaskExecutor.workers, DaskExecutor._submit, list[str]()
    with Machines(workers=2) as machines:

        def submit_to_the_dead(executor: DaskExecutor, *words: Any) -> None:
            if executor.blocks < 4 or given:
                return submit(executor, *words)
            pids = machines.client.run(os.getpid)
            first = min(pids)
            told = known(executor)[first]
            os.kill(pids[first], signal.SIGKILL)
            while first in known(executor):
                time.sleep(0.05)
            given.append(first)

            def workers(executor: DaskExecutor) -> dict[str, Any]:
                known(executor)
                executor.heard[first] = (0.0, time.monotonic())
                return {first: told}

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(DaskExecutor, "workers", workers)
                return submit(executor, *words)

        monkeypatch.setattr(DaskExecutor, "_submit", submit_to_the_dead)
        with disturbing(when=1) as said:
            begun = time.monotonic()
            assert same(undisturbed, sample(MODEL, **HOW, on=machines.client))
        assert time.monotonic() - begun < 300.0  # not after the 600 seconds of above
    assert given
    assert any("No worker is at any chain" in text for text in said)


@pytest.mark.long
def test_workers_without_gibbsite_are_named(
    undisturbed: gs.Result, strangers: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the beginning they are an error; later they get no more work."""
    with Machines(workers=0) as machines:
        machines.workers.append(machines.start_worker(strangers[0], PYTHONPATH=""))
        machines.client.wait_for_workers(1, timeout=60)
        with pytest.raises(
            gs.errors.ArgumentError,
            match=r"Worker tcp://\S+ has other versions .*: no gibbsite\. Install the same ones",
        ):
            sample(MODEL, **HOW, on=machines.client)
    monkeypatch.setattr(dask_module, "JOINING", 60.0)
    with Machines(workers=1) as machines:

        def join() -> None:
            machines.workers.append(machines.start_worker(strangers[0], PYTHONPATH=""))
            machines.have(2)

        with disturbing(join, when=3, first=True) as said:
            disturbed = sample(MODEL, **HOW, on=machines.client)
    assert same(undisturbed, disturbed)
    assert sum("no gibbsite. It gets no more work" in text for text in said) == 1


def test_a_scheduler_without_gibbsite_is_reported(strangers: tuple[str, dict[str, str]]) -> None:
    with Machines(workers=0) as machines:
        machines._kill(machines.scheduler)
        machines.scheduler = machines.start_scheduler(strangers[0], PYTHONPATH="")
        machines.have(1)
        with pytest.raises(gs.errors.ArgumentError, match=r"The scheduler .* cannot import gibbsite: install there"):
            sample(MODEL, **HOW, on=machines.client)


@pytest.mark.campaign
def test_workers_with_other_versions_are_named(
    undisturbed: gs.Result, strangers: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Machines(workers=0) as machines:
        machines.workers.append(machines.start_worker(**strangers[1]))
        machines.client.wait_for_workers(1, timeout=60)
        with pytest.raises(gs.errors.ArgumentError, match=r"Worker tcp://\S+ has other versions .*numba 0\.1 instead"):
            sample(MODEL, **HOW, on=machines.client)
    monkeypatch.setattr(dask_module, "JOINING", 60.0)
    with Machines(workers=1) as machines:

        def join() -> None:
            machines.workers.append(machines.start_worker(**strangers[1]))
            machines.have(2)

        with disturbing(join, when=3, first=True) as said:
            disturbed = sample(MODEL, **HOW, on=machines.client)
    assert same(undisturbed, disturbed)
    assert sum("It gets no more work" in text for text in said) == 1
