"""Potentials: the product of all tables in the pool is the model, whatever factors were joined."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.inference.exact import potentials as module
from gibbsite.inference.exact.plan import EliminationPlan
from gibbsite.inference.exact.potentials import fill_potentials
from tests.inference.exact.naive import all_states, plan_of, random_model

pytestmark = pytest.mark.usefixtures("plain")


def clique_of(plan: EliminationPlan, g: int) -> int:
    """Return the first clique that has a potential's sites: the home of the one that is eliminated first."""
    potentials = plan.potentials
    return int(plan.tree.home[potentials.site[potentials.axis[g] : potentials.axis[g + 1]]].min())


@pytest.mark.parametrize("joined", [1, 12, 1 << 14])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_all_tables_together_are_the_model(
    seed: int, zeros: float, joined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_JOINED", joined)
    model = random_model(seed, zeros=zeros, factors=10)
    plan = plan_of(model)
    tree, problem, potentials = plan.tree, plan.reduction.problem, plan.potentials
    axes = []
    for g, mask in enumerate(potentials.mask.tolist()):
        axes.append(potentials.site[potentials.axis[g] : potentials.axis[g + 1]].tolist())
        clique = clique_of(plan, g)
        sites = tree.site[tree.start[clique] : tree.start[clique + 1]].tolist()
        assert axes[-1] == [site for a, site in enumerate(sites) if mask >> a & 1]
        assert potentials.table[g + 1] - potentials.table[g] == np.prod(tree.card[axes[-1]])
    factors = [
        problem.member[problem.member_start[f] : problem.member_start[f + 1]].tolist()
        for f in range(problem.table.size)
    ]
    for f, scope in enumerate(factors):
        assert set(scope) <= set(axes[potentials.group[f]])
        assert clique_of(plan, potentials.group[f]) == min(tree.home[scope])
    for g, sites in enumerate(axes):  # joined only as far as allowed, or within the largest factor
        parts = [np.prod(tree.card[scope]) for f, scope in enumerate(factors) if potentials.group[f] == g]
        assert np.prod(tree.card[sites]) <= max(joined, *parts)
    pool = np.full(potentials.table[-1], np.nan)
    shift, lowest = fill_potentials(problem, potentials, pool)
    tables = [
        pool[potentials.table[g] : potentials.table[g + 1]].reshape(tree.card[sites]) for g, sites in enumerate(axes)
    ]
    assert all(table.max() == 0.0 for table in tables)
    finite = pool[np.isfinite(pool)]
    assert lowest == finite.min(initial=0.0)
    for x in all_states(problem.cards.tolist()):
        codes = plan.reduction.codes.copy()
        codes[problem.origin] = [problem.code[problem.code_start[i] + k] for i, k in enumerate(x)]
        total = plan.reduction.log_constant + shift
        for sites, table in zip(axes, tables, strict=True):
            total += table[tuple(x[i] for i in sites)]
        assert total == pytest.approx(float(model.log_potential(codes)), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_messages_lie_after_the_potentials_and_belong_to_the_children(seed: int) -> None:
    plan = plan_of(random_model(seed))
    tree, operands = plan.tree, plan.operands
    assert operands.message[0] == plan.potentials.table[-1]
    assert np.diff(operands.message).tolist() == tree.separator.tolist()
    for c in range(tree.own.size):
        first, inner, last = operands.start[c], operands.inner[c], operands.start[c + 1]
        mine = [g for g in range(plan.potentials.mask.size) if clique_of(plan, g) == c]
        assert operands.table[first:inner].tolist() == plan.potentials.table[mine].tolist()
        assert operands.mask[first:inner].tolist() == plan.potentials.mask[mine].tolist()
        children = np.flatnonzero(tree.parent == c).tolist()
        assert operands.child[inner:last].tolist() == children
        row = tree.site[tree.start[c] : tree.start[c + 1]].tolist()
        for k in range(inner, last):
            child = operands.child[k]
            assert operands.table[k] == operands.message[child]
            axes = [site for a, site in enumerate(row) if operands.mask[k] >> a & 1]
            assert axes == tree.site[tree.start[child] + tree.own[child] : tree.start[child + 1]].tolist()
