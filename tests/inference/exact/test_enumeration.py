"""Enumeration against closed forms and a naive evaluator."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.exact import enumerate_states
from gibbsite.testing import tiny_models


@pytest.mark.parametrize("coupling", [-0.7, 0.0, 0.3, 2.0])
def test_chain_and_ring_have_closed_forms(coupling: float) -> None:
    chain = enumerate_states(gs.ising_grid((9,), coupling=coupling))
    assert chain.log_z == pytest.approx(math.log(2 * (2 * math.cosh(coupling)) ** 8), rel=1e-13)
    ring = enumerate_states(gs.ising_grid((9,), coupling=coupling, periodic=True))
    trace = (2 * math.cosh(coupling)) ** 9 + (2 * math.sinh(coupling)) ** 9
    assert ring.log_z == pytest.approx(math.log(trace), rel=1e-13)


@pytest.mark.parametrize("name", list(tiny_models()))
def test_every_state_is_weighed_as_the_model_says(name: str) -> None:
    model = tiny_models()[name]
    exact = enumerate_states(model)
    logs = [model.log_potential(np.array(codes)) for codes in itertools.product(*(range(k) for k in model.cards))]
    weights = np.exp(np.array(logs))
    assert exact.probabilities == pytest.approx(weights / weights.sum(), rel=1e-12, abs=1e-300)
    assert exact.log_z == pytest.approx(math.log(weights.sum()), rel=1e-12)
    assert exact.number(exact.states).tolist() == list(range(len(logs)))
    best = {site: model.labels(site)[c] for site, c in zip(model.sites, exact.states[np.argmax(logs)], strict=True)}
    assert exact.assignment == best


def test_evidence_enters_log_z_and_marginals() -> None:
    model = tiny_models()["tables"]
    whole = enumerate_states(model)
    given = enumerate_states(model.observe({"q": 1}))
    share = math.exp(given.log_z - whole.log_z)
    assert share == pytest.approx(whole.marginals["q"][1], rel=1e-12)
    assert given.marginals["q"] == {0: 0.0, 1: 1.0, 2: 0.0}
    assert set(given.marginals) == {"p", "q", "r", "s"}
    assert given.mcse["p"] == {0: 0.0, 1: 0.0}


def test_a_million_states_and_not_one_more() -> None:
    assert enumerate_states(gs.ising_grid((20,), coupling=0.1)).law.size == 2**20
    with pytest.raises(gs.errors.TooLargeError, match="1,048,576"):
        enumerate_states(gs.ising_grid((21,), coupling=0.1))


def test_impossible_model() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 0]]), (("a", "b"), [[0, 1], [1, 1]])])
    with pytest.raises(gs.errors.SupportError):
        enumerate_states(model)


def test_draws_follow_the_law() -> None:
    from gibbsite.testing import law_p_value

    exact = enumerate_states(tiny_models()["mixed"])
    assert law_p_value(exact, exact.draw(50_000, np.random.default_rng(1)))[0] > 1e-6
    biased = exact.draw(50_000, np.random.default_rng(1))
    biased[:4000] = biased[0]
    assert law_p_value(exact, biased)[0] < 1e-6
