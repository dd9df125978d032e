"""``gibbsite reproduce`` as a new user would try it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.cli import main

NAME = "herded-discrepancy"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the command line in an empty folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", "reproduce", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capfd.readouterr())

    return call


def test_without_a_name_it_lists(run: Any) -> None:
    code, out, _ = run()
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[: len(gs.lab.NAMES)]] == list(gs.lab.NAMES)
    code, out, _ = run("--json")
    assert [entry["name"] for entry in json.loads(out)] == list(gs.lab.NAMES)


def test_it_prints_the_table_and_saves_figure_and_numbers(run: Any, tmp_path: Path) -> None:
    code, out, err = run(NAME, "--quick")
    assert code == 0
    assert "Paper against ours" in out
    assert f"saved {NAME}" in err
    assert sorted(path.name for path in (tmp_path / NAME).iterdir()) == [f"{NAME}.json", f"{NAME}.png"]
    # an existing folder is used again, and what else is in it is left alone
    (tmp_path / NAME / "mine.txt").write_text("mine")
    code, out, err = run(NAME, "--quick", "-o", NAME, "--json", "--rng", "3", "--quiet")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["experiment"], answer["rng"], answer["quick"]) == (NAME, 3, True)
    assert answer == json.loads((tmp_path / NAME / f"{NAME}.json").read_text(encoding="utf-8"))
    assert (tmp_path / NAME / "mine.txt").read_text() == "mine"


def test_all_of_them_go_into_folders_of_their_own(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.lab.experiment.NAMES", (NAME,))
    code, out, _ = run("all", "--quick", "-o", "found", "--json", "-q")
    assert code == 0
    assert [answer["experiment"] for answer in json.loads(out)] == [NAME]
    assert (Path("found") / NAME / f"{NAME}.png").exists()


def test_the_first_line_says_which_data_are_used(run: Any, tmp_path: Path) -> None:
    code, out, _ = run(NAME, "--quick", "-q")
    assert (code, out.splitlines()[0].startswith("Data: none from outside")) == (0, True)
    assert out.count("Data:") == 1
    code, out, err = run("herded-entities", "--data", str(tmp_path))
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "there is no ner/worldwide-newswire/train.tsv.gz" in err
    assert run("--data", str(tmp_path))[0] == 2  # without a name there is nothing to run


def test_an_unknown_name_is_one_line_with_the_names(run: Any) -> None:
    code, out, err = run("herded-denoise")
    assert (code, out) == (2, "")
    assert err.count("\n") == 4
    assert "did you mean 'herded-denoising'?" in err
    assert all(name in err for name in gs.lab.NAMES)
    assert list(Path().iterdir()) == []


def test_a_file_in_the_way_is_one_line_before_the_run(run: Any, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("in the way")
    code, out, err = run(NAME)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "this is a file" in err


def test_a_bad_seed_is_a_usage_error(run: Any) -> None:
    assert run(NAME, "--rng", "-1")[0] == 2


def test_data_are_converted(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "ieer").mkdir()
    text = '<DOC><DOCNO> A </DOCNO><TEXT>In <b_enamex type="LOCATION">Rome<e_enamex>.</TEXT></DOC>'
    (tmp_path / "ieer" / "APW_19980314").write_text(text)

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", "data", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capfd.readouterr())

    place = tmp_path / "papers" / "ner" / "ieer"
    assert call("ieer", tmp_path / "ieer", tmp_path / "papers") == (0, "", f"gibbsite: 1 articles, in {place}\n")
    assert (place / "APW_19980314.tsv.gz").is_file()
    assert call("ieer", tmp_path / "ieer", tmp_path / "papers", "-q") == (0, "", "")
    code, _, said = call("msrc", tmp_path / "ieer", tmp_path / "papers")
    assert (code, said.count("\n")) == (3, 1)
    assert call("nonsense", tmp_path, tmp_path)[0] == 2
