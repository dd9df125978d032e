"""Completion in a real bash: what the function that ``gibbsite completion bash`` defines replies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    ],
)
def test_replies(folder: Path, words: list[str], replies: list[str]) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", _ASK, "bash", "gibbsite", *words],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == replies, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["gibbsite"]  # nothing is tried out at a key


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "gibbsite", "--help"], capture_output=True, text=True)
    assert done.stdout.startswith("Usage: gibbsite")
