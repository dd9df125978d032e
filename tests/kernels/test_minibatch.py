"""Minibatch kernels refuse what makes no sense, say what they are, and choose what is cheaper."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.alias import build_alias_rows
from gibbsite._numba.random.generators import load, stream
from gibbsite._numba.random.poisson import poisson
from gibbsite.kernels.minibatch.factors import drawn_rows

EXACT = (gs.PoissonGibbs, gs.kernels.MGPMH, gs.kernels.MinGibbs, gs.kernels.DoubleMinGibbs)
MODEL = gs.potts(np.full((60, 60), 0.02) - 0.02 * np.eye(60), 3)


@pytest.mark.parametrize("kernel", EXACT)
@pytest.mark.parametrize("size", [0, -1.0, math.nan, math.inf, "many", None, True])
def test_sizes_are_positive_numbers(kernel: Any, size: Any) -> None:
    with pytest.raises(
        gs.errors.ModelError, match=r"must be a (positive number or 'auto'|number or text), got"
    ) as caught:
        gs.sample(MODEL, kernel(size), progress=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [0, 2.5, "auto", True])
def test_subsets_have_whole_sizes(size: Any) -> None:
    with pytest.raises(gs.errors.ModelError, match="must be a whole number"):
        gs.sample(MODEL, gs.kernels.LocalMinibatchGibbs(size), progress=False)


@pytest.mark.parametrize("kernel", [*EXACT, gs.kernels.LocalMinibatchGibbs])
def test_zeros_and_other_models_are_refused(kernel: Any) -> None:
    zeros = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 2, 0], [3, 1, 1]])])
    with pytest.raises(gs.errors.IncompatibleError, match="has a zero, which is an infinite energy; use") as caught:
        gs.sample(zeros, kernel(), progress=False)
    assert "\n" not in str(caught.value)
    triple = gs.FactorGraph(3, [((0, 1, 2), np.eye(8)[0].reshape(2, 2, 2))], states=2)
    with pytest.raises(gs.errors.IncompatibleError, match="has a zero"):
        gs.sample(triple, kernel(), progress=False)
    with pytest.raises(gs.errors.IncompatibleError, match="cannot run on a functions graph; it accepts"):
        gs.sample(gs.models.continuous_spins([[0.0, 1.0], [1.0, 0.0]]), kernel(), progress=False)


def test_lattices_are_taken_as_lists_of_pairs() -> None:
    model = gs.ising_grid((3, 3), coupling=0.3, field=0.1)
    assert gs.graphs.compile_graph(model).kind == "lattice"
    assert gs.graphs.compile_graph(model, among=gs.PoissonGibbs.kinds).kind == "ising"
    result = gs.sample(model, gs.PoissonGibbs(3.0), sweeps=2000, rng=1, progress=False)
    exact = gs.solve_exact(model).marginals
    for site, found in result.marginals.items():  # a false alarm in 10^6 at six standard errors
        assert abs(found[1] - exact[site][1]) < 6.0 * result.mcse[site][1]


def test_single_sites_may_have_zeros() -> None:
    model = gs.potts([[0.0, 0.7], [0.7, 0.0]], 3, fields=[[-np.inf, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for kernel in (
        gs.PoissonGibbs(1.0),
        gs.kernels.MGPMH(1.0),
        gs.kernels.MinGibbs(1.0),
        gs.kernels.DoubleMinGibbs(1.0, 1.0),
    ):
        result = gs.sample(model, kernel, sweeps=500, rng=1, progress=False)
        assert result.marginals["0"][0] == 0.0


def test_the_guarantee_is_stated() -> None:
    def remark(size: Any) -> str:
        graph = gs.graphs.compile_graph(MODEL)
        (found,) = gs.PoissonGibbs(size).warnings(MODEL, graph, gs.RandomScan())
        return found.text

    largest = 59 * 0.02
    assert f"= {math.exp(-4 * largest**2 / 8):.3g} times that of plain Gibbs" in remark(8.0)
    assert "no spectral gap is guaranteed" in remark(2.0)


def test_biased_runs_warn() -> None:
    with pytest.warns(gs.ConvergenceWarning, match="Local minibatch Gibbs is biased"):
        gs.sample(MODEL, gs.kernels.LocalMinibatchGibbs(4), sweeps=1000, rng=1, progress=False)


def test_auto_updates_small_sites_in_full() -> None:
    hub = np.zeros((400, 400))
    hub[0, 1:] = 0.005
    graph = gs.graphs.compile_graph(gs.potts(hub, 3))
    plain = gs.PoissonGibbs().parameters(graph).plain
    assert not plain[0]
    assert plain[1:].all()
    assert not gs.PoissonGibbs(3.0).parameters(graph).plain.any()


def test_models_without_pairs() -> None:
    model = gs.potts((np.zeros(0, int), np.zeros(0, int), np.zeros(0)), 3, fields=np.zeros((4, 3)))
    for kernel in (gs.PoissonGibbs(2.0), gs.PoissonGibbs(), gs.kernels.MinGibbs(), gs.kernels.DoubleMinGibbs()):
        result = gs.sample(model, kernel, sweeps=200, rng=1, progress=False)
        assert result.report["factors"] == 0.0


def test_alias_rows_hold_the_law() -> None:
    rng = np.random.default_rng(3)
    start = np.array([0, 5, 5, 6, 40])
    weights = rng.exponential(size=40) * (rng.random(40) < 0.7)
    weights[5] = 2.0
    table = build_alias_rows(start, weights)
    for first, last in pairwise(start):
        row, n = table[first:last], last - first
        stay = (row >> np.uint64(32)).astype(float) / 2**32
        chance = np.bincount(np.arange(n), stay, n) + np.bincount((row & np.uint64(2**32 - 1)).astype(int), 1 - stay, n)
        if n:
            law = weights[first:last] / weights[first:last].sum()
            assert np.abs(chance / n - law).max() < 2.0**-31
            assert (chance[law == 0] == 0).all()


def test_rows_are_built_once_for_a_graph_and_anew_for_other_weights() -> None:
    graph = gs.graphs.compile_graph(MODEL)
    assert drawn_rows(graph) is drawn_rows(graph)
    other = gs.graphs.compile_graph(MODEL.reweight(couplings=0.5))
    assert drawn_rows(other).local[0] == pytest.approx(59 * 0.5)
    assert drawn_rows(graph).local[0] == pytest.approx(59 * 0.02)


@compiled
def _fill(words: Any, mean: float, out: Any) -> None:
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = poisson(rng, mean)


@pytest.mark.parametrize("mean", [0.0, 0.3, 9.99, 10.0, 31.0, 1000.0, 1e6])
def test_poisson_numbers(mean: float) -> None:
    from scipy.stats import chi2
    from scipy.stats import poisson as law

    out = np.zeros(200_000, np.int64)
    _fill(stream(1, 5), mean, out)
    edges = np.unique(law.ppf(np.linspace(0.0, 1.0, 41)[1:-1], mean)) if mean else np.zeros(0)
    seen = np.bincount(np.searchsorted(edges, out), minlength=edges.size + 1)
    chance = np.diff(np.concatenate([[0.0], law.cdf(edges, mean), [1.0]]))
    expected = out.size * chance
    assert (seen[expected == 0] == 0).all()
    full = expected > 0
    statistic = float(((seen - expected)[full] ** 2 / expected[full]).sum())
    assert chi2.sf(statistic, max(int(full.sum()) - 1, 1)) > 1e-7
