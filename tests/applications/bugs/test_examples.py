"""Posterior means of the classic examples agree with those of long benchmark runs, within 0.15 standard deviations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gibbsite.applications.bugs import read_bugs
from tests.data import DATA, needs_data

HERE = Path(__file__).parent
# file, variant of the model, data, initial values, sweeps of the warmup and after it
SHORT = [
    ("rats", "rats", "rats-data", "rats-init"),
    ("rats", "rats", "ratsmiss-data", "rats-init"),
    ("pump", "pump", "pump-data", "pump-init"),
    ("line", "line", "line-data", "line-inits"),
    ("beetles", "beetles-logit", "beetles-data", "beetles-inits"),
    ("beetles", "beetles-cloglog", "beetles-data", "beetles-inits"),
    ("stagnant", "stagnant2", "stagnant-data", "stagnant-inits3"),
]


def worst(example: dict[str, Any], variant: str, data: str, inits: str | None, sweeps: int) -> float:
    tests = [one for one in example["tests"].values() if one["model"] == variant and one["data"] == data]
    reference = tests[0]["reference"]
    if "?" in reference:  # one quantity, whose name was left out
        reference = {"beta": dict(zip(("mean", "sd"), reference["?"], strict=True))}
    model = read_bugs((HERE / "models" / f"{variant}.bug").read_text(), example["data"][data], list(reference))
    start = None if inits is None else example["inits"][inits]
    result = model.sample(sweeps=sweeps, chains=2, rng=1, inits=start, progress=False)
    return max(abs(result.marginals[name]["mean"] - one["mean"]) / one["sd"] for name, one in reference.items())


@pytest.mark.parametrize(("name", "variant", "data", "inits"), SHORT)
def test_means_of_short_examples(name: str, variant: str, data: str, inits: str) -> None:
    example = json.loads((HERE / "data" / f"{name}.json").read_text())
    assert worst(example, variant, data, inits, 20_000) < 0.15


LONG = [
    ("birats", "birats1", "birats-data", "birats-inits"),
    ("birats", "birats4", "birats-data", "birats-inits"),
    ("asia", "asia", "asia-data", None),
    ("asia", "asia2", "asia2-data", None),
    ("pigs", "pigs", "pigs-data", "pigs-inits"),
    ("leuk", "leuk", "leuk-data", "leuk-init"),
    ("seeds", "seeds", "seeds-data", "seeds-init"),
    ("eyes", "eyes2", "eyes-data", "eyes-inits"),
    ("blocker", "blocker", "blocker-data", "blocker-init"),
    ("bones", "bones", "bones-data", "bones-init"),
]


@pytest.mark.long
@needs_data("bugs")
@pytest.mark.filterwarnings("ignore:the initial value of")
@pytest.mark.parametrize(("name", "variant", "data", "inits"), LONG)
def test_means_of_long_examples(name: str, variant: str, data: str, inits: str | None) -> None:
    with gzip.open(DATA / "bugs" / f"{name}.json.gz") as file:
        example = json.load(file)
    assert worst(example, variant, data, inits, 20_000) < 0.15


@pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")
def test_a_mode_far_from_the_initial_values_is_found() -> None:
    """The conditional of mu has modes at 5 and -5, a thousand standard deviations apart."""
    text = "model { y ~ dnorm(m, 100)  m <- mu * mu  mu ~ dnorm(0, 0.01) }"
    result = read_bugs(text, {"y": 25.0}).sample(inits={"mu": 5.0}, sweeps=2000, rng=1, progress=False)
    assert not result.diagnostics.converged


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", [11, 16])
def test_switched_labels_of_many_data_are_found(seed: int) -> None:
    """A state for each datum: few other chains can be followed, and only those that start at random change the labels."""
    rng = np.random.default_rng(6)
    y = np.concatenate([rng.normal(8.0 * k, 1.0, 150) for k in range(2)])
    text = "for (i in 1:300) { z[i] ~ dcat(p[])  y[i] ~ dnorm(mu[z[i]], 1) }  for (k in 1:2) { mu[k] ~ dnorm(5, 0.01) }"
    model = read_bugs(f"model {{ {text} }}", {"y": y.tolist(), "p": [0.5, 0.5]}, ["mu"])
    result = model.sample(inits={"mu": [0.0, 8.0]}, sweeps=800, rng=seed, progress=False)
    assert not result.diagnostics.converged


def test_vectors_that_are_observed_in_part() -> None:
    """Given y[1] = 1, mu[1] and y[2] are normal; their means are off by 7 standard errors with probability 3e-12."""
    text = "model { y[1:2] ~ dmnorm(mu[], T[,])  for (i in 1:2) { mu[i] ~ dnorm(0, 1) } }"
    data = {"y": [1.0, None], "T": [[1.0, 0.5], [0.5, 1.0]]}
    result = read_bugs(text, data, ["mu", "y"]).sample(sweeps=10_000, rng=1, progress=False)
    table = result.statistics()
    for name, exact in (("mu[1]", 3 / 7), ("mu[2]", 0.0), ("y[2]", -2 / 7)):
        assert abs(table[name]["mean"] - exact) < 7.0 * table[name]["mcse"] + 1e-3
