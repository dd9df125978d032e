"""SIGTERM and Ctrl-C: partial results are saved and written, with one exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.progress import Status, catch_interrupt, whole_runs_only


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
def test_a_run_ended_by_a_signal_leaves_a_checkpoint_and_an_answer(tmp_path: Path, on: str) -> None:
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


def test_runs_that_are_parts_of_something_larger_are_whole_or_raise() -> None:
    said: list[str] = []
    with whole_runs_only():
        with catch_interrupt(said.append) as flag:
            pass
        assert not flag.up
        with pytest.raises(KeyboardInterrupt), catch_interrupt(said.append) as flag:
            signal.raise_signal(signal.SIGINT)
            assert flag.up  # the run comes to its end in good order
        with pytest.raises(ValueError, match="first"), catch_interrupt(said.append):
            signal.raise_signal(signal.SIGINT)
            raise ValueError("first")
    with catch_interrupt(said.append) as flag:
        signal.raise_signal(signal.SIGINT)
    assert ["returning" in each for each in said] == [False, False, True]


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt every run when it begins to record; return a list with an entry for each such run."""
    run, runs = Driver.run, []

    def run_and_interrupt(self: Driver) -> Iterator[Status]:
        for status in run(self):
            if status.phase == "sampling" and not self.flag.up:
                runs.append(1)
                signal.raise_signal(signal.SIGINT)
            yield status

    monkeypatch.setattr(Driver, "run", run_and_interrupt)
    return runs


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Run the command line in this process; return the exit code."""
    monkeypatch.setattr(sys, "argv", ["gibbsite", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_an_interrupted_experiment_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: list[int], capsys: pytest.CaptureFixture
) -> None:
    words = ["reproduce", "herded-discrepancy", "--quick", "-o", tmp_path]
    assert call(monkeypatch, *words) == 130
    assert len(interrupted) == 1  # it does not go on with the next run
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err.endswith("gibbsite: interrupted\n")


def test_an_interrupted_image_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: list[int]
) -> None:
    from gibbsite.applications import write_image

    noisy, clean = tmp_path / "noisy.png", tmp_path / "clean.png"
    write_image((np.random.default_rng(1).random((12, 12)) < 0.3).astype(np.uint8) * 255, str(noisy))
    assert call(monkeypatch, "denoise", noisy, "-o", clean, "--rng", 1, "-q") == 130
    assert len(interrupted) == 1
    assert not clean.exists()


def test_draws_that_were_asked_for_come_all_or_not_at_all(interrupted: list[int]) -> None:
    with pytest.raises(KeyboardInterrupt):
        gs.perfect_draws(gs.ising_grid((3, 3), coupling=0.1), 100_000, rng=1)
    with pytest.raises(KeyboardInterrupt):
        gs.recommend(gs.ising_grid((4, 4), coupling=0.1), seconds=1.0)
    assert len(interrupted) == 2


@pytest.mark.parametrize("inside", [False, True])
def test_an_interrupt_while_the_command_line_is_loaded_ends_it_in_good_order(inside: bool) -> None:
    """The interrupt comes with the first module that the command line needs, before it handles anything.

    Inside an exec() as of a named tuple, Python would remember it, and end with the signal.
    """
    how = "signal.raise_signal(signal.SIGINT)"
    how = f"exec('{how}')" if inside else how
    code = (
        "import runpy, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'click': {how}\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['gibbsite', 'infer', 'asia']\n"
        "runpy.run_module('gibbsite', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "gibbsite: interrupted\n")


def test_an_interrupt_before_anything_is_loaded_leaves_no_traceback() -> None:
    """The interrupt comes with the first module of the package, before the entry point can catch it."""
    code = (
        "import runpy, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gibbsite._common': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['gibbsite', 'infer', 'asia']\n"
        "runpy.run_module('gibbsite', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_loading_the_library_leaves_interrupts_alone() -> None:
    code = (
        "import signal\n"
        "import gibbsite as gs\n"
        "gs.ising_grid((2, 2))\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
