"""The verdict: R-hat of indicators against ArviZ, calibration of errors, runs that must fail."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.results.measure.diagnostics import mcse
from gibbsite.results.measure.measurement import CellNumbers, count_states, measure_cells, measure_errors
from gibbsite.results.verdict.convergence import Diagnostics, Unreached, judge

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version
    import arviz as az


def measure(trace: NDArray[Any], length: int = 1) -> CellNumbers:
    """Judge a trace of batch means (chains, batches, cells) in which nothing is left over."""
    draws = trace.shape[1] * length
    return measure_cells(trace.sum(axis=1, dtype=float) * length, trace, draws, length)


def verdict(trace: NDArray[Any], length: int = 1, unreached: tuple[Unreached, ...] = ()) -> Diagnostics:
    draws = trace.shape[1] * length
    return judge(measure(trace, length), len(trace), draws, unreached, lambda cell: f"cell {cell}")


def coin(p: Any, chains: int, draws: int, seed: int = 0) -> NDArray[np.float32]:
    p = np.atleast_1d(p)
    return (np.random.default_rng(seed).random((chains, draws, p.size)) < p).astype(np.float32)


# ---- numbers


@pytest.mark.parametrize("draws", [4, 5, 100, 301])
@pytest.mark.parametrize("chains", [2, 4])
def test_rhat_is_that_of_arviz_on_indicators(chains: int, draws: int):
    trace = coin(np.linspace(0.05, 0.95, 19), chains, draws, seed=draws)
    trace[0] = np.sort(trace[0], axis=0)  # a chain that drifts
    found = measure(trace)
    for cell in range(trace.shape[2]):
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = az.rhat(trace[:, :, cell].astype(float), method="split")
        if np.isnan(expected):  # all values agree
            expected = 1.0
        assert found.rhat[cell] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("draws", [100, 301])
def test_rhat_of_one_chain_compares_its_halves(draws: int):
    trace = coin(np.linspace(0.2, 0.8, 7), 1, draws)
    halves = np.concatenate([trace[:, : draws // 2], trace[:, -(draws // 2) :]]).astype(float)
    expected = [az.rhat(halves[:, :, cell], method="identity") for cell in range(7)]
    assert measure(trace).rhat == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(st.integers(2, 4), st.integers(2, 40), st.integers(1, 4), st.floats(0.05, 0.95), st.integers(0, 10**6))
def test_rhat_does_not_depend_on_merging(chains: int, half: int, length: int, p: float, seed: int):
    """Means of halves are all that is needed, so merged batches give the same R-hat."""
    draws = 2 * half * length
    trace = coin(p, chains, draws, seed)
    merged = trace.reshape(chains, 2 * half, length, 1).mean(axis=2)
    assert measure(merged, length).rhat == pytest.approx(measure(trace).rhat, rel=1e-5)
    assert measure(merged, length).mean == pytest.approx(measure(trace).mean, rel=1e-5)


def test_effective_size_is_that_of_independent_draws():
    found = measure(coin([0.01, 0.3, 0.5], 4, 2000))
    assert found.ess == pytest.approx([8000] * 3, rel=0.15)


@pytest.mark.parametrize("batches", [4, 5, 6, 8, 9, 10, 15, 40])
def test_errors_are_not_too_small_when_batches_are_few(batches: int):
    """The error of the mean of independent batches, on average over many cells."""
    trace = np.random.default_rng(batches).normal(0.5, 0.1, (4, batches, 20_000)).astype(np.float32)
    truth = 0.1 / np.sqrt(4 * batches)
    assert 0.88 * truth < np.sqrt(np.mean(measure_errors(trace) ** 2)) < 1.3 * truth


def test_errors_of_long_traces_are_those_of_the_diagnostics():
    """They are a little larger, because a count of r visits is taken to be uncertain by sqrt(r + 4)."""
    trace = coin([0.2, 0.7], 3, 200)
    error, mean = mcse(trace), trace.mean(axis=(0, 1))
    rare, looks = np.minimum(mean, 1 - mean), mean * (1 - mean) / error**2
    counted = np.sqrt(error**2 + (2 * error**2 / rare) ** 2 + (2 / np.minimum(looks, 600)) ** 2)
    assert measure(trace).error == pytest.approx(counted)
    assert (counted < 1.05 * error).all()


def test_constant_cells():
    trace = np.zeros((4, 100, 2), np.float32)
    trace[:, :, 1] = 1.0
    found = measure(trace)
    assert found.mean.tolist() == [0.0, 1.0]
    assert found.error.tolist() == [0.005, 0.005]  # 2 / 400: what was never seen may still be possible
    assert found.ess.tolist() == [400.0, 400.0]
    assert found.rhat.tolist() == [1.0, 1.0]
    assert found.spread.tolist() == [0.0, 0.0]


def test_draws_of_the_open_batch_count_in_the_mean():
    trace = np.full((2, 4, 1), 0.5, np.float32)
    found = measure_cells(np.array([[4.0 + 3.0], [4.0 + 1.0]]), trace, 12, 2)
    assert found.mean[0] == 0.5
    assert found.spread[0] == pytest.approx(1 / 12)


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 1500), st.integers(0, 10**6))
def test_counted_draws(cards: list[int], draws: int, seed: int):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, cards, size=(2, draws, len(cards))).astype(np.int16)
    found, numbers = count_states(values, np.array(cards, np.int32), np.full(len(cards), np.nan))
    totals, trace, same, length = found
    assert not numbers.size
    assert same == draws
    assert trace.shape[1] == draws // length <= 512
    first = 0
    for site, card in enumerate(cards):
        for code in range(card):
            seen = values[:, :, site] == code
            assert np.array_equal(totals[:, first + code], seen.sum(axis=1))
            assert trace[1, 0, first + code] == pytest.approx(seen[1, :length].mean())
        first += card


# ---- verdicts


def test_good_chains_converge():
    found = verdict(coin([0.0005, 0.2, 0.5, 1.0], 4, 1000))
    assert found.converged
    assert found.reasons == ()
    assert found.rhat_max < 1.01
    assert "converged" in found.line()


def test_frozen_chains_that_disagree_do_not():
    trace = np.zeros((4, 500, 1), np.float32)
    trace[0] = 1.0
    found = verdict(trace)
    assert not found.converged
    assert found.rhat_max == np.inf
    assert found.rhat_at == found.ess_at == "cell 0"
    assert found.ess_min <= 4
    assert found.disagreement == 0.75
    assert found.line().startswith("NOT CONVERGED")


def test_chains_around_different_means_do_not():
    trace = np.concatenate([coin(0.4, 2, 1000), coin(0.6, 2, 1000)])
    found = verdict(trace)
    assert not found.converged
    assert any("chains disagree" in reason for reason in found.reasons)


def test_a_drifting_chain_does_not():
    trace = np.concatenate([coin(0.3, 4, 500, 1), coin(0.7, 4, 500, 2)], axis=1)
    assert not verdict(trace).converged


def test_one_bad_cell_among_many_is_found():
    trace = coin(np.full(2000, 0.5), 4, 500)
    trace[0, :, 1234] = 1.0
    found = verdict(trace)
    assert not found.converged
    assert found.rhat_at == "cell 1234"


def test_too_few_draws():
    found = verdict(coin(0.5, 4, 50))
    assert not found.converged
    assert any("too few effective draws" in reason for reason in found.reasons)


@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("chains", [1, 4])
def test_a_handful_of_draws_never_converges(chains: int, draws: int):
    for p in (0.0, 0.5, 1.0):
        found = verdict(coin(p, chains, draws))
        assert not found.converged
        assert "at ," not in " ".join(found.reasons)


def test_rare_states_are_judged_by_agreement_only():
    assert verdict(coin([0.0002, 0.9999], 4, 2000)).converged
    # a chain that found a rare state for a while, which the others never saw
    trace = np.zeros((40, 1000, 1), np.float32)
    trace[0, :20] = 1.0
    found = verdict(trace)
    assert found.disagreement > 0.005
    assert not found.converged


def test_a_state_that_could_not_be_reached():
    unreached = (Unreached("a", "x", True), Unreached("a", "y", False), Unreached("b", 1, False))
    found = verdict(coin(0.5, 4, 1000), unreached=unreached)
    assert not found.converged
    assert found.frozen == ("a", "b")
    assert found.unreached == unreached
    assert "3 states were never possible" in found.reasons[0]
    assert found.to_dict()["unreached"][0] == {"site": "a", "state": "x", "proved": True, "why": "state"}
    assert found["converged"] is False


@pytest.mark.parametrize("why", ["state", "region", "scan"])
def test_what_cannot_be_reached_comes_before_what_follows_from_it(why: str):
    apart = coin([0.2, 0.8], 4, 100)
    apart[0] = 1.0
    assert "run longer" in verdict(apart).reasons[0]
    found = verdict(apart, unreached=(Unreached("a", "x", True, why),))
    assert "chains disagree" not in found.reasons[0]
    assert any("chains disagree" in reason for reason in found.reasons[1:])
    assert not any("longer" in reason for reason in found.reasons)


def test_nothing_recorded_is_not_called_converged():
    empty = measure(np.zeros((4, 500, 0), np.float32))
    assert judge(empty, 4, 500, (), str).converged  # no free site: nothing to be wrong about
    found = judge(empty, 4, 500, (), str, blind=True)
    assert not found.converged
    assert "add gs.Marginals()" in found.reasons[0]


# ---- whole runs


def sample(model: gs.FactorGraph, **more: Any) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, rng=1, progress=False, **{"sweeps": 1000, **more})


def test_counted_marginals_have_the_rhat_of_their_draws():
    model = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])])
    record = [gs.Marginals(rao_blackwell=False), gs.Draws()]
    result = sample(model, sweeps=300, record=record)
    assert result._length == 1
    for code in range(3):
        draws = (result.draws[:, :, 1] == code).astype(float)
        assert result.marginals["b"][code] == pytest.approx(draws.mean())
        assert result.rhat["b"][code] == pytest.approx(az.rhat(draws, method="split"), rel=1e-6)
        assert 1.0 <= result.mcse["b"][code] / az.mcse(draws) < 1.05


@pytest.mark.parametrize("record", [None, "draws", gs.Marginals(rao_blackwell=False)])
def test_regions_that_single_sites_cannot_leave(record: Any):
    """Only 00 and 11 are possible: chains stay where they start."""
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 1]])])
    start = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    with pytest.warns(gs.ConvergenceWarning, match="chains disagree"):
        result = gs.sample(model, sweeps=500, rng=1, record=record, start=start, progress=False)
    assert not result.diagnostics.converged
    assert result.diagnostics.rhat_max == np.inf
    assert result.diagnostics.rhat_at in ("a = 0", "a = 1", "b = 0", "b = 1")


def test_all_chains_in_the_same_region():
    model = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 1, 0], [0, 0, 1]])])
    result = sample(model, start={"a": 0, "b": 0})
    assert not result.diagnostics.converged
    assert set(result.diagnostics.frozen) == {"a", "b"}


def test_a_cold_magnet_is_not_converged():
    result = sample(gs.ising_grid((12, 12), coupling=0.8), start="random", chains=8)
    assert not result.diagnostics.converged


def test_draws_alone_are_enough_to_judge():
    model = gs.ising_grid((3, 3), coupling=0.1)
    result = sample(model, record="draws", sweeps=2000)
    assert result.diagnostics.converged
    assert 1000 < result.diagnostics.ess_min < 20_000
    assert result.diagnostics.ess_at.endswith(("= 1", "= -1"))
    assert result.diagnostics.mcse_max > 0


def test_energy_alone_is_judged_by_marginals():
    """They are kept for the verdict."""
    result = sample(gs.ising_grid((3, 3), coupling=0.1), record="energy")
    assert result.diagnostics.converged
    assert result.diagnostics.judged == 9


def test_tables_of_observed_sites():
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 2], [3, 4]])]).observe({"b": 1})
    result = sample(model, sweeps=500)
    assert result.marginals["b"] == {0: 0.0, 1: 1.0}
    assert result.mcse["b"] == {0: 0.0, 1: 0.0}
    assert result.rhat["b"] == {0: 1.0, 1: 1.0}
    assert result.ess["b"] == {0: 2000.0, 1: 2000.0}


def test_summary_and_text():
    result = sample(gs.ising_grid((3, 3), coupling=0.1))
    assert "... and 7 more sites" in result.summary(2)
    assert "... and 9 more sites" in result.summary(0)
    assert repr(result) == "Result(9 sites, 4 chains x 1,000 draws, Gibbs x Systematic)"
