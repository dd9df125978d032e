"""Random models that are small enough to be enumerated: zeros, fields, high order."""

from __future__ import annotations

import numpy as np

import gibbsite as gs


def random_model(number: int) -> gs.FactorGraph:
    """Make a factor graph of 3 to 9 sites: every third has zeros, every fifth tables of up to four sites.

    Contradictory zeros are drawn anew.
    """
    rng = np.random.default_rng(number)
    while True:
        cards = rng.integers(2, 4, rng.integers(3, 10))
        deviation = rng.uniform(0.3, 4.0)
        factors = []
        for _ in range(int(rng.integers(1, 4 * cards.size))):
            arity = int(rng.choice([1, 2, 2, 2, 3, 4] if number % 5 == 1 else [1, 2, 2, 2]))
            scope = rng.choice(cards.size, min(cards.size, arity), replace=False)
            table = np.exp(deviation * rng.normal(size=cards[scope]))
            if number % 3 == 0:
                table[rng.random(table.shape) < 0.3] = 0.0
            if not table.any():
                table.flat[0] = 1.0
            factors.append(([f"v{i}" for i in scope], table))
        model = gs.FactorGraph({f"v{i}": int(k) for i, k in enumerate(cards)}, factors)
        try:
            gs.exact.enumerate_states(model)
        except gs.errors.SupportError:
            continue
        return model


def all_states(model: gs.FactorGraph) -> np.ndarray:
    """Return the codes of all states, one row each."""
    return np.stack(np.meshgrid(*[np.arange(k) for k in model.cards], indexing="ij"), -1).reshape(-1, model.n_sites)
