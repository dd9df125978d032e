"""Stored models on the command line: the answers of Python, written piece by piece, and clear refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main

HOW = ["--sweeps", "60", "--rng", "1", "--no-dispersed-starts"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process; return exit code, stdout and stderr."""

    def call(*words: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 1 if code else 0), out, err

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spin glass on 60 sites, couplings of two signs."""
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(60, 1)
    pick = rng.permutation(i.size)[:150]
    path = tmp_path_factory.mktemp("stored") / "glass.pairs"
    edges = i[pick], j[pick], rng.choice([-0.3, 0.3], 150)
    gs.formats.store_edges([edges], path, sites=60, field=0.1)
    return path


@pytest.fixture(scope="module")
def known(folder: Path) -> gs.Result:
    """The run that Python makes of it."""
    with pytest.warns(gs.ConvergenceWarning):
        return gs.sample(
            gs.open_model(folder), sweeps=60, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
        )


def test_marginals_are_those_of_python(run: Any, folder: Path, known: gs.Result) -> None:
    code, out, err = run("infer", folder, *HOW, "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["method"], answer["reason"]) == ("gibbs", "a stored model is sampled")
    assert err.startswith("gibbs (a stored model is sampled); NOT CONVERGED")
    assert answer["marginals"] == {
        site: {str(k): p for k, p in states.items()} for site, states in known.marginals.items()
    }
    assert answer["mcse"]["7"]["1"] == known.mcse["7"][1]
    assert list(answer["marginals"]) == [str(k) for k in range(60)]
    code, out, _ = run("infer", folder, *HOW, "--format", "uai", "-q")
    assert [float(word) for word in out.split()[2:5]] == [2, *known.marginals["0"].values()]
    code, out, _ = run("infer", folder, *HOW, "-q")
    assert len(out.splitlines()) == 41
    assert out.splitlines()[-1] == "... and 20 more sites (--all, --query, --json)"
    assert out.splitlines()[7].split()[:3] == ["7", "-1", f"{known.marginals['7'][-1]:.4f}"]


@pytest.mark.parametrize("large", [False, True])
def test_lines_are_written_piece_by_piece(
    run: Any, folder: Path, known: gs.Result, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of very large models are computed for some sites at a time, and files grow as they come."""
    if large:
        monkeypatch.setattr("gibbsite.cli.answers._PIECE", 50)
        monkeypatch.setattr("gibbsite.inference.answer._PIECE", 7)
        monkeypatch.setattr("gibbsite.results.result.MOST_JUDGED", 59)
        monkeypatch.setattr("gibbsite.results.measured.MOST_JUDGED", 59)
    words = ["infer", folder, *HOW, "--format", "csv", "-q", "-o"]
    assert run(*words, tmp_path / "plain.csv")[0] == 0
    assert run(*words, tmp_path / "packed.csv.gz")[0] == 0
    text = (tmp_path / "plain.csv").read_text()
    assert gzip.decompress((tmp_path / "packed.csv.gz").read_bytes()).decode() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["site"] for row in rows] == [str(k // 2) for k in range(120)]
    assert [float(row["probability"]) for row in rows[1::2]] == known.marginals.cells.tolist()
    assert [float(row["standard_error"]) for row in rows[::2]] == known.mcse.cells.tolist()


def test_sums_in_a_folder(run: Any, folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "sums"
    code, out, err = run("infer", folder, *HOW, "--to", to, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["marginals"] == {}
    assert "spread of 4 chains" in err
    cells = np.load(answer["files"]["marginals"])
    assert np.load(answer["files"]["sums"]).shape == (4, 60)
    code, out, _ = run("infer", folder, *HOW, "--to", to, "--json", "--query", "7", "-q")
    assert json.loads(out)["marginals"] == {"7": {"-1": 1.0 - cells[7], "1": cells[7]}}
    code, out, _ = run("infer", folder, *HOW, "--to", to, "--query", "7", "-q")
    assert out.split()[:5:4] == ["7", "1"]
    code, _, err = run("infer", "asia", "--to", to)
    assert code == 2
    assert "--to needs a method that samples; add --method gibbs" in err
    code, _, err = run("infer", "asia", "--to", to, "--method", "exact")
    assert code == 2
    assert "--to has no effect with --method exact" in err


def test_chosen_sites_are_recorded_alone(run: Any, folder: Path) -> None:
    code, out, _ = run("infer", folder, *HOW, "--query", "7, 21", "--json", "-q")
    answer = json.loads(out)
    assert code == 0
    assert list(answer["marginals"]) == ["7", "21"]
    assert answer["plan"]["record"][0]["sites"] == ["7", "21"]


def test_budgets_and_checkpoints(run: Any, folder: Path, known: gs.Result, tmp_path: Path) -> None:
    saved = tmp_path / "run.npz"
    words = ["infer", folder, "--rng", "1", "--no-dispersed-starts", "--warmup", "6", "--checkpoint", saved, "-q"]
    assert run(*words, "--sweeps", "25")[0] == 0
    code, out, _ = run(*words, "--sweeps", "60", "--resume", "--json")
    assert code == 0
    assert json.loads(out)["marginals"]["7"]["1"] == known.marginals["7"][1]
    assert run("infer", folder, "--seconds", "0.05", "-q", "--strict", "--no-dispersed-starts")[0] == 4


def test_a_best_state(run: Any, folder: Path, tmp_path: Path) -> None:
    words = ["infer", folder, "--task", "MAP", "--sweeps", "300", "--rng", "1", "-q"]
    code, out, _ = run(*words, "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["method"], answer["kind"]) == ("annealed", "best found")
    codes = np.array([int(state) > 0 for state in answer["assignment"].values()], int)
    model = gs.open_model(folder)
    assert answer["log_potential"] == pytest.approx(model.log_potential(codes), abs=1e-9)
    for site in range(60):  # no single site can be improved
        other = codes.copy()
        other[site] ^= 1
        assert model.log_potential(other) <= answer["log_potential"] + 1e-9
    assert json.loads(run(*words, "--json", "--query", "3")[1])["assignment"] == {"3": answer["assignment"]["3"]}
    assert run(*words, "--format", "uai")[1].split() == ["MAP", "60", *map(str, codes)]
    lines = run(*words)[1].splitlines()
    assert lines[3].split() == ["3", answer["assignment"]["3"]]
    assert lines[60].startswith("log-potential")
    code, _, err = run(*words, "--best", "2")
    assert code == 2
    assert "--best 2 is not possible for stored models" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--method", "exact"], "--method exact reads the whole model, and a stored one stays in its files"),
        (["--method", "bp"], "sample it with --method gibbs."),
        (["--method", "mini-bucket"], "--method mini-bucket reads the whole model"),
        (["--method", "blocks"], "sample it with --method gibbs, --method herded or --method annealed."),
        (["--task", "MAP", "--method", "proved"], "sample it with --method annealed."),
        (["--task", "PR"], "--task PR reads the whole model"),
        (["--task", "MMAP", "--max", "3"], "ask for --task MAR or --task MAP."),
        (["--observe", "3=1"], "A stored model cannot fold evidence in"),
        (["-e", "nothing.evid"], "A stored model cannot fold evidence in"),
        (["--from", "uai"], "--from has no effect on a stored model"),
        (["--query", "60"], "there is no site '60'"),
    ],
)
def test_what_is_refused(run: Any, folder: Path, words: list[str], said: str) -> None:
    code, out, err = run("infer", folder, *words)
    assert code in (1, 2)
    assert not out
    assert said in err


def test_very_many_sites_do_not_go_into_json(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.cli.infer._MOST_IN_JSON", 59)
    code, _, err = run("infer", folder, *HOW, "--json")
    assert code == 2
    assert "--json holds all of its 60 sites in memory; name some with --query" in err
    assert run("infer", folder, *HOW, "--json", "--query", "3", "-q")[0] == 0


def test_other_commands_say_who_takes_it(run: Any, folder: Path) -> None:
    for words in (["certify", folder], ["convert", folder, "glass.uai"]):
        code, _, err = run(*words)
        assert code == 3
        assert "this folder is a stored model, which gibbsite infer and info take" in err


def test_what_a_stored_model_is_made_of(run: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "ring.edges").write_text("0 1\n1 2\n")
    for source, target, said in (
        (tmp_path / "ring.edges", folder, "exists already; give the name of a new folder"),
        (folder, tmp_path / "new.pairs", "is made from a list of edges"),
        ("model.uai.gz", tmp_path / "new.pairs", "is made from a list of edges"),
    ):
        code, _, err = run("convert", source, target)
        assert code == 2
        assert said in " ".join(err.split())


def test_info(run: Any, folder: Path, tmp_path: Path) -> None:
    code, out, _ = run("info", folder, "--json")
    facts = json.loads(out)
    start = gs.open_model(folder).array("start")
    assert code == 0
    assert (facts["sites"], facts["pairs"], facts["couplings"]) == (60, 150, "2 distinct")
    assert facts["degree"] == {"mean": 5.0, "largest": int(np.diff(start).max())}
    assert facts["bytes_on_disk"] == sum(file.stat().st_size for file in folder.glob("*.npy"))
    assert "couplings                2 distinct" in run("info", folder)[1]
    one = gs.formats.store_edges([([0, 1], [1, 2], 0.5)], tmp_path / "one", sites=3)
    assert json.loads(run("info", one.path, "--json")[1])["couplings"] == "equal"
    none = np.zeros(0, int)
    alone = gs.formats.store_edges([(none, none, 0.5)], tmp_path / "alone", sites=3)
    assert json.loads(run("info", alone.path, "--json")[1])["degree"] == {"mean": 0.0, "largest": 0}


def test_a_potts_model(run: Any, tmp_path: Path) -> None:
    """Made of a list of edges and a number of states; answers have the states of all sites."""
    (tmp_path / "ring.edges").write_text("".join(f"{k} {(k + 1) % 50} 0.5\n" for k in range(50)))
    path = tmp_path / "ring.pairs"
    assert run("convert", tmp_path / "ring.edges", path, "--states", 3)[0] == 0
    facts = json.loads(run("info", path, "--json")[1])
    assert (facts["states_per_site"], facts["graph_kind"], facts["stored_version"]) == ({"3": 50}, "potts", 4)
    assert facts["memory_bytes_per_chain"] == {"states": 100, "sums_of_marginals": 1200}
    known = gs.sample(
        gs.open_model(path), sweeps=60, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
    )
    _, out, _ = run("infer", path, *HOW, "--format", "csv")
    rows = list(csv.reader(io.StringIO(out)))[1:]
    assert [row[:2] for row in rows] == [[str(k), str(a)] for k in range(50) for a in range(3)]
    assert np.allclose([float(row[2]) for row in rows], known.marginals.to_array().ravel(), atol=1e-15)
    best = tmp_path / "best.MAP"
    how = ["--sweeps", "60", "--rng", "1", "--task", "MAP", "--format", "uai"]
    assert run("infer", path, *how, "-o", best)[0] == run("infer", path, *how)[0]
    said = best.read_text().split()
    assert said[:2] == ["MAP", "50"]
    assert set(said[2:]) <= {"0", "1", "2"}
    code, _, err = run("convert", tmp_path / "ring.edges", tmp_path / "ring.uai", "--states", 3)
    assert code == 2
    assert "--states needs a TARGET that ends in .pairs" in err
