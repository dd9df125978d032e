"""Locks: one writer at a time, and none that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gibbsite._common import lock
from gibbsite._common.lock import hold

HOLDER = """
import sys, time
from pathlib import Path
from gibbsite._common import lock
if sys.argv[2] == "names":
    lock.fcntl = None
with lock.hold(Path(sys.argv[1]), ValueError):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("by", ["flock", "names"])
def test_a_lock_ends_with_its_process(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "names":  # as where there is no flock
        monkeypatch.setattr(lock, "fcntl", None)
    path = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path, by], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match="another process"), hold(path, ValueError):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (tmp_path / ".run.lock").exists()
    with hold(path, ValueError), pytest.raises(ValueError, match="another process"), hold(path, ValueError):
        pass
    assert not list(tmp_path.iterdir())


def test_locks_of_other_names_do_not_matter(tmp_path: Path) -> None:
    with hold(tmp_path / "run", ValueError), hold(tmp_path / "run.2", ValueError):
        pass
    assert not list(tmp_path.iterdir())


def test_the_lock_of_another_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    (tmp_path / ".run.lock").write_text("elsewhere 1")
    with pytest.raises(ValueError, match="another process"), hold(tmp_path / "run", ValueError):
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"), hold(tmp_path / "no" / "run", ValueError):
        pass
    assert os.listdir(tmp_path) == []
