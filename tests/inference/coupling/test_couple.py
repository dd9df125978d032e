"""Coupled chains: estimates without bias, a bound that holds, draws that meet as often as they can."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import load, stream
from gibbsite.errors import ConvergenceWarning
from gibbsite.inference.coupling.pair import draw_both
from gibbsite.inference.exact.transition import sweep_matrix
from gibbsite.testing import tiny_models

pytestmark = pytest.mark.long

TINY = tiny_models()
# Two-sided, of a normal: 2e-9. A few hundred of them stay below 1e-6.
MOST_ERRORS = 6.0


def exact_cells(model: gs.FactorGraph) -> np.ndarray[Any, Any]:
    exact = gs.exact.enumerate(model)
    sizes = [exact.law.sum(axis=tuple(a for a in range(model.n_sites) if a != i)) for i in range(model.n_sites)]
    return np.concatenate(sizes)


@pytest.mark.parametrize("name", ["glass", "ring", "potts", "mixed", "tables"])
@pytest.mark.parametrize(
    "how",
    [
        {"lag": 1, "warmup": 1, "sweeps": 1},
        {"lag": 3, "warmup": 2, "sweeps": 5},
        pytest.param({"lag": 2, "warmup": 1, "sweeps": 9}, marks=pytest.mark.campaign),
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_marginals_have_no_bias(name: str, how: dict[str, int]) -> None:
    """After a sweep or two the chains themselves are far from the law; the corrected averages are not."""
    found = gs.couple(TINY[name], pairs=1000, rng=11, **how)
    error = found.mcse.cells
    apart = np.abs(found.marginals.cells - exact_cells(TINY[name]))
    assert (apart <= MOST_ERRORS * error + 1e-12).all()


@pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")
def test_averages_without_the_correction_would_be_caught() -> None:
    model = gs.ising_grid((2, 2), coupling=0.5, field=0.2)
    found = gs.couple(model, pairs=3000, lag=1, warmup=1, sweeps=1, start=np.zeros(4, int), rng=4)
    assert (np.abs(found.marginals.cells - exact_cells(model)) <= MOST_ERRORS * found.mcse.cells).all()
    how: Any = {
        "record": gs.Marginals(rao_blackwell=False),
        "progress": False,
        "criteria": gs.Criteria(dispersed_starts=False),
    }
    plain = gs.sample(model, sweeps=1, warmup=0, chains=3000, start=np.zeros(4, int), rng=4, **how)
    apart = abs(plain.marginals["0"][1] - exact_cells(model)[1])
    assert apart > MOST_ERRORS * found.mcse["0"][1]


@pytest.mark.parametrize("name", ["glass", "grid", "potts"])
@pytest.mark.parametrize(("scan", "lag"), [(gs.Systematic(), 1), (gs.Systematic(), 4), (gs.RandomScan(), 4)], ids=str)
def test_the_bound_holds_for_the_exact_distance(name: str, scan: gs.scans.Scan, lag: int) -> None:
    """At each of 12 times, up to seven of its standard errors, which are 2 / pairs at least."""
    model = TINY[name]
    exact, graph = gs.exact.enumerate(model), gs.graphs.compile_graph(model)
    matrix = sweep_matrix(exact, graph, gs.Gibbs(), scan)
    if scan.random:  # whose matrix is that of a step
        matrix = np.linalg.matrix_power(matrix, model.n_sites)
    law = np.full(len(exact.states), 1.0 / len(exact.states))
    found = gs.couple(model, scan=scan, pairs=1000, lag=lag, rng=5)
    for t in range(12):
        distance = 0.5 * np.abs(law - exact.probabilities).sum()
        assert distance <= found.bound(t) + (MOST_ERRORS + 1) * found.bound_mcse(t)
        law = law @ matrix


def test_a_larger_lag_makes_the_bound_sharper() -> None:
    model = gs.ising_grid((4, 4), coupling=0.4)
    loose, sharp = (gs.couple(model, pairs=2000, lag=lag, rng=3).bound(3) for lag in (1, 30))
    assert sharp < loose


@pytest.mark.parametrize(
    ("p", "q"), [([0.2, 0.5, 0.3], [0.4, 0.1, 0.5]), ([1.0, 0.0], [0.0, 1.0]), ([0.25, 0.75], [0.25, 0.75])]
)
def test_coupled_draws_have_their_laws_and_are_equal_as_often_as_they_can_be(p: Any, q: Any) -> None:
    """Counts of 5,000 draws within six standard deviations."""
    rng, many = load(stream(2, 0)), 5_000
    seen = np.zeros((len(p), len(p)))
    for _ in range(many):
        rng, a, b = draw_both(np.array(p), np.array(q), len(p), rng)
        seen[a, b] += 1
    for counts, law in ((seen.sum(axis=1), p), (seen.sum(axis=0), q)):
        spread = np.sqrt(many * np.array(law) * (1 - np.array(law)))
        assert (np.abs(counts - many * np.array(law)) <= MOST_ERRORS * spread).all()
    equal = float(np.minimum(p, q).sum())
    assert abs(np.trace(seen) - many * equal) <= MOST_ERRORS * np.sqrt(many * equal * (1 - equal))


def test_numbers_do_not_depend_on_threads() -> None:
    model = gs.ising_grid((4, 4), coupling=0.3, field=0.1)
    one, two = (gs.couple(model, pairs=70, rng=9, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.times, two.times)
    assert np.array_equal(one.total, two.total)
    assert one.lag == two.lag


def test_pairs_that_do_not_meet_are_reported() -> None:
    model = gs.ising_grid((6, 6), coupling=1.5)
    with pytest.warns(ConvergenceWarning, match=r"of 16 pairs of chains met within 50 sweeps"):
        found = gs.couple(model, pairs=30, most=50, rng=1)
    assert found.bound(1000) == 1.0
    assert np.isnan(found.bound_mcse(3))
    assert found.mixing_time() is None
    assert found.marginals is None and found.mcse is None and not found.converged
    assert "had not met after 50 sweeps, so there are no estimates" in found.reasons[0]


def test_observed_sites_are_in_the_tables() -> None:
    model = gs.FactorGraph({"a": ["x", "y"], "b": 2}, [(("a", "b"), [[3, 1], [1, 1]])]).observe({"b": 1})
    found = gs.couple(model, pairs=500, rng=1)
    assert found.marginals["b"] == {0: 0.0, 1: 1.0}
    assert found.mcse["b"] == {0: 0.0, 1: 0.0}
    assert abs(found.marginals["a"]["x"] - 0.5) < MOST_ERRORS * found.mcse["a"]["x"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kernel": gs.SwendsenWang()}, "coupled site by site, .* and SwendsenWang does not; use gs.Gibbs"),
        ({"kernel": gs.HerdedGibbs()}, "and HerdedGibbs does not"),
        ({"kernel": gs.kernels.QuasiGibbs()}, "and QuasiGibbs does not"),
        ({"scan": gs.scans.Palindromic()}, "the order of Palindromic begins again after 8 visits, not 4"),
        ({"pairs": 1}, "pairs must be a whole number of at least 2"),
        ({"lag": 0}, "lag must be a whole number of at least 1"),
        ({"lag": 5, "most": 3}, "most must be at least lag=5, got 3"),
    ],
)
def test_what_cannot_be_coupled_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises((gs.errors.IncompatibleError, gs.errors.ArgumentError), match=sentence):
        gs.couple(TINY["grid"], **given)


def test_models_of_numbers_are_refused() -> None:
    model: Any = gs.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(gs.errors.IncompatibleError, match="coupled in models of states"):
        gs.couple(model)


def test_pairs_with_the_seed_of_a_run_bound_its_distance_to_stationarity() -> None:
    model = gs.ising_grid((6, 6), coupling=0.25, field=0.1)
    long = gs.sample(model, sweeps=1000, rng=1, progress=False)
    pairs = gs.couple(model, pairs=100, sweeps=1, rng=long.plan.entropy)
    assert pairs.safe_bound(long.warmup) == 0.02  # none of 100 pairs was late
    assert pairs.safe_bound(0) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stuck = gs.ising_grid((8, 8), coupling=1.5)
        assert gs.couple(stuck, pairs=100, sweeps=1, most=1000, rng=1).safe_bound(1) == 1.0


def test_a_coupling_is_an_answer_that_is_saved_and_loaded(tmp_path: Path) -> None:
    found = gs.couple(TINY["grid"], pairs=60, rng=2)
    gs.save(found, tmp_path / "pairs.npz")
    again = gs.load(tmp_path / "pairs.npz")
    assert np.array_equal(again.marginals.cells, found.marginals.cells)
    assert np.array_equal(again.mcse.cells, found.mcse.cells)
    assert again.converged is True and again.diagnostics.met == 60
    assert found.summary().startswith(found.line())
