"""``gibbsite denoise``: files in, files out, and one clear line for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gibbsite.applications import read_image, write_image
from gibbsite.applications.methods import DENOISING as METHODS
from gibbsite.cli import denoise as command
from gibbsite.cli import main
from tests.applications.pictures import add_noise, discs


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the command in a folder with a clean, a flipped and a grey image."""
    clean = discs(64)
    write_image(clean, tmp_path / "clean.png")
    write_image(clean ^ (np.random.default_rng(1).random(clean.shape) < 0.2), tmp_path / "flipped.png")
    grey = np.clip(128 + 40 * add_noise(clean, 1.5, 1), 0, 255).astype(np.uint8)
    write_image(grey, tmp_path / "grey.png")
    write_image((128 + 40 * add_noise(clean, 1.5, 1)).astype(np.float32), tmp_path / "float.tif")
    write_image(discs(65), tmp_path / "other.png")
    (tmp_path / "empty.png").write_bytes(b"")
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", "denoise", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 1 if code else 0), out, err

    return call


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_flipped_pixels(run: Any, suffix: str) -> None:
    words = ["flipped.png", "-o", f"out{suffix}", "--probability", f"map{suffix}", "--reference", "clean.png"]
    code, out, err = run(*words, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["flip"] == pytest.approx(0.2, abs=0.03)
    assert answer["sigma"] is None
    assert (answer["width"], answer["height"], answer["method"]) == (64, 64, "herded-shared")
    assert answer["error"]["wrong"] < 0.03
    assert "wrong pixels" in err
    image, chance = read_image(f"out{suffix}"), read_image(f"map{suffix}")
    assert np.mean((image > 0.5 * image.max()) != discs(64)) == pytest.approx(answer["error"]["wrong"])
    assert np.mean((chance > 127) != discs(64)) == pytest.approx(answer["error"]["wrong"], abs=1e-3)


@pytest.mark.parametrize("words", [["--sigma", "60"], ["--method", "mean-field"], ["--means", "88", "168"]])
def test_grey_values_around_two_levels(run: Any, words: list[str]) -> None:
    code, out, err = run("grey.png", "-o", "out.png", "--reference", "clean.png", "--json", "-q", *words)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["sigma"] == pytest.approx(60, rel=0.1)
    assert answer["error"]["wrong"] < 0.2 * answer["error"]["wrong_before"]
    assert set(np.unique(read_image("out.png"))) == {0, 255}


def test_floats_between_0_and_255(run: Any) -> None:
    code, out, err = run("float.tif", "-o", "out.tif", "--reference", "clean.png", "--json", "-q")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["means"] == pytest.approx([88, 168], abs=8)
    assert answer["error"]["wrong"] < 0.2 * answer["error"]["wrong_before"]
    code, _, err = run("float.tif", "-o", "grey.tif", "--levels", "4")
    assert code == 2
    assert "expected between 0 and 1; give --means" in err
    assert not Path("grey.tif").exists()


def test_grey_levels(run: Any) -> None:
    words = ["grey.png", "-o", "out.png", "--levels", "6", "--prior", "truncated-linear", "--probability", "map.png"]
    code, out, err = run(*words)
    assert (code, out) == (0, "")
    assert "herded-site" in err
    assert set(np.unique(read_image("out.png"))) <= {0, 51, 102, 153, 204, 255}
    assert np.unique(read_image("map.png")).size > 6


@pytest.mark.parametrize("method", METHODS)
def test_the_command_offers_every_method(method: str) -> None:
    offered = next(parameter for parameter in command.command.params if parameter.name == "method")
    assert method in getattr(offered.type, "choices", ())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["grey.png", "-o", "out.png", "--flip", "0.1"], 2, "--flip is for images of two values"),
        (["grey.png", "-o", "out.png", "--sigma", "0"], 2, "sigma"),
        (["flipped.png", "-o", "out.png", "--flip", "0.5"], 2, "flip"),
        (["flipped.png", "-o", "out.png", "--flip", "0.1", "--sigma", "1"], 2, "give one"),
        (["empty.png", "-o", "out.png"], 3, "empty.png"),
        (["nowhere.png", "-o", "out.png"], 3, "no such file"),
        (["flipped.png", "-o", "out.png", "--reference", "other.png"], 3, "65 x 65"),
        (["flipped.png", "-o", "out.png", "--method", "magic"], 2, "magic"),
        (["flipped.png", "-o", "out.xyz"], 2, "out.xyz"),
        (["flipped.png", "-o", "nowhere/out.png"], 3, "nowhere"),
        (["flipped.png"], 2, "--output"),
    ],
)
def test_mistakes_end_in_one_line(run: Any, words: list[str], code: int, said: str) -> None:
    seen, out, err = run(*words, "--json") if code == 2 else run(*words, "-q")
    assert seen == code, err
    assert said in err
    assert "Traceback" not in err
    assert out == ""
    assert len(err.strip().splitlines()) <= (1 if code == 3 else 4)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['gibbsite', 'denoise', '--help']\n"
        "from gibbsite.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'numpy', 'scipy', 'PIL', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
