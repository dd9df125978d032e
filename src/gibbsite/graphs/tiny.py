"""Small models of all graph kinds, for verifying and compiling kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite.models.factor import FactorGroup, TableFactors
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.causes import make_factors
from gibbsite.models.networks.noisy import Causes
from gibbsite.models.weighted import AgreementFactors
from gibbsite.models.zoo import distance_potts, ising, ising_grid, potts


def tiny_models() -> dict[str, FactorGraph]:
    """Return small models of all graph kinds that combine features in which errors are likely.

    The features are zeros, sites of one state, isolated sites, parallel factors, odd cycles, strong fields and
    couplings, and periodic axes.
    """
    rng = np.random.default_rng(20161)
    glass = np.triu(rng.normal(size=(4, 4)), 1)
    grid = ising_grid((2, 2), coupling=(0.6, -0.4), field=np.array([[0.3, -1.0], [0.0, 0.5]]))
    ring = ising_grid((3,), coupling=np.array([[0.5, -0.3, 0.8]]), field=0.2, periodic=True)
    links: list[tuple[Any, Any]] = [
        (("a", "b"), [[1, 2, 0], [3, 1, 1]]),
        (("b", "c"), [[1, 0.5], [2, 1], [0.2, 4]]),
        (("c", "a"), [[1, 2], [2, 1]]),
        (("a", "c"), [[1, 3], [1, 1]]),
        (("fixed", "b"), [[1, 2, 2]]),
        (("lonely",), [0.2, 0.0, 0.8]),
    ]
    mixed = FactorGraph({"a": 2, "b": ["x", "y", "z"], "c": 2, "lonely": 3, "fixed": 1}, links)
    tables = FactorGraph(
        {"p": 2, "q": 3, "r": 2, "s": 2},
        [
            (("p", "q", "r"), rng.uniform(0.1, 2, (2, 3, 2)) * (rng.random((2, 3, 2)) < 0.9)),
            (("q", "s"), [[1, 2], [3, 0], [1, 1]]),
            (("s", "r", "p"), rng.uniform(0.1, 2, (2, 2, 2))),
            (("p",), [1, 2]),
        ],
    )
    agreements: list[FactorGroup] = [
        AgreementFactors([[0, 1], [1, 0], [1, 2]], [0.4, 0.3, -400.0]),
        TableFactors([[0], [2], [3]], [[0.0, 0.5, -np.inf], [0.1, 0.0, 0.3], [-np.inf, 0.0, 0.2]]),
    ]
    effects = (
        np.array([[1.0, 0.0, 0.0], [0.3, 0.5, 0.2]]),
        np.array([[0.6, 0.2, 0.2], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]),
    )
    noisy = [
        make_factors([0, 1, 2], Causes("max", effects, np.array([0.8, 0.2, 0.0]))),
        make_factors([2, 0, 3], Causes("logistic", (np.array([0.0, 1.0, -2.0]), np.array([0.5, 0.0])), np.array(0.3))),
        make_factors([3, 4], Causes("max", (np.array([[0.5, 0.5], [0.0, 1.0]]),), np.array([0.1, 0.9]), True)),
    ]
    sites = {"a": 2, "b": 3, "y": 3, "z": 2, "v": 2}
    causes = FactorGraph(sites, [("a", [0.6, 0.4]), ("b", [1, 2, 1])], groups=noisy)
    return {
        "glass": ising(glass, rng.normal(size=4)),
        "grid": grid,
        "ring": ring,
        "steep": ising(np.array([[0, 6.0], [6.0, 0]]), [40.0, -38.0]),
        "potts": potts(np.array([[0, 0.7, 0], [0.7, 0, -0.5], [0, -0.5, 0]]), 3),
        "distance": distance_potts([[0.0, 0.0], [1.0, 0.2], [0.4, 0.9], [4.0, 4.0]], 2, 0.5, 0.8, [0.0, 0.3]),
        "agreements": FactorGraph(4, groups=agreements, states=3),
        "mixed": mixed,
        "causes": causes,
        "tables": tables,
    }
