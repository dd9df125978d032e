"""Bad arguments end in exit code 2, unwritable places in 3, and both before any work is done."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.wording import Text, argument, part
from gibbsite.applications import read_image, write_image
from gibbsite.cli import group, info, main
from gibbsite.cli.wording import in_options
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.graphs.elimination.order import EliminationOrder
from gibbsite.inference.asking import choose
from gibbsite.inference.exact.cost import cost_of_order


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the command line in an empty folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capfd.readouterr())

    return call


BAD = [
    ["infer", "asia", "--seconds", "0"],
    ["infer", "asia", "--seconds", "-1"],
    ["infer", "asia", "--seconds", "nan"],
    ["infer", "asia", "--seconds", "inf"],
    ["infer", "asia", "--sweeps", "0"],
    ["infer", "asia", "--chains", "0"],
    ["infer", "asia", "--threads", "0"],
    ["infer", "asia", "--warmup", "-1"],
    ["infer", "asia", "--rng", "-1"],
    ["infer", "asia", "--accuracy", "2"],
    ["infer", "asia", "--accuracy", "0"],
    ["infer", "asia", "--query", ","],
    ["infer", "asia", "--query", "nobody"],
    ["infer", "asia", "--observe", "asia=perhaps"],
    ["convert", "asia", "asia.nope"],
    ["infer", "asia", "--from", "nonsense"],
    ["infer", "asia", "--method", "mean-field", "--damping", "nan"],
    ["infer", "asia", "--checkpoint-every", "-1", "--checkpoint", "c.npz"],
    ["certify", "asia", "--accuracy", "0"],
    ["scan", "asia", "--iterations", "0"],
    ["convert", "asia", "asia.uai", "--to", "nonsense"],
    ["denoise", "in.png", "-o", "out.png", "--coupling", "-1"],
    ["denoise", "in.png", "-o", "out.png", "--levels", "1"],
    ["denoise", "-", "-o", "-", "--json"],
    ["reproduce", "nonsense"],
    ["completion", "powershell"],
]


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_arguments_are_usage_errors(run: Any, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, ""), err
    assert "Usage: gibbsite" in err
    assert list(Path().iterdir()) == []


# words, and the option that would have no effect
IDLE = [
    (["infer", "asia", "--method", "exact", "--scan", "random"], "--scan"),
    (["infer", "asia", "--method", "exact", "--seconds", "5"], "--seconds"),
    (["infer", "asia", "--method", "exact", "--chains", "4"], "--chains"),
    (["infer", "asia", "--method", "exact", "--checkpoint", "c.npz"], "--checkpoint"),
    (["infer", "asia", "--method", "gibbs", "--damping", "0.5"], "--damping"),
    (["infer", "asia", "--parallel"], "--parallel"),
    (["infer", "asia", "--method", "mean-field", "--chains", "2"], "--chains"),
    (["infer", "asia", "--method", "mean-field", "--accuracy", "0.1"], "--accuracy"),
    (["infer", "asia", "--task", "MAP", "--accuracy", "0.1"], "--accuracy"),
    (["infer", "asia", "--resume"], "--resume needs --checkpoint"),
    (["infer", "asia", "--method", "exact", "--no-exact"], "--method exact and --no-exact contradict"),
    (["infer", "asia", "--method", "gibbs", "--no-exact"], "--no-exact has no effect with --method gibbs"),
    (["infer", "asia", "--checkpoint-every", "5"], "--checkpoint-every needs --checkpoint"),
    (["infer", "asia", "--query", "tub", "--format", "uai"], "--query"),
    (["infer", "asia", "--query", "tub", "--task", "PR"], "--query"),
    (["infer", "asia", "--json", "--format", "csv"], "--json and --format csv"),
    (["infer", "asia", "--json", "--all"], "--all"),
    (["infer", "asia", "--query", "tub", "--all"], "--all"),
    (["denoise", "in.png", "-o", "out.png", "--damping", "0.5"], "--damping"),
    (["denoise", "in.png", "-o", "out.png", "--truncation", "2", "--levels", "4"], "--truncation"),
    (["denoise", "in.png", "-o", "out.png", "--prior", "truncated-linear"], "--prior"),
    (["reproduce", "--quick"], "--quick"),
]


@pytest.mark.parametrize(("words", "said"), IDLE, ids=lambda value: " ".join(value) * isinstance(value, list))
def test_options_without_effect_are_refused(run: Any, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_options_for_the_case_that_exact_does_not_fit_are_welcome(run: Any) -> None:
    words = ["--seconds", "5", "--rng", "1", "--chains", "2", "--scan", "random", "--checkpoint", "c.npz"]
    code, out, _ = run("infer", "asia", *words, "--json", "--format", "json", "-q")
    assert code == 0
    assert json.loads(out)["method"] == "exact"


UNWRITABLE = [
    ["infer", "asia", "-o"],
    ["infer", "asia", "--method", "gibbs", "--checkpoint"],
    ["scan", "asia", "-o"],
    ["scan", "asia", "--plot"],
    ["certify", "asia", "--plot"],
    ["convert", "asia"],
    ["denoise", "in.png", "-o"],
    ["denoise", "in.png", "-o", "out.png", "--probability"],
    ["reproduce", "herded-discrepancy", "-o"],
]


@pytest.mark.parametrize("words", UNWRITABLE, ids=" ".join)
@pytest.mark.parametrize("place", ["nowhere/out.png", "file/out.png", "folder.png"])
def test_unwritable_places_are_refused_before_any_work(
    run: Any, words: list[str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*args: Any, **options: Any) -> None:
        raise AssertionError("work was done though there is no place for its result")

    for home, name in (
        ("inference", "infer"),
        ("influence", "dogs"),
        ("influence", "certify"),
        ("applications", "denoise"),
        ("formats", "read_model"),
        ("lab", "run"),
    ):
        monkeypatch.setattr(f"gibbsite.{home}.{name}", work)
    write_image(np.zeros((4, 4), bool), "in.png")
    Path("file").write_text("in the way")
    Path("folder.png").mkdir()
    if words[0] == "reproduce":
        place = {"nowhere/out.png": "file/out", "file/out.png": "file", "folder.png": "/proc/nowhere"}[place]
    code, out, err = run(*words, place)
    assert (code, out) == (3, "")
    assert len(err.splitlines()) == 1
    assert Path("file").read_text() == "in the way"


@pytest.mark.parametrize("place", ["plot.xyz", "-"])
def test_plots_of_unknown_kind_are_refused_before_any_work(run: Any, place: str) -> None:
    assert run("certify", "asia", "--plot", place)[0] in (2, 3)


def test_what_is_there_stays_until_there_is_an_answer(run: Any) -> None:
    Path("old.txt").write_text("old")
    assert run("infer", "asia", "--observe", "nose=yes", "-o", "old.txt")[0] == 2
    assert Path("old.txt").read_text() == "old"
    assert run("infer", "asia", "--query", "tub", "-o", "old.txt", "-q")[0] == 0
    assert Path("old.txt").read_text().startswith("tub")
    assert os.listdir() == ["old.txt"]


def test_messages_are_in_the_spelling_of_the_command_line() -> None:
    command = group.get_command(click.Context(group), "infer")
    assert command is not None
    for marked, python, shell in [
        (f"{argument('chains')} is wrong.", "chains is wrong.", "--chains is wrong."),
        (argument("method", "mean-field"), "method='mean-field'", "--method mean-field"),
        (argument("dispersed_starts", False), "dispersed_starts=False", "--no-dispersed-starts"),
        (
            f"{argument('resume', True)} needs {argument('checkpoint')}.",
            "resume=True needs checkpoint.",
            "--resume needs --checkpoint.",
        ),
        (argument("sweeps", 512), "sweeps=512", "--sweeps 512"),
        (argument("thin", 2), "thin=2", "thin=2"),  # there is no such option
        (part("Gibbs"), "gs.Gibbs()", "--method gibbs"),
        (part("QuasiGibbs", "QuasiGibbs"), "QuasiGibbs", "--method quasi"),
        (part("HerdedGibbs", "keys='blanket'", keys="blanket"), "keys='blanket'", "--method herded"),
        (part("HerdedGibbs", "keys='shared'", keys="shared"), "keys='shared'", "--method herded-shared"),
        (part("HerdedGibbs", "keys='full'", keys="full"), "keys='full'", "keys='full'"),
        (part("Chromatic"), "gs.Chromatic()", "--scan chromatic"),
        ("chains=4 in the name of a site", "chains=4 in the name of a site", "chains=4 in the name of a site"),
    ]:
        text = Text(marked)
        assert text == python
        assert in_options(text, command) == shell
        assert pickle.loads(pickle.dumps(text)).marked == marked


def text_of(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " ".join(value)


# words, and what stands in the message
SPELLED = [
    (["infer", "alarm", "--method", "poisson"], "use --method gibbs"),
    (["infer", "alarm", "--method", "quasi", "--chains", "1", "--sweeps", "100"], "--method quasi gains"),
    (["infer", "asia", "--method", "quasi", "--scan", "random"], "use --scan systematic"),
    (["infer", "asia", "--task", "MAP", "--warmup", "5"], "--warmup belongs to sampling"),
]


@pytest.mark.parametrize("words, said", SPELLED, ids=text_of)
def test_errors_speak_of_options(run: Any, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert out == ""
    assert code in (1, 2)
    assert said in err
    assert "gs." not in err


def test_notes_speak_of_options(run: Any) -> None:
    code, _, err = run("infer", "asia", "--method", "herded", "--sweeps", "50", "--rng", "1")
    assert code == 0
    assert "because --method herded does not distinguish" in err


# words, and the name that was meant
MISSPELLED = [
    (["infr", "asia"], "did you mean 'infer'?"),
    (["infer", "asia", "--method", "gibs"], "did you mean 'gibbs'?"),
    (["infer", "asia", "--task", "MAQ"], "did you mean 'MAR'?"),
    (["infer", "asia", "--scan", "sistematic"], "did you mean 'systematic'?"),
    (["infer", "asia", "--from", "xmlbi"], "did you mean 'xmlbif'?"),
    (["infer", "asia", "--query", "asai"], "did you mean 'asia'?"),
    (["infer", "asia", "--observe", "asia=yess"], "did you mean 'yes'?"),
    (["infer", "asia", "--observe", "asai=yes"], "did you mean 'asia'?"),
    (["certify", "asia", "--target", "asai"], "did you mean 'asia'?"),
    (["reproduce", "herded-denoisin"], "did you mean 'herded-denoising'?"),
]


@pytest.mark.parametrize("words, said", MISSPELLED, ids=text_of)
def test_unknown_names_are_answered_with_the_nearest(run: Any, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err


def test_names_without_a_format_are_bad_arguments_where_they_are_written(run: Any) -> None:
    assert run("convert", "asia", "x.nope")[0] == 2
    Path("x.nope").write_text("nonsense")
    assert run("infer", "x.nope")[0] == 3  # a file that is there and cannot be read


def test_options_of_sampling_that_were_not_used_are_named(run: Any) -> None:
    code, _, err = run("infer", "asia", "--scan", "random", "--sweeps", "100")
    assert code == 0
    assert "; --scan, --sweeps not used)" in err
    assert "not used" not in run("infer", "asia", "--seconds", "5")[2]


def test_vertices_of_max_cut_files_count_from_one(run: Any) -> None:
    Path("a.edges").write_text("left right 1\nright top 2\n")
    code, _, err = run("convert", "a.edges", "a.rudy")
    assert (code, err) == (0, "gibbsite: rudy files hold no names: sites are numbered from 1, in order.\n")
    assert Path("a.rudy").read_text().split()[2:4] == ["1", "2"]


def test_names_that_a_format_cannot_hold_are_mentioned(run: Any) -> None:
    code, _, err = run("convert", "asia", "asia.uai")
    assert (code, err) == (0, "gibbsite: uai files hold no names: sites and states are numbered from 0, in order.\n")
    assert run("convert", "asia.uai", "again.uai")[1:] == ("", "")
    assert run("convert", "asia", "asia.xmlbif")[1:] == ("", "")


def test_a_file_goes_before_an_example_of_its_name(run: Any) -> None:
    assert run("info", "asia", "--json")[1].count('"sites": 8')
    Path("asia").write_text("MARKOV 1 2 1 1 0 2 0.5 0.5")
    assert run("info", "asia", "--json")[1].count('"sites": 1,')
    assert "no such file" in run("info", "asia.bif")[2]


def test_what_is_too_large_for_numbers_is_null_for_programs_and_words_for_people() -> None:
    facts = info.describe(gs.ising_grid((400, 400), coupling=0.1))
    assert math.isfinite(json.loads(write_json(facts))["exact"]["bytes"])
    beyond = cost_of_order(EliminationOrder(np.arange(2), 0, 2000.0, math.inf, 0))
    assert all(math.isfinite(value) for value in vars(beyond).values())
    assert info._shown(beyond.bytes) == "more than 1e308"
    assert beyond.line() == "largest clique more than 1e308 entries, more than a thousand years"


def test_facts_are_in_words(run: Any) -> None:
    gs.write_model(gs.ising_grid((12, 30), coupling=0.1), "grid.uai")
    code, out, err = run("info", "grid.uai")
    assert (code, err) == (0, "")
    assert re.search(r"^zeros +no$", out, re.M)
    assert re.search(r"largest clique [\d.e+]{1,9},", out)
    assert re.search(r"^zeros +yes$", run("info", "asia")[1], re.M)


def test_no_infinity_in_what_is_read(run: Any) -> None:
    gs.write_model(gs.ising_grid((300, 300), coupling=0.1), "grid.uai")
    code, out, err = run("infer", "grid.uai", "--task", "PR", "--method", "exact")
    assert code == 5
    assert not re.search(r"\binf\b", out + err)
    for task in ("MAP", "PR"):
        reason = choose(gs.ising_grid((300, 300), coupling=0.1), task, "auto", 1.0)[1]
        assert "more than a thousand years" in reason
        assert not re.search(r"\binf\b", reason)


def test_bounds_that_say_nothing_are_called_so(run: Any) -> None:
    gs.write_model(gs.ising_grid((5, 5), coupling=1.5), "strong.uai")
    code, _, err = run("scan", "strong.uai")
    assert code == 0
    assert "The bound is vacuous" in err
    assert "None" not in err
    assert "guarantee" not in err
    code, out, err = run("scan", "strong.uai", "--accuracy", "0.1")
    assert (code, out) == (3, "")
    assert "No scan of at most 10000 steps" in err
    assert "no scan lowers the bound" in err or "the best reached is" in err
    code, out, err = run("certify", "strong.uai", "--steps", "100000")
    assert "inf" not in out.replace("influence", "")
    assert "nan" not in out + err
    assert json.loads(run("certify", "strong.uai", "--steps", "100000", "--json")[1])["variation"] is None


def test_images_through_pipes(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from io import BytesIO, TextIOWrapper

    image = np.zeros((8, 8), bool)
    write_image(image, "in.png")
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path("in.png").read_bytes())))
    assert (read_image("-") == image).all()
    assert run("denoise", "in.png", "-o", "float.xyz")[0] == 2
