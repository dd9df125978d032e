"""Sites without neighbours whose probabilities are related by small whole numbers: who they are, and their error."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite.kernels.herded import relations
from gibbsite.kernels.herded.herded import KEYS

STEP = "moves them in step"
ROOT = np.sqrt(0.5)
# probabilities that are related, and those that are not
RELATED = [
    (0.5, 0.5),
    (0.25, 0.5),
    (0.2, 0.4),
    (1 / 3, 1 / 6),
    (ROOT, ROOT),
    (ROOT, 1 - ROOT),
    (ROOT / 2, ROOT),
    (ROOT / 2, 1 - ROOT),
    (ROOT, 2 * ROOT - 1),
    (ROOT, (ROOT + 1) / 3),
    (0.3 * ROOT, 0.45 * ROOT),
]
FREE = [(1 / 3, 1 / 4), (0.2, 1 / 7), (0.5, ROOT), (0.25, ROOT), (ROOT, np.sqrt(0.3)), (0.9, np.exp(-1))]


def sites(*laws: Any) -> gs.FactorGraph:
    """Sites without neighbours: a probability of state 1, or the probabilities of all states."""
    rows = [[1.0 - law, law] if np.isscalar(law) else law for law in laws]
    return gs.FactorGraph(
        {str(k): len(row) for k, row in enumerate(rows)}, [((str(k),), row) for k, row in enumerate(rows)]
    )


def said(model: gs.FactorGraph, scan: Any = None, **arguments: Any) -> list[str]:
    graph = gs.graphs.compile_graph(model)
    found = gs.HerdedGibbs(**arguments).warnings(model, graph, scan or gs.Systematic())
    assert all(remark.grave == (STEP in remark.text) for remark in found)
    return [remark.text for remark in found if STEP in remark.text]


def stated(text: str) -> tuple[float, float]:
    worst, mean = re.search(r"by up to ([\d.e-]+) in L1 distance \(([\d.e-]+) on average", text).groups()
    return float(worst), float(mean)


def long_run(p: float, q: float, first: Any, sweeps: int) -> Any:
    """Return the L1 errors of the joint of two sites after many sweeps, for pairs of first weights."""
    t = np.arange(sweeps)
    u, v = ((np.asarray(w)[:, None] + t * x) % 1.0 for w, x in zip(first, (p, q), strict=True))
    joint = np.stack([((u < p) == a) & ((v < q) == b) for a in (1, 0) for b in (1, 0)], axis=-1).mean(axis=1)
    truth = np.array([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    return np.abs(joint - truth).sum(axis=1)


@pytest.mark.parametrize(("p", "q"), RELATED)
def test_the_stated_error_is_that_of_a_long_run(p: float, q: float) -> None:
    worst, mean = stated(said(sites(p, q))[0])
    grid = (np.arange(401) + 0.5) / 401
    found = long_run(p, q, (grid, np.zeros(401) + 1e-9), 20_000)
    assert worst == pytest.approx(found.max(), rel=0.02, abs=2e-3)
    assert mean == pytest.approx(found.mean(), rel=0.03, abs=2e-3)


@pytest.mark.parametrize(("p", "q"), FREE)
def test_unrelated_probabilities_are_free(p: float, q: float) -> None:
    assert said(sites(p, q)) == []
    assert long_run(p, q, ([0.123, 0.645], [0.321, 0.987]), 200_000).max() < 2e-3


def test_the_kernel_makes_the_error_of_the_example() -> None:
    """p = 1/4 and q = 1/2 give the joint distribution [[.5, .25], [0, .25]] or the other one of the two orbits."""
    with pytest.warns(gs.ConvergenceWarning, match="joint distribution is wrong"):
        result = gs.sample(
            sites(0.25, 0.5),
            gs.HerdedGibbs(),
            sweeps=4000,
            warmup=0,
            chains=1,
            rng=1,
            record=["marginals", gs.recorders.Joint([("0", "1")])],
            progress=False,
        )
    joint = result.joint("0", "1")
    outer = np.outer([0.75, 0.25], [0.5, 0.5])
    assert np.abs(joint - outer).sum() == pytest.approx(0.5, abs=1e-3)
    assert stated(said(sites(0.25, 0.5))[0]) == (0.5, 0.5)
    assert np.abs(joint.sum(axis=1) - [0.75, 0.25]).max() < 1e-3


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(2, 12), st.data())
def test_fractions_are_counted_exactly(m: int, n: int, data: Any) -> None:
    i, j = data.draw(st.integers(1, m - 1)), data.draw(st.integers(1, n - 1))
    p, q = Fraction(i, m), Fraction(j, n)
    period = m * n
    errors = []
    for first in range(m):
        for second in range(n):
            both = sum((first + t * i) % m < i and (second + t * j) % n < j for t in range(period))
            errors.append(4 * abs(Fraction(both, period) - p * q))
    found = relations._count(p.numerator, p.denominator, q.numerator, q.denominator)
    assert found.worst == pytest.approx(float(max(errors)))
    assert found.mean == pytest.approx(float(sum(errors) / len(errors)))
    texts = said(sites(i / m, j / n))
    assert bool(texts) == (max(errors) >= 0.02)


def test_equal_and_complementary_marginals() -> None:
    for values in ((0.3, 0.71, 0.3), (0.3, 0.71, 0.7)):
        text = said(sites(*values))[0]
        assert text.startswith("The sites '0' and '2' have no neighbours and equal or complementary prob")
        assert "; 2 sites have such a partner)" in text
        assert stated(text) == (0.84, 0.36)
    assert said(sites(0.3, np.exp(-1), np.sqrt(0.5))) == []
    assert said(sites(0.3, 1.0, 0.0)) == []  # certain sites do not move
    named = said(sites(ROOT, ROOT / 2))[0]
    assert "probabilities 0.7071 and 0.6464 of which 1 and 2 times have a whole number as sum or difference" in named


def test_the_largest_error_is_named() -> None:
    text = said(sites(0.4 * ROOT, 0.8 * ROOT, 0.9, 0.9 / 4, 0.5, 0.5, np.exp(-1)))[0]
    assert text.startswith("The sites '4' and '5'")
    assert "6 sites have such a partner" in text


def test_who_is_in_step() -> None:
    alike = sites(0.3, 0.3)
    for keys in KEYS:
        assert bool(said(alike, keys=keys)) == (keys not in ("full", "randomised-binned"))
    assert said(sites(0.5, 0.5), keys="randomised-binned")  # 1/2 is a whole number of bins
    assert said(sites(0.25, 0.5), keys="randomised-binned")
    for scan in (gs.scans.Palindromic(), gs.scans.Shuffled(), gs.Chromatic()):
        assert said(alike, scan)
    assert not said(alike, gs.RandomScan())
    assert not said(alike, rule="bounded")


def test_more_states() -> None:
    law = [1.0, 2.0, 4.0]
    singles = [(("a",), law), (("b",), [4.0, 1.0, 2.0]), (("c",), [1.0, 2.0, 4.5])]
    model = gs.FactorGraph({"c": 3, "a": 3, "b": 3}, singles)
    assert said(model)[0].startswith("The sites 'a' and 'b'")
    joined = gs.FactorGraph({"c": 3, "a": 3, "b": 3}, [*singles, (("a", "c"), np.ones((3, 3)))])
    assert said(joined) == []
    triple = (("c", "d", "e"), np.arange(1.0, 13.0).reshape(3, 2, 2))
    table = gs.FactorGraph({"c": 3, "a": 3, "b": 3, "d": 2, "e": 2}, [*singles, triple])
    assert gs.graphs.compile_graph(table).kind == "table"
    assert said(table)[0].startswith("The sites 'a' and 'b'")
    seen = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "c"), [[1, 2], [3, 5]]), (("b", "c"), [[1, 2], [3, 5]])])
    assert said(seen.observe({"c": 1}))[0].startswith("The sites 'a' and 'b'")


@pytest.mark.parametrize("rule", ["argmax", "tijdeman"])
def test_the_error_of_more_states_is_that_of_the_kernel(rule: str) -> None:
    model = sites([0.1, 0.4, 0.5], [0.2, 0.3, 0.5])
    worst, mean = stated(said(model, rule=rule)[0])
    truth = np.outer([0.1, 0.4, 0.5], [0.2, 0.3, 0.5])
    errors = []
    for seed in range(12):
        with pytest.warns(gs.ConvergenceWarning):
            result = gs.sample(
                model,
                gs.HerdedGibbs(rule=rule),
                sweeps=5000,
                chains=1,
                rng=seed,
                record=["marginals", gs.recorders.Joint([("0", "1")])],
                progress=False,
            )
        errors.append(np.abs(result.joint("0", "1") - truth).sum())
    assert max(errors) < worst * 1.1 + 0.005
    assert mean / 2 < np.mean(errors) < mean * 2


def test_a_million_isolated_sites_are_no_burden() -> None:
    """Sorted, not compared pair by pair: this test would never end otherwise."""
    n = 1_000_000
    field = np.random.default_rng(1).normal(size=n)
    field[[17, 999_000]] = 0.0, 0.0
    model = gs.FactorGraph(n, groups=(gs.factors.FieldFactors(n, field, spin=True),), states=2)
    assert said(model)[0].startswith("The sites '17' and '999000'")


def test_isolated_sites() -> None:
    """Sites that share a factor with no other site are found in every kind of graph."""
    graph = gs.graphs.compile_graph
    assert relations.find_isolated(graph(gs.FactorGraph(3, [((0, 2), [[1, 2], [2, 1]])], states=2))).tolist() == [1]
    assert relations.find_isolated(graph(gs.ising_grid((2, 2), coupling=0.1))).tolist() == []
