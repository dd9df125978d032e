"""Normal and exponential numbers of compiled code: the whole law, moments, tails, and the tables.

The probability that one of these tests fails by chance is below 1e-6 each (fixed seeds, so it never does).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import load, store, stream
from gibbsite._numba.random.ziggurat import _EF, _EX, _EXPONENTIAL_EDGE, _F, _NORMAL_EDGE, _X, exponential, normal

N = 4_000_000
ALARM = 1e-7


@compiled
def fill_normal(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = normal(rng)
    store(words, rng)


@compiled
def fill_exponential(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = exponential(rng)
    store(words, rng)


LAWS: dict[str, tuple[Any, Any, float]] = {
    "normal": (fill_normal, stats.norm, _NORMAL_EDGE),
    "exponential": (fill_exponential, stats.expon, _EXPONENTIAL_EDGE),
}


@pytest.fixture(scope="module", params=LAWS)
def drawn(request: pytest.FixtureRequest) -> tuple[NDArray[np.float64], Any, float]:
    fill, law, edge = LAWS[request.param]
    out = np.zeros(N)
    fill(stream(11, 0), out)
    return out, law, edge


def test_the_whole_law(drawn: tuple[NDArray[np.float64], Any, float]) -> None:
    out, law, _ = drawn
    assert stats.kstest(out, law.cdf).pvalue > ALARM


def test_moments(drawn: tuple[NDArray[np.float64], Any, float]) -> None:
    out, law, _ = drawn
    for power in range(1, 5):
        mean = law.moment(power)
        sd = np.sqrt((law.moment(2 * power) - mean**2) / N)
        # The eighth moment is heavy: Chebyshev-like tails of the mean are far inside six standard errors at
        # this N, where the central limit theorem gives 2e-9.
        assert abs((out**power).mean() - mean) < 6.0 * sd


def test_the_tail_beyond_the_base(drawn: tuple[NDArray[np.float64], Any, float]) -> None:
    out, law, edge = drawn
    for side in (out,) if law is stats.expon else (out, -out):
        far = side[side > edge]
        p = law.sf(edge)
        assert stats.binomtest(far.size, N, p).pvalue > ALARM
        assert stats.kstest(far, lambda t: 1.0 - law.sf(t) / p).pvalue > ALARM  # noqa: B023


def test_neighbours_are_independent(drawn: tuple[NDArray[np.float64], Any, float]) -> None:
    out, law, _ = drawn
    z = (out - law.mean()) / law.std()
    assert abs((z[1:] * z[:-1]).mean()) < 6.0 / np.sqrt(N)
    assert abs((np.abs(z[1:]) * z[:-1]).mean()) < 6.0 / np.sqrt(N)


def test_layers_have_equal_areas() -> None:
    for x, f in ((_X, _F), (_EX, _EF)):
        areas = x[1:-1] * (f[2:] - f[1:-1])  # strips; the last one reaches the top of the curve
        np.testing.assert_allclose(areas, x[0] * f[1], rtol=1e-11)


def test_compiled_and_plain_agree() -> None:
    words, plain = stream(5, 0), stream(5, 0)
    fast, slow = np.zeros(3000), np.zeros(3000)
    fill_normal(words, fast)
    fill_normal.plain(plain, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-15)
