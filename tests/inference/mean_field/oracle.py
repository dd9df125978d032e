"""Mean field by sums over all states: slow, plain, and knowing nothing of graph kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs

Law = list[NDArray[np.float64]]


def random_law(cards: list[int], rng: np.random.Generator, sparse: float) -> Law:
    """Return random laws of all sites; some states get nothing, with ``sparse`` = 1 all but one."""
    law = []
    for size in cards:
        weights = rng.exponential(size=size) * (rng.random(size) >= sparse)
        if not weights.any():
            weights[rng.integers(size)] = 1.0
        law.append(weights / weights.sum())
    return law


class Oracle:
    """A model as one array of log-potentials."""

    def __init__(self, model: gs.FactorGraph) -> None:
        self.exact = gs.exact.enumerate(model)
        self.cards = [int(k) for k in model.cards]
        with np.errstate(divide="ignore"):
            self.logs = np.log(self.exact.law) + self.exact.log_z

    def cells(self, law: Law, graph: gs.graphs.Graph) -> NDArray[np.float64]:
        return np.array([p[1] for p in law]) if graph.binary else np.concatenate(law)

    def weights(self, law: Law, leave_out: int | None = None) -> NDArray[np.float64]:
        """Return the probability of every state; the law of one site may be left out."""
        total = np.ones(())
        for site, p in enumerate(law):
            total = np.multiply.outer(total, np.ones_like(p) if site == leave_out else p)
        return total

    def mean(self, weights: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.where(weights > 0, weights * self.logs, 0.0).sum(axis=axes)

    def bound(self, law: Law) -> float:
        p = np.concatenate(law)
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        return float(self.mean(self.weights(law), tuple(range(len(law))))) + entropy

    def mean_log_weights(self, law: Law, site: int) -> NDArray[np.float64]:
        others = tuple(k for k in range(len(law)) if k != site)
        return self.mean(self.weights(law, site), others)

    def best(self, law: Law, site: int) -> NDArray[np.float64]:
        logs = self.mean_log_weights(law, site)
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def sweep(self, law: Law, parallel: bool, damping: float) -> tuple[Law, float]:
        new = [p.copy() for p in law]
        change = 0.0
        for site in range(len(law)):
            best = self.best(law if parallel else new, site)
            change = max(change, float(np.abs(best - new[site]).max()))
            new[site] = (1 - damping) * new[site] + damping * best
        return new, change

    def unary_zeros(self) -> list[NDArray[np.bool_]]:
        """Return which states occur in no possible state."""
        n = self.logs.ndim
        return [np.isneginf(self.logs.max(axis=tuple(k for k in range(n) if k != i))) for i in range(n)]
