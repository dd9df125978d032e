"""Linear regression with a subset of the columns, its coefficients and its noise integrated out.

    y = X_g b + noise,   noise ~ N(0, s^2),   b ~ N(0, s^2 v^2 I),   p(s^2) proportional to 1 / s^2,

for centred y and columns. With A = X_g' X_g + I / v^2, the logarithm of the probability of y given the subset g is, up
to a constant,

    -(log |A| + |g| log v^2) / 2 - (n - 1) / 2 log(y'y - y'X_g A^-1 X_g'y).

All functions use the products of the columns with each other (``gram``) and with y (``cross``).

References
----------
.. [1] George, E. I. and McCulloch, R. E. (1997). Approaches for Bayesian variable selection. Statistica Sinica 7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats, Ints
from gibbsite._numba.jit import Integer, called, compiled_loop

GIBBS, BINNED, FULL = range(3)


class Regression(NamedTuple):
    """The data of a regression, and its prior."""

    gram: Floats  # (columns, columns)
    cross: Floats  # (columns,)
    square: float  # y'y
    half: float  # (n - 1) / 2
    variance: float  # v^2
    odds: Floats  # (columns,): log-odds of the prior that a column is in the subset


class Work(NamedTuple):
    """Buffers."""

    member: Ints  # (columns,): the columns of the subset
    lower: Floats  # (columns, columns): the Cholesky factor of A
    half_way: Floats  # (columns,): the solution of the first triangular system


def make_work(columns: int) -> Work:
    """Allocate buffers."""
    return Work(np.zeros(columns, np.int64), np.zeros((columns, columns)), np.zeros(columns))


@called
def _gather(state: Bytes, j: Integer, with_j: bool, work: Work) -> Integer:
    """List the columns of the subset, with or without column j; return their number."""
    size = 0
    for a in range(state.size):
        if state[a] != 0 and a != j:
            work.member[size] = a
            size += 1
    if with_j:
        work.member[size] = j
        size += 1
    return size


@called
def _log_evidence(data: Regression, work: Work, size: Integer) -> float:
    """Return the log-probability of the data given the columns in the list."""
    log_det, fit = 0.0, 0.0
    lower, z = work.lower, work.half_way
    for a in range(size):
        i = work.member[a]
        for b in range(a + 1):
            s = data.gram[i, work.member[b]]
            for c in range(b):
                s -= lower[a, c] * lower[b, c]
            if b < a:
                lower[a, b] = s / lower[b, b]
            else:
                s = max(s + 1.0 / data.variance, 1e-300)
                lower[a, a] = math.sqrt(s)
                log_det += math.log(s)
        t = data.cross[i]
        for c in range(a):
            t -= lower[a, c] * z[c]
        z[a] = t / lower[a, a]
        fit += z[a] * z[a]
    rest = max(data.square - fit, 1e-14 * data.square)
    value: float = -0.5 * (log_det + size * math.log(data.variance)) - data.half * math.log(rest)
    return value


@called
def _add_coefficients(work: Work, size: Integer, weight: float, total: Floats) -> None:
    """Add the means of the coefficients of the columns in the list, after their evidence has been computed."""
    lower, z = work.lower, work.half_way
    for a in range(size - 1, -1, -1):
        t = z[a]
        for c in range(a + 1, size):
            t -= lower[c, a] * z[c]
        z[a] = t / lower[a, a]
        total[work.member[a]] += weight * z[a]


@compiled_loop
def log_posterior(data: Regression, state: Bytes, work: Work) -> float:
    """Return the log-probability of a subset given the data, up to a constant."""
    value: float = _log_evidence(data, work, _gather(state, -1, False, work))
    for a in range(state.size):
        if state[a] != 0:
            value += data.odds[a]
    return value


@compiled_loop
def log_odds_of(data: Regression, state: Bytes, j: int, work: Work) -> float:
    """Return the log-odds that column j is in the subset, given whether the others are."""
    inside = _log_evidence(data, work, _gather(state, j, True, work))
    odds: float = data.odds[j] + inside - _log_evidence(data, work, _gather(state, j, False, work))
    return odds


@compiled_loop
def run_chain(
    data: Regression,
    state: Bytes,
    how: int,
    uniforms: Floats,
    weights: Floats,
    every: int,
    work: Work,
    averages: Floats,
    coefficients: Floats,
    visited: Bytes,
) -> None:
    """Advance a chain by one sweep for each row of ``uniforms``, which Gibbs sampling uses.

    Herding uses ``weights`` (columns, keys): the key is the bin of the conditional probability, or the states of all
    other columns. ``averages`` (batches, columns) gets the mean conditional probabilities of ``every`` sweeps,
    ``coefficients`` the sum of their means given the subset after each sweep, and ``visited`` these subsets.
    """
    columns, bins = state.size, weights.shape[1]
    now = _log_evidence(data, work, _gather(state, -1, False, work))
    for t in range(uniforms.shape[0]):
        for j in range(columns):
            inside = state[j] != 0
            other = _log_evidence(data, work, _gather(state, j, not inside, work))
            odds = data.odds[j] + (now - other if inside else other - now)
            p = 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
            if how == GIBBS:
                up = uniforms[t, j] < p
            else:
                key = 0
                if how == BINNED:
                    key = min(int(p * bins), bins - 1)
                else:
                    for a in range(columns - 1, -1, -1):
                        if a != j:
                            key = 2 * key + state[a]
                weights[j, key] += p
                up = weights[j, key] >= 1.0
                if up:
                    weights[j, key] -= 1.0
            if up != inside:
                state[j] = 1 if up else 0
                now = other
            if t // every < averages.shape[0]:
                averages[t // every, j] += p / every
        size = _gather(state, -1, False, work)
        now = _log_evidence(data, work, size)
        _add_coefficients(work, size, 1.0, coefficients)
        for a in range(columns):
            visited[t, a] = state[a]


@compiled_loop
def weigh_all(data: Regression, work: Work, state: Bytes, log_weights: Floats) -> None:
    """Write the log-probabilities of all subsets, up to a constant; column a is bit a of their numbers."""
    for code in range(log_weights.size):
        value = 0.0
        for a in range(state.size):
            state[a] = code >> a & 1
            value += data.odds[a] * state[a]
        log_weights[code] = value + _log_evidence(data, work, _gather(state, -1, False, work))


@compiled_loop
def average_all(data: Regression, work: Work, state: Bytes, law: Floats, inclusion: Floats, mean: Floats) -> None:
    """Add up inclusion probabilities and means of coefficients over all subsets with their probabilities."""
    for code in range(law.size):
        if law[code] > 1e-15:
            for a in range(state.size):
                state[a] = code >> a & 1
                inclusion[a] += law[code] * state[a]
            size = _gather(state, -1, False, work)
            _log_evidence(data, work, size)
            _add_coefficients(work, size, law[code], mean)
