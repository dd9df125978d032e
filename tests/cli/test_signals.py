"""SIGTERM and Ctrl-C: what there is is saved and written, with one exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gibbsite.run.interrupt import catch_interrupt


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_raises_a_flag_and_the_second_stops(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    said: list[str] = []
    with catch_interrupt(said.append) as flag:
        os.kill(os.getpid(), number)
        assert flag.up
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
            time.sleep(1.0)
    assert len(said) == 1
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("on", ["threads", pytest.param("local-dask", marks=pytest.mark.long)])
def test_a_run_that_is_told_to_end_leaves_a_checkpoint_and_an_answer(tmp_path: Path, on: str) -> None:
    """By SIGTERM alone; or by Ctrl-C in a terminal, which its workers get, too."""
    saved, answer = tmp_path / "run.npz", tmp_path / "answer.json"
    words = ["infer", "asia", "--method", "gibbs", "--sweeps", "1000000000", "--rng", "1", "--json"]
    words += ["--checkpoint-every", "1e6"]  # but for the first and the last
    if on == "local-dask":
        pytest.importorskip("distributed")
        words += ["--on", on]
    process = subprocess.Popen(
        [sys.executable, "-m", "gibbsite", *words, "--checkpoint", str(saved), "-o", str(answer)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        limit = time.monotonic() + 600.0  # it may have to compile, on a busy machine
        while not saved.exists():
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.05)
        seen = saved.stat().st_mtime_ns
        if on == "local-dask":
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(300.0) == 130
    finally:
        process.kill()
    assert saved.stat().st_mtime_ns > seen
    assert json.loads(answer.read_text())["diagnostics"]["converged"] is False
