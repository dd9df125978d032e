"""Passes over the tree, against enumeration: totals, maxima, marginals, and what plain numbers lose."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.elimination.rings import LogSum, Max, Ring, Sum
from gibbsite.inference.exact.junction import Elimination, solve_exact
from gibbsite.inference.exact.plan import EliminationPlan, Loaded
from gibbsite.inference.exact.propagate import Summary, propagate
from tests.inference.exact.naive import plan_of, random_model

pytestmark = pytest.mark.usefixtures("plain")

CASES = [(seed, zeros) for seed in range(4) for zeros in (0.0, 0.3)]


def run(plan: EliminationPlan, ring: Ring, *where: np.ndarray) -> tuple[Loaded, Summary]:
    loaded = plan.load(ring)
    return loaded, propagate(ring, plan.tree, plan.operands, loaded.workspace, loaded.pool, *where)


@pytest.mark.parametrize("most_own", [1.0, 4096.0])
@pytest.mark.parametrize("ring", [Sum(), Max(), LogSum()], ids=lambda ring: type(ring).__name__)
@pytest.mark.parametrize(("seed", "zeros"), CASES)
def test_one_pass_gives_the_total(seed: int, zeros: float, ring: Ring, most_own: float) -> None:
    model = random_model(seed, zeros=zeros)
    truth = gs.exact.enumerate(model)
    loaded, found = run(plan_of(model, most_own), ring)
    expected = truth.log_potential if isinstance(ring, Max) else truth.log_z
    assert loaded.log_constant + found.log_sum == pytest.approx(expected, rel=1e-12, abs=1e-12)
    if isinstance(ring, Sum):
        assert loaded.plain
        assert found.loss < 1e-20


@pytest.mark.parametrize("ring", [Sum(), LogSum()], ids=lambda ring: type(ring).__name__)
@pytest.mark.parametrize(("seed", "zeros"), CASES)
def test_two_passes_give_marginals_and_messages_that_agree(seed: int, zeros: float, ring: Ring) -> None:
    model = random_model(seed, zeros=zeros)
    plan, truth = plan_of(model), gs.exact.enumerate(model)
    problem = plan.reduction.problem
    cells = np.full(problem.code.size, np.nan)
    loaded, found = run(plan, ring, cells, problem.code_start)
    assert loaded.log_constant + found.log_sum == pytest.approx(truth.log_z, rel=1e-12, abs=1e-12)
    for i, site in enumerate(problem.origin.tolist()):
        rows = slice(problem.code_start[i], problem.code_start[i + 1])
        expected = np.array(list(truth.marginals[site].values()))[problem.code[rows]]
        assert cells[rows] == pytest.approx(expected, abs=1e-12)
    # a message towards the roots times the one back is the marginal of the separator
    there, _ = run(plan, ring)
    for c in np.flatnonzero(plan.tree.parent >= 0).tolist():
        place = slice(plan.operands.message[c], plan.operands.message[c + 1])
        both = [found.pool[place] for found in (there, loaded)]
        both = both if isinstance(ring, Sum) else [np.exp(message) for message in both]
        assert [message.max() for message in both] == pytest.approx([1.0, 1.0])
        sites = plan.tree.site[plan.tree.start[c] + plan.tree.own[c] : plan.tree.start[c + 1]]
        joint = truth.joint(*problem.origin[sites].tolist())
        for axis, i in enumerate(sites.tolist()):
            codes = problem.code[problem.code_start[i] : problem.code_start[i + 1]]
            joint = joint.take(codes, axis)
        product = both[0] * both[1]
        assert product / product.sum() == pytest.approx(joint.ravel(), abs=1e-12)


def steep(depth: float) -> gs.FactorGraph:
    """Four leaves, two for each state of their hub: whatever it is, two of them hardly allow it."""
    low = 10.0**-depth
    first, second = [[1.0, 0.5], [low, 0.5 * low]], [[low, 0.5 * low], [1.0, 0.5]]
    factors = [(("hub", name), first if name in "ac" else second) for name in "abcd"]
    return gs.FactorGraph({"hub": 2, **dict.fromkeys("abcd", 2)}, factors)


@pytest.mark.parametrize(("depth", "fine"), [(20.0, True), (140.0, True), (156.0, False), (200.0, False)])
def test_losses_of_plain_numbers_are_noticed(depth: float, fine: bool) -> None:
    model = steep(depth)
    plan = plan_of(model, 1.0)
    problem = plan.reduction.problem
    loaded, found = run(plan, Sum(), np.zeros(problem.code.size), problem.code_start)
    assert loaded.plain
    assert (found.loss < 1e-20) == fine
    solved = solve_exact(model)
    assert isinstance(solved, Elimination)
    assert isinstance(solved._sampler[1], Sum) == fine
    assert solved.log_z == pytest.approx(math.log(2 * 1.5**4) - 2 * depth * math.log(10.0), rel=1e-14)
    assert solved.marginals["hub"] == pytest.approx({0: 0.5, 1: 0.5})
    assert solved.marginals["a"] == pytest.approx({0: 2 / 3, 1: 1 / 3})


def test_tables_too_steep_for_plain_numbers_are_not_tried() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1.0, 1.0], [1e-305, 1.0]])])
    assert not plan_of(model).load(Sum()).plain
    marginals = solve_exact(model).marginals
    assert marginals["a"][1] == pytest.approx(1 / 3)


def test_no_state_at_all() -> None:
    odd = [[0.0, 1.0], [1.0, 0.0]]  # a ring of three that wants to differ: arc consistency does not see it
    model = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(pair, odd) for pair in (("a", "b"), ("b", "c"), ("c", "a"))])
    plan = plan_of(model)
    for ring in (Sum(), Max(), LogSum()):
        assert run(plan, ring)[1].log_sum == -np.inf
    for task in ("MAR", "MAP", "PR"):
        with pytest.raises(gs.errors.SupportError, match="No state"):
            solve_exact(model, task=task)
