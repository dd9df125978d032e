"""Targets on which samplers are compared, each as what every method needs of it.

A target is a log-density with gradient for methods that walk, and whatever Gibbs sampling and exact draws
need, where there is such a thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite.lab.notes import banana_density as banana
from gibbsite.models.random import gamma, normal

Truth = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Target:
    """A target as methods need it."""

    density: gs.LogDensity  # with gradient
    truth: Truth  # mean and standard deviation of every coordinate
    step: float  # a step for ULA, a tenth of the smallest variance in any direction
    gibbs: tuple[gs.Model, gs.kernels.Kernel] | None = None  # where full conditionals can be drawn from
    relaxed: tuple[gs.Model, gs.kernels.Kernel] | None = None  # where they are normal, so that they can be over-relaxed
    exact: tuple[gs.Model, gs.kernels.Kernel] | None = None  # where exact draws are known


def autoregressive(n: int, r: float) -> Target:
    """Return n normal numbers of variance 1 in a row, each with correlation r with the next."""
    rest = 1.0 - r * r

    def value(x: Any) -> Any:
        total = x[0] * x[0]
        for i in range(1, n):
            total += (x[i] - r * x[i - 1]) ** 2 / rest
        return -0.5 * total

    def slope(x: Any) -> Any:
        found = np.zeros(n)
        found[0] = -x[0]
        for i in range(1, n):
            pull = (x[i] - r * x[i - 1]) / rest
            found[i] -= pull
            found[i - 1] += r * pull
        return found

    covariance = r ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    normal_target = gs.Gaussian(covariance=covariance)
    return Target(
        density=gs.LogDensity(value, slope, dim=n),
        truth={str(i): (0.0, 1.0) for i in range(n)},
        step=0.1 * float(np.linalg.eigvalsh(covariance)[0]),
        gibbs=(normal_target, gs.kernels.GaussianGibbs()),
        relaxed=(normal_target, gs.kernels.GaussianGibbs(0.8)),
        exact=(normal_target, gs.kernels.ExactGaussian()),
    )


def mean_and_precision(rows: int = 20) -> Target:
    """Return the posterior of mean m and precision t of normal data, with priors N(0, 10) and Gamma(2, 1).

    Both full conditionals are known, m given t normal and t given m a gamma; their joint law has no name.
    """
    data = np.random.default_rng(1).normal(1.0, 0.7, rows)
    n, total, spread = float(rows), float(data.sum()), float(np.square(data).sum())
    shape = 2.0 + 0.5 * n

    def value(x: Any) -> Any:
        squares = spread - 2.0 * x[0] * total + n * x[0] * x[0]
        return -0.05 * x[0] ** 2 + (shape - 1.0) * np.log(x[1]) - x[1] * (1.0 + 0.5 * squares)

    def slope(x: Any) -> Any:
        squares = spread - 2.0 * x[0] * total + n * x[0] * x[0]
        return np.array([-0.1 * x[0] + x[1] * (total - n * x[0]), (shape - 1.0) / x[1] - 1.0 - 0.5 * squares])

    def draw_mean(x: Any, rng: Any) -> Any:
        precision = 0.1 + n * x[1]
        return normal(rng, x[1] * total / precision, precision**-0.5)

    def draw_precision(x: Any, rng: Any) -> Any:
        squares = spread - 2.0 * x[0] * total + n * x[0] * x[0]
        return gamma(rng, shape, 1.0 / (1.0 + 0.5 * squares))

    truth = _integrate(value, (-1.0, 3.0), (1e-6, 10.0))
    return Target(
        density=gs.LogDensity(value, slope, dim=2, names=["m", "t"], bounds=([-np.inf, 1e-9], [np.inf, np.inf])),
        truth=dict(zip(("m", "t"), truth, strict=True)),
        step=0.1 * min(sd for _, sd in truth) ** 2,
        gibbs=(
            gs.Conditionals({"m": draw_mean, "t": draw_precision}, {"m": gs.Interval(), "t": gs.Interval(0.0, np.inf)}),
            gs.kernels.ConditionalGibbs(),
        ),
    )


def _integrate(value: Callable[[Any], Any], *box: tuple[float, float]) -> list[tuple[float, float]]:
    """Return means and standard deviations of two coordinates, from a grid."""
    axes = [low + (np.arange(800) + 0.5) * (high - low) / 800 for low, high in box]
    places = np.stack(np.meshgrid(*axes, indexing="ij"))
    logs = value(places)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    found = []
    for place in places:
        mean = float((p * place).sum())
        found.append((mean, float(np.sqrt((p * (place - mean) ** 2).sum()))))
    return found


def make_targets(quick: bool) -> dict[str, Target]:
    """Return the targets; quickly, fewer of them."""
    bent = Target(density=banana.target(), truth={name: banana.truth()[name] for name in ("x", "y")}, step=0.01)
    found = {
        "pair, r = 0.9": autoregressive(2, 0.9),
        "pair, r = 0.999": autoregressive(2, 0.999),
        "50 numbers, r = 0.9": autoregressive(50, 0.9),
        "banana": bent,
        "mean and precision": mean_and_precision(),
    }
    if quick:
        del found["pair, r = 0.999"]
    return found
