"""Reduction: the factors over what is left say the same as the model, and nothing possible is lost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.exact.reduce import reduce_model
from tests.inference.exact.naive import all_states, random_model

pytestmark = pytest.mark.usefixtures("plain")


def possible(model: gs.FactorGraph) -> dict[tuple[int, ...], float]:
    logs = {x: float(model.log_potential(np.array(x))) for x in all_states(model.cards.tolist())}
    return {x: value for x, value in logs.items() if value > -np.inf}


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("zeros", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_is_the_model(seed: int, zeros: float, evidence: bool) -> None:
    model = random_model(seed, zeros=zeros)
    if evidence:
        codes = next(iter(possible(model)))
        model = model.observe({"s1": codes[1], "s4": codes[4]})
    reduction = reduce_model(model)
    problem, truth = reduction.problem, possible(model)
    offset = np.concatenate([[0], np.cumsum(model.cards)])
    alive = [np.flatnonzero(reduction.alive[offset[i] : offset[i + 1]]).tolist() for i in range(model.n_sites)]
    assert problem.origin.tolist() == [i for i, codes in enumerate(alive) if len(codes) > 1]
    for i, site in enumerate(problem.origin.tolist()):
        assert problem.code[problem.code_start[i] : problem.code_start[i + 1]].tolist() == alive[site]
        assert problem.cards[i] == len(alive[site])
    for i in set(range(model.n_sites)) - set(problem.origin.tolist()):
        assert alive[i] == [reduction.codes[i]]
    # nothing possible is lost, and what is left weighs the same
    assert all(code in alive[i] for x in truth for i, code in enumerate(x))
    for x in itertools.product(*alive):
        total = reduction.log_constant
        for f in range(problem.table.size):
            rows = slice(problem.member_start[f], problem.member_start[f + 1])
            codes = np.array(x)[problem.origin[problem.member[rows]]]
            total += problem.value[problem.table[f] + (problem.stride[rows] * codes).sum()]
        assert total == pytest.approx(truth.get(x, -np.inf), rel=1e-12, abs=1e-12)


def test_zeros_settle_a_chain_from_its_end() -> None:
    copy = np.eye(3)
    model = gs.FactorGraph({"a": 3, "b": 3, "c": 3, "d": 2}, [("a", [0, 2, 0]), (("a", "b"), copy), (("b", "c"), copy)])
    reduction = reduce_model(model)
    assert reduction.codes[:3].tolist() == [1, 1, 1]
    assert reduction.problem.origin.tolist() == [3]
    assert reduction.problem.table.size == 0
    assert reduction.log_constant == pytest.approx(np.log(2.0))
    assert model.observe({"a": 1}).n_sites == 3


@pytest.mark.parametrize(
    "factors",
    [
        [("a", [1, 0]), ("b", [0, 1]), (("a", "b"), np.eye(2))],
        [(("a", "b"), [[1, 0], [0, 0]]), (("a", "b"), [[0, 0], [0, 1]])],
    ],
)
def test_contradictions_are_found(factors: list[tuple[str, list[float]]]) -> None:
    with pytest.raises(gs.errors.SupportError, match="Site 'a' has no possible state"):
        reduce_model(gs.FactorGraph({"a": 2, "b": 2}, factors))
