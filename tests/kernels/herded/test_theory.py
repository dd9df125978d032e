"""What herded Gibbs says of its runs: a theorem, a floor, or sites that move in step."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba import jit
from gibbsite.inference.exact.transition import sweep_matrix
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.herded.herded import KEYS, RULES
from gibbsite.kernels.herded.theory import sweep_of_gibbs

FLOOR, THEOREM, STEP = "not guaranteed", "theorem of herded Gibbs applies", "moves them in step"


def couple(n: int, pairs: Any, states: int = 2, seed: int = 1) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    tables = [(pair, np.exp(0.3 * rng.normal(size=(states, states)))) for pair in pairs]
    return gs.FactorGraph(n, tables, states=states)


COMPLETE = couple(3, [(0, 1), (0, 2), (1, 2)])
PATH = couple(3, [(0, 1), (1, 2)])


def remarks(model: gs.FactorGraph, scan: Any = None, **settings: Any) -> tuple[KernelWarning, ...]:
    graph = gs.graphs.compile_graph(model)
    return gs.HerdedGibbs(**settings).warnings(model, graph, scan or gs.Systematic())


def kinds(model: gs.FactorGraph, scan: Any = None, **settings: Any) -> list[str]:
    texts = [remark.text for remark in remarks(model, scan, **settings)]
    return [kind for text in texts for kind in (FLOOR, THEOREM, STEP) if kind in text]


# ---- floor and theorem


def test_sparse_graphs_are_not_guaranteed_unless_keys_are_full() -> None:
    for keys in KEYS:
        for rule in RULES:
            expected = [FLOOR] if keys != "full" else [THEOREM] if rule != "bounded" else []
            assert kinds(PATH, keys=keys, rule=rule) == expected
    assert "keys='full' has none." in remarks(PATH)[0].text
    assert "keys='full'" not in remarks(gs.ising_grid((10, 10), coupling=0.1))[0].text


def test_complete_graphs_are_where_the_theorem_is() -> None:
    assert kinds(COMPLETE) == [THEOREM]
    assert kinds(COMPLETE, keys="full") == [THEOREM]
    assert kinds(COMPLETE, rule="bounded") == []
    for keys in ("shared", "binned", "site"):
        assert kinds(COMPLETE, keys=keys) == [FLOOR]
    assert kinds(couple(3, [(0, 1), (0, 1), (1, 2), (2, 1)])) == [FLOOR]  # pairs coupled twice
    assert kinds(gs.ising_grid((3,), coupling=0.2, periodic=True)) == [THEOREM]
    assert kinds(couple(1, [])) == [THEOREM]


def test_the_theorem_is_silent_where_it_does_not_hold() -> None:
    assert kinds(COMPLETE, gs.Chromatic()) == [THEOREM]
    for scan in (gs.RandomScan(), gs.scans.Shuffled(), gs.scans.Palindromic(), gs.scans.FixedOrder([0, 1, 2, 1])):
        assert kinds(COMPLETE, scan) == []
    assert kinds(couple(2, [(0, 1)], states=3)) == []
    assert kinds(gs.FactorGraph(2, [((0, 1), [[1, 0], [1, 1]])], states=2)) == []
    assert kinds(couple(10, [(i, j) for i in range(10) for j in range(i)])) == []


def test_the_constants_are_those_of_the_bound() -> None:
    text, bound = remarks(COMPLETE)[0].text, gs.kernels.herding_bound(COMPLETE)
    for part in (
        f"T* = {bound.enough:.3g} sweeps",
        f"lambda / T = {bound.rate:.3g} / T",
        f"l = {bound.l:.3g}, B = {bound.b:.3g}, eta = {bound.eta:.3g}",
    ):
        assert part in text
    scale = (1 - bound.eta) * bound.l / 12
    assert bound.burn_in(1e9) == pytest.approx(np.log(scale * 1e9) / np.log(2 / (1 + bound.eta)))
    assert f"log({scale:.3g} T) / {np.log(2 / (1 + bound.eta)):.3g}" in text


@pytest.mark.parametrize("order", [None, [2, 0, 1], [1, 2, 0]])
@pytest.mark.parametrize("model", [COMPLETE, PATH, gs.ising_grid((1, 3), coupling=0.4, field=0.1)])
def test_the_sweep_is_that_of_the_kernel(model: gs.FactorGraph, order: list[int] | None) -> None:
    exact, graph, scan = gs.exact.enumerate(model), gs.graphs.compile_graph(model), gs.Systematic(order)
    given = [exact.law / exact.law.sum(axis=i, keepdims=True) for i in range(3)]
    mine = sweep_of_gibbs(given, scan.visits(graph, model).tolist()).reshape(8, 8)
    matrix = sweep_matrix(exact, graph, gs.Gibbs(), scan)
    assert np.abs(mine - matrix).max() < 1e-14
    eta = max(0.5 * np.abs(matrix - row).sum(axis=1).max() for row in matrix)
    assert gs.kernels.herding_bound(model, scan).eta == pytest.approx(eta, abs=1e-13)


@pytest.mark.skipif(jit.DISABLED, reason="compilation is switched off")
def test_constants_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit._Patience, "steps", 1e9)
    monkeypatch.setattr(jit.Entry, "_at_hand", lambda entry: False)
    said: list[str] = []
    with jit.on_compile(lambda: said.append("compiling")):
        gs.kernels.herding_bound(couple(3, [(0, 1), (0, 2), (1, 2)], seed=2))
    assert said == []


# ---- sites in step


def fields(*values: float) -> gs.FactorGraph:
    """Spins without couplings."""
    return gs.ising(np.zeros((len(values), len(values))), np.array(values))


def test_equal_and_complementary_marginals_are_grave() -> None:
    for model in (fields(0.3, 0.7, 0.3), fields(0.3, 0.7, -0.3)):
        last = remarks(model)[-1]
        assert last.grave
        assert last.text.startswith("The sites '0' and '2' have no neighbours")
        assert "(2 sites have such a partner)" in last.text
    assert kinds(fields(0.3, 0.7, 0.5)) == [FLOOR]
    assert kinds(fields(0.3, 800.0, -800.0)) == [FLOOR]  # both are certain


def test_who_is_in_step() -> None:
    alike = fields(0.3, 0.3)
    for keys in KEYS:
        expected = [] if keys in ("full", "randomised-binned") else [STEP]
        assert [kind for kind in kinds(alike, keys=keys) if kind == STEP] == expected
    assert STEP in kinds(fields(0.0, 0.0), keys="randomised-binned")  # 1/2 is a whole number of bins
    for scan in (gs.scans.Palindromic(), gs.scans.Shuffled(), gs.Chromatic()):
        assert STEP in kinds(alike, scan)
    assert STEP not in kinds(alike, gs.RandomScan())
    assert STEP not in kinds(alike, rule="bounded")


def test_more_states_and_sites_that_have_neighbours() -> None:
    law = [1.0, 2.0, 4.0]
    singles = [(("a",), law), (("b",), [4.0, 1.0, 2.0]), (("c",), [1.0, 2.0, 4.5])]
    model = gs.FactorGraph({"c": 3, "a": 3, "b": 3}, singles)
    assert "The sites 'a' and 'b'" in remarks(model)[-1].text
    pair = (("c", "d"), np.full((3, 2), 1.5))
    coupled = gs.FactorGraph({"c": 3, "a": 3, "b": 3, "d": 2}, [*singles, pair])
    assert "The sites 'a' and 'b'" in remarks(coupled)[-1].text
    joined = gs.FactorGraph({"c": 3, "a": 3, "b": 3}, [*singles, (("a", "c"), np.ones((3, 3)))])
    assert STEP not in kinds(joined)
    triple = (("c", "d", "e"), np.arange(1.0, 13.0).reshape(3, 2, 2))
    table = gs.FactorGraph({"c": 3, "a": 3, "b": 3, "d": 2, "e": 2}, [*singles, triple])
    assert gs.graphs.compile_graph(table).kind == "table"
    assert "The sites 'a' and 'b'" in remarks(table)[-1].text
    seen = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "c"), [[1, 2], [3, 5]]), (("b", "c"), [[1, 2], [3, 5]])])
    assert "The sites 'a' and 'b'" in remarks(seen.observe({"c": 1}))[-1].text


def test_the_joint_of_sites_in_step_is_wrong_and_their_marginals_are_right() -> None:
    record = ["marginals", gs.recorders.Joint([("0", "1"), ("0", "2")])]
    with pytest.warns(gs.ConvergenceWarning, match="'0' and '1'.*joint distribution is wrong"):
        result = gs.sample(
            fields(0.3, 0.3, 0.7), gs.HerdedGibbs(), sweeps=20_000, record=record, rng=1, chains=1, progress=False
        )
    p, other = 1 / (1 + np.exp([-0.6, -1.4]))
    assert abs(result.joint("0", "1").sum(axis=1)[1] - p) < 1e-3
    assert abs(result.joint("0", "1")[1, 1] - p * p) > 0.01
    assert abs(result.joint("0", "2")[1, 1] - p * other) < 1e-3
    assert any(STEP in remark for remark in result.remarks)


def test_a_million_isolated_sites_are_no_burden() -> None:
    """Sorted, not compared pair by pair: this test would never end otherwise."""
    n = 1_000_000
    field = np.random.default_rng(1).normal(size=n)
    field[[17, 999_000]] = 0.25, -0.25
    model = gs.FactorGraph(n, groups=(gs.factors.FieldFactors(n, field, spin=True),), states=2)
    [floor, step] = remarks(model)
    assert FLOOR in floor.text
    assert step.grave


def test_an_ordinary_run_does_not_warn_of_remarks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = gs.sample(PATH, gs.HerdedGibbs(), sweeps=2000, rng=1, progress=False)
    assert len(result.remarks) == 1
    assert FLOOR in result.summary()
