"""The conditional distributions on which updates rest.

For each kind of update, a function returns the log-density that it rests on, points at which it is compared with the
joint density, and a test of draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.checks.quadrature import multinomial_p
from gibbsite.applications.bugs.compiled import units


def _gamma(bench: Bench, unit: int, before: Floats) -> Any:
    from scipy import integrate, stats

    power = bench.arrays.numbers[bench.rows[unit][units.EXTRA_B]]
    work = bench.chain.work
    bench.draws(unit, 1)
    shape, rate, low, high = work[-4:].tolist()
    edges = sorted(each ** (1.0 / power) if each > 0 else (0.0 if power > 0 else np.inf) for each in (low, high))

    def claimed(points: Floats) -> Floats:
        u = points[:, 0]
        inside = (u > 0.0) & (u >= edges[0]) & (u <= edges[1])
        u = np.where(inside, u, 1.0)
        return np.where(inside, (power * shape - 1.0) * np.log(u) - rate * u**power, -np.inf)

    def p_value(draws: Floats) -> float:
        t = draws[:, 0] ** power
        if low <= 0.0 and high == np.inf:
            return float(stats.kstest(t, stats.gamma(shape, scale=1.0 / rate).cdf).pvalue)
        s = np.log(t)
        ends = np.log(max(low, 1e-300)), np.log(high) if high < np.inf else max(s.max() + 3.0, 1.0)
        grid = np.linspace(max(ends[0], s.min() - 3.0), min(ends[1], s.max() + 3.0), 20_001)
        log = shape * grid - rate * np.exp(grid)
        cdf = integrate.cumulative_trapezoid(np.exp(log - log.max()), grid, initial=0.0)
        return float(stats.kstest(s, lambda at: np.interp(at, grid, cdf / cdf[-1])).pvalue)

    factors = np.array([1.0, 0.4, 0.8, 1.3, 2.5])
    points = (before * factors)[:, None]
    outside = [each * factor for each, factor in zip(edges, (0.9, 1.1), strict=True) if 0.0 < each < np.inf]
    points = np.concatenate([points, np.array(outside).reshape(-1, 1)])
    free = low <= 0.0 and high == np.inf and shape > 0.0 and rate > 0.0
    return claimed, points, p_value if free or _mostly_inside(shape, rate, low, high) else None


def _mostly_inside(shape: float, rate: float, low: float, high: float) -> bool:
    """Whether draws between bounds are independent of the value before."""
    from scipy import stats

    if not (shape > 0.0 and rate > 0.0):
        return False
    law = stats.gamma(shape, scale=1.0 / rate)
    return bool(law.cdf(high) - law.cdf(max(low, 0.0)) > 0.8)


def _beta(bench: Bench, unit: int, before: Floats) -> Any:
    from scipy import stats

    bench.draws(unit, 1)
    a, b = bench.chain.work[-4:-2].tolist()

    def claimed(points: Floats) -> Floats:
        return np.asarray((a - 1.0) * np.log(points[:, 0]) + (b - 1.0) * np.log1p(-points[:, 0]))

    points = np.append(before, [0.02, 0.3, 0.5, 0.8, 0.97])[:, None]
    return claimed, points, lambda draws: float(stats.kstest(draws[:, 0], stats.beta(a, b).cdf).pvalue)


def _normal(bench: Bench, unit: int, before: Floats) -> Any:
    from scipy import stats

    bench.draws(unit, 1)
    mean, precision, low, high = bench.chain.work[-4:].tolist()
    sd = precision**-0.5
    law = stats.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd)
    points = law.ppf([0.001, 0.2, 0.5, 0.7, 0.98])[:, None]

    def claimed(at: Floats) -> Floats:
        return np.asarray(-0.5 * precision * (at[:, 0] - mean) ** 2)

    return claimed, points, lambda draws: float(stats.kstest(draws[:, 0], law.cdf).pvalue)


def _block(bench: Bench, unit: int, before: Floats) -> Any:
    from scipy import stats
    from scipy.linalg import solve_triangular

    bench.draws(unit, 1)
    block = bench.model.derived.blocks[unit]
    size, entries = block.members.size, block.entries
    start, rows = block.structure[: size + 1], block.structure[size + 1 : size + 1 + entries]
    L = np.zeros((size, size))
    L[rows, np.repeat(np.arange(size), np.diff(start))] = bench.chain.work[:entries]
    gradient = bench.chain.work[entries + size : entries + 2 * size].copy()
    precision = L @ L.T
    delta = solve_triangular(L.T, solve_triangular(L, gradient, lower=True))
    noise = solve_triangular(L.T, bench.rng.normal(size=(size, 6))).T
    points = np.concatenate([before[None], before + delta + noise])
    direction = L @ bench.rng.normal(size=size)
    centre, sd = direction @ (before + delta), float(np.linalg.norm(solve_triangular(L, direction, lower=True)))

    def claimed(at: Floats) -> Floats:
        away = at - (before + delta)
        return np.asarray(-0.5 * np.einsum("ij,jk,ik->i", away, precision, away))

    def p_value(draws: Floats) -> float:
        return float(stats.kstest(draws @ direction, stats.norm(centre, sd).cdf).pvalue)

    return claimed, points, p_value


def _dirichlet(bench: Bench, unit: int, before: Floats) -> Any:
    from scipy import stats

    bench.draws(unit, 1)
    size = before.size
    weights = bench.chain.work[size : 2 * size].copy()
    live = weights > 0.0
    points = np.zeros((6, size))
    points[:, live] = bench.rng.dirichlet(np.full(int(live.sum()), 2.0), 6)

    def claimed(at: Floats) -> Floats:
        return np.asarray((np.log(at[:, live]) * (weights[live] - 1.0)).sum(axis=1))

    def p_value(draws: Floats) -> float:
        laws = [(k, stats.beta(weights[k], weights.sum() - weights[k])) for k in np.flatnonzero(live)]
        if len(laws) < 2:
            return 1.0
        return min(1.0, len(laws) * min(float(stats.kstest(draws[:, k], law.cdf).pvalue) for k, law in laws))

    return claimed, points, p_value


def _wishart(bench: Bench, unit: int, before: Floats) -> Any:
    from scipy import stats

    bench.draws(unit, 1)
    size = before.size
    side = round(size**0.5)
    scale, df = bench.chain.work[2 * size : 3 * size].reshape(side, side), float(bench.chain.work[3 * size])
    law = stats.wishart(df, np.linalg.inv(scale)) if df > side - 1 else None
    points = np.concatenate([before[None], law.rvs(5, random_state=bench.rng).reshape(5, -1)]) if law else before[None]

    def claimed(at: Floats) -> Floats:
        X = at.reshape(-1, side, side)
        trace = np.einsum("ij,kji->k", scale, X)
        return np.asarray(0.5 * (df - side - 1.0) * np.linalg.slogdet(X)[1] - 0.5 * trace)

    a = bench.rng.normal(size=side)

    def p_value(draws: Floats) -> float:
        found = np.einsum("i,kij,j->k", a, draws.reshape(-1, side, side), a)
        return float(stats.kstest(found / (a @ np.linalg.solve(scale, a)), stats.chi2(df).cdf).pvalue)

    return claimed, points, p_value


def _finite(bench: Bench, unit: int, before: Floats) -> Any:
    row = bench.rows[unit]
    low, high, begin = (int(row[k]) for k in (units.EXTRA_A, units.EXTRA_B, units.EXTRA_C))
    bench.draws(unit, 1)
    many = high - low + 1
    weights = bench.chain.widths[begin : begin + many].copy()
    points = np.arange(low, high + 1.0)[:, None]

    def claimed(at: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def p_value(draws: Floats) -> float:
        seen = np.bincount(draws[:, 0].astype(int) - low, minlength=many)
        return multinomial_p(seen, weights / weights.sum())

    return claimed, points, p_value


def _batch(bench: Bench, unit: int, before: Floats) -> Any:
    row = bench.rows[unit]
    low, high, begin = (int(row[k]) for k in (units.EXTRA_A, units.EXTRA_B, units.EXTRA_C))
    bench.draws(unit, 1)
    many = high - low + 1
    weights = bench.chain.widths[begin : begin + before.size * many].reshape(-1, many).copy()
    weights /= weights.sum(axis=1, keepdims=True)
    points = np.concatenate([before[None], bench.draws(unit, 6)])

    def claimed(at: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights[np.arange(before.size), at.astype(int) - low]).sum(axis=1))

    def p_value(draws: Floats) -> float:
        seen = [np.bincount(column, minlength=many) for column in draws.astype(int).T - low]
        return min(1.0, before.size * min(map(multinomial_p, seen, weights)))

    # what is shared is a constraint, under which members are not independent
    return claimed, points, None if row[units.OWN_INSTANCE] else p_value


CLAIMS: dict[int, Callable[[Bench, int, Floats], Any]] = {
    units.SCALED_GAMMA: _gamma,
    units.CONJUGATE_BETA: _beta,
    units.CONJUGATE_NORMAL: _normal,
    units.NORMAL_BLOCK: _block,
    units.CONJUGATE_DIRICHLET: _dirichlet,
    units.CONJUGATE_WISHART: _wishart,
    units.FINITE: _finite,
    units.BATCH: _batch,
}
