"""Bounds hold, draws have the law their weights say, and without splits everything is exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store
from gibbsite.inference.exact.plan import outline
from gibbsite.inference.importance.base import BLOCK, SourceSettings
from gibbsite.inference.importance.estimate import pareto_k
from gibbsite.inference.importance.mini_buckets.buckets import BucketPlan, largest_table, plan_buckets
from gibbsite.inference.importance.mini_buckets.descent import DrawTables, Lanes, draw_lanes, make_lanes, write_codes
from gibbsite.inference.importance.mini_buckets.proposal import BucketSource, Growth, pass_upwards, weigh_buckets
from gibbsite.inference.importance.mini_buckets.weighted_sum import fill_pool
from tests.inference.importance.models import all_states, random_model

FALSE_ALARM = 1e-7  # of each statistical test


def setting(model: gs.FactorGraph, seed: int = 1) -> SourceSettings:
    every = np.ones(model.n_sites, np.bool_)
    return SourceSettings(seed, every, math.inf, None, lambda: 0.0, 1, lambda: False)


def make_source(model: gs.FactorGraph, entries: int, seed: int = 1) -> BucketSource:
    found = outline(model)
    entries = max(entries, largest_table(found))
    source = weigh_buckets(model, found, plan_buckets(found, entries), setting(model, seed), 0)
    assert source is not None
    return source


@compiled_loop
def _draw(tables: DrawTables, lanes: Lanes, words: np.ndarray) -> None:
    store(words, draw_lanes(tables, lanes, load(words)))
    write_codes(tables.answers, lanes)


def draw_states(source: BucketSource, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw states, as codes (size, sites), and their log-weights."""
    words = rng.integers(1, 2**64, 4, dtype=np.uint64)
    lanes = make_lanes(source.plan.buckets, source.tables.answers.place.size)
    codes, weights = [], []
    for _ in range(-(-size // BLOCK)):
        _draw(source.tables, lanes, words)
        codes.append(lanes.codes.T.copy())
        weights.append(lanes.log_weight + source.log_constant)
    return np.concatenate(codes)[:size], np.concatenate(weights)[:size]


def check_bounds(numbers: range) -> int:
    """Bound models from both sides; return how many were split."""
    split = 0
    for number in numbers:
        model = random_model(number)
        log_z = gs.exact.enumerate_states(model).log_z
        allowed = 1e-12 * max(1.0, abs(log_z))
        found = outline(model)
        least = largest_table(found)
        for entries in (least, 2 * least):
            plan = plan_buckets(found, entries)
            split += plan.splits > 0
            for negative in (0.0, 0.1, 0.7):
                bound = pass_upwards(plan, fill_pool(plan, found.reduction.problem), negative)
                assert bound is not None
                bound += found.reduction.log_constant
                if negative == 0.0:
                    assert bound >= log_z - allowed, (number, entries)
                else:
                    assert bound <= log_z + allowed, (number, entries, negative)
                if plan.splits == 0:
                    assert abs(bound - log_z) <= 1e-10 * max(1.0, abs(log_z)), (number, entries)
    return split


def test_bounds_hold_against_enumeration() -> None:
    assert check_bounds(range(250)) > 150


@pytest.mark.campaign
def test_bounds_hold_on_ten_thousand_models() -> None:
    check_bounds(range(1000, 11_000))


def test_products_have_no_more_entries_than_allowed_and_every_factor_counts_once() -> None:
    for number in range(40):
        found = outline(random_model(number))
        plan = plan_buckets(found, largest_table(found))
        assert plan.buckets.size.max(initial=0) <= plan.entries
        used = np.bincount(plan.buckets.table, minlength=plan.tables.at.size)
        assert (used == 1).all()
        assert sorted(plan.buckets.drawn.tolist()) == sorted(plan.buckets.table.tolist())
        assert plan.group.size == found.reduction.problem.table.size


def test_a_source_without_splits_draws_from_the_model() -> None:
    model = random_model(7)
    source = make_source(model, 1 << 20)
    assert source.exact
    exact = gs.exact.enumerate_states(model)
    assert abs(source.log_bound - exact.log_z) <= 1e-10 * max(1.0, abs(exact.log_z))
    codes, weights = draw_states(source, 100_000, np.random.default_rng(1))
    assert np.abs(weights - exact.log_z).max() < 1e-9
    states = all_states(model)
    law = np.exp([model.log_potential(x) - exact.log_z for x in states])
    check_law(model, codes, law)


def check_law(model: gs.FactorGraph, codes: np.ndarray, law: np.ndarray) -> None:
    """Compare draws with a law over all states: nothing impossible is drawn, the rest by chi-squared."""
    states = np.ravel_multi_index(tuple(codes.T.astype(np.int64)), tuple(model.cards))
    seen = np.bincount(states, minlength=law.size)
    assert seen[law == 0.0].sum() == 0
    expected = law * len(codes)
    usual = expected >= 20.0
    observed = np.append(seen[usual], seen[~usual].sum())
    predicted = np.append(expected[usual], max(expected[~usual].sum(), 1e-9))
    if predicted[-1] < 20.0:
        observed, predicted = observed[:-1], predicted[:-1]
    squared = ((observed - predicted) ** 2 / predicted).sum()
    assert stats.chi2.sf(squared, max(observed.size - 1, 1)) > FALSE_ALARM


@pytest.mark.parametrize("number", [3, 4, 6, 11, 14])
def test_weights_are_the_model_over_the_law_of_the_draws(number: int) -> None:
    """The weights of all states that were met give the law of the draws, which they must then have."""
    model = random_model(number)
    source = make_source(model, 1)
    codes, weights = draw_states(source, 60_000, np.random.default_rng(number))
    assert weights.max() <= source.log_bound + 1e-12 * max(1.0, abs(source.log_bound))
    alive = weights > -np.inf
    law = np.zeros(int(np.prod(model.cards)))
    keys = np.ravel_multi_index(tuple(codes.T.astype(np.int64)), tuple(model.cards))
    for key in np.unique(keys[alive]):
        first = int(np.flatnonzero(keys == key)[0])
        log_p = float(model.log_potential(codes[first]))
        assert np.ptp(weights[keys == key]) < 1e-9
        law[key] = math.exp(log_p - weights[first])
    # what was met has as much of the law as draws say
    share = alive.mean()
    assert law.sum() <= 1.0 + 1e-9
    seen = np.bincount(keys[alive], minlength=law.size)
    usual = law * len(codes) >= 20.0
    squared = ((seen - law * len(codes))[usual] ** 2 / (law * len(codes))[usual]).sum()
    assert stats.chi2.sf(squared, int(usual.sum())) > FALSE_ALARM
    assert abs(law.sum() - share) < 0.02


def pulls(numbers: range) -> tuple[list[float], list[float], int]:
    """Return errors of marginals and log Z in standard errors, and how many verdicts are false."""
    cells, zs, wrong = [], [], 0
    for number in numbers:
        model = random_model(number)
        exact = gs.solve_exact(model)
        least = largest_table(outline(model))
        proposal = gs.importance.MiniBucket(entries=max(2, least))
        found = gs.sample_weighted(model, proposal, draws=20_000, rng=number, progress=False, threads=1)
        if found.log_z_error > 0.0 and found.diagnostics.effective > 400:
            zs.append((found.log_z - exact.log_z) / found.log_z_error)
        site = model.sites[number % model.n_sites]
        p, q, e = (next(iter(table[site].values())) for table in (exact.marginals, found.marginals, found.mcse))
        if 0.01 < p < 0.99 and found.diagnostics.effective > 400:
            cells.append((q - p) / e)
        apart = gs.compare(found, exact).max_abs
        wrong += found.converged and apart > 0.01
    return cells, zs, wrong


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_estimates_are_calibrated() -> None:
    cells, zs, wrong = pulls(range(60))
    assert wrong == 0
    for found in (cells, zs):
        assert len(found) > 20
        # sums of squares of standard normal numbers; errors of marginals are a little too large
        assert stats.chi2.sf(float(np.square(found).sum()), len(found)) > FALSE_ALARM
        assert np.abs(found).max() < 6.0


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_estimates_are_calibrated_on_five_hundred_models() -> None:
    cells, zs, wrong = pulls(range(1000, 1500))
    assert wrong == 0
    for found in (cells, zs):
        assert stats.chi2.sf(float(np.square(found).sum()), len(found)) > FALSE_ALARM
        assert 0.85 < np.std(found) < 1.15
        assert abs(np.mean(found)) < 5.0 / math.sqrt(len(found))


def test_equal_seeds_give_equal_bytes_with_any_number_of_threads() -> None:
    model = random_model(5)
    runs = [
        gs.sample_weighted(
            model, gs.importance.MiniBucket(entries=81), draws=9000, rng=5, threads=threads, progress=False
        )
        for threads in (1, 2)
    ]
    assert (runs[0].estimate.cells == runs[1].estimate.cells).all()
    assert runs[0].log_z == runs[1].log_z


def test_tables_grow_while_the_bound_falls() -> None:
    found = outline(gs.ising_grid((16, 16), coupling=0.4, field=0.05))
    # so little time that the first tables are the smallest; then there is enough
    growth = Growth(found, None, 1e-9, lambda: 0.0)
    assert growth.plan is not None
    assert (growth.plan.entries, growth.plan.splits > 0) == (1 << 12, True)
    growth.seconds = 1e9
    seen = []
    for plan in growth:
        seen.append(plan.entries)
        growth.note(1.0)
    assert seen == [4**k << 12 for k in range(len(seen))]
    assert len(seen) > 2
    assert plan.splits == 0
    growth = Growth(found, None, 1e-9, lambda: 0.0)
    growth.seconds = 1e9
    steps = 0
    for _ in growth:
        steps += 1
        growth.note(0.0)
    assert steps == 2  # twice in vain
    fixed = Growth(found, 64, 1e9, lambda: 0.0)
    assert fixed.plan is not None
    assert fixed.plan.entries == 64
    fixed.note(1.0)
    assert fixed.ended
    assert Growth(found, None, 1e9, lambda: 0.0).plan.splits == 0  # type: ignore[union-attr]


def test_what_is_asked_for_must_make_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gs.FactorGraph({"a": 3, "b": 3, "c": 3}, [(("a", "b", "c"), np.ones((3, 3, 3)) + np.eye(3))])
    with pytest.raises(gs.errors.ArgumentError, match="entries must be at least 27, the entries of the model's la"):
        gs.sample_weighted(model, gs.importance.MiniBucket(entries=8), progress=False)
    with pytest.raises(gs.errors.ArgumentError, match="entries must be a whole number of at least 2, got 1"):
        gs.importance.MiniBucket(entries=1)
    with pytest.raises(gs.errors.ArgumentError, match="entries must be a whole number"):
        gs.importance.MiniBucket(entries="many")  # type: ignore[arg-type]
    monkeypatch.setattr("gibbsite.inference.importance.mini_buckets.proposal.usable_memory", lambda: 100.0)
    with pytest.raises(gs.errors.TooLargeError, match="need 0 MB of memory, more than the 0 MB that may be used"):
        gs.sample_weighted(model, gs.importance.MiniBucket(), progress=False)


def test_impossible_evidence_is_refused() -> None:
    # each pair of states is possible, no state of all three sites is
    differ = np.ones((2, 2)) - np.eye(2)
    sites = {"a": 2, "b": 2, "c": 2}
    model = gs.FactorGraph(sites, [((x, y), differ) for x, y in ("ab", "bc", "ac")])
    with pytest.raises(gs.errors.SupportError, match="No state has positive probability"):
        gs.sample_weighted(model, gs.importance.MiniBucket(entries=8), progress=False)


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_weights_that_all_vanish_are_reported() -> None:
    # odd rings through small tables: what one mini-bucket allows another excludes
    differ = np.ones((2, 2)) - np.eye(2)
    names = [f"v{i}" for i in range(5)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    model = gs.FactorGraph(dict.fromkeys(names, 2), [(pair, differ) for pair in pairs])
    found = gs.sample_weighted(model, gs.importance.MiniBucket(entries=4), draws=1000, rng=1, progress=False)
    assert not found.converged
    assert "the weights of all 1,024 draws are zero" in found.reasons[0]


def test_sites_without_factors_and_sites_not_asked_for() -> None:
    model = gs.FactorGraph({"a": 2, "b": 3, "alone": 4}, [(("a", "b"), [[1, 2, 3], [3, 2, 1]])])
    found = gs.sample_weighted(
        model, gs.importance.MiniBucket(), draws=50_000, rng=1, progress=False, criteria=gs.Criteria(query=["alone"])
    )
    assert abs(found.log_z - math.log(12 * 4)) < 1e-12
    assert max(abs(p - 0.25) for p in found.marginals["alone"].values()) < 0.012
    assert math.isnan(found.marginals["a"][0])


def test_a_plan_says_what_it_needs() -> None:
    plan = plan_buckets(outline(gs.ising_grid((16, 16), coupling=0.5)), 1 << 10)
    assert isinstance(plan, BucketPlan)
    assert plan.bytes == 8.0 * (plan.pooled + plan.scratch)
    assert plan.splits > 0
    assert plan.work >= plan.buckets.size.sum()


def test_weights_that_are_equal_but_for_rounding_have_no_tail() -> None:
    rng = np.random.default_rng(1)
    logs = np.where(rng.random(20_000) < 0.5, -1.0, -2.0) + 1e-15 * rng.normal(size=20_000)
    assert pareto_k(np.sort(logs)[-4000:], 20_000) <= 0.5
