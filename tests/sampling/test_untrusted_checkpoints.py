"""Untrusted checkpoints are refused in a sentence, or continued as if nothing had happened."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.progress import Status

pytestmark = pytest.mark.long

Arrays = dict[str, Any]
GLASS = gs.ising(np.triu(np.random.default_rng(5).normal(size=(6, 6)), 1), np.linspace(-1, 1, 6))
NETWORK = gs.example("asia")
HOW: Arrays = {
    "sweeps": 40,
    "warmup": 5,
    "rng": 3,
    "progress": False,
    "threads": 1,
    "criteria": gs.Criteria(dispersed_starts=False),
}
RUNS: dict[str, Arrays] = {
    "gibbs": {"model": GLASS, "record": ["marginals", "draws", "energy", "best", "pairs"]},
    "shuffled": {"model": GLASS, "scan": gs.scans.Shuffled()},
    "observed": {"model": GLASS, "record": [gs.recorders.Magnetisation(series=True), "marginals"]},
    "tempered": {"model": GLASS, "kernel": gs.Tempered(ladder=(0.0, 0.4, 1.0))},
}


def run(path: Path | None, name: str, *, resume: bool = False, **more: Any) -> gs.Result:
    given = RUNS[name] | HOW | more
    saved = None if path is None else gs.Checkpoint(path, resume=resume)
    return gs.sample(given.pop("model"), given.pop("kernel", None), checkpoint=saved, **given)


def read(path: Path) -> Arrays:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def write(path: Path, arrays: Arrays) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Arrays]:
    """The checkpoint of each run."""
    folder = tmp_path_factory.mktemp("checkpoints")
    names = [name for name in RUNS if name != "tempered"]
    for name in names:
        run(folder / name, name)
    return {name: read(folder / name) for name in names}


def refused(path: Path, name: str, arrays: Arrays) -> str:
    write(path, arrays)
    with pytest.raises(gs.errors.CheckpointError) as error:
        run(path, name, resume=True, sweeps=60)
    assert "\n" not in str(error.value)
    return str(error.value)


def changed(arrays: Arrays, entry: str, place: Any, value: Any) -> Arrays:
    found = arrays[entry].copy()
    found[place] = value
    return {**arrays, entry: found}


def test_untouched_they_go_on(stored: dict[str, Arrays], tmp_path: Path) -> None:
    for name, arrays in stored.items():
        write(tmp_path / name, arrays)
        again = run(tmp_path / name, name, resume=True, sweeps=60)
        assert again.totals.tobytes() == run(None, name, sweeps=60).totals.tobytes()


@pytest.mark.parametrize(
    ("name", "entry", "place", "value"),
    [
        ("gibbs", "0/state/x", 2, 2),
        ("gibbs", "0/state/x", 2, -1),
        ("gibbs", "0/state/x", 2, 127),
        ("gibbs", "0/state/position", 0, 2**63 - 1),
        ("gibbs", "0/state/position", 0, 6),
        ("gibbs", "0/state/position", 0, -1),
        ("gibbs", "0/state/position", 1, -(2**62)),
        ("gibbs", "0/tape/counters", 0, 2**62),
        ("gibbs", "0/tape/counters", 0, 7),
        ("gibbs", "0/tape/counters", 1, 2**40),
        ("gibbs", "0/tape/counters", 2, 2**40),
        ("gibbs", "0/tape/counters", 2, -1),
        ("gibbs", "0/tape/counters", 3, 0),
        ("gibbs", "0/tape/set_member", 0, 2**31 - 1),
        ("gibbs", "0/tape/set_cell", 0, 2**60),
        ("gibbs", "0/tape/set_start", 1, 2**60),
        ("gibbs", "0/tape/sites", 0, 99),
        ("gibbs", "0/tape/total", 1, np.nan),
        ("gibbs", "0/tape/total", 1, 1e9),
        ("gibbs", "0/tape/trace", (1, 1), -7.0),
        ("gibbs", "0/tape/values", (0, 0), 99),
        ("gibbs", "0/tape/best_x", 0, 99),
        ("shuffled", "0/state/order", 2, 6),
        ("shuffled", "0/state/order", 2, -1),
        ("shuffled", "0/state/order", slice(None), 1),
        ("observed", "0/tape/observed/place", 1, 2**60),
        ("observed", "0/tape/observed/block", 0, 1e15),
        ("observed", "0/tape/observed/block", 3, 1e300),
        ("observed", "0/tape/observed/block", 4, -5.0),
        ("observed", "0/tape/observed/block", 6, 2.0**52),
        ("observed", "0/tape/observed/block", 8, 2.0**40),
        ("observed", "0/tape/observed/block", 5, np.nan),
    ],
)
def test_numbers_out_of_range(
    stored: dict[str, Arrays], name: str, entry: str, place: Any, value: Any, tmp_path: Path
) -> None:
    assert "damaged one" in refused(tmp_path / "run", name, changed(stored[name], entry, place, value))


@pytest.mark.parametrize(
    ("entry", "place", "value"),
    [
        ("place", 0, 2**60),
        ("place", slice(None), 0),
        ("label", 0, 99),
        ("counts", 3, 256),
        ("counts", 6, 2**40),
        ("counts", 7, 0),
        ("states", 5, 2),
        ("betas", 1, 0.7),
    ],
)
def test_numbers_of_a_ladder_out_of_range(entry: str, place: Any, value: Any, tmp_path: Path) -> None:
    run(tmp_path / "run", "tempered")
    arrays = read(tmp_path / "run")
    wrong = changed(arrays, f"0/state/memory/{entry}", place, value)
    assert "damaged one" in refused(tmp_path / "run", "tempered", wrong)


@pytest.mark.parametrize(
    "name", ["shuffled", *(pytest.param(name, marks=pytest.mark.long) for name in ("gibbs", "observed"))]
)
def test_arrays_cut_or_left_out(stored: dict[str, Arrays], name: str, tmp_path: Path) -> None:
    cut_and_leave_out(stored[name], name, tmp_path)


def test_arrays_of_a_ladder_cut_or_left_out(tmp_path: Path) -> None:
    run(tmp_path / "run", "tempered")
    cut_and_leave_out(read(tmp_path / "run"), "tempered", tmp_path)


def cut_and_leave_out(arrays: Arrays, name: str, tmp_path: Path) -> None:
    for entry, found in arrays.items():
        if entry == "about" or entry.startswith(("1", "2", "3")):
            continue
        refused(tmp_path / "run", name, {key: one for key, one in arrays.items() if key != entry})
        refused(tmp_path / "run", name, {**arrays, entry: found.astype(complex)})
        if found.size > 1 and not entry.endswith(("/values", "/energy")):
            refused(tmp_path / "run", name, {**arrays, entry: found[:1]})


def test_states_of_sites_with_other_numbers_of_states(tmp_path: Path) -> None:
    cards = [2, 3, 4]
    model = gs.FactorGraph(dict(zip("abc", cards, strict=True)), [(("a", "b", "c"), np.ones(cards))])
    gs.sample(model, checkpoint=tmp_path / "run", **HOW)
    arrays = read(tmp_path / "run")
    write(tmp_path / "run", changed(arrays, "0/state/x", 0, 3))
    with pytest.raises(gs.errors.CheckpointError, match="a state that its sites do not have"):
        gs.sample(model, checkpoint=gs.Checkpoint(tmp_path / "run", resume=True), **HOW | {"sweeps": 60})


def test_headers_that_do_not_fit(stored: dict[str, Arrays], tmp_path: Path) -> None:
    arrays = stored["gibbs"]
    about = json.loads(arrays["about"].item())
    wrong: list[Any] = [{**about, name: value} for name in about for value in (None, 4, [], "text", {})]
    wrong += [
        {**about, "progress": {**about["progress"], name: value}}
        for name in about["progress"]
        for value in (-1, 2**70, 1.5, None, "3", True)
    ]
    wrong += [{**about, "plan": {**about["plan"], "entropy": value}} for value in (-1, "x", [], None, 1.5)]
    for one in [*wrong, [], 3, "text"]:
        refused(tmp_path / "run", "gibbs", {**arrays, "about": np.array(json.dumps(one))})
    for text in ("[" * 100_000, "", "{", "nonsense"):
        refused(tmp_path / "run", "gibbs", {**arrays, "about": np.array(text)})
    refused(tmp_path / "run", "gibbs", {**arrays, "about": np.zeros(3)})


def test_a_damaged_header_of_an_array(stored: dict[str, Arrays], tmp_path: Path) -> None:
    path = tmp_path / "run"
    write(path, stored["gibbs"])
    with zipfile.ZipFile(path) as file:
        members = {one.filename: file.read(one) for one in file.infolist()}
    for header in (b"{'descr': ", b"(" * 500, b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}"):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members.items():
                wrong = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
                file.writestr(name, wrong if name == "0/state/x.npy" else content)
        with pytest.raises(gs.errors.CheckpointError, match="0/state/x"):
            run(path, "gibbs", resume=True)


def test_memory_is_bounded_by_the_file(stored: dict[str, Arrays], tmp_path: Path) -> None:
    with open(tmp_path / "run", "wb") as file:
        np.savez_compressed(file, **{**stored["gibbs"], "0/tape/total": np.zeros(1 << 24)})
    tracemalloc.start()
    try:
        with pytest.raises(gs.errors.CheckpointError, match="compressed"):
            run(tmp_path / "run", "gibbs", resume=True)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_a_checkpoint_has_one_run_at_a_time(tmp_path: Path) -> None:
    path, refusals = tmp_path / "run", []

    def second(status: Status) -> None:
        if not refusals:
            for resume in (False, True):
                with pytest.raises(gs.errors.CheckpointError, match="another process is writing it") as error:
                    run(path, "gibbs", resume=resume)
                refusals.append(error)
            run(tmp_path / "run.2", "gibbs")

    run(path, "gibbs", progress=second)
    assert len(refusals) == 2
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run", "run.2"]
    run(path, "gibbs", resume=True)


def test_a_search_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "search"
    how: Arrays = {"method": "annealed", "task": "MAP", "rng": 1, "progress": False, "chains": 2}
    gs.infer(GLASS, sweeps=200, checkpoint=path, **how)
    arrays = read(path)
    for entry, place, value in (
        ("0/best", 0, 9),
        ("0/last", 0, -1),
        ("1/searcher/state/x", 3, 2),
        ("0/searcher/state/position", 0, 2**62),
        ("0/seen", (0, 0), 5),
        ("0/seen_values", 0, np.nan),
    ):
        write(path, changed(arrays, entry, place, value))
        with pytest.raises(gs.errors.CheckpointError, match="damaged one"):
            gs.infer(GLASS, sweeps=400, checkpoint=gs.Checkpoint(path, resume=True), **how)
    for entry in [name for name in arrays if name.startswith("0/")]:
        write(path, {name: one for name, one in arrays.items() if name != entry})
        with pytest.raises(gs.errors.CheckpointError):
            gs.infer(GLASS, sweeps=400, checkpoint=gs.Checkpoint(path, resume=True), **how)
    about = json.loads(arrays["about"].item())
    for name in about["progress"]:
        for value in (None, -3, "text", [], {"single": -1}, [3, 4, 5], ["[" * 5000] * 2):
            wrong = {**about, "progress": {**about["progress"], name: value}}
            write(path, {**arrays, "about": np.array(json.dumps(wrong))})
            with pytest.raises(gs.errors.CheckpointError):
                gs.infer(GLASS, sweeps=400, checkpoint=gs.Checkpoint(path, resume=True), **how)
