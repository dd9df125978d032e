"""Noisy nodes: their tables by definition, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsite as gs


def test_a_noisy_or_by_hand() -> None:
    net = gs.BayesianNetwork()
    net.add("a", ["no", "yes"], table=[0.5, 0.5])
    net.add("b", ["never", "some", "much"], table=[0.5, 0.3, 0.2])
    net.add("y", ["no", "yes"], table=gs.factors.NoisyOr({"a": 0.8, "b": {"some": 0.1, "much": 0.5}}, leak=0.02))
    assert net.parents("y") == ("a", "b")
    for (a, qa), (b, qb) in itertools.product([("no", 0), ("yes", 0.8)], [("never", 0), ("some", 0.1), ("much", 0.5)]):
        assert net.table("y")[a, b]["no"] == pytest.approx(0.98 * (1 - qa) * (1 - qb), abs=1e-15)


def test_a_noisy_maximum_is_the_largest_of_independent_effects() -> None:
    rng = np.random.default_rng(5)
    first, second, leak = rng.dirichlet([1] * 4, 2), rng.dirichlet([1] * 4, 3), rng.dirichlet([1] * 4)
    for descending in (False, True):
        net = gs.BayesianNetwork()
        net.add("a", 2, table=[0.5, 0.5])
        net.add("b", 3, table=[0.5, 0.3, 0.2])
        net.add("y", 4, table=gs.factors.NoisyMax({"a": first, "b": second}, leak=leak, descending=descending))
        best = min if descending else max
        for a, b in itertools.product(range(2), range(3)):
            wanted = np.zeros(4)
            for i, j, k in itertools.product(range(4), repeat=3):
                wanted[best(i, j, k)] += first[a, i] * second[b, j] * leak[k]
            assert np.allclose(net.table("y").probabilities[a, b], wanted, atol=1e-15)


def test_a_logistic_node() -> None:
    net = gs.BayesianNetwork()
    net.add("a", 2, table=[0.5, 0.5])
    net.add("b", ["x", "y", "z"], table=[0.5, 0.3, 0.2])
    net.add("y", 2, table=gs.factors.Logistic({"a": 1.5, "b": {"y": -1.0, "z": 40.0}}, intercept=0.25))
    for a, (b, w) in itertools.product(range(2), [("x", 0.0), ("y", -1.0), ("z", 40.0)]):
        assert net.table("y")[a, b][1] == pytest.approx(1 / (1 + np.exp(-(0.25 + 1.5 * a + w))), rel=1e-14)
    assert net.table("y")[1, "z"][0] == pytest.approx(np.exp(-41.75), rel=1e-12)  # small ones are accurate, too


def test_limits_are_deterministic() -> None:
    net = gs.BayesianNetwork()
    for name in "abc":
        net.add(name, ["no", "yes"], table=[0.5, 0.5])
    net.add("or", ["no", "yes"], table=gs.factors.NoisyOr(dict.fromkeys("abc", 1.0)))
    net.add("and", ["no", "yes"], table=gs.factors.NoisyOr({name: {"no": 1.0} for name in "abc"}, descending=True))
    for labels in itertools.product(["no", "yes"], repeat=3):
        assert net.table("or")[labels]["yes"] == ("yes" in labels)
        assert net.table("and")[labels]["yes"] == ("no" not in labels)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (gs.factors.NoisyOr({"a": 1.2}), "probability of 'a' in 'y' must be from 0 to 1, got 1.2"),
        (gs.factors.NoisyOr({"a": 0.5}, leak=-1), "leak of 'y' must be from 0 to 1"),
        (gs.factors.NoisyOr({"b": 0.5}), "'b' of the noisy or 'y' has 3 states; give a mapping"),
        (gs.factors.NoisyOr({"b": {"w": 0.5}}), "'b' has no state 'w'"),
        (gs.factors.NoisyOr({"q": 0.5}), "the parent 'q' of 'y' is not a node"),
        (gs.factors.NoisyMax({"a": {1: [0.5, 0.6]}}), "must be probabilities that sum to one"),
        (gs.factors.NoisyMax({"a": {1: [0.5, 0.25, 0.25]}}), "need 2 probabilities"),
        (gs.factors.NoisyMax({"a": [[1, 0]]}), "have shape .1, 2., expected .2, 2."),
        (gs.factors.Logistic({"a": np.inf}), "must be finite"),
    ],
)
def test_wrong_noisy_nodes_are_refused_in_a_sentence(table: object, message: str) -> None:
    net = gs.BayesianNetwork()
    net.add("a", 2, table=[0.5, 0.5])
    net.add("b", ["x", "y", "z"], table=[0.5, 0.3, 0.2])
    with pytest.raises(gs.errors.ModelError, match=message):
        net.add("y", 2, table=table)
    assert net.nodes == ("a", "b")
