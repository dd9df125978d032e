"""Golden files of every stored format are read as ever, and changed ones are refused or answer."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from tests.campaigns.containers import CONTAINERS, Checkpoint, campaign
from tests.common.golden import FOLDER, VALUES, read

# those whose loops take long to compile
SLOW = ("ner", "seg", "ladder", "herded", "search")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in CONTAINERS])
def test_golden_files_are_read_as_ever(name: str, tmp_path: Path) -> None:
    if name == "seg":
        pytest.importorskip("skimage")
    known = json.loads(VALUES.read_text())[name]
    container = CONTAINERS[name]
    if isinstance(container, Checkpoint):  # which belongs to the version that wrote it
        header, _ = container.read(FOLDER / name)
        if header["plan"]["gibbsite"] != gs.__version__:
            with pytest.raises(gs.errors.CheckpointError):
                read(name, tmp_path)
            return
    found = read(name, tmp_path)
    assert found == (pytest.approx(known, rel=1e-9, abs=1e-12) if isinstance(known[0], float) else known)


@pytest.mark.parametrize(
    ("kinds", "many"),
    [
        (["pairs", "scan", "result"], 25),
        pytest.param(sorted({*CONTAINERS} - {"ner", "seg"}), 150, marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
def test_changed_files(kinds: list[str], many: int) -> None:
    """A short piece of the campaign, in a process that may crash."""
    found = campaign(kinds, many, seed=7, say=lambda line: None)
    assert {kind: one["failures"] for kind, one in found.items()} == {kind: [] for kind in kinds}
    assert all(one["done"] == many and one["refused"] > many // 4 for one in found.values())


@pytest.mark.parametrize("order", "<>")
def test_texts_of_invalid_characters_are_refused(order: str, tmp_path: Path) -> None:
    header, arrays = CONTAINERS["result"].read(FOLDER / "result")
    text = json.dumps(header)
    about = np.array(text).astype(f"{order}U{len(text)}")
    codes = np.frombuffer(about.tobytes(), f"{order}u4").copy()
    codes[5] = 0x110000
    with (tmp_path / "result").open("wb") as file:
        np.savez(file, about=codes.view(about.dtype).reshape(()), **arrays)
    with pytest.raises(gs.errors.FormatError, match="is not text"):
        gs.load(tmp_path / "result")


def test_names_of_arrays_are_escaped_in_messages(tmp_path: Path) -> None:
    """A changed byte in the name of an array can be a line break; the message is one line all the same."""
    path = tmp_path / "run"
    with zipfile.ZipFile(FOLDER / "ladder") as file, zipfile.ZipFile(path, "w") as changed:
        for name in file.namelist():
            damaged = "/tape/best" in name
            changed.writestr(
                name.replace("/tape", "/\nape\x1b") if damaged else name, b"?" if damaged else file.read(name)
            )
    with pytest.raises(gs.errors.CheckpointError, match="damaged") as caught:
        CONTAINERS["ladder"].use(path)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_a_kind_that_is_no_text(tmp_path: Path) -> None:
    for name in ("result", "weighted"):
        container = CONTAINERS[name]
        header, arrays = container.read(FOLDER / name)
        for kind in ([], {}, None, 3):
            container.write(tmp_path / name, (header | {"kind": kind}, arrays))
            with pytest.raises(gs.errors.FormatError, match="another kind"):
                container.use(tmp_path / name)


def test_numbers_about_weights_that_are_none(tmp_path: Path) -> None:
    container = CONTAINERS["weighted"]
    header, arrays = container.read(FOLDER / "weighted")
    for name in ("gap", "unseen", "pareto_k"):
        content = header["content"] | {"diagnostics": header["content"]["diagnostics"] | {name: None}}
        container.write(tmp_path / "w", (header | {"content": content}, arrays))
        with pytest.raises(gs.errors.FormatError, match="not made of numbers"):
            container.use(tmp_path / "w")


def test_a_recorder_without_rows(tmp_path: Path) -> None:
    container = CONTAINERS["result"]
    header, arrays = container.read(FOLDER / "result")
    container.write(tmp_path / "r", (header, arrays | {"block_0": arrays["block_0"][:0]}))
    with pytest.raises(gs.errors.FormatError, match="damaged"):
        container.use(tmp_path / "r")


@pytest.mark.parametrize("again", [0, 1])
def test_names_in_an_archive_that_are_no_text(again: int, tmp_path: Path) -> None:
    """Names that say they are UTF-8 and are not: that of an entry, and that in the list of entries."""
    data = bytearray((FOLDER / "scan").read_bytes())
    head = [data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")][again]
    flags, name = head + (6, 8)[again], head + (30, 46)[again]
    data[flags + 1] |= 0x08
    data[name] = 0xBA
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(gs.errors.FormatError):
        gs.load(tmp_path / "s")


def test_checkpoints_with_draws_that_were_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run"
    how = {"rng": 1, "progress": False, "chains": 2, "criteria": gs.Criteria(dispersed_starts=False)}
    model = gs.ising_grid((2, 2), coupling=0.2)
    gs.sample(model, sweeps=4, checkpoint=path, **how)
    with np.load(path) as file:
        arrays = dict(file)
    for name in ("0/tape/values", "1/tape/energy"):
        grown = np.zeros((1, *arrays[name].shape[1:]), arrays[name].dtype)
        with open(path, "wb") as file:
            np.savez(file, **{**arrays, name: grown})
        with pytest.raises(gs.errors.CheckpointError, match="other numbers of recorded draws"):
            gs.sample(model, sweeps=8, checkpoint=gs.Checkpoint(path, resume=True), **how)
