"""Questions on the command line: the numbers of the library, as text and JSON, and one line for every mistake."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.cli import main

ASIA = gs.example("asia")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process; return exit code, stdout and stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 1 if code else 0), out, err

    return call


def test_events_and_joints(run: Any) -> None:
    words = ("infer", "asia", "--observe", "dysp=yes", "--event", "lung=yes or tub=yes", "--joint", "lung,tub")
    found = gs.questions.ask(ASIA.observe({"dysp": "yes"}), ["lung=yes or tub=yes"], [("lung", "tub")])
    code, out, err = run(*words)
    assert code == 0 and f"P(lung=yes or tub=yes) = {found.probability(0):.4f}" in out and err.startswith("exact")
    data = json.loads(run(*words, "--json", "--quiet")[1])
    assert data["events"]["lung=yes or tub=yes"]["probability"] == found.probability(0)
    assert data["joints"]["lung, tub"]["probabilities"] == found.joint("lung", "tub").tolist()


QUESTIONS: dict[str, tuple[tuple[str, ...], Any]] = {
    "next": (
        ("--next", "lung", "--candidates", "xray,dysp", "--cost", "xray=5"),
        lambda: gs.questions.rank_observations(ASIA, "lung", candidates=["xray", "dysp"], costs={"xray": 5.0}),
    ),
    "plan": (
        ("--next", "lung", "--candidates", "xray,dysp", "--plan", "2"),
        lambda: gs.questions.plan_observations(ASIA, "lung", candidates=["xray", "dysp"], depth=2),
    ),
    "conflict": (
        ("--observe", "tub=yes", "--observe", "either=no", "--conflict"),
        lambda: gs.questions.measure_conflict(ASIA, {"tub": "yes", "either": "no"}),
    ),
    "support": (
        ("--observe", "xray=yes", "--observe", "smoke=no", "--support", "lung=yes"),
        lambda: gs.questions.weigh_evidence(ASIA, {"xray": "yes", "smoke": "no"}, "lung", "yes"),
    ),
    "sensitivity": (
        ("--observe", "xray=yes", "--sensitivity", "lung=yes"),
        lambda: gs.questions.analyse_sensitivity(ASIA, "lung", "yes", {"xray": "yes"}),
    ),
    "effect": (
        ("--effect", "smoke,dysp", "--hidden", "bronc"),
        lambda: gs.questions.estimate_effect(ASIA, "smoke", "dysp", hidden=["bronc"]),
    ),
    "compare": (
        ("--observe", "xray=no", "--compare", "xray=yes"),
        lambda: gs.questions.compare_evidence(ASIA, {"xray": "no"}, {"xray": "yes"}),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_print_what_the_library_answers(run: Any, name: str, tmp_path: Path) -> None:
    words, ask = QUESTIONS[name]
    code, out, _ = run("infer", "asia", *words)
    assert code == 0 and out == f"{ask()}\n"
    place = tmp_path / "answer.json"
    assert run("infer", "asia", *words, "-o", str(place))[0] == 0
    assert isinstance(json.loads(place.read_text(encoding="utf-8")), dict)


def test_interventions_come_before_observations(run: Any) -> None:
    data = json.loads(run("infer", "asia", "--do", "dysp=yes", "--observe", "xray=yes", "--json", "-q")[1])
    wanted = gs.solve_exact(gs.questions.intervene(ASIA, {"dysp": "yes"}).observe({"xray": "yes"}))
    assert data["marginals"]["lung"] == wanted.marginals["lung"]


def test_expectations(run: Any, tmp_path: Path) -> None:
    model = gs.FactorGraph({"a": [1, 2], "b": [3, 4]}, [("a", [0.5, 0.5]), ("b", [0.5, 0.5])], directed=True)
    gs.write_model(model, tmp_path / "model.bif")
    code, out, _ = run("infer", str(tmp_path / "model.bif"), "--expect", "2 * a + b")
    assert code == 0 and out == "E[2 * a + b] = 6.5, standard deviation 1.11803\n"


def test_most_probable_states_of_some_sites_have_the_others_summed_out(run: Any) -> None:
    words = ("infer", "asia", "--observe", "dysp=yes", "--json", "--quiet")
    some = json.loads(run(*words, "--task", "MAP", "--query", "lung,bronc")[1])
    wanted = json.loads(run(*words, "--task", "MMAP", "--max", "lung,bronc")[1])
    assert some["assignment"] == wanted["assignment"] and some["log_potential"] == wanted["log_potential"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--event", "lung=perhaps"), "has no state 'perhaps'"),
        (("--event", "lung"), "expected a comparison"),
        (("--event", "lung=yes", "--conflict"), "ask one at a time"),
        (("--cost", "xray=5"), "belongs to --next"),
        (("--next", "lung", "--cost", "xray"), "--cost takes SITE=NUMBER"),
        (("--next", "lung,tub"), "--next takes one site"),
        (("--effect", "smoke"), "--effect takes two sites"),
        (("--support", "lung"), "--support takes SITE=STATE"),
        (("--conflict",), "at least 2 observations"),
        (("--do", "lung=yes", "--do", "lung=no"), "given twice"),
        (("--cases", "cases.csv", "--conflict"), "--cases answers with marginals or states"),
        (("--expect", "lung"), "are not numbers"),
    ],
)
def test_mistakes_get_one_line(run: Any, words: tuple[str, ...], said: str) -> None:
    code, out, err = run("infer", "asia", *words)
    assert code in (1, 2, 3) and out == "" and said in err and "Traceback" not in err


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_answers_are_written_as_pages(run: Any, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    assert run("infer", "asia", "--observe", "xray=yes", "--event", "lung=yes", "-o", str(path))[0] == 0
    question = path.read_text(encoding="utf-8")
    assert "P(lung=yes) = 0.4887" in question and "exact" in question
    assert run("infer", "asia", "--observe", "xray=yes", "-o", str(path))[0] == 0
    page = path.read_text(encoding="utf-8")
    assert "0.488711" in page and "xray (observed)" in page
    assert page.startswith("# " if suffix == ".md" else "<!DOCTYPE html>")
    code, _, err = run("infer", "asia", "--event", "lung=yes", "-o", str(tmp_path / "a.csv"))
    assert code == 2 and "the answer to a question is no CSV" in err


def test_a_tornado_is_plotted(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "t.png"
    assert run("infer", "asia", "--sensitivity", "lung=yes", "--plot", str(path))[0] == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_reasons_are_printed_once_and_without_warnings(run: Any) -> None:
    words = ("infer", "asia", "--next", "lung", "--no-exact", "--sweeps", "20", "--rng", "1")
    code, out, err = run(*words)
    assert code == 0 and out.startswith("lung: entropy") and "ConvergenceWarning" not in err
    assert "too few effective draws" in err and err.count("too few effective draws") == 1
