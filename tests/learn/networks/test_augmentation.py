"""Gibbs sampling of tables and cells together draws from the posterior: simulation-based calibration and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special, stats

from gibbsite._common.arrays import Floats, Ints16
from gibbsite.learn.networks.augmentation import Length, draw_tables, sample_tables
from gibbsite.learn.networks.layout import Layout, count_families, make_layout, row_of_entries

NAMES = ["a", "b", "c", "h"]
PARENTS = {"a": (), "b": ("a",), "c": ("a", "b"), "h": ("c",)}
CARDS = np.array([2, 3, 2, 2])


def draw_cases(layout: Layout, tables: Floats, rows: int, rng: np.random.Generator) -> Ints16:
    """Draw complete cases, site by site."""
    codes = np.zeros((layout.card.size, rows), np.int16)
    for i in range(layout.card.size):
        family = slice(int(layout.begin[i]), int(layout.begin[i + 1]) - 1)
        first = layout.start[i] + layout.stride[family] @ codes[layout.site[family]].astype(np.int64)
        cells = tables[first[:, None] + np.arange(layout.card[i])]
        codes[i] = (np.cumsum(cells, axis=1) < rng.random(rows)[:, None]).sum(axis=1).clip(0, layout.card[i] - 1)
    return codes


def sample(layout: Layout, codes: Ints16, extra: Floats, draws: int, thin: int, seed: int, chains: int = 1) -> Floats:
    streams = np.random.SeedSequence(seed).spawn(chains)
    length = Length(100, draws, thin)
    return sample_tables(layout, codes, extra, length, streams, 1, lambda sweep: None, lambda: False)


@pytest.mark.parametrize("most", ["groups", "sites"])
def test_ranks_are_uniform(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables drawn from the prior have uniform ranks among draws of the posterior; false alarms below 1e-6."""
    from gibbsite.learn.networks import augmentation

    if most == "sites":
        monkeypatch.setattr(augmentation, "_MOST_STATES", 1)
    layout = make_layout(NAMES, PARENTS, CARDS)
    rows = row_of_entries(layout)
    extra = np.random.default_rng(0).uniform(0.5, 2.0, rows.size)
    repeats, draws = 300, 19
    ranks = np.zeros((repeats, rows.size), int)
    for k in range(repeats):
        rng = np.random.default_rng(1000 + k)
        true = draw_tables(layout, rows, extra, rng)
        codes = draw_cases(layout, true, 25, rng)
        codes[rng.random(codes.shape) < 0.4] = -1
        kept = sample(layout, codes, extra, draws, 20, k)[0]
        ranks[k] = (kept < true).sum(axis=0)
    for entry in range(rows.size):
        counts = np.bincount(ranks[:, entry], minlength=draws + 1)
        p = stats.chisquare(counts).pvalue
        assert p > 1e-6 / rows.size / 2, (entry, counts)


def test_posterior_means_agree_with_enumeration() -> None:
    """All states of five missing cells, with tables integrated out."""
    layout = make_layout(["a", "b"], {"a": (), "b": ("a",)}, np.array([2, 2]))
    rows = row_of_entries(layout)
    extra = np.array([0.3, 0.7, 1.0, 0.5, 0.2, 2.0])
    codes = np.array([[0, 1, -1, -1, 0, 1, 1], [0, -1, 1, -1, 0, 1, -1]], np.int16)
    free = np.argwhere(codes < 0)
    mean, total = np.zeros(6), 0.0
    for states in itertools.product([0, 1], repeat=len(free)):
        full = codes.copy()
        full[free[:, 0], free[:, 1]] = states
        after = count_families(layout, full, np.ones(7)) + extra
        logs = special.gammaln(after).sum() - special.gammaln(np.bincount(rows, after)).sum()
        weight = np.exp(logs)
        mean += weight * after / np.bincount(rows, after)[rows]
        total += weight
    kept = sample(layout, codes, extra, 20_000, 1, 1, chains=4)
    from gibbsite.results.measure.diagnostics import mcse

    assert (np.abs(kept.mean(axis=(0, 1)) - mean / total) < 6.0 * np.asarray(mcse(kept))).all()


def test_chains_do_not_depend_on_the_number_of_threads() -> None:
    layout = make_layout(NAMES, PARENTS, CARDS)
    codes = np.full((4, 30), -1, np.int16)
    codes[0] = np.arange(30) % 2
    extra = np.ones(int(layout.start[-1]))
    streams = np.random.SeedSequence(1).spawn(3)
    found = [
        sample_tables(layout, codes, extra, Length(5, 10, 2), streams, threads, lambda sweep: None, lambda: False)
        for threads in (1, 3)
    ]
    assert np.array_equal(found[0], found[1])


def test_tiny_parameters_give_finite_rows() -> None:
    layout = make_layout(["a"], {"a": ()}, np.array([3]))
    rows = row_of_entries(layout)
    rng = np.random.default_rng(1)
    draws = np.stack([draw_tables(layout, rows, np.full(3, 1e-5), rng) for _ in range(3000)])
    assert np.isfinite(np.log(draws)).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1.0)
    # each state takes nearly all of a third of the rows: five standard deviations
    assert np.abs(draws.mean(axis=0) - 1 / 3).max() < 5.2 * np.sqrt(2 / 9 / 3000)
