"""Scores of families agree with their formulas, however the cases are counted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from gibbsite._common.arrays import Floats
from gibbsite.learn.networks import scores
from gibbsite.learn.networks.cases import Cases
from gibbsite.learn.networks.exact_search import score_all
from gibbsite.learn.networks.hill_climbing import score_edges


def random_cases(rows: int, cards: list[int], weighted: bool = False) -> Cases:
    rng = np.random.default_rng(1)
    codes = (rng.random((len(cards), rows)) * np.array(cards)[:, None]).astype(np.int16)
    codes[1] = np.where(rng.random(rows) < 0.7, codes[0] % cards[1], codes[1])
    weights = rng.random(rows) * 3 if weighted else np.ones(rows)
    names = tuple(str(i) for i in range(len(cards)))
    return Cases(names, tuple(tuple(range(card)) for card in cards), codes, weights)


def formula(cases: Cases, kind: str, child: int, parents: tuple[int, ...]) -> float:
    """Return a score by the textbook."""
    cards = cases.cards
    table: Floats = np.zeros(tuple(cards[[*parents, child]]))
    np.add.at(table, tuple(cases.codes[[*parents, child]]), cases.weights)
    table = table.reshape(-1, cards[child])
    rows = table.sum(axis=1)
    if kind in ("bic", "aic"):
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = np.nansum(table * np.log(table / rows[:, None]))
        penalty = 0.5 * np.log(cases.total) if kind == "bic" else 1.0
        return float(likelihood - penalty * len(table) * (cards[child] - 1))
    cell = 1.0 if kind == "k2" else 7.0 / table.size
    row = cell * cards[child]
    return float((gammaln(row) - gammaln(row + rows)).sum() + (gammaln(table + cell) - gammaln(cell)).sum())


@pytest.mark.parametrize("kind", ["bic", "aic", "k2", "bdeu"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_all_families(kind: str, weighted: bool, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With small tables the states of parents are numbered anew."""
    if small:
        monkeypatch.setattr(scores, "_FEWEST", 1)
    cases = random_cases(300, [2, 3, 4, 2, 7], weighted)
    scoring, _ = scores.read_score("bdeu:7" if kind == "bdeu" else kind, cases)
    allowed = ~np.eye(5, dtype=bool)
    found = score_all(scores.make_data(cases), scoring, allowed, ~allowed & False, 4, 1)
    for child, (masks, values) in enumerate(found):
        assert len(masks) == 16
        for mask, value in zip(masks.tolist(), values.tolist(), strict=True):
            parents = tuple(i for i in range(5) if mask >> i & 1)
            assert value == pytest.approx(formula(cases, kind, child, parents), rel=1e-11)


@pytest.mark.parametrize("kind", ["bic", "bdeu:7"])
@pytest.mark.parametrize("rows", [64, 300, 5000])
def test_bits_and_states_are_counted_alike(kind: str, rows: int) -> None:
    """Structures are scored from states of cases, hill climbing counts bits of cases where tables are small."""
    from gibbsite.learn import learn_structure, score_structure

    cases = random_cases(rows, [2, 3, 4, 2, 7, 2])
    fit = learn_structure(cases, score=kind, method="hill", restarts=3)
    assert fit.edges
    assert fit.score == pytest.approx(score_structure(cases, fit, score=kind), rel=1e-12)


def test_structures_are_sums_of_families() -> None:
    cases = random_cases(200, [2, 3, 2])
    edges = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], bool)
    scoring, _ = scores.read_score("bdeu:7", cases)
    wanted = formula(cases, "bdeu", 0, ()) + formula(cases, "bdeu", 1, (0,)) + formula(cases, "bdeu", 2, (0, 1))
    assert score_edges(scores.make_data(cases), scoring, edges) == pytest.approx(wanted, rel=1e-12)


def test_numbers_of_sets() -> None:
    for n, most in itertools.product(range(6), range(7)):
        wanted = sum(1 for size in range(most + 1) for _ in itertools.combinations(range(n), size))
        assert scores.count_sets(n, most) == wanted
