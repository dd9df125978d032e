"""The derived conditionals as formulas: each says what the textbook says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gibbsite.applications.bugs.model import read_bugs

FILES = Path(__file__).parent


def formulas(text: str, data: Any) -> dict[str, str]:
    return {each.name: each.formula for each in read_bugs(text, data).conditionals()}


def of_example(model: str, name: str) -> dict[str, str]:
    data = json.loads((FILES / "data" / f"{name}.json").read_text())["data"]
    return formulas((FILES / "models" / f"{model}.bug").read_text(), next(iter(data.values())))


def test_conjugate_gamma_of_the_examples() -> None:
    rats = of_example("rats", "rats")
    assert rats["tau.c"] == "Gamma(0.001 + 150 / 2, 0.001 + sum((Y[i, j] - mu[i, j])^2) / 2)"
    pump = of_example("pump", "pump")
    assert pump["theta[i]"] == "Gamma(alpha + x[i], beta + t[i])"
    assert pump["beta"] == "Gamma(0.1 + 10 * alpha, 1.0 + sum(theta[i]))"
    assert pump["alpha"] == "Exponential(1.0) * prod Gamma(theta[i]; alpha, beta)"
    assert of_example("seeds", "seeds")["tau"] == "Gamma(0.001 + 21 / 2, 0.001 + sum(b[i]^2) / 2)"


@pytest.mark.parametrize(
    ("relations", "prior", "expected"),
    [
        ("y[i] ~ dpois(r)", "r ~ dexp(2)", "Gamma(1 + sum(y[i]), 2 + 3)"),
        ("y[i] ~ dpois(m[i]); m[i] <- w[i] * r / 2", "r ~ dchisqr(4)", "Gamma(4 / 2 + sum(y[i]), 0.5 + sum(w[i] / 2))"),
        ("y[i] ~ dexp(r * w[i])", "r ~ dunif(1, 3)", "Gamma(1 + 3, 0 + sum(w[i] * y[i])) T(1, 3)"),
        ("y[i] ~ dexp(r)", "r ~ dpar(2, 0.5)", "Gamma(-2 + 3, 0 + sum(y[i])) T(0.5, )"),
        ("y[i] ~ dexp(r)", "r ~ dgamma(1, 1) T(, 4)", "Gamma(1 + 3, 1 + sum(y[i])) T(, 4)"),
        ("y[i] ~ dnorm(0, r)", "r ~ dgamma(1, 1)", "Gamma(1 + 3 / 2, 1 + sum(y[i]^2) / 2)"),
        ("y[i] ~ dweib(2, r)", "r ~ dgamma(1, 1)", "Gamma(1 + 3, 1 + sum(y[i]^2))"),
        ("y[i] ~ ddexp(1, r)", "r ~ dgamma(1, 1)", "Gamma(1 + 3, 1 + sum(abs(y[i] - 1)))"),
        ("y[i] ~ dgamma(a[i], r)", "r ~ dgamma(1, 1)", "Gamma(1 + sum(a[i]), 1 + sum(y[i]))"),
        ("y[i] ~ dbin(r, 9)", "r ~ dbeta(1, 2)", "Beta(1 + sum(y[i]), 2 + sum(9 - y[i]))"),
        ("y[i] ~ dbern(q); z[i] <- 1", "r ~ dbeta(1, 2); q <- 1 - r", "Beta(1 + sum(1 - y[i]), 2 + sum(y[i]))"),
    ],
)
def test_conjugate_updates(relations: str, prior: str, expected: str) -> None:
    data = {"y": [1, 0, 1] if "dbern" in relations else [1, 2, 3], "w": [1, 2, 4], "a": [1, 1, 2]}
    used = {name: value for name, value in data.items() if name == "y" or f"{name}[" in relations}
    assert formulas(f"model {{ for (i in 1:3) {{ {relations} }}  {prior} }}", used)["r"] == expected


def test_only_instances_of_a_group_are_counted() -> None:
    text = "model { for (i in 1:4) { y[i] ~ dpois(r[g[i]]) }  for (k in 1:2) { r[k] ~ dgamma(1, 2) } }"
    found = formulas(text, {"y": [1, 2, 3, 4], "g": [1, 1, 1, 2]})
    assert found == {"r[k]": "Gamma(1 + sum(equals(g[i], k) * y[i]), 2 + sum(equals(g[i], k)))"}


def test_latex() -> None:
    text = "model { for (i in 1:3) { y[i] ~ dnorm(0, tau) }  tau ~ dgamma(1, 1) }"
    (found,) = read_bugs(text, {"y": [1, 2, 3]}).conditionals()
    assert found.latex == (
        r"\tau \mid \cdot \sim \mathrm{Gamma}\left(1 + \frac{3}{2}, "
        r"1 + \frac{\sum\left(y_{i}^{2}\right)}{2}\right)"
    )
    assert str(found).endswith("; conjugate")
