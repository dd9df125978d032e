"""The dispersed-start check of models of numbers finds and weighs other modes, and passes models of one mode."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
import numba
from gibbsite.models.random import normal, uniform
from gibbsite.results.verdict.climbing import climb
from gibbsite.results.verdict.modes import count_evaluations


def sample(model: Any, kernel: Any = None, **how: Any) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gs.sample(model, kernel, **{"rng": 1, "progress": False, **how})


def two_normals(n: int, gap: float, log_odds: float = 0.0) -> gs.LogDensity:
    def density(x: np.ndarray) -> float:
        here, there = 0.0, log_odds
        for k in range(n):
            here -= 0.5 * x[k] ** 2
            there -= 0.5 * (x[k] - gap) ** 2
        return max(here, there) + np.log1p(np.exp(-abs(here - there)))

    return gs.LogDensity(density, dim=n)


def logistic(seed: int, n: int = 3) -> gs.LogDensity:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(500, n))
    label = (rng.random(500) < 1.0 / (1.0 + np.exp(-rows @ np.ones(n)))).astype(float)

    def density(b: np.ndarray) -> float:
        t = rows @ b
        return (label * t - np.maximum(t, 0.0) - np.log1p(np.exp(-np.abs(t)))).sum() - 0.1 * (b**2).sum()

    return gs.LogDensity(density, dim=n)


@pytest.mark.parametrize(
    ("n", "gap", "kernel"),
    [(1, 12.0, gs.Slice()), (3, 8.0, gs.Slice()), (3, 12.0, gs.Metropolis()), (2, 70.0, gs.Metropolis())],
)
def test_another_mode_is_found_and_weighed(n: int, gap: float, kernel: gs.kernels.Kernel) -> None:
    """Chains start near one of two equal normals."""
    verdict = sample(two_normals(n, gap), kernel, sweeps=4000, start=np.zeros(n)).diagnostics
    assert verdict.dispersed_starts == "differs"
    assert "another mode at 0=" in verdict.reasons[0]
    weight = float(verdict.reasons[0].split("of weight about ")[1].split(" %")[0])
    assert 40.0 < weight < 60.0


def test_a_mode_without_weight_does_not_matter() -> None:
    assert sample(two_normals(2, 15.0, log_odds=-9.0), gs.Slice(), sweeps=3000).diagnostics.converged


def test_log_concave_posteriors_are_converged() -> None:
    """With the default kernel, from random starts; those runs that have enough effective draws."""
    model = logistic(1)
    verdicts = [sample(model, sweeps=2500 * (seed + 1), rng=seed).diagnostics for seed in range(4)]
    assert all(verdict.dispersed_starts in ("agrees", "not needed") for verdict in verdicts)
    assert any(verdict.converged for verdict in verdicts)


def test_a_normal_far_from_zero() -> None:
    model = gs.LogDensity(lambda x: -0.5 * ((x[0] - 1e4) / 0.3) ** 2, dim=1)
    assert sample(model, gs.Slice(), sweeps=3000, start=[1e4]).diagnostics.converged


def test_bounds_make_no_modes() -> None:
    """A density that is infinite at both of its bounds has one mode all the same."""
    arc = gs.LogDensity(lambda x: -0.5 * np.log(x[0]) - 0.5 * np.log(1.0 - x[0]), dim=1, bounds=(0.0, 1.0))
    assert sample(arc, gs.Slice(), sweeps=3000).diagnostics.converged


def coupled(gap: float) -> gs.Conditionals:
    """Two sites that are both near zero, or both near ``gap``."""

    def draw(other: int) -> Callable[..., float]:
        def draw_one(x: np.ndarray, rng: np.random.Generator) -> float:
            log_odds = np.clip(0.5 * x[other] ** 2 - 0.5 * (x[other] - gap) ** 2, -500.0, 500.0)
            return rng.normal(gap if rng.random() < 1.0 / (1.0 + np.exp(-log_odds)) else 0.0, 1.0)

        return draw_one

    return gs.Conditionals({"a": draw(1), "b": draw(0)})


@pytest.mark.parametrize("gap", [1.0, 12.0])
def test_conditionals_without_a_density(gap: float) -> None:
    verdict = sample(coupled(gap), sweeps=2000, start=[0.0, 0.0]).diagnostics
    assert verdict.converged == (gap == 1.0)
    if not verdict.converged:
        assert "stay away from the run" in verdict.reasons[0]


@pytest.mark.parametrize(("n", "sd", "gap"), [(4, 0.55, 16.0), (4, 0.3, 20.0), (3, 0.12, 11.0)])
def test_a_narrow_mode_beside_a_wide_one_is_found(n: int, sd: float, gap: float) -> None:
    """Both weigh the same, in a direction between the axes; places near the narrow one are a few of a hundred thousand."""
    there = gap * np.array([0.8, -0.5, 0.3, 0.15])[:n] / np.linalg.norm([0.8, -0.5, 0.3, 0.15][:n])

    def density(x: np.ndarray) -> float:
        wide, narrow = 0.0, -n * np.log(sd)
        for k in range(n):
            wide -= 0.5 * x[k] ** 2
            narrow -= 0.5 * ((x[k] - there[k]) / sd) ** 2
        return max(wide, narrow) + np.log1p(np.exp(-abs(wide - narrow)))

    for seed in range(3):
        verdict = sample(
            gs.LogDensity(density, dim=n), gs.Slice(), sweeps=4000, start=np.zeros(n), rng=seed
        ).diagnostics
        assert not verdict.converged and "another mode" in verdict.reasons[0]


def all_near(gap: float, n: int) -> gs.Conditionals:
    """Sites that are all near zero, or all near ``gap``: a site follows the sum of the others."""

    def draw(site: int) -> Callable[..., float]:
        @numba.njit
        def draw_one(x: np.ndarray, words: np.ndarray) -> float:
            log_odds = 0.0
            for other in range(n):
                if other != site:
                    log_odds += gap * (x[other] - 0.5 * gap)
            here = uniform(words) < 1.0 / (1.0 + np.exp(-log_odds))
            return float(normal(words, gap if here else 0.0, 1.0))

        return draw_one

    return gs.Conditionals({f"x{site}": draw(site) for site in range(n)})


def test_modes_that_conditionals_reach_from_few_directions() -> None:
    """From places 100 standard deviations away at random, one in six leads to the other mode."""
    model = all_near(59.4, 4)
    assert not any(sample(model, sweeps=6000, rng=seed).diagnostics.converged for seed in range(8))
    assert sample(all_near(0.5, 4), sweeps=6000).diagnostics.converged


def test_normal_distributions_are_compared_with_what_is_known() -> None:
    precision = [[1.0, 0.5], [0.5, 1.0]]
    assert sample(gs.Gaussian([1e4, -1e4], precision=precision), sweeps=2000).diagnostics.converged


def test_the_same_seed_gets_the_same_look() -> None:
    one, two = (sample(two_normals(2, 9.0), gs.Slice(), sweeps=2000, start=[0.0, 0.0]) for _ in range(2))
    assert one.diagnostics == two.diagnostics


def test_the_effort_of_a_search_hardly_depends_on_measured_speed() -> None:
    """Measured times of the same density differ by tens of percent; numbers of evaluations must not."""
    for sweeps in (1_000, 8_000, 100_000):
        for fastest, slowest in ((1e-7, 5e-6), (6e-6, 4e-5), (5e-5, 1e-2)):
            numbers = {count_evaluations(3, sweeps, pace) for pace in np.geomspace(fastest, slowest, 20)}
            assert len(numbers) == 1
    assert count_evaluations(3, 8_000, 1e-2) == 0.5 * 3 * 8_000  # a tenth of five evaluations an update


def test_climbers_arrive() -> None:
    scale = np.array([1.0, 30.0, 0.3])
    ends = climb(
        lambda x: -0.5 * np.square((x - 2.0) * scale).sum(axis=1),
        None,
        100.0 * np.random.default_rng(1).normal(size=(20, 3)),
        200,
    )
    assert ends.rested.all() and ends.values.min() > -0.1
