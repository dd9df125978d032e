"""The command that learns networks: from a file of cases to a network, with its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main


class Run:
    """Run the command, and keep what it printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capfd = monkeypatch, capfd

    def __call__(self, *words: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr("sys.argv", ["gibbsite", "learn", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self.capfd.readouterr()
        return int(stop.value.code or 0), out, err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capfd)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Four hundred cases of rain, hose and grass, with three missing cells."""
    rng = np.random.default_rng(1)
    rain, hose = rng.random((2, 400)) < 0.4
    wet = (rain | hose) ^ (rng.random(400) < 0.05)
    rows = [[("no", "yes")[int(v)] for v in row] for row in zip(rain, hose, wet, strict=True)]
    rows[3][0] = rows[8][2] = rows[9][2] = ""
    path = tmp_path / "cases.csv"
    path.write_text("\n".join(["rain,hose,wet", *map(",".join, rows)]) + "\n")
    return path


def test_from_cases_to_a_network_file(run: Run, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "learned.bif"
    code, text, err = run(cases, "--incomplete", "drop", "-o", out, "--strict")
    assert code == 0
    assert "3 of 1,200 cells are missing (most in wet 2, rain 1)" in err
    assert "3 of 400 cases" in err
    assert "wet | rain, hose" in text and "converged: EM" in text
    model = gs.read_model(out)
    assert set(model.sites) == {"rain", "hose", "wet"}
    exact = gs.solve_exact(model.observe({"rain": "yes", "hose": "no"})).marginals["wet"]["yes"]
    assert 0.85 < exact < 1.0


def test_tables_of_a_given_structure_as_json(run: Run, cases: Path, tmp_path: Path) -> None:
    net = gs.BayesianNetwork()
    for name in ("rain", "hose"):
        net.add(name, ["no", "yes"], table=[0.5, 0.5])
    net.add("wet", ["no", "yes"], given=["rain", "hose"], table=np.full((2, 2, 2), 0.5))
    net.write(tmp_path / "net.bif")
    how = ("--structure", tmp_path / "net.bif", "--method", "gibbs", "--prior", "k2", "--sweeps", 500, "-q", "--json")
    code, text, err = run(cases, *how)
    found = json.loads(text)
    assert (code, err) == (0, "")
    assert found["missing"] == 3 and found["diagnostics"]["converged"] is True
    assert found["tables"]["wet"]["parents"] == ["rain", "hose"]
    assert found["tables"]["wet"]["table"][0][0][0] > 0.9
    assert 0 < found["tables"]["wet"]["sd"][0][0][0] < 0.1


def test_probabilities_of_edges(run: Run, cases: Path) -> None:
    code, text, _ = run(cases, "--sample", "--incomplete", "drop", "--sweeps", 800, "--json", "-q", "--strict")
    edges = {(edge["parent"], edge["child"]): edge for edge in json.loads(text)["structure"]["edges"]}
    assert code == 0
    assert edges["rain", "wet"]["probability"] > 0.8
    assert edges["rain", "wet"]["mcse"] < 0.05


def test_runs_that_are_too_short_fail_if_strict(run: Run, cases: Path) -> None:
    code, text, err = run(cases, "--sample", "--incomplete", "drop", "--sweeps", 5, "--strict")
    assert code == 4
    assert "not converged" in text and "run longer" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "--incomplete drop leaves the others out"),
        (["--search", "bix", "--incomplete", "drop"], 2, "'bix' is unknown; did you mean 'bic'?"),
        (["--structure", "asia", "--search", "bic"], 2, "leave one of them out"),
        (["--structure", "asia"], 2, "no cells of 'asia'"),
        (["--hidden", "h=a,b"], 2, "--hidden needs --structure"),
        (["--structure", "asia", "--hidden", "h"], 2, "NAME=STATE,STATE"),
        (["--required", "rain-wet"], 2, "PARENT>CHILD"),
        (["--sample", "--exact"], 2, "leave one of them out"),
        (["--structure", "nosuch.bif"], 3, "no such file"),
        (["--weights", "n"], 3, "no column 'n'"),
    ],
)
def test_mistakes(run: Run, cases: Path, words: list[str], code: int, message: str) -> None:
    found, out, err = run(cases, *words)
    assert (found, out) == (code, "")
    assert message in " ".join(err.split())


def test_bad_files(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,a\n1,2\n")
    code, _, err = run(path)
    assert code == 3 and "two columns of the name 'a'" in err
    assert run(tmp_path / "nosuch.csv")[0] == 3
