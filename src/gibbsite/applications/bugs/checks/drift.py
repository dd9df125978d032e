"""Whether an update of several unknowns keeps their distribution, by weighted starts."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.compiled.machine import call

_STARTS, _EXPLORE = 4000, 500


def weighted_drift(bench: Bench, unit: int) -> float:
    """Return how many standard errors moments drift in an update that starts from weighted draws.

    Starts are drawn from a Student distribution q about the draws of a short chain and weighted by p / q, where p is
    the joint density. Weighted differences of any moment between end and start have the mean zero if the update keeps
    p, for any q.
    """
    places = bench.places(unit)
    before, x = bench.values.copy(), bench.x.copy()
    chain = []
    for _ in range(_EXPLORE):
        bench.update(unit)
        chain.append(bench.values[places].copy())
    explored = np.array(chain)
    size, df = places.size, 6.0
    centre = explored.mean(axis=0)
    covariance = np.atleast_2d(np.cov(explored.T)) + 1e-12 * np.eye(size)
    root = np.linalg.cholesky(1.3 * covariance)
    normals = bench.rng.normal(size=(_STARTS, size))
    spread = bench.rng.chisquare(df, _STARTS) / df
    starts = centre + (normals / np.sqrt(spread)[:, None]) @ root.T
    log_q = -0.5 * (df + size) * np.log1p((normals**2).sum(axis=1) / spread / df)
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
    direction = np.linalg.solve(root.T, bench.rng.normal(size=(size, 3)))
    one, other = (starts - centre) @ direction, (ends - centre) @ direction
    change = np.concatenate([other - one, other**2 - one**2, np.tanh(other) - np.tanh(one)], axis=1) * weight[:, None]
    if (starts == ends).all():
        return float("inf")
    error = change.std(axis=0) / np.sqrt(_STARTS)
    return float((np.abs(change.mean(axis=0)) / np.maximum(error, 1e-300)).max())
