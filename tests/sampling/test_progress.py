"""Progress: on stderr or in a notebook, live on a terminal, lines in a log, nothing where silence is asked for."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba import announcing, cache, jit
from gibbsite._numba.announcing import compiling_message
from gibbsite.sampling import executor, progress, setup
from gibbsite.sampling.progress import Callback, Lines, Live, Notebook, Silent, Status, choose_progress

MODEL = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.1, -0.2])


def run(**kwargs: Any) -> gs.Result:
    return gs.sample(MODEL, **{"sweeps": 30, "warmup": 10, "rng": 1, "chains": 2, **kwargs})


def status(**kwargs: Any) -> Status:
    given = {"phase": "sampling", "done": 0, "total": 100, "seconds": 0.0, "limit": math.inf, "chains": 4}
    return Status(**{**given, **kwargs})


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor.Threads, "block_seconds", 0.0)


class Terminal(io.StringIO):
    """A stream that passes for a terminal."""

    def isatty(self) -> bool:
        return True


def use_terminal(patch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in the place of stderr (no fixture: pytest itself replaces stderr before the test)."""
    for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        patch.delenv(variable, raising=False)
    patch.setenv("TERM", "xterm")
    screen = Terminal()
    patch.setattr(sys, "stderr", screen)
    return screen


# ---- the choice


def test_the_choice_follows_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    use_terminal(monkeypatch)
    assert isinstance(choose_progress(False), Silent)
    assert isinstance(choose_progress(print), Callback)
    assert isinstance(choose_progress(None), Live)
    assert isinstance(choose_progress(True), Live)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(choose_progress(None), Lines)
    monkeypatch.setattr(sys, "stderr", None)  # windowed programs have none
    assert isinstance(choose_progress(None), Lines)


@pytest.mark.usefixtures("small_blocks")
def test_a_process_without_stderr_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", None)
    assert run().n_draws == 30


# ---- each display


@pytest.mark.usefixtures("small_blocks")
def test_silence(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    run(progress=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("small_blocks")
def test_short_runs_show_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    run()  # whatever there was to compile
    capfd.readouterr()
    run()
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("small_blocks")
def test_lines_in_a_log(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run(progress=False)
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    run()
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 40, "one per block: 10 of the warmup and 30 draws"
    assert lines[0].startswith("gibbsite: warmup   2.5%  sweep 1/40 x 2 chains, 0 s")
    assert lines[9].startswith("gibbsite: warmup  25.0%  sweep 10/40 x 2 chains")
    assert lines[-1].startswith("gibbsite: sampling 100.0%  sweep 40/40 x 2 chains")
    assert "\x1b" not in err
    assert "\r" not in err


def test_control_characters_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = "a\x1b[2Jb\rc [red]d[/] [/nothing]"
    lines = Lines()
    lines.say(bad)
    lines.show(status(phase=bad, seconds=20.0))
    shown = capsys.readouterr().err
    assert shown.count("a\\u001b[2Jb\\u000dc [red]d[/]") == 2
    assert "\x1b" not in shown and "\r" not in shown
    terminal = use_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    live = Live()
    live.say(bad)
    live.show(status(phase=bad, seconds=20.0))
    live.say(bad)
    live.close()
    assert terminal.getvalue().count("a\\u001b[2Jb\\u000dc [red]d[/]") >= 3
    assert "\x1b[2J" not in terminal.getvalue()


def test_lines_keep_their_distance(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for seconds in (0.5, 9.0, 10.5, 11.0, 19.0, 21.0, 21.5):
        lines.show(status(seconds=seconds, done=int(seconds)))
    shown = capsys.readouterr().err.splitlines()
    assert [line.split("sweep ")[1].split("/")[0] for line in shown] == ["10", "21"]


@pytest.mark.usefixtures("small_blocks")
def test_a_live_line_on_a_terminal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run(progress=False)
    terminal = use_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    run()
    shown = terminal.getvalue()
    assert "sampling" in shown
    assert "\x1b[" in shown, "renewed in place by control codes"
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1, "the cursor comes back"
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("small_blocks")
def test_the_live_line_goes_away_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    calls = 0
    real = executor.sweep_chain

    def fail(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 20:
            raise ZeroDivisionError
        real(*args)

    monkeypatch.setattr(executor, "sweep_chain", fail)
    with pytest.raises(ZeroDivisionError):
        run()
    assert terminal.getvalue().count("\x1b[?25h") == 1


def test_the_live_line_waits_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    live = Live()
    live.show(status(seconds=0.5))
    assert terminal.getvalue() == ""
    live.say("a message")
    assert terminal.getvalue() == "a message\n"
    live.show(status(seconds=1.5, done=50))
    live.say("another message")
    live.close()
    assert "another message" in terminal.getvalue()
    assert "sweep 50/100" in terminal.getvalue()


class Cell:
    """The output of a notebook's cell: what is shown, and what it becomes."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, shown: Any, display_id: bool) -> Cell:
        assert display_id
        self.shown.append(shown._repr_html_())
        return self

    def update(self, shown: Any) -> None:
        self.shown[-1] += f" -> {shown._repr_html_()}"


def test_one_bar_in_a_notebook() -> None:
    cell = Cell()
    bar = Notebook(cell.display)
    for seconds in (0.5, 1.5, 1.6, 2.5):
        bar.show(Status("<b>", int(10 * seconds), 50, seconds, float("inf"), 4))
    bar.say("a < b")
    bar.close()
    steps = cell.shown[0].split(" -> ")
    assert len(cell.shown) == 1
    assert [step.count("<progress") for step in steps] == [1, 1, 1, 0]
    assert 'value="0.300"' in steps[0]
    assert "gibbsite: &lt;b&gt;  50.0%" in steps[1]
    assert steps[-1] == "<div>a &lt; b</div>"


def test_a_quick_run_leaves_a_notebook_empty() -> None:
    cell = Cell()
    bar = Notebook(cell.display)
    bar.show(Status("sampling", 1, 2, 0.5, float("inf"), 4))
    bar.close()
    assert cell.shown == []


def test_progress_in_a_real_notebook() -> None:
    nbformat, client = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = "import gibbsite as gs\ngs.sample(gs.ising_grid((200, 200)), seconds=3.0, warmup=5, rng=1)"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client.NotebookClient(book, timeout=300).execute()
    outputs = book.cells[0].outputs
    assert not any("gibbsite:" in output.get("text", "") for output in outputs)
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert "<strong" in shown[-1]


@pytest.mark.usefixtures("small_blocks")
def test_a_function_gets_every_status(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Status] = []
    run(progress=seen.append, sweeps=gs.Sweeps(30, thin=3))
    assert capfd.readouterr() == ("", "")
    assert [s.phase for s in seen] == ["warmup"] * 10 + ["sampling"] * 10
    assert [s.done for s in seen] == [*range(1, 11), *range(13, 41, 3)]
    assert {s.total for s in seen} == {40}
    assert {s.chains for s in seen} == {2}
    assert [s.fraction for s in seen] == sorted(s.fraction for s in seen)
    assert seen[-1].fraction == 1.0


@pytest.mark.usefixtures("small_blocks")
def test_an_error_of_the_function_is_passed_on() -> None:
    def fail(status: Status) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(progress=fail)


# ---- the text


def test_the_share_is_by_sweeps_or_by_time() -> None:
    assert status(done=25).fraction == 0.25
    assert status(done=25, seconds=5.0, limit=10.0).fraction == 0.5
    assert status(done=25, total=0, seconds=1.0, limit=10.0).fraction == 0.1
    assert status(done=25, seconds=15.0, limit=10.0).fraction == 1.0
    assert status().fraction == 0.0


def test_the_text_tells_what_is_left() -> None:
    text = status(done=25, seconds=10.0).text()
    assert text == "gibbsite: sampling  25.0%  sweep 25/100 x 4 chains, 10 s, 30 s left"
    assert status().text() == "gibbsite: sampling   0.0%  sweep 0/100 x 4 chains, 0 s"
    assert "sweep 1,234 x" in status(done=1234, total=0, seconds=1.0, limit=8.0).text()


# ---- compilation, in a process with a cache of its own

SCRIPT = """
    import gibbsite as gs
    from gibbsite._numba import announcing

    announcing._PATIENCE = 0.01  # so that fast machines say it, too
    model = gs.ising_grid((2, 2), coupling=0.3)
    gs.sample(model, sweeps=50, rng=1, record="energy")
    gs.sample(model, sweeps=50, rng=2, record="energy")
"""


def compile_in(folder: Path) -> tuple[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SCRIPT)],
        env={**os.environ, "GIBBSITE_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout, done.stderr.splitlines()


def test_compiling_is_reported_in_one_line_without_internal_names(tmp_path: Path) -> None:
    assert compile_in(tmp_path) == ("", [compiling_message("the default kernel")])
    assert compile_in(tmp_path) == ("", []), "a warm cache needs no words"


def test_one_call_reports_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "_PATIENCE", 0.0)
    said: list[str] = []

    def compile_two() -> None:
        for factor in (2.0, 3.0):
            multiply = jit.Entry(lambda x, factor=factor: factor * x, {})
            multiply._fresh = multiply._kept = cache.decorate(multiply.plain, {}, cache=False)
            assert multiply(1.0) == factor

    with jit.announcing(said.append, "the Gibbs kernel"):
        compile_two()
        with jit.announcing(said.append, "mean field"):
            compile_two()
    assert said == [compiling_message("the Gibbs kernel")]
    said.clear()
    with jit.announcing_once():
        for what in ("forward draws", "the Gibbs kernel"):
            with jit.announcing(said.append, what):
                compile_two()
    assert said == [compiling_message("forward draws")]


def test_every_compilation_is_reported(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # looking for a start may have to be compiled as well, and so may the judgement of the result
    @jit.compiled
    def double(x: float) -> float:
        return 2.0 * x

    real = setup.start_states

    def start_states(*args: Any) -> Any:
        monkeypatch.setattr(cache, "cache_directory", lambda: None)
        double(1.0)
        return real(*args)

    run(progress=False)
    monkeypatch.setattr(announcing, "_PATIENCE", 0.0)
    monkeypatch.setattr(setup, "start_states", start_states)
    run()
    assert capfd.readouterr().err == compiling_message("the default kernel") + "\n"
