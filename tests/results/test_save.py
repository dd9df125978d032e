"""Saved results: everything comes back, equal results give equal bytes, bad files are refused."""

from __future__ import annotations

import json
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite.errors import CheckpointError, FormatError
from gibbsite.results.verdict.convergence import Unreached
from gibbsite.sampling.plan import Plan


@pytest.fixture(scope="module")
def named() -> gs.Result:
    """Names, labels of all types, evidence, and every recorder."""
    model = gs.FactorGraph(
        {"rain": ["no", "yes"], "level": [10, 20, 30], "Grüße": ["1", "2"], "flag": [False, True], "seen": [0, 1]},
        [
            (("rain", "level"), [[4, 1, 2], [1, 2, 3]]),
            (("level", "Grüße"), [[1, 2], [2, 1], [1, 1]]),
            (("flag", "seen"), [[1, 2], [3, 1]]),
        ],
    ).observe({"seen": 1})
    record = ["marginals", "draws", "energy", "best", "pairs", gs.recorders.Joint([("rain", "level")])]
    return gs.sample(model, sweeps=600, rng=2**100, record=record, progress=False)


@pytest.fixture(scope="module")
def grid() -> gs.Result:
    """Implicit names, two states, marginals only."""
    return gs.sample(gs.ising_grid((20, 30), coupling=0.2), sweeps=50, rng=1, progress=False)


def check_equal(a: gs.Result, b: gs.Result) -> None:
    for field in fields(gs.Result):
        mine, other = getattr(a, field.name), getattr(b, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == other.dtype
            assert mine.shape == other.shape
            assert mine.tobytes() == other.tobytes(), field.name
        elif field.name == "_sets":
            assert mine.n_joint == other.n_joint
            for name in ("start", "member", "cell"):
                assert np.array_equal(getattr(mine, name), getattr(other, name))
        elif field.name == "domains":
            assert mine.names.all() == other.names.all()
            assert np.array_equal(mine.cards, other.cards)
            for site in range(mine.n_sites):
                check_labels(mine.labels(site), other.labels(site))
        elif field.name == "evidence_labels":
            assert list(mine) == list(other)
            for site in mine:
                check_labels(mine[site], other[site])
        elif field.name != "seconds":
            assert mine == other, field.name


def check_labels(a: tuple[Any, ...], b: tuple[Any, ...]) -> None:
    assert a == b
    assert [type(label) for label in a] == [type(label) for label in b]


@pytest.mark.parametrize("which", ["named", "grid"])
def test_everything_comes_back(which: str, tmp_path: Path, request: pytest.FixtureRequest):
    result = request.getfixturevalue(which)
    result.save(tmp_path / "r.npz")
    again = gs.load(tmp_path / "r.npz")
    check_equal(result, again)
    assert isinstance(again.plan, Plan)
    assert again.plan == result.plan
    assert again.summary() == result.summary()
    assert again.diagnostics == result.diagnostics
    assert np.isnan(again.seconds)


def test_all_views_work_after_loading(named: gs.Result, tmp_path: Path):
    named.save(str(tmp_path / "r.npz"))
    again = gs.load(str(tmp_path / "r.npz"))
    assert again.marginals == named.marginals
    assert again.marginals["seen"] == {0: 0.0, 1: 1.0}
    assert again.mcse["level"] == named.mcse["level"]
    assert again.assignment == named.assignment
    assert np.array_equal(again.joint("level", "rain"), named.joint("level", "rain"))
    assert np.array_equal(again.pair_moments[1], named.pair_moments[1])
    assert again.to_datatree().identical(named.to_datatree())
    assert again._repr_html_() == named._repr_html_()


def test_equal_results_give_equal_bytes(named: gs.Result, tmp_path: Path):
    named.save(tmp_path / "a.npz")
    twin = replace(
        named, seconds=named.seconds + 1.0, _trace=np.asfortranarray(named._trace), evidence=dict(named.evidence)
    )
    twin.save(tmp_path / "b.npz")
    gs.load(tmp_path / "a.npz").save(tmp_path / "c.npz")
    first = (tmp_path / "a.npz").read_bytes()
    assert first == (tmp_path / "b.npz").read_bytes() == (tmp_path / "c.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_other_results_give_other_bytes(named: gs.Result, tmp_path: Path):
    named.save(tmp_path / "a.npz")
    for number, other in enumerate(
        [replace(named, interrupted=True), replace(named, n_draws=7), replace(named, totals=named.totals + 1)]
    ):
        other.save(tmp_path / f"{number}.npz")
        assert (tmp_path / "a.npz").read_bytes() != (tmp_path / f"{number}.npz").read_bytes()


def test_implicit_names_are_not_written(grid: gs.Result, tmp_path: Path):
    grid.save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as file:
        about = json.loads(file["about"].item())
        assert about["sites"] is None
        assert "site_numbers" not in file.files
        assert file["about"].nbytes < 2000


def test_numbers_left_after_evidence_are_an_array(tmp_path: Path):
    model = gs.ising_grid((4, 5), coupling=0.2).observe({"3": 1, "7": -1})
    result = gs.sample(model, sweeps=20, rng=1, progress=False)
    result.save(tmp_path / "r.npz")
    again = gs.load(tmp_path / "r.npz")
    check_equal(result, again)
    assert again.marginals["8"] == result.marginals["8"]
    assert again.marginals["7"] == {-1: 1.0, 1: 0.0}
    with np.load(tmp_path / "r.npz") as file:
        assert file["site_numbers"].dtype == np.int32


def test_doubts_and_flags(grid: gs.Result, tmp_path: Path):
    unreached = (Unreached("3", 1, True), Unreached("4", "1", False))
    odd = replace(grid, unreached=unreached, interrupted=True)
    odd.save(tmp_path / "r.npz")
    again = gs.load(tmp_path / "r.npz")
    assert again.unreached == unreached
    assert [type(doubt.state) for doubt in again.unreached] == [int, str]
    assert again.interrupted
    assert again.diagnostics.unreached == unreached


def test_readable_without_gibbsite_and_without_pickle(named: gs.Result, tmp_path: Path):
    named.save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays["about"].item())
    assert about["plan"]["entropy"] == 2**100
    assert about["evidence"] == [["seen", 1]]
    assert arrays["totals"].shape == named.totals.shape


def test_a_model_with_every_site_observed(tmp_path: Path):
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 2], [3, 4]])])
    result = gs.sample(model.observe({"a": 1, "b": 0}), sweeps=5, rng=1, progress=False)
    result.save(tmp_path / "r.npz")
    check_equal(result, gs.load(tmp_path / "r.npz"))


def test_an_old_file_is_replaced_and_no_other_is_left(grid: gs.Result, tmp_path: Path):
    (tmp_path / "r.npz").write_text("old")
    grid.save(tmp_path / "r.npz")
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.npz"]
    gs.load(tmp_path / "r.npz")


def test_unwritable_places(grid: gs.Result, tmp_path: Path):
    with pytest.raises(CheckpointError, match="Cannot write"):
        grid.save(tmp_path / "missing" / "r.npz")
    with pytest.raises(CheckpointError, match="Cannot write"):
        grid.save(tmp_path)
    assert not list(tmp_path.iterdir())


def refusal(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        gs.load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert caught.value.path == str(path)
    return message


def test_missing_file(tmp_path: Path):
    assert "does not exist" in refusal(tmp_path / "none.npz")


def test_foreign_files(tmp_path: Path):
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "arrays.npz", x=np.arange(3))
    np.savez(tmp_path / "about.npz", about=np.array('{"format": 1}'))
    np.savez(tmp_path / "list.npz", about=np.array("[1]"))
    np.savez(tmp_path / "numbers.npz", about=np.arange(3))
    np.savez(tmp_path / "object.npz", about=np.array([{}, None], dtype=object))
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for path in sorted(tmp_path.iterdir()):
        assert "not a file of gs.save" in refusal(path), path
    assert "not a regular file" in refusal(tmp_path)


def test_a_checkpoint_is_not_a_result(tmp_path: Path):
    path = tmp_path / "run.ckpt"
    gs.sample(gs.ising_grid((3, 3)), sweeps=20, rng=1, progress=False, checkpoint=path)
    assert "not a file of gs.save" in refusal(path)


def rewrite(source: Path, target: Path, **changes: Any) -> None:
    """Copy a saved result with changes of arrays (None: left out) or of the JSON part."""
    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays.pop("about").item())
    for name, value in changes.items():
        if name in about:
            about[name] = value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
    np.savez(target, about=np.array(json.dumps(about).encode()), **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 3}, "has format 3"),
        ({"totals": None}, "inconsistent"),
        ({"totals": np.zeros(3)}, "its array totals has 3 entries"),
        ({"values": np.zeros((1, 1, 1))}, "its array values has numbers of type float64"),
        ({"trace": np.zeros((4, 3, 1), np.float32)}, "its array trace has 4 x 3 x 1 entries"),
        ({"n_sites": 3}, "inconsistent"),
        ({"n_marginal": 2}, "marginals and sites do not match"),
        ({"plan": {"kernel": 1}}, "inconsistent"),
        ({"plan": None}, "inconsistent"),
        ({"labels": [[]]}, "inconsistent"),
    ],
)
def test_inconsistent_files(changes: dict[str, Any], message: str, grid: gs.Result, tmp_path: Path):
    grid.save(tmp_path / "r.npz")
    rewrite(tmp_path / "r.npz", tmp_path / "s.npz")
    check_equal(grid, gs.load(tmp_path / "s.npz"))
    rewrite(tmp_path / "r.npz", tmp_path / "s.npz", **changes)
    assert message in refusal(tmp_path / "s.npz")


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), flip=st.one_of(st.none(), st.integers(1, 255)))
def test_torn_and_damaged_files(cut: float, flip: int | None, grid: gs.Result, tmp_path: Path):
    whole = tmp_path / "whole.npz"
    if not whole.exists():
        grid.save(whole)
    data = bytearray(whole.read_bytes())
    place = min(int(cut * len(data)), len(data) - 1)
    torn = tmp_path / "torn.npz"
    if flip is None:
        torn.write_bytes(data[:place])
        refusal(torn)
        return
    data[place] ^= flip
    torn.write_bytes(data)
    try:  # a flipped bit in an unused header does no harm
        check_equal(grid, gs.load(torn))
    except FormatError:
        refusal(torn)
