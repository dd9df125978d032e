"""gibbsite bugs, as a user of JAGS calls it."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gibbsite.cli import main

FILES = Path(__file__).parents[1] / "applications" / "bugs"
LINE, DATA, INITS = (str(FILES / place) for place in ("models/line.bug", "data/line-data.R", "data/line-inits.R"))
SHORT = ("--sweeps", "300", "--rng", "1")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command in this process; return exit code, stdout and stderr."""

    def call(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", "bugs", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 1 if code else 0), out, err

    return call


def test_files_of_jags_give_the_posterior(run: Any) -> None:
    code, out, err = run(LINE, "--data", DATA, "--inits", INITS, "--rng", "1", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert list(found) == ["summary", "diagnostics", "updates"]
    assert list(found["summary"]["tau"]) == ["mean", "sd", "mcse", "ess", "rhat", "q2.5", "q50", "q97.5"]
    known = json.loads((FILES / "data" / "line.json").read_text())["tests"]["test1"]["reference"]
    assert {*known} <= {*found["summary"]}
    for name, each in known.items():
        assert abs(found["summary"][name]["mean"] - each["mean"]) < 0.1 * each["sd"]
    assert found["diagnostics"]["chains"] == 4
    assert found["updates"]["tau"]["update"] == "conjugate"
    assert found["updates"]["tau"]["formula"].startswith("Gamma(")


def test_tables_and_csv_hold_what_is_monitored(run: Any, tmp_path: Path) -> None:
    words = (LINE, "--data", DATA, "--monitor", "beta,alpha", *SHORT, "-q")
    _, table, _ = run(*words)
    assert [line.split()[0] for line in table.splitlines()] == ["mean", "beta", "alpha"]
    code, out, _ = run(*words, "-o", str(tmp_path / "a.csv"))
    assert (code, out) == (0, "")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [row["element"] for row in rows] == ["beta", "alpha"]
    assert float(rows[0]["mean"]) == pytest.approx(float(table.splitlines()[1].split()[1]), rel=1e-3)
    run(*words, "-o", str(tmp_path / "a.json"))
    assert list(json.loads((tmp_path / "a.json").read_text())["summary"]) == ["beta", "alpha"]


def test_each_chain_may_have_initial_values(run: Any, tmp_path: Path) -> None:
    files = []
    for k, value in enumerate((-1.0, 0.0, 1.0)):
        files += ["--inits", str(tmp_path / f"{k}.json")]
        (tmp_path / f"{k}.json").write_text(json.dumps({"alpha": value}))
    _, out, _ = run(LINE, "--data", DATA, *files, *SHORT, "--thin", "3", "--json")
    assert (json.loads(out)["diagnostics"]["chains"], json.loads(out)["diagnostics"]["n_draws"]) == (3, 100)
    code, _, err = run(LINE, "--data", DATA, *files, "--chains", "2")
    assert code == 2
    assert "--chains 2 and 3 files of --inits contradict" in err


def test_conditionals_are_explained(run: Any) -> None:
    _, out, _ = run(LINE, "--data", DATA, "--explain")
    assert [line.split(" ")[0] for line in out.splitlines()] == ["alpha", "beta", "tau"]
    assert "| rest ~ Gamma(" in out
    _, latex, _ = run(LINE, "--data", DATA, "--explain", "--latex")
    assert latex.splitlines()[2].startswith(r"\tau \mid \cdot \sim \mathrm{Gamma}")
    _, out, _ = run(LINE, "--data", DATA, "--explain", "--json")
    assert [each["name"] for each in json.loads(out)["conditionals"]] == ["alpha", "beta", "tau"]


def test_a_model_from_stdin_and_a_plot(run: Any, tmp_path: Path) -> None:
    text = "model { x ~ dbeta(1, 1); y ~ dbin(x, 10) }"
    (tmp_path / "d.json").write_text('{"y": 3}')
    picture = tmp_path / "x.png"
    code, out, err = run("-", "--data", str(tmp_path / "d.json"), *SHORT, "--plot", str(picture), stdin=text)
    assert code == 0, err
    assert out.splitlines()[1].startswith("x ")
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([LINE], 3, "'N' is used"),
        (["nothing.bug"], 3, "nothing.bug"),
        ([LINE, "--data", "nothing.R"], 3, "nothing.R: there is no such file"),
        ([LINE, "--data", LINE], 3, "line.bug"),
        ([LINE, "--data", DATA, "--monitor", "gamma"], 2, "gamma"),
        ([LINE, "--data", DATA, "--monitor", "Y"], 2, "is data"),
        ([LINE, "--data", DATA, "--monitor", "alpha,"], 2, "has an empty name"),
        ([LINE, "--data", DATA, "--latex"], 2, "--latex has no effect without --explain"),
        ([LINE, "--data", DATA, "--explain", "--sweeps", "5"], 2, "--sweeps has no effect with --explain"),
        ([LINE, "--data", DATA, "--resume"], 2, "--resume needs --checkpoint"),
        ([LINE, "--data", DATA, "-o", "x.png"], 2, "the suffix .png belongs to no output format"),
        (["-", "--data", "-"], 2, "can be read from stdin"),
    ],
)
def test_mistakes_end_in_one_line(run: Any, words: list[str], code: int, said: str) -> None:
    found, out, err = run(*words)
    assert (found, out) == (code, ""), err
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_strict_and_a_checkpoint(run: Any, tmp_path: Path) -> None:
    saved = str(tmp_path / "run.npz")
    words = (LINE, "--data", DATA, "--rng", "1", "--json", "--checkpoint", saved)
    code, _, err = run(*words, "--sweeps", "20", "--strict")
    assert code == 4, err
    _, resumed, _ = run(*words, "--sweeps", "40", "--resume")
    _, whole, _ = run(*words[:-2], "--sweeps", "40", "--warmup", "2")
    assert json.loads(resumed)["summary"] == json.loads(whole)["summary"]


def test_interrupted(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gibbsite", "bugs", LINE, "--data", DATA, "--seconds", "500", "--json"]
    words += ["--checkpoint", str(tmp_path / "c.npz"), "-o", str(tmp_path / "a.json")]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        limit = time.monotonic() + 300.0  # it may have to compile, on a busy machine
        while not (tmp_path / "c.npz").exists():
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert set(json.loads((tmp_path / "a.json").read_text())["summary"]) >= {"alpha", "beta", "tau"}
