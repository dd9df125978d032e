"""Models go to other processes and come back as they were, without what was found out about them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs


def log_normal(x: Any) -> float:
    return float(-0.5 * x[0] ** 2)


def draw(x: Any, rng: Any) -> float:
    return float(rng.standard_normal())


def models(folder: Path) -> dict[str, gs.Model]:
    return {
        "tables": gs.example("asia").observe({"smoke": "yes"}),
        "lattice": gs.ising_grid((3, 3), coupling=0.4),
        "distance": gs.models.distance_potts(np.random.default_rng(1).random((9, 2)), 3, gamma=1.0, beta=0.3),
        "normal": gs.Gaussian(np.zeros(2), precision=np.array([[2.0, 0.5], [0.5, 1.0]])),
        "density": gs.LogDensity(log_normal, dim=1),
        "conditionals": gs.Conditionals({"a": draw}),
        "bugs": gs.bugs("model { for (i in 1:2) { y[i] ~ dnorm(m, 1) }  m ~ dnorm(0, 1) }", {"y": [1, 2]}),
        "stored": gs.formats.store_edges([([0, 1], [1, 2], 0.3)], folder / "stored", sites=3),
    }


NAMES = ("tables", "lattice", "distance", "normal", "density", "conditionals", "bugs", "stored")


@pytest.mark.parametrize("name", NAMES)
def test_models_survive(name: str, tmp_path: Path) -> None:
    model = models(tmp_path)[name]
    graph = gs.graphs.compile_graph(model)
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert type(other) is type(model)
        assert other.sites == model.sites
        assert gs.graphs.compile_graph(other).digest == graph.digest
