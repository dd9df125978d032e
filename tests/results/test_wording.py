"""What people read: no nan, inf or None in any summary, numbers as numbers, units said."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.results.measure.measurement import CellNumbers
from gibbsite.results.verdict.convergence import judge

NOT_FOR_PEOPLE = re.compile(r"\b(nan|inf|None)\b")
STATES = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])])
NUMBERS = gs.Gaussian([1e6, 2e-5], [[4e8, 0.0], [0.0, 1e-12]], names=["large", "small"])


@pytest.mark.parametrize("model", [STATES, NUMBERS], ids=["states", "numbers"])
@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("sweeps", [1, 2, 3, 4, 5])
def test_short_runs_read_well(model: Any, chains: int, sweeps: int):
    result = gs.sample(model, sweeps=sweeps, warmup=1, chains=chains, rng=1, progress=False)
    for text in (result.summary(), result._repr_html_(), repr(result)):
        assert not NOT_FOR_PEOPLE.search(text), text
    if sweeps < 4:
        assert "R-hat not known" in result.summary()
        assert "too short to tell whether chains agree" in result.summary()


@pytest.mark.parametrize("chains", [1, 2])
def test_runs_without_errors_read_well(chains: int):
    result = gs.sample(STATES, gs.HerdedGibbs(), sweeps=50, chains=chains, rng=1, progress=False)
    for text in (result.summary(), result._repr_html_(), gs.infer(STATES, method="herded", sweeps=9, rng=1).line()):
        assert not NOT_FOR_PEOPLE.search(text), text


def test_answers_without_errors_read_well():
    answer = gs.infer(STATES, method="gibbs", sweeps=1, chains=1, rng=1, progress=False)
    for text in (answer.line(), *answer.reasons):
        assert not NOT_FOR_PEOPLE.search(text), text


def test_headline_says_its_unit():
    result = gs.sample(NUMBERS, sweeps=1000, rng=1, progress=False)
    said = result.diagnostics
    assert said.mcse_in_sds
    worst = max(result.mcse[site]["mean"] / result.marginals[site]["sd"] for site in ("large", "small"))
    assert said.mcse_max == pytest.approx(worst, rel=0.3)
    assert f"standard error at most {said.mcse_max:.2g} standard deviations" in said.line()
    assert "mean of " in f"{said.rhat_at} {said.ess_at}" or "sd of " in said.rhat_at
    counted = gs.sample(STATES, sweeps=1000, rng=1, progress=False).diagnostics
    assert not counted.mcse_in_sds
    assert "standard deviations" not in counted.line()


def test_numbers_have_the_digits_that_are_known():
    lines = gs.sample(NUMBERS, sweeps=1000, rng=1, progress=False).summary().splitlines()
    large, small = (next(line for line in lines if line.strip().startswith(name)) for name in ("large", "small"))
    assert re.search(r"mean \d{6,7} ±\d{2,4}  sd \d{5} ±\d{2,4}", large)
    assert re.search(r"mean [12][.\d]*e-05 ±[.\d]+e-08", small)


def cells(rhat: float, error: float) -> CellNumbers:
    one = np.ones(1)
    return CellNumbers(0.5 * one, error * one, 9.0 * one, rhat * one, 0.1 * one, one, np.zeros(0, np.intp))


def test_one_chain_cannot_disagree_with_others():
    alone = judge(cells(1.5, 0.1), 1, 100, (), lambda cell: "a = yes")
    assert alone.reasons[0].startswith("the two halves of the chain disagree: R-hat is 1.500 at a = yes")
    several = judge(cells(1.5, 0.1), 4, 100, (), lambda cell: "a = yes")
    assert several.reasons[0].startswith("chains disagree: R-hat is 1.500")


def test_chains_that_never_move_read_well():
    stuck = judge(cells(np.inf, np.inf), 4, 100, (), lambda cell: "a = yes")
    text = "\n".join([stuck.line(), *stuck.reasons])
    assert not NOT_FOR_PEOPLE.search(text)
    assert "R-hat infinite" in text
    assert "standard error not known" in text


def test_a_huge_r_hat_is_rounded():
    apart = judge(cells(7178769.8918, 0.1), 4, 100, (), lambda cell: "a = yes")
    text = "\n".join([apart.line(), *apart.reasons])
    assert "R-hat above 100," in text and "R-hat is above 100 at a = yes" in text
    assert "7178769" not in text


def test_a_mean_field_that_bounds_nothing_reads_well():
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 1]])])
    field = gs.mean_field(model, start="uniform", max_iterations=1, damping=0.5)
    assert field.log_z == -np.inf
    for text in (field.line(), repr(field)):
        assert not NOT_FOR_PEOPLE.search(text), text
        assert "no bound" in text


def test_comparisons_of_numbers_have_no_distances_of_states():
    runs = [gs.sample(NUMBERS, sweeps=1000, rng=seed, progress=False) for seed in (1, 2)]
    found = gs.compare(*runs)
    assert found.max_tv is None
    assert found.max_hellinger is None
    assert found.max_z < 6
    assert "Hellinger" not in repr(found)
    assert not NOT_FOR_PEOPLE.search(repr(found))
