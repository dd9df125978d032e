"""Quasi-Monte Carlo Gibbs: the conditional of Gibbs, exactly; whole periods only; same bytes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import load, stream
from gibbsite.graphs.graph import KINDS
from gibbsite.kernels.base import step, transition
from gibbsite.sampling import executor
from gibbsite.testing import tiny_models
from tests.proofs.test_twins import compiled_run

PAIR = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 2], [2, 13]])])
MIXED = tiny_models()["mixed"]


def sample(model: gs.FactorGraph, kernel: gs.kernels.Kernel | None = None, **more: Any) -> gs.Result:
    return gs.sample(model, kernel or gs.kernels.QuasiGibbs(), **{"rng": 1, "progress": False, **more})


# ---- the step


@compiled
def move(kernel: Any, graph: Any, memory: Any, x: Any, i: Any, words: Any, cond: Any) -> None:
    step(kernel, graph, memory, x, i, load(words), cond, True)


@compiled
def row_of(kernel: Any, graph: Any, memory: Any, x: Any, i: Any, row: Any) -> int:
    return transition(kernel, graph, memory, x, i, row)


def words_below(state: int, kernel: Any, graph: gs.graphs.Graph, memory: Any, codes: Any, site: int) -> int:
    """How many shifts lead the site to ``state`` or a lower one: the state grows with the shift."""
    cond, rng = np.zeros(graph.n_cells), stream(1, 0)
    low, high = 0, 2**32
    while low < high:
        word = (low + high) // 2
        x = codes.astype(graph.state_dtype)
        memory.reader.place[:] = 0, 0  # the row of zeros: the shift itself is the number
        memory.reader.word[0], memory.reader.shift[0] = 0, word
        move(kernel, graph.arrays, memory, x, np.uintp(site), rng, cond)
        low, high = (word + 1, high) if x[site] <= state else (low, word)
    return low


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_gets_its_share_of_all_words(kind: str) -> None:
    """Of the 2^32 words a uniform shift can bring, as many lead to a state as its conditional says.

    With this, a sweep from a state that does not depend on the shift has the law of a Gibbs sweep, up to
    rounding to 32 bits.
    """
    kernel, gibbs, checked = gs.kernels.QuasiGibbs(m=8), gs.Gibbs(), 0
    for model in tiny_models().values():
        try:
            graph = gs.graphs.compile_graph(model, kind)
        except gs.errors.IncompatibleError:
            continue
        parameters, memory = kernel.parameters(graph), kernel.memory(graph, stream(1, 0))
        for codes in gs.exact.enumerate(model).draw(5, np.random.default_rng(3)):
            for i in range(graph.n_sites):
                rows = []
                for k in (kernel, gibbs):
                    row, x = np.zeros(int(graph.cards.max())), codes.astype(graph.state_dtype)
                    own = k.memory(graph, stream(1, 0))
                    size = row_of(k.parameters(graph), graph.arrays, own, x, np.uintp(i), row)
                    rows.append(row[:size])
                assert rows[0].tolist() == rows[1].tolist()
                ends = [words_below(a, parameters, graph, memory, codes, i) for a in range(size)]
                shares = np.diff([0, *ends]) / 2**32
                assert ends[-1] == 2**32
                assert np.abs(shares - rows[0]).max() <= 2.0**-31
                assert (shares[rows[0] == 0.0] == 0.0).all()
                checked += 1
    assert checked >= 15


def test_all_kinds_make_the_same_moves() -> None:
    """The same states in the same order below the same numbers, whatever the graph is stored as."""
    found = {}
    for kind in KINDS:
        try:
            graph = gs.graphs.compile_graph(tiny_models()["grid"], kind)
        except gs.errors.IncompatibleError:
            continue
        start = np.zeros(graph.n_sites, int)
        state, _ = compiled_run(
            tiny_models()["grid"], graph, gs.kernels.QuasiGibbs(m=8), gs.Systematic(), start, stream(5, 0), 301
        )
        found[kind] = state.x.tolist()
    assert {"lattice", "ising", "pairwise", "table"} <= set(found)
    assert all(x == found["lattice"] for x in found.values())


def test_chains_have_shifts_of_their_own_and_leave_the_generator_alone() -> None:
    graph = gs.graphs.compile_graph(MIXED)
    kernel = gs.kernels.QuasiGibbs(m=8)
    shifts = [kernel.memory(graph, stream(seed, chain)).reader.shift for seed in (1, 2) for chain in (0, 1)]
    assert np.unique(np.concatenate(shifts)).size == 4 * graph.n_sites
    assert shifts[0].tolist() == kernel.memory(graph, stream(1, 0)).reader.shift.tolist()
    memory = kernel.memory(graph, stream(1, 0))
    size = memory.work.nbytes + sum(part.nbytes for part in memory.reader)
    assert kernel.memory_bytes(graph) == size
    start = gs.exact.enumerate(MIXED).draw(1, np.random.default_rng(1))[0]
    state, _ = compiled_run(MIXED, graph, kernel, gs.Systematic(), start, stream(1, 0), 10)
    assert state.rng.tolist() == stream(1, 0).tolist()


# ---- whole periods


@pytest.mark.parametrize(
    ("kernel", "given", "m", "visits", "draws"),
    [
        (gs.kernels.QuasiGibbs(), {}, 10, 2, 1024),
        (gs.kernels.QuasiGibbs(m=8), {}, 8, 2, 256),
        (gs.kernels.QuasiGibbs(m=5, table="chen"), {}, 5, 2, 32),
        (gs.kernels.QuasiGibbs(), {"sweeps": 512}, 9, 2, 512),
        (gs.kernels.QuasiGibbs(table="chen"), {"sweeps": 8}, 3, 2, 8),
        (gs.kernels.QuasiGibbs(m=9), {"sweeps": gs.Steps(1024)}, 9, 2, 512),
        (gs.kernels.QuasiGibbs(), {"seconds": 60}, 10, 2, 1024),
        (gs.kernels.QuasiGibbs(), {"scan": gs.Chromatic(), "sweeps": 256}, 8, 2, 256),
        (gs.kernels.QuasiGibbs(m=8), {"scan": gs.scans.Palindromic()}, 8, 4, 512),
        (gs.kernels.QuasiGibbs(), {"scan": gs.scans.Palindromic(), "sweeps": 512}, 8, 4, 512),
        (gs.kernels.QuasiGibbs(), {"scan": gs.scans.Palindromic(), "sweeps": gs.Sweeps(512, thin=2)}, 8, 4, 256),
        (gs.kernels.QuasiGibbs(m=8), {"scan": gs.scans.FixedOrder(["a", "b", "b", "b"])}, 8, 4, 512),
        (gs.kernels.QuasiGibbs(m=8), {"scan": gs.Systematic(order=["b", "a"]), "warmup": 1000}, 8, 2, 256),
    ],
)
def test_a_run_is_a_whole_period(
    kernel: gs.kernels.QuasiGibbs, given: dict[str, Any], m: int, visits: int, draws: int
) -> None:
    result = sample(PAIR, kernel, **given)
    plan = {"name": "QuasiGibbs", "m": m, "table": kernel.table, "visits": visits}
    assert result.plan.kernel == plan
    assert result.n_draws == result._period == draws
    assert not any("period" in reason for reason in result.diagnostics.reasons)


@pytest.mark.parametrize(
    ("kernel", "given", "words"),
    [
        (gs.kernels.QuasiGibbs(), {"sweeps": 1000}, ["sweeps=1000", "sweeps=512 (m = 9) or sweeps=1024 (m = 10)"]),
        (gs.kernels.QuasiGibbs(), {"sweeps": 1}, ["sweeps=1 ", "take sweeps=256 (m = 8)."]),
        (gs.kernels.QuasiGibbs(), {"sweeps": 2**33}, ["take sweeps=4294967296 (m = 32)."]),
        (gs.kernels.QuasiGibbs(m=10), {"sweeps": 512}, ["sweeps=512", "take sweeps=1024 (m = 10)."]),
        (gs.kernels.QuasiGibbs(), {"sweeps": gs.Steps(2049)}, ["sweeps=1024.5", "sweeps=1024 (m = 10)"]),
        (gs.kernels.QuasiGibbs(), {"scan": gs.scans.Palindromic(), "sweeps": 256}, ["take sweeps=512 (m = 8)."]),
        (gs.kernels.QuasiGibbs(), {"scan": gs.RandomScan()}, ["RandomScan", "fixed order", "gs.Systematic()"]),
        (gs.kernels.QuasiGibbs(), {"scan": gs.scans.Shuffled()}, ["Shuffled", "fixed order", "gs.Systematic()"]),
        (
            gs.kernels.QuasiGibbs(),
            {"scan": gs.scans.FixedOrder([0, 1, 0])},
            ["FixedOrder", "3 visits", "2 visits apart"],
        ),
        (gs.kernels.QuasiGibbs(), {"sweeps": gs.Sweeps(thin=2)}, ["Systematic", "4 visits apart", "thin=1"]),
        (gs.kernels.QuasiGibbs(m=7), {}, ["m = 7", "8 to 32"]),
        (gs.kernels.QuasiGibbs(table="sobol"), {}, ["'sobol'", "harase, chen"]),
    ],
)
def test_anything_else_is_refused(kernel: gs.kernels.QuasiGibbs, given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(gs.GibbsiteError) as error:
        sample(PAIR, kernel, **given)
    for word in words:
        assert word in str(error.value)


def test_more_columns_than_numbers_are_refused() -> None:
    with pytest.raises(gs.errors.ModelError, match=r"1,024 numbers.*period 1,023.*m = 11"):
        sample(gs.ising_grid((32, 32), coupling=0.1), sweeps=1024)


def test_a_run_that_was_cut_short_says_so() -> None:
    result = sample(PAIR, gs.kernels.QuasiGibbs(m=20), seconds=1e-6)
    assert result.n_draws < result._period == 2**20
    assert not result.diagnostics.converged
    said = f"over 1,048,576 draws, and {result.n_draws:,} were made"
    assert any(said in reason and "no gain" in reason for reason in result.diagnostics.reasons)


def test_an_accuracy_asked_for_does_not_end_a_period_early() -> None:
    result = sample(PAIR, sweeps=1024, criteria=gs.Criteria(accuracy=0.99))
    assert result.n_draws == 1024
    assert result.diagnostics.converged


def test_models_without_free_sites() -> None:
    result = sample(PAIR.observe({"a": 0, "b": 0}), chains=1)
    assert result.diagnostics.converged
    assert result.marginals["a"] == {0: 1.0, 1: 0.0}


# ---- what it gains


@pytest.mark.parametrize("table", ["harase", "chen"])
def test_two_variables_are_known_better_than_by_gibbs(table: str) -> None:
    """L1 errors of the joint law over 100 chains, P(0, 1) = P(1, 0) = 0.1 and both P(1) = 3/4.

    Root mean squares differ by a factor of 4.3 or more in truth. If errors were normal in one dimension
    (there are three), their ratio would scatter as F(100, 100) does: below (2 / 4.3)^2 with probability
    1e-13.
    """
    m = 12
    law = np.array([0.15, 0.1, 0.1, 0.65])
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), law.reshape(2, 2))])
    squares = []
    for kernel in (gs.Gibbs(), gs.kernels.QuasiGibbs(m, table)):
        result = sample(model, kernel, sweeps=2**m, chains=100, record=gs.recorders.Joint([("a", "b")]))
        squares.append(np.mean(np.abs(result.totals[:, result._n_marginal :] / result.n_draws - law).sum(axis=1) ** 2))
    assert squares[0] > 2.0**2 * squares[1]


# ---- the same bytes again


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("scan", [gs.Systematic(), gs.scans.Palindromic()], ids=str)
def test_a_killed_and_resumed_run_gives_the_same_bytes(
    scan: gs.scans.Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor.Threads, "block_seconds", 0.0)  # one sweep per block
    settings: dict[str, Any] = {"scan": scan, "warmup": 3, "chains": 2, "threads": 1}
    settings["record"] = ["marginals", "draws"]
    kernel = gs.kernels.QuasiGibbs(m=8)
    place, whole, parts = tmp_path / "run.ckpt", tmp_path / "whole.npz", tmp_path / "parts.npz"
    sample(MIXED, kernel, **settings).save(whole)
    for blocks in (2, 10, 100):
        seen = 0

        def count(status: Any, last: int = blocks) -> None:
            nonlocal seen
            seen += 1
            if seen > last:
                raise Killed

        more = {"checkpoint": gs.Checkpoint(place, every=0.0, resume=True), "progress": count}
        with pytest.raises(Killed):
            sample(MIXED, kernel, **settings, **more)
    sample(MIXED, kernel, **settings, checkpoint=gs.Checkpoint(place, resume=True)).save(parts)
    assert whole.read_bytes() == parts.read_bytes()


def test_seeds_decide_and_threads_do_not(tmp_path: Path) -> None:
    saved = []
    for rng, threads in ((1, 1), (1, 2), (2, 2)):
        sample(MIXED, sweeps=256, rng=rng, threads=threads).save(tmp_path / "r.npz")
        saved.append((tmp_path / "r.npz").read_bytes())
    assert saved[0] == saved[1] != saved[2]


def test_a_checkpoint_of_another_period_is_refused(tmp_path: Path) -> None:
    sample(PAIR, sweeps=256, checkpoint=tmp_path / "c")
    with pytest.raises(gs.errors.CheckpointError, match="kernel"):
        sample(PAIR, sweeps=512, checkpoint=gs.Checkpoint(tmp_path / "c", resume=True))
