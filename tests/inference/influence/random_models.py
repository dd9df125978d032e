"""Random small models of every kind, and their influence by brute force."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs

KINDS = ("lattice", "ising", "higher", "potts", "alike", "coloring", "pairwise", "tables", "zeros", "observed")


def random_model(kind: str, rng: np.random.Generator) -> gs.FactorGraph:
    scale = float(rng.choice([0.05, 0.3, 1.0, 3.0]))
    n = int(rng.integers(2, 6))
    if kind == "lattice":
        shape = (3, 2) if rng.random() < 0.5 else (1, n)
        weights = [rng.normal(0, scale, (*shape,)) for _ in shape]
        return gs.ising_grid(shape, coupling=weights, field=rng.normal(0, scale, shape))
    if kind == "ising":
        couplings = np.triu(rng.normal(0, scale, (n, n)), 1) * (rng.random((n, n)) < 0.8)
        return gs.ising(couplings, rng.normal(0, scale, n))
    if kind == "potts":
        pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.6] or [(0, 1)]
        states = int(rng.integers(2, 5))
        group = gs.factors.AgreementFactors(np.array(pairs), rng.normal(0, scale, len(pairs)))
        field = gs.factors.FieldFactors(n, rng.normal(0, scale, (n, states)), spin=False)
        return gs.FactorGraph(n, groups=[group, field], states=states)
    if kind == "alike":  # few different weights and fields, so that numbers of neighbours are tried
        hub = [(0, i) for i in range(1, n)]
        states, some = int(rng.integers(2, 5)), rng.normal(0, scale, 2)
        some = -np.abs(some) if rng.random() < 0.5 else some
        group = gs.factors.AgreementFactors(np.array(hub), rng.choice(some, len(hub)))
        field = gs.factors.FieldFactors(n, rng.choice([0.0, scale, 2.0 * scale], (n, states)), spin=False)
        return gs.FactorGraph(n, groups=[group, field], states=states)
    if kind == "coloring":
        n, states = int(rng.integers(2, 7)), int(rng.integers(2, 5))
        pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.6] or [(0, 1)]
        differ = np.where(np.eye(states) > 0, -np.inf if rng.random() < 0.7 else -scale, 0.0)
        tables: list[tuple[Any, Any]] = [(pair, differ) for pair in pairs]
        for i in range(n):  # lists of colors, preferred ones among them
            if rng.random() < 0.5:
                own = rng.choice([-np.inf, 0.0, 0.0, scale], states)
                own[int(rng.integers(states))] = 0.0
                tables.append(((i,), own))
        return gs.FactorGraph(n, log_factors=tables, states=states)
    if kind == "observed":
        model = random_model(str(rng.choice(["ising", "pairwise", "tables", "alike"])), rng)
        return model.observe({0: model.labels(0)[0]}) if model.n_sites > 1 else model
    cards = [2] * n if kind == "higher" else rng.integers(2, 4 if kind == "tables" else 5, n).tolist()
    largest = 2 if kind == "pairwise" else 3
    factors: list[tuple[Any, Any]] = [((i,), rng.normal(0, scale, cards[i])) for i in range(n)]
    for scope in [s for size in range(2, largest + 1) for s in combinations(range(n), size)]:
        if rng.random() < (0.6 if len(scope) == 2 else 0.3):
            table = rng.normal(0, scale, [cards[i] for i in scope])
            if kind == "higher":  # a single product of spins, as theorem 12 has it
                signs = np.ones([2] * len(scope))
                for axis in range(len(scope)):
                    signs = signs * np.array([-1.0, 1.0]).reshape([-1 if a == axis else 1 for a in range(len(scope))])
                table = rng.normal(0, scale) * signs
            if kind == "zeros":
                zero = rng.random(table.shape) < 0.15
                zero.flat[int(rng.integers(zero.size))] = False
                table[zero] = -np.inf
            factors.append((scope, table))
    return gs.FactorGraph({f"s{i}": cards[i] for i in range(n)}, log_factors=factors)


def conditionals(model: gs.FactorGraph, site: int) -> NDArray[np.float64]:
    """All conditional laws of a site, as an array over all sites with the law along its own axis."""
    cards = model.cards.tolist()
    total = np.zeros(cards)
    for group in model.groups:
        tables = np.broadcast_to(group.log_tables(model.cards), (group.size, *group.log_tables(model.cards).shape[1:]))
        for scope, table in zip(group.scopes.tolist(), tables, strict=True):
            if site in scope:
                order = np.argsort(scope)
                shape = [cards[i] if i in scope else 1 for i in range(len(cards))]
                total = total + table.transpose(order).reshape(shape)
    top = total.max(axis=site, keepdims=True)
    weight = np.where(np.isneginf(top), 1.0, np.exp(total - np.where(np.isneginf(top), 0.0, top)))
    return weight / weight.sum(axis=site, keepdims=True)


def brute_influence(model: gs.FactorGraph) -> NDArray[np.float64]:
    found = np.zeros((model.n_sites, model.n_sites))
    for i in range(model.n_sites):
        law = conditionals(model, i)
        for j in range(model.n_sites):
            if i != j:
                states = np.moveaxis(law, j, 0)
                for x, y in combinations(range(len(states)), 2):
                    axis = i if i < j else i - 1
                    distance = 0.5 * np.abs(states[x] - states[y]).sum(axis=axis)
                    found[i, j] = max(found[i, j], float(distance.max()))
    return found
