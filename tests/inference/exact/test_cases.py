"""Many cases on one clique tree, compared with enumeration and with solving every case on its own."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.arrays import Ints
from gibbsite.inference.exact.cases import CaseTree


def _random_model(rng: np.random.Generator, zeros: float = 0.0) -> gs.FactorGraph:
    """Return a random model of 7 sites with 2 or 3 states, one of which no factor mentions."""
    names = [f"v{k}" for k in range(7)]
    cards = rng.integers(2, 4, 7)
    factors = []
    for _ in range(8):
        scope = rng.choice(6, rng.integers(1, 4), replace=False)
        table = rng.gamma(1.0, size=tuple(cards[scope]))
        table[rng.random(table.shape) < zeros] = 0.0
        table.flat[0] = 1.0
        factors.append((tuple(names[i] for i in scope), table))
    return gs.FactorGraph({name: int(card) for name, card in zip(names, cards, strict=True)}, factors)


def _random_cases(model: gs.FactorGraph, rng: np.random.Generator, number: int) -> Ints:
    codes = rng.integers(0, model.cards, (number, model.n_sites))
    return np.where(rng.random(codes.shape) < rng.random((number, 1)), -1, codes)


def _weights(model: gs.FactorGraph) -> tuple[Ints, np.ndarray]:
    states = np.array(list(np.ndindex(*model.cards.tolist())))
    return states, np.exp([model.log_potential(state) for state in states])


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_cases_agree_with_enumeration(seed: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    while True:
        model = _random_model(rng, zeros)
        states, weights = _weights(model)
        if weights.sum() > 0:
            break
    cases = _random_cases(model, rng, 40)
    tree = CaseTree(model)
    log_sums, cells = tree.solve(cases)
    best, tops = tree.maximise(cases)
    impossible = 0
    for k, case in enumerate(cases):
        fits = np.all((case < 0) | (states == case), axis=1)
        total = weights[fits].sum()
        if total == 0.0:
            impossible += 1
            assert log_sums[k] == tops[k] == -np.inf
            assert np.isnan(cells[k]).all()
            assert (best[k] == -1).all()
            continue
        assert log_sums[k] == pytest.approx(np.log(total), abs=1e-10)
        expected = np.concatenate(
            [np.bincount(states[fits, i], weights[fits], card) / total for i, card in enumerate(model.cards)]
        )
        np.testing.assert_allclose(cells[k], expected, atol=1e-12)
        assert tops[k] == pytest.approx(np.log(weights[fits].max()), abs=1e-10)
        assert model.log_potential(best[k]) == pytest.approx(tops[k], abs=1e-10)
        assert ((case < 0) | (best[k] == case)).all()
    assert (impossible > 0) == (zeros > 0)


def test_threads_give_the_same_numbers() -> None:
    rng = np.random.default_rng(7)
    model = gs.potts_grid((5, 6), 3, coupling=0.6)
    cases = _random_cases(model, rng, 1200)
    one, two = CaseTree(model).solve(cases), CaseTree(model, threads=2).solve(cases)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_cases_that_underflow_are_solved_in_logarithms() -> None:
    # a chain in which every change costs e^-500: observed alternation has probability e^-9500, a plain zero
    model = gs.ising_grid((20,), coupling=250.0)
    case = (np.arange(20) % 2)[None]
    log_sums, _ = CaseTree(model).solve(case)
    assert log_sums[0] == pytest.approx(model.log_potential(case[0]), rel=1e-12)
    partly = np.where(np.arange(20) % 3 == 0, case, -1)
    log_sums, cells = CaseTree(model).solve(partly)
    evidence = {model.sites[i]: model.labels(i)[int(c)] for i, c in enumerate(partly[0]) if c >= 0}
    exact = gs.solve_exact(model.observe(evidence))
    assert log_sums[0] == pytest.approx(exact.log_z, rel=1e-12)
    expected = np.concatenate([list(exact.marginals[name].values()) for name in model.sites])
    np.testing.assert_allclose(cells[0], expected, atol=1e-9)


def test_evidence_of_the_model_stays() -> None:
    rng = np.random.default_rng(11)
    model = _random_model(rng).observe({"v2": 1})
    states, weights = _weights(model)
    cases = _random_cases(model, rng, 10)
    log_sums, _ = CaseTree(model).solve(cases, marginals=False)
    expected = [np.log(weights[np.all((case < 0) | (states == case), axis=1)].sum()) for case in cases]
    np.testing.assert_allclose(log_sums, expected, atol=1e-10)
