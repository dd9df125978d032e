"""Blocks against brute force: transition matrices, marginals, tiny probabilities, and mistakes that show."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.graphs.graph import KINDS, Graph, seal
from gibbsite.inference.exact.transition import unit_matrix
from gibbsite.kernels.base import units_of
from gibbsite.kernels.blocks.plan import BlockPlan
from gibbsite.testing import check_kernel, tiny_models

EXAMPLES = Path(gs.__file__).parent / "formats" / "networks"
MODELS = tiny_models()
KINDS_OF = [
    (name, kind)
    for name, model in MODELS.items()
    for kind in KINDS
    if kind in ("table", gs.graphs.compile_graph(model).kind)
]


def graph_of(model: gs.FactorGraph, kernel: gs.BlockGibbs, kind: str | None = None) -> Graph:
    graph = gs.graphs.compile_graph(model, kind)
    return replace(graph, units=units_of(kernel, graph))


def block_matrix(exact: gs.exact.Enumeration, block: list[int]) -> NDArray[np.float64]:
    """Transition matrix of drawing a block jointly given the rest, by enumeration."""
    states, law = exact.states, exact.probabilities
    rest = [i for i in range(states.shape[1]) if i not in block]
    key = np.unique(states[:, rest], axis=0, return_inverse=True)[1].ravel()
    matrix = (key[:, None] == key[None, :]) * law[None, :]
    total = matrix.sum(axis=1, keepdims=True)
    matrix = np.where(total > 0, matrix / np.where(total > 0, total, 1.0), np.eye(len(law)))
    matrix[law == 0] = np.eye(len(law))[law == 0]  # never visited
    return np.asarray(matrix)


@pytest.mark.parametrize(("name", "kind"), KINDS_OF)
def test_matrices_of_blocks_are_those_of_enumeration(name: str, kind: str) -> None:
    model = MODELS[name]
    n = model.n_sites
    blocks = [[0, n - 1], list(range(1, n)), [0], list(range(n))]
    kernel = gs.BlockGibbs(blocks)
    exact, graph = gs.exact.enumerate(model), graph_of(model, kernel, kind)
    for unit, block in enumerate(blocks):
        found = unit_matrix(exact, graph, kernel, unit)
        assert np.abs(found - block_matrix(exact, block)).max() < 1e-12
    # a block of all sites is an independent draw
    possible = exact.probabilities > 0
    assert np.abs(found[possible] - exact.probabilities).max() < 1e-12


@pytest.mark.parametrize(
    "blocks", ["zeros", *(pytest.param(b, marks=pytest.mark.campaign) for b in ("width", "trees", "auto"))]
)
def test_found_blocks_stay_in_law_with_every_scan(blocks: str) -> None:
    kernel = gs.BlockGibbs(blocks, entries=4, covers=1 if blocks == "zeros" else 2)
    report = check_kernel(kernel, kinds=["table"])
    assert len(report.checks) > 100
    assert report.passed, str(report)


@pytest.mark.parametrize("model", [MODELS["tables"], MODELS["glass"], MODELS["grid"]], ids=str)
def test_blocks_of_one_site_are_gibbs_bit_by_bit(model: gs.FactorGraph) -> None:
    single = gs.BlockGibbs([[i] for i in range(model.n_sites)])
    how: dict[str, Any] = {"sweeps": 300, "rng": 5, "progress": False, "record": ["marginals", "draws"]}
    ours, plain = gs.sample(model, single, **how), gs.sample(model, gs.Gibbs(), **how)
    assert ours.totals.tobytes() == plain.totals.tobytes()
    assert ours.draws_dataframe().equals(plain.draws_dataframe())


# ---- mistakes


class _Mistaken(gs.BlockGibbs):
    """Blocks whose tables have been tampered with."""

    def plan(self, graph: Graph) -> BlockPlan:
        right = super().plan(graph)
        tables = type(right.tables)(*(part.copy() for part in right.tables))
        if self.seed == 1:  # backward: columns are looked up at the wrong states of the separator
            tables.axis_stride[:] = 0
        elif self.seed == 2:  # forward: a message is left out
            tables.stride[:] = 0
        elif self.seed == 3:  # forward: the states outside the block are not looked at
            tables.rim_stride[:] = 0
        return replace(right, tables=seal(tables))


@pytest.mark.parametrize("mistake", [1, 2, 3])
def test_mistakes_in_tables_are_caught(mistake: int) -> None:
    model = gs.FactorGraph(
        dict.fromkeys("abcd", 2),
        [
            (("a", "b", "c"), np.arange(1.0, 9.0).reshape(2, 2, 2)),
            (("c", "d"), [[3, 1], [1, 2]]),
            (("d", "a"), [[1, 4], [2, 1]]),
        ],
    )
    blocks = [["a", "b", "c"], ["b", "c", "d"], ["d", "a"]]
    for kernel, right in ((gs.BlockGibbs(blocks), True), (_Mistaken(blocks, seed=mistake), False)):
        report = check_kernel(kernel, models={"m": model}, kinds=["table"], scans_of=lambda n: [gs.Systematic()])
        assert report.passed is right
        if not right:
            assert {"invariance", "law"} <= report.failed


# ---- numbers


def test_nothing_underflows() -> None:
    """A chain of 300 sites whose weights leave the range of floats, with zeros that force the unlikely."""
    n = 300
    steep = np.exp(-np.array([[0.0, 600.0], [600.0, 0.0]]))
    factors: list[Any] = [((f"s{i}", f"s{i + 1}"), steep) for i in range(n - 1)]
    factors += [((f"s{i}",), [1.0, np.exp(-400.0 * (i % 3 - 1))]) for i in range(n)]
    factors += [(("s0",), [0.0, 1.0]), ((f"s{n - 1}",), [1.0, 0.0])]
    model = gs.FactorGraph({f"s{i}": 2 for i in range(n)}, factors)
    exact = gs.solve_exact(model)
    result = gs.sample(model, gs.BlockGibbs([list(range(n))]), sweeps=4, warmup=0, rng=1, progress=False)
    for site in model.sites:
        assert result.marginals[site][1] == pytest.approx(exact.marginals[site][1], abs=1e-6)


@pytest.mark.parametrize("name", ["alarm", "child", "asia"])
def test_a_block_of_all_sites_is_exact(name: str) -> None:
    model = gs.read_model(EXAMPLES / f"{name}.bif")
    exact = gs.solve_exact(model).marginals
    result = gs.sample(model, gs.BlockGibbs(), sweeps=4, warmup=0, rng=1, progress=False)
    assert result.diagnostics.converged
    assert result.diagnostics.dispersed_starts == "independent"
    gap = max(abs(p - exact[s][k]) for s in model.sites for k, p in result.marginals[s].items())
    assert gap < 1e-6  # means are kept in 32 bits


def test_random_covers_are_reproducible_and_differ() -> None:
    model = gs.ising_grid((8, 8), coupling=1.0)
    graph = gs.graphs.compile_graph(model)

    def sites(seed: int) -> list[list[int]]:
        return [b.tolist() for b in gs.BlockGibbs("width", entries=16, covers=3, seed=seed).plan(graph).blocks]

    assert sites(1) == sites(1)
    assert sites(1) != sites(2)
    seen = np.zeros(64, int)
    for block in sites(1):
        seen[block] += 1
    assert seen.min() >= 3  # once in every cover, at least


def test_widths_are_kept_and_trees_are_forests() -> None:
    model = gs.ising_grid((12, 12), coupling=1.0)
    graph = gs.graphs.compile_graph(model)
    for entries in (4, 16, 256):
        plan = gs.BlockGibbs("width", entries=entries).plan(graph)
        assert 2.0**plan.log2_largest <= entries
    assert gs.BlockGibbs("trees").plan(gs.graphs.compile_graph(model, "table")).log2_largest <= 2.0


def test_memory_is_predicted() -> None:
    model = gs.ising_grid((12, 12), coupling=1.0)
    kernel = gs.BlockGibbs("width", entries=256)
    graph = graph_of(model, kernel, "table")
    memory = kernel.memory(graph, np.zeros(4, np.uint64))
    used = sum(part.nbytes for part in (*memory.block, *memory.site))
    assert kernel.memory_bytes(graph) == pytest.approx(used, rel=0.1)


# ---- verdicts


def equal_sites(n: int) -> gs.FactorGraph:
    """All sites are equal: single sites cannot move."""
    factors: list[Any] = [((f"s{i}", f"s{i + 1}"), [[1.0, 0.0], [0.0, 1.0]]) for i in range(n - 1)]
    return gs.FactorGraph({f"s{i}": 2 for i in range(n)}, [*factors, (("s0",), [1.0, 3.0])])


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_blocks_cross_zeros_that_single_sites_do_not() -> None:
    model = equal_sites(6)
    assert not gs.sample(model, gs.Gibbs(), sweeps=500, rng=1, progress=False).diagnostics.converged
    crossing = gs.sample(model, gs.BlockGibbs([[0, 1, 2, 3, 4, 5], [3]]), sweeps=2000, rng=1, progress=False)
    assert crossing.diagnostics.converged
    assert crossing.marginals["s3"][1] == pytest.approx(0.75, abs=0.02)
    found = gs.sample(model, gs.BlockGibbs("zeros", entries=8), sweeps=500, rng=1, progress=False)
    assert found.diagnostics.converged
    # blocks that cannot cross either
    cut = gs.sample(model, gs.BlockGibbs([[0, 1, 2], [3, 4, 5]]), sweeps=500, rng=1, progress=False)
    assert not cut.diagnostics.converged


def test_an_order_of_blocks_is_certified_and_sampled() -> None:
    model = gs.ising_grid((4, 4), coupling=0.15, field=0.1)
    columns = gs.influence.BlockOrder([[c, c + 4, c + 8, c + 12] for c in range(4)])
    order = gs.dogs(model, target="5", initial=gs.influence.BlockOrder(columns.blocks, [0, 1, 2, 3] * 2), accuracy=0.05)
    exact = gs.solve_exact(model).marginals["5"][1]
    found = gs.influence.short_runs(model, scan=order, target="5", runs=4000, rng=2, confidence=1 - 1e-6)
    assert found.low["5"][1] <= exact <= found.high["5"][1]
    assert found.bias["5"] <= order.variation + 1e-12
    result = gs.sample(model, scan=columns, sweeps=500, rng=1, progress=False)
    assert result.plan.kernel["name"] == "BlockGibbs"
    assert abs(result.marginals["5"][1] - exact) < 6 * result.mcse["5"][1]


# ---- runs


def test_runs_are_the_same_on_threads_and_after_a_checkpoint(tmp_path: Path) -> None:
    model = gs.potts_grid((6, 6), 3, coupling=0.8)
    kernel = gs.BlockGibbs("width", entries=27)
    how: dict[str, Any] = {"rng": 3, "progress": False, "warmup": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        whole = gs.sample(model, kernel, sweeps=60, threads=1, criteria=gs.Criteria(dispersed_starts=False), **how)
        two = gs.sample(model, kernel, sweeps=60, threads=2, criteria=gs.Criteria(dispersed_starts=False), **how)
        path = tmp_path / "run.ckpt"
        gs.sample(model, kernel, sweeps=25, checkpoint=path, criteria=gs.Criteria(dispersed_starts=False), **how)
        resumed = gs.sample(
            model,
            kernel,
            sweeps=60,
            criteria=gs.Criteria(dispersed_starts=False),
            checkpoint=gs.Checkpoint(path, resume=True),
            **how,
        )
    assert whole.totals.tobytes() == two.totals.tobytes() == resumed.totals.tobytes()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"blocks": "tree"}, "Blocks 'tree' is unknown"),
    ({"blocks": 3}, "must be lists of sites"),
    ({"blocks": ["ab"]}, "block 0 must be a list of sites"),
    ({"blocks": [["a", "x"]]}, "x"),
    ({"blocks": [["a", "a"], ["b", "c"]]}, "names a site twice"),
    ({"blocks": [["a", "b"]]}, "1 sites are in no block, 'c' among them"),
    ({"blocks": [["a", "seen"], ["b", "c"]]}, "'seen', which is observed"),
    ({"covers": 0}, "covers must be a number of at least 1"),
    ({"entries": 2}, "entries must be at least 4"),
    ({"entries": "many"}, "entries must be a whole number"),
]


@pytest.mark.parametrize(("how", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_blocks_are_refused_in_a_line(how: dict[str, Any], message: str) -> None:
    model = gs.FactorGraph(dict.fromkeys(["a", "b", "c", "seen"], 2), [(("a", "seen"), [[1, 2], [3, 1]])])
    model = model.observe({"seen": 1})
    with pytest.raises(gs.GibbsiteError, match=message) as raised:
        gs.sample(model, gs.BlockGibbs(**how), sweeps=1, progress=False)
    assert "\n" not in str(raised.value)


def test_blocks_too_wide_for_memory_are_refused_before_anything_is_allocated() -> None:
    model = gs.ising_grid((40, 40), coupling=0.3)
    with pytest.raises(gs.errors.TooLargeError, match=r"block 0 has 1600 sites.*entries in all"):
        gs.sample(model, gs.BlockGibbs([list(range(1600))]), sweeps=1, progress=False)


def test_numbers_and_colors_are_refused() -> None:
    numbers = gs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(gs.errors.IncompatibleError, match="cannot run on a gaussian graph"):
        gs.sample(numbers, gs.BlockGibbs([[0, 1]]), sweeps=1, progress=False)
    with pytest.raises(gs.errors.IncompatibleError, match="colors single sites"):
        gs.sample(equal_sites(3), gs.BlockGibbs(), scan=gs.Chromatic(), sweeps=1, progress=False)
    with pytest.raises(gs.errors.ArgumentError, match="numbers of blocks"):
        gs.sample(equal_sites(3), gs.BlockGibbs(), scan=gs.scans.FixedOrder(["s0"]), sweeps=1, progress=False)
