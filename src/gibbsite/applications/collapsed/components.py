"""Mixtures of normal distributions with all parameters integrated out: probabilities and moves of the assignments.

The coordinates of the points of a component are independent and normal, with a normal-gamma prior around zero. A
component is then described by the number, the sums and the sums of squares of its points. The weights of K components
have a Dirichlet(a / K) prior; without K, the partition has the prior of a Dirichlet process with concentration a.

References
----------
.. [1] Neal, R. M. (2000). Markov chain sampling methods for Dirichlet process mixture models. JCGS 9 (algorithm 3).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite.kernels.herded.herding import herd_argmax
from gibbsite.kernels.rules import pick

GIBBS, HERDED = range(2)
_U64 = np.uint64
_FACTOR, _SHIFT = _U64(0x9E3779B97F4A7C15), _U64(29)


class Prior(NamedTuple):
    """The prior of components and weights; ``finite`` is False for a Dirichlet process."""

    kappa: float  # strength of the prior mean, in points
    shape: float
    rate: float
    share: float  # a / K, or a for a Dirichlet process
    finite: bool
    gamma: Floats  # (points + 1,): log Gamma(shape + n / 2 + 1 / 2) - log Gamma(shape + n / 2)


class Sums(NamedTuple):
    """What is known of the points of each component."""

    size: Ints  # (components,): number of points
    first: Floats  # (components, coordinates)
    second: Floats  # (components, coordinates)


def make_prior(
    points: int, components: int | None, concentration: float, kappa: float, shape: float, rate: float
) -> Prior:
    """Return a prior with its table of Gamma functions."""
    gamma = np.array([math.lgamma(shape + n / 2 + 0.5) - math.lgamma(shape + n / 2) for n in range(points + 1)])
    share = concentration if components is None else concentration / components
    return Prior(kappa, shape, rate, share, components is not None, gamma)


def make_sums(components: int, coordinates: int) -> Sums:
    """Return sums of no points."""
    return Sums(np.zeros(components, np.int64), *np.zeros((2, components, coordinates)))


@called
def _move(sums: Sums, x: Floats, i: Integer, k: Integer, sign: int) -> None:
    """Add a point to a component, or take it away."""
    sums.size[k] += sign
    for d in range(x.shape[1]):
        sums.first[k, d] += sign * x[i, d]
        sums.second[k, d] += sign * x[i, d] * x[i, d]


@called
def _log_predictive(prior: Prior, sums: Sums, x: Floats, i: Integer, k: Integer) -> float:
    """Return the log-density of a point given those of a component."""
    n = sums.size[k]
    kappa, shape = prior.kappa + n, prior.shape + 0.5 * n
    total: Any = 0.0
    for d in range(x.shape[1]):
        mean: Any = 0.0
        rate: Any = prior.rate
        if n > 0:
            mean = sums.first[k, d] / kappa
            rate += 0.5 * max(sums.second[k, d] - kappa * mean * mean, 0.0)
        scale = 2.0 * rate * (kappa + 1.0) / kappa
        gap = x[i, d] - mean
        total += prior.gamma[n] - 0.5 * math.log(math.pi * scale) - (shape + 0.5) * math.log1p(gap * gap / scale)
    return total  # type: ignore[no-any-return]


@called
def _log_component(prior: Prior, sums: Sums, k: Integer) -> float:
    """Return the log-probability of the points of a component, up to a constant for each point."""
    n = sums.size[k]
    kappa, shape = prior.kappa + n, prior.shape + 0.5 * n
    total: Any = 0.0
    for d in range(sums.first.shape[1]):
        mean = sums.first[k, d] / kappa
        rate = prior.rate + 0.5 * max(sums.second[k, d] - kappa * mean * mean, 0.0)
        total += math.lgamma(shape) - math.lgamma(prior.shape) + 0.5 * math.log(prior.kappa / kappa)
        total += prior.shape * math.log(prior.rate) - shape * math.log(rate)
    if prior.finite:
        total += math.lgamma(n + prior.share) - math.lgamma(prior.share)
    else:
        total += math.lgamma(n) + math.log(prior.share)
    return total  # type: ignore[no-any-return]


@compiled_loop
def log_joint(prior: Prior, sums: Sums) -> float:
    """Return the log-probability of assignments and points, up to a constant."""
    total = 0.0
    for k in range(sums.size.size):
        if sums.size[k] > 0:
            total += _log_component(prior, sums, k)
    return total


@compiled_loop
def fill(sums: Sums, x: Floats, labels: Ints) -> None:
    """Add all points to their components."""
    for i in range(labels.size):
        _move(sums, x, i, labels[i], 1)


@called
def _conditional(prior: Prior, sums: Sums, x: Floats, i: Integer, p: Floats) -> Integer:
    """Write the probabilities of the components of a point that is in none of them; return how many there are.

    Of the components without points, a Dirichlet process uses the first one only.
    """
    fresh = True
    size: Any = 0
    top: Any = -np.inf
    for k in range(sums.size.size):
        n = sums.size[k]
        p[k] = -np.inf
        if n > 0 or (fresh if not prior.finite else True):
            weight = n + prior.share if prior.finite else (n if n > 0 else prior.share)
            p[k] = math.log(weight) + _log_predictive(prior, sums, x, i, k)
            top = max(top, p[k])
            size = k + 1
        if n == 0:
            fresh = False
    total = 0.0
    for k in range(size):
        p[k] = math.exp(p[k] - top)
        total += p[k]
    for k in range(size):
        p[k] /= total
    return size


@compiled_loop
def write_conditional(prior: Prior, sums: Sums, x: Floats, labels: Ints, i: int, p: Floats) -> int:
    """Write the probabilities of the components of a point given all others; the point stays where it is."""
    _move(sums, x, i, labels[i], -1)
    size = _conditional(prior, sums, x, i, p)
    _move(sums, x, i, labels[i], 1)
    return size  # type: ignore[no-any-return]


@called
def _find_row(labels: Ints, i: Integer, rows: int, rank: Ints) -> Integer:
    """Return the row of weights that belongs to a point and the partition of all others.

    ``rank`` gets the order in which the components are first used by the others, or -1; this does not depend on the
    numbers of the components. Rows are found by a hash of 64 bits, so that few partitions share one.
    """
    for k in range(rank.size):
        rank[k] = -1
    used = 0
    code = _U64(i + 1)
    for j in range(labels.size):
        if j != i:
            k = labels[j]
            if rank[k] < 0:
                rank[k] = used
                used += 1
            code = (code ^ _U64(rank[k] + 1)) * _FACTOR
            code ^= code >> _SHIFT
    return np.int64(code % _U64(rows))


@called
def _herd(weights: Floats, row: Integer, rank: Ints, p: Floats, size: Integer, ordered: Floats) -> Integer:
    """Choose a component by herding with the weights of a row, whose columns are components in their order of use."""
    used = 0
    for k in range(rank.size):
        used = max(used, rank[k] + 1)
    for k in range(rank.size):
        if rank[k] < 0:
            rank[k] = used
            used += 1
        ordered[rank[k]] = p[k] if k < size else 0.0
    chosen = np.int64(herd_argmax(weights, row * rank.size, ordered, rank.size))
    for k in range(rank.size):
        if rank[k] == chosen:
            return k
    return 0


@compiled_loop
def run_chain(
    prior: Prior,
    x: Floats,
    labels: Ints,
    sums: Sums,
    how: int,
    uniforms: Floats,
    weights: Floats,
    rank: Ints,
    work: Floats,
    together: Floats,
    figures: Floats,
    best: Ints,
) -> None:
    """Advance a chain by one sweep for each row of ``uniforms``, which Gibbs sampling uses.

    Herding uses ``weights`` (rows times components), with a row for each point and partition of the others. ``rank``
    (components,) and ``work`` (2, components) are buffers.
    ``together`` (points, points) gets the sum of the probabilities that a point is in the component of another,
    ``figures`` (sweeps, 3) the number of components, the log-probability and the share of the largest component, and
    ``best`` the best assignment if it is better than ``figures`` before.
    """
    points, slots = labels.size, sums.size.size
    rows, p = weights.size // slots, work[0]
    highest = -np.inf
    for t in range(uniforms.shape[0]):
        for i in range(points):
            _move(sums, x, i, labels[i], -1)
            size = _conditional(prior, sums, x, i, p)
            if how == GIBBS:
                k = np.int64(pick(p, size, uniforms[t, i]))
            else:
                row = _find_row(labels, i, rows, rank)
                k = _herd(weights, row, rank, p, size, work[1])
            labels[i] = k
            _move(sums, x, i, k, 1)
            for j in range(together.shape[0]):
                if j != i and labels[j] < size:
                    together[i, j] += p[labels[j]]
        used, largest = 0, 0
        for c in range(slots):
            used += sums.size[c] > 0
            largest = max(largest, sums.size[c])
        value = 0.0
        for c in range(slots):
            if sums.size[c] > 0:
                value += _log_component(prior, sums, c)
        figures[t, 0], figures[t, 1], figures[t, 2] = used, value, largest / points
        if value > highest:
            highest = value
            for i in range(points):
                best[i] = labels[i]
