"""Which points belong together: mixtures of normal distributions, with any number of components or a given one.

Parameters and weights of the components are integrated out, so only the assignments of the points are sampled, by
collapsed Gibbs sampling, at random or herded. The number of components is given, or free (a Dirichlet process).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number, checked
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.collapsed.averages import (
    describe_verdict,
    exact_verdict,
    judge_averages,
    unjudged,
    warn_unless_converged,
)
from gibbsite.applications.collapsed.components import (
    GIBBS,
    HERDED,
    Prior,
    fill,
    log_joint,
    make_prior,
    make_sums,
    run_chain,
)
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.results.answer import Diagnostics

METHODS = ("gibbs", "herded", "exact")
_MOST_EXACT = 10  # points whose partitions are enumerated
_WEIGHTS = 2**22  # entries of the table of herding weights
_MOST_POINTS = 5_000
_MOST_SLOTS = 100  # components that a Dirichlet process can use


@dataclass(frozen=True)
class Clustering:
    """The result of a clustering.

    Attributes
    ----------
    together : array (points, points)
        Probabilities that two points are in the same component.
    components : array
        Probabilities of 0, 1, 2, ... components that have points.
    labels : array (points,)
        The most probable assignment that was visited.
    method : str
        "gibbs", "herded" or "exact".
    diagnostics : Diagnostics
        How far to trust it.
    """

    together: Floats
    components: Floats
    labels: Ints
    method: str
    diagnostics: Diagnostics

    def summary(self) -> str:
        """Return the numbers of components with their probabilities, the sizes of the best assignment, the verdict."""
        shares = ", ".join(f"{k}: {p:.3f}" for k, p in enumerate(self.components) if p >= 0.005)
        sizes = ", ".join(map(str, sorted(np.bincount(self.labels).tolist(), reverse=True)))
        lines = [f"number of components: {shares}", f"best assignment: components of {sizes} points"]
        return "\n".join([*lines, describe_verdict(self.method, self.diagnostics), *self.diagnostics.reasons])

    def __repr__(self) -> str:
        return f"Clustering({len(self.labels)} points, {describe_verdict(self.method, self.diagnostics)})"


@checked
def cluster_points(
    X: Any,
    *,
    components: int | None = None,
    concentration: float = 1.0,
    strength: float = 0.1,
    shape: float = 2.0,
    rate: float = 0.2,
    method: str = "gibbs",
    sweeps: int = 1000,
    chains: int = 4,
    rng: int = 1,
) -> Clustering:
    """Cluster points by a mixture of normal distributions whose parameters are integrated out.

    Parameters
    ----------
    X : array (points, coordinates)
        The points; coordinates are scaled to mean 0 and standard deviation 1.
    components : int, optional
        Number of components, with Dirichlet(concentration / components) weights; by default it is free, with the prior
        of a Dirichlet process.
    concentration : float
        The larger it is, the more components are used.
    strength, shape, rate : float
        Prior of a component: in each scaled coordinate, 1 / variance is Gamma(shape, rate), and the mean is normal
        around 0 with the variance of a mean of ``strength`` points.
    method : {"gibbs", "herded", "exact"}
        Collapsed Gibbs sampling, at random or herded, or a sum over all partitions of up to ten points. Herding has a
        vector of weights for each point and partition of the others. With more than a dozen points most of these
        partitions occur only once, and the choices are then spread no better than random ones.
    sweeps : int
        Sweeps of each chain; a tenth of them is left out at the beginning.
    chains : int
        Number of chains; they start from one component and from random ones in turn.
    rng : int
        Seed.

    Returns
    -------
    Clustering

    Warns
    -----
    ConvergenceWarning
        If the chains of Gibbs sampling have not converged.

    References
    ----------
    Neal (2000), Markov chain sampling methods for Dirichlet process mixture models, algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsite.applications import cluster_points
    >>> rng = np.random.default_rng(1)
    >>> points = np.concatenate([rng.normal(-5, 1, (20, 2)), rng.normal(5, 1, (30, 2))])
    >>> found = cluster_points(points, sweeps=200)
    >>> int(found.components.argmax()), sorted(np.bincount(found.labels).tolist())
    (2, [20, 30])
    """
    if method not in METHODS:
        raise ArgumentError(unknown("method", method, METHODS))
    x = _read_points(X)
    if components is not None:
        components = check_integer("components", components, 1, len(x))
    for name, value in (("concentration", concentration), ("strength", strength), ("shape", shape), ("rate", rate)):
        check_number(name, value)
    sweeps, chains = check_integer("sweeps", sweeps, 20), check_integer("chains", chains, 1)
    rng = check_integer("rng", rng, 0)
    prior = make_prior(len(x), components, float(concentration), float(strength), float(shape), float(rate))
    if method == "exact":
        return _add_up(x, components, prior)
    return _sample(x, components, prior, method, sweeps, chains, rng)


def _read_points(X: Any) -> Floats:
    x = read_reals(X, "X")
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or len(x) < 2 or not x.shape[1] or not np.isfinite(x).all():
        raise ArgumentError(
            f"{argument('X')} must be finite numbers of at least two points, a row for each, got shape {x.shape}."
        )
    if len(x) > _MOST_POINTS:
        raise TooLargeError(f"There are {len(x):,} points; at most {_MOST_POINTS:,} are clustered.")
    spread = x.std(axis=0)
    if (spread <= 1e-12 * np.abs(x).max(axis=0)).any():
        raise ArgumentError(f"Coordinate {int(spread.argmin())} of {argument('X')} is the same for all points.")
    return np.ascontiguousarray((x - x.mean(axis=0)) / spread)


def _sample(
    x: Floats, components: int | None, prior: Prior, method: str, sweeps: int, chains: int, rng: int
) -> Clustering:
    """Average over chains."""
    points, warmup = len(x), max(sweeps // 10, 1)
    slots = min(points, _MOST_SLOTS) if components is None else components
    how, rows = (GIBBS, 1) if method == "gibbs" else (HERDED, _WEIGHTS // slots)
    together, figures = np.zeros((points, points)), np.zeros((chains, sweeps - warmup, 3))
    best, highest = np.zeros(points, np.int64), -np.inf
    for chain, stream in enumerate(np.random.SeedSequence(rng).spawn(chains)):
        draw = np.random.default_rng(stream)
        labels = draw.integers(0, min(slots, 1 + 4 * (chain % 2)), points)
        sums, found = make_sums(slots, x.shape[1]), labels.copy()
        rank, work = np.zeros(slots, np.int64), np.zeros((2, slots))
        fill(sums, x, labels)
        weights = draw.random((rows, slots))
        weights = (weights - weights.mean(axis=1, keepdims=True)).ravel()
        for length, pairs, seen in (
            (warmup, np.zeros((0, 0)), np.zeros((warmup, 3))),
            (sweeps - warmup, together, figures[chain]),
        ):
            uniforms = draw.random((length, points))
            run_chain(prior, x, labels, sums, how, uniforms, weights, rank, work, pairs, seen, found)
        if figures[chain, :, 1].max() > highest:
            best, highest = found, float(figures[chain, :, 1].max())
    shares = np.bincount(figures[:, :, 0].astype(np.int64).ravel()) / figures[:, :, 0].size
    together = (together + together.T) / (2 * chains * (sweeps - warmup))
    np.fill_diagonal(together, 1.0)
    verdict = (judge_averages(figures, ranks=False) if method == "gibbs" else unjudged(3))[1]
    if components is None and slots < points and figures[:, :, 0].max() == slots:
        reason = f"All {slots} components that are provided were in use; choose a smaller concentration."
        verdict = replace(verdict, converged=False, reasons=(*verdict.reasons, reason))
    warn_unless_converged(verdict)
    return Clustering(together, shares, np.unique(best, return_inverse=True)[1].ravel(), method, verdict)


def _add_up(x: Floats, components: int | None, prior: Prior) -> Clustering:
    """Add up all partitions."""
    points = len(x)
    if points > _MOST_EXACT:
        raise TooLargeError(
            f"The partitions of {points} points are too many; an exact sum takes at most {_MOST_EXACT} points. Use "
            f"{argument('method', 'gibbs')}."
        )
    slots = points if components is None else components
    logs, found = [], []
    for labels in _partitions(points, slots):
        sums = make_sums(slots, x.shape[1])
        fill(sums, x, np.array(labels))
        used = max(labels) + 1
        copies = 0.0 if components is None else math.lgamma(components + 1) - math.lgamma(components - used + 1)
        logs.append(log_joint(prior, sums) + copies)
        found.append(labels)
    law = np.exp(np.array(logs) - max(logs))
    law /= law.sum()
    every = np.array(found)
    together = np.einsum("r,rij->ij", law, (every[:, :, None] == every[:, None, :]).astype(float))
    shares: Floats = np.bincount(every.max(axis=1) + 1, law).astype(np.float64)
    return Clustering(together, shares, every[int(law.argmax())], "exact", exact_verdict(1)[1])


def _partitions(points: int, most: int) -> Iterator[list[int]]:
    """Yield all partitions into at most ``most`` parts: labels in the order of their first use."""
    labels, used = [0], [1]
    while labels:
        if len(labels) == points:
            yield list(labels)
            while labels and labels[-1] + 1 >= min(used[len(labels) - 2] + 1 if len(labels) > 1 else 1, most):
                labels.pop()
                used.pop()
            if not labels:
                return
            labels[-1] += 1
            used[-1] = max(used[-2], labels[-1] + 1)
        else:
            labels.append(0)
            used.append(used[-1])
