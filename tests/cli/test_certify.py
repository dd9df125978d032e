"""``gibbsite certify`` and ``gibbsite scan`` as a new user would try them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.cli import main

ASIA = str(Path(__file__).parent.parent.parent / "examples" / "asia.bif")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the command line in a folder with a model; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    gs.write_model(gs.ising_grid((5, 5), coupling=0.15), tmp_path / "grid.uai")

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capfd.readouterr())

    return call


def test_certify_answers_how_many_steps(run: Any, tmp_path: Path) -> None:
    model = gs.read_model(tmp_path / "grid.uai")
    found = gs.certify(model, target=["0", "12"], accuracy=0.01)
    code, out, err = run("certify", "grid.uai", "--target", "0,12")
    assert code == 0
    assert "total < 1" in out
    assert f"after {found.steps} steps" in err
    code, out, _ = run("certify", "grid.uai", "--target", "0,12", "--accuracy", "0.01", "--json", "-q")
    data = json.loads(out)
    assert (data["steps"], data["variation"]) == (found.steps, pytest.approx(found.variation))
    code, out, _ = run("certify", "grid.uai", "--scan", "random", "--steps", "60", "--json")
    assert json.loads(out)["variation"] == pytest.approx(gs.certify(model, scan=gs.RandomScan(), steps=60).variation)
    code, _, err = run("certify", "grid.uai", "--observe", "12=1", "--target", "13", "--plot", "bound.png")
    assert code == 0
    assert (tmp_path / "bound.png").stat().st_size > 1000


def test_a_vacuous_bound_is_reported_and_strict_makes_it_an_exit_code(run: Any) -> None:
    code, out, err = run("certify", ASIA)
    assert code == 0
    assert "total >= 1" in out
    assert "vacuous" in err
    assert run("certify", ASIA, "--strict")[0] == 4


def test_scan_writes_what_certify_and_infer_read(run: Any, tmp_path: Path) -> None:
    code, out, err = run("scan", "grid.uai", "--target", "12", "--accuracy", "0.02", "-o", "scan.npz")
    assert code == 0
    assert out.splitlines()[1].startswith("12")
    scan = gs.load(tmp_path / "scan.npz")
    assert scan.variation <= 0.02
    assert f"The bias after {len(scan.order)} steps" in err
    steps = str(len(scan.order))
    words = ["certify", "grid.uai", "--target", "12", "--scan", "scan.npz", "--steps", steps, "--json"]
    assert json.loads(run(*words)[1])["variation"] == pytest.approx(scan.variation)
    words = ["infer", "grid.uai", "--method", "gibbs", "--scan", "scan.npz", "--sweeps", "50", "--query", "12"]
    assert run(*words)[0] == 0
    code, out, _ = run("scan", "grid.uai", "--target", "12", "--steps", "30", "--json", "--plot", "two.png")
    assert len(json.loads(out)["order"]) == 30
    assert (tmp_path / "two.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["certify", "nowhere.uai"], 3, "no such file"),
        (["certify", "grid.uai", "--target", "nose"], 2, "nose"),
        (["certify", "grid.uai", "--target", "3", "--observe", "3=1"], 3, "observed"),
        (["certify", "grid.uai", "--scan", "magic"], 2, "magic"),
        (["certify", "grid.uai", "--scan", "nowhere.npz"], 3, "does not exist"),
        (["certify", "grid.uai", "--accuracy", "-1"], 2, "accuracy"),
        (["certify", "grid.uai", "--steps", "-1"], 2, "steps"),
        (["scan", "grid.uai", "--target", "3", "--accuracy", "1e-9", "--steps", "20"], 3, "best reached"),
        (["scan", "grid.uai", "--steps", "0"], 2, "steps"),
        (["scan", "grid.uai", "--scan", "shuffled"], 1, "Shuffled"),
        (["scan", "grid.uai", "--steps", "20", "-o", "/nowhere/scan.npz"], 3, "/nowhere"),
    ],
)
def test_mistakes_end_in_one_line(run: Any, words: list[str], code: int, said: str) -> None:
    seen, out, err = run(*words)
    assert seen == code, err
    assert said in err
    assert "Traceback" not in err
    assert out == ""
    lines = [line for line in err.strip().splitlines() if "compiling" not in line]
    assert len(lines) <= (4 if code == 2 else 1)
