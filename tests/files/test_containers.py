"""Golden files of every stored format are read as ever, and changed ones are refused or answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gibbsite as gs
from tests.campaigns.containers import CONTAINERS, Checkpoint, campaign
from tests.files.golden import FOLDER, VALUES, read

# those whose loops take long to compile
SLOW = ("ner", "seg", "ladder", "herded", "search")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in CONTAINERS]
)
def test_golden_files_are_read_as_ever(name: str, tmp_path: Path) -> None:
    if name == "seg":
        pytest.importorskip("skimage")
    known = json.loads(VALUES.read_text())[name]
    container = CONTAINERS[name]
    if isinstance(container, Checkpoint):  # which belongs to the version that wrote it
        header, _ = container.read(FOLDER / name)
        if header["plan"]["gibbsite"] != gs.__version__:
            with pytest.raises(gs.CheckpointError):
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


def test_a_kind_that_is_no_text(tmp_path: Path) -> None:
    for name in ("result", "weighted"):
        container = CONTAINERS[name]
        header, arrays = container.read(FOLDER / name)
        for kind in ([], {}, None, 3):
            container.write(tmp_path / name, (header | {"kind": kind}, arrays))
            with pytest.raises(gs.FormatError, match="another kind"):
                container.use(tmp_path / name)


def test_numbers_about_weights_that_are_none(tmp_path: Path) -> None:
    container = CONTAINERS["weighted"]
    header, arrays = container.read(FOLDER / "weighted")
    for name in ("gap", "unseen", "pareto_k"):
        content = header["content"] | {"diagnostics": header["content"]["diagnostics"] | {name: None}}
        container.write(tmp_path / "w", (header | {"content": content}, arrays))
        with pytest.raises(gs.FormatError, match="not made of numbers"):
            container.use(tmp_path / "w")
