"""The information of an observation is the mutual information; plans are the best that their candidates allow."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError
from tests.inference.questions.networks import law_of, random_network


def entropy(p: np.ndarray) -> float:
    p = p[p > 0]
    return float(-(p * np.log2(p)).sum())


@pytest.mark.parametrize("seed", range(5))
def test_bits_are_the_mutual_information_given_the_evidence(seed: int) -> None:
    model = random_network(seed)
    law = law_of(model)[:, :, :, :, 1]
    law = law / law.sum()
    found = gs.questions.rank_observations(model, "v0", {"v4": "s1"})
    bits = {one.site: one.bits for one in found.candidates}
    for axis, name in ((1, "v1"), (2, "v2"), (3, "v3"), (4, "v5")):
        joint = law.sum(axis=tuple(k for k in range(1, 5) if k != axis))
        mutual = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.ravel())
        assert bits[name] == pytest.approx(mutual, abs=1e-9)
    assert found.entropy == pytest.approx(entropy(law.sum(axis=(1, 2, 3, 4))), abs=1e-9)


def test_costs_change_the_order() -> None:
    asia = gs.example("asia")
    names = ["xray", "dysp"]
    assert gs.questions.rank_observations(asia, "lung", candidates=names).candidates[0].site == "xray"
    dear = gs.questions.rank_observations(asia, "lung", candidates=names, costs={"xray": 1000.0})
    assert dear.candidates[0].site == "dysp" and dear.candidates[1].cost == 1000.0


def test_sampled_information_is_within_its_errors() -> None:
    model = random_network(7)
    exact = {one.site: one.bits for one in gs.questions.rank_observations(model, "v0").candidates}
    drawn = gs.questions.rank_observations(model, "v0", method="gibbs", sweeps=5000, rng=3, progress=False)
    # eight jackknife errors of 20 batches (t with 19 degrees of freedom): false alarm below 2e-7 each
    for one in drawn.candidates:
        assert abs(one.bits - exact[one.site]) < 8 * one.error + 1e-4, one.site


def test_a_plan_is_the_best_of_all_plans() -> None:
    model = random_network(5)
    names = ["v1", "v2", "v3"]
    plan = gs.questions.plan_observations(model, "v5", candidates=names, depth=2, beam=3, least=0.0)
    law = law_of(model).sum(axis=4)  # v0 v1 v2 v3 v5
    law = law.sum(axis=0)

    def after(axes: list[int]) -> float:
        """Entropy that remains after both observations."""
        joint = law.sum(axis=tuple(k for k in range(3) if k not in axes))
        flat = joint.reshape(-1, joint.shape[-1])
        return float(sum(row.sum() * entropy(row / row.sum()) for row in flat))

    # with equal costs and two observations each, no plan of depth two leaves less entropy than the best adaptive one
    assert plan.expected <= min(after([0, 1]), after([0, 2]), after([1, 2])) + 1e-9
    assert sum(branch.probability for branch in plan.branches.values()) == pytest.approx(1.0)
    assert all(branch.site not in (None, plan.site) for branch in plan.branches.values())


def test_wrong_questions_are_refused() -> None:
    asia = gs.example("asia")
    with pytest.raises(ArgumentError, match="observed already"):
        gs.questions.rank_observations(asia, "lung", {"lung": "yes"})
    with pytest.raises(ArgumentError, match="nothing left"):
        gs.questions.rank_observations(asia, "lung", candidates=["lung"])
    with pytest.raises(ArgumentError, match="positive number"):
        gs.questions.rank_observations(asia, "lung", costs={"xray": -1})
    with pytest.raises(ArgumentError, match="1, 2 or 3"):
        gs.questions.plan_observations(asia, "lung", depth=4)


def test_the_error_is_not_known_where_the_run_has_not_converged() -> None:
    copies = gs.FactorGraph(  # single-site moves cannot leave the states in which all are equal
        {"a": 2, "b": 2, "c": 2},
        [("a", [0.5, 0.5]), (("a", "b"), [[1, 0], [0, 1]]), (("b", "c"), [[0.9, 0.1], [0.1, 0.9]])],
        directed=True,
    )
    found = gs.questions.rank_observations(copies, "a", method="gibbs", sweeps=500, rng=1, progress=False)
    assert found.reasons and all(np.isnan(one.error) for one in found.candidates)
    assert "+- not known" in str(found)
