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


def test_marginals_of_a_long_chain_are_those_of_forward_and_backward_sums() -> None:
    """Of 60 states, with missing observations; the largest of 180 scores exceeds 6 by chance with probability 4e-7."""
    text = TEXT.replace("2:4", "2:60").replace("1:4", "1:60")
    rng = np.random.default_rng(2)
    y = rng.choice(MEANS, 60) + rng.normal(size=60)
    y[rng.random(60) < 0.3] = np.nan
    model = read_bugs(text, {"first": FIRST, "moves": MOVES, "mean": MEANS, "y": y}, ["z"])
    seen = np.where(np.isnan(y)[:, None], 1.0, stats.norm.pdf(y[:, None], MEANS))
    forward, backward = np.zeros((60, 3)), np.ones((60, 3))
    for t in range(60):
        forward[t] = (forward[t - 1] @ MOVES if t else FIRST) * seen[t]
        forward[t] /= forward[t].sum()
    for t in range(58, -1, -1):
        backward[t] = MOVES @ (seen[t + 1] * backward[t + 1])
        backward[t] /= backward[t].sum()
    exact = forward * backward
    exact /= exact.sum(axis=1, keepdims=True)
    draws = model.sample(sweeps=4000, rng=1, chains=2, progress=False).draws.reshape(-1, 60)
    found = np.stack([(draws == k).mean(axis=0) for k in (1, 2, 3)], axis=1)
    # unknown observations hold the states to them, so that draws are not independent
    score = np.abs(found - exact) / np.sqrt(exact * (1.0 - exact) / len(draws))
    assert score[~np.isnan(y)].max() < 8.0
    assert score.max() < 12.0


def test_unknowns_with_shared_dependents_are_drawn_one_by_one() -> None:
    text = """model {
        a ~ dbern(0.3)
        b ~ dbern(0.4)
        y ~ dnorm(a + b, 1)
    }"""
    model = read_bugs(text, {"y": 1.5})
    kinds = model.derived.unit.reshape(-1, units.UNIT_WIDTH)[:2, units.UPDATE]
    assert kinds.tolist() == [units.FINITE, units.FINITE]
