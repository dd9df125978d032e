"""Models in the BUGS language with several modes and with one, for the campaign of modes.

The modes are 10 to 1,000 standard deviations apart, and weigh at least 0.05. Their means and standard deviations are
exact, or come from a grid. Each model runs with initial values in one of its modes and without any. The posteriors with
one mode are the classic examples, whose means and standard deviations come from long runs of another program.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite.applications.bugs import read_bugs
from tests.campaigns.targets import Target
from tests.data import DATA

EXAMPLES = Path(__file__).parents[1] / "applications" / "bugs" / "models"
_LEAST = 0.05  # weight of a mode
#: Examples that are not among these: references of other quantities, or models of which there are several modes.
_LEFT_OUT = ("air", "kidney", "cervix")

Moments = tuple[np.ndarray, np.ndarray]


def _weight(rng: np.random.Generator) -> float:
    return float(rng.uniform(_LEAST, 1.0 - _LEAST))


def _distance(rng: np.random.Generator) -> float:
    """Return how many standard deviations there are between two modes."""
    return float(10.0 ** rng.uniform(1.0, 3.0))


def _mixed(weights: Any, means: Any, sds: Any) -> Moments:
    """Return the moments of a mixture; means and standard deviations are (modes, numbers)."""
    weights, means, sds = (np.asarray(each, float) for each in (weights, means, sds))
    mean = weights @ means
    return mean, np.sqrt(np.maximum(weights @ (sds**2 + means**2) - mean**2, 0.0))


def _both_ways(inits: dict[str, Any]) -> dict[str, Any]:
    return {"with inits": (None, {"inits": inits}), "without inits": None}


def _target(
    name: str, text: str, data: dict[str, Any], monitor: list[str], inits: Any, truth: Moments, sweeps: int = 2000
) -> Target:
    return Target(name, read_bugs(f"model {{ {text} }}", data, monitor), _both_ways(inits), sweeps, truth)


def _on_lines(logs: Callable[[np.ndarray], np.ndarray], middles: list[float], width: float) -> Moments:
    """Return the moments of a density in one dimension that lies about some places."""
    x = np.concatenate([middle + np.linspace(-width, width, 20_001) for middle in middles])
    height = logs(x)
    p = np.exp(height - height.max())
    p /= p.sum()
    mean = float(p @ x)
    return np.array([mean]), np.array([math.sqrt(p @ (x - mean) ** 2)])


def a_square(rng: np.random.Generator) -> Target:
    """Data show the square of a number."""
    size, weight, away = float(rng.uniform(1.0, 8.0)), _weight(rng), _distance(rng)
    sd = 2.0 * size / away  # of the number
    tau = (2.0 * size * sd) ** -2
    prior = 1.0 / (3.0 * size) ** 2
    lean = math.log(weight / (1.0 - weight)) / (2.0 * size * prior)

    def logs(x: np.ndarray) -> np.ndarray:
        return -0.5 * tau * (size**2 - x**2) ** 2 - 0.5 * prior * (x - lean) ** 2

    truth = _on_lines(logs, [-size, size], min(10.0 * sd, size))
    text = "y ~ dnorm(m, tau)  m <- pow(mu, 2)  mu ~ dnorm(lean, prior)"
    data = {"y": size**2, "tau": tau, "lean": lean, "prior": prior}
    return _target("square", text, data, ["mu"], {"mu": size}, truth)


def a_square_and_its_precision(rng: np.random.Generator) -> Target:
    """Data show the square of a number, and their precision is not known."""
    size, rows = float(rng.uniform(1.0, 5.0)), 30
    y = size**2 + rng.normal(0.0, float(rng.uniform(0.02, 0.5)) * size, rows)
    rate, squares = 0.5 * ((y - y.mean()) ** 2).sum(), float(y.mean())

    def logs(x: np.ndarray) -> np.ndarray:  # the precision, gamma(1, 0.01) before the data, summed over
        return -(1.0 + 0.5 * rows) * np.log(0.01 + rate + 0.5 * rows * (squares - x**2) ** 2) - 0.5 * 0.01 * x**2

    width = 0.99 * math.sqrt(squares)
    found = _on_lines(logs, [-math.sqrt(squares), math.sqrt(squares)], width)
    text = "for (i in 1:N) { y[i] ~ dnorm(m, tau) }  m <- mu * mu  mu ~ dnorm(0, 0.01)  tau ~ dgamma(1, 0.01)"
    return _target("square, unknown precision", text, {"y": y.tolist(), "N": rows}, ["mu"], {"mu": size}, found)


def a_product(rng: np.random.Generator) -> Target:
    """Data show a product and the ratio of its factors, but not their sign."""
    a, b = (float(v) for v in rng.uniform(0.8, 4.0, 2))
    weight, away = _weight(rng), _distance(rng)
    tau = 0.125 * (away / (a * b)) ** 2  # so that both factors are known to the same share of themselves
    sds = 1.0 / (math.sqrt(2.0 * tau) * np.array([b, a]))
    prior = 0.04
    lean = math.log(weight / (1.0 - weight)) / (2.0 * a * prior)
    grid = np.linspace(-8.0, 8.0, 401)
    sides = []
    for sign in (1.0, -1.0):
        x, y = sign * (a + grid * sds[0])[:, None], sign * (b + grid * sds[1])[None, :]
        logs = -0.5 * tau * ((x * y - a * b) ** 2 + (x - a / b * y) ** 2 * b**2)
        logs = logs - 0.5 * prior * ((x - lean) ** 2 + y**2)
        sides.append((logs, x, y))
    top = max(logs.max() for logs, _, _ in sides)
    shares = [np.exp(logs - top) for logs, _, _ in sides]
    total = sum(share.sum() for share in shares)
    pairs = list(zip(shares, sides, strict=True))
    mean = np.array([sum((p * side[k]).sum() for p, side in pairs) / total for k in (1, 2)])
    square = np.array([sum((p * side[k] ** 2).sum() for p, side in pairs) / total for k in (1, 2)])
    text = (
        "y ~ dnorm(m, tau)  m <- a * b  z ~ dnorm(d, tau)  d <- ratio * (a - slope * b)"
        "  a ~ dnorm(lean, prior)  b ~ dnorm(0, prior)"
    )
    data = {"y": a * b, "z": 0.0, "tau": tau, "ratio": b, "slope": a / b, "lean": lean, "prior": prior}
    return _target("product", text, data, ["a", "b"], {"a": a, "b": b}, (mean, np.sqrt(square - mean**2)))


def switched_labels(rng: np.random.Generator) -> Target:
    """Two groups of data, whose means may be swapped."""
    n = [int(v) for v in rng.integers(20, 60, 2)]
    gap = float(rng.uniform(6.0, 30.0))
    groups = [rng.normal(0.0, 1.0, n[0]), rng.normal(gap, 1.0, n[1])]
    precision = 1e-2

    def moments(order: tuple[int, int], centres: tuple[float, float]) -> tuple[float, list[float], list[float]]:
        """Return the log-evidence of groups in an order, and the moments of both means."""
        total, means, sds = 0.0, [], []
        for centre, k in zip(centres, order, strict=True):
            y, of = groups[k], precision + n[k]
            mean = (precision * centre + groups[k].sum()) / of
            total += 0.5 * math.log(precision / of) - 0.5 * (precision * centre**2 + y @ y - of * mean**2)
            means.append(mean)
            sds.append(of**-0.5)
        return total, means, sds

    while True:
        centres = (float(rng.normal(0.5 * gap, 3.0)), float(rng.normal(0.5 * gap, 3.0)))
        both = [moments(order, centres) for order in ((0, 1), (1, 0))]
        weight = 1.0 / (1.0 + math.exp(both[1][0] - both[0][0]))
        if _LEAST <= weight <= 1.0 - _LEAST:
            break
    truth = _mixed([weight, 1.0 - weight], [side[1] for side in both], [side[2] for side in both])
    text = (
        "for (i in 1:N) { z[i] ~ dcat(p[])  y[i] ~ dnorm(mu[z[i]], 1) }"
        "  for (k in 1:2) { mu[k] ~ dnorm(centre[k], 0.01) }"
    )
    data = {"y": np.concatenate(groups).tolist(), "N": sum(n), "p": [0.5, 0.5], "centre": list(centres)}
    return _target("switched labels", text, data, ["mu"], {"mu": both[0][1]}, truth)


def a_choice_of_normals(rng: np.random.Generator) -> Target:
    """A label, and a number whose mean depends on it."""
    modes = int(rng.integers(2, 4))
    while True:
        weights = rng.dirichlet(np.ones(modes))
        if weights.min() >= _LEAST:
            break
    means = np.concatenate([[0.0], np.cumsum([_distance(rng) for _ in range(modes - 1)])])
    truth = _mixed(weights, means[:, None], np.ones((modes, 1)))
    text = "z ~ dcat(p[])  x ~ dnorm(mu[z], 1)"
    data = {"p": weights.tolist(), "mu": means.tolist()}
    return _target("normals, dcat", text, data, ["x"], {"x": 0.0, "z": 1}, truth)


def a_mixture_of_normals(rng: np.random.Generator) -> Target:
    """Numbers whose law is a mixture of two normals."""
    n, weight, away = int(rng.integers(1, 4)), _weight(rng), _distance(rng)
    spread = math.exp(rng.uniform(-1.0, 1.0))
    one = _mixed([weight, 1.0 - weight], [[0.0], [away]], [[1.0], [spread]])
    text = "for (i in 1:N) { x[i] ~ dnormmix(mu[], tau[], p[]) }"
    data = {"N": n, "mu": [0.0, away], "tau": [1.0, spread**-2], "p": [weight, 1.0 - weight]}
    return _target("normals, dnormmix", text, data, ["x"], {"x": [0.0] * n}, (one[0].repeat(n), one[1].repeat(n)))


def a_probit_without_sign(rng: np.random.Generator) -> Target:
    """A probit regression on the square of a coefficient."""
    rows, size = 400, float(rng.uniform(0.8, 1.5))
    seen = rng.normal(size=rows)
    y = (rng.normal(size=rows) < size**2 * seen).astype(float)
    weight = _weight(rng)
    lean = math.log(weight / (1.0 - weight)) / (2.0 * size)
    from scipy.special import log_ndtr

    def logs(x: np.ndarray) -> np.ndarray:
        t = (x**2)[:, None] * ((2.0 * y - 1.0) * seen)[None, :]
        found: np.ndarray = log_ndtr(t).sum(axis=1) - 0.5 * (x - lean) ** 2
        return found

    side = np.linspace(0.02, 3.0, 600)
    x = np.concatenate([-side, side])
    height = np.concatenate([logs(part) for part in np.array_split(x, 20)])
    p = np.exp(height - height.max())
    p /= p.sum()
    mean = p @ x
    truth = np.array([mean]), np.sqrt([p @ (x - mean) ** 2])
    text = (
        "for (i in 1:N) { y[i] ~ dbern(q[i])  q[i] <- phi(slope * x[i]) }  slope <- beta * beta  beta ~ dnorm(lean, 1)"
    )
    data = {"y": y.tolist(), "x": seen.tolist(), "N": rows, "lean": lean}
    return _target("probit without sign", text, data, ["beta"], {"beta": size}, truth)


def factors_without_sign(rng: np.random.Generator) -> Target:
    """Scores of persons and loadings of questions, whose signs may be changed together."""
    persons, questions = 25, 4
    loading = rng.uniform(1.0, 2.5, questions) * rng.choice([-1.0, 1.0], questions)
    score = rng.normal(size=persons)
    y = score[:, None] * loading + rng.normal(0.0, 0.3, (persons, questions))
    text = (
        "for (i in 1:N) { f[i] ~ dnorm(0, 1)  for (j in 1:M) { y[i,j] ~ dnorm(m[i,j], 11)  m[i,j] <- a[j] * f[i] } }"
        "  for (j in 1:M) { a[j] ~ dnorm(0, 0.25) }"
    )
    data = {"y": y, "N": persons, "M": questions}
    # by symmetry the means are zero; the squares of the loadings are those of a singular vector, nearly
    size = np.linalg.norm(y, axis=0) / math.sqrt(persons)
    return _target(
        "factors without sign", text, data, ["a"], {"a": loading.tolist()}, (np.zeros(questions), size), 30_000
    )


MULTIMODAL = (
    a_square,
    a_square_and_its_precision,
    a_product,
    switched_labels,
    a_choice_of_normals,
    a_mixture_of_normals,
    a_probit_without_sign,
    factors_without_sign,
)


@functools.cache
def _examples() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the variant, the file and the test of each classic example."""
    found = []
    for path in sorted((DATA / "bugs").glob("*.json.gz")):
        with gzip.open(path) as file:
            example = json.load(file)
        for test in example["tests"].values():
            variant, data = test.get("model"), test.get("data")
            if variant and data and "?" not in test["reference"] and example["name"] not in _LEFT_OUT:
                found.append((variant, example, test))
    return found


def an_example(number: int) -> Target:
    """Return one of the classic examples; each of them has one mode."""
    examples = _examples()
    variant, example, test = examples[number % len(examples)]
    reference = {name: each for name, each in test["reference"].items() if name != "deviance"}  # up to a constant
    model = read_bugs((EXAMPLES / f"{variant}.bug").read_text(), example["data"][test["data"]], list(reference))
    inits = [each for name, each in example["inits"].items()][:1]
    kernels = _both_ways(inits[0]) if inits else {"without inits": None}
    truth = (
        np.array([each["mean"] for each in reference.values()]),
        np.array([each["sd"] for each in reference.values()]),
    )
    return Target(variant, model, kernels, 4000, truth)
