"""Projected gradient ascent on the likelihood, and a bound on the distance from its maximum.

The method minimises f(theta) = log Z(theta) - theta . target + ridge / 2 * norm(theta)^2. Its gradient is the mean
statistics of the model minus the target plus ridge * theta (Domke 2015, section 6).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.learn.expectation import Estimate, Oracle
from gibbsite.learn.family import Family
from gibbsite.sampling.progress import Flag, Progress, Status

_STRIDE = 0.01  # step of the error bound, relative to the inverse curvature
_MOST_KEPT = 1000  # largest number of stored parameters of the path


@dataclass(frozen=True)
class Problem:
    """The maximum likelihood problem: a family, its data, and the constraints."""

    family: Family  # the models
    target: Floats  # (parameters,): mean statistics of the data
    ridge: float  # strength of the quadratic penalty
    box: float | None  # bounds on couplings and on total influence
    mixing: float | None

    def project(self, theta: Floats) -> Floats:
        """Return the nearest feasible parameters."""
        return self.family.project(theta, self.box, self.mixing)

    def gradient(self, theta: Floats, mean: Floats) -> Floats:
        """Return the gradient of f, given the mean statistics of the model."""
        return mean - self.target + self.ridge * theta


class Path(NamedTuple):
    """The path of the ascent."""

    theta: Floats  # (parameters,): the last parameters
    thetas: dict[int, Floats]  # number of steps -> parameters; long paths have only every second, fourth, ... step
    estimates: list[Estimate]  # of each gradient, without the means
    interrupted: bool  # whether it was stopped before the end


def ascend(
    problem: Problem,
    oracle: Oracle,
    start: Floats,
    steps: int,
    step_size: float,
    tolerance: float,
    progress: Progress,
    stop: Flag,
) -> Path:
    """Take gradient steps until one is shorter than ``tolerance`` times the step size, or the flag is raised."""
    theta, through = problem.project(start), steps == 0
    thetas, estimates, every, begun = {0: theta}, [], 1, time.monotonic()
    for number in range(steps):
        found = oracle(theta, number)
        moved = problem.project(theta - step_size * problem.gradient(theta, found.mean))
        distance = float(np.linalg.norm(moved - theta))
        theta = moved
        estimates.append(found._replace(mean=found.mean[:0]))
        if (number + 1) % every == 0:
            thetas[number + 1] = theta
        if len(thetas) > _MOST_KEPT:
            every *= 2
            thetas = {k: kept for k, kept in thetas.items() if k % every == 0}
        seconds = time.monotonic() - begun
        progress.show(Status("learning", number + 1, steps, seconds, np.inf, 1, "gradient step"))
        through = distance <= tolerance * step_size or number + 1 == steps
        if through or stop.up:
            break
    thetas[len(estimates)] = theta
    return Path(theta, thetas, estimates, interrupted=not through)


def bound_error(problem: Problem, theta: Floats, found: Estimate, chains: int, risk: float) -> float:
    """Bound the distance from the maximum of the likelihood; infinite if nothing is known.

    f is strongly convex with constant ridge, and its gradient has a Lipschitz constant of at most L = scopes
    + ridge, where scopes bounds the trace of the covariance of the statistics. If a projected step of length h from
    theta ends at u, then (theta - h g - u) / h is normal to the allowed set at u, so that

        norm(theta - theta*) <= norm(theta - u) (1 + (L + 1 / h) / ridge),

    and an error e in the gradient g moves u by at most h norm(e). The error is the bias, plus a sampling
    error that exceeds sqrt(scopes / chains) + diameter sqrt(scopes log(1 / risk) / (2 chains)) with a
    probability of at most ``risk``: Jensen's and McDiarmid's inequalities for the norm of a mean over chains.

    ``found`` is an estimate of the mean statistics at ``theta`` that is independent of ``theta``, from a number of
    chains, or exact if ``chains`` is 0. ``risk`` bounds the probability that the bound fails.
    """
    if problem.ridge <= 0.0 or not np.isfinite(found.bias):
        return float("inf")
    scopes = problem.family.n_scopes
    curvature = scopes + problem.ridge
    stride = _STRIDE / curvature
    reached = problem.project(theta - stride * problem.gradient(theta, found.mean))
    error = found.bias
    if chains:
        spread = problem.family.diameter * np.sqrt(np.log(1.0 / risk) / 2.0)
        error += float(np.sqrt(scopes / chains) * (1.0 + spread))
    distance = float(np.linalg.norm(theta - reached)) + stride * error
    return distance * (1.0 + (curvature + 1.0 / stride) / problem.ridge)
