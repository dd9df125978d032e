"""gibbsite segment scribbles, as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from gibbsite.applications.segmentation import make_pictures
from gibbsite.cli import main
from gibbsite.cli.segment import command
from gibbsite.errors import FormatError


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gibbsite", "segment", "scribbles", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of a disc, scribbles on it, and files that are no use."""
    folder = tmp_path_factory.mktemp("segment")
    disc = np.hypot(*np.indices((60, 80)) - np.array([30, 40])[:, None, None]) < 20
    noise = np.random.default_rng(1).normal(0, 5, (60, 80, 3))
    image = np.clip(np.where(disc[..., None], (200, 160, 60), (60, 90, 160)) + noise, 0, 255).astype(np.uint8)
    scribbles = np.zeros((60, 80, 4), np.uint8)
    scribbles[30, 32:48] = (255, 0, 0, 255)
    scribbles[3, 4:76] = scribbles[56, 4:76] = (0, 0, 255, 255)
    one = np.where(scribbles[..., :1] > 0, scribbles, 0)
    for name, pixels in (("i.png", image), ("s.png", scribbles), ("one.png", one), ("small.png", image[:9])):
        Image.fromarray(pixels).save(folder / name)
    Image.fromarray(np.zeros((60, 80), np.uint8)).save(folder / "none.png")
    (folder / "text.png").write_text("no image")
    (folder / "cut.png").write_bytes((folder / "i.png").read_bytes()[:2000])
    return folder


def test_a_picture_and_scribbles_make_four_files(folder: Path) -> None:
    done = run(folder, "i.png", "s.png", "-o", "out.png", "--rng", "1", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["width"], facts["height"]) == (80, 60)
    assert facts["shares"]["#ff0000"] == pytest.approx(np.pi * 400 / 4800, abs=0.02)
    assert facts["files"] == ["out.png", "out-legend.json", "out-certainty.png", "out-overlay.jpg"]
    assert all((folder / name).exists() for name in facts["files"])
    assert "80 x 60 pixels, gibbs, coupling" in done.stderr
    with Image.open(folder / "out.png") as picture:
        assert np.asarray(picture)[30, 40] == 1
        assert np.asarray(picture)[3, 4] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["i.png", "one.png", "-o", "x.png"], 3, "there are scribbles of one label only"),
        (["i.png", "none.png", "-o", "x.png"], 3, "there are no scribbles"),
        (["small.png", "s.png", "-o", "x.png"], 3, "the scribbles have 80 x 60 pixels and the image 80 x 9"),
        (["text.png", "s.png", "-o", "x.png"], 3, "text.png: this is not an image"),
        (["cut.png", "s.png", "-o", "x.png"], 3, "cut.png: the image cannot be read"),
        (["i.png", "nothing.png", "-o", "x.png"], 3, "nothing.png: there is no such file"),
        (["i.png", "s.png", "-o", "nowhere/x.png"], 3, "there is no such folder"),
        (["i.png", "s.png", "-o", "x.jpg"], 2, "end its name in .png"),
        (["i.png", "s.png", "-o", "-"], 2, "this cannot be written to stdout"),
        (["-", "-", "-o", "x.png"], 2, "cannot both be read from stdin"),
        (["i.png", "s.png", "-o", "x.png", "--method", "gibs"], 2, "did you mean 'gibbs'"),
        (["i.png", "s.png", "-o", "x.png", "--background", "grey"], 2, "--background must be a colour"),
        (["i.png", "s.png", "-o", "x.png", "--method", "icm", "--sweeps", "3"], 2, "--sweeps has no effect"),
        (["i.png", "s.png", "-o", "x.png", "--coupling", "-1"], 2, "--coupling"),
    ],
)
def test_mistakes_end_in_one_line(
    folder: Path,
    words: list[str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["gibbsite", "segment", "scribbles", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capfd.readouterr().err
    assert stop.value.code == code, err
    assert said in " ".join(err.split())
    assert "Traceback" not in err
    assert not (folder / "x.png").exists()


def test_interrupted(folder: Path) -> None:
    words = [sys.executable, "-m", "gibbsite", "segment", "scribbles", "i.png", "s.png", "-o", "late.png"]
    process = subprocess.Popen(
        [*words, "--sweeps", "100000000"], cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    time.sleep(4.0)  # long enough to have begun
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said


pillow = pytest.importorskip("PIL.Image")
pytest.importorskip("skimage")
pytest.importorskip("sklearn")


def call(*words: str) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pictures")
    made = make_pictures(8, rng=1)
    for k, one in enumerate(made.examples):
        pillow.fromarray(one.image).save(place / f"p{k}.png")
        pillow.fromarray((one.labels + 1).astype(np.uint8)).save(place / f"p{k}_GT.png")
    listed = [{"index": k + 1, "name": name} for k, name in enumerate(made.classes)]
    (place / "classes.json").write_text(json.dumps({"classes": listed}))
    return place


@pytest.fixture(scope="module")
def model(photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("model") / "m.seg"
    done = call("train", photographs, "-o", out, "--texture", "40", "--colour", "15")
    assert done.exit_code == 0, done.output
    assert "sky, grass, wall, tiger from 8 photographs; coupling 2" in done.stderr
    return str(out)


def test_pictures_are_labelled_and_four_files_written(photographs: Path, model: str, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    done = call(
        "apply", photographs / "p0.png", model, "-o", out, "--method", "dogs", "--region", "90,60,200,150", "--json"
    )
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["width"], facts["height"], facts["method"]) == (320, 213, "dogs")
    assert sum(facts["shares"].values()) == pytest.approx(1.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a-certainty.png",
        "a-legend.json",
        "a-overlay.jpg",
        "a.png",
    ]
    labels = np.asarray(pillow.open(out))
    assert labels.shape == (213, 320)
    assert labels.max() < 4


def test_errors_are_counted(photographs: Path, model: str) -> None:
    done = call("score", model, photographs, "--method", "plsa", "--json", "-q")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert 0.0 <= facts["hamming"] < 0.2
    assert list(facts["classes"]) == ["sky", "grass", "wall", "tiger"]
    counts = np.array(facts["confusion"])
    assert facts["hamming"] == pytest.approx(1 - np.trace(counts) / counts.sum())
    table = call("score", model, photographs, "--method", "plsa", "-q").stdout.splitlines()
    assert table[-1].split()[:2] == ["all", f"{facts['hamming']:.4f}"]


def test_options_without_effect_and_bad_files_are_refused(photographs: Path, model: str, tmp_path: Path) -> None:
    picture, out = photographs / "p0.png", tmp_path / "b.png"
    done = call("apply", picture, model, "-o", out, "--region", "0,0,9,9")
    assert "--region has no effect with --method systematic" in done.output
    done = call("apply", picture, model, "-o", out, "--method", "plsa", "--rounds", "3")
    assert "--rounds has no effect with --method plsa" in done.output
    done = call("apply", picture, model, "-o", out, "--method", "dogs", "--region", "1,2")
    assert "four whole numbers" in done.output
    done = call("apply", picture, model, "-o", out, "--method", "dogs", "--region", "0,0,999,9")
    assert (done.exit_code, "--region" in done.output) == (2, True)
    assert isinstance(call("apply", picture, picture, "-o", out).exception, FormatError)
    assert isinstance(call("train", tmp_path / "nowhere", "-o", tmp_path / "m").exception, FormatError)
    assert "neither a number" in call("train", photographs, "-o", tmp_path / "m", "--coupling", "x").output
    assert not out.exists()
