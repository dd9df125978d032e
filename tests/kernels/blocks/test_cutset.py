"""Cutset sampling: conditionals with everything else summed out, kept messages, and answers of runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.jit import implement
from gibbsite.graphs.support.start import find_start
from gibbsite.inference.exact import enumerate_states
from gibbsite.kernels.base import step
from gibbsite.kernels.blocks.cutset import CutsetParameters, ask_collapse
from gibbsite.kernels.blocks.messages import CHANCE, DRAW, MARGINALS, WEIGH
from gibbsite.testing import check_kernel
from tests.data import HERE

pytestmark = pytest.mark.long

GRID = gs.ising_grid((3, 3), coupling=0.5, field=np.linspace(-0.4, 0.6, 9).reshape(3, 3))


def random_model(seed: int, spread: float = 1.5, zeros: float = 0.0) -> gs.FactorGraph:
    """Make a connected model of seven sites of two or three states, with factors of two or three of them."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 7)
    names = [f"v{i}" for i in range(7)]
    scopes = [rng.choice(7, rng.integers(2, 4), replace=False) for _ in range(8)]
    scopes += [np.array([i, (i + 1) % 7]) for i in range(7)]
    possible = [int(rng.integers(card)) for card in cards]
    factors = []
    for scope in scopes:
        table = np.exp(spread * rng.normal(size=cards[scope]))
        table[rng.random(table.shape) < zeros] = 0.0
        table[tuple(possible[i] for i in scope)] = 1.0  # one state is possible at least
        factors.append(([names[i] for i in scope], table))
    return gs.FactorGraph({name: int(card) for name, card in zip(names, cards, strict=True)}, factors)


# log-potentials of hundreds: products and messages leave the range of floating-point numbers
MODELS = {
    "plain": random_model(1),
    "zeros": random_model(2, zeros=0.3),
    "logarithms": random_model(3, spread=150.0),
    "logarithms and zeros": random_model(4, spread=250.0, zeros=0.2),
    "grid": GRID,
}


def start(model: gs.FactorGraph, kernel: gs.CutsetGibbs) -> tuple[Any, Any, Any, Any]:
    graph = gs.graphs.compile_graph(model)
    memory = kernel.memory(graph, np.zeros(4, np.uint64))
    memory.words[:] = [1, 2, 3, 4]
    return graph, kernel.parameters(graph), memory, kernel.plan(graph)


@pytest.mark.parametrize("width", [1, 2, 3.5])
@pytest.mark.parametrize("name", MODELS)
def test_conditionals_are_those_with_everything_else_summed_out(name: str, width: float) -> None:
    model, kernel = MODELS[name], gs.CutsetGibbs(width)
    exact = enumerate_states(model)
    graph, parameters, memory, plan = start(model, kernel)
    possible = np.flatnonzero(exact.probabilities > 1e-290)
    rng = np.random.default_rng(5)
    for number in rng.choice(possible, 12):
        x = exact.states[number].astype(graph.state_dtype)
        first = 0
        for u, cutset in enumerate(plan.cutsets):
            for j, site in enumerate(cutset.tolist()):
                ask_collapse(parameters, memory, x, WEIGH, u, first + j)
                # the law of the cutset, then of one of its sites
                kept = tuple(sorted(cutset.tolist()))
                law = exact.law.sum(axis=tuple(k for k in range(len(graph.cards)) if k not in kept))
                row = law[tuple(slice(None) if i == site else int(x[i]) for i in kept)]
                found = memory.chance[: row.size]
                assert memory.what[3] == 1
                np.testing.assert_allclose(found, row / row.sum(), rtol=1e-9, atol=1e-13)
            first += cutset.size
            ask_collapse(parameters, memory, x, CHANCE, u, 0)
            law = exact.law[tuple(int(x[i]) if i in cutset.tolist() else slice(None) for i in range(x.size))]
            np.testing.assert_allclose(memory.chance[0], exact.probabilities[number] / law.sum(), rtol=1e-8)


def test_logarithms_are_used_where_numbers_would_be_too_small() -> None:
    used = {}
    for name, model in MODELS.items():
        kernel = gs.CutsetGibbs(3.5)
        graph, parameters, memory, _ = start(model, kernel)
        x = enumerate_states(model).states[enumerate_states(model).probabilities.argmax()]
        for _ in range(5):
            x = x.astype(graph.state_dtype)
            ask_collapse(parameters, memory, x, MARGINALS, 0, 0)
        used[name] = bool(memory.logs.any())
    assert used == {name: name.startswith("logarithms") for name in MODELS}


@pytest.mark.parametrize("name", [*MODELS, "child"])
def test_kept_messages_are_those_computed_anew_bit_by_bit(name: str) -> None:
    model = gs.example("child") if name == "child" else MODELS[name]
    kernel = gs.CutsetGibbs(5 if name == "child" else 2, cutsets=2)
    graph, parameters, memory, plan = start(model, kernel)
    x = find_start(model, graph, np.random.default_rng(1)).astype(graph.state_dtype)
    moved = 0
    for sweep in range(8):
        if sweep > 4:  # a state set from outside
            x = find_start(model, graph, np.random.default_rng(sweep)).astype(graph.state_dtype)
        for u in range(len(plan.orders)):
            before = x.copy()
            ask_collapse(parameters, memory, x, DRAW if sweep % 3 else MARGINALS, u, 0)
            moved += int((before != x).any())
            fresh = kernel.memory(graph, np.zeros(4, np.uint64))
            for j in range(parameters.tree.start[u], parameters.tree.start[u + 1]):
                for one in (memory, fresh):
                    ask_collapse(parameters, one, x, WEIGH, u, j)
                size = graph.cards[parameters.tree.site[j]]  # what follows is of another site
                assert memory.chance[:size].tobytes() == fresh.chance[:size].tobytes()
            for one in (memory, fresh):
                ask_collapse(parameters, one, x, CHANCE, u, 0)
            tables = parameters.tree.tables
            for t in range(tables.start[u], tables.start[u + 1]):
                message = slice(parameters.tree.first[t], parameters.tree.first[t + 1])
                assert memory.pool[message].tobytes() == fresh.pool[message].tobytes()
                assert memory.scale[t] == fresh.scale[t]
    assert moved > 2


class Mistaken(NamedTuple):
    """A cutset kernel that makes a mistake."""

    right: CutsetParameters
    number: int


MISTAKES = ("stale messages", "lost scales", "rest not drawn")


@dataclass(frozen=True)
class Broken(gs.CutsetGibbs):
    """Cutset sampling with a mistake."""

    mistake: str = ""

    def parameters(self, graph: Any) -> Any:
        return Mistaken(super().parameters(graph), MISTAKES.index(self.mistake))


@implement(step, Mistaken)
def _mistaken(parameters, memory_arrays, memory, x, i, rng, cond, keep):
    work, tree = memory, parameters.right.tree
    if parameters.number == 0:  # messages are taken for those of the present state, whatever it is
        for j in range(work.seen.size):
            work.seen[j] = x[tree.site[j]]
    if parameters.number == 1:
        for s in range(work.scale.size):
            work.scale[s] = 0.0
    last = x[tree.tables.site[0]]
    rng = step(parameters.right, memory_arrays, memory, x, i, rng, cond, keep)
    if parameters.number == 2:
        x[tree.tables.site[0]] = last
    return rng


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str) -> None:
    options: dict[str, Any] = {"models": {"grid": gs.ising_grid((2, 3), coupling=0.7, field=0.3)}}
    options |= {"kinds": ["table"], "scans_of": lambda n: [gs.Systematic()]}
    assert check_kernel(gs.CutsetGibbs(2, cutsets=1), **options).passed
    assert "law" in check_kernel(Broken(2, cutsets=1, mistake=mistake), **options).failed


@pytest.mark.parametrize("width", [2, 4, 6.5])
def test_tables_have_no_more_entries_than_allowed(width: float) -> None:
    for model in (*MODELS.values(), gs.ising_grid((8, 8)), gs.example("alarm")):
        graph = gs.graphs.compile_graph(model)
        plan = gs.CutsetGibbs(width, cutsets=3).plan(graph)
        tables = plan.tree.tables
        entries = tables.separator * graph.cards[tables.site]
        alone = tables.separator == 1  # a site without neighbours has a table of its own size
        assert np.log2(entries[~alone]).max(initial=0) <= width + 1e-9
        for u, cutset in enumerate(plan.cutsets):
            rest = tables.site[tables.start[u] : tables.start[u + 1]]
            assert sorted([*cutset.tolist(), *rest.tolist()]) == list(range(graph.n_sites))


def test_an_empty_cutset_gives_exact_answers_at_once() -> None:
    model = gs.example("alarm")
    result = gs.sample(
        model, gs.CutsetGibbs(), sweeps=2, warmup=0, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
    )
    exact = gs.solve_exact(model).marginals
    for site, law in result.marginals.items():
        np.testing.assert_allclose(list(law.values()), list(exact[site].values()), atol=1e-12)


@pytest.mark.parametrize(("name", "width"), [("asia", 2), ("child", 5), ("alarm", 4)])
@pytest.mark.parametrize("law", [pytest.param("prior", marks=pytest.mark.campaign), "posterior"])
def test_marginals_of_published_networks(name: str, width: float, law: str) -> None:
    known = json.loads((HERE / f"{name}.json").read_text())
    model = gs.example(name)
    if law == "posterior":
        model = model.observe(known["evidence"])
    graph, kernel = gs.graphs.compile_graph(model), gs.CutsetGibbs(width)
    assert len(kernel.plan(graph).cutsets) == 2
    result = gs.sample(model, kernel, sweeps=4000, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False))
    table, errors = result.marginals, result.mcse
    for site, probabilities in known[law].items():
        for p, q, e in zip(table[site].values(), probabilities, errors[site].values(), strict=True):
            # 7 standard errors: a false alarm in 1e10 cells, were errors known exactly
            assert abs(p - q) <= 7.0 * e + 1e-6, (site, p, q, e)


def test_a_model_that_cutsets_connect_and_single_sites_do_not() -> None:
    """Copies of one site, in a ring: single sites are frozen, all others follow the site that is cut."""
    ring = {f"v{i}": 2 for i in range(6)}
    same = [((f"v{i}", f"v{(i + 1) % 6}"), [[1, 0], [0, 1]]) for i in range(5)]
    model = gs.FactorGraph(ring, [*same, (("v0",), [1, 2])])
    single = gs.sample(model, sweeps=500, rng=1, progress=False)
    assert not single.diagnostics.converged
    cut = gs.sample(model, gs.CutsetGibbs(1), sweeps=500, rng=1, progress=False)
    joined = gs.sample(model, gs.CutsetGibbs(2), sweeps=500, rng=1, progress=False)
    assert joined.diagnostics.converged
    assert abs(joined.marginals["v3"][1] - 2 / 3) < 1e-9
    # with tables of one site every second site is cut, and no single one of them can move
    assert not cut.diagnostics.converged


@pytest.mark.parametrize("parts", [(50, 120), (3, 4)])
def test_a_resumed_run_gives_the_same_bytes(tmp_path: Path, parts: tuple[int, int]) -> None:
    model, kernel = gs.example("alarm"), gs.CutsetGibbs(4)
    options: dict[str, Any] = {"rng": 3, "progress": False, "record": ["marginals", "draws"]}
    options |= {"warmup": 5, "criteria": gs.Criteria(dispersed_starts=False)}
    whole, resumed = tmp_path / "whole.npz", tmp_path / "resumed.npz"
    gs.sample(model, kernel, sweeps=parts[1], threads=1, **options).save(whole)
    place = tmp_path / "checkpoint"
    gs.sample(model, kernel, sweeps=parts[0], checkpoint=place, **options)
    again = gs.sample(
        model, kernel, sweeps=parts[1], checkpoint=gs.Checkpoint(place, resume=True), threads=2, **options
    )
    again.save(resumed)
    with np.load(whole, allow_pickle=False) as a, np.load(resumed, allow_pickle=False) as b:
        for key in a.files:
            if key.startswith(("draws", "marginal", "total", "trace")):
                assert a[key].tobytes() == b[key].tobytes(), key


@pytest.mark.parametrize("model", [GRID, gs.example("alarm"), gs.ising_grid((14, 14))], ids=str)
def test_memory_is_predicted(model: gs.FactorGraph) -> None:
    graph = gs.graphs.compile_graph(model)
    for kernel in (gs.CutsetGibbs(3), gs.CutsetGibbs(8)):
        memory = kernel.memory(graph, np.zeros(4, np.uint64))
        held = sum(part.nbytes for part in memory)
        assert kernel.memory_bytes(graph) == held


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": "wide"}, r"width=? ?.*must be a number, got 'wide'"),
        ({"width": True}, "must be a number, got True"),
        ({"width": 0}, "must be a number of at least 1, log2 of the entries of a clique table, got 0"),
        ({"width": float("nan")}, "must be a number of at least 1"),
        ({"cutsets": 0}, "cutsets.*must be a whole number of at least 1, got 0"),
        ({"cutsets": 1.5}, "must be a whole number of at least 1, got 1.5"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(gs.errors.ArgumentError, match=message):
        gs.sample(GRID, gs.CutsetGibbs(**arguments), sweeps=1, progress=False)


def test_tables_beyond_memory_are_refused() -> None:
    with pytest.raises(gs.errors.TooLargeError, match=r"entries in all, which is above the limit of 2\^29; give"):
        gs.sample(gs.ising_grid((30, 30)), gs.CutsetGibbs(30), sweeps=1, progress=False)


def test_other_models_are_refused() -> None:
    model = gs.Gaussian(precision=np.eye(2))
    with pytest.raises(gs.errors.IncompatibleError, match="CutsetGibbs cannot run on a gaussian graph"):
        gs.sample(model, gs.CutsetGibbs(), sweeps=1, progress=False)
