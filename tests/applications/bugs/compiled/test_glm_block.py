"""Updates of linear predictors leave the posterior distribution unchanged: moments agree with those by quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.compiled import units

X = np.array([-1.5, -0.5, 0.2, 1.0, 2.0])
Y = np.array([0.0, 1.0, 1.0, 3.0, 2.0])
SIZE = 3.0

MEANS = {
    "log": ("y[i] ~ dpois(p[i])", lambda eta: stats.poisson.logpmf(Y, np.exp(eta))),
    "logit": ("y[i] ~ dbin(p[i], 3)", lambda eta: stats.binom.logpmf(Y, SIZE, special.expit(eta))),
    "probit": ("y[i] ~ dbin(p[i], 3)", lambda eta: stats.binom.logpmf(Y, SIZE, special.ndtr(eta))),
    "cloglog": ("y[i] ~ dbin(p[i], 3)", lambda eta: stats.binom.logpmf(Y, SIZE, -np.expm1(-np.exp(eta)))),
}


def moments(link: str) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of both coefficients, by quadrature on a grid."""
    a, b = np.linspace(-6.0, 5.0, 441), np.linspace(-4.0, 6.0, 401)
    log = np.array([[MEANS[link][1](s + t * X).sum() for t in b] for s in a])
    log += stats.norm.logpdf(a, 0.0, 2.0)[:, None] + stats.norm.logpdf(b, 0.5, 1.5)[None]
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    found = {}
    for name, grid, mass in (("a", a, weight.sum(axis=1)), ("b", b, weight.sum(axis=0))):
        mean = float(mass @ grid)
        found[name] = (mean, float(np.sqrt(mass @ (grid - mean) ** 2)))
    return found


@pytest.mark.parametrize("link", MEANS)
def test_moments_are_those_by_quadrature(link: str) -> None:
    """Six standard errors: the probability of a false alarm is below 1e-7."""
    text = f"""model {{
        for (i in 1:5) {{ {MEANS[link][0]}  {link}(p[i]) <- a + b * x[i] }}
        a ~ dnorm(0, 0.25)
        b ~ dnorm(0.5, 1 / 2.25)
    }}"""
    model = read_bugs(text, {"x": X, "y": Y})
    assert model.derived.unit[units.UPDATE] == units.PREDICTOR_BLOCK
    result = model.sample(sweeps=20_000, rng=1, chains=4, progress=False)
    for name, (mean, sd) in moments(link).items():
        assert abs(result.marginals[name]["mean"] - mean) < 6.0 * result.mcse[name]["mean"]
        assert abs(result.marginals[name]["sd"] - sd) < 6.0 * result.mcse[name]["sd"]
        assert result.ess[name]["mean"] > 5_000  # of 80,000


def test_rows_of_zeros_count() -> None:
    """An observation whose predictor an unknown does not reach is a factor all the same."""
    text = "model { for (i in 1:2) { y[i] ~ dpois(exp(a + b * x[i])) }  a ~ dnorm(0, 1)  b ~ dnorm(0, 1) }"
    model = read_bugs(text, {"x": [0.0, 1.0], "y": [4, 1]})
    result = model.sample(sweeps=20_000, rng=1, chains=4, progress=False)
    grid = np.linspace(-5.0, 5.0, 401)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log: Any = stats.poisson.logpmf(4, np.exp(a)) + stats.poisson.logpmf(1, np.exp(a + b)) - (a**2 + b**2) / 2.0
    weight = np.exp(log - log.max())
    for name, values in (("a", a), ("b", b)):
        mean = float((weight * values).sum() / weight.sum())
        assert abs(result.marginals[name]["mean"] - mean) < 6.0 * result.mcse[name]["mean"]
