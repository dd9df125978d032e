"""``gibbsite warmup`` leaves nothing to compile for the jobs it has done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
        words = [
            "infer",
            "alarm",
            "--observe",
            "CO=LOW",
            "--method",
            "gibbs",
            "--sweeps",
            "300",
            "--task",
            task,
        ]
        done = subprocess.run(
            [sys.executable, "-m", "gibbsite", *words], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr
