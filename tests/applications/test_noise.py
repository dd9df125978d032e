"""Noise is estimated right: the true value is within a few standard errors of repeated estimates."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from gibbsite.applications.noise import (
    estimate_flip,
    estimate_sigma,
    estimate_two_levels,
    may_lie_between,
    sigma_around,
    split_two_levels,
)
from gibbsite.errors import ModelError
from tests.applications.pictures import PICTURES, add_noise, discs, letter

SEEDS = range(20)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("flip", [0.05, 0.2, 0.35])
def test_flips(name: str, flip: float) -> None:
    spins = np.where(PICTURES[name](200), 1.0, -1.0)
    found = []
    for seed in SEEDS:
        flipped = np.random.default_rng(seed).random(spins.shape) < flip
        found.append(estimate_flip(np.where(flipped, -spins, spins)))
    # a bias of 0.01 comes from corners and thin strokes, where edges do not grow with the distance
    assert abs(np.mean(found) - flip) < 0.01 + 6 * np.std(found) / np.sqrt(len(found))
    assert np.std(found) < 0.01


@pytest.mark.parametrize("name", ["letter", "discs", "rings"])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 4.0])
def test_two_levels(name: str, sigma: float) -> None:
    clean = PICTURES[name](200)
    found = np.array([estimate_two_levels(100 + 50 * add_noise(clean, sigma, seed)) for seed in SEEDS])
    error = 6 * found.std(axis=0) / np.sqrt(len(found))
    off = np.abs(found.mean(axis=0) - [50, 150, 50 * sigma])
    assert (off < np.array([3, 3, 1]) + error).all()


def test_sigma_around_known_levels() -> None:
    # the mean square has a relative standard error of about sqrt(2 / 40000)
    assert abs(sigma_around(add_noise(letter(200), 2.0, 1)) - 2.0) < 0.08
    with pytest.raises(ModelError, match="means"):
        sigma_around(np.zeros((4, 4)))


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
def test_sigma_of_grey_images(sigma: float) -> None:
    y, x = np.indices((200, 200))
    smooth = 120 + 60 * np.sin(x / 40) * np.cos(y / 30) + 40 * discs(200)
    found = [estimate_sigma(smooth + np.random.default_rng(s).normal(0, sigma, x.shape)) for s in SEEDS]
    # a share of the windows sees an edge; at worst the median is a higher quantile of the rest
    windows = np.lib.stride_tricks.sliding_window_view(discs(200), (3, 3))
    share = np.mean(windows.any(axis=(2, 3)) & ~windows.all(axis=(2, 3)))
    worst = NormalDist().inv_cdf(0.5 + 0.25 / (1 - share)) / NormalDist().inv_cdf(0.75)
    error = 6 * np.std(found) / np.sqrt(len(found))
    assert sigma - error < np.mean(found) < worst * sigma + error


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(ModelError, match="too small"):
        estimate_sigma(np.zeros((2, 9)))
    with pytest.raises(ModelError, match="too small"):
        estimate_flip(np.ones((2, 2)))
    with pytest.raises(ModelError, match="two levels cannot be distinguished"):
        estimate_two_levels(np.ones((9, 9)))


def test_a_picture_without_noise() -> None:
    spins = np.where(letter(100), 1.0, -1.0)
    assert estimate_flip(spins) < 0.01
    assert estimate_sigma(np.ones((9, 9))) == 0.0
    low, high, sigma = estimate_two_levels(spins)
    assert sigma < 0.3
    assert low < -0.8
    assert high > 0.8


def test_may_lie_between_returns_whether_an_image_may_be_noise_around_levels_between() -> None:
    noisy = np.random.default_rng(1).normal(0.5, 2.0, (50, 50))
    assert (may_lie_between(noisy, 0.0, 1.0), may_lie_between(255.0 * noisy, 0.0, 1.0)) == (True, False)


def test_split_two_levels_returns_the_levels_of_an_image_that_falls_into_dark() -> None:
    paper = np.tile(np.linspace(170.0, 200.0, 200), (200, 1))
    page = np.where(np.hypot(*np.indices((200, 200)) - 100.0) < 60, 40.0, paper)
    assert [round(number) for number in split_two_levels(page)] == [40, 185, 8]
    assert split_two_levels(paper) is None
