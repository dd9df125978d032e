"""Families, gradients and projections are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.learn import expectation
from gibbsite.learn.ascent import Problem, bound_error
from gibbsite.learn.expectation import SCANS, Exact, Sampled
from gibbsite.learn.family import Family, make_spins, make_tables, project_rows

PAIRS = np.array([[0, 1], [1, 2], [0, 3], [2, 3], [1, 3]], np.int32)


def families() -> list[Family]:
    return [
        make(4, PAIRS, fields, *extra)  # type: ignore[operator]
        for fields in (True, False)
        for make, extra in ((make_spins, ()), (make_tables, (3,)))
    ]


def drawn(family: Family, scale: float = 0.3) -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(0, scale, family.size)


@pytest.mark.parametrize("family", families(), ids=lambda f: f"{type(f).__name__}-{f.fields}")
class TestFamilies:
    def test_the_log_potential_is_linear_in_the_statistics(self, family: Family) -> None:
        theta = drawn(family)
        model = family.model(theta)
        codes = np.random.default_rng(2).integers(0, model.cards, (20, 4))
        values = [model.log_potential(x) for x in codes]
        np.testing.assert_allclose(family.statistics(codes) @ theta, values, rtol=1e-12)

    def test_the_exact_mean_is_the_slope_of_log_z(self, family: Family) -> None:
        theta, h = drawn(family), 1e-5
        mean = Exact(family)(theta).mean
        for k in range(0, family.size, 7):
            ends = []
            for sign in (-1, 1):
                moved = theta.copy()
                moved[k] += sign * h
                ends.append(gs.solve_exact(family.model(moved), task="PR").log_z)
            assert (ends[1] - ends[0]) / (2 * h) == pytest.approx(mean[k], abs=1e-8)

    def test_trees_and_lists_of_states_agree(self, family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
        theta = drawn(family)
        listed = Exact(family)(theta).mean
        monkeypatch.setattr(expectation, "_MOST_STATISTICS", 0)
        np.testing.assert_allclose(Exact(family)(theta).mean, listed, rtol=0, atol=1e-12)

    def test_statistics_of_a_scope_are_no_farther_apart_than_the_diameter(self, family: Family) -> None:
        codes = np.indices(tuple(family.base.cards)).reshape(4, -1).T
        found = family.statistics(codes)[:, : family.n_pair_parameters].reshape(len(codes), len(PAIRS), -1)
        apart = max(np.linalg.norm(found - each, axis=2).max() for each in found)
        assert apart == pytest.approx(family.diameter)
        assert np.trace(np.cov(family.statistics(codes).T)) <= family.n_scopes * 1.1

    def test_projections_bound_the_influence(self, family: Family) -> None:
        for scale in (0.1, 1.0, 5.0):
            theta = family.project(drawn(family, scale), None, 0.8)
            assert gs.influence.bound_influence(family.model(theta), "bound").norms.row_sum <= 0.8 + 1e-12
            boxed = family.project(drawn(family, scale), 0.2, None)
            assert np.abs(family.split(boxed)[0]).max() <= 0.2
            assert (family.split(boxed)[1] == family.split(drawn(family, scale))[1]).all()


@pytest.mark.parametrize("box", [np.inf, 0.3])
@pytest.mark.parametrize("seed", range(20))
def test_projected_weights_are_the_nearest(seed: int, box: float) -> None:
    # p is the projection of y onto a convex set iff (y - p) . (z - p) <= 0 for every z in it
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    every = np.stack(np.triu_indices(n, 1), axis=1)
    pairs = every[rng.random(len(every)) < 0.7]
    y = rng.exponential(0.5, len(pairs))
    p = project_rows(y, pairs, n, 0.9, box)
    sums = np.bincount(pairs.ravel(), np.repeat(p, 2), n)
    assert p.min(initial=0.0) >= 0.0
    assert p.max(initial=0.0) <= box
    assert sums.max() <= 0.9 + 1e-12
    np.testing.assert_allclose(project_rows(p, pairs, n, 0.9, box), p, rtol=0, atol=1e-8)
    for _ in range(300):
        z = np.minimum(rng.exponential(1.0, len(pairs)) * (rng.random(len(pairs)) < 0.4), box)
        z *= 0.9 / max(np.bincount(pairs.ravel(), np.repeat(z, 2), n).max(), 0.9)
        assert (y - p) @ (z - p) <= 1e-7


def sampler(family: Family, **how: Any) -> Sampled:
    usual: dict[str, Any] = {"scan": "dogs", "accuracy": 0.01, "updates": None, "chains": 3000}
    usual |= {"persistent": False, "entropy": 5, "threads": 1}
    return Sampled(family, **{**usual, **how})


@pytest.mark.parametrize("scan", ["dogs", *SCANS])
@pytest.mark.parametrize("which", [0, 1])
def test_sampled_means_are_as_close_as_they_say(scan: str, which: int) -> None:
    # the bounds on sampling errors hold with probability 1 - 1e-8 each, ten times
    family = families()[which]
    theta = family.project(drawn(family, 0.1), None, 0.7)
    found = sampler(family, scan=SCANS.get(scan, scan))(theta, 0)
    assert found.variation <= 0.01 * (1 + 1e-9)
    assert found.updates == 3000 * found.length
    spread = 1.0 + family.diameter * np.sqrt(np.log(1e8) / 2)
    error = found.bias + np.sqrt(family.n_scopes / 3000) * spread
    assert np.linalg.norm(found.mean - Exact(family)(theta).mean) <= error


def test_chains_depend_on_the_seed_and_the_step_alone() -> None:
    family = families()[0]
    theta = drawn(family, 0.1)
    one, two = (sampler(family, threads=threads)(theta, 3).mean for threads in (1, 2))
    assert (one == two).all()
    assert (sampler(family)(theta, 4).mean != one).any()
    assert (sampler(family, entropy=6)(theta, 3).mean != one).any()


def test_persistent_chains_go_on_and_promise_nothing() -> None:
    family = families()[0]
    theta = drawn(family, 0.1)
    chains = sampler(family, persistent=True, updates=4, scan=gs.Systematic(), chains=20)
    first = chains(theta, 0)
    kept = chains.kept[0].copy()
    second = chains(theta, 1)
    assert np.isfinite(first.bias)
    assert np.isnan(second.bias)
    assert np.isnan(second.variation)
    assert (chains.kept[0] != kept).any()
    assert np.allclose(second.mean, family.mean(chains.kept[0]))


@pytest.mark.parametrize("family", families(), ids=lambda f: f"{type(f).__name__}-{f.fields}")
@pytest.mark.parametrize("bounds", [(None, None), (0.1, None), (None, 0.3)])
def test_the_error_bound_holds(family: Family, bounds: tuple[Any, Any]) -> None:
    # with exact gradients there is nothing random about it: from anywhere, the maximum is no farther away
    rng, exact = np.random.default_rng(3), Exact(family)
    target = family.mean(rng.integers(0, family.base.cards, (5, 4)))
    problem = Problem(family, target, 0.5, *bounds)
    best = np.zeros(family.size)
    for _ in range(500):
        best = problem.project(best - 0.2 * problem.gradient(best, exact(best).mean))
    assert bound_error(problem, best, exact(best), 0, 0.1) < 1e-6
    for scale in (0.01, 0.1, 1.0):
        theta = problem.project(best + rng.normal(0, scale, family.size))
        bound = bound_error(problem, theta, exact(theta), 0, 0.1)
        assert np.linalg.norm(theta - best) <= bound * (1 + 1e-9) + 1e-9
