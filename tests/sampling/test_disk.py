"""Recording with bounded memory: chosen sites, marginals on disk, histograms; numbers as in memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs

HOW: dict[str, Any] = {"rng": 1, "progress": False, "warmup": 10}


def glass(n: int = 60, m: int = 150) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(n, 1)
    pick = rng.permutation(i.size)[:m]
    return i[pick], j[pick], (0.3 * rng.normal(size=m)).astype(np.float32)


def stored(folder: Path) -> gs.models.StoredPairs:
    return gs.formats.store_edges([glass()], folder / "model", sites=60, field=0.1)


def mixed() -> gs.FactorGraph:
    rng = np.random.default_rng(2)
    sites: dict[str, Any] = {"a": ["no", "yes"], "b": 3, "c": ["no", "maybe", "yes"], "d": 2}
    cards = {"a": 2, "b": 3, "c": 3, "d": 2}
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    return gs.FactorGraph(sites, [(p, np.exp(rng.normal(size=[cards[s] for s in p]))) for p in pairs])


MODELS = {
    "stored": stored,
    "grid": lambda folder: gs.ising_grid((12, 12), coupling=0.3, field=0.1),
    "chromatic grid": lambda folder: gs.ising_grid((80, 80), coupling=0.3, field=0.1),
    "labels": lambda folder: mixed(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rao_blackwell", [None, False])
@pytest.mark.parametrize("chains", [1, 3, 20])
def test_on_disk_as_in_memory(name: str, rao_blackwell: bool | None, chains: int, tmp_path: Path) -> None:
    model = MODELS[name](tmp_path)
    how = {**HOW, "sweeps": 40, "chains": chains, "criteria": gs.Criteria(dispersed_starts=False)}
    here = gs.sample(model, record=gs.Marginals(rao_blackwell, batches=False), **how)
    there = gs.sample(model, record=gs.Marginals(rao_blackwell, to=tmp_path / "sums"), **how)
    assert there.totals.tobytes() == here.totals.tobytes()
    assert there.marginals.cells.tobytes() == here.marginals.cells.tobytes()
    assert there.plan == here.plan, "where sums are kept decides no number"
    assert there.mcse == here.mcse or chains == 1
    assert there._means is not None
    assert not there._means.flags.writeable
    assert np.load(tmp_path / "sums" / "marginals.npy").tobytes() == here.marginals.cells.tobytes()
    assert np.load(tmp_path / "sums" / "sums.npy").tobytes() == here.totals.tobytes()
    assert sorted(file.name for file in (tmp_path / "sums").iterdir()) == ["marginals.npy", "sums.npy"]
    there.save(tmp_path / "run.npz")
    again = gs.load(tmp_path / "run.npz")
    assert again.marginals.cells.tobytes() == here.marginals.cells.tobytes()
    assert again.totals.tobytes() == here.totals.tobytes()


def test_results_stay_as_they_are(tmp_path: Path) -> None:
    model, to = gs.ising_grid((6, 6), coupling=0.3), gs.Marginals(to=tmp_path)
    first = gs.sample(model, record=to, sweeps=20, **HOW)
    cells = first.marginals.cells.tobytes()
    second = gs.sample(model, record=to, sweeps=40, **HOW)
    assert first.marginals.cells.tobytes() == cells != second.marginals.cells.tobytes()


@pytest.mark.parametrize("name", ["stored", "chromatic grid", "labels"])
@pytest.mark.parametrize("sites", [None, ["2", "0"]])
def test_resumed(name: str, sites: Any, tmp_path: Path) -> None:
    model = MODELS[name](tmp_path)
    if name == "labels" and sites:
        sites = ["c", "a"]

    def record(folder: str) -> gs.Marginals:
        return gs.Marginals(sites=sites, to=tmp_path / folder)

    whole = gs.sample(model, record=record("one"), sweeps=60, chains=2, **HOW)
    path = tmp_path / "run.chk"
    gs.sample(model, record=record("two"), sweeps=25, chains=2, checkpoint=path, **HOW)
    again = gs.sample(
        model, record=record("three"), sweeps=60, chains=2, checkpoint=gs.Checkpoint(path, resume=True), **HOW
    )
    assert again.totals.tobytes() == whole.totals.tobytes()
    assert again.marginals == whole.marginals


@pytest.mark.parametrize("name", MODELS)
def test_chosen_sites(name: str, tmp_path: Path) -> None:
    model = MODELS[name](tmp_path)
    sites = ["d", "b"] if name == "labels" else ["7", "3", "50"]
    how = {**HOW, "sweeps": 2000, "chains": 3}
    everything = gs.sample(model, record=gs.Marginals(rao_blackwell=False), **how)
    some = gs.sample(model, record=gs.Marginals(sites=sites), **how)
    assert list(some.marginals) == sites
    for site in sites:
        for state, p in everything.marginals[site].items():
            assert some.marginals[site][state] == pytest.approx(p, abs=1e-12)
            assert some.mcse[site][state] == pytest.approx(everything.mcse[site][state], rel=0.5)
            assert some.joint(site).sum() == pytest.approx(1.0)
    assert some.totals.shape[1] == sum(len(some.marginals[site]) for site in sites)
    assert some.diagnostics.converged
    assert "dispersed-start" in some.diagnostics.line()
    some.save(tmp_path / "run.npz")
    again = gs.load(tmp_path / "run.npz")
    assert again.marginals == some.marginals
    assert len(some.to_dataframe()) == some.totals.shape[1]
    assert some.summary()
    with pytest.raises(KeyError, match="nobody"):
        some.marginals["nobody"]


def test_memory_of_chosen_sites(tmp_path: Path) -> None:
    """A tape of two sites of a million has a few numbers, besides the states."""
    ring = np.arange(10**6)
    model = gs.formats.store_edges([(ring, (ring + 1) % ring.size, 0.1)], tmp_path / "ring", sites=ring.size)
    graph = gs.graphs.compile_graph(model)
    from gibbsite.sampling.record import lay_out

    tape = lay_out(model, graph, gs.Gibbs(), gs.Marginals(sites=["5", "999999"])).empty_tape(graph)
    assert sum(part.nbytes for part in tape if isinstance(part, np.ndarray)) < 20_000
    result = gs.sample(
        model,
        record=gs.Marginals(sites=["5", "999999"]),
        sweeps=20,
        criteria=gs.Criteria(dispersed_starts=False),
        **HOW,
    )
    assert result.totals.shape == (4, 4)


def test_histogram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.results.table._PIECE", 7)  # several pieces
    model = gs.ising_grid((12, 12), coupling=0.3, field=0.1)
    result = gs.sample(
        model, record=gs.Marginals(to=tmp_path), sweeps=50, criteria=gs.Criteria(dispersed_starts=False), **HOW
    )
    up = result.marginals.to_array()[:, 1]
    counts, edges = result.marginals.histogram(bins=13)
    expected = np.histogram(up, 13, (0.0, 1.0))
    assert (counts == expected[0]).all()
    assert (edges == expected[1]).all()
    down = result.marginals.histogram(13, state=-1, within=(0.2, 0.6))[0]
    assert (down == np.histogram(1.0 - up, 13, (0.2, 0.6))[0]).all()
    table = gs.solve_exact(mixed()).marginals
    told = np.histogram([table[site]["yes"] for site in ("a", "c")], 5, (0.0, 1.0))[0]
    assert (table.histogram(5, state="yes")[0] == told).all()
    last = np.histogram([list(table[site].values())[-1] for site in "abcd"], 5, (0.0, 1.0))[0]
    assert (table.histogram(5)[0] == last).all()
    with pytest.raises(gs.errors.ArgumentError, match="No site has the state 'perhaps'"):
        table.histogram(state="perhaps")
    with pytest.raises(gs.errors.ArgumentError, match="bins must be a whole number of at least 1"):
        table.histogram(0)


def test_bad_arguments(tmp_path: Path) -> None:
    model, short = gs.ising_grid((3, 3)), {**HOW, "sweeps": 5}
    (tmp_path / "file").write_text("")
    for record, said in (
        (gs.Marginals(sites=[]), "names no site"),
        (gs.Marginals(sites="3"), "Marginals takes a list of sites"),
        (gs.Marginals(sites=["3", "3"]), "must name each site once"),
        (gs.Marginals(sites=["3"], rao_blackwell=True), "counted from draws"),
        (gs.Marginals(to=5), "must be the path of a folder"),  # type: ignore[arg-type]
    ):
        with pytest.raises(gs.errors.ArgumentError, match=said):
            gs.sample(model, record=record, **short)
    with pytest.raises(gs.errors.FormatError, match="Cannot write to"):
        gs.sample(model, record=gs.Marginals(to=tmp_path / "file"), **short)
    normal = gs.Gaussian([1.0], [[4.0]], names=["x"])
    for record in (gs.Marginals(sites=["x"]), gs.Marginals(to=tmp_path)):
        with pytest.raises(gs.errors.IncompatibleError, match="some sites are numbers"):
            gs.sample(normal, record=record, **short)


_FULL = """
import resource, sys
import gibbsite as gs
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
model = gs.ising_grid((80, 80))
try:
    gs.sample(model, record=gs.Marginals(to=sys.argv[1]), sweeps=5, progress=False)
except gs.GibbsiteError as wrong:
    print(type(wrong).__name__, wrong)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="limits of files are those of POSIX")
def test_a_full_disk_is_reported_at_once(tmp_path: Path) -> None:
    """Where there is no room for sums, nothing is begun: a page without a place would end the process."""
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "sums")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"FormatError Cannot write to {tmp_path / 'sums'}: File too large")
    assert not list((tmp_path / "sums").iterdir())
