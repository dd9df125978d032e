"""Expected counts agree with enumeration, and EM never goes down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbsite._common.arrays import Floats, Ints16
from gibbsite.learn.networks.expectation import Expectations, maximise, start_tables
from gibbsite.learn.networks.layout import Layout, make_layout, normalised

NAMES = ["a", "b", "c", "d", "e"]
PARENTS = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ("d",)}
CARDS = np.array([2, 3, 2, 2, 3])


def random_cases(rng: np.random.Generator, rows: int, share: float) -> Ints16:
    codes = (rng.random((5, rows)) * CARDS[:, None]).astype(np.int16)
    codes[rng.random(codes.shape) < share] = -1
    return codes


def enumerated(layout: Layout, codes: Ints16, weights: Floats, tables: Floats) -> tuple[Floats, float]:
    """Return expected counts and log-likelihood by going through all joint states."""
    counts, total = np.zeros(tables.size), 0.0
    states = np.array(list(itertools.product(*map(range, CARDS))))
    entries = np.stack(
        [
            layout.start[i]
            + states[:, layout.site[layout.begin[i] : layout.begin[i + 1]]]
            @ layout.stride[layout.begin[i] : layout.begin[i + 1]]
            for i in range(5)
        ]
    )
    joint = tables[entries].prod(axis=0)
    for row, weight in enumerate(weights):
        seen = codes[:, row] >= 0
        p = joint * (states[:, seen] == codes[seen, row]).all(axis=1)
        total += weight * np.log(p.sum())
        for i in range(5):
            np.add.at(counts, entries[i], weight * p / p.sum())
    return counts, float(total)


@pytest.mark.parametrize("most", [10_000, 4, 1])
def test_expected_counts_agree_with_enumeration(most: int) -> None:
    rng = np.random.default_rng(1)
    layout = make_layout(NAMES, PARENTS, CARDS)
    tables = normalised(layout, rng.random(int(layout.start[-1])))
    codes, weights = random_cases(rng, 40, 0.5), rng.random(40) * 3
    counts, likelihood = Expectations(layout, codes, weights, most)(tables)
    wanted, total = enumerated(layout, codes, weights, tables)
    np.testing.assert_allclose(counts, wanted, atol=1e-10)
    assert likelihood == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("extra", [0.0, 0.3])
def test_em_never_goes_down_and_ends_at_a_maximum(extra: float) -> None:
    rng = np.random.default_rng(2)
    layout = make_layout(NAMES, PARENTS, CARDS)
    codes = random_cases(rng, 200, 0.3)
    codes[2] = -1  # a hidden site
    pseudocounts = np.full(int(layout.start[-1]), extra)
    expectations = Expectations(layout, codes, np.ones(200))
    start = start_tables(layout, expectations, pseudocounts, rng, 0.9)
    found = maximise(layout, expectations, pseudocounts, start, 20_000, 1e-13)
    path = np.array(found.path)
    assert found.settled
    assert len(path) > 10
    assert np.diff(path).min() > -1e-9

    def objective(tables: Floats) -> float:
        return expectations(tables)[1] + extra * float(np.log(tables).sum()) if extra else expectations(tables)[1]

    for _ in range(50):  # no table nearby is better
        nearby = normalised(layout, found.tables * np.exp(0.01 * rng.normal(size=found.tables.size)))
        assert objective(nearby) <= path[-1] + 1e-6
