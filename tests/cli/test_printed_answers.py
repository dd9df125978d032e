"""What people see of an answer: numbers that say what they are, and nothing that acts on a terminal."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.cli import main

BAD = "a\x1b[2J\u202e\u009b1m\nb"  # clears the screen, turns the direction, colours, ends the line
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process; return exit code, stdout and stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert isinstance(stop.value.code, int)
        return stop.value.code, *capfd.readouterr()

    return call


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a .bqm file whose sites have bad names, a lone surrogate and a formula among them."""
    path = tmp_path / "bad.bqm"
    names = [BAD, "\ud800", "=1+1"]
    gs.write_model(gs.FactorGraph(dict.fromkeys(names, 2), [(BAD, [1, 2]), ("\ud800", [2, 1])]), path)
    return path


def test_names_from_files_do_not_act_on_terminal_or_spreadsheet(run: Any, hostile: Path) -> None:
    code, out, err = run("infer", hostile)
    assert code == 0
    assert len(out.splitlines()) == 3
    assert "a\\u001b[2J\\u202e\\u009b1m\\u000ab" in out
    assert not ACTS.search(out + err)
    code, out, err = run("infer", hostile, "--task", "MAP")
    assert code == 0
    assert not ACTS.search(out + err)
    code, out, _ = run("infer", hostile, "--format", "csv", "-q")
    assert code == 0
    assert not ACTS.search(out)
    cells = {row[0] for row in csv.reader(out.splitlines())}
    assert "'=1+1" in cells and "\\ud800" in cells
    code, out, _ = run("infer", hostile, "--json", "-q")
    assert set(json.loads(out)["marginals"]) == {BAD, "\ud800", "=1+1"}  # programs get the names themselves
    code, out, err = run("infer", hostile, "--query", "c\x1b[2J")
    assert code == 2
    assert not ACTS.search(out + err)
    code, out, err = run("infer", "no\x1b[2J\udcffsuch.bif")
    assert code == 3
    assert not ACTS.search(out + err)
    assert "no\\u001b[2J\\udcffsuch.bif" in err


def test_errors_and_pages_have_no_control_characters() -> None:
    assert str(gs.errors.ModelError(f"the site {BAD} is bad\n\x07")) == (
        "the site a\\u001b[2J\\u202e\\u009b1m\nb is bad\n\\u0007"
    )
    model = gs.FactorGraph({BAD: ["<b>", "\x1b[1m"]}, [(BAD, [1, 2])])
    sampled = gs.sample(model, sweeps=100, rng=1, progress=False)
    for shown in (model, gs.infer(model), gs.infer(model, "MAP"), gs.solve_exact(model), sampled):
        page = shown._repr_html_()
        assert not ACTS.search(page.replace("\n", ""))
        assert "<b>\x1b" not in page
    assert not ACTS.search(sampled.summary())


def test_text_that_is_tagged_is_escaped_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_bytes(b"Peter went to\x1b[2J Paris.\r\nHe stayed.\r\n")
    words = [sys.executable, "-m", "gibbsite", "ner", "tag", str(text), "-q"]
    plain = subprocess.run(words, capture_output=True, check=True).stdout
    assert b"\x1b[2J" in plain
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=theirs) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # the terminal is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    assert b"\\u001b[2J" in seen and b"\x1b" not in seen
    assert b"stayed.\r\n" in seen and b"\\u000d" not in seen  # ends of lines are no characters to write out


def test_pages_of_tagged_text_have_no_control_characters(run: Any, tmp_path: Path) -> None:
    text = tmp_path / "a\x1b[2J.txt"
    text.write_text("Peter\x07 went to\x1b[2J Paris\x9b.\u200f\n", encoding="utf-8")
    code, page, err = run("ner", "tag", text, "--format", "html", "-q")
    assert code == 0
    assert not ACTS.search(page + err)
    assert page.count("\\u001b[2J") == 2  # of the name and of the text
    assert "\u200f" in page  # what Arabic and Hebrew need stays


@pytest.mark.parametrize(
    "words",
    [
        ("asia", "--method", "gibbs", "--sweeps", 20),  # not converged, for several reasons
        ("asia", "--method", "herded", "--sweeps", 200),  # with remarks
        ("asia", "--task", "MAP", "--method", "annealed", "--sweeps", 20),
    ],
)
def test_no_sentence_is_printed_twice(run: Any, words: tuple[object, ...]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        code, out, err = run("infer", *words, "--rng", 1)
    assert code == 0 and not caught  # what would be warned of is in the verdict
    said = [part.strip(" .") for part in re.split(r"[.;:] |\n", out + err) if len(part) > 25]
    assert said
    assert sorted(said) == sorted(set(said))


def test_the_layout_follows_the_name_of_the_file(run: Any, tmp_path: Path) -> None:
    for name, begins in {
        "a.csv": "site,state,",
        "a.JSON": "{",
        "a.uai": "MAR\n",
        "a.txt": "asia  ",
        "plain": "asia  ",
    }.items():
        assert run("infer", "asia", "-q", "-o", tmp_path / name)[0] == 0
        assert (tmp_path / name).read_text().startswith(begins)
    assert run("infer", "asia", "-q", "--json", "-o", tmp_path / "b.csv")[0] == 0
    assert json.loads((tmp_path / "b.csv").read_text())["kind"] == "exact"
    code, _, err = run("infer", "asia", "-q", "-o", tmp_path / "a.xlsx")
    assert code == 2
    assert ".json, .csv, .uai, .txt" in " ".join(err.split())
    assert not (tmp_path / "a.xlsx").exists()


def test_a_best_state_comes_with_its_probability_and_what_was_observed(run: Any) -> None:
    exact = gs.solve_exact(gs.example("asia").observe({"xray": "yes"}))
    out = run("infer", "asia", "--task", "MAP", "--observe", "xray=yes")[1]
    assert "xray    yes   (observed)" in out
    chance = 2.718281828459045 ** (exact.log_potential - exact.log_z)
    assert float(out.split("P(state | evidence) = ")[1].split()[0]) == pytest.approx(chance, rel=1e-5)
    data = json.loads(run("infer", "asia", "--task", "MAP", "--observe", "xray=yes", "--json", "-q")[1])
    assert data["log_probability"] == pytest.approx(exact.log_potential - exact.log_z, abs=1e-9)
    words = ("infer", "asia", "--query", "smoke,lung", "--task", "MAP")
    assert run(*words, "-q")[1] == run("infer", "asia", "--max", "smoke,lung", "--task", "MMAP", "-q")[1]
    assert "the other sites are summed out" in run(*words)[2]
    by_messages = run(*words, "--method", "bp")
    assert "of the best state of all sites" in by_messages[1] and "parts of the best state" in by_messages[2]
    out = run("infer", "asia", "--query", "xray,smoke", "--observe", "xray=yes")[1]
    assert out.splitlines()[0].endswith("(observed)")


def test_log_z_of_a_network_is_the_probability_of_the_evidence(run: Any) -> None:
    prior = gs.solve_exact(gs.example("asia")).marginals["xray"]["yes"]
    out = run("infer", "asia", "--task", "PR", "--observe", "xray=yes", "-q")[1]
    assert float(out.split("P(evidence) = ")[1]) == pytest.approx(prior, rel=1e-5)
    assert "P(evidence)" not in run("infer", "asia", "--task", "PR", "-q")[1]
    data = json.loads(run("infer", "asia", "--task", "PR", "--observe", "xray=yes", "--json", "-q")[1])
    assert data["log_z_is"] == "log of the probability of the evidence"


def test_soft_evidence_shows_what_was_known_before(run: Any, tmp_path: Path) -> None:
    soft = tmp_path / "soft.json"
    soft.write_text('{"xray": {"yes": 0.7, "no": 0.3}}')
    out = run("infer", "asia", "-e", soft, "-q")[1]
    assert out.splitlines()[0] == "xray    yes 0.2244  no 0.7756   (before: 0.1103 0.8897)"


def test_many_states_are_cut_short_or_folded(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "many.uai"
    gs.write_model(gs.FactorGraph({"x": 110}, [("x", list(range(1, 111)))]), path)
    (line,) = run("infer", path, "-q")[1].splitlines()
    assert line.startswith("0  109 0.0180  108 0.0179") and ", together 0.8272; mean 72.6667, " in line
    lines = run("infer", path, "-q", "--all")[1].splitlines()
    assert len(lines) > 5 and max(map(len, lines)) <= 100
    assert len(re.findall(r"\d+ 0\.\d{4}", " ".join(lines))) == 110


def test_a_largest_cut_is_printed_as_a_cut(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "square.rudy"
    path.write_text("4 5\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n1 3 -2\n")
    assert "\ncut 4\n" in run("infer", path, "--task", "MAP", "-q")[1]
    assert json.loads(run("infer", path, "--task", "MAP", "-q", "--json")[1])["cut"] == 4.0
    assert "cut" not in run("infer", "asia", "--task", "MAP", "-q")[1]


def test_answers_print_their_numbers() -> None:
    model = gs.FactorGraph({"a": ["no", "yes"], "b": 2}, [("a", [1, 3])]).observe({"b": 0})
    assert str(gs.infer(model)).splitlines()[1:] == ["a  no 0.2500  yes 0.7500"]
    assert "P(state | evidence) = 0.75" in gs.infer(model, "MAP").summary()
    assert "log Z = 1.386" in gs.infer(model, "PR").summary()
    assert gs.solve_exact(model).summary().splitlines()[1:] == [
        "a  no 0.2500  yes 0.7500",
        "b  0 1.0000  1 0.0000   (observed)",
    ]
    for shown in (gs.infer(model), gs.solve_exact(model)):
        assert "0.7500" in shown._repr_html_()
    assert "\n" not in repr(gs.infer(model))


def test_a_state_put_together_from_several_chains_is_not_found_by_none() -> None:
    from dataclasses import replace

    found = gs.infer(gs.ising_grid((3, 3), coupling=0.3), "MAP", method="annealed", sweeps=50, rng=1)
    joined = replace(found.result, found=0, hits=0)
    assert " 0 of" not in joined.line() and "combined from" in joined.line()
    assert "combined from" in joined.reasons[0]
