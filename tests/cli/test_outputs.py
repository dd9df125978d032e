"""Streams that are closed or full: no traceback, no mixture of data and messages, no answer that is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gibbsite.cli.outputs import deliver
from gibbsite.errors import FormatError

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell in which "gibbsite" is the one that is tested."""
    start = f'gibbsite() {{ "{sys.executable}" -m gibbsite "$@"; }}; set -o pipefail; '
    return subprocess.run(["bash", "-c", start + command], capture_output=True, text=True, check=False)


def test_a_closed_stdout_is_an_error_and_not_a_traceback(tmp_path: Path) -> None:
    done = shell("gibbsite infer asia -q >&-")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "standard output is closed" in done.stderr
    place = tmp_path / "answer.json"
    assert shell(f"gibbsite infer asia -q --json -o {place} >&-").returncode == 0
    assert json.loads(place.read_text())["kind"] == "exact"


def test_messages_for_a_closed_stderr_do_not_go_to_stdout() -> None:
    done = shell("gibbsite infer asia --query smoke 2>&-")
    assert (done.returncode, done.stdout) == (0, "smoke  yes 0.5000  no 0.5000\n")


def test_a_reader_that_has_read_enough_is_no_failure() -> None:
    """True closes its end before anything is written."""
    for command in ("infer alarm -q", "info asia"):
        done = shell(f"gibbsite {command} | true")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_full
def test_an_answer_that_cannot_be_written_goes_to_stdout() -> None:
    done = shell("gibbsite infer asia --query smoke --json -o /dev/full")
    assert done.returncode == 3
    assert json.loads(done.stdout)["marginals"]["smoke"] == {"yes": 0.5, "no": 0.5}
    verdict, said = done.stderr.splitlines()
    assert verdict.startswith("exact")
    assert said.startswith("gibbsite: /dev/full: ") and said.endswith("written to standard output instead.")


@needs_full
def test_what_does_not_fit_stdout_goes_to_a_file_and_the_message_says_where() -> None:
    def write(path: str) -> None:
        with open(path, "wb") as file:
            file.write(b"a model")

    with pytest.raises(FormatError, match="was written to /") as caught:
        deliver(str(FULL), write)
    place = Path(str(caught.value).split("written to ")[1].removesuffix(" instead."))
    assert place.read_bytes() == b"a model"
    place.unlink()
    place.parent.rmdir()


@needs_full
def test_an_answer_that_fits_nowhere_says_why() -> None:
    def write(path: str) -> None:
        with open(FULL, "wb") as file:
            file.write(b"a model")

    with pytest.raises(OSError, match="No space"):
        deliver("model.ner", write)
