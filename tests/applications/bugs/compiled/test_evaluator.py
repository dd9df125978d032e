"""Every operation of the compiled evaluator gives the numbers of its NumPy version."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.functions import FUNCTIONS, REDUCTIONS, SYNONYMS
from tests.applications.bugs.programs import computed

N = 150  # more than a register holds
POSITIVE, PROBABILITY, UNIT, ABOVE_ONE = (1e-3, 30.0), (1e-6, 1 - 1e-6), (-1.0, 1.0), (1.0, 30.0)
RANGES = {
    **dict.fromkeys(("log", "sqrt", "loggam", "logfact"), POSITIVE),
    **dict.fromkeys(("logit", "probit", "cloglog"), PROBABILITY),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), UNIT),
    "arccosh": ABOVE_ONE,
}
OPERATORS = ("+", "-", "*", "/", "^", ">", ">=", "<", "<=", "!=", "&&", "||")


def arguments(name: str, seed: int) -> np.ndarray:
    low, high = RANGES.get(name, (-4.0, 4.0))
    found = np.random.default_rng(seed).uniform(low, high, N)
    if name in ("round", "trunc", "step", "!"):
        found[:40] = np.round(2.0 * found[:40]) / 2.0  # halves and zeros
    return found


@pytest.mark.parametrize("name", [name for name, each in FUNCTIONS.items() if each.arity == 1 and each.number < 0])
def test_functions_of_one_number(name: str) -> None:
    call = "-x[i]" if name == "neg" else f"{name}(x[i])"
    text = f"model {{ for (i in 1:{N}) {{ x[i] ~ dnorm(0, 0.001)  y[i] <- {call} }} }}"
    x = arguments(name, 1)
    found = computed(text, {}, {"x": x})["y"]
    np.testing.assert_allclose(found, FUNCTIONS[name].compute(x), rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize("name", [name for name, each in FUNCTIONS.items() if each.arity == 2 and each.number < 0])
def test_functions_of_two_numbers(name: str) -> None:
    call = f"x[i] {name} z[i]" if name in OPERATORS else f"{name}(x[i], z[i])"
    text = f"model {{ for (i in 1:{N}) {{ x[i] ~ dnorm(0, 0.001)  z[i] ~ dnorm(0, 0.001)  y[i] <- {call} }} }}"
    rng = np.random.default_rng(2)
    x, z = rng.uniform(-3.0, 3.0, N), rng.uniform(-3.0, 3.0, N)
    if name in ("&&", "||"):
        x, z = (x > 0.0) * 1.0, (z > 0.0) * 2.0
    x[:20] = z[:20]
    if name == "^":
        x = np.abs(x)
        z[:30] = 2.0
    found = computed(text, {}, {"x": x, "z": z})["y"]
    np.testing.assert_allclose(found, FUNCTIONS[name].compute(x, z), rtol=2e-13, atol=1e-300)


def test_choices_and_numbers_that_are_equal_up_to_rounding() -> None:
    text = """model { for (i in 1:5) { x[i] ~ dnorm(0, 0.001) z[i] ~ dnorm(0, 0.001)
      y[i] <- ifelse(x[i] > 0, z[i], -z[i])  e[i] <- equals(x[i], z[i]) } }"""
    x, z = np.array([0.1 + 0.2, 1.0, -1.0, 0.0, 2.0]), np.array([0.3, 1.0, 1.0, 0.0, 2.0 + 1e-9])
    found = computed(text, {}, {"x": x, "z": z})
    np.testing.assert_array_equal(found["y"], np.where(x > 0, z, -z))
    np.testing.assert_array_equal(found["e"], [1, 1, 0, 1, 0])
    # the same from data
    model = read_bugs(
        text.replace("x[i] ~ dnorm(0, 0.001) z[i] ~ dnorm(0, 0.001)", "u[i] ~ dnorm(0, 0.001)"), {"x": x, "z": z}
    )
    constant = model.assembly.values.arrays["e"]
    np.testing.assert_array_equal(constant, found["e"])


@pytest.mark.parametrize("name", sorted(SYNONYMS))
def test_other_names(name: str) -> None:
    arity = FUNCTIONS[SYNONYMS[name]].arity if SYNONYMS[name] in FUNCTIONS else 1
    x, z = np.array([0.2, 0.4, 0.9]), np.array([0.5, 0.4, 2.0])
    if name in ("acosh",):
        x = x + 1.0
    call = {"**": "x[i] ** z[i]", "==": "x[i] == z[i]"}.get(name, f"{name}({'x[i], z[i]' if arity == 2 else 'x[i]'})")
    text = f"model {{ for (i in 1:3) {{ x[i] ~ dnorm(0, 0.001) z[i] ~ dnorm(0, 0.001) y[i] <- {call} }} }}"
    found = computed(text, {}, {"x": x, "z": z})["y"]
    expected = FUNCTIONS[SYNONYMS[name]].compute(*(x, z)[:arity])
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "min", "max", "sd"])
def test_functions_of_an_array(name: str) -> None:
    text = f"""model {{
      for (i in 1:{N}) {{
        for (j in 1:4) {{ x[i, j] ~ dnorm(0, 0.001) }}
        row[i] <- {name}(x[i, ])
        part[i] <- {name}(x[i, 2:4])
      }}
      for (i in 1:{N}) {{ ragged[i] <- {name}(x[i, 1:n[i]]) }}
      for (j in 1:4) {{ column[j] <- {name}(x[, j]) }}
      whole <- {name}(x[,])
      k ~ dcat(p[])
      chosen <- {name}(x[k, ])
    }}"""
    rng = np.random.default_rng(3)
    x, n = rng.normal(size=(N, 4)), rng.integers(2, 5, N)
    x[5, 1] = x[5, 2]
    found = computed(text, {"n": n, "p": np.full(N, 1 / N)}, {"x": x, "k": 77})
    compute = REDUCTIONS[name].compute
    close = {"rtol": 1e-12}
    np.testing.assert_allclose(found["row"], compute(x), **close)
    np.testing.assert_allclose(found["part"], compute(x[:, 1:]), **close)
    np.testing.assert_allclose(
        found["ragged"], [compute(row[None, :m])[0] for row, m in zip(x, n, strict=True)], **close
    )
    np.testing.assert_allclose(found["column"], compute(x.T), **close)
    np.testing.assert_allclose(found["whole"], compute(x.reshape(1, -1))[0], **close)
    np.testing.assert_allclose(found["chosen"], compute(x[76:77])[0], **close)


def test_inner_products() -> None:
    text = f"""model {{
      for (j in 1:3) {{ b[j] ~ dnorm(0, 0.001)  for (g in 1:4) {{ B[g, j] ~ dnorm(0, 0.001) }} }}
      for (i in 1:{N}) {{
        g[i] ~ dcat(p[])
        all[i] <- inprod(x[i, ], b[])
        some[i] <- inprod(x[i, 2:3], b[2:3])
        chosen[i] <- inprod(x[i, ], B[g[i], ])
      }}
      total[1:{N}] <- x[, ] %*% b[]
    }}"""
    rng = np.random.default_rng(4)
    x, b, B, g = rng.normal(size=(N, 3)), rng.normal(size=3), rng.normal(size=(4, 3)), rng.integers(1, 5, N)
    found = computed(text, {"x": x, "p": np.full(4, 0.25)}, {"b": b, "B": B, "g": g})
    np.testing.assert_allclose(found["all"], x @ b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["total"], x @ b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["some"], x[:, 1:] @ b[1:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["chosen"], (x * B[g - 1]).sum(axis=1), rtol=1e-12, atol=1e-14)


def test_interpolation_ranks_and_matrices() -> None:
    text = """model {
      for (i in 1:100) { u[i] ~ dnorm(0, 0.001)  v[i] <- interp.lin(u[i], xs[], ys[]) }
      s[1:100] <- sort(u[])
      T[1:3, 1:3] ~ dwish(R[,], 4)
      S[1:3, 1:3] <- inverse(T[,])
      d <- logdet(T[,])
      P[1:3, 1:3] <- T[,] %*% M[,]
      Q[1:3, 1:3] <- t(P[,])
    }"""
    rng = np.random.default_rng(5)
    u, xs, ys = rng.normal(size=100), np.sort(rng.normal(size=6)), rng.normal(size=6)
    A = rng.normal(size=(3, 5))
    T, M = A @ A.T, rng.normal(size=(3, 3))
    u[:5] = u[5:10]
    found = computed(text, {"xs": xs, "ys": ys, "R": np.eye(3), "M": M}, {"u": u, "T": T})
    np.testing.assert_allclose(found["v"], np.interp(u, xs, ys), rtol=1e-12)
    np.testing.assert_array_equal(found["s"], np.sort(u))
    np.testing.assert_allclose(found["S"], np.linalg.inv(T), rtol=1e-10)
    np.testing.assert_allclose(found["d"], np.linalg.slogdet(T)[1], rtol=1e-12)
    np.testing.assert_allclose(found["P"], T @ M, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found["Q"], found["P"].T)


def test_unknown_indices() -> None:
    text = """model {
      for (i in 1:100) {
        g[i] ~ dcat(p[])  h[i] ~ dbern(0.5)
        a[i] <- m[g[i]]
        b[i] <- M[g[i], h[i] + 1]
        c[i] <- M[i - 5 * trunc((i - 1) / 5), h[i] + 1] + x[g[i]]
        d[i] <- x[g[i] + 1]
      }
      for (j in 1:5) { m[j] ~ dnorm(0, 0.001)  M[j, 1] ~ dnorm(0, 0.001)  M[j, 2] <- 2 * m[j] }
    }"""
    rng = np.random.default_rng(6)
    g, h = rng.integers(1, 6, 100), rng.integers(0, 2, 100)
    m, first, x = rng.normal(size=5), rng.normal(size=5), rng.normal(size=6)
    M = np.stack([first, 2 * m], axis=1)
    i = np.arange(1, 101)
    found = computed(text, {"p": np.full(5, 0.2), "x": x}, {"g": g, "h": h, "m": m, "M": np.stack([first, m], axis=1)})
    np.testing.assert_array_equal(found["a"], m[g - 1])
    np.testing.assert_array_equal(found["b"], M[g - 1, h])
    np.testing.assert_array_equal(found["c"], M[i - 5 * ((i - 1) // 5) - 1, h] + x[g - 1])
    np.testing.assert_array_equal(found["d"], x[g])
