"""What herded Gibbs says of its runs: a theorem, or a floor."""

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

FLOOR, THEOREM = "not guaranteed", "theorem of herded Gibbs applies"


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
    return [kind for text in texts for kind in (FLOOR, THEOREM) if kind in text]


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


# ---- runs


def test_an_ordinary_run_does_not_warn_of_remarks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = gs.sample(PATH, gs.HerdedGibbs(), sweeps=2000, rng=1, progress=False)
    assert len(result.remarks) == 1
    assert FLOOR in result.summary()
