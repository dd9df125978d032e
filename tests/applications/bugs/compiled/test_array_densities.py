"""Log-densities of vectors and matrices, and of numbers with parameters that are vectors, are those of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.starts import log_density
from tests.applications.bugs.programs import values_at

RNG = np.random.default_rng(7)
A = RNG.normal(size=(3, 6))
T, M, X = A @ A.T, RNG.normal(size=3), RNG.normal(size=3)
Q = np.linalg.inv(T)
P = np.array([0.2, 0.5, 0.3])


def density(relation: str, data: dict[str, Any], x: Any) -> float:
    model = read_bugs(f"model {{ {relation}  other ~ dnorm(0, 1) }}", data)
    values = values_at(model, {"x": x, "other": 0.0})
    return log_density(model, values) - stats.norm.logpdf(0.0)


CASES = [
    ("x[1:3] ~ dmnorm(m[], T[,])", {"m": M, "T": T}, X, stats.multivariate_normal(M, Q).logpdf(X)),
    ("x[1:3] ~ dmnorm.vcov(m[], V[,])", {"m": M, "V": T}, X, stats.multivariate_normal(M, T).logpdf(X)),
    ("x[1:3] ~ dmt(m[], T[,], 4.5)", {"m": M, "T": T}, X, stats.multivariate_t(M, Q, df=4.5).logpdf(X)),
    ("x[1:3, 1:3] ~ dwish(R[,], 4.5)", {"R": T}, Q, stats.wishart(4.5, np.linalg.inv(T)).logpdf(Q)),
    ("x[1:3] ~ ddirch(a[])", {"a": [0.4, 2.0, 5.0]}, P, stats.dirichlet([0.4, 2.0, 5.0]).logpdf(P)),
    ("x[1:3] ~ ddirch(a[])", {"a": [0.4, 0.0, 5.0]}, [0.2, 0.0, 0.8], stats.dirichlet([0.4, 5.0]).logpdf([0.2, 0.8])),
    ("x[1:3] ~ ddirch(a[])", {"a": [0.4, 0.0, 5.0]}, P, -np.inf),
    ("x ~ dcat(p[])", {"p": 7.0 * P}, 2.0, np.log(0.5)),
    ("x ~ dcat(p[])", {"p": P}, 4.0, -np.inf),
    ("x ~ dcat(p[])", {"p": [0.0, 0.5, 0.5]}, 1.0, -np.inf),
    (
        "x ~ dnormmix(m[], tau[], p[])",
        {"m": M, "tau": [1.0, 2.0, 0.3], "p": 3.0 * P},
        0.4,
        special.logsumexp(stats.norm.logpdf(0.4, M, np.array([1.0, 2.0, 0.3]) ** -0.5), b=P),
    ),
    (
        "x ~ dnormmix(m[], tau[], p[])",
        {"m": M, "tau": [1.0, 2.0, 3.0], "p": P},
        400.0,
        special.logsumexp(stats.norm.logpdf(400.0, M, np.array([1.0, 2.0, 3.0]) ** -0.5), b=P),
    ),
    ("x ~ dinterval(1.7, c[])", {"c": [1.0, 2.0]}, 1.0, 0.0),
    ("x ~ dinterval(1.7, c[])", {"c": [1.0, 2.0]}, 2.0, -np.inf),
    ("x ~ dinterval(1, 1)", {}, 0.0, 0.0),
    ("x ~ dinterval(1, 1)", {}, 1.0, -np.inf),
]


@pytest.mark.parametrize(("relation", "data", "x", "wanted"), CASES)
def test_log_densities(relation: str, data: dict[str, Any], x: Any, wanted: float) -> None:
    assert density(relation, data, x) == pytest.approx(wanted, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("x", [[2, 5, 3], [0, 0, 10], [1, 2, 3], [2.5, 4.5, 3]])
def test_multinomial(x: list[float]) -> None:
    text = "model { x[1:3] ~ dmulti(p[], 10)  p[1:3] ~ ddirch(a[]) }"
    model = read_bugs(text, {"a": np.ones(3), "x": [2, 5, 3]})
    values = values_at(model, {"p": P})
    values[model.assembly.offset["x"] :][:3] = x
    wanted = stats.dirichlet(np.ones(3)).logpdf(P) + stats.multinomial(10, P).logpmf(x) if x[0] != 2.5 else -np.inf
    assert log_density(model, values) == pytest.approx(wanted, rel=1e-10)


def test_matrices_that_are_not_positive_definite_have_no_density() -> None:
    text = "model { x[1:2] ~ dmnorm(m[], T[,])  T[1:2, 1:2] ~ dwish(R[,], 3) }"
    model = read_bugs(text, {"m": [0, 0], "R": np.eye(2)})
    assert not log_density(model, values_at(model, {"x": [0, 1], "T": [[1, 2], [2, 1]]})) > -np.inf
    assert log_density(model, values_at(model, {"x": [0, 1], "T": [[2, 1], [1, 2]]})) > -np.inf
