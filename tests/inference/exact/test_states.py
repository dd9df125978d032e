"""Ranked states, the best one and independent draws, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.elimination.rings import LogSum, Max, Ring, Sum
from gibbsite.inference.exact.propagate import propagate
from gibbsite.inference.exact.states import assign, make_slate, rank_states, trace_draws, weigh
from gibbsite.testing import law_p_value
from tests.inference.exact.naive import all_states, plan_of, random_model

pytestmark = pytest.mark.usefixtures("plain")

CASES = [(seed, zeros) for seed in range(4) for zeros in (0.0, 0.4)]


@pytest.mark.parametrize(("seed", "zeros"), CASES)
def test_all_states_in_order(seed: int, zeros: float) -> None:
    model = random_model(seed, 5, zeros, factors=6)
    logs = {x: float(model.log_potential(np.array(x))) for x in all_states(model.cards.tolist())}
    truth = sorted((value for value in logs.values() if value > -np.inf), reverse=True)
    solved = gs.solve_exact(model, task="MAP")
    for many in (1, 7, len(logs) + 5):
        ranked = [tuple(row) for row in solved.rank(many).tolist()]
        assert len(set(ranked)) == len(ranked) == min(many, len(truth))
        assert [logs[x] for x in ranked] == pytest.approx(truth[:many], abs=1e-12)
        listed = [logs[tuple(row)] for row in gs.exact.enumerate(model).rank(many).tolist()]
        assert listed == pytest.approx(truth[:many], abs=1e-12)
    assert logs[tuple(solved.assignment_codes.tolist())] == pytest.approx(truth[0], abs=1e-12)


def test_ties_are_all_listed() -> None:
    model = gs.ising_grid((2, 3), coupling=0.0)
    ranked = gs.solve_exact(model, task="MAP").rank(100)
    assert len({tuple(row) for row in ranked.tolist()}) == len(ranked) == 64


@pytest.mark.parametrize("ring", [Sum(), Max(), LogSum()], ids=lambda ring: type(ring).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_own_sites_are_weighed_given_the_later_ones(seed: int, ring: Ring) -> None:
    model = random_model(seed)
    plan, truth = plan_of(model), gs.exact.enumerate(model)
    tree = plan.tree
    loaded = plan.load(ring)
    propagate(ring, tree, plan.operands, loaded.workspace, loaded.pool)
    slate = make_slate(tree)
    x = np.random.default_rng(seed).integers(0, tree.card)
    settled: list[int] = []  # of the problem's sites, which are all of the model's here
    for c in range(tree.own.size - 1, -1, -1):
        own = tree.site[tree.start[c] : tree.start[c] + tree.own[c]].tolist()
        n = weigh(ring, tree, plan.operands, loaded.pool, c, x, slate)
        found = slate.weight[:n].copy() if isinstance(ring, Sum) else np.exp(slate.weight[:n])
        given = truth.law[tuple(int(x[i]) if i in settled else slice(None) for i in range(x.size))]
        rest = [i for i in range(x.size) if i not in settled]
        away = tuple(axis for axis, i in enumerate(rest) if i not in own)
        expected = given.max(axis=away) if isinstance(ring, Max) else given.sum(axis=away)
        kept = [i for i in rest if i in own]
        expected = expected.transpose([kept.index(i) for i in own]).ravel()
        assert found / found.sum() == pytest.approx(expected / expected.sum(), rel=1e-10)
        number = int(np.ravel_multi_index(tuple(x[own]), tuple(tree.card[own])))
        kept_x = x.copy()
        assign(tree, c, x, number)
        assert x.tolist() == kept_x.tolist()
        settled += own


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("ring", [Sum(), LogSum()], ids=lambda ring: type(ring).__name__)
def test_draws_follow_the_law(ring: Ring, zeros: float) -> None:
    model = random_model(5, 4, zeros, factors=5)
    plan, truth = plan_of(model), gs.exact.enumerate(model)
    problem = plan.reduction.problem
    loaded = plan.load(ring)
    propagate(ring, plan.tree, plan.operands, loaded.workspace, loaded.pool)
    found = np.zeros((4000, plan.tree.card.size), np.int64)
    words = stream(1, 0)
    trace_draws(ring, plan.tree, plan.operands, loaded.pool, make_slate(plan.tree), words, found)
    codes = np.repeat(plan.reduction.codes[None], len(found), axis=0)
    codes[:, problem.origin] = problem.code[problem.code_start[:-1] + found]
    assert law_p_value(truth, codes)[0] > 1e-6
    assert words.tolist() != stream(1, 0).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_the_best_state_does_not_depend_on_how_cliques_are_merged(seed: int) -> None:
    model = random_model(seed, zeros=0.2)
    truth = gs.exact.enumerate(model)
    for most_own in (1.0, 16.0, 4096.0):
        plan = plan_of(model, most_own)
        loaded = plan.load(Max())
        propagate(Max(), plan.tree, plan.operands, loaded.workspace, loaded.pool)
        x = rank_states(plan, loaded.pool, 1)[0]
        problem = plan.reduction.problem
        codes = plan.reduction.codes.copy()
        codes[problem.origin] = problem.code[problem.code_start[:-1] + x]
        assert float(model.log_potential(codes)) == pytest.approx(truth.log_potential, abs=1e-12)
