"""Image files: written files are read again, and files of other kinds are refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gibbsite.applications import read_image, write_image
from gibbsite.applications.images import as_photograph, encode_image
from gibbsite.errors import FormatError, IncompatibleError

RNG = np.random.default_rng(1)
SHAPE = (7, 11)


@pytest.mark.parametrize(
    ("suffix", "image"),
    [
        (".png", RNG.random(SHAPE) < 0.5),
        (".png", RNG.integers(0, 256, SHAPE).astype(np.uint8)),
        (".png", RNG.integers(0, 65536, SHAPE).astype(np.uint16)),
        (".tif", RNG.random(SHAPE) < 0.5),
        (".tiff", RNG.integers(0, 256, SHAPE).astype(np.uint8)),
        (".tif", RNG.integers(0, 65536, SHAPE).astype(np.uint16)),
        (".tif", RNG.normal(size=SHAPE).astype(np.float32)),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.dtype),
)
def test_round_trip(tmp_path: Path, suffix: str, image: Any) -> None:
    path = tmp_path / f"image{suffix}"
    write_image(image, path)
    again = read_image(path)
    assert again.dtype == image.dtype
    assert np.array_equal(again, image)


def test_jpeg_keeps_black_and_white_apart(tmp_path: Path) -> None:
    image = np.kron([[0, 1], [1, 0]], np.ones((16, 16))).astype(bool)
    write_image(image, tmp_path / "image.jpg")
    assert np.array_equal(read_image(tmp_path / "image.jpg") > 127, image)


def test_colours_become_grey(tmp_path: Path) -> None:
    from PIL import Image

    colours = RNG.integers(0, 256, (*SHAPE, 4)).astype(np.uint8)
    Image.fromarray(colours).save(tmp_path / "colours.png")
    luma = colours[..., :3] @ [0.299, 0.587, 0.114]
    assert np.abs(read_image(tmp_path / "colours.png") - luma).max() <= 1


def test_what_is_no_image(tmp_path: Path) -> None:
    whole = tmp_path / "whole.png"
    write_image(np.zeros((50, 50), np.uint8), whole)
    (tmp_path / "cut.png").write_bytes(whole.read_bytes()[:60])
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("no image")
    for name in ("cut.png", "empty.png", "text.png", "nowhere.png", "."):
        with pytest.raises(FormatError) as error:
            read_image(tmp_path / name)
        assert len(str(error.value).splitlines()) == 1
    image = np.zeros((2, 2), np.uint8)
    for name in ("image.xyz", "nowhere/image.png"):
        with pytest.raises(FormatError):
            write_image(image, tmp_path / name)


def test_without_pillow_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(IncompatibleError, match=r'pip install -e "\.\[images\]"'):
        read_image("any.png")


def test_as_photograph_returns_an_array_of_any_kind_of_pixels_as_colours_of_8_bits() -> None:
    assert as_photograph(np.array([[0.0, 0.5, 1.0]]))[0, :, 0].tolist() == [0, 128, 255]
    assert as_photograph(np.array([[1000, 1080, 1200]], np.uint16))[0, :, 0].tolist() == [0, 102, 255]


def test_encode_image_returns_the_bytes_of_the_file_func_write_image_writes() -> None:
    assert encode_image(np.zeros((2, 2), np.uint8), "dots.png")[1:4] == b"PNG"
