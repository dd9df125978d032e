"""Mixtures: probabilities against integrals and enumeration, chains against exact sums."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.collapsed import components as moves
from gibbsite.applications.collapsed.mixture import _partitions, _read_points, cluster_points

RNG = np.random.default_rng(4)
X = np.concatenate([RNG.normal(-1.0, 0.5, (3, 2)), RNG.normal(1.0, 0.7, (3, 2))])
SCALED = _read_points(X)
ARGUMENTS = {"concentration": 0.8, "strength": 0.3, "shape": 1.5, "rate": 0.4}


def prior(many: int | None) -> moves.Prior:
    return moves.make_prior(6, many, 0.8, 0.3, 1.5, 0.4)


def log_joint(labels: Any, slots: int, many: int | None) -> float:
    sums = moves.make_sums(slots, 2)
    moves.fill(sums, SCALED, np.array(labels, np.int64))
    return float(moves.log_joint(prior(many), sums))


def test_partitions_are_counted_by_bell_numbers() -> None:
    assert [sum(1 for _ in _partitions(n, n)) for n in range(1, 9)] == [1, 2, 5, 15, 52, 203, 877, 4140]
    assert sum(1 for _ in _partitions(5, 2)) == 16
    assert len({tuple(labels) for labels in _partitions(6, 3)}) == 122


def test_the_evidence_of_a_component_is_the_integral() -> None:
    """Of one coordinate: over means and precisions, by sums over a fine grid."""
    x, p = SCALED[:3, :1], prior(None)
    sums = moves.make_sums(1, 1)
    moves.fill(sums, np.ascontiguousarray(x), np.zeros(3, np.int64))
    mean, tau = np.linspace(-12, 12, 1601)[:, None], np.exp(np.linspace(-9, 6, 1501))[None]
    log = (p.shape - 1) * np.log(tau) - p.rate * tau + p.shape * math.log(p.rate) - math.lgamma(p.shape)
    log = log + 0.5 * np.log(p.kappa * tau / (2 * np.pi)) - 0.5 * p.kappa * tau * mean**2
    for value in x.ravel():
        log = log + 0.5 * np.log(tau) - 0.5 * tau * (value - mean) ** 2  # without the constant of each point
    integral = np.trapezoid(np.trapezoid(np.exp(log) * tau, np.log(tau).ravel(), axis=1), mean.ravel())
    ours = moves.log_joint(p, sums) - math.lgamma(3) - math.log(p.share)
    assert ours == pytest.approx(math.log(integral), abs=2e-4)


@pytest.mark.parametrize("many", [None, 3])
def test_conditionals_are_those_of_the_joint(many: int | None) -> None:
    slots = 6 if many is None else many
    for labels in ([0, 0, 1, 1, 2, 0], [0, 0, 0, 0, 0, 0], [2, 1, 0, 1, 1, 2], [0, 0, 0, 0, 0, 1]):
        if many is None and labels == [2, 1, 0, 1, 1, 2]:
            continue
        sums = moves.make_sums(slots, 2)
        moves.fill(sums, SCALED, np.array(labels, np.int64))
        for i in range(6):
            p = np.zeros(slots)
            size = moves.write_conditional(prior(many), sums, SCALED, np.array(labels, np.int64), i, p)
            rest = [label for j, label in enumerate(labels) if j != i]
            allowed = [k for k in range(slots) if many or k in rest or k == min(set(range(slots)) - set(rest))]
            logs = {k: log_joint([*labels[:i], k, *labels[i + 1 :]], slots, many) for k in allowed}
            top = np.logaddexp.reduce(list(logs.values()))
            for k in range(size):
                assert p[k] == pytest.approx(math.exp(logs[k] - top) if k in logs else 0.0, abs=1e-10)


def test_the_finite_mixture_is_a_sum_over_all_labels() -> None:
    exact = cluster_points(X, components=3, method="exact", **ARGUMENTS)
    together, total, used = np.zeros((6, 6)), 0.0, defaultdict(float)
    for labels in product(range(3), repeat=6):
        weight = math.exp(log_joint(labels, 3, 3))
        row = np.array(labels)
        together += weight * (row[:, None] == row)
        used[len(set(labels))] += weight
        total += weight
    np.testing.assert_allclose(exact.together, together / total, atol=1e-12)
    np.testing.assert_allclose(exact.components[1:], [used[k] / total for k in (1, 2, 3)], atol=1e-12)


def test_the_dirichlet_process_is_the_limit_of_many_components() -> None:
    exact = cluster_points(X, method="exact", **ARGUMENTS)
    sample = cluster_points(X, components=6, method="exact", **ARGUMENTS)
    assert np.abs(exact.together - sample.together).max() > 1e-3
    assert exact.components.sum() == pytest.approx(1.0)
    free = moves.make_prior(6, None, 0.8, 0.3, 1.5, 0.4)
    logs = {}
    for labels in _partitions(6, 6):
        sums = moves.make_sums(6, 2)
        moves.fill(sums, SCALED, np.array(labels))
        many = max(labels) + 1
        # K components with K large: K! / (K - k)! times Gamma functions, in the limit
        big = 10**7
        given = moves.Prior(*free[:3], 0.8 / big, True, free.gamma)
        logs[tuple(labels)] = moves.log_joint(given, sums) + sum(math.log(big - k) for k in range(many))
    top = np.logaddexp.reduce(list(logs.values()))
    shares = np.zeros(7)
    for labels, value in logs.items():
        shares[max(labels) + 1] += math.exp(value - top)
    np.testing.assert_allclose(exact.components, shares, atol=1e-5)


@pytest.mark.parametrize("many", [None, 2, 3])
def test_gibbs_agrees_with_the_exact_sum(many: int | None) -> None:
    exact = cluster_points(X, components=many, method="exact", **ARGUMENTS)
    found = cluster_points(X, components=many, sweeps=40_000, rng=2, **ARGUMENTS)
    assert found.diagnostics.converged
    size = found.diagnostics.ess_min
    assert np.abs(found.together - exact.together).max() < 6.0 * 0.5 / math.sqrt(size)
    assert np.abs(found.components - exact.components[: len(found.components)]).max() < 6.0 * 0.5 / math.sqrt(size)


def test_full_herding_has_errors_of_one_over_the_sweeps() -> None:
    exact = cluster_points(X, components=2, method="exact", **ARGUMENTS)
    errors = []
    for sweeps in (3_000, 300_000):
        found = cluster_points(X, components=2, method="herded", sweeps=sweeps, chains=1, **ARGUMENTS)
        errors.append(np.abs(found.together - exact.together).max())
    assert errors[0] < 0.01
    assert errors[1] < 2e-4
    assert found.diagnostics.converged is None


@pytest.mark.parametrize("method", ["gibbs", "herded"])
@pytest.mark.parametrize("many", [None, 4])
def test_clear_clusters_are_found(method: str, many: int | None) -> None:
    rng = np.random.default_rng(6)
    truth = np.repeat([0, 1, 2], [30, 40, 50])
    points = rng.normal(size=(120, 2)) * 0.5 + np.array([[-4.0, 0.0], [0.0, 4.0], [4.0, -1.0]])[truth]
    found = cluster_points(points, components=many, method=method, sweeps=400)
    assert len(set(zip(found.labels.tolist(), truth.tolist(), strict=True))) == 3
    assert found.components.argmax() == 3
    assert np.abs(found.together - (truth[:, None] == truth)).mean() < 0.05
    assert "components of 50, 40, 30 points" in found.summary()


def test_a_process_that_has_used_all_components_says_so() -> None:
    points = np.random.default_rng(9).normal(size=(150, 1))
    with pytest.warns(gs.ConvergenceWarning, match="has not converged.*All 100 components"):
        found = cluster_points(points, concentration=1e4, sweeps=40)
    assert found.diagnostics.converged is False
    assert "All 100 components" in found.diagnostics.reasons[-1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": [[1.0]]}, "at least two points"),
        ({"X": [[1.0, 2.0], [np.nan, 0.0]]}, "finite"),
        ({"X": [[1.0, 2.0], [1.0, 0.0]]}, "Coordinate 0"),
        ({"components": 0}, "components"),
        ({"components": 7}, "components"),
        ({"concentration": 0.0}, "concentration"),
        ({"rate": -1.0}, "rate"),
        ({"method": "best"}, "gibbs, herded, exact"),
        ({"X": np.arange(22.0).reshape(11, 2), "method": "exact"}, "at most 10 points"),
        ({"sweeps": 1}, "sweeps"),
    ],
)
def test_mistakes_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(gs.errors.GibbsiteError, match=message):
        cluster_points(**{"X": X, **given})
