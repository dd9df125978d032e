"""Random Bayesian networks that are small enough to be enumerated."""

from __future__ import annotations

from typing import Any

import numpy as np

import gibbsite as gs


def random_network(seed: int, n: int = 6, zeros: bool = False) -> gs.FactorGraph:
    """Return a network of sites of two or three states, with up to three parents each."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n)
    factors: list[Any] = []
    for k in range(n):
        parents = sorted(rng.choice(k, size=min(k, int(rng.integers(0, 4))), replace=False).tolist())
        table = rng.dirichlet(np.ones(cards[k]), size=[int(cards[p]) for p in parents])
        if zeros:
            table[..., 0] *= rng.random(table.shape[:-1]) < 0.7
            table /= table.sum(axis=-1, keepdims=True)
        factors.append((tuple(f"v{p}" for p in [*parents, k]), table))
    return gs.FactorGraph({f"v{k}": [f"s{a}" for a in range(cards[k])] for k in range(n)}, factors, directed=True)


def law_of(model: gs.FactorGraph) -> Any:
    """Return the joint probabilities of all states, by enumeration."""
    return gs.exact.enumerate(model).law
