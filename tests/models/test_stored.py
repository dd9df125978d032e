"""Stored models that do not hang together are refused on opening, whatever their checksums say."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main
from tests.common.pairs import change, renew


@pytest.fixture(scope="module")
def glass(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spin glass: a float for each pair."""
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(40, 1)
    pick = rng.permutation(a.size)[:300]
    path = tmp_path_factory.mktemp("stored") / "glass"
    gs.formats.store_edges([(a[pick], b[pick], rng.normal(0.0, 0.2, 300))], path, sites=40, field=0.1)
    return path


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Potts model with two couplings."""
    ring = np.arange(50)
    path = tmp_path_factory.mktemp("stored") / "colours"
    given = ring, (ring + 1) % 50, np.where(ring % 2, 0.5, -0.5)
    gs.formats.store_edges([given], path, sites=50, states=["red", "green", "blue"], field=[0.1, 0.0, -0.1])
    return path


@pytest.fixture
def copy(tmp_path: Path) -> Any:
    def make(of: Path) -> Path:
        return Path(shutil.copytree(of, tmp_path / "model"))

    return make


def refused(path: Path, verify: bool = False) -> str:
    with pytest.raises(gs.errors.FormatError) as error:
        gs.open_model(path, verify)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("neighbour", 17, 40, "not a site"),
        ("neighbour", 17, 2**32 - 1, "not a site"),
        ("neighbour", 0, 0, "its own neighbour"),
        ("start", 7, 2**32 - 1, "damaged"),
        ("coupling", 5, np.nan, "not numbers"),
        ("coupling", 5, np.inf, "infinite"),
        ("coupling", 5, 9.0, "both of its sites"),
        ("field", 5, np.nan, "not numbers"),
        ("field", 5, -np.inf, "infinite"),
    ],
)
def test_numbers_that_no_model_has(glass: Path, copy: Any, name: str, place: int, value: float, said: str) -> None:
    path = copy(glass)
    change(path, name, place, value)
    assert said in refused(path)
    assert said in refused(path, verify=True)


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("which", 3, 2, "not listed"),
        ("which", 3, 255, "not listed"),
        ("offset", 3, 2, "damaged"),
        ("field", 1, np.nan, "not numbers"),
        ("coupling", 1, np.nan, "not numbers"),
    ],
)
def test_numbers_that_no_potts_model_has(
    colours: Path, copy: Any, name: str, place: int, value: float, said: str
) -> None:
    path = copy(colours)
    change(path, name, place, value)
    assert said in refused(path)


def test_a_pair_in_one_row_alone(glass: Path, copy: Any) -> None:
    path = copy(glass)
    neighbour = np.load(path / "neighbour.npy")
    start = np.load(path / "start.npy")
    strangers = set(range(1, 40)) - set(neighbour[: start[1]].tolist())
    change(path, "neighbour", 0, strangers.pop())
    assert "both of its sites" in refused(path)


@pytest.mark.parametrize("name", ["start", "neighbour", "coupling", "field"])
def test_single_flipped_bits(glass: Path, copy: Any, name: str) -> None:
    """Wherever they are, and without a comparison of all checksums."""
    path = copy(glass)
    data = (path / f"{name}.npy").read_bytes()
    rng = np.random.default_rng(3)
    for bit in rng.choice(np.arange(8 * 128, 8 * len(data)), 60, replace=False).tolist():
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        (path / f"{name}.npy").write_bytes(wrong)
        refused(path)
        assert f"{name}.npy has changed" in refused(path, verify=True)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("sites", 0),
        ("sites", "40"),
        ("sites", 39),
        ("sites", 2**60),
        ("entries", -2),
        ("entries", 3),
        ("entries", 598),
        ("entries", True),
        ("log_offset", float("nan")),
        ("log_offset", 3.5),
        ("log_offset", "none"),
        ("version", [1]),
        ("version", True),
        ("states", [1.5, 2.5]),
        ("states", ["one", "two"]),
        ("states", 3),
    ],
)
def test_manifests_that_do_not_fit(glass: Path, copy: Any, entry: str, value: Any) -> None:
    path = copy(glass)
    renew(path, **{entry: value})
    refused(path)


def test_manifests_that_are_none(glass: Path, copy: Any) -> None:
    path = copy(glass)
    file = path / "manifest.json"
    about = json.loads(file.read_text())
    del about["checksum"]  # which would tell in every case
    for name in about:
        file.write_text(json.dumps({key: one for key, one in about.items() if key != name}))
        refused(path)
    for files in (3, [], {}, {"start": 3}, {name: {} for name in about["files"]}):
        file.write_text(json.dumps({**about, "files": files}))
        refused(path)
    for text in ("[" * 100_000, "[]", '"text"', "", "{", "\ud800".encode("utf-8", "surrogatepass")):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        refused(path)
    file.write_text(json.dumps({**about, "digest": "0" * 32}))
    assert "its own checksum is wrong" in refused(path)


def test_arrays_that_are_none(glass: Path, copy: Any) -> None:
    path = copy(glass)
    for name in ("start", "neighbour", "coupling", "field"):
        good = np.load(path / f"{name}.npy")
        for wrong in (good[:-1], good.astype(np.float16), good.astype(">u2"), good.astype("S4"), good[None]):
            np.save(path / f"{name}.npy", wrong)
            renew(path)
            refused(path)
        (path / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', " + b"(" * 300)
        renew(path)
        refused(path)
        np.save(path / f"{name}.npy", good)
    renew(path)
    gs.open_model(path, verify=True)


def test_verify_on_the_command_line(
    glass: Path, copy: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(*words: Any) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, capfd.readouterr().err

    path = copy(glass)
    how = ["--sweeps", "20", "--rng", "1", "--no-dispersed-starts", "-q", "--verify"]
    assert run("infer", path, *how)[0] == 0
    data = bytearray((path / "neighbour.npy").read_bytes())
    data[20] ^= 1  # in the header's version of itself
    (path / "neighbour.npy").write_bytes(data)
    code, err = run("infer", path, *how)
    assert code == 3
    assert "store the model again" in err
    code, err = run("infer", "asia", "--verify")
    assert code == 2
    assert "--verify" in err


def test_every_entry_of_a_manifest_is_covered_by_its_checksum(glass: Path, copy: Any) -> None:
    path = copy(glass)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"log_offset": manifest["log_offset"] + 1e-7}))
    assert "its own checksum is wrong" in refused(path)
    del manifest["checksum"]  # as earlier versions wrote them
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert gs.open_model(path, verify=True).n_sites == 40
