"""Sampling of structures: against the sum over all structures of up to five sites."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError, ConvergenceWarning, TooLargeError
from gibbsite.learn import Cases, sample_structures
from gibbsite.learn.networks.exact_search import score_all
from gibbsite.learn.networks.scores import make_data, read_score
from tests.learn.networks.test_structures import all_structures, parents_of, random_cases


def exact_edges(cases: Cases, score: str, most: int, keep: Any = None) -> tuple[Floats, dict[bytes, float]]:
    """Return the probabilities of edges, and of all structures, when these are equally probable beforehand."""
    n = len(cases.names)
    allowed = ~np.eye(n, dtype=bool)
    sets = score_all(make_data(cases), read_score(score, cases)[0], allowed, ~allowed & False, most, 1)
    tables = [dict(zip(masks.tolist(), values.tolist(), strict=True)) for masks, values in sets]
    found, logs = [], []
    for edges in all_structures(n):
        masks = [sum(1 << int(i) for i in np.flatnonzero(edges[:, j])) for j in range(n)]
        if edges.sum(axis=0).max() <= most and (keep is None or keep(edges)):
            found.append(edges)
            logs.append(sum(tables[j][mask] for j, mask in enumerate(masks)))
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    probabilities = {edges.tobytes(): float(one) for edges, one in zip(found, p, strict=True)}
    return np.tensordot(p, np.array(found, float), 1), probabilities


@pytest.mark.parametrize(("n", "most", "rows"), [(3, 2, 15), (4, 3, 25), (4, 2, 60), (5, 4, 30)])
@pytest.mark.parametrize("seed", [0, 1])
def test_edges_have_their_posterior_probabilities(n: int, most: int, rows: int, seed: int) -> None:
    """Six standard errors for each of at most twenty edges."""
    cases = random_cases(n, rows, seed)
    exact, _ = exact_edges(cases, "bdeu:2", most)
    found = sample_structures(cases, score="bdeu:2", max_parents=most, sweeps=4000, rng=seed, progress=False)
    assert found.converged, found.reasons
    off = ~np.eye(n, dtype=bool)
    assert (found.errors[off] < 0.02).all()
    assert (np.abs(found.edges - exact)[off] < 6.0 * found.errors[off] + 1e-6).all()


def test_drawn_structures_have_their_posterior_probabilities() -> None:
    """The frequency of every structure of three sites; six standard errors from draws that are nearly independent."""
    cases = random_cases(3, 12, 3)
    _, exact = exact_edges(cases, "bdeu:1", 2)
    found = sample_structures(cases, score="bdeu:1", max_parents=2, sweeps=5000, rng=2, progress=False)
    total = 0.0
    for edges in all_structures(3):
        wanted = parents_of(edges)
        p, error = found.mean(lambda parents, wanted=wanted: parents == wanted)
        total += p
        assert abs(p - exact[edges.tobytes()]) < 6.0 * error + 1e-4
    assert total == pytest.approx(1.0)


def test_rules_are_kept() -> None:
    cases = random_cases(4, 25, 4)
    exact, _ = exact_edges(cases, "bdeu:2", 2, lambda edges: edges[2, 0] and not edges[1, 3] and not edges[3, 1])
    found = sample_structures(
        cases,
        score="bdeu:2",
        max_parents=2,
        required=[("2", "0")],
        forbidden=[("1", "3"), ("3", "1")],
        sweeps=4000,
        rng=1,
        progress=False,
    )
    assert found.converged, found.reasons
    assert found.edge("2", "0") == (1.0, 0.0)
    assert found.edge("1", "3") == (0.0, 0.0)
    assert "2 parents, the most" in found.summary()
    assert (np.abs(found.edges - exact) < 6.0 * found.errors + 1e-6).all()


def test_runs_repeat_for_any_number_of_threads() -> None:
    cases = random_cases(5, 40, 5)
    first, second = (sample_structures(cases, sweeps=300, rng=7, threads=threads, progress=False) for threads in (1, 3))
    assert np.array_equal(first.kept, second.kept)
    assert np.array_equal(first.edges, second.edges)


def test_answers_are_shown() -> None:
    pytest.importorskip("pandas")
    found = sample_structures(random_cases(3, 100, 6), sweeps=500, rng=1, progress=False)
    assert "->" in found.summary()
    assert len(found.to_dataframe()) == 6
    assert "equally probable beforehand" in repr(found)
    assert "either direction" in found._repr_html_()
    assert len(found.structures(10)) == 10
    assert found.score <= 0.0
    with pytest.raises(ArgumentError, match="unknown"):
        found.edge("0", "x")


def test_short_runs_are_not_called_converged() -> None:
    with pytest.warns(ConvergenceWarning):
        found = sample_structures(random_cases(5, 30, 1), sweeps=10, chains=2, progress=False)
    assert not found.converged


def test_too_much() -> None:
    data = {f"x{k}": [0, 1] for k in range(63)}
    with pytest.raises(TooLargeError, match="at most 62"):
        sample_structures(data)
    del data["x0"]
    with pytest.raises(TooLargeError, match="smaller max_parents"):
        sample_structures(data, max_parents=6)
