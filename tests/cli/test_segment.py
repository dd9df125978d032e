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
from PIL import Image

from gibbsite.cli import main


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
