"""Simulation-based calibration: posterior draws of a parameter and its true value are exchangeable.

Parameters and data are simulated with NumPy. The true parameters are a draw from the posterior distribution given the
data, so they may be put at a random place of a stationary chain: the sweeps after it are made forwards, those before it
with the updates in reverse order, because every update is reversible; in both directions, what is drawn forward comes
last, because the other updates are made as if it were not there. The rank of the true value among all is then
exactly uniform, without a warmup (Gandy and Scott, 2021). It is tested by chi-squared tests that fail below p = 1e-8,
so that all tests together raise a false alarm with a probability below 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.updates import LEARNING

ALARM, LENGTH, REPEATS, THIN = 1e-8, 15, 320, 1
Drawn = dict[str, Any]
N = 6
X = np.array([-1.0, 0.3, 2.0, 0.7, -0.2, 1.1])
GROUP = np.array([1, 2, 3, 1, 2, 3])
PROGRAMS: dict[str, tuple[str, Drawn, Callable[[np.random.Generator], Drawn], set[int]]] = {}


def program(name: str, text: str, kinds: set[int], **data: Any) -> Any:
    def keep(simulate: Callable[[np.random.Generator], Drawn]) -> Callable[[np.random.Generator], Drawn]:
        PROGRAMS[name] = (text, data, simulate, kinds)
        return simulate

    return keep


@program(
    "rates of every family",
    """a ~ dnorm(0.5, 2 * t)  b ~ dlnorm(0, t)  c ~ dgamma(3, t)  d ~ dweib(2, t)  e ~ ddexp(0, t)  f ~ dpois(3 * t)
    g ~ dexp(t / 2)  h ~ dpar(t, 0.5)  t ~ dgamma(2, 1)""",
    {units.SCALED_GAMMA},
)
def rates(rng: np.random.Generator) -> Drawn:
    t = rng.gamma(2.0)
    return {
        "t": t,
        "a": rng.normal(0.5, (2 * t) ** -0.5),
        "b": np.exp(rng.normal(0.0, t**-0.5)),
        "c": rng.gamma(3.0) / t,
        "d": np.sqrt(rng.exponential() / t),
        "e": rng.laplace(0.0, 1 / t),
        "f": rng.poisson(3 * t),
        "g": rng.exponential(2 / t),
        "h": 0.5 * np.exp(rng.exponential() / t),
    }


@program(
    "uniform standard deviations",
    "for (i in 1:6) { y[i] ~ dnorm(m, pow(s, -2)) }  m ~ dnorm(0, v)  v <- 1 / w  w ~ dunif(0.2, 4)  s ~ dunif(0, 3)",
    {units.SCALED_GAMMA, units.NORMAL_BLOCK},
)
def deviations(rng: np.random.Generator) -> Drawn:
    w, s = rng.uniform(0.2, 4.0), rng.uniform(0.0, 3.0)
    m = rng.normal(0.0, np.sqrt(w))
    return {"w": w, "s": s, "m": m, "y": rng.normal(m, s, N)}


@program("bounded gamma", "for (i in 1:6) { y[i] ~ dexp(r) }  r ~ dgamma(2, 1) T(0.5, 1.5)", {units.SCALED_GAMMA})
def bounded(rng: np.random.Generator) -> Drawn:
    law = stats.gamma(2.0)
    r = law.ppf(rng.uniform(law.cdf(0.5), law.cdf(1.5)))
    return {"r": r, "y": rng.exponential(1 / r, N)}


@program(
    "probabilities",
    """for (i in 1:6) { y[i] ~ dbern(p)  z[i] ~ dbin(1 - p, 4)  w[i] ~ dnegbin(p, 2.5)  v[i] ~ dgeom(q) }
    p ~ dbeta(2, 3)  q ~ dunif(0, 1)""",
    {units.CONJUGATE_BETA},
)
def probabilities(rng: np.random.Generator) -> Drawn:
    p, q = rng.beta(2.0, 3.0), rng.uniform()
    return {
        "p": p,
        "q": q,
        "y": rng.binomial(1, p, N),
        "z": rng.binomial(4, 1 - p, N),
        "w": rng.poisson(rng.gamma(2.5, size=N) * (1 - p) / p),
        "v": rng.geometric(q, N),
    }


@program(
    "mixture of normals",
    """for (i in 1:6) { y[i] ~ dnorm(m[k[i]], 4)  k[i] ~ dcat(p[]) }  m[1] ~ dnorm(-1, 1)  m[2] ~ dnorm(1, 1)
    p[1:2] ~ ddirch(a[])""",
    {units.CONJUGATE_NORMAL, units.BATCH, units.CONJUGATE_DIRICHLET},
    a=[1.0, 2.0],
)
def mixture(rng: np.random.Generator) -> Drawn:
    m, p = rng.normal([-1.0, 1.0]), rng.dirichlet([1.0, 2.0])
    k = rng.choice(2, N, p=p)
    return {"m": m, "p": p, "k": k + 1, "y": rng.normal(m[k], 0.5)}


@program(
    "mixture of Poisson and Bernoulli variables",
    """for (i in 1:6) { y[i] ~ dpois(r[k[i]])  z[i] ~ dbern(p[k[i]])  k[i] ~ dcat(w[]) }
    for (j in 1:2) { r[j] ~ dgamma(2, 0.5)  p[j] ~ dbeta(1, 2) }""",
    {units.SCALED_GAMMA, units.CONJUGATE_BETA, units.BATCH},
    w=[0.3, 0.7],
)
def counts(rng: np.random.Generator) -> Drawn:
    r, p, k = rng.gamma(2.0, 2.0, 2), rng.beta(1.0, 2.0, 2), rng.choice(2, N, p=[0.3, 0.7])
    return {"r": r, "p": p, "k": k + 1, "y": rng.poisson(r[k]), "z": rng.binomial(1, p[k])}


@program(
    "tables of probabilities",
    """for (i in 1:6) { y[i] ~ dcat(p[g[i],])  g[i] ~ dcat(q[]) }  z[1:3] ~ dmulti(p[1,], 4)
    for (k in 1:2) { p[k, 1:3] ~ ddirch(a[]) }""",
    {units.CONJUGATE_DIRICHLET, units.BATCH},
    a=[0.5, 1.0, 2.0],
    q=[0.4, 0.6],
)
def tables(rng: np.random.Generator) -> Drawn:
    p, g = rng.dirichlet([0.5, 1.0, 2.0], 2), rng.choice(2, N, p=[0.4, 0.6])
    y = np.array([rng.choice(3, p=p[each]) + 1 for each in g])
    return {"p": p, "g": g + 1, "y": y, "z": rng.multinomial(4, p[0])}


@program(
    "precision matrix",
    """for (i in 1:6) { v[i, 1:2] ~ dmnorm(m[], T[,]) }  m[1:2] ~ dmnorm(o[], P[,])  T[1:2, 1:2] ~ dwish(R[,], 4)""",
    {units.CONJUGATE_WISHART, units.NORMAL_BLOCK},
    o=[0.0, 1.0],
    P=[[1.0, 0.5], [0.5, 2.0]],
    R=[[2.0, 0.4], [0.4, 1.0]],
)
def precision(rng: np.random.Generator) -> Drawn:
    T = stats.wishart(4, np.linalg.inv([[2.0, 0.4], [0.4, 1.0]])).rvs(random_state=rng)
    m = rng.multivariate_normal([0.0, 1.0], np.linalg.inv([[1.0, 0.5], [0.5, 2.0]]))
    return {"T": T, "m": m, "v": rng.multivariate_normal(m, np.linalg.inv(T), N)}


@program(
    "hierarchical regression with missing data",
    """for (i in 1:6) { y[i] ~ dnorm(a[g[i]] + b * x[i], t)  z[i] ~ dnorm(y[i] - b, 2)
      v[i, 1:2] ~ dmnorm(c[i, ], T[,])  c[i, 1] <- b * x[i] + mu  c[i, 2] <- mu - 2 * b }
    for (j in 1:3) { a[j] ~ dnorm(mu, ta) }  mu ~ dnorm(0, 1)  b ~ dnorm(0.5, 2)  t ~ dgamma(3, 2)  ta ~ dgamma(3, 1)""",
    {units.NORMAL_BLOCK, units.SCALED_GAMMA, units.SCALE},
    x=X,
    g=GROUP,
    T=[[2.0, 0.5], [0.5, 1.0]],
)
def regression(rng: np.random.Generator) -> Drawn:
    mu, b, t, ta = rng.normal(), rng.normal(0.5, 0.5**0.5), rng.gamma(3.0) / 2.0, rng.gamma(3.0)
    a = rng.normal(mu, ta**-0.5, 3)
    y = rng.normal(a[GROUP - 1] + b * X, t**-0.5)
    c = np.stack([b * X + mu, np.full(N, mu - 2 * b)], axis=1)
    v = c + rng.multivariate_normal([0.0, 0.0], np.linalg.inv([[2.0, 0.5], [0.5, 1.0]]), N)
    return {"mu": mu, "b": b, "t": t, "ta": ta, "a": a, "y": y, "z": rng.normal(y - b, 2**-0.5), "v": v}


MISSING = {"hierarchical regression with missing data": {"y": [1, 4]}}


@program(
    "Poisson regression with random effects",
    """for (i in 1:6) { y[i] ~ dpois(l[i])  log(l[i]) <- a + b * x[i] + e[i]  e[i] ~ dnorm(0, t) }
    a ~ dnorm(1, 2)  b ~ ddexp(0, 3)  t ~ dgamma(3, 1)""",
    {units.SLICE, units.SCALED_GAMMA, units.PREDICTOR_BLOCK, units.SCALE, units.SHIFT},
    x=X,
)
def poisson(rng: np.random.Generator) -> Drawn:
    a, b, t = rng.normal(1.0, 0.5**0.5), rng.laplace(0.0, 1 / 3), rng.gamma(3.0)
    e = rng.normal(0.0, t**-0.5, N)
    return {"a": a, "b": b, "t": t, "e": e, "y": rng.poisson(np.exp(a + b * X + e))}


@program(
    "survival with random effects",
    """for (i in 1:6) { c[i] ~ dinterval(t[i], 2)  t[i] ~ dweib(r, m[i])  log(m[i]) <- a + b[i]  b[i] ~ dnorm(0, u)
      y[i] ~ dexp(w[i])  z[i] ~ dgamma(1.5, v[i])  log(w[i]) <- a + x[i] * d  log(v[i]) <- 1 + d }
    r ~ dgamma(4, 2)  a ~ dnorm(0, 2)  d ~ dnorm(0, 2)  u ~ dgamma(3, 1)""",
    {units.SLICE, units.SCALED_GAMMA, units.PREDICTOR_BLOCK, units.SCALE},
    x=X,
)
def survival(rng: np.random.Generator) -> Drawn:
    r, a, d, u = rng.gamma(4.0) / 2.0, rng.normal(0.0, 0.5**0.5), rng.normal(0.0, 0.5**0.5), rng.gamma(3.0)
    b = rng.normal(0.0, u**-0.5, N)
    t = (rng.exponential(size=N) / np.exp(a + b)) ** (1 / r)
    y, z = rng.exponential(1 / np.exp(a + X * d)), rng.gamma(1.5, 1 / np.exp(1 + d), N)
    return {"r": r, "a": a, "d": d, "u": u, "b": b, "t": t, "c": (t > 2).astype(int), "y": y, "z": z}


@program(
    "hidden Markov model",
    """k[1] ~ dcat(p[1, ])  for (i in 2:6) { k[i] ~ dcat(p[k[i - 1], ]) }  for (i in 1:6) { y[i] ~ dnorm(m[k[i]], 1) }
    m[1] ~ dnorm(0, 1)  m[2] ~ dnorm(2, 1)""",
    {units.CHAIN, units.CONJUGATE_NORMAL},
    p=[[0.8, 0.2], [0.4, 0.6]],
)
def markov(rng: np.random.Generator) -> Drawn:
    p, k, m = np.array([[0.8, 0.2], [0.4, 0.6]]), [0], rng.normal([0.0, 2.0])
    k[0] = rng.choice(2, p=p[0])
    for _ in range(N - 1):
        k.append(rng.choice(2, p=p[k[-1]]))
    return {"m": m, "k": np.array(k) + 1, "y": rng.normal(m[k])}


@program(
    "truncated data",
    "for (i in 1:6) { y[i] ~ dnorm(m, t) T(0, 2)  z[i] ~ dpois(r) T(1, )  }  m ~ dnorm(0.5, 1) t ~ dunif(0.5, 3) r ~ dgamma(2, 1)",
    {units.SLICE},
)
def truncated(rng: np.random.Generator) -> Drawn:
    m, t, r = rng.normal(0.5), rng.uniform(0.5, 3.0), rng.gamma(2.0)
    law, law2 = stats.norm(m, t**-0.5), stats.poisson(r)
    y = law.ppf(rng.uniform(law.cdf(0.0), law.cdf(2.0), N))
    z = law2.ppf(rng.uniform(law2.cdf(0), 1.0, N))
    return {"m": m, "t": t, "r": r, "y": y, "z": np.maximum(z, 1.0)}


@program(
    "censored data",
    """for (i in 1:6) { c[i] ~ dinterval(t[i], cuts[])  t[i] ~ dweib(1.5, r) }  r ~ dgamma(2, 1)""",
    {units.SLICE, units.SCALED_GAMMA},
    cuts=[0.5, 1.0],
)
def censored(rng: np.random.Generator) -> Drawn:
    r = rng.gamma(2.0)
    t = (rng.exponential(size=N) / r) ** (1 / 1.5)
    return {"r": r, "t": t, "c": (t > 0.5).astype(int) + (t > 1.0)}


@program(
    "unknown numbers of trials, and what is not observed",
    """for (i in 1:6) { y[i] ~ dbin(p, n)  f[i] ~ dpois(l) }  n ~ dpois(8)  p ~ dbeta(2, 2)  l ~ dgamma(2, 1)
    s ~ dhyper(5, 4, 3, 2)  o ~ dbern(q)  q <- 0.2 + 0.2 * s  w ~ dbetabin(2, 3, 4)""",
    {units.WHOLE_SLICE, units.CONJUGATE_BETA, units.FORWARD, units.SCALED_GAMMA, units.FINITE},
)
def trials(rng: np.random.Generator) -> Drawn:
    n, p, level = rng.poisson(8.0), rng.beta(2.0, 2.0), rng.gamma(2.0)
    s = stats.nchypergeom_fisher(9, 5, 3, 2).rvs(random_state=rng)
    return {
        "n": n,
        "p": p,
        "l": level,
        "y": rng.binomial(n, p, N),
        "f": rng.poisson(level, N),
        "s": s,
        "o": rng.binomial(1, 0.2 + 0.2 * s),
        "w": stats.betabinom(4, 2, 3).rvs(random_state=rng),
    }


@program(
    "predictions",
    """for (i in 1:6) { y[i] ~ dnorm(m, 2) }  m ~ dnorm(0, 1)  a ~ dnorm(m, 2)  b ~ dcat(p[g,])  g <- 1 + step(a)
    q ~ dbin(0.3, b)""",
    {units.NORMAL_BLOCK, units.FORWARD},
    p=[[0.2, 0.5, 0.3], [0.0, 0.6, 0.4]],
)
def predictions(rng: np.random.Generator) -> Drawn:
    m = rng.normal()
    a = rng.normal(m, 0.5**0.5)
    b = rng.choice(3, p=[[0.2, 0.5, 0.3], [0.0, 0.6, 0.4]][int(a >= 0)]) + 1
    return {"m": m, "y": rng.normal(m, 0.5**0.5, N), "a": a, "b": b, "q": rng.binomial(b, 0.3)}


MISSING["unknown numbers of trials, and what is not observed"] = {"f": [0, 3], "w": [0]}


@program(
    "probabilities that are not conjugate",
    "p[1:2] ~ ddirch(a[])  for (i in 1:6) { y[i] ~ dbin(p[1] * p[1], 3) }",
    {units.SIMPLEX_SLICE},
    a=[1.5, 2.0],
)
def simplex(rng: np.random.Generator) -> Drawn:
    p = rng.dirichlet([1.5, 2.0])
    return {"p": p, "y": rng.binomial(3, p[0] ** 2, N)}


def observed(name: str, drawn: Drawn) -> set[str]:
    """Return the variables that are data: in the first program all but t, otherwise what later letters name."""
    if name == "rates of every family":
        return set(drawn) - {"t"}
    return set(drawn) & ({"y", "z", "v", "c", "f", "o"} if name != "probabilities" else {"y", "z", "v", "w"})


class Calibration:
    """A model with places of its data and unknowns, in which simulated values are written."""

    def __init__(self, name: str) -> None:
        text, data, self.simulate, kinds = PROGRAMS[name]
        self.rng = np.random.default_rng(sum(name.encode()))
        drawn = self.simulate(self.rng)
        self.data = {each: np.array(drawn[each], float) for each in observed(name, drawn)}
        for each, missing in MISSING.get(name, {}).items():
            if each in self.data:
                self.data[each][missing] = np.nan
        self.text, self.constants, self.broken = f"model {{ {text} }}", data, False
        self.read()
        found = set(self.bench.rows[: self.bench.n, units.UPDATE].tolist())
        assert found == kinds, found

    def read(self) -> None:
        """Derive the updates for the data of now."""
        self.model = read_bugs(self.text, {**self.constants, **self.data})
        self.bench = Bench(self.model, int(self.rng.integers(2**32)))
        self.bench.chain.counts[LEARNING] = 0
        groups = [group for block in self.model.derived.blocks for group in block.groups]
        self.sums = any(group.size == 0 for group in groups)

    def sweep(self, order: list[int]) -> None:
        for _ in range(THIN):
            for unit in order:
                assert self.bench.update(unit)
                if self.broken:  # probabilities change places, and remain probabilities
                    places = self.bench.places(unit)
                    if places.size > 1:
                        self.bench.values[places] = self.bench.values[places][::-1]

    def ranks(self) -> np.ndarray:
        """Return the rank of the true value of each unknown; ties are broken at random."""
        drawn = self.simulate(self.rng)
        if self.sums:  # which hold data
            for each, array in self.data.items():
                array[...] = np.where(np.isnan(array), np.nan, drawn[each])
            self.read()
        values = self.bench.values
        for each, array in drawn.items():
            begin = self.model.assembly.offset[each]
            flat = np.asarray(array, float).ravel(order="F")
            values[begin : begin + flat.size] = flat
        assert self.bench.density() > -np.inf
        start = values.copy()
        unknown = self.model.network.unknown
        before = int(self.rng.integers(0, LENGTH + 1))
        chain = []
        forward = self.bench.rows[: self.bench.n, units.UPDATE] == units.FORWARD
        drawn, others = np.flatnonzero(forward).tolist(), np.flatnonzero(~forward).tolist()
        for count, order in ((before, others[::-1] + drawn), (LENGTH - before, others + drawn)):
            values[:] = start
            for _ in range(count):
                self.sweep(order)
                chain.append(values[unknown].copy())
        found = np.array(chain)
        less, same = (found < start[unknown]).sum(axis=0), (found == start[unknown]).sum(axis=0)
        return less + self.rng.integers(0, same + 1)


def least_p(name: str, repeats: int = REPEATS, broken: bool = False) -> float:
    calibration = Calibration(name)
    calibration.broken = broken
    ranks = np.stack([calibration.ranks() for _ in range(repeats)])
    return float(min(stats.chisquare(np.bincount(column, minlength=LENGTH + 1)).pvalue for column in ranks.T))


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_are_uniform(name: str) -> None:
    assert least_p(name) > ALARM


def test_programs_cover_every_kind_of_update() -> None:
    covered = set.union(*(kinds for _, _, _, kinds in PROGRAMS.values()))
    assert covered == set(range(units.COMPUTE)) | {
        units.PREDICTOR_BLOCK,
        units.CHAIN,
        units.SCALE,
        units.SHIFT,
        units.BATCH,
    }


def test_probabilities_in_the_wrong_order_are_seen() -> None:
    assert least_p("tables of probabilities", 320, broken=True) < ALARM
