"""Conflict and support equal their definitions on networks that are enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError
from tests.inference.questions.networks import law_of, random_network


def probability(law: np.ndarray, evidence: dict[int, int]) -> float:
    return float(law[tuple(evidence.get(k, slice(None)) for k in range(law.ndim))].sum())


@pytest.mark.parametrize("seed", range(6))
def test_conflict_is_the_ratio_of_its_definition(seed: int) -> None:
    model = random_network(seed)
    law = law_of(model)
    codes = {0: 1, 3: 0, 5: 1}
    found = gs.questions.measure_conflict(model, {f"v{k}": f"s{a}" for k, a in codes.items()})
    singles = math.prod(probability(law, {k: a}) for k, a in codes.items())
    assert found.value == pytest.approx(math.log(singles / probability(law, codes)), abs=1e-9)
    assert found.log_probability == pytest.approx(math.log(probability(law, codes)), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_contradiction_is_a_smallest_impossible_set(seed: int) -> None:
    model = random_network(seed, n=7, zeros=True)
    law = law_of(model)
    codes = dict.fromkeys(range(7), 0)
    impossible = [
        each
        for size in range(1, 8)
        for each in itertools.combinations(range(7), size)
        if probability(law, {k: codes[k] for k in each}) == 0.0
    ]
    found = gs.questions.measure_conflict(model, {f"v{k}": "s0" for k in range(7)})
    if not impossible:
        assert math.isfinite(found.value)
        return
    assert math.isinf(found.value)
    assert len(found.contradiction) == min(len(each) for each in impossible)
    assert tuple(int(name[1:]) for name in found.contradiction) in impossible


@pytest.mark.parametrize("seed", range(4))
def test_support_leaves_each_observation_out(seed: int) -> None:
    model = random_network(seed)
    law = law_of(model)
    codes = {1: 0, 4: 1, 5: 0}

    def target(evidence: dict[int, int]) -> float:
        return probability(law, {**evidence, 2: 1}) / probability(law, evidence)

    found = gs.questions.weigh_evidence(model, {f"v{k}": f"s{a}" for k, a in codes.items()}, "v2", "s1")
    assert found.probability == pytest.approx(target(codes), abs=1e-9)
    assert found.before == pytest.approx(target({}), abs=1e-9)
    for k in codes:
        left = {j: a for j, a in codes.items() if j != k}
        assert found.without[f"v{k}"] == pytest.approx(target(left), abs=1e-9)
        odds = [p / (1 - p) for p in (target(codes), target(left))]
        assert found.bits[f"v{k}"] == pytest.approx(math.log2(odds[0] / odds[1]), abs=1e-6)


def test_sampled_support_is_within_its_errors() -> None:
    model = random_network(2)
    exact = gs.questions.weigh_evidence(model, {"v1": "s0"}, "v2", "s1")
    drawn = gs.questions.weigh_evidence(
        model, {"v1": "s0"}, "v2", "s1", method="gibbs", sweeps=4000, rng=2, progress=False
    )
    # six standard errors: false alarm below 2e-9
    assert abs(drawn.without["v1"] - exact.without["v1"]) < 6 * drawn.errors["v1"]


def test_wrong_evidence_is_refused() -> None:
    model = random_network(0)
    with pytest.raises(ArgumentError, match="at least 2 observations"):
        gs.questions.measure_conflict(model, {"v0": "s0"})
    with pytest.raises(ArgumentError, match="name one state of each site"):
        gs.questions.measure_conflict(model, {"v0": [0.5, 0.5], "v1": "s0"})
    with pytest.raises(ArgumentError, match="itself observed"):
        gs.questions.weigh_evidence(model, {"v0": "s0"}, "v0", "s0")
