"""Whether an update of several unknowns keeps their distribution, by weighted starts."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.compiled.machine import call

_STARTS, _EXPLORE = 4000, 500


def weighted_drift(bench: Bench, unit: int, simplex: bool = False) -> float:
    """Return how many standard errors moments drift in an update that starts from weighted draws.

    Starts are drawn from a Student distribution q about the draws of a short chain and weighted by p / q, where p is
    the joint density. Weighted differences of any moment between end and start have the mean zero if the update keeps
    p, for any q. Starts of probabilities (``simplex``) have a Dirichlet distribution.
    """
    places = bench.places(unit)
    before, x = bench.values.copy(), bench.x.copy()
    chain = []
    for _ in range(_EXPLORE):
        bench.update(unit)
        chain.append(bench.values[places].copy())
    bench.values[:], bench.x[:] = before, x
    explored = np.array(chain)
    if not np.abs(explored).max() < 1e100:  # it ran away
        return float("inf")
    size, df = places.size, 6.0
    centre = explored.mean(axis=0)
    if simplex:
        total = before[places].sum()
        shares, one = centre / total, explored[:, 0].var() / total**2
        weights = np.maximum(0.7 * shares * max(shares[0] * (1.0 - shares[0]) / max(one, 1e-12) - 1.0, 1.0), 0.1)
        starts = total * bench.rng.dirichlet(weights, _STARTS)
        log_q = np.log(np.maximum(starts, 1e-300)) @ (weights - 1.0)
        return _drift(bench, unit, starts, log_q, bench.rng.normal(size=(size, 3)), centre)
    covariance = np.atleast_2d(np.cov(explored.T)) + 1e-12 * np.eye(size)
    root = np.linalg.cholesky(1.3 * covariance)
    normals = bench.rng.normal(size=(_STARTS, size))
    spread = bench.rng.chisquare(df, _STARTS) / df
    starts = centre + (normals / np.sqrt(spread)[:, None]) @ root.T
    log_q = -0.5 * (df + size) * np.log1p((normals**2).sum(axis=1) / spread / df)
    direction = np.linalg.solve(root.T, bench.rng.normal(size=(size, 3)))
    return _drift(bench, unit, starts, log_q, direction, centre)


def _drift(bench: Bench, unit: int, starts: Floats, log_q: Floats, direction: Floats, centre: Floats) -> float:
    places = bench.places(unit)
    before, x = bench.values.copy(), bench.x.copy()
    ends, log_p = np.empty_like(starts), np.empty(_STARTS)
    for k, start in enumerate(starts):
        bench.values[:] = before
        bench.values[places] = start
        log_p[k] = bench.density()
        if log_p[k] > -np.inf:
            call(bench.static, bench.chain, bench.x, bench.n)
            bench.update(unit)
        ends[k] = bench.values[places]
    bench.values[:], bench.x[:] = before, x
    weight = np.exp(log_p - log_q - (log_p - log_q).max())
    one, other = (starts - centre) @ direction, (ends - centre) @ direction
    change = np.concatenate([other - one, other**2 - one**2, np.tanh(other) - np.tanh(one)], axis=1) * weight[:, None]
    if (starts == ends).all():
        return float("inf")
    error = change.std(axis=0) / np.sqrt(_STARTS)
    return float((np.abs(change.mean(axis=0)) / np.maximum(error, 1e-300)).max())
