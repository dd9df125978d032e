"""Models in files: the same numbers as in memory, sorted outside of it, and errors that name the place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main
from gibbsite.formats import stored
from gibbsite.graph.kinds.ising import IsingGraph
from gibbsite.model.stored import ARRAYS

Edges = tuple[Any, Any, Any]


def random_edges(n: int, many: int, seed: int = 0) -> Edges:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[:many]
    return i[chosen], j[chosen], (0.3 * rng.normal(size=many)).astype(np.float32)


def in_memory(edges: Edges, field: Any) -> gs.FactorGraph:
    a, b, coupling = edges
    return gs.ising((a, b, np.asarray(coupling, float)), field)


@pytest.mark.parametrize(("n", "many"), [(3, 2), (40, 0), (200, 500), (1000, 4000)])
@pytest.mark.parametrize("piece", [1, 7, 100, 10_000])
def test_rows_are_those_of_a_model_in_memory(n: int, many: int, piece: int, tmp_path: Path) -> None:
    a, b, coupling = random_edges(n, many)
    field = np.random.default_rng(1).normal(size=n)
    parts = [(a[k : k + piece], b[k : k + piece], coupling[k : k + piece]) for k in range(0, many, piece)]
    if piece == 1 and many > 500:
        parts = parts[:500]
        a, b, coupling = a[:500], b[:500], coupling[:500]
    model = gs.store_edges(parts, tmp_path / "model", sites=n, field=field)
    graph = gs.compile_graph(model)
    rows = gs.compile_graph(in_memory((a, b, coupling), field), "ising")
    assert (graph.arrays.start == rows.arrays.start).all()
    assert np.allclose(graph.arrays.field, rows.arrays.field, atol=1e-6)
    assert graph.log_offset == pytest.approx(rows.log_offset, abs=1e-6)
    for i in range(n):
        mine, other = (slice(g.arrays.start[i], g.arrays.start[i + 1]) for g in (graph, rows))
        one = dict(
            zip(graph.arrays.neighbour[mine].tolist(), graph.arrays.coupling[mine].tolist(), strict=True)
        )
        two = dict(
            zip(rows.arrays.neighbour[other].tolist(), rows.arrays.coupling[other].tolist(), strict=True)
        )
        assert one == pytest.approx(two, abs=1e-6)
    assert not list(tmp_path.glob(".*")), "nothing is left behind"


@pytest.mark.parametrize("kernel", [gs.Gibbs(), gs.Gibbs("metropolised")], ids=str)
def test_runs_are_those_of_a_model_in_memory(kernel: gs.Kernel, tmp_path: Path) -> None:
    edges = random_edges(60, 150)
    model = gs.store_edges([edges], tmp_path / "model", sites=60, field=0.1)
    how: dict[str, Any] = {"scan": gs.Systematic(), "sweeps": 300, "rng": 1, "progress": False}
    here, there = (
        gs.sample(m, kernel, record=["marginals", "energy"], **how)
        for m in (in_memory(edges, [0.1] * 60), model)
    )
    assert np.abs(here.marginals.cells - there.marginals.cells).max() < 1e-12
    assert np.abs(here.energy - there.energy).max() < 1e-4  # couplings are 32-bit floats
    assert gs.sample(model, kernel, sweeps=5, rng=1, progress=False).plan.form == "plain"


@pytest.mark.parametrize("equal", [False, True], ids=["couplings", "one coupling"])
@pytest.mark.parametrize("scan", [gs.Systematic(), gs.RandomScan()], ids=["in order", "at random"])
@pytest.mark.parametrize(("n", "many"), [(5, 6), (60, 150), (400, 5000)])
def test_looking_ahead_changes_no_bit(
    n: int, many: int, scan: gs.Scan, equal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of few and of many entries, and the last ones, ahead of which there is nothing."""
    a, b, coupling = random_edges(n, many)
    model = gs.store_edges([(a, b, 0.1 if equal else coupling)], tmp_path / "model", sites=n, field=0.1)
    assert (model.path / "coupling.npy").stat().st_size == 128 + 4 * (1 if equal else 2 * many)
    how: dict[str, Any] = {"scan": scan, "sweeps": 50, "rng": 1, "progress": False, "second_look": False}
    ahead = gs.sample(model, **how)
    monkeypatch.setattr("gibbsite.graph.kinds.stored.StoredGraph", IsingGraph)
    plain = gs.sample(gs.open_model(model.path), **how)
    assert ahead.marginals.cells.tobytes() == plain.marginals.cells.tobytes()


def test_the_first_version_is_read(tmp_path: Path) -> None:
    a, b, _ = random_edges(60, 150)
    new = gs.store_edges([(a, b, 0.1)], tmp_path / "new", sites=60)
    old = gs.store_edges([(a, b, np.r_[np.full(149, 0.1), 0.2])], tmp_path / "old", sites=60)
    whole = np.full(300, np.float32(0.4))
    np.save(tmp_path / "old" / "coupling.npy", whole)
    np.save(tmp_path / "old" / "field.npy", new.array("field"))
    manifest = tmp_path / "old" / "manifest.json"
    manifest.write_text(json.dumps({**old.manifest, "version": 1, "log_offset": new.log_offset}))
    first, second = (gs.open_model(tmp_path / name) for name in ("old", "new"))
    assert (first.array("coupling") == second.array("coupling")).all()
    x = np.random.default_rng(1).integers(0, 2, 60)
    assert first.log_potential(x) == second.log_potential(x)


def test_log_potentials_are_those_of_a_model_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gibbsite.model.stored._SITES", 7)  # several pieces
    edges, rng = random_edges(60, 150), np.random.default_rng(3)
    field = rng.normal(size=60)
    model = gs.store_edges([edges], tmp_path / "model", sites=60, field=field)
    for _ in range(5):
        x = rng.integers(0, 2, 60)
        assert model.log_potential(x) == pytest.approx(in_memory(edges, field).log_potential(x), abs=1e-5)
    with pytest.raises(gs.ModelError, match="60 codes, each 0 or 1"):
        model.log_potential([2] * 60)


def test_a_stored_model_is_judged_as_any_other(tmp_path: Path) -> None:
    """A ring converges, and a second look agrees; voters that all began alike are found out."""
    ring = np.arange(50)
    how: dict[str, Any] = {"rng": 1, "progress": False}
    good = gs.sample(
        gs.store_edges([(ring, (ring + 1) % 50, 0.3)], tmp_path / "ring", sites=50), sweeps=6000, **how
    )
    assert good.diagnostics.converged
    assert "second look: 64 short chains agree" in good.diagnostics.line()
    first, second = np.triu_indices(30, 1)
    voters = gs.store_edges([(first, second, 0.2)], tmp_path / "voters", sites=30)
    bad = gs.sample(voters, sweeps=3000, start=np.ones(30, int), **how)
    assert not bad.diagnostics.converged


@pytest.mark.parametrize(
    "kernel",
    [
        gs.BlockGibbs(),
        gs.CutsetGibbs(),
        gs.Tempered(),
        gs.PairedTempered(),
        gs.SwendsenWang(),
        gs.Wolff(),
        gs.Perfect(),
        gs.MiniBucketMetropolis(),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_what_reads_the_whole_model_is_refused(kernel: gs.Kernel, tmp_path: Path) -> None:
    model = gs.store_edges([random_edges(60, 150)], tmp_path / "model", sites=60)
    with pytest.raises(gs.IncompatibleError, match="a stored one stays in its files"):
        gs.sample(model, kernel, sweeps=10, progress=False)
    with pytest.raises(gs.IncompatibleError, match="fold evidence in"):
        model.observe({"0": 1})


def test_a_checkpoint_belongs_to_its_model(tmp_path: Path) -> None:
    model = gs.store_edges([random_edges(60, 150)], tmp_path / "one", sites=60)
    other = gs.store_edges([random_edges(60, 150, seed=2)], tmp_path / "two", sites=60)
    how: dict[str, Any] = {"rng": 1, "progress": False, "warmup": 5}
    whole = gs.sample(model, sweeps=100, **how)
    path = tmp_path / "run.chk"
    gs.sample(model, sweeps=40, checkpoint=path, **how)
    with pytest.raises(gs.CheckpointError, match="model differ"):
        gs.sample(other, sweeps=100, checkpoint=path, resume=True, **how)
    again = gs.sample(gs.open_model(tmp_path / "one"), sweeps=100, checkpoint=path, resume=True, **how)
    assert again.marginals.cells.tobytes() == whole.marginals.cells.tobytes()


def test_from_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored, "_TEXT_BYTES", 20)  # a few lines at a time
    a, b, coupling = random_edges(30, 80)
    lines = [f"{i} {j} {w!r}" for i, j, w in zip(a.tolist(), b.tolist(), coupling.tolist(), strict=True)]
    lines[3:3] = ["# a comment", "", "  "]
    (tmp_path / "graph.edges").write_text("\n".join(lines))
    words = ["gibbsite", "convert", str(tmp_path / "graph.edges"), str(tmp_path / "graph.pairs")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert "80 pairs" in capsys.readouterr().err
    model = gs.open_model(tmp_path / "graph.pairs", verify=True)
    direct = gs.store_edges([(a, b, coupling)], tmp_path / "direct", sites=model.n_sites)
    assert model.digest == direct.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 0.5\n1 x 0.5", "line 2: expected two site numbers"),
        ("0 1 0.5\n\n1 2", "line 3: expected"),
        ("0 1.5 2", "line 1: expected"),
        ("0 1 2 3", "line 1: expected"),
        ("# x\n0 1 nan", "coupling that is not finite"),
        ("0 1\n2 2", "joins site 2 with itself"),
        ("0 -1", "site -1"),
        ("", "from 1 to"),
    ],
)
def test_bad_texts(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "graph.edges").write_text(text)
    with pytest.raises((gs.FormatError, gs.ModelError), match=said):
        gs.store_edges(tmp_path / "graph.edges", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.edges"]


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([([0], [5], 1.0)], "piece 0 of the edges names site 5; there are 0 to 4"),
        ([([0], [1], 1.0), ([1, 2], [1], 1.0)], "piece 1 of the edges must have two arrays of equally many"),
        ([([0.5], [1.0], 1.0)], "whole numbers"),
        ([([0], [1], np.inf)], "not finite"),
        ([([0], [1])], r"piece 0 of the edges must be \(a, b, J\)"),
    ],
)
def test_bad_pieces(pieces: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(gs.ModelError, match=said):
        gs.store_edges(pieces, tmp_path / "model", sites=5)
    assert not list(tmp_path.iterdir())


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(gs.ArgumentError, match="sites is needed"):
        gs.store_edges([([0], [1], 1.0)], tmp_path / "model")
    with pytest.raises(gs.ArgumentError, match="sites must be a whole number"):
        gs.store_edges([([0], [1], 1.0)], tmp_path / "model", sites="5")  # type: ignore[arg-type]
    with pytest.raises(gs.ArgumentError, match="edges must be a file, or pieces"):
        gs.store_edges(5, tmp_path / "model", sites=5)
    with pytest.raises(gs.ModelError, match="one for each of 5 sites"):
        gs.store_edges([([0], [1], 1.0)], tmp_path / "model", sites=5, field=[1.0, 2.0])
    (tmp_path / "model").mkdir()
    with pytest.raises(gs.ArgumentError, match="exists already"):
        gs.store_edges([([0], [1], 1.0)], tmp_path / "model", sites=5)
    with pytest.raises(gs.FormatError, match="Cannot read"):
        gs.store_edges(tmp_path / "nothing.edges", tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(gs.FormatError, match="Cannot write"):
        gs.store_edges([([0], [1], 1.0)], tmp_path / "file" / "model", sites=5)


def test_damage_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(gs.FormatError, match="No such file"):
        gs.open_model(tmp_path / "model")
    gs.store_edges([random_edges(60, 150)], tmp_path / "model", sites=60)
    for name in ARRAYS:
        file = tmp_path / "model" / f"{name}.npy"
        data = file.read_bytes()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        gs.open_model(tmp_path / "model")
        with pytest.raises(gs.FormatError, match=f"{name}.npy has changed"):
            gs.open_model(tmp_path / "model", verify=True)
        file.write_bytes(data[:-1])
        with pytest.raises(gs.FormatError, match=f"{name}.npy is missing or has another size"):
            gs.open_model(tmp_path / "model")
        file.write_bytes(data)
    manifest = tmp_path / "model" / "manifest.json"
    about = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**about, "version": 99}))
    with pytest.raises(gs.FormatError, match="another format or version"):
        gs.open_model(tmp_path / "model")
    manifest.write_text("{")
    with pytest.raises(gs.FormatError, match="manifest is damaged"):
        gs.open_model(tmp_path / "model")
