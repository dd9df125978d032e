"""Models too large for exact inference are compared with exact marginals given states of some of their sites."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.results.verdict import conditional_marginals
from tests.campaigns.conditional_marginals import ACCURACY, try_once


def agree(strength: float) -> np.ndarray:
    return np.exp(strength * np.array([[1.0, -1.0], [-1.0, 1.0]]))


def gate_in_a_grid(causes: int, probability: float, side: int) -> gs.FactorGraph:
    """An alarm is raised by all causes together, or by mistake; every cause is tied to a site of a grid.

    The region in which all causes are present has a probability of about 0.03 and lasts for thousands of sweeps,
    although each cause by itself is common.
    """
    grid = {(i, j): f"grid{i}_{j}" for i in range(side) for j in range(side)}
    names = [f"cause{k}" for k in range(causes)]
    alarm = np.full((2,) * causes, 30.0 * probability**causes)
    alarm[(1,) * causes] = 0.999
    pairs = [(grid[i, j], grid[at]) for i, j in grid for at in ((i + 1, j), (i, j + 1)) if at in grid]
    ties = [((name, grid[2 * (k // 4), 2 * (k % 4)]), agree(0.2)) for k, name in enumerate(names)]
    single = [(name, [1.0 - probability, probability]) for name in names]
    factors = [*((pair, agree(0.2)) for pair in pairs), *single, (tuple(names), alarm), *ties]
    return gs.FactorGraph(dict.fromkeys([*names, *grid.values()], 2), factors)


def sample(model: gs.FactorGraph, seed: int, sweeps: int = 4000) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, sweeps=sweeps, rng=seed, progress=False, start=np.zeros(model.n_sites, np.int64))


@pytest.fixture(scope="module")
def gate() -> gs.FactorGraph:
    return gate_in_a_grid(10, 0.25, 16)


def test_regions_of_connected_models_are_not_missed(gate: gs.FactorGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """No chain of these runs enters the region; without the comparison they are called converged."""
    known = gs.solve_exact(gate).marginals

    def count_false() -> int:
        false = 0
        for seed in (2, 4):
            result = sample(gate, seed)
            error = max(abs(result.marginals[site][1] - known[site][1]) for site in gate.sites)
            false += bool(result.diagnostics.converged) and error > 0.02
        return false

    assert count_false() == 0
    monkeypatch.setattr(conditional_marginals, "MOST_SITES", 0)
    assert count_false() == 2


def test_the_reason_names_a_site_and_both_probabilities(gate: gs.FactorGraph) -> None:
    (reason,) = sample(gate, 2).diagnostics.reasons
    assert "by exact inference given states of other sites" in reason
    assert any(f"{site} = " in reason for site in gate.sites)


def test_standard_errors_cover_what_exact_averages_know_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """This run has entered a region so seldom that its own standard errors are too small: by 4.4 of them."""
    found = try_once("gates", 86)
    assert found["converged"] and found["error"] == 0.0 and found["gap"] > ACCURACY
    monkeypatch.setattr(conditional_marginals, "_PRECISE", 0.0)
    alone = try_once("gates", 86)
    assert alone["converged"] and alone["error"] == alone["gap"] == found["gap"]


@pytest.mark.parametrize(("coupling", "sweeps"), [(0.2, 2000), (0.36, 8000)])
def test_right_runs_are_not_refused(coupling: float, sweeps: int) -> None:
    for seed in range(3):
        assert sample(gs.ising_grid((24, 24), coupling), seed, sweeps).diagnostics.converged
