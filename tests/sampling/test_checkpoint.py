"""Checkpoints: killed at any moment and continued, a run gives the bytes of an uninterrupted one."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling import checkpoint, driver, executor
from gibbsite.sampling.checkpoint import load_checkpoint
from gibbsite.sampling.progress import Status
from gibbsite.sampling.stored_tuples import restore
from gibbsite.sampling.sweep import sweep_sites

GLASS = np.triu(np.random.default_rng(5).normal(size=(6, 6)), 1)
MODEL = gs.ising(GLASS, np.linspace(-1, 1, 6))
EVERYTHING = ["marginals", "draws", "energy", "best", "pairs"]


class Killed(Exception):
    """Stands for the end of the process."""


def killer(blocks: int) -> Callable[[Status], None]:
    """Return a progress function that ends the run after a number of blocks."""
    seen = 0

    def count(status: Status) -> None:
        nonlocal seen
        seen += 1
        if seen > blocks:
            raise Killed

    return count


def run(checkpoint: Path | None, *, every: float = 60.0, resume: bool = False, **kwargs: Any) -> gs.Result:
    settings = {"model": MODEL, "sweeps": 60, "warmup": 5, "rng": 3, "progress": False, "threads": 1, **kwargs}
    saved = None if checkpoint is None else gs.Checkpoint(checkpoint, every=every, resume=resume)
    return gs.sample(settings.pop("model"), settings.pop("kernel", None), checkpoint=saved, **settings)


def run_until_killed(checkpoint: Path, blocks: int, **kwargs: Any) -> None:
    """Begin or continue a run, saved after every block, and end it without ceremony."""
    with pytest.raises(Killed):
        run(checkpoint, every=0.0, resume=True, progress=killer(blocks), **kwargs)


def saved(result: gs.Result, folder: Path) -> bytes:
    path = folder / "result.npz"
    result.save(path)
    return path.read_bytes()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep per block."""
    monkeypatch.setattr(executor.Threads, "block_seconds", 0.0)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".part")


# ---- kill -9

KILL_SCRIPT = """
    import os, random, signal, sys, time
    import numpy as np
    import gibbsite as gs
    from gibbsite.sampling import executor
    from gibbsite.sampling.checkpoint import load_checkpoint
    from gibbsite.sampling.stored_tuples import restore
    from pathlib import Path

    folder = Path(sys.argv[1])
    place = folder / "run.ckpt"
    # as many sites and recorders as make a write take some time
    model = gs.ising_grid((30, 30), coupling=0.3, field=0.1)
    kept = ["marginals", gs.Draws(["0", "17", "450"]), "energy", "best"]
    settings = dict(sweeps=3000, warmup=40, chains=3, rng=11, record=kept, progress=False)

    def child(every):
        executor.Threads.block_seconds = 0.0  # a block is one sweep, and slow, so that the run lasts
        gs.sample(model, checkpoint=gs.Checkpoint(place, every=every, resume=True), threads=2,
                  **{**settings, "progress": lambda status: time.sleep(0.001)})

    def stamp(path):
        return path.stat().st_mtime_ns if path.exists() else 0

    # loads the compiled loop, so that the forked children are at work at once
    gs.sample(model, **{**settings, "sweeps": 2, "threads": 1})
    moments = random.Random(4)
    for number in range(20):
        before = stamp(place)
        pid = os.fork()
        if pid == 0:
            child(every=0.05 if number % 2 else 0.0)
            os._exit(0)
        if number % 3:  # until it has got on; every third is killed at any moment
            patience = time.monotonic() + 20.0
            while stamp(place) == before and time.monotonic() < patience:
                time.sleep(0.002)
        time.sleep(moments.uniform(0.01, 0.1))
        done, _ = os.waitpid(pid, os.WNOHANG)
        assert done == 0, "the run ended before it could be killed"
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        progress = load_checkpoint(place)[0]["progress"] if place.exists() else {"warmup": 0, "draws": 0}
        print(progress["warmup"] + progress["draws"])
    resumed = gs.sample(model, checkpoint=gs.Checkpoint(place, resume=True), **settings)
    resumed.save(folder / "resumed.npz")
    gs.sample(model, **settings).save(folder / "straight.npz")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")
def test_killed_twenty_times_and_resumed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILL_SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reached = [int(line) for line in done.stdout.split()]
    assert len(reached) == 20
    assert reached == sorted(reached), "a kill must not lose what had been saved"
    assert 0 < reached[-1] < 3040, "the kills must hit a run that has begun and is not at its end"
    assert len(set(reached)) > 3, "the run must get on between kills"
    assert (tmp_path / "resumed.npz").read_bytes() == (tmp_path / "straight.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["resumed.npz", "run.ckpt", "straight.npz"]


# ---- resumed runs, in one process


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("blocks", [0, 3, 5, 6, 20])
@pytest.mark.parametrize("record", [EVERYTHING, "marginals", "energy"], ids=str)
def test_resumed_equals_uninterrupted(blocks: int, record: Any, place: Path) -> None:
    run_until_killed(place, blocks, record=record)
    result = run(place, record=record, resume=True)
    assert saved(result, place.parent) == saved(run(None, record=record), place.parent)
    assert leftovers(place.parent) == []


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "changes",
    [
        {"sweeps": gs.Sweeps(60, thin=3)},
        {"sweeps": gs.Steps(6 * 60 + 4)},
        {"kernel": gs.Gibbs("metropolised")},
        {"kernel": gs.AnnealedGibbs(sweeps=50), "record": ["energy", "best"]},
        {"scan": gs.RandomScan([1, 2, 3, 1, 2, 3])},
        {"chains": 1},
        {"start": "random"},
        {"start": np.zeros((4, 6), int)},
    ],
    ids=str,
)
def test_resumed_equals_uninterrupted_for_any_plan(changes: dict[str, Any], place: Path) -> None:
    run_until_killed(place, 12, **changes)
    result = run(place, resume=True, **changes)
    assert saved(result, place.parent) == saved(run(None, **changes), place.parent)


@pytest.mark.usefixtures("small_blocks")
def test_draws_that_grow_survive_many_resumptions(place: Path) -> None:
    for blocks in (4, 7, 1, 20, 3):
        run_until_killed(place, blocks, record=EVERYTHING)
    result = run(place, record=EVERYTHING, resume=True)
    assert result.draws.shape == (4, 60, 6)
    assert result.energy.shape == (4, 60)
    assert saved(result, place.parent) == saved(run(None, record=EVERYTHING), place.parent)


def test_a_finished_run_can_be_read_again(place: Path) -> None:
    first = run(place)
    again = run(place, resume=True)
    assert saved(first, place.parent) == saved(again, place.parent)


@pytest.mark.parametrize("record", [EVERYTHING, "marginals"], ids=str)
def test_extended_run_equals_a_longer_one(record: Any, place: Path) -> None:
    # 1000 draws: longer than the trace of batches, which is merged on the way
    for sweeps in (40, 700, 1000):
        extended = run(place, sweeps=sweeps, record=record, resume=True)
    assert saved(extended, place.parent) == saved(run(None, sweeps=1000, record=record), place.parent)


def test_resuming_without_a_file_begins(place: Path) -> None:
    assert saved(run(place, resume=True), place.parent) == saved(run(None), place.parent)
    assert place.exists()


def test_a_checkpoint_is_written_at_the_end_only(place: Path) -> None:
    seen = []
    run(place, progress=lambda status: seen.append(place.exists()))
    assert seen and not any(seen)
    assert load_checkpoint(place)[0]["progress"] == {"warmup": 5, "draws": 60, "rest_done": 0}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("every", [1.0, 60.0, 1e6])
def test_the_first_checkpoint_comes_within_seconds(every: float, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    for module in (checkpoint, driver, executor):
        monkeypatch.setattr(module, "clock", lambda: now)
    waited: list[float] = []

    def wait(status: Status) -> None:  # half a second passes from one block to the next
        nonlocal now
        if place.exists() and not waited:
            waited.append(now - 100.0)
        now += 0.5

    run(place, sweeps=200, progress=wait, every=every)
    assert waited and waited[0] <= min(every, 2.0) + 1.0


@pytest.mark.usefixtures("small_blocks")
def test_a_run_cut_short_in_the_warmup_resumes_there(place: Path) -> None:
    # the answer is one draw after an unfinished warmup, which must not become part of the run
    def interrupt(status: Status) -> None:
        if status.done == 1:
            signal.raise_signal(signal.SIGINT)

    early = run(place, progress=interrupt, every=0.0)
    assert early.interrupted
    assert (early.warmup, early.n_draws) == (1, 1)
    result = run(place, resume=True)
    assert (result.warmup, result.interrupted) == (5, False)
    assert saved(result, place.parent) == saved(run(None), place.parent)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("model", [MODEL, gs.potts_grid((2, 3), 3, 0.5)], ids=["ising", "potts"])
def test_resuming_compiles_nothing(model: gs.FactorGraph, place: Path) -> None:
    run_until_killed(place, 9, model=model)
    before = len(sweep_sites.signatures)
    run(place, model=model, resume=True)
    assert len(sweep_sites.signatures) == before, "loaded arrays must have the types of fresh ones"


# ---- another plan


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rng": 4}, "the seed"),
        ({"kernel": gs.Gibbs("metropolised")}, "kernel"),
        ({"scan": gs.Systematic([5, 4, 3, 2, 1, 0])}, "scan"),
        ({"scan": gs.RandomScan()}, "scan"),
        ({"model": gs.ising(GLASS, np.linspace(-1, 1.001, 6))}, "model"),
        ({"model": gs.ising(2 * GLASS, np.linspace(-1, 1, 6))}, "model"),
        ({"model": MODEL.observe({"0": 1})}, "model"),
        ({"record": "energy"}, "record"),
        ({"record": gs.Marginals(rao_blackwell=False)}, "record"),
        ({"sweeps": gs.Sweeps(60, thin=2)}, "thin"),
        ({"warmup": 6}, "warmup"),
        ({"chains": 3}, "chains"),
        ({"start": "random"}, "start"),
        ({"start": np.zeros(6, int)}, "start"),
    ],
    ids=str,
)
def test_another_plan_is_refused(changes: dict[str, Any], named: str, place: Path) -> None:
    run(place)
    before = place.read_bytes()
    with pytest.raises(gs.errors.CheckpointError, match=rf"belongs to another run: {named} differ"):
        run(place, resume=True, **changes)
    assert place.read_bytes() == before


def test_all_differences_are_named(place: Path) -> None:
    run(place)
    with pytest.raises(gs.errors.CheckpointError, match="the seed, kernel, thin differ"):
        run(place, resume=True, rng=4, kernel=gs.Gibbs("suwa-todo"), sweeps=gs.Sweeps(60, thin=2))


def test_a_run_can_be_extended(place: Path) -> None:
    """More sweeps of the same run: seed and warmup are those it was begun with."""
    run(place, sweeps=2000, warmup=None, rng=None)
    longer = run(place, sweeps=4000, warmup=None, rng=None, resume=True)
    entropy = load_checkpoint(place)[0]["plan"]["entropy"]
    assert longer.warmup == 200
    whole = run(None, sweeps=4000, warmup=200, rng=entropy)
    np.testing.assert_array_equal(longer.totals, whole.totals)


def test_another_seed_is_refused_with_the_first_one(place: Path) -> None:
    run(place, rng=3)
    with pytest.raises(gs.errors.CheckpointError, match=r"rng=3 there; what is left out is taken from it"):
        run(place, rng=4, resume=True)


def test_a_longer_file_than_asked_for_is_refused(place: Path) -> None:
    run(place, sweeps=50)
    with pytest.raises(gs.errors.CheckpointError, match=r"holds 50 draws already, more than the 20"):
        run(place, sweeps=20, resume=True)


@pytest.mark.parametrize("steps", [6 * 60, 6 * 60 + 3, 6 * 61, 6 * 61 + 2])
def test_a_run_that_ended_inside_a_sweep_is_not_extended(steps: int, place: Path) -> None:
    run(place, sweeps=gs.Steps(6 * 60 + 2))
    with pytest.raises(gs.errors.CheckpointError, match=r"incomplete sweep|draws already"):
        run(place, sweeps=gs.Steps(steps), resume=True)
    run(place, sweeps=gs.Steps(6 * 60 + 2), resume=True)  # the same again is fine


# ---- damaged and foreign files


def cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share)]


def flip(data: bytes) -> bytes:
    """Change one byte of the totals, whose sum of the archive then no longer fits."""
    at = data.index(b"0/tape/total.npy") + 200
    return data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte": cut(0.0005),
    "half": cut(0.5),
    "almost": cut(0.999),
    "flipped": flip,
    "text": lambda data: b"hello\n" * 100,
    "zeros": lambda data: bytes(len(data)),
    "pickle": lambda data: b"\x80\x04N.",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_torn_or_foreign_file_is_refused(damage: str, place: Path) -> None:
    run(place)
    place.write_bytes(DAMAGE[damage](place.read_bytes()))
    with pytest.raises(gs.errors.CheckpointError, match=r"run\.ckpt is not a gibbsite checkpoint, or a damaged one"):
        run(place, resume=True)


def write_json(path: Path, about: Any) -> None:
    with open(path, "wb") as file:
        np.savez(file, about=np.array(json.dumps(about)))


@pytest.mark.parametrize(
    "about",
    [
        [],
        "text",
        {},
        {"format": 1},
        {"format": 99, "plan": {}, "progress": {}},
        {"format": 1, "plan": 3, "progress": {}},
        {"format": 1, "plan": {}, "progress": {}},
    ],
    ids=str,
)
def test_an_archive_of_something_else_is_refused(about: Any, place: Path) -> None:
    write_json(place, about)
    with pytest.raises(gs.errors.CheckpointError, match=r"run\.ckpt"):
        run(place, resume=True)


def test_other_arrays_are_refused(place: Path) -> None:
    with open(place, "wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(gs.errors.CheckpointError, match="not a gibbsite checkpoint"):
        run(place, resume=True)
    run(None).save(place)
    with pytest.raises(gs.errors.CheckpointError, match="not a gibbsite checkpoint"):
        run(place, resume=True)


def test_an_incomplete_archive_is_refused(place: Path) -> None:
    run(place)
    with np.load(place) as file:
        arrays = {name: file[name] for name in file.files}
    for change in ({"2/state/rng": None}, {"1/tape/total": np.zeros(6, np.float32)}):
        kept = {name: array for name, array in {**arrays, **change}.items() if array is not None}
        with open(place, "wb") as file:
            np.savez(file, **kept)
        with pytest.raises(gs.errors.CheckpointError, match=next(iter(change))):
            run(place, resume=True)


# ---- places where nothing can be written


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any start of work fail."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("work was done before the place was checked")

    monkeypatch.setattr(executor, "sweep_chain", fail)
    monkeypatch.setattr("gibbsite.sampling.setup.start_states", fail)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("resume", [False, True])
def test_unwritable_places_are_refused_at_once(resume: bool, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(gs.errors.CheckpointError, match="it is a folder"):
        run(tmp_path, resume=resume)
    with pytest.raises(gs.errors.CheckpointError, match="No such file or directory"):
        run(tmp_path / "missing" / "run.ckpt", resume=resume)
    with pytest.raises(gs.errors.CheckpointError, match="Not a directory"):
        run(file / "run.ckpt", resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("no_work")
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(gs.errors.CheckpointError, match="Permission denied"):
        run(closed / "run.ckpt")


@pytest.mark.usefixtures("no_work")
def test_an_existing_file_is_not_overwritten(place: Path) -> None:
    place.write_bytes(b"precious")
    with pytest.raises(gs.errors.CheckpointError, match=r"run\.ckpt exists already.*resume=True"):
        run(place)
    assert place.read_bytes() == b"precious"


def test_a_disk_that_fills_up_leaves_the_old_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(place, sweeps=30)
    before = place.read_bytes()

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(gs.errors.CheckpointError, match=r"No space left on device.*free space"):
        run(place, sweeps=60, resume=True)
    assert place.read_bytes() == before
    assert leftovers(place.parent) == []


_LIMITED = """
import resource, sys
import gibbsite as gs
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    gs.sample(gs.ising_grid((3, 3)), sweeps=60, checkpoint=gs.Checkpoint(sys.argv[1], resume=True), progress=False)
except gs.GibbsiteError as wrong:
    print(type(wrong).__name__, wrong)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are those of POSIX")
def test_a_file_that_grows_too_large_leaves_the_old_one(place: Path) -> None:
    model = gs.ising_grid((3, 3))
    gs.sample(model, sweeps=30, rng=1, checkpoint=place, progress=False)
    before = place.read_bytes()
    words = [sys.executable, "-W", "ignore", "-c", _LIMITED, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"CheckpointError Cannot write {place}: File too large; check")
    assert not done.stderr
    assert place.read_bytes() == before
    assert leftovers(place.parent) == []
    again = gs.sample(model, sweeps=60, checkpoint=gs.Checkpoint(place, resume=True), progress=False)
    assert again.marginals == gs.sample(model, sweeps=60, rng=1, warmup=again.warmup, progress=False).marginals


@pytest.mark.parametrize("name", ["run.ckpt", "run[1] *.ckpt"])
def test_remains_of_a_killed_run_are_cleared_away(name: str, tmp_path: Path) -> None:
    torn = tmp_path / f".{name}.checkpoint.part"
    other = tmp_path / f".{name}.2.checkpoint.part"
    for path in (torn, other):
        path.write_bytes(b"torn")
    run(tmp_path / name)
    assert leftovers(tmp_path) == [other.name], "what belongs to another checkpoint is left alone"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_the_unused_part_of_a_large_table_is_not_touched() -> None:
    def megabytes() -> float:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize() / 2**20

    template = np.zeros(1 << 26)  # 512 MB, none of them in use
    template[5] = 7.0
    before = megabytes()
    found = restore("x", template, {"x": np.array([1.0, 2.0])})
    assert megabytes() - before < 100
    assert found is template
    assert found[:8].tolist() == [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
