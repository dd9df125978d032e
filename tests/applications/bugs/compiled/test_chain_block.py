"""Chains of discrete unknowns are drawn from their exact joint distribution."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import stats

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.compiled import units

MOVES = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.05, 0.15, 0.8]])
FIRST = np.array([0.5, 0.3, 0.2])
MEANS = np.array([0.0, 1.5, 3.0])
SEEN = np.array([0.2, 1.0, 2.7, 1.4])
TEXT = """model {
    z[1] ~ dcat(first[])
    for (t in 2:4) { z[t] ~ dcat(moves[z[t - 1],]) }
    for (t in 1:4) { shifted[t] <- mean[z[t]]  y[t] ~ dnorm(shifted[t], 1) }
}"""


def test_draws_have_the_exact_joint_distribution() -> None:
    """Chi-squared test of independent draws; the probability of a false alarm is 1e-7."""
    model = read_bugs(TEXT, {"first": FIRST, "moves": MOVES, "mean": MEANS, "y": SEEN})
    assert model.derived.unit[units.UPDATE] == units.CHAIN
    weights = {}
    for path in itertools.product(range(3), repeat=4):
        weight = FIRST[path[0]] * np.prod([MOVES[a, b] for a, b in itertools.pairwise(path)])
        weights[path] = weight * stats.norm.pdf(SEEN, MEANS[list(path)]).prod()
    total = sum(weights.values())
    result = model.sample(sweeps=20_000, rng=1, chains=2, progress=False)
    draws = result.draws.reshape(-1, 4).astype(int) - 1
    counts = np.zeros((3, 3, 3, 3))
    np.add.at(counts, tuple(draws.T), 1)
    expected = np.array([weights[path] / total for path in itertools.product(range(3), repeat=4)]) * len(draws)
    many = expected > 10.0
    seen = counts.ravel()
    statistic = ((seen[many] - expected[many]) ** 2 / expected[many]).sum()
    assert stats.chi2.sf(statistic, many.sum() - 1) > 1e-7


def test_unknowns_with_shared_dependents_are_drawn_one_by_one() -> None:
    text = """model {
        a ~ dbern(0.3)
        b ~ dbern(0.4)
        y ~ dnorm(a + b, 1)
    }"""
    model = read_bugs(text, {"y": 1.5})
    kinds = model.derived.unit.reshape(-1, units.UNIT_WIDTH)[:2, units.UPDATE]
    assert kinds.tolist() == [units.FINITE, units.FINITE]
