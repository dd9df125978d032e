"""Many cases on the command line: every row answered, bad ones named, interrupted runs continued."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.cases import answers
from gibbsite.cli import main

ASIA = gs.example("asia")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process; return exit code, stdout and stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 1 if code else 0), out, err

    return call


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    codes = gs.solve_exact(ASIA).draw(50, rng)
    path = tmp_path / "cases.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smoke", "xray", "dysp", "note"])
        for row in codes:
            labels = [ASIA.labels(site)[row[ASIA.index(site)]] for site in ("smoke", "xray", "dysp")]
            writer.writerow([label if rng.random() < 0.7 else "" for label in labels] + ["=1+1"])
    return path


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_all_rows_are_answered(run: Any, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("infer", "asia", "--cases", str(cases), "--query", "lung", "-o", str(out))[0] == 0
    found = gs.applications.solve_cases(ASIA, cases, ["lung"])
    rows = rows_of(out.read_text(encoding="utf-8"))
    assert [float(row["lung=yes"]) for row in rows] == found.probabilities("lung")[:, 0].tolist()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    shown = run("infer", "asia", "--cases", str(cases), "--query", "lung", "-q")[1]
    assert rows_of(shown) == rows


def test_an_interrupted_run_is_continued(
    run: Any, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.csv"
    words = ("infer", "asia", "--cases", str(cases), "--query", "lung,tub", "-o", str(out))
    monkeypatch.setattr(answers, "_BLOCK", 10)
    solve, calls = answers.CaseTree.solve, []

    def interrupted(self: Any, codes: Any, marginals: bool = True) -> Any:
        calls.append(len(codes))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(self, codes, marginals)

    monkeypatch.setattr(answers.CaseTree, "solve", interrupted)
    code, _, err = run(*words)
    assert code == 130 and "--resume continues after 20 of 50 cases" in err and not out.exists()
    kept = next(path for path in tmp_path.iterdir() if path.name.endswith(".part"))
    kept.write_text(kept.read_text(encoding="utf-8") + "21,0.5", encoding="utf-8")  # a row that was cut off
    assert run(*words, "--resume")[0] == 0 and sum(calls[3:]) == 30
    resumed = out.read_text(encoding="utf-8")
    assert run(*words)[0] == 0 and out.read_text(encoding="utf-8") == resumed


def test_what_was_kept_of_other_cases_is_refused(
    run: Any, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.csv"
    (tmp_path / ".out.csv.part").write_text("gibbsite cases 0\n1,2\n", encoding="utf-8")
    code, _, err = run("infer", "asia", "--cases", str(cases), "-o", str(out), "--resume")
    assert code == 3 and "other cases" in err


def test_bad_rows_are_named(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("smoke,tub,either\nyes,,\nperhaps,,\n,yes,no\n", encoding="utf-8")
    code, out, err = run("infer", "asia", "--cases", str(path), "--query", "lung")
    rows = rows_of(out)
    assert code == 0 and rows[0]["problem"] == "" and rows[1]["lung=yes"] == rows[2]["lung=yes"] == ""
    assert "row 2, column 'smoke': there is no state 'perhaps'" in err and "row 3" in err
    assert run("infer", "asia", "--cases", str(path), "--strict")[0] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "PR"), "--cases answers MAR and MAP"),
        (("--resume",), "--resume"),
        (("--best", "3", "--task", "MAP"), "--best"),
    ],
)
def test_mistakes_get_one_line(run: Any, cases: Path, words: tuple[str, ...], said: str) -> None:
    code, out, err = run("infer", "asia", "--cases", str(cases), *words)
    assert code == 2 and out == "" and said in err


def test_cases_are_files_and_answers_are_csv(run: Any, cases: Path) -> None:
    code, out, err = run("infer", "asia", "--cases", str(cases), "-o", "answers.json")
    assert code == 2 and not out and "are CSV, not .json; name a .csv file" in err
    code, out, err = run("infer", "asia", "--cases", "-")
    assert code == 2 and not out and "--cases needs a file" in err
