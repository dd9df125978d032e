"""Perfect draws follow the exact law, whatever the state of the chain; draws that cannot be made are reported."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.cache import Recent
from gibbsite.kernels.perfect import perfect
from gibbsite.kernels.perfect.bounds import PairBounds, come_from
from gibbsite.testing import FALSE_ALARM, law_p_value, tiny_models

# of "agreements", couplings of -400 are too strong for bounds; it is refused below; noisy nodes are bounded by nothing
TINY = {name: model for name, model in tiny_models().items() if name not in ("agreements", "causes")}


@pytest.mark.parametrize("name", TINY)
def test_draws_follow_the_exact_law(name: str) -> None:
    """Binomial tests of every state, marginal and pair, with false alarms below 1e-6."""
    draws = gs.perfect_draws(TINY[name], 20_000, rng=3)
    p, worst = law_p_value(gs.exact.enumerate(TINY[name]), draws)
    assert p > FALSE_ALARM, worst


def test_sets_and_pairs_of_bounds_have_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of pairs, forced through the general method."""
    model = gs.ising_grid((2, 2), coupling=(0.5, -0.3), field=0.2)

    def as_table(model: Any, kind: str) -> Any:
        raise gs.errors.IncompatibleError("pairs are switched off")

    monkeypatch.setattr(perfect, "compile_graph", as_table)
    monkeypatch.setattr(perfect, "_FOUND", Recent())
    graph = gs.graphs.compile_graph(model)
    assert isinstance(gs.kernels.Perfect().parameters(graph), perfect.SetPast)
    p, worst = law_p_value(gs.exact.enumerate(model), gs.perfect_draws(model, 20_000, rng=5))
    assert p > FALSE_ALARM, worst


def test_draws_that_end_too_early_are_caught() -> None:
    """Bounds that are taken for a draw after one sweep, though they differ: the classic mistake."""
    model = gs.ising_grid((2, 2), coupling=0.8)
    arrays = gs.graphs.compile_graph(model, "ising").arrays
    bounds = PairBounds(np.zeros(4, np.int8), np.zeros(4, np.int8))
    keys = np.random.default_rng(1).integers(0, 2**63, 3000).astype(np.uint64)
    draws = np.zeros((keys.size, 4), np.int8)
    for k, key in enumerate(keys):
        come_from(arrays, bounds, key, 1)
        draws[k] = bounds.high
    assert law_p_value(gs.exact.enumerate(model), draws)[0] < FALSE_ALARM


def test_new_random_numbers_for_every_attempt_are_caught() -> None:
    """Draws that come soon would be preferred; those that use the same numbers again are right."""
    model = gs.ising(np.array([[0, 0.9, 0], [0.9, 0, 0.4], [0, 0.4, 0]]), [0.3, 0.0, -0.4])
    exact = gs.exact.enumerate(model)
    arrays = gs.graphs.compile_graph(model, "ising").arrays
    bounds = PairBounds(np.zeros(3, np.int8), np.zeros(3, np.int8))
    keys = np.random.default_rng(2).integers(0, 2**63, 3000).astype(np.uint64)
    right, wrong = np.zeros((keys.size, 3), np.int8), np.zeros((keys.size, 3), np.int8)
    for k, key in enumerate(keys):
        span = 1
        while come_from(arrays, bounds, key, span):
            span *= 2
        right[k] = bounds.low
        span = 1
        while come_from(arrays, bounds, np.uint64(key + np.uint64(span)), span):  # new numbers each time
            span += 1
        wrong[k] = bounds.low
    assert law_p_value(exact, right)[0] > FALSE_ALARM
    assert law_p_value(exact, wrong)[0] < FALSE_ALARM


def test_a_draw_that_does_not_come_is_given_up_in_one_sentence() -> None:
    model = gs.ising_grid((8, 8), coupling=2.0)
    with pytest.raises(
        gs.errors.SamplingError, match=r"^A perfect draw did not coalesce within 32 sweeps: \d+ of 64 sites"
    ) as raised:
        gs.perfect_draws(model, 5, sweeps=32, rng=1)
    assert "gs.kernels.Perfect(sweeps=128), or use gs.Gibbs()" in str(raised.value)
    with pytest.raises(gs.errors.SamplingError, match="of 4 sites still depended on the start"):
        gs.perfect_draws(tiny_models()["agreements"], 5, sweeps=512, rng=1)


def test_what_was_drawn_before_is_kept() -> None:
    """Rare failures: draws of earlier blocks are there."""
    model = gs.ising_grid((4, 4), coupling=0.35)
    with pytest.raises(gs.errors.SamplingError) as raised:
        gs.sample(model, gs.kernels.Perfect(32), sweeps=2_000_000, warmup=0, rng=1, progress=False)
    assert raised.value.result.n_draws > 0


def test_a_run_is_judged_as_independent_draws() -> None:
    model = gs.ising_grid((5, 5), coupling=0.25, field=0.3)
    result = gs.sample(model, gs.kernels.Perfect(), sweeps=4000, rng=1, progress=False)
    assert result.diagnostics.converged
    assert result.diagnostics.dispersed_starts == "independent"
    exact = gs.solve_exact(model).marginals
    for site in model.sites:  # 25 cells within six standard errors: false alarms below 1e-6
        assert abs(result.marginals[site][1] - exact[site][1]) < 6 * result.mcse[site][1]
    assert 1 <= result.report["sweeps_back"] <= result.report["most_sweeps_back"]


def test_states_that_no_draw_was_in_have_an_error() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1e6, 1], [1, 0.5]])])
    result = gs.sample(model, gs.kernels.Perfect(), sweeps=100, rng=1, progress=False)
    assert result.marginals["a"][1] < 0.01
    assert result.mcse["a"][1] > 1e-3


@pytest.mark.parametrize("wrong", [0, -3, 2.5, "far", True])
def test_pasts_that_make_no_sense(wrong: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="sweeps must be a whole number"):
        gs.perfect_draws(TINY["grid"], 2, sweeps=wrong)


def test_sites_of_too_many_states_are_refused() -> None:
    model = gs.FactorGraph({"a": 65, "b": 2}, [(("a", "b"), np.ones((65, 2)))])
    with pytest.raises(gs.errors.IncompatibleError, match="takes sites of up to 64 states, and one has 65"):
        gs.perfect_draws(model, 2)


def test_infer_takes_perfect_draws() -> None:
    model = gs.ising_grid((5, 5), coupling=0.2, field=0.1)
    answer = gs.infer(model, method="perfect", rng=1, criteria=gs.Criteria(accuracy=0.02), progress=False)
    assert answer.converged
    assert "draws are independent" in answer.line()


def test_draws_inside_a_function_of_another_run_warn_of_nothing() -> None:
    """Chains are moved by threads, where filters of warnings are those of all threads."""
    inner = gs.ising_grid((2, 2), coupling=0.1)

    def draw(x: Any, rng: np.random.Generator) -> float:
        return float(gs.perfect_draws(inner, 1, rng=1).sum()) + rng.normal()

    model = gs.Conditionals({"a": draw})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gs.sample(model, sweeps=20, chains=2, rng=1, progress=False)
    assert not [each for each in caught if "effective draws: 1," in str(each.message)]
