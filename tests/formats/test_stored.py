"""Models in files: the same numbers as in memory, sorted outside of it, and errors that name the place."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main
from gibbsite.formats import stored
from gibbsite.formats.parsing import edge_lists
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.kernels.herded.keys import Keys
from gibbsite.kernels.minibatch.rows import agreement_rows
from gibbsite.models.stored import ARRAYS, WHICH
from tests.common.pairs import renew

Edges = tuple[Any, Any, Any]


def random_edges(n: int, many: int, seed: int = 0) -> Edges:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[:many]
    return i[chosen], j[chosen], (0.3 * rng.normal(size=many)).astype(np.float32)


def few_values(many: int, distinct: int = 5, seed: int = 1) -> Any:
    """Return couplings of which few are distinct, zeros of both signs among them."""
    rng = np.random.default_rng(seed)
    known = np.r_[0.0, -0.0, 0.3 * rng.normal(size=distinct - 2)].astype(np.float32)
    return np.r_[known, rng.choice(known, many)][:many]


def coupling_of(graph: Any) -> Any:
    return np.asarray(graph.arrays.coupling)


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
    model = gs.formats.store_edges(parts, tmp_path / "model", sites=n, field=field)
    graph = gs.graphs.compile_graph(model)
    rows = gs.graphs.compile_graph(in_memory((a, b, coupling), field), "ising")
    assert (graph.arrays.start == rows.arrays.start).all()
    assert np.allclose(graph.arrays.field, rows.arrays.field, atol=1e-6)
    assert graph.log_offset == pytest.approx(rows.log_offset, abs=1e-6)
    for i in range(n):
        mine, other = (slice(g.arrays.start[i], g.arrays.start[i + 1]) for g in (graph, rows))
        one = dict(zip(graph.arrays.neighbour[mine].tolist(), coupling_of(graph)[mine].tolist(), strict=True))
        two = dict(zip(rows.arrays.neighbour[other].tolist(), rows.arrays.coupling[other].tolist(), strict=True))
        assert one == pytest.approx(two, abs=1e-6)
    assert not list(tmp_path.glob(".*")), "nothing is left behind"


@pytest.mark.parametrize("kernel", [gs.Gibbs(), gs.Gibbs("metropolised")], ids=str)
def test_runs_are_those_of_a_model_in_memory(kernel: gs.kernels.Kernel, tmp_path: Path) -> None:
    edges = random_edges(60, 150)
    model = gs.formats.store_edges([edges], tmp_path / "model", sites=60, field=0.1)
    how: dict[str, Any] = {"scan": gs.Systematic(), "sweeps": 300, "rng": 1, "progress": False}
    here, there = (
        gs.sample(m, kernel, record=["marginals", "energy"], **how) for m in (in_memory(edges, [0.1] * 60), model)
    )
    assert np.abs(here.marginals.cells - there.marginals.cells).max() < 1e-12
    assert np.abs(here.energy - there.energy).max() < 1e-4  # couplings are 32-bit floats
    assert gs.sample(model, kernel, sweeps=5, rng=1, progress=False).plan.form == "plain"


@pytest.mark.parametrize("distinct", [None, 5, 1], ids=["couplings", "few couplings", "one coupling"])
@pytest.mark.parametrize("scan", [gs.Systematic(), gs.RandomScan()], ids=["in order", "at random"])
@pytest.mark.parametrize(("n", "many"), [(5, 6), (60, 150), (400, 5000)])
def test_looking_ahead_changes_no_bit(
    n: int, many: int, scan: gs.scans.Scan, distinct: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of few and of many entries, and the last ones, ahead of which there is nothing."""
    a, b, coupling = random_edges(n, many)
    if distinct is None:
        monkeypatch.setattr(stored, "_MOST_VALUES", 1)
    else:
        coupling = few_values(many, distinct) if distinct > 1 else np.float32(0.1)
    model = gs.formats.store_edges([(a, b, coupling)], tmp_path / "model", sites=n, field=0.1)
    assert (model.path / "coupling.npy").stat().st_size == 128 + 4 * (distinct or 2 * many)
    assert model.coded == (distinct == 5)
    how: dict[str, Any] = {
        "scan": scan,
        "sweeps": 50,
        "rng": 1,
        "progress": False,
        "criteria": gs.Criteria(dispersed_starts=False),
    }
    ahead = gs.sample(model, **how)
    monkeypatch.setattr("gibbsite.graphs.kinds.stored.StoredGraph", IsingGraph)
    plain = gs.sample(gs.open_model(model.path), **how)
    assert ahead.marginals.cells.tobytes() == plain.marginals.cells.tobytes()


@pytest.mark.parametrize("kernel", [gs.Gibbs(), gs.AnnealedGibbs()], ids=lambda kernel: type(kernel).__name__)
def test_bytes_give_the_draws_of_floats(
    kernel: gs.kernels.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = random_edges(60, 150)
    edges = [(a, b, few_values(150))]
    coded = gs.formats.store_edges(edges, tmp_path / "coded", sites=60, field=0.1)
    monkeypatch.setattr(stored, "_MOST_VALUES", 1)
    floats = gs.formats.store_edges(edges, tmp_path / "floats", sites=60, field=0.1)
    assert (coded.coded, coded.manifest["version"]) == (True, 3)
    assert (floats.coded, floats.manifest["version"]) == (False, 2)
    one, two = (gs.graphs.compile_graph(model) for model in (coded, floats))
    assert coupling_of(one).tobytes() == coupling_of(two).tobytes()
    assert (agreement_rows(one).table == agreement_rows(two).table).all(), "what PoissonGibbs draws from"
    assert Keys("shared", 32, one).found_by == Keys("shared", 32, two).found_by, "what HerdedGibbs looks up"
    x = np.random.default_rng(2).integers(0, 2, 60)
    assert coded.log_potential(x) == floats.log_potential(x)
    how: dict[str, Any] = {"sweeps": 50, "rng": 1, "progress": False, "criteria": gs.Criteria(dispersed_starts=False)}
    record = ["energy", "marginals" if kernel.estimates else "best"]
    seen, same = (gs.sample(model, kernel, record=record, **how) for model in (coded, floats))
    assert seen.energy.tobytes() == same.energy.tobytes()
    assert seen.totals.tobytes() == same.totals.tobytes()


@pytest.mark.parametrize("piece", [100, 1000, 5000])
def test_distinct_couplings_are_counted_piece_by_piece(piece: int, tmp_path: Path) -> None:
    """A byte tells 256 apart; one more, however late it comes, and all are floats."""
    a, b, _ = random_edges(400, 5000)
    coupling = few_values(5000, 256)[::-1]  # some come in the last piece only
    for distinct in (256, 257):
        coupling[4500] = 7.0 if distinct == 257 else coupling[4500]
        parts = [(a[k : k + piece], b[k : k + piece], coupling[k : k + piece]) for k in range(0, 5000, piece)]
        none = np.zeros(0, int)
        model = gs.formats.store_edges([*parts, (none, none, 9.0)], tmp_path / str(distinct), sites=400)
        assert np.unique(coupling.view(np.uint32)).size == distinct
        assert model.coded == (distinct == 256)
        assert model.array("coupling").size == (256 if model.coded else 10_000)
        assert gs.open_model(model.path, verify=True).coded == model.coded
        row = coupling_of(gs.graphs.compile_graph(model))[: model.array("start")[1]]
        assert row.tobytes() == (4.0 * coupling[(a == 0) | (b == 0)]).tobytes()


def test_the_first_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, _ = random_edges(60, 150)
    new = gs.formats.store_edges([(a, b, 0.1)], tmp_path / "new", sites=60)
    monkeypatch.setattr(stored, "_MOST_VALUES", 1)
    gs.formats.store_edges([(a, b, np.r_[np.full(149, 0.1), 0.2])], tmp_path / "old", sites=60)
    whole = np.full(300, np.float32(0.4))
    np.save(tmp_path / "old" / "coupling.npy", whole)
    np.save(tmp_path / "old" / "field.npy", new.array("field"))
    manifest = tmp_path / "old" / "manifest.json"
    renew(manifest.parent, version=1, log_offset=new.log_offset)
    first, second = (gs.open_model(tmp_path / name) for name in ("old", "new"))
    assert (first.array("coupling") == second.array("coupling")).all()
    x = np.random.default_rng(1).integers(0, 2, 60)
    assert first.log_potential(x) == second.log_potential(x)
    how: dict[str, Any] = {"sweeps": 50, "rng": 1, "progress": False, "criteria": gs.Criteria(dispersed_starts=False)}
    draws = [gs.sample(model, record=["energy", "marginals"], **how) for model in (first, second)]
    assert draws[0].energy.tobytes() == draws[1].energy.tobytes(), "an array, and one number for all"
    assert draws[0].totals.tobytes() == draws[1].totals.tobytes()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["bipartite", "any", "forest"])
def test_colors_are_found_row_by_row(kind: str, seed: int, tmp_path: Path) -> None:
    """Two colors are those of a model in memory; more are at most the largest degree plus one."""
    rng = np.random.default_rng(seed)
    if kind == "any":
        a, b, _ = random_edges(200, 600, seed)
    elif kind == "forest":
        b = np.arange(10, 200)
        a = (rng.random(b.size) * b).astype(int)
    else:
        side = rng.permutation(200)
        pick = rng.permutation(90 * 110)[:300]
        a, b = side[pick // 110], side[90 + pick % 110]
    graph = gs.graphs.compile_graph(gs.formats.store_edges([(a, b, 0.1)], tmp_path / "model", sites=200))
    colors = color_sites(graph)
    assert (colors[a] != colors[b]).all()
    known = color_sites(gs.graphs.compile_graph(gs.ising((a, b, np.full(a.size, 0.1)), [0.0] * 200), "ising"))
    if kind == "any":
        assert known.max() > 1
        assert colors.max() <= np.bincount(np.concatenate([a, b])).max()
    else:
        assert (colors == known).all()


def test_a_chromatic_run(tmp_path: Path) -> None:
    """Site by site, color by color, as a model in memory is moved in that order."""
    ring = np.arange(60)
    edges = ring, (ring + 1) % 60, np.full(60, 0.3, np.float32)
    model = gs.formats.store_edges([edges], tmp_path / "model", sites=60, field=0.1)
    how: dict[str, Any] = {"sweeps": 300, "rng": 1, "progress": False}
    result = gs.sample(model, scan=gs.Chromatic(), **how)
    assert result.plan.form == "plain"
    order = np.argsort(color_sites(gs.graphs.compile_graph(model)), kind="stable")
    same = gs.sample(in_memory(edges, [0.1] * 60), scan=gs.scans.FixedOrder(order.tolist()), **how)
    assert np.abs(result.marginals.cells - same.marginals.cells).max() < 1e-12


def test_log_potentials_are_those_of_a_model_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.models.stored._SITES", 7)  # several pieces
    edges, rng = random_edges(60, 150), np.random.default_rng(3)
    field = rng.normal(size=60)
    model = gs.formats.store_edges([edges], tmp_path / "model", sites=60, field=field)
    for _ in range(5):
        x = rng.integers(0, 2, 60)
        assert model.log_potential(x) == pytest.approx(in_memory(edges, field).log_potential(x), abs=1e-5)
    with pytest.raises(gs.errors.ModelError, match="60 codes from 0 to 1"):
        model.log_potential([2] * 60)


def test_a_stored_model_is_judged_as_any_other(tmp_path: Path) -> None:
    """A ring converges and passes the dispersed-start check; voters that all began alike do not."""
    ring = np.arange(50)
    how: dict[str, Any] = {"rng": 1, "progress": False}
    good = gs.sample(
        gs.formats.store_edges([(ring, (ring + 1) % 50, 0.3)], tmp_path / "ring", sites=50), sweeps=6000, **how
    )
    assert good.diagnostics.converged
    assert "dispersed-start check: 64 short chains agree" in good.diagnostics.line()
    first, second = np.triu_indices(30, 1)
    voters = gs.formats.store_edges([(first, second, 0.2)], tmp_path / "voters", sites=30)
    bad = gs.sample(voters, sweeps=3000, start=np.ones(30, int), **how)
    assert not bad.diagnostics.converged


@pytest.mark.parametrize(
    "kernel",
    [
        gs.BlockGibbs(),
        gs.CutsetGibbs(),
        gs.Tempered(),
        gs.kernels.PairedTempered(),
        gs.SwendsenWang(),
        gs.Wolff(),
        gs.kernels.Perfect(),
        gs.importance.MiniBucketMetropolis(),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_what_reads_the_whole_model_is_refused(kernel: gs.kernels.Kernel, tmp_path: Path) -> None:
    model = gs.formats.store_edges([random_edges(60, 150)], tmp_path / "model", sites=60)
    with pytest.raises(gs.errors.IncompatibleError, match="a stored one stays in its files"):
        gs.sample(model, kernel, sweeps=10, progress=False)
    with pytest.raises(gs.errors.IncompatibleError, match="fold evidence in"):
        model.observe({"0": 1})


def test_a_checkpoint_belongs_to_its_model(tmp_path: Path) -> None:
    model = gs.formats.store_edges([random_edges(60, 150)], tmp_path / "one", sites=60)
    other = gs.formats.store_edges([random_edges(60, 150, seed=2)], tmp_path / "two", sites=60)
    how: dict[str, Any] = {"rng": 1, "progress": False, "warmup": 5}
    whole = gs.sample(model, sweeps=100, **how)
    path = tmp_path / "run.chk"
    gs.sample(model, sweeps=40, checkpoint=path, **how)
    with pytest.raises(gs.errors.CheckpointError, match="model differ"):
        gs.sample(other, sweeps=100, checkpoint=gs.Checkpoint(path, resume=True), **how)
    again = gs.sample(gs.open_model(tmp_path / "one"), sweeps=100, checkpoint=gs.Checkpoint(path, resume=True), **how)
    assert again.marginals.cells.tobytes() == whole.marginals.cells.tobytes()


def test_from_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(edge_lists, "_TEXT_BYTES", 20)  # a few lines at a time
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
    direct = gs.formats.store_edges([(a, b, coupling)], tmp_path / "direct", sites=model.n_sites)
    assert model.digest == direct.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 0.5\n1 x 0.5", "line 2: expected two site numbers"),
        ("0 1 0.5\n\n1 2", "line 3: expected"),
        ("0 1.5 2", "line 1: expected"),
        ("0 1 2 3", "line 1: expected"),
        ("# x\n0 1 nan", "line 2: this has a coupling that is not finite"),
        ("0 1 1e39", "line 1: this has a coupling that is not finite"),
        ("0 1 1e38", "line 1: this has a coupling that is not finite, or beyond 8e37"),
        ("0 1\n\n# y\n2 2", "line 4: this joins site 2 with itself"),
        ("0 -1", "line 1: this names site -1"),
        ("0 1\n0 3000000000", "line 2: this names site 3000000000"),
        ("", "has no edges"),
    ],
)
def test_bad_texts(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_lists, "_TEXT_BYTES", 5)  # a line at a time
    (tmp_path / "graph.edges").write_text(text)
    with pytest.raises((gs.errors.FormatError, gs.errors.ModelError), match=said):
        gs.formats.store_edges(tmp_path / "graph.edges", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.edges"]


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([([0], [5], 1.0)], "piece 0 of the edges names site 5; sites are 0 to 4"),
        ([([0], [1], 1.0), ([1, 2], [1], 1.0)], "piece 1 of the edges must have two arrays of equally many"),
        ([([0.5], [1.0], 1.0)], "whole numbers"),
        ([([0], [1], np.inf)], "not finite"),
        ([([0], [1])], r"piece 0 of the edges must be \(a, b, J\)"),
    ],
)
def test_bad_pieces(pieces: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.formats.store_edges(pieces, tmp_path / "model", sites=5)
    assert not list(tmp_path.iterdir())


def test_a_compressed_text(tmp_path: Path) -> None:
    plain, packed = tmp_path / "graph.edges", tmp_path / "graph.edges.gz"
    plain.write_text("0 1 0.5\n1 2 -0.5\n")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one, two = (gs.formats.store_edges(file, file.with_suffix(".pairs")) for file in (plain, packed))
    assert one.digest == two.digest
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(gs.errors.FormatError, match=r"Cannot read .*graph.edges.gz: Compressed file ended"):
        gs.formats.store_edges(packed, tmp_path / "torn.pairs")


def test_sites_beyond_the_stated_number(tmp_path: Path) -> None:
    (tmp_path / "graph.edges").write_text("0 1\n1 7\n")
    with pytest.raises(gs.errors.FormatError, match=r"graph\.edges, line 2: this names site 7; sites are 0 to 4"):
        gs.formats.store_edges(tmp_path / "graph.edges", tmp_path / "model", sites=5)


def convert(monkeypatch: pytest.MonkeyPatch, *words: Path) -> Any:
    monkeypatch.setattr(sys, "argv", ["gibbsite", "convert", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_from_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(edge_lists, "_ROWS", 7)
    a, b, coupling = random_edges(30, 80)
    file = tmp_path / "graph.parquet"
    parquet.write_table(arrow.table({"a": a, "b": b, "J": coupling, "note": ["x"] * 80}), file)
    assert not convert(monkeypatch, file, tmp_path / "graph.pairs")
    model = gs.open_model(tmp_path / "graph.pairs", verify=True)
    direct = gs.formats.store_edges([(a, b, coupling)], tmp_path / "direct", sites=model.n_sites)
    assert model.digest == direct.digest
    parquet.write_table(arrow.table({"a": a, "b": b}), file)
    ones = gs.formats.store_edges(file, tmp_path / "ones")
    assert ones.digest == gs.formats.store_edges([(a, b, 1.0)], tmp_path / "same", sites=ones.n_sites).digest
    for table, said in (
        ({"a": [0, 1, 2], "b": [1, None, 3]}, r"graph.parquet, row 2: a number is missing"),
        ({"a": list(range(9)), "b": [*range(1, 9), 8]}, "row 9: this joins site 8 with itself"),
        ({"a": [0, -1], "b": [1, 2]}, "row 2: this names site -1"),
        ({"a": [0, 1], "b": [1, 2], "J": [0.0, np.inf]}, "row 2: this has a coupling that is not finite"),
        ({"a": [0.0, 1.0], "b": [1, 2]}, "two columns of whole numbers.*it has double, int64"),
        ({"a": ["0", "1"], "b": [1, 2]}, "it has string, int64"),
        ({"a": [0, 1], "b": [1, 2], "J": ["x", "y"]}, "it has int64, int64, string"),
        ({"a": [0, 1]}, "it has int64"),
    ):
        parquet.write_table(arrow.table(table), file)
        with pytest.raises(gs.errors.FormatError, match=said):
            gs.formats.store_edges(file, tmp_path / "bad")
    file.write_bytes(b"no table")
    with pytest.raises(gs.errors.FormatError, match=r"graph.parquet is no Parquet file"):
        gs.formats.store_edges(file, tmp_path / "bad")
    with pytest.raises(gs.errors.FormatError, match="Cannot read"):
        gs.formats.store_edges(tmp_path / "nothing.parquet", tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


def test_tables_need_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "graph.parquet").write_bytes(b"")
    assert convert(monkeypatch, tmp_path / "graph.parquet", tmp_path / "graph.pairs")
    assert "need pyarrow, which is not installed" in capsys.readouterr().err
    assert not (tmp_path / "graph.pairs").exists()


_LIMITED = """
import resource, sys
import numpy as np
import gibbsite as gs
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
ring = np.arange(20_000)
try:
    gs.formats.store_edges([(ring, (ring + 1) % ring.size, 0.1 * (ring % 2))], sys.argv[1], sites=ring.size)
except gs.GibbsiteError as wrong:
    print(type(wrong).__name__, wrong)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are those of POSIX")
@pytest.mark.parametrize("most", [100, 1_000, 50_000, 100_000, 159_000])
def test_a_full_disk_leaves_no_model(most: int, tmp_path: Path) -> None:
    """Buckets have 1,900 bytes, arrays 80,000 to 160,000: neither may fit."""
    words = [sys.executable, "-c", _LIMITED, str(tmp_path / "model"), str(most)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"FormatError Cannot write {tmp_path / 'model'}: File too large; check")
    assert not done.stderr
    assert not list(tmp_path.iterdir())


def test_remains_of_a_killed_process_are_cleared_away(tmp_path: Path) -> None:
    torn, other = tmp_path / ".model.storing.part", tmp_path / ".model.2.storing.part"
    for folder in (torn, other):
        folder.mkdir()
        (folder / "bucket-0").write_bytes(b"torn")
    gs.formats.store_edges([random_edges(60, 150)], tmp_path / "model", sites=60)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".model.2.storing.part", "model"], "what belongs to model.2 is left alone"


def test_two_processes_do_not_store_into_one_folder(tmp_path: Path) -> None:
    def pieces() -> Any:
        with pytest.raises(gs.errors.FormatError, match="another process is writing it"):
            gs.formats.store_edges([random_edges(60, 150)], tmp_path / "model", sites=60)
        yield random_edges(60, 150)

    assert gs.formats.store_edges(pieces(), tmp_path / "model", sites=60).n_edges == 150
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="sites is needed"):
        gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "model")
    with pytest.raises(gs.errors.ArgumentError, match="sites must be a whole number"):
        gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "model", sites="5")  # type: ignore[arg-type]
    with pytest.raises(gs.errors.ArgumentError, match="edges must be a file, or pieces"):
        gs.formats.store_edges(5, tmp_path / "model", sites=5)
    with pytest.raises(gs.errors.ModelError, match="one for each of 5 sites"):
        gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "model", sites=5, field=[1.0, 2.0])
    (tmp_path / "model").mkdir()
    with pytest.raises(gs.errors.ArgumentError, match="exists already"):
        gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "model", sites=5)
    with pytest.raises(gs.errors.FormatError, match="Cannot read"):
        gs.formats.store_edges(tmp_path / "nothing.edges", tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(gs.errors.FormatError, match="Cannot write"):
        gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "file" / "model", sites=5)


def test_what_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="path must be a path, got None"):
        gs.open_model(None)  # type: ignore[arg-type]
    with pytest.raises(gs.errors.ArgumentError, match="path must be a path, got None"):
        gs.formats.store_edges([([0], [1], 1.0)], None, sites=2)  # type: ignore[arg-type]
    with pytest.raises(gs.errors.ModelError, match="must have numbers as couplings"):
        gs.formats.store_edges([([0], [1], 0.3 + 5j)], tmp_path / "model", sites=2)
    (tmp_path / "none.edges").write_text("# nothing\n")
    with pytest.raises(gs.errors.FormatError, match=r"none\.edges has no edges"):
        gs.formats.store_edges(tmp_path / "none.edges", tmp_path / "model")
    (tmp_path / "far.edges").write_text("0 1 0.3\n1 99999999999999999999 0.4\n")
    with pytest.raises(gs.errors.FormatError, match=r"far\.edges, line 2: expected two site numbers"):
        gs.formats.store_edges(tmp_path / "far.edges", tmp_path / "model")


def test_damage_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(gs.errors.FormatError, match="No such file"):
        gs.open_model(tmp_path / "model")
    assert gs.formats.store_edges([random_edges(60, 150)], tmp_path / "model", sites=60).coded
    for name in (*ARRAYS, WHICH):
        file = tmp_path / "model" / f"{name}.npy"
        data = file.read_bytes()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(gs.errors.FormatError):
            gs.open_model(tmp_path / "model")
        with pytest.raises(gs.errors.FormatError, match=f"{name}.npy has changed"):
            gs.open_model(tmp_path / "model", verify=True)
        file.write_bytes(data[:-1])
        with pytest.raises(gs.errors.FormatError, match=f"{name}.npy is missing or does not have the size"):
            gs.open_model(tmp_path / "model")
        file.write_bytes(data)
    manifest = tmp_path / "model" / "manifest.json"
    about = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**about, "version": 99}))
    with pytest.raises(gs.errors.FormatError, match="another format or version"):
        gs.open_model(tmp_path / "model")
    manifest.write_text("{")
    with pytest.raises(gs.errors.FormatError, match="manifest is damaged"):
        gs.open_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "place"),
    [("start", -2), ("start", 500), ("start", 10), ("start", 61), ("field", 60), ("offset", -3), ("offset", 900)],
)
def test_damage_that_leaves_the_size_is_noticed(name: str, place: int, tmp_path: Path) -> None:
    """In headers, and where compiled code would read beyond an array; elsewhere by verify=True alone."""
    ring = np.arange(1000)
    model = gs.formats.store_edges([(ring, (ring + 1) % 1000, 0.1)], tmp_path / "model", sites=1000, states=3)
    file = model.path / f"{name}.npy"
    data = bytearray(file.read_bytes())
    data[place] ^= 0x55
    file.write_bytes(data)
    with pytest.raises(gs.errors.FormatError, match=rf"{name}\.npy is damaged"):
        gs.open_model(model.path)


def test_reading_one_as_a_file_says_what_it_is(tmp_path: Path) -> None:
    gs.formats.store_edges([([0, 1], [1, 2], 0.5)], tmp_path / "path", sites=3)
    with pytest.raises(gs.errors.FormatError, match="this folder is a stored model"):
        gs.read_model(tmp_path / "path")
