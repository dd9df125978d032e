"""``gibbsite warmup`` leaves nothing to compile for the jobs it has done."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gibbsite as gs
from gibbsite._numba.files import read_checked
from gibbsite.cli import warmup
from gibbsite.cli.warmup import pairings
from gibbsite.testing import tiny_models

_WARM = """
import warnings
import gibbsite as gs
from gibbsite.cli.warmup import answer_all
warnings.simplefilter("ignore")
answer_all(gs.example("alarm").observe({"HRBP": "HIGH"}), ["gibbs"])
"""


@pytest.mark.campaign  # everything is compiled once more
def test_infer_compiles_nothing_afterwards(tmp_path: Path) -> None:
    env = {**os.environ, "GIBBSITE_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _WARM], env=env, check=True)
    for task in ("MAR", "MAP"):
        words = ["infer", "alarm", "--observe", "CO=LOW", "--method", "gibbs", "--sweeps", "300", "--task", task]
        done = subprocess.run([sys.executable, "-m", "gibbsite", *words], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave two groups that are quick to compile."""
    monkeypatch.setattr(warmup, "_work", lambda: {"one": lambda: None, "two": lambda: None})


def test_compilations_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    done = CliRunner().invoke(warmup.command, ["--jobs", "1"])
    assert done.exit_code == 0
    begin, *groups, end = done.stderr.splitlines()
    assert begin.startswith("gibbsite: compiling 2 groups of functions, 1 at a time, ")
    assert groups == ["gibbsite: 1 of 2: one, 0 s", "gibbsite: 2 of 2: two, 0 s"]
    assert end.startswith("gibbsite: all kernels compiled in ")
    assert CliRunner().invoke(warmup.command, ["-q", "--jobs", "1"]).output == ""


def test_groups_are_named_and_cover_all_kinds() -> None:
    names = list(warmup._work())
    assert len(names) == len(set(names))
    assert "all methods of gibbsite infer" in names
    assert sum(name.startswith("sampling a model like ") for name in names) == len(tiny_models())


def test_processes_share_the_work(tmp_path: Path) -> None:
    """Two processes compile at the same time, for one index, and none loses what the other has compiled."""
    code = """
import sys
import numpy as np
from gibbsite._numba.random.alias import _fill
for dtype in sys.argv[1:]:
    _fill(np.ones(2, dtype), np.ones(2), np.ones(2), np.ones(2, np.int64))
"""
    env = {**os.environ, "GIBBSITE_CACHE_DIR": str(tmp_path)}
    kinds = (["f8", "f4"], ["i8", "i4"])
    both = [subprocess.Popen([sys.executable, "-c", code, *each], env=env) for each in kinds]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    assert not list(tmp_path.rglob("*.lock"))
    (index,) = tmp_path.rglob("gibbsite._numba.random.alias._fill.*.nbi")
    content = read_checked(index)
    assert content is not None
    assert len(pickle.loads(content)) == 4


@pytest.mark.long
def test_every_kernel_is_given_scans_of_what_it_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of blocks have orders of blocks; runs are stopped before anything is compiled."""

    class Begun(Exception):
        pass

    def begin(*given: Any, **how: Any) -> None:
        raise Begun

    monkeypatch.setattr("gibbsite.inference.sampling.record_chains", begin)
    model, begun = tiny_models()["tables"], set()
    for kernel, scans in pairings(model):
        for scan in scans:
            try:
                gs.sample(model, kernel, scan=scan, seconds=0.001, progress=False, threads=1)
            except Begun:
                begun.add(type(kernel).__name__)
            except gs.errors.IncompatibleError:
                pass
    assert {"Gibbs", "BlockGibbs", "CutsetGibbs", "Perfect", "MiniBucketMetropolis"} <= begun
