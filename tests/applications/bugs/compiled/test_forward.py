"""Draws from every distribution follow it.

Continuous ones are tested by Kolmogorov and Smirnov, discrete ones by chi-squared tests with 200,000 draws. A test
fails below p = 1e-8, so all of them together raise a false alarm with a probability below 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gibbsite._common.arrays import Floats, Words64
from gibbsite._numba.jit import compiled
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import forward
from tests.applications.bugs.compiled.test_densities import SCALARS, four

ALARM, DRAWS = 1e-8, 200_000
MORE = {
    dist.BINOMIAL: [(0.4, 41.0), (0.03, 1000.0), (0.97, 500.0), (0.0, 7.0), (1.0, 7.0)],
    dist.POISSON: [(30.0,), (2000.0,)],
    dist.BETA_BINOMIAL: [(2.0, 3.0, 100.0)],
    dist.GAMMA: [(0.3, 1.0)],
    dist.BETA: [(0.05, 0.2)],
}
CASES = [
    (code, given)
    for code, (_, many) in SCALARS.items()
    for given in [*many, *MORE.get(code, [])]
    if code in forward.DRAWN
]


@compiled
def fill(out: Floats, words: Words64, code: int, a: float, b: float, c: float) -> None:
    for k in range(out.size):
        out[k] = forward.draw_from(words, code, a, b, c)


def p_value(code: int, given: tuple[float, ...], x: Floats) -> float:
    law = SCALARS[code][0](*given)
    if not dist.BY_CODE[code].discrete:
        return float(stats.kstest(x, law.cdf).pvalue)
    assert (x == np.floor(x)).all()
    # cells of consecutive values that expect at least 20 draws
    low, high = law.ppf(1e-4), law.ppf(1 - 1e-4)
    edges = [low - 1.0]
    while edges[-1] < high:
        nearest = max(law.ppf(min(1.0, law.cdf(edges[-1]) + 20.0 / DRAWS)), edges[-1] + 1.0)
        edges.append(float(nearest))
    cuts = np.unique(edges)[:-1]
    law_of_cells = np.diff(np.concatenate([[0.0], law.cdf(cuts), [1.0]]))
    seen = np.histogram(x, np.concatenate([[-np.inf], cuts + 0.5, [np.inf]]))[0]
    keep = law_of_cells > 0
    assert (seen[~keep] == 0).all()
    if keep.sum() == 1:
        return 1.0
    return float(stats.chisquare(seen[keep], law_of_cells[keep] / law_of_cells.sum() * DRAWS).pvalue)


@pytest.mark.parametrize(("code", "given"), CASES)
def test_draws(code: int, given: tuple[float, ...]) -> None:
    x = np.empty(DRAWS)
    fill(x, np.array([code + 1, 2, 3, len(given)], np.uint64), code, *four(given)[:3])
    assert p_value(code, given, x) > ALARM


@pytest.mark.parametrize("code", [dist.NORMAL, dist.GAMMA, dist.POISSON, dist.BINOMIAL, dist.NEGATIVE_BINOMIAL])
def test_wrong_draws_are_seen(code: int) -> None:
    given = SCALARS[code][1][0]
    x = np.empty(DRAWS)
    wrong = (given[0] * 1.05, *given[1:]) if code != dist.NORMAL else (given[0] + 0.02, *given[1:])
    fill(x, np.array([1, 2, 3, 4], np.uint64), code, *four(wrong)[:3])
    if code == dist.GAMMA:
        wrong_law = SCALARS[code][1][1]
        fill(x, np.array([1, 2, 3, 4], np.uint64), code, wrong_law[0] * 1.05, wrong_law[1], 0.0)
        assert p_value(code, wrong_law, x) < ALARM
        return
    assert p_value(code, given, x) < ALARM


def test_parameters_outside_their_range_give_no_number() -> None:
    x = np.empty(1)
    for code in sorted(forward.DRAWN):
        fill(x, np.array([1, 2, 3, 4], np.uint64), code, -0.5, -1.0, 3.0)
        assert np.isnan(x[0]), dist.BY_CODE[code].name
