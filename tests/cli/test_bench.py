"""``gibbsite bench`` hands over to the repository's benchmarks, or says where they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gibbsite.cli import main

ROOT = Path(__file__).parent.parent.parent
# words of the user: words handed over
HANDED_OVER = {
    (): [],
    ("--quick",): ["--quick"],
    ("--only", "speed", "--only", "grid100"): ["--only", "speed", "--only", "grid100"],
    ("--json", "f.json", "--quick"): ["--quick", "--json", "f.json"],
}


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> object:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["gibbsite", "bench", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


@pytest.mark.parametrize("words", HANDED_OVER)
@pytest.mark.parametrize("code", [0, 1, 2])
def test_words_and_exit_code_are_handed_over(
    words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def called(call: list[str]) -> SimpleNamespace:
        calls.append(call)
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(subprocess, "run", called)
    assert run(monkeypatch, ROOT, *words) == code
    assert calls == [[sys.executable, "-m", "benchmarks", *HANDED_OVER[words]]]


@pytest.mark.parametrize("folder", ["empty", "of another project"])
def test_without_a_checkout_one_line_says_where_they_are(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if folder != "empty":
        (tmp_path / "benchmarks").mkdir()
        (tmp_path / "benchmarks" / "__main__.py").write_text("raise SystemExit(99)")
    assert run(monkeypatch, tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "checkout" in err
