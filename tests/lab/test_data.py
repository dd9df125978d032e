"""What a run says about its data, with and without the files that it reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import gibbsite as gs
from gibbsite.lab.data import VARIABLE, DataSource, data_folder, describe_data, require

SOURCE = DataSource("two shapes", ("shapes/a.png", "shapes/b.png"), "DRAWN shapes")


def make_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_data_are_used_only_if_all_files_exist(tmp_path: Path) -> None:
    make_files(tmp_path, SOURCE.files[0])
    with data_folder(tmp_path):
        assert SOURCE.paths() == []
        assert describe_data(SOURCE) == f"Data: DRAWN shapes, because {tmp_path} has no shapes/b.png."
        with pytest.raises(gs.errors.FormatError, match=r"shapes/b\.png, which this experiment needs"):
            require(SOURCE)
        make_files(tmp_path, SOURCE.files[1])
        assert SOURCE.paths() == [tmp_path / name for name in SOURCE.files]
        assert describe_data(SOURCE) == f"Data: two shapes, from {tmp_path}."
        require(SOURCE)
    require(None)


def test_a_given_folder_replaces_that_of_the_environment_for_a_while(tmp_path: Path) -> None:
    before = os.environ[VARIABLE]
    with data_folder(tmp_path):
        assert os.environ[VARIABLE] == str(tmp_path)
    with data_folder(None):
        assert os.environ[VARIABLE] == before
    assert os.environ[VARIABLE] == before


def test_without_a_folder_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE)
    assert describe_data(SOURCE) == "Data: DRAWN shapes, because GIBBSITE_DATA is not set; see --data."
    with data_folder(tmp_path):
        pass
    assert VARIABLE not in os.environ


def test_a_folder_that_lacks_the_data_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(gs.errors.FormatError, match="worldwide-newswire"):
        gs.lab.run("herded-entities", quick=True, data=tmp_path, progress=False)
    with pytest.raises(gs.errors.FormatError, match="no folder of this name"):
        gs.lab.run("herded-entities", quick=True, data=tmp_path / "none", progress=False)


def test_findings_name_their_data() -> None:
    found = gs.lab.run("herded-discrepancy", quick=True, progress=False)
    assert found.text().startswith("Data: none from outside")
    assert found.to_dict()["data"] == found.data
