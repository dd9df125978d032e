"""Ctrl-C returns partial results the first time and stops the second time."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling import executor
from gibbsite.sampling.progress import Status, catch_interrupt

MODEL = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.1, -0.2])

# Written without Python's buffers: a signal may come while "ready" is being written, and within print
# Python refuses to print what the handler has to say.
SCRIPT = """
    import os
    import sys
    import numpy as np
    import gibbsite as gs
    from gibbsite.sampling import executor, progress

    def say(message):
        os.write(1, (message + "\\n").encode())

    def ready(status):
        if status.phase == "sampling":
            say("ready")

    progress.Callback.say = lambda self, message: say(message)
    executor.Threads.block_seconds = float(sys.argv[1])
    model = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.1, -0.2])
    result = gs.sample(model, sweeps=10**12, warmup=10, rng=1, chains=3, threads=2, progress=ready)
    print("result", result.n_draws, result.interrupted, abs(result.marginals["0"][1] - 0.5) < 0.2)
"""


def start(block: float) -> subprocess.Popen[str]:
    """Begin a run that would take days, and wait until it is at work."""
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SCRIPT), str(block)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(child, "ready")
    return child


def wait_for(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(word):
            return
    raise AssertionError(f"the process ended before it said {word!r}")


def finish(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = child.communicate(timeout=120)
    finally:
        child.kill()
    return child.returncode, out, err


def test_a_signal_in_the_middle_of_a_write_is_obeyed() -> None:
    def say(message: str) -> None:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stdout>'>")

    with catch_interrupt(say) as flag:
        signal.raise_signal(signal.SIGINT)
        assert flag.up


def test_one_interrupt_returns_partial_results() -> None:
    child = start(block=0.15)
    child.send_signal(signal.SIGINT)
    code, out, err = finish(child)
    assert code == 0, err
    word, draws, interrupted, sane = out.splitlines()[-1].split()
    assert word == "result"
    assert 1 <= int(draws) < 10**12
    assert (interrupted, sane) == ("True", "True")


def test_two_interrupts_stop_at_once() -> None:
    child = start(block=2.0)  # both come within one block
    child.send_signal(signal.SIGINT)
    wait_for(child, "interrupted")
    child.send_signal(signal.SIGINT)
    code, out, err = finish(child)
    assert code != 0
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert "result" not in out


# ---- the same, exactly, in one process


class Presser:
    """Press Ctrl-C at chosen statuses."""

    def __init__(self, times: int, phase: str = "sampling") -> None:
        self.times, self.phase, self.statuses = times, phase, 0

    def __call__(self, status: Status) -> None:
        self.statuses += 1
        if status.phase == self.phase:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
            self.times = 0


def run(**kwargs: Any) -> gs.Result:
    return gs.sample(MODEL, **{"sweeps": 500, "warmup": 20, "rng": 1, **kwargs})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor.Threads, "block_seconds", 0.0)


def test_the_draws_made_so_far_are_those_of_the_whole_run() -> None:
    early = run(progress=Presser(1), record="draws")
    assert early.interrupted
    assert early.n_draws == 1
    assert "interrupted" in early.summary()
    whole = run(progress=False, record="draws")
    assert not whole.interrupted
    assert "interrupted" not in whole.summary()
    np.testing.assert_array_equal(early.draws, whole.draws[:, :1])


def test_interrupted_in_the_warmup_there_is_still_a_draw() -> None:
    early = run(progress=Presser(1, "warmup"))
    assert (early.warmup, early.n_draws, early.interrupted) == (1, 1, True)


@pytest.mark.parametrize("phase", ["warmup", "sampling"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_second_interrupt_is_an_exception(phase: str, threads: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(progress=Presser(2, phase), threads=threads)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    place = tmp_path / "run.ckpt"
    run(progress=Presser(1), checkpoint=place).save(tmp_path / "early.npz")
    run(progress=False, checkpoint=gs.Checkpoint(place, resume=True)).save(tmp_path / "resumed.npz")
    run(progress=False).save(tmp_path / "whole.npz")
    assert (tmp_path / "resumed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert (tmp_path / "early.npz").read_bytes() != (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler, lambda *args: None])
def test_the_handler_of_the_caller_is_put_back(handler: Any) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert run(progress=Presser(1)).interrupted
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_message_says_how_to_stop() -> None:
    said: list[str] = []
    with catch_interrupt(said.append) as flag:
        assert not flag.up
        signal.raise_signal(signal.SIGINT)
        assert flag.up
    assert len(said) == 1
    assert "again: stop now" in said[0]


def test_other_threads_run_without_the_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    found: list[gs.Result] = []
    thread = threading.Thread(target=lambda: found.append(run(progress=False)))
    thread.start()
    thread.join()
    assert found[0].n_draws == 500
    assert not found[0].interrupted
    assert signal.getsignal(signal.SIGINT) is before
