"""Are verdicts on densities right both ways? ``python -m tests.campaigns.modes``.

Samples densities with one mode and with several, with every kernel that applies, and counts verdicts. A run
is *right* if no mean is off by more than a quarter of a standard deviation and no standard deviation by more
than a quarter of itself; otherwise it is wrong. *False* is a run called converged that is wrong; *alarms* are
runs that are right and not called converged because of other modes, although there is nothing else against
them.

What is true is known where a target is a mixture, summed over a grid where it is a posterior of data, and
found by a long run of another kind where it has one mode.

Suites
    unimodal    posteriors of regressions, hierarchical models, funnels, bananas, hidden Markov models,
                conditionals, models with states and numbers: 40 of them, from 10 families
    multimodal  mixtures with 2 to 5 modes of weights 0.5 to 0.05, 9 to 100 standard deviations apart, and
                others: 40 of them, from 10 families
    of data     posteriors of data with two modes, of weights 0.5 to 0.05: two families, for kernels that look
                at minibatches and for those that need gradients
    weak        mixtures with modes of weights 0.02 to 0.05: three families; runs that miss such a mode are
                counted, but not required to be refused
    bugs        models in the BUGS language with modes 10 to 1,000 standard deviations apart, of weights of at least
                0.05: eight families, with initial values in one mode and without any
    examples    the classic examples of the language, which have one mode, compared with published means

Options
    --suite NAME      one of them (default: all)
    --targets A:B     numbers of the targets (default 0:40); there are as many as you like
    --seeds A:B       seeds (default 0:1); with even ones all chains start in the first of several modes
    --only TEXT       targets, or kernels, whose name contains the text
    --out FILE        a line of JSON for each run (default modes.jsonl); runs that are in it already are not
                      made again: a campaign may be interrupted, or cut into parts
    --report          only print the table of what is in the file
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
import numba
from gibbsite.applications.bugs import BugsModel
from gibbsite.models.random import gamma, normal, uniform
from tests.campaigns import bugs_targets
from tests.campaigns.journal import read_rows
from tests.campaigns.targets import Target

OFF = 0.25  # standard deviations by which a mean may be off, and a share by which they may be


# ---- one mode


def a_normal(rng: np.random.Generator) -> Target:
    n = int(rng.choice([1, 2, 5, 12]))
    root = rng.normal(size=(n, n)) * 0.3 + np.eye(n)
    sd = 10.0 ** rng.uniform(-3, 3)
    precision = np.linalg.inv(root @ root.T) / sd**2
    mean = 10.0 ** rng.uniform(-1, 4, n) * rng.choice([-1, 1], n)

    def density(x: Any) -> Any:
        d = x - mean
        return -0.5 * (d * (precision @ d)).sum()

    model = gs.LogDensity(density, lambda x: -(precision @ (x - mean)), dim=n)
    sds = sd * np.sqrt(np.diag(root @ root.T))
    start = {"start": mean + sd * rng.normal(size=(4, n))}
    kernels = {
        "Slice": (gs.Slice(), start),
        "Metropolis": (gs.Metropolis(), start),
        "MALA": (gs.MALA(), start),
        "MALA adapt": (gs.MALA(preconditioner="adapt"), start),
    }
    return Target("normal", model, kernels, 6000, (mean, sds))


def _logistic_data(rng: np.random.Generator, rows: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    table = np.concatenate([np.ones((rows, 1)), rng.normal(size=(rows, n - 1))], axis=1)
    odds = table @ rng.normal(0.0, 1.0, n)
    return table, (rng.random(rows) < 1.0 / (1.0 + np.exp(-odds))).astype(float)


def a_logistic_regression(rng: np.random.Generator) -> Target:
    n = int(rng.integers(2, 6))
    table, label = _logistic_data(rng, 500, n)

    def density(b: Any) -> Any:
        t = table @ b
        return (label * t - np.log1p(np.exp(-np.abs(t))) - np.maximum(t, 0.0)).sum() - 0.125 * (b**2).sum()

    def slope(b: Any) -> Any:
        t = table @ b
        return table.T @ (label - 1.0 / (1.0 + np.exp(-t))) - 0.25 * b

    kernels = {
        "Slice": gs.Slice(),
        "default": None,
        "MALA": gs.MALA(),
        "Metropolis 1 by 1": gs.Metropolis(one_by_one=True),
    }
    return Target("logistic regression", gs.LogDensity(density, slope, dim=n), kernels, 5000)


def a_regression_of_factors(rng: np.random.Generator) -> Target:
    n = int(rng.integers(2, 5))
    table, label = _logistic_data(rng, 200, n)
    factors = [
        gs.factors.logistic_factors(list(range(n)), table, label),
        gs.factors.normal_factors(list(range(n)), 0.0, 2.0),
    ]
    model = gs.ContinuousModel(n, factors, states=gs.Interval(-6.0, 6.0))
    kernels = {
        "ContinuousGibbs": gs.kernels.ContinuousGibbs(),
        "Metropolis": gs.Metropolis(),
        "Slice": gs.Slice(),
        "PoissonMH": gs.kernels.PoissonMH(),
        "TunaMH": gs.kernels.TunaMH(),
    }
    return Target("regression of factors", model, kernels, 4000)


def a_hierarchy(rng: np.random.Generator) -> Target:
    schools = int(rng.integers(4, 9))
    effect, error = rng.normal(8.0, 10.0, schools), rng.uniform(8.0, 18.0, schools)

    def density(x: Any) -> Any:
        mean, scale = x[0], math.exp(x[1])
        total = -0.5 * (mean / 20.0) ** 2 - 0.5 * ((x[1] - 2.0) / 0.7) ** 2
        for k in range(schools):
            z = x[2 + k]
            total += -0.5 * z * z - 0.5 * ((effect[k] - mean - scale * z) / error[k]) ** 2
        return total

    kernels = {"Slice": gs.Slice(), "Metropolis": gs.Metropolis()}
    return Target("hierarchy", gs.LogDensity(density, dim=2 + schools), kernels, 8000)


def a_funnel(rng: np.random.Generator) -> Target:
    n, sd = int(rng.integers(2, 4)), float(rng.uniform(0.5, 1.0))

    def density(x: Any) -> Any:
        v = x[0]
        return -0.5 * (v / sd) ** 2 - 0.5 * (n - 1) * v - 0.5 * math.exp(-v) * (x[1:] ** 2).sum()

    sds = np.concatenate([[sd], np.full(n - 1, math.exp(0.25 * sd**2))])
    kernels = {"Slice": gs.Slice(), "Metropolis": gs.Metropolis()}
    return Target("funnel", gs.LogDensity(density, dim=n), kernels, 20_000, (np.zeros(n), sds))


def a_banana(rng: np.random.Generator) -> Target:
    bend, sd = float(rng.uniform(0.2, 1.0)), float(rng.uniform(0.5, 1.5))

    def density(x: Any) -> Any:
        return -0.5 * (x[0] / sd) ** 2 - 2.0 * (x[1] - bend * x[0] ** 2) ** 2

    truth = np.array([0.0, bend * sd**2]), np.array([sd, math.sqrt(0.25 + 2.0 * bend**2 * sd**4)])
    kernels = {"Slice": gs.Slice(), "Metropolis": gs.Metropolis()}
    return Target("banana", gs.LogDensity(density, dim=2), kernels, 20_000, truth)


def a_bounded_density(rng: np.random.Generator) -> Target:
    a, b, shape = (float(v) for v in rng.uniform(0.6, 5.0, 3))

    def density(x: Any) -> Any:  # beta, gamma, and a normal cut off
        return (
            (a - 1.0) * math.log(x[0])
            + (b - 1.0) * math.log(1.0 - x[0])
            + (shape - 1.0) * math.log(x[1])
            - x[1]
            - 0.5 * x[2] ** 2
        )

    low, high = np.array([0.0, 0.0, 0.0]), np.array([1.0, np.inf, np.inf])
    mean = np.array([a / (a + b), shape, math.sqrt(2.0 / math.pi)])
    variance = np.array([a * b / ((a + b) ** 2 * (a + b + 1.0)), shape, 1.0 - 2.0 / math.pi])
    kernels = {"Slice": gs.Slice(), "Metropolis": gs.Metropolis(), "one by one": gs.Metropolis(one_by_one=True)}
    model = gs.LogDensity(density, dim=3, bounds=(low, high))
    return Target("bounded", model, kernels, 8000, (mean, np.sqrt(variance)))


def a_hidden_markov_model(rng: np.random.Generator) -> Target:
    """Two states that are summed over: their means in order, how long they last, and the deviation."""
    length, gap = 200, float(rng.uniform(2.0, 4.0))
    hidden = np.cumsum(rng.random(length) < 0.15) % 2
    seen = gap * hidden + rng.normal(size=length)

    def density(x: Any) -> Any:
        low, high = x[0], x[0] + math.exp(x[1])
        sd = math.exp(x[2])
        stay = 1.0 / (1.0 + math.exp(-x[3]))
        a, b, total = 0.5, 0.5, 0.0
        for t in range(length):
            p = a * stay + b * (1.0 - stay)
            q = 1.0 - p
            u, w = -0.5 * ((seen[t] - low) / sd) ** 2, -0.5 * ((seen[t] - high) / sd) ** 2
            top = max(u, w)
            p, q = p * math.exp(u - top), q * math.exp(w - top)
            total += math.log(p + q + 1e-300) + top - math.log(sd)
            a, b = p / (p + q + 1e-300), q / (p + q + 1e-300)
        prior = -0.5 * (x[0] / 5.0) ** 2 - 0.5 * (x[1] - 1.0) ** 2 - 0.5 * x[2] ** 2 - 0.125 * (x[3] - 2.0) ** 2
        return total + prior

    kernels = {"Slice": gs.Slice(), "Metropolis": gs.Metropolis()}
    return Target("hidden Markov model", gs.LogDensity(density, dim=4), kernels, 3000)


def conditionals(rng: np.random.Generator) -> Target:
    """Normal means of groups, their mean and both precisions, drawn from their conditionals."""
    groups, each = int(rng.integers(3, 9)), 6
    data = rng.normal(rng.normal(3.0, 1.5, (groups, 1)), 1.0, (groups, each))
    sums, squares = data.sum(axis=1), (data**2).sum(axis=1)
    names = [f"theta{k}" for k in range(groups)]

    def draw_group(k: int) -> Any:
        total = sums[k]

        @numba.njit
        def draw(x: Any, words: Any) -> Any:
            precision = x[1] + each * x[2]
            return normal(words, (x[1] * x[0] + x[2] * total) / precision, 1.0 / math.sqrt(precision))

        return draw

    @numba.njit
    def draw_mean(x: Any, words: Any) -> Any:
        precision = 0.01 + groups * x[1]
        return normal(words, x[1] * x[3:].sum() / precision, 1.0 / math.sqrt(precision))

    @numba.njit
    def draw_between(x: Any, words: Any) -> Any:
        return gamma(words, 1.0 + 0.5 * groups, 1.0) / (1.0 + 0.5 * ((x[3:] - x[0]) ** 2).sum())

    @numba.njit
    def draw_within(x: Any, words: Any) -> Any:
        left = 0.0
        for k in range(groups):
            left += squares[k] - 2.0 * x[3 + k] * sums[k] + each * x[3 + k] ** 2
        return gamma(words, 1.0 + 0.5 * groups * each, 1.0) / (1.0 + 0.5 * left)

    draws = {"mean": draw_mean, "between": draw_between, "within": draw_within}
    draws |= {name: draw_group(k) for k, name in enumerate(names)}
    sites = {"mean": gs.Interval(), "between": gs.Interval(0.0), "within": gs.Interval(0.0)}
    model = gs.Conditionals(draws, sites)
    return Target("conditionals", model, {"ConditionalGibbs": gs.kernels.ConditionalGibbs()}, 4000)


def a_mixed_model(rng: np.random.Generator) -> Target:
    """A number whose mean depends on three states, near enough to move between them."""
    gap, lean = float(rng.uniform(0.5, 2.0)), float(rng.uniform(-1.0, 1.0))
    model = gs.ContinuousModel(
        {"x": gs.Interval(-12.0, 12.0), "y": gs.Interval(-12.0, 12.0), "side": 3},
        [
            (lambda v: -0.5 * (v[0] - gap * (v[1] - 1.0)) ** 2, ("x", "side")),
            (lambda v: -0.5 * (v[0] - 0.5 * v[1]) ** 2, ("y", "x")),
            (lambda v: lean * v[0], ("side",)),
        ],
    )
    p = np.exp(lean * np.arange(3))
    p /= p.sum()
    shift = gap * (np.arange(3) - 1.0)
    mean = float(p @ shift)
    variance = 1.0 + float(p @ shift**2) - mean**2
    truth = np.array([mean, 0.5 * mean]), np.sqrt([variance, 1.0 + 0.25 * variance])
    kernels = {"ContinuousGibbs": gs.kernels.ContinuousGibbs(), "slice": gs.kernels.ContinuousGibbs(method="slice")}
    return Target("states and numbers", model, kernels, 6000, truth)


# ---- several modes


def _mixture_moments(weights: Any, means: Any, sds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of a mixture; ``sds`` are those of each component (modes, n)."""
    mean = weights @ means
    return mean, np.sqrt(weights @ (sds**2 + means**2) - mean**2)


def _weights(rng: np.random.Generator, modes: int) -> np.ndarray:
    while True:
        found = rng.dirichlet(np.ones(modes))
        if found.min() >= 0.05:
            return found


def _apart(rng: np.random.Generator, modes: int, n: int, least: float, most: float) -> np.ndarray:
    """Return means at least so far apart, within the largest distance of the first."""
    while True:
        way = rng.normal(size=(modes, n))
        way /= np.linalg.norm(way, axis=1)[:, None]
        means = way * np.exp(rng.uniform(np.log(least), np.log(most), (modes, 1)))
        means[0] = 0.0
        gaps = np.linalg.norm(means[:, None] - means[None], axis=2) + 1e9 * np.eye(modes)
        if gaps.min() >= least and gaps[0, 1:].max() <= most:
            return means + rng.normal(size=n)


def _normal_mixture(weights: Any, means: Any, roots: Any) -> Any:
    """Return the log-density of a mixture of normals with lower triangular factors of their precisions."""
    heights = np.log(weights) + np.log(np.abs(np.array([np.linalg.det(root) for root in roots])))
    modes, n = means.shape
    factors = np.ascontiguousarray(roots)

    def density(x: Any) -> Any:
        found = -np.inf
        for m in range(modes):
            total = heights[m]
            for i in range(n):
                z = 0.0
                for j in range(n):
                    z += factors[m, i, j] * (x[j] - means[m, j])
                total -= 0.5 * z * z
            if found > total:
                found += math.log1p(math.exp(total - found))
            else:
                found = total + (math.log1p(math.exp(found - total)) if found > -np.inf else 0.0)
        return found

    return density


def _walks() -> dict[str, Any]:
    return {"Slice": gs.Slice(), "Metropolis": gs.Metropolis()}


def two_normals(rng: np.random.Generator) -> Target:
    n = int(rng.integers(1, 5))
    w = _weights(rng, 2)
    means = _apart(rng, 2, n, 9.0, 100.0)
    density = _normal_mixture(w, means, np.stack([np.eye(n)] * 2))
    model = gs.LogDensity(density, dim=n)
    truth = _mixture_moments(w, means, np.ones((2, n)))
    return Target("two normals", model, _walks(), 4000, truth, means[0])


def many_normals(rng: np.random.Generator) -> Target:
    modes, n = int(rng.integers(3, 6)), int(rng.integers(1, 5))
    w = _weights(rng, modes)
    means = _apart(rng, modes, n, 9.0, 60.0)
    model = gs.LogDensity(_normal_mixture(w, means, np.stack([np.eye(n)] * modes)), dim=n)
    truth = _mixture_moments(w, means, np.ones((modes, n)))
    return Target("3 to 5 normals", model, _walks(), 4000, truth, means[0])


def unequal_normals(rng: np.random.Generator) -> Target:
    n = int(rng.integers(1, 5))
    w = _weights(rng, 2)
    sds = np.exp(rng.uniform(np.log(0.4), np.log(2.5), 2))
    means = _apart(rng, 2, n, 9.0 * sds.max(), 60.0 * sds.min() + 9.0 * sds.max())
    model = gs.LogDensity(_normal_mixture(w, means, np.stack([np.eye(n) / sd for sd in sds])), dim=n)
    truth = _mixture_moments(w, means, np.repeat(sds[:, None], n, axis=1))
    return Target("unequal normals", model, _walks(), 4000, truth, means[0])


def correlated_normals(rng: np.random.Generator) -> Target:
    n = int(rng.integers(2, 5))
    w = _weights(rng, 2)
    roots = [np.linalg.inv(np.eye(n) + 0.4 * np.tril(rng.normal(size=(n, n)))) for _ in range(2)]
    sds = np.stack([np.sqrt(np.diag(np.linalg.inv(root.T @ root))) for root in roots])
    means = _apart(rng, 2, n, 15.0, 90.0)
    density = _normal_mixture(w, means, np.stack(roots))
    precisions = np.stack([root.T @ root for root in roots])
    heights = np.log(w) + np.log([np.linalg.det(root) for root in roots])

    def slope(x: Any) -> Any:
        logs, total = np.zeros(2), np.zeros(n)
        for m in range(2):
            d = x - means[m]
            logs[m] = heights[m] - 0.5 * (d * (precisions[m] @ d)).sum()
        p = np.exp(logs - logs.max())
        p /= p.sum()
        for m in range(2):
            total -= p[m] * (precisions[m] @ (x - means[m]))
        return total

    model = gs.LogDensity(density, slope, dim=n)
    kernels = {**_walks(), "MALA": gs.MALA()}
    return Target("correlated normals", model, kernels, 6000, _mixture_moments(w, means, sds), means[0])


def a_mixture_of_factors(rng: np.random.Generator) -> Target:
    """Between bounds, as factors: a double well in each of some coordinates."""
    n, gap = int(rng.integers(1, 4)), float(rng.uniform(9.0, 30.0))
    lean = float(rng.uniform(-0.8, 0.8))

    def well(v: Any) -> Any:
        a, b = -0.5 * v[0] ** 2, -0.5 * (v[0] - gap) ** 2 + lean
        return max(a, b) + math.log1p(math.exp(-abs(a - b)))

    factors = [(well, [0])] + [(lambda v: -0.5 * (v[0] - 0.7 * v[1]) ** 2, [i + 1, i]) for i in range(n - 1)]
    model = gs.ContinuousModel(n, factors, states=gs.Interval(-30.0, 60.0))
    p = 1.0 / (1.0 + math.exp(-lean))
    mean, variance = [p * gap], [1.0 + p * (1.0 - p) * gap**2]
    for _ in range(n - 1):
        mean.append(0.7 * mean[-1])
        variance.append(1.0 + 0.49 * variance[-1])
    kernels = {"Metropolis": gs.Metropolis(), "Slice": gs.Slice(), "ContinuousGibbs": gs.kernels.ContinuousGibbs()}
    truth = np.array(mean), np.sqrt(variance)
    return Target("wells of factors", model, kernels, 4000, truth, np.zeros(n))


def heavy_tails(rng: np.random.Generator) -> Target:
    n, gap, freedom = int(rng.integers(1, 4)), float(rng.uniform(40.0, 90.0)), 7.0
    w = _weights(rng, 2)
    means = np.stack([np.zeros(n), np.full(n, gap / math.sqrt(n))])

    def density(x: Any) -> Any:
        found = 0.0
        for m in range(2):
            z = 0.0
            for j in range(n):
                z += (x[j] - means[m, j]) ** 2
            found += w[m] * (1.0 + z / freedom) ** (-0.5 * (freedom + n))
        return math.log(found)

    sds = np.full((2, n), math.sqrt(freedom / (freedom - 2.0)))
    model = gs.LogDensity(density, dim=n)
    return Target("heavy tails", model, _walks(), 6000, _mixture_moments(w, means, sds), means[0])


def switched_labels(rng: np.random.Generator) -> Target:
    """The means of two groups of data, which may be swapped."""
    data = np.concatenate([rng.normal(-3.0, 1.0, 40), rng.normal(float(rng.uniform(1.0, 4.0)), 1.0, 40)])

    def density(x: Any) -> Any:
        total = -0.005 * (x[0] ** 2 + x[1] ** 2)
        for value in data:
            a, b = -0.5 * (value - x[0]) ** 2, -0.5 * (value - x[1]) ** 2
            total += max(a, b) + math.log1p(math.exp(-abs(a - b)))
        return total

    middle, half = data.mean(), 0.5 * (data[40:].mean() - data[:40].mean())
    truth = np.full(2, middle), np.full(2, math.sqrt(half**2 + 1.2 / 40))
    model = gs.LogDensity(density, dim=2)
    return Target("switched labels", model, _walks(), 4000, truth, np.array([-3.0, 2.0]))


def conditionals_of_a_mixture(rng: np.random.Generator) -> Target:
    """Two normals apart along the diagonal, drawn coordinate by coordinate: no density is given."""
    gap = float(rng.uniform(9.0, 80.0))
    w = _weights(rng, 2)
    odds = math.log(w[1] / w[0])

    def draw(other: int) -> Any:
        @numba.njit
        def draw_one(x: Any, words: Any) -> Any:
            log_odds = odds + 0.5 * x[other] ** 2 - 0.5 * (x[other] - gap) ** 2
            here = uniform(words) < 1.0 / (1.0 + math.exp(-log_odds))
            return normal(words, gap if here else 0.0, 1.0)

        return draw_one

    model = gs.Conditionals({"a": draw(1), "b": draw(0)})
    means = np.stack([np.zeros(2), np.full(2, gap)])
    truth = _mixture_moments(w, means, np.ones((2, 2)))
    kernels = {"ConditionalGibbs": gs.kernels.ConditionalGibbs()}
    return Target("conditionals of a mixture", model, kernels, 4000, truth, means[0])


def a_mixed_model_with_modes(rng: np.random.Generator) -> Target:
    gap, lean = float(rng.uniform(9.0, 40.0)), float(rng.uniform(-1.5, 1.5))
    model = gs.ContinuousModel(
        {"x": gs.Interval(-20.0, 60.0), "side": 2},
        [(lambda v: -0.5 * (v[0] - gap * v[1]) ** 2 + lean * v[1], ("x", "side"))],
    )
    p = 1.0 / (1.0 + math.exp(-lean))
    truth = np.array([p * gap]), np.array([math.sqrt(1.0 + p * (1.0 - p) * gap**2)])
    kernels = {"ContinuousGibbs": gs.kernels.ContinuousGibbs(), "slice": gs.kernels.ContinuousGibbs(method="slice")}
    return Target("states with modes", model, kernels, 4000, truth, np.zeros(2))


def two_bananas(rng: np.random.Generator) -> Target:
    bend, gap = 0.4, float(rng.uniform(15.0, 60.0))

    def density(x: Any) -> Any:
        a = -0.5 * x[0] ** 2 - 2.0 * (x[1] - bend * x[0] ** 2) ** 2
        b = -0.5 * x[0] ** 2 - 2.0 * (x[1] + gap + bend * x[0] ** 2) ** 2
        return max(a, b) + math.log1p(math.exp(-abs(a - b)))

    half = 0.5 * gap + bend
    truth = np.array([0.0, -0.5 * gap]), np.sqrt([1.0, 0.25 + 2.0 * bend**2 + half**2])
    model = gs.LogDensity(density, dim=2)
    return Target("two bananas", model, _walks(), 20_000, truth, np.zeros(2))


def _of_grid(logs: np.ndarray, axes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and standard deviations of a density in two dimensions, and its values, from a grid."""
    p = np.exp(logs - logs.max())
    p /= p.sum()
    laws = [p.sum(axis=1), p.sum(axis=0)]
    mean = np.array([law @ axis for law, axis in zip(laws, axes, strict=True)])
    square = np.array([law @ axis**2 for law, axis in zip(laws, axes, strict=True)])
    return mean, np.sqrt(square - mean**2), p


def factors_of_data(rng: np.random.Generator) -> Target:
    """The means a and a + b of two groups of data, which may be swapped; many factors of small weight."""
    rows, prior = 4000, 4.0
    axes = [np.linspace(-5.0, 5.0, 201), np.linspace(-8.0, 8.0, 321)]
    a, b = axes[0][:, None], axes[1][None, :]
    while True:
        data = np.concatenate([rng.normal(-2.0, 1.0, rows // 2), rng.normal(2.0, 1.0, rows // 2)])
        worth, away = float(rng.uniform(20.0, 40.0)), float(rng.uniform(-8.0, 8.0))
        logs = -0.5 * (((a - away) / prior) ** 2 + (b / prior) ** 2)
        for value in data:
            logs = logs + worth / rows * np.logaddexp(-0.5 * (value - a) ** 2, -0.5 * (value - a - b) ** 2)
        mean, sds, p = _of_grid(logs, axes)
        if 0.05 <= p[:, axes[1] > 0.0].sum() <= 0.95:
            break
    factors = [
        gs.factors.mixture_factors(["a", "b"], data, 1.0, weight=worth / rows),
        gs.factors.normal_factors(["a", "b"], [away, 0.0], prior),
    ]
    model = gs.ContinuousModel({"a": gs.Interval(-5.0, 5.0), "b": gs.Interval(-8.0, 8.0)}, factors)
    kernels = {"PoissonMH": gs.kernels.PoissonMH(), "TunaMH": gs.kernels.TunaMH(), "Metropolis": gs.Metropolis()}
    return Target("factors of data", model, kernels, 3000, (mean, sds), np.array([-2.0, 4.0]))


def rows_of_data(rng: np.random.Generator) -> Target:
    """A number of which data show only the square, and the slope of a regression."""
    rows = int(rng.integers(100, 400))
    size, prior = float(rng.uniform(1.5, 4.0)), float(rng.uniform(0.2, 0.8))
    lean = float(rng.uniform(-1.4, 1.4)) / size
    seen = size * rng.normal(size=rows)
    value = 0.5 * size**2 + seen + rng.normal(size=rows)

    def log_prior(x: Any) -> Any:
        return lean * x[0] - 0.5 * (prior * x[0]) ** 2 - 0.125 * x[1] ** 2

    def prior_slope(x: Any) -> Any:
        return np.array([lean - prior**2 * x[0], -0.25 * x[1]])

    def likelihood(x: Any, row: Any) -> Any:
        return -0.5 * (row[1] - 0.5 * x[0] ** 2 - x[1] * row[0]) ** 2

    def slope(x: Any, row: Any) -> Any:
        d = row[1] - 0.5 * x[0] ** 2 - x[1] * row[0]
        return np.array([d * x[0], d * row[0]])

    axes = [np.linspace(-6.0, 6.0, 2401), np.linspace(0.5, 1.5, 1001)]
    a, b = axes[0][:, None], axes[1][None, :]
    half = 0.5 * a**2
    squares = (value @ value - 2.0 * half * value.sum() + rows * half**2) - 2.0 * b * (value @ seen)
    squares = squares + 2.0 * half * b * seen.sum() + b**2 * (seen @ seen)
    mean, sds, _ = _of_grid(lean * a - 0.5 * (prior * a) ** 2 - 0.125 * b**2 - 0.5 * squares, axes)
    data = np.stack([seen, value], axis=1)
    model = gs.DataDensity(log_prior, likelihood, data, prior_grad=prior_slope, likelihood_grad=slope, dim=2)
    step, home = 0.15 / (rows * size**2), np.array([-size, 1.0])
    kernels = {
        **_walks(),
        "MALA": gs.MALA(),
        "ULA": gs.kernels.ULA(step),
        "SGLD": gs.kernels.SGLD(step, batch=rows // 2, control_variates=home),
    }
    return Target("rows of data", model, kernels, 10_000, (mean, sds), home)


# ---- modes that weigh little


def _weak(rng: np.random.Generator, modes: int) -> np.ndarray:
    """Return weights of which the last is between 0.02 and 0.05, and the others are larger."""
    last = float(rng.uniform(0.02, 0.05))
    while True:
        rest = (1.0 - last) * rng.dirichlet(np.ones(modes - 1))
        if rest.min() >= 0.05:
            return np.append(rest, last)


def a_weak_normal(rng: np.random.Generator) -> Target:
    n = int(rng.integers(1, 5))
    w = _weak(rng, 2)
    means = _apart(rng, 2, n, 9.0, 100.0)
    model = gs.LogDensity(_normal_mixture(w, means, np.stack([np.eye(n)] * 2)), dim=n)
    truth = _mixture_moments(w, means, np.ones((2, n)))
    return Target("a weak normal", model, _walks(), 4000, truth, means[0])


def a_weak_narrow_normal(rng: np.random.Generator) -> Target:
    n = int(rng.integers(1, 5))
    w = _weak(rng, 2)
    sds = np.array([1.0, float(rng.uniform(0.3, 1.0))])
    means = _apart(rng, 2, n, 9.0, 60.0)
    model = gs.LogDensity(_normal_mixture(w, means, np.stack([np.eye(n) / sd for sd in sds])), dim=n)
    truth = _mixture_moments(w, means, np.repeat(sds[:, None], n, axis=1))
    return Target("a weak narrow normal", model, _walks(), 4000, truth, means[0])


def a_weak_well(rng: np.random.Generator) -> Target:
    """Between bounds, as factors."""
    w, gap = _weak(rng, 2), float(rng.uniform(9.0, 30.0))
    lean = math.log(w[1] / w[0])

    def well(v: Any) -> Any:
        a, b = -0.5 * v[0] ** 2, -0.5 * (v[0] - gap) ** 2 + lean
        return max(a, b) + math.log1p(math.exp(-abs(a - b)))

    factors = [(well, [0]), gs.factors.normal_factors([1], 0.0, 1.0)]
    model = gs.ContinuousModel(2, factors, states=gs.Interval(-10.0, 40.0))
    kernels = {**_walks(), "ContinuousGibbs": gs.kernels.ContinuousGibbs()}
    mean, sds = _mixture_moments(w, np.array([[0.0, 0.0], [gap, 0.0]]), np.ones((2, 2)))
    return Target("a weak well", model, kernels, 4000, (mean, sds), np.zeros(2))


UNIMODAL = (
    a_normal,
    a_logistic_regression,
    a_regression_of_factors,
    a_hierarchy,
    a_funnel,
    a_banana,
    a_bounded_density,
    a_hidden_markov_model,
    conditionals,
    a_mixed_model,
)
MULTIMODAL = (
    two_normals,
    many_normals,
    unequal_normals,
    correlated_normals,
    a_mixture_of_factors,
    heavy_tails,
    switched_labels,
    conditionals_of_a_mixture,
    a_mixed_model_with_modes,
    two_bananas,
)
OF_DATA = (factors_of_data, rows_of_data)
WEAK = (a_weak_normal, a_weak_narrow_normal, a_weak_well)
SUITES: dict[str, tuple[Callable[[np.random.Generator], Target], ...]] = {
    "unimodal": UNIMODAL,
    "multimodal": MULTIMODAL,
    "of data": OF_DATA,
    "weak": WEAK,
    "bugs": bugs_targets.MULTIMODAL,
}
_STREAMS = {"multimodal": 0, "unimodal": 1, "of data": 2, "weak": 3, "bugs": 4}


def make(suite: str, number: int) -> Target:
    """Return a target of a suite by its number."""
    if suite == "examples":
        return bugs_targets.an_example(number)
    families = SUITES[suite]
    return families[number % len(families)](np.random.default_rng([number, _STREAMS[suite]]))


def model_numbers(model: Any) -> np.ndarray:
    """Return which sites of a model are numbers."""
    return np.asarray(model.domains.numbers, float)


def moments(model: Any, result: gs.Result) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of all numbers of a model, or of those that are monitored."""
    table = result.marginals
    sites = model.monitored_sites if isinstance(model, BugsModel) else result.domains.names.all()
    names = [name for name in sites if "sd" in table[name]]
    return np.array([table[name]["mean"] for name in names]), np.array([table[name]["sd"] for name in names])


def run(target: Target, kernel: Any, seed: int, sweeps: int) -> gs.Result:
    """Sample a target once."""
    kernel, how = kernel if isinstance(kernel, tuple) else (kernel, {})
    if target.home is not None and seed % 2 == 0:
        how = {"start": np.add(target.home, 0.3 * model_numbers(target.model))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(target.model, BugsModel):
            return target.model.sample(sweeps=sweeps, rng=seed, progress=False, threads=1, **how)
        return gs.sample(target.model, kernel, sweeps=sweeps, rng=seed, progress=False, threads=1, **how)


def try_target(suite: str, number: int, seeds: range, done: set[tuple[Any, ...]], only: str) -> Any:
    """Yield a row for each run of a target."""
    target = make(suite, number)
    truth = target.truth
    for name, kernel in target.kernels.items():
        if only not in target.name and only not in name:
            continue
        for seed in seeds:
            if (suite, number, name, seed) in done:
                continue
            if truth is None:
                first = next(iter(target.kernels.values()))
                truth = moments(target.model, run(target, first, 1_000_000 + number, 8 * target.sweeps))
            begun = time.monotonic()
            about = {"suite": suite, "number": number, "target": target.name, "kernel": name, "seed": seed}
            try:
                result = run(target, kernel, seed, target.sweeps)
            except gs.GibbsiteError as error:
                yield {**about, "failed": str(error)[:300]}
                continue
            mean, sd = moments(target.model, result)
            off = float(np.max(np.abs(mean - truth[0]) / truth[1]))
            wide = float(np.max(np.abs(sd / truth[1] - 1.0)))
            verdict = result.diagnostics
            yield {
                **about,
                "seconds": round(time.monotonic() - begun, 3),
                "off": round(max(off, wide), 4),
                "converged": verdict.converged,
                "look": verdict.dispersed_starts,
                "reasons": list(verdict.reasons),
            }


def is_right(row: dict[str, Any]) -> bool:
    return bool(row["off"] <= OFF)


def report(rows: list[dict[str, Any]]) -> str:
    """Return the table of a campaign."""
    families = defaultdict(list)
    for row in rows:
        families[row["suite"], row["target"]].append(row)
    lines = [
        "| suite | target | runs | right | converged | false | alarms | too short |",
        "|---|---|---|---|---|---|---|---|",
    ]
    totals = [((suite, "all"), [row for row in rows if row["suite"] == suite]) for suite in [*SUITES, "examples"]]
    for (suite, target), all_of in [*sorted(families.items()), *totals]:
        some = [row for row in all_of if "failed" not in row]
        right = [row for row in some if is_right(row)]
        called = [row for row in some if row["converged"]]
        false = [row for row in called if not is_right(row)]
        alarms = [row for row in right if row["look"] == "differs"]
        short = [row for row in some if not row["converged"] and row["look"] != "differs"]
        lines.append(
            f"| {suite} | {target} | {len(all_of)} | {len(right)} | {len(called)} | {len(false)} | "
            f"{len(alarms)} | {len(short)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suite", choices=sorted([*SUITES, "examples"]))
    parser.add_argument("--targets", default="0:40")
    parser.add_argument("--seeds", default="0:1")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="modes.jsonl")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    out = Path(given.out)
    rows = read_rows(out)
    if not given.report:
        done = {(row["suite"], row["number"], row["kernel"], row["seed"]) for row in rows}
        numbers, seeds = (range(*map(int, text.split(":"))) for text in (given.targets, given.seeds))
        with out.open("a") as file:
            for suite in [given.suite] if given.suite else sorted([*SUITES, "examples"]):
                for number in numbers:
                    for row in try_target(suite, number, seeds, done, given.only):
                        rows.append(row)
                        file.write(json.dumps(row) + "\n")
                        file.flush()
                        if "failed" in row or (row["converged"] != is_right(row)):
                            print(row, file=sys.stderr, flush=True)
    print(report(rows))


if __name__ == "__main__":
    main()
