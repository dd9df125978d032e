"""Completion in a real bash: what the function that ``gibbsite completion bash`` defines replies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

import gibbsite as gs
import gibbsite.cli.completion  # adds the shells
from gibbsite.cli import group

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

# compopt belongs to a shell that waits for a key; here it prints its arguments
_ASK = """
source <(gibbsite completion bash)
compopt() { local IFS=" "; echo "compopt $*"; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_gibbsite_completion gibbsite
printf '%s\\n' "${COMPREPLY[@]}"
"""
FILES = ["compopt -o default", ""]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the command gibbsite of this Python."""
    command = tmp_path / "gibbsite"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gibbsite "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "replies"),
    [
        (["inf"], ["infer", "info"]),
        (["infer", "mod"], FILES),
        (["infer", ""], FILES),
        (["infer", "ala"], ["alarm"]),
        (["infer", "alarm", "-o", "x"], FILES),
        (["infer", "alarm", "-e", "x"], FILES),
        (["infer", "alarm", "--checkpoint", "x"], FILES),
        (["infer", "alarm", "--method", "her"], ["herded", "herded-shared"]),
        (["infer", "alarm", "--method", "=", "gi"], ["gibbs"]),
        (["infer", "alarm", "--observe", "CO", "=", "LOW", "--scan", "pal"], ["palindromic"]),
        (["infer", "alarm", "--scan", "mine.n"], FILES),
        (["convert", "a.uai", "b"], FILES),
        (["convert", "a.uai", "b", "--to", "xm"], ["xmlbif"]),
        (["denoise", "in"], FILES),
        (["reproduce", "dogs-m"], ["dogs-marginal", "dogs-mle"]),
        (["reproduce", "all", "-o", "f"], ["compopt -o dirnames", ""]),
        (["infer", "asia", "--observe", "x"], ["xray=yes", "xray=no"]),
        (["infer", "alarm", "--observe", "HR"], ["HRBP=", "HREKG=", "HRSAT=", "HR="]),
        (["infer", "alarm", "--observe", "CO", "="], ["LOW", "NORMAL", "HIGH"]),
        (["infer", "alarm", "--observe", "CO", "=", "L"], ["LOW"]),
        (["infer", "alarm", "--observe", "=", "CO", "=", "L"], ["LOW"]),
        (["info", "asia", "--observe", "tub", "=", "yes", "--observe", "lung", "=", "n"], ["no"]),
        (["infer", "asia", "--query", "l"], ["lung"]),
        (["infer", "asia", "--query", "lung,t"], ["lung,tub"]),
        (["infer", "asia", "--max", "xray,d"], ["xray,dysp"]),
        (["certify", "asia", "--target", "bron"], ["bronc"]),
        (["infer", "--observe", "C"], [""]),  # no model yet
        (["infer", "no-such-file", "--observe", "C"], [""]),
        (["infer", "-", "--observe", "C"], [""]),
    ],
)
def test_replies(folder: Path, words: list[str], replies: list[str]) -> None:
    assert ask(folder, words) == replies
    assert sorted(path.name for path in folder.iterdir()) == ["gibbsite"]  # nothing is tried out at a key


def ask(folder: Path, words: list[str]) -> list[str]:
    """Return the completions of the last word that bash gets."""
    done = subprocess.run(
        ["bash", "--norc", "-c", _ASK, "bash", "gibbsite", *words],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.splitlines()


def test_names_with_blanks_and_colons(folder: Path) -> None:
    sites = {"my site": ["a b", "$c"], "x:y": ["0", "1"]}
    odd = gs.FactorGraph(sites, [("my site", [0.5, 0.5]), ("x:y", [0.1, 0.9])], directed=True)
    gs.write_model(odd, folder / "odd.xmlbif")
    assert ask(folder, ["infer", "odd.xmlbif", "--observe", "m"]) == [r"my\ site=a\ b", r"my\ site=\$c"]
    assert ask(folder, ["infer", "odd.xmlbif", "--observe", r"my\ site", "=", "a"]) == [r"a\ b"]
    assert ask(folder, ["infer", "odd.xmlbif", "--observe", "x", ":", "y"]) == ["y=0", "y=1"]
    assert ask(folder, ["infer", "odd.xmlbif", "--query", "x", ":"]) == ["y"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_that_keep_words_together(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    monkeypatch.setattr(kind, "get_completion_args", lambda self: (["infer", "alarm"], "--method=gi"))
    assert "--method=gibbs" in kind(group, {}, "gibbsite", "_GIBBSITE_COMPLETE").complete()
    monkeypatch.setattr(kind, "get_completion_args", lambda self: (["infer", "asia", "--observe"], "tub=y"))
    assert "tub=yes" in kind(group, {}, "gibbsite", "_GIBBSITE_COMPLETE").complete()


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "gibbsite", "--help"], capture_output=True, text=True)
    assert done.stdout.startswith("Usage: gibbsite")
