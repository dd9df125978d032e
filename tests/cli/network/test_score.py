"""The command that scores a model on cases prints the numbers of the library."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import gibbsite as gs
from gibbsite.cli import main


def test_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("smoke,lung,xray\nyes,no,no\nno,no,yes\nyes,yes,yes\nyes,maybe,\n", encoding="utf-8")
    found = gs.applications.score_cases(gs.example("asia"), path, "lung")
    for extra in ((), ("--json",)):
        monkeypatch.setattr(sys, "argv", ["gibbsite", "score", "asia", str(path), "--target", "lung", *extra])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        assert stop.value.code == 0 and "row 4, column 'lung': there is no state 'maybe'" in err
        if extra:
            assert json.loads(out) == json.loads(json.dumps(found.to_dict()))
        else:
            assert out == f"{found}\n"
