"""gibbsite segment train, apply and score, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gibbsite.applications.segmentation import make_pictures
from gibbsite.cli.segment import command
from gibbsite.errors import FormatError

pillow = pytest.importorskip("PIL.Image")
pytest.importorskip("skimage")
pytest.importorskip("sklearn")


def run(*words: str) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pictures")
    made = make_pictures(8, rng=1)
    for k, one in enumerate(made.examples):
        pillow.fromarray(one.image).save(place / f"p{k}.png")
        pillow.fromarray((one.labels + 1).astype(np.uint8)).save(place / f"p{k}_GT.png")
    listed = [{"index": k + 1, "name": name} for k, name in enumerate(made.classes)]
    (place / "classes.json").write_text(json.dumps({"classes": listed}))
    return place


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("model") / "m.seg"
    done = run("train", folder, "-o", out, "--texture", "40", "--colour", "15")
    assert done.exit_code == 0, done.output
    assert "sky, grass, wall, tiger from 8 photographs; coupling 0.48" in done.stderr
    return str(out)


def test_pictures_are_labelled_and_four_files_written(folder: Path, model: str, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    done = run("apply", folder / "p0.png", model, "-o", out, "--method", "dogs", "--region", "90,60,200,150", "--json")
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


def test_errors_are_counted(folder: Path, model: str) -> None:
    done = run("score", model, folder, "--method", "plsa", "--json", "-q")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert 0.0 <= facts["hamming"] < 0.2
    assert list(facts["classes"]) == ["sky", "grass", "wall", "tiger"]
    counts = np.array(facts["confusion"])
    assert facts["hamming"] == pytest.approx(1 - np.trace(counts) / counts.sum())
    table = run("score", model, folder, "--method", "plsa", "-q").stdout.splitlines()
    assert table[-1].split()[:2] == ["all", f"{facts['hamming']:.4f}"]


def test_options_without_effect_and_bad_files_are_refused(folder: Path, model: str, tmp_path: Path) -> None:
    picture, out = folder / "p0.png", tmp_path / "b.png"
    done = run("apply", picture, model, "-o", out, "--region", "0,0,9,9")
    assert "--region has no effect with --method systematic" in done.output
    done = run("apply", picture, model, "-o", out, "--method", "plsa", "--rounds", "3")
    assert "--rounds has no effect with --method plsa" in done.output
    done = run("apply", picture, model, "-o", out, "--method", "dogs", "--region", "1,2")
    assert "four whole numbers" in done.output
    done = run("apply", picture, model, "-o", out, "--method", "dogs", "--region", "0,0,999,9")
    assert (done.exit_code, "--region" in done.output) == (2, True)
    assert isinstance(run("apply", picture, picture, "-o", out).exception, FormatError)
    assert isinstance(run("train", tmp_path / "nowhere", "-o", tmp_path / "m").exception, FormatError)
    assert "neither a number" in run("train", folder, "-o", tmp_path / "m", "--coupling", "x").output
    assert not out.exists()
