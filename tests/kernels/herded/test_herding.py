"""Herding: counts follow probabilities with the errors the theorems allow, and the support is never left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gibbsite._numba.jit import compiled
from gibbsite.kernels.herded.herding import herd_argmax, herd_bounded, herd_tijdeman

ROUNDING = 1e-9  # a million additions of numbers below one


@compiled
def worst_of_two(weight, p, steps):
    """Return the largest and smallest difference of count and expectation over all lengths of a run."""
    most, least, count = 0.0, 0.0, 0.0
    for t in range(steps):
        weight += p
        up = weight >= 1.0
        weight -= up
        count += up
        most = max(most, count - (t + 1) * p)
        least = min(least, count - (t + 1) * p)
    return most, least


@compiled
def worst_of_many(rule, v, p, counts, steps):
    """Return the largest difference over all lengths and values; fill in how often each was chosen."""
    worst = 0.0
    for t in range(steps):
        if rule == 0:
            chosen = herd_argmax(v, 0, p, p.size)
        else:
            chosen = herd_tijdeman(v, 0, p, p.size)
        counts[chosen] += 1
        for a in range(p.size):
            worst = max(worst, abs(counts[a] - (t + 1) * p[a]))
    return worst


@compiled
def changing(rule, v, ps, counts):
    """As before, the probabilities being rows, one after another."""
    worst = 0.0
    expected = np.zeros(ps.shape[1])
    for t in range(ps.shape[0]):
        if rule == 0:
            chosen = herd_argmax(v, 0, ps[t], ps.shape[1])
        else:
            chosen = herd_tijdeman(v, 0, ps[t], ps.shape[1])
        counts[chosen] += 1
        if ps[t, chosen] == 0.0:
            return np.inf
        for a in range(ps.shape[1]):
            expected[a] += ps[t, a]
            worst = max(worst, abs(counts[a] - expected[a]))
    return worst


unit = st.floats(0.0, 1.0, exclude_max=True)


@settings(max_examples=60, deadline=None)
@given(unit, st.floats(0.0, 1.0), st.integers(1, 20_000))
@example(0.0, 0.0, 1000)
@example(0.0, 1.0, 1000)
@example(0.9999999999999999, 1.0, 1000)
@example(0.0, 5e-324, 1000)
@example(0.5, 0.9999999999999999, 1000)
def test_counts_of_one_weight_stay_within_one(weight, p, steps) -> None:
    most, least = worst_of_two(weight, p, steps)
    assert most <= 1.0 + ROUNDING
    assert least >= -1.0 - ROUNDING


def test_counts_of_one_weight_stay_within_one_for_a_million_steps() -> None:
    rng = np.random.default_rng(1)
    for p in (*rng.random(12), 0.0, 1.0, 1e-6, 1 - 1e-6, 0.5, 1 / 3):
        most, least = worst_of_two(rng.random(), p, 1_000_000)
        assert -1.0 - ROUNDING <= least <= most <= 1.0 + ROUNDING
        if p in (0.0, 1.0):
            assert most == least == 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12).filter(lambda p: sum(p) > 1e-3), st.integers(1, 5000))
def test_tijdeman_obeys_his_bound(p, steps) -> None:
    p = np.array(p) / np.sum(p)
    counts = np.zeros(p.size)
    worst = worst_of_many(1, np.zeros(p.size), p, counts, steps)
    assert worst <= 1.0 - 1.0 / (2 * p.size - 2) + ROUNDING
    assert (counts[p == 0.0] == 0).all()


def test_rules_on_long_runs() -> None:
    """The figures are those measured by others: .5, .75, .875 and .944; argmax below 1.5."""
    rng = np.random.default_rng(2)
    for k in (2, 3, 5, 10):
        seen = [0.0, 0.0]
        for _ in range(10):
            p = rng.dirichlet(np.ones(k))
            for rule in (0, 1):
                seen[rule] = max(seen[rule], worst_of_many(rule, np.zeros(k), p, np.zeros(k), 200_000))
        assert seen[1] <= 1.0 - 1.0 / (2 * k - 2) + ROUNDING
        assert seen[0] < 1.6


@pytest.mark.parametrize("rule", [0, 1])
def test_probabilities_may_change_from_step_to_step(rule) -> None:
    rng = np.random.default_rng(3)
    for k in (2, 3, 6):
        ps = rng.dirichlet(np.full(k, 0.4), 20_000)
        ps[rng.random(ps.shape) < 0.2] = 0.0
        ps = np.ascontiguousarray(ps[ps.sum(axis=1) > 0.01])
        ps /= ps.sum(axis=1, keepdims=True)
        worst = changing(rule, np.zeros(k), ps, np.zeros(k))  # infinite if a value of probability 0 was chosen
        if rule == 1 and k == 2:
            assert worst <= 0.5 + 0.5 + ROUNDING  # the bound where nothing is forbidden, and one forced choice
        assert worst < 2.5


def test_a_band_of_zero_forces_and_a_wide_one_never_does() -> None:
    rng = np.random.default_rng(4)
    p = np.array([0.2, 0.0, 0.5, 0.3])
    for band, forced in ((0.0, True), (1e9, False)):
        v, counts, drawn = np.zeros(4), np.zeros(4), rng.choice(4, 20_000, p=p)
        chosen = np.array([int(herd_bounded(v, 0, p, 4, band, d)) for d in drawn])
        counts = np.bincount(chosen, minlength=4)
        assert counts[1] == 0
        assert (np.abs(counts - 20_000 * p).max() < 3) == forced
        assert ((chosen == drawn).all()) != forced
