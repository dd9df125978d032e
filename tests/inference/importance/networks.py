"""Random Bayesian networks with evidence, for tests and campaigns: rare causes, certain rows, zeros."""

from __future__ import annotations

import numpy as np

import gibbsite as gs


def random_network(number: int, most_sites: int = 16) -> gs.FactorGraph:
    """Make a network with evidence of positive probability, as the number says."""
    rng = np.random.default_rng([22, number])
    n = int(rng.integers(3, most_sites + 1))
    cards = rng.integers(2, 4, n)
    sharp = rng.choice([0.3, 1.0, 3.0, 8.0])  # how far the logarithms of a row are apart
    certain = rng.choice([0.0, 0.0, 0.4, 0.8])  # share of rows that are certain
    factors = []
    for i in range(n):
        parents = rng.permutation(i)[: rng.integers(0, 4)].tolist()
        shape = tuple(int(cards[p]) for p in parents)
        rows = np.exp(sharp * rng.normal(size=(*shape, int(cards[i]))))
        if not parents and rng.random() < 0.3:  # a rare cause
            rows = np.full(cards[i], 10.0 ** -rng.uniform(2, 7))
            rows[0] = 1.0
        flat = rows.reshape(-1, int(cards[i]))
        for row in flat if parents else flat[:0]:
            if rng.random() < certain:
                keep = rng.integers(row.size)
                row[:] = np.arange(row.size) == keep
        rows = rows / rows.sum(axis=-1, keepdims=True)
        factors.append(([f"v{p}" for p in (*parents, i)], rows))
    sites = {f"v{i}": int(cards[i]) for i in range(n)}
    model = gs.FactorGraph(sites, factors, directed=True)
    seen = rng.permutation(n)[: rng.integers(1, 1 + (2 * n) // 3)].tolist()
    if rng.random() < 0.6:  # evidence that may be most unlikely
        evidence = {f"v{i}": int(rng.integers(cards[i])) for i in seen}
    else:
        evidence = {}
        state: dict[int, int] = {}
        for i, (scope, rows) in enumerate(factors):
            law = rows[tuple(state[int(name[1:])] for name in scope[:-1])]
            state[i] = int(rng.choice(law.size, p=law))
        evidence = {f"v{i}": state[i] for i in seen}
    try:
        observed = model.observe(evidence)
        gs.solve_exact(observed)
    except gs.GibbsiteError:
        return random_network(number + 1_000_000, most_sites)  # impossible evidence
    return observed
