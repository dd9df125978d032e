"""The small models of ``tests.campaigns.golden``, one or more of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import gibbsite as gs
import numba
from gibbsite.models.random import gamma, normal


def ising_6() -> gs.FactorGraph:
    rng = np.random.default_rng(5)
    return gs.ising(np.triu(rng.normal(0.0, 0.4, (6, 6)), 1), np.linspace(-0.5, 0.5, 6))


def weak() -> gs.FactorGraph:
    return gs.ising(np.triu(np.full((6, 6), 0.1), 1), np.linspace(-0.5, 0.5, 6))


def friendly() -> gs.FactorGraph:
    """A Potts model whose sites want to agree, for clusters."""
    return gs.potts(np.triu(np.random.default_rng(7).uniform(0.1, 0.6, (6, 6)), 1), 3)


def tables() -> gs.FactorGraph:
    rng = np.random.default_rng(6)
    cards = (2, 3, 2, 4, 3)
    names = "abcde"
    scopes = ((0, 1), (1, 2, 3), (3, 4), (0, 4), (2,))
    factors = [
        ([names[i] for i in scope], np.exp(0.7 * rng.normal(size=[cards[i] for i in scope]))) for scope in scopes
    ]
    return gs.FactorGraph(dict(zip(names, cards, strict=True)), factors)


def zeros() -> gs.FactorGraph:
    """Three-colourings of a path with a preference: moves of single sites connect them."""
    differ = 1.0 - np.eye(3)
    sites = [f"v{k}" for k in range(5)]
    pairs = [((a, b), differ) for a, b in pairwise(sites)]
    return gs.FactorGraph(dict.fromkeys(sites, 3), [*pairs, ("v0", [1.0, 2.0, 3.0])])


def potts_6() -> gs.FactorGraph:
    rng = np.random.default_rng(7)
    return gs.potts(np.triu(rng.normal(0.0, 0.5, (6, 6)), 1), 3)


def lattice() -> gs.FactorGraph:
    return gs.ising_grid((6, 7), coupling=0.3, field=0.1)


def rings() -> gs.FactorGraph:
    return gs.ising_grid((8, 8), coupling=0.25, field=0.05, periodic=True)


def machine() -> gs.FactorGraph:
    rng = np.random.default_rng(8)
    return gs.rbm(rng.normal(0.0, 0.3, (20, 18)), rng.normal(0.0, 0.3, 20), rng.normal(0.0, 0.3, 18))


def gaussian() -> gs.Gaussian:
    precision = 2.0 * np.eye(5) - 0.6 * (np.eye(5, k=1) + np.eye(5, k=-1))
    return gs.Gaussian(precision=precision, mean=np.arange(5.0))


def density() -> gs.LogDensity:
    return gs.LogDensity(
        lambda x: -0.5 * (x[0] ** 2 + (x[1] - x[0]) ** 2),
        lambda x: np.array([-x[0] + (x[1] - x[0]), -(x[1] - x[0])]),
        dim=2,
    )


def functions() -> gs.ContinuousModel:
    rng = np.random.default_rng(9)
    table = np.concatenate([np.ones((60, 1)), rng.normal(size=(60, 1))], axis=1)
    label = (rng.random(60) < 0.5).astype(float)
    factors = [gs.factors.logistic_factors([0, 1], table, label), gs.factors.normal_factors([0, 1], 0.0, 2.0)]
    return gs.ContinuousModel(2, factors, states=gs.Interval(-6.0, 6.0))


def mixed() -> gs.ContinuousModel:
    return gs.ContinuousModel(
        {"x": gs.Interval(-8.0, 8.0), "side": 3},
        [(lambda v: -0.5 * (v[0] - v[1]) ** 2, ("x", "side")), (lambda v: 0.3 * v[0], ("side",))],
    )


def conditionals() -> gs.Conditionals:
    @numba.njit
    def draw_mean(x: Any, words: Any) -> Any:
        return normal(words, 1.0, 1.0 / math.sqrt(4.0 * x[1]))

    @numba.njit
    def draw_precision(x: Any, words: Any) -> Any:
        return gamma(words, 3.0, 1.0) / (1.0 + 2.0 * (x[0] - 1.0) ** 2)

    sites = {"mean": gs.Interval(), "precision": gs.Interval(0.0)}
    return gs.Conditionals({"mean": draw_mean, "precision": draw_precision}, sites)


MODELS: dict[str, Callable[[], Any]] = {
    "ising": ising_6,
    "tables": tables,
    "zeros": zeros,
    "potts": potts_6,
    "lattice": lattice,
    "rings": rings,
    "weak": weak,
    "friendly": friendly,
}
