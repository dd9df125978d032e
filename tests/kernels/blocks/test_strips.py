"""Half of a lattice at a time: exact matrices, the compiled loop, marginals, threads, and a mistake."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.inference.exact.enumeration import enumerate_states
from gibbsite.inference.exact.transition import unit_matrix
from gibbsite.kernels.base import alone, sites_of, units_of
from gibbsite.kernels.blocks import strip_filter
from gibbsite.kernels.blocks.plan import BlockPlan
from gibbsite.kernels.blocks.strip_filter import StripModel, StripTask
from gibbsite.kernels.blocks.strips import StripPlan, draw_half, find_strips
from gibbsite.testing import FALSE_ALARM, check_invariance, check_law, check_repeat, law_p_value


@dataclass(frozen=True)
class Strips(gs.BlockGibbs):
    """Strips of some width, on lattices of any size."""

    width: int = 1

    def plan(self, graph: Any) -> StripPlan:
        found = find_strips(graph, self.width)
        assert found is not None
        return found


def lattice(shape: tuple[int, ...], periodic: Any = False, seed: int = 1) -> gs.FactorGraph:
    """Return a lattice with couplings of both signs and fields of their own for all sites."""
    rng = np.random.default_rng(seed)
    couplings = [rng.normal(size=shape) for _ in shape]
    return gs.ising_grid(shape, coupling=couplings, field=rng.normal(size=shape), periodic=periodic)


CASES = [
    ((2, 3), False, 1),
    ((2, 3), False, 2),
    ((3, 3), False, 1),
    ((3, 3), False, 2),
    ((3, 4), True, 1),
    ((3, 4), True, 2),
    ((2, 5), (False, True), 3),
    ((2, 2, 2), False, 1),
]


@pytest.mark.parametrize(("shape", "periodic", "width"), CASES)
def test_matrices_are_those_of_general_blocks(shape: tuple[int, ...], periodic: Any, width: int) -> None:
    model = lattice(shape, periodic)
    graph, exact, kernel = gs.graphs.compile_graph(model), enumerate_states(model), Strips(width=width)
    plan, pi = kernel.plan(graph), exact.probabilities
    general = gs.BlockGibbs([block.tolist() for block in plan.blocks])
    assert isinstance(general.plan(graph), BlockPlan)
    for unit in range(plan.n_blocks):
        matrix = unit_matrix(exact, graph, kernel, unit)
        assert np.abs(pi @ matrix - pi).max() < 1e-12
        assert np.abs(matrix - unit_matrix(exact, graph, general, unit)).max() < 1e-12


@pytest.mark.parametrize("model", [lattice((3, 3)), gs.ising_grid((2, 4), coupling=(0.5, -0.7), field=0.2)])
def test_compiled_loop_stays_in_law(model: gs.FactorGraph) -> None:
    exact, graph = enumerate_states(model), gs.graphs.compile_graph(model)
    for width in (1, 2):
        kernel = Strips(width=width)
        graph = replace(graph, units=units_of(kernel, graph))
        checks = [
            check_law(exact, graph, kernel, gs.Systematic()),
            check_repeat(exact, graph, kernel, gs.scans.Shuffled()),
        ]
        checks += check_invariance(exact, graph, kernel, gs.Systematic())
        assert all(check.passed for check in checks), checks


@pytest.mark.parametrize(("shape", "periodic", "width"), [((3, 4), False, 2), ((4, 4), True, 1), ((2, 3, 2), False, 1)])
def test_marginals_are_exact_given_the_rest(shape: tuple[int, ...], periodic: Any, width: int) -> None:
    model = lattice(shape, periodic, seed=3)
    graph, kernel = gs.graphs.compile_graph(model), Strips(width=width)
    exact = enumerate_states(model)
    rng = np.random.default_rng(5)
    for unit in range(kernel.plan(graph).n_blocks):
        x = rng.integers(0, 2, graph.n_sites).astype(np.int8)
        sites = sites_of(kernel, graph, unit)
        rest = np.setdiff1d(np.arange(graph.n_sites), sites)
        same = (exact.states[:, rest] == x[rest]).all(axis=1)
        law = exact.probabilities[same] / exact.probabilities[same].sum()
        cond = np.full(graph.n_sites, np.nan)
        parameters, memory = kernel.parameters(graph), kernel.memory(graph, stream(0, 0))
        task = StripTask(np.uintp(unit), np.uint64(7), cond, True, alone())
        draw_half.plain(StripModel(parameters.factors, graph.arrays), memory, x, task)
        assert np.isnan(cond[rest]).all()
        expected = law @ exact.states[same][:, sites]
        assert np.abs(1.0 / (1.0 + np.exp(-cond[sites])) - expected).max() < 1e-12


def _ends(model: gs.FactorGraph, kernel: gs.BlockGibbs, draws: int, seed: int) -> tuple[Any, Any]:
    """Return exact draws of a model after a visit of each block, made in plain Python."""
    exact, graph = enumerate_states(model), gs.graphs.compile_graph(model)
    rng = np.random.default_rng(seed)
    states = exact.draw(draws, rng).astype(np.int8)
    parameters, memory = kernel.parameters(graph), kernel.memory(graph, stream(0, 0))
    for x in states:
        for unit in range(2):
            key = rng.integers(0, 2**63, dtype=np.uint64)
            task = StripTask(np.uintp(unit), key, np.zeros(0), False, alone())
            draw_half.plain(StripModel(parameters.factors, graph.arrays), memory, x, task)
    return exact, states


def test_a_wrong_backward_pass_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gs.ising_grid((2, 2), coupling=(0.8, -0.5), field=0.3)
    exact, states = _ends(model, Strips(), 400, 1)
    assert law_p_value(exact, states)[0] > FALSE_ALARM

    def ignore(p: Any, link: Any, after: Any, table: Any) -> None:
        table[:] = 1.0

    monkeypatch.setattr(strip_filter, "condition_on", ignore)  # rows are drawn as if nothing came after them
    exact, states = _ends(model, Strips(), 400, 1)
    assert law_p_value(exact, states)[0] < FALSE_ALARM


@pytest.mark.parametrize(("blocks", "periodic"), [("trees", False), ("auto", True)])
def test_same_bytes_for_any_number_of_threads(blocks: str, periodic: bool) -> None:
    model = gs.ising_grid((150, 170), coupling=0.4, periodic=periodic)
    kernel = gs.BlockGibbs(blocks)
    assert kernel.members(gs.graphs.compile_graph(model)) == 3
    seen = set()
    for threads in (1, 2, 3):
        result = gs.sample(model, kernel, sweeps=3, warmup=1, chains=1, rng=1, threads=threads, progress=False)
        seen.add(np.array([list(p.values()) for p in result.marginals.values()]).tobytes())
    assert len(seen) == 1


def test_strips_are_found_where_they_fit() -> None:
    def plan(model: gs.FactorGraph, *how: Any) -> Any:
        return gs.BlockGibbs(*how).plan(gs.graphs.compile_graph(model))

    large = gs.ising_grid((30, 30), coupling=0.4)
    assert isinstance(plan(large, "trees"), StripPlan) and plan(large, "trees").width == 1
    assert isinstance(plan(large, "auto"), StripPlan) and plan(large, "auto", 16).width == 3
    assert len(plan(gs.ising_grid((5, 5), coupling=0.4)).blocks) == 1
    assert isinstance(plan(gs.ising_grid((4, 5), coupling=0.4, periodic=True), "trees"), BlockPlan)
    assert isinstance(plan(gs.ising_grid((4, 4), coupling=200.0), "trees"), BlockPlan)
    assert isinstance(plan(gs.ising_grid((4,), coupling=0.4), "trees"), BlockPlan)
    assert isinstance(plan(gs.potts_grid((4, 4), 3, coupling=0.4), "trees"), BlockPlan)
    memory = gs.BlockGibbs("trees").memory(gs.graphs.compile_graph(large), stream(0, 0))
    total = sum(part.nbytes for part in memory)
    assert gs.BlockGibbs("trees").memory_bytes(gs.graphs.compile_graph(large)) == total


def test_strong_fields_and_couplings_lose_nothing() -> None:
    """An upper bound of one part in 10^12, where the odds of a site are up to e^100."""
    model = gs.ising_grid((2, 3), coupling=(12.0, -9.0), field=np.array([[20.0, -6.0, 1.0], [-30.0, 4.0, 0.0]]))
    graph, exact, kernel = gs.graphs.compile_graph(model), enumerate_states(model), Strips(width=2)
    pi = exact.probabilities
    for unit in range(2):
        matrix = unit_matrix(exact, graph, kernel, unit)
        assert np.abs(pi @ matrix - pi).max() < 1e-12
