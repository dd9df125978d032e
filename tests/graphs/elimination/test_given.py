"""Marginals given the states of some sites, against enumeration of all states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.elimination.given import Neighbourhoods, plan_elimination, solve_given
from gibbsite.graphs.graph import compile_graph


def random_model(seed: int) -> gs.FactorGraph:
    """Sites of two and three states, factors of one to four sites, some zeros."""
    rng = np.random.default_rng(seed)
    cards = {f"s{i}": int(rng.integers(2, 4)) for i in range(int(rng.integers(3, 9)))}
    factors = []
    for _ in range(int(rng.integers(2, 2 * len(cards)))):
        scope = tuple(str(s) for s in rng.choice(list(cards), min(int(rng.integers(1, 5)), len(cards)), replace=False))
        table = rng.random([cards[s] for s in scope]) ** 3
        factors.append((scope, np.where(table < 0.01, 0.0, table)))
    return gs.FactorGraph(cards, factors)


def distribution(model: gs.FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    states = np.array(list(itertools.product(*(range(card) for card in model.cards))))
    weight = np.exp([model.log_potential(x) for x in states])
    return states, weight / weight.sum()


@pytest.mark.parametrize("seed", range(20))
def test_marginals_are_those_of_all_states(seed: int) -> None:
    model = random_model(seed)
    states, p = distribution(model)
    hoods = Neighbourhoods(compile_graph(model, "table").arrays)
    n = model.n_sites
    found = solve_given(hoods, plan_elimination(hoods, range(n), 1e9), states[:1])
    assert found is not None and sorted(found) == list(range(n))
    for site, (probabilities,) in found.items():
        assert probabilities == pytest.approx(np.bincount(states[:, site], p, model.cards[site]), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_conditional_marginals_are_those_of_the_states_that_agree(seed: int) -> None:
    model = random_model(seed)
    states, p = distribution(model)
    hoods = Neighbourhoods(compile_graph(model, "table").arrays)
    n = model.n_sites
    plan = plan_elimination(hoods, range(n), 8.0)
    free = [clique[0] for clique in plan.cliques]
    given = [site for site in range(n) if site not in free]
    some = states[p > 0.0][::7][:9]
    found = solve_given(hoods, plan, some)
    assert found is not None
    for row, x in enumerate(some):
        agrees = (states[:, given] == x[given]).all(axis=1)
        for site in free:
            expected = np.bincount(states[agrees, site], p[agrees], model.cards[site]) / p[agrees].sum()
            got = found[site][min(row, len(found[site]) - 1)]
            assert got == pytest.approx(expected, abs=1e-12)
    for site in free[:2]:  # a piece of the plan gives the same
        piece = solve_given(hoods, plan.piece(site), some)
        assert piece is not None
        assert np.allclose(piece[site], found[site], atol=1e-12)


def test_tables_are_kept_small() -> None:
    hoods = Neighbourhoods(compile_graph(gs.ising_grid((12, 12), 0.3), "table").arrays)
    plan = plan_elimination(hoods, range(144), 2.0**5)
    assert max(len(clique) for clique in plan.cliques) <= 5
    assert 100 < len(plan.cliques) < 144
    spared = np.ones(144, np.bool_)
    spared[[clique[0] for clique in plan.cliques]] = False  # those that were conditioned on are not, the next time
    others = plan_elimination(hoods, range(144), 2.0**5, (~spared).astype(int).tolist())
    kept = {clique[0] for clique in others.cliques}
    assert len(kept.intersection(np.flatnonzero(spared).tolist())) > 0.9 * spared.sum()


def test_numbers_that_are_too_small_are_not_relied_on() -> None:
    steep = [[1.0, np.exp(-200.0)], [np.exp(-200.0), 1.0]]
    model = gs.FactorGraph(dict.fromkeys("abcdefg", 2), [(("a", other), steep) for other in "bcdefg"])
    hoods = Neighbourhoods(compile_graph(model, "table").arrays)
    plan = plan_elimination(hoods, [0], 4.0)
    assert solve_given(hoods, plan, np.array([[0, 0, 0, 0, 1, 1, 1]])) is None
    assert solve_given(hoods, plan, np.array([[0, 0, 0, 0, 0, 1, 1]])) is not None
