"""Convergence diagnostics: agreement with ArviZ, cells that do not move, invariances."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from gibbsite.errors import ModelError
from gibbsite.results.measure import diagnostics
from gibbsite.results.measure.diagnostics import ess, mcse, rhat
from gibbsite.results.measure.normal_scores import normal_quantiles, normal_scores

Array = NDArray[np.float64]
Diagnostic = Callable[..., Array]

ALL: list[tuple[Diagnostic, str]] = [
    (ess, "mean"),
    (ess, "bulk"),
    (ess, "tail"),
    (rhat, "rank"),
    (rhat, "split"),
    (mcse, "mean"),
    (mcse, "sd"),
]
every_diagnostic = pytest.mark.parametrize(("diagnostic", "method"), ALL)


def autoregression(rng: np.random.Generator, rho: float, chains: int, draws: int) -> Array:
    """Stationary AR(1) chains of unit variance."""
    trace = rng.normal(size=(chains, draws))
    for draw in range(1, draws):
        trace[:, draw] = rho * trace[:, draw - 1] + np.sqrt(1 - rho**2) * trace[:, draw]
    return trace


def indicate(event: NDArray[np.bool_]) -> Array:
    """One where the event happens, zero elsewhere."""
    return event.astype(np.float64)


# What a sampler may produce; each takes (rng, chains, draws).
TRACES: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "independent": lambda rng, chains, draws: rng.normal(size=(chains, draws)),
    "antithetic": lambda rng, chains, draws: autoregression(rng, -0.9, chains, draws),
    "alternating": lambda rng, chains, draws: autoregression(rng, -0.3, chains, draws),
    "mixing": lambda rng, chains, draws: autoregression(rng, 0.5, chains, draws),
    "slow": lambda rng, chains, draws: autoregression(rng, 0.9, chains, draws),
    "very slow": lambda rng, chains, draws: autoregression(rng, 0.99, chains, draws),
    "walk": lambda rng, chains, draws: np.cumsum(rng.normal(size=(chains, draws)), axis=1),
    "heavy tails": lambda rng, chains, draws: rng.standard_cauchy(size=(chains, draws)),
    "apart": lambda rng, chains, draws: rng.normal(np.arange(chains)[:, None], 1, (chains, draws)),
    "shifted": lambda rng, chains, draws: rng.normal(1e6, 1e3, (chains, draws)),
    "binary": lambda rng, chains, draws: indicate(rng.random((chains, draws)) < 0.4),
    "slow binary": lambda rng, chains, draws: indicate(autoregression(rng, 0.9, chains, draws) > 0.5),
    "rare": lambda rng, chains, draws: indicate(rng.random((chains, draws)) < 0.05),
    "states": lambda rng, chains, draws: np.floor(5 * rng.random((chains, draws))),
    "slow states": lambda rng, chains, draws: np.round(autoregression(rng, 0.8, chains, draws)),
    "rounded": lambda rng, chains, draws: np.round(rng.normal(size=(chains, draws)), 1),
}


@pytest.fixture(scope="module")
def arviz() -> Iterator[Any]:
    """ArviZ as the oracle, on NumPy alone: its Numba variant of ``mcse`` fails on NumPy 2.4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("arviz")
    switch: Any = module.utils.Numba
    before = switch.numba_flag
    switch.numba_flag = False
    yield module
    switch.numba_flag = before


@pytest.mark.parametrize("kind", TRACES)
def test_diagnostics_agree_with_arviz(arviz: Any, kind: str) -> None:
    rng = np.random.default_rng([20, *kind.encode()])
    lengths = [*range(4, 20), 32, 33, 63, 64, 100, 101, 250, 501, 1000, 2000]
    for draws in lengths:
        trace = TRACES[kind](rng, int(rng.integers(1, 9)), draws)
        if (trace == trace[:, :1]).all():
            continue  # tested below: here we differ on purpose
        for diagnostic, method in ALL:
            if diagnostic is rhat and len(trace) < 2:
                continue
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                expected = float(getattr(arviz, diagnostic.__name__)(trace, method=method))
            found = float(diagnostic(trace, method))
            if np.isnan(expected) or expected > 1e12:
                # R-hat without variance within the halves: 0/0, or a rounding error below.
                assert found == (1.0 if np.isnan(expected) else np.inf)
                assert diagnostic is rhat
            else:
                what = f"{diagnostic.__name__}({method}) of {trace.shape}"
                assert found == pytest.approx(expected, rel=1e-10), what


def exact_size(trace: Array) -> tuple[float, bool]:
    """Effective sample size in rational numbers, and whether Geyer's rule meets a pair of sum 0."""
    half: int = trace.shape[1] // 2
    split = np.vstack([trace[:, :half], trace[:, -half:]])
    rows = [[Fraction(int(value)) for value in row] for row in split]
    means = [sum(row, Fraction(0)) / half for row in rows]
    size = half * len(rows)

    def covariance(lag: int) -> Fraction:
        terms = (
            (row[k] - mean) * (row[k + lag] - mean)
            for row, mean in zip(rows, means, strict=True)
            for k in range(half - lag)
        )
        return sum(terms, Fraction(0)) / size

    center = sum(means, Fraction(0)) / len(rows)
    squares = [(mean - center) * (mean - center) for mean in means]
    between = sum(squares, Fraction(0)) / (len(rows) - 1)
    within = covariance(0)

    def correlation(lag: int) -> Fraction:
        return 1 - (within * half / (half - 1) - covariance(lag)) / (within + between)

    even, pair = Fraction(1), 1 + correlation(1)
    pairs: list[Fraction] = []
    tied, lag = pair == 0, 2
    while lag < half - 2 and pair > 0:
        pairs.append(min([pair, *pairs[-1:]]))
        even, pair = correlation(lag), correlation(lag) + correlation(lag + 1)
        tied, lag = tied or pair == 0, lag + 2
    last = even if even > 0 or pair >= 0 else Fraction(0)
    time = float(2 * sum(pairs, Fraction(0)) + last - 1)
    return size / max(time, 1 / np.log10(size)), tied


def test_effective_size_is_exact_where_pairs_cancel() -> None:
    rng = np.random.default_rng(29)
    ties = 0
    for k in range(1000):
        trace = indicate(rng.random((2, (10, 14, 18, 25)[k % 4])) < 0.5)
        expected, tied = exact_size(trace)
        assert float(ess(trace)) == pytest.approx(expected, rel=1e-12)
        ties += tied
    assert ties > 0  # the case was met


def test_single_chain_is_compared_with_itself(arviz: Any) -> None:
    trace = np.random.default_rng(3).normal(size=(1, 101))
    halves = np.stack([trace[0, :50], trace[0, -50:]])
    expected = arviz.rhat(halves, method="identity")
    assert float(rhat(trace, "split")) == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(rhat(trace, "rank"))


@every_diagnostic
@pytest.mark.parametrize(("chains", "draws"), [(1, 4), (1, 7), (3, 10), (4, 101)])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300])
def test_constant_cell(diagnostic: Diagnostic, method: str, chains: int, draws: int, value: float) -> None:
    expected = {ess: chains * draws, rhat: 1.0, mcse: 0.0}[diagnostic]
    assert diagnostic(np.full((chains, draws), value), method) == expected


@every_diagnostic
@pytest.mark.parametrize("draws", [4, 9, 30])
def test_chains_stuck_at_different_values(diagnostic: Diagnostic, method: str, draws: int) -> None:
    values = np.array([0.1, 0.1, 0.7])
    trace = np.repeat(values[:, None], draws, axis=1)
    expected = {ess: 3.0, rhat: np.inf, mcse: np.std(values, ddof=1) / np.sqrt(3)}[diagnostic]
    assert float(diagnostic(trace, method)) == pytest.approx(expected)


@every_diagnostic
@pytest.mark.parametrize("draws", [1, 2, 3])
def test_too_few_draws_to_judge(diagnostic: Diagnostic, method: str, draws: int) -> None:
    trace = np.random.default_rng(1).normal(size=(3, draws))
    error = np.std(trace.mean(axis=1), ddof=1) / np.sqrt(3)
    expected = {ess: 3.0, rhat: np.inf, mcse: error}[diagnostic]
    assert float(diagnostic(trace, method)) == pytest.approx(expected)
    alone = {ess: 1.0, rhat: np.inf, mcse: np.inf}[diagnostic]
    assert float(diagnostic(trace[:1], method)) == alone


@pytest.mark.parametrize("method", ["rank", "split"])
def test_rhat_of_halves_that_do_not_move(method: str) -> None:
    jump = np.repeat([[0.1, 0.7]], 5, axis=1)
    assert rhat(np.tile(jump, (3, 1)), method) == np.inf
    middle = np.zeros((2, 9))
    middle[0, 4] = 1.0  # belongs to no half
    assert rhat(middle, method) == 1.0


def test_states_visited_equally_often() -> None:
    trace = np.random.default_rng(2).permuted(np.tile([0.0, 1.0], (4, 50)), axis=1)
    assert np.isfinite(rhat(trace))  # the distances from the median are all equal
    assert mcse(trace, "sd") == 0.0


@every_diagnostic
@pytest.mark.parametrize("exponent", [-1070, -600, 600, 1020])
def test_extreme_scales(diagnostic: Diagnostic, method: str, exponent: int) -> None:
    trace = np.random.default_rng(4).integers(-8, 9, size=(2, 20, 3)).astype(float)
    trace[..., 1] = 1.0
    expected = diagnostic(trace, method)
    if diagnostic is mcse:
        expected = np.ldexp(expected, exponent)
    found = diagnostic(np.ldexp(trace, exponent), method)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0.0 if exponent > -1000 else 1e-322)


@every_diagnostic
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(diagnostic: Diagnostic, method: str, bad: float) -> None:
    trace = np.zeros((2, 5, 3, 4))
    trace[1, 2, 2, 1] = bad
    with pytest.raises(ModelError, match=r"cell \(2, 1\) of the trace .* not finite"):
        diagnostic(trace, method)
    with pytest.raises(ModelError, match=r"^the trace has a value that is not finite"):
        diagnostic(trace[:, :, 2, 1], method)


@every_diagnostic
def test_arguments_that_are_no_trace(diagnostic: Diagnostic, method: str) -> None:
    for shape in [(), (5,), (0, 5), (5, 0), (2, 0, 3)]:
        with pytest.raises(ModelError, match="no draws to judge"):
            diagnostic(np.zeros(shape), method)
    for dtype in (np.complex128, np.str_, np.object_):
        with pytest.raises(ModelError, match="real or integer"):
            diagnostic(np.zeros((2, 5), dtype), method)
    with pytest.raises(ModelError, match=f"method of {diagnostic.__name__} 'median' is unknown"):
        diagnostic(np.zeros((2, 5)), "median")


@every_diagnostic
def test_cells_are_judged_one_by_one(diagnostic: Diagnostic, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = np.random.default_rng(5).normal(size=(3, 11, 4, 5))
    expected = np.array([[diagnostic(trace[:, :, i, j], method) for j in range(5)] for i in range(4)])
    monkeypatch.setattr(diagnostics, "_BLOCK", 3 * 11 * 7)  # blocks of 7, 7 and 6 cells
    np.testing.assert_array_equal(diagnostic(trace, method), expected)
    transposed = np.asfortranarray(trace)
    np.testing.assert_array_equal(diagnostic(transposed, method), expected)
    assert diagnostic(trace[..., :0], method).shape == (4, 0)
    assert diagnostic(trace[:, :, 0, 0], method).shape == ()


@every_diagnostic
def test_types(diagnostic: Diagnostic, method: str) -> None:
    trace = np.random.default_rng(6).integers(0, 2, size=(2, 12, 5))
    expected = diagnostic(trace.astype(np.float64), method)
    assert expected.dtype == np.float64
    for dtype in (np.bool_, np.int8, np.uint32, np.int64, np.float16, np.float32, np.longdouble):
        np.testing.assert_array_equal(diagnostic(trace.astype(dtype), method), expected)
    np.testing.assert_array_equal(diagnostic(trace.tolist(), method), expected)


def test_memory_does_not_grow_with_cells() -> None:
    trace = np.random.default_rng(7).random((2, 8, 100_000), dtype=np.float32)
    ess(trace[..., :10])
    tracemalloc.start()
    ess(trace)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < trace.nbytes  # half of the trace in double precision


def test_normal_quantiles_against_scipy() -> None:
    ndtri = pytest.importorskip("scipy.special").ndtri
    middle = np.concatenate([np.linspace(1e-4, 1 - 1e-4, 20_001), [0.075, 0.925, 0.5 - 1e-9]])
    tails = np.logspace(-300, -1, 5_000)
    probabilities = np.concatenate([middle, tails, 1.0 - tails[tails > 1e-16]])
    np.testing.assert_allclose(normal_quantiles(probabilities), ndtri(probabilities), rtol=1e-14, atol=0.0)


def test_normal_scores_are_antisymmetric() -> None:
    scores = normal_scores(100)
    np.testing.assert_allclose(scores[2:], -scores[:1:-1], rtol=1e-13)
    assert scores[101] == 0.0
    assert (np.diff(scores[2:]) > 0.0).all()


# Small integers: ties of all kinds, and sums without rounding, so that invariance is exact.
traces = st.tuples(st.integers(1, 4), st.integers(1, 25)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-4, 4).map(float))
)
examples = settings(max_examples=200, deadline=None, derandomize=True)


@examples
@given(traces, st.integers(-40, 40).filter(bool), st.integers(-1000, 1000))
def test_scale_and_origin_do_not_matter(trace: Array, scale: int, origin: int) -> None:
    moved = trace * (scale / 8) + origin
    for diagnostic, method in [(ess, "mean"), (ess, "bulk"), (rhat, "split"), (rhat, "rank")]:
        np.testing.assert_allclose(diagnostic(moved, method), diagnostic(trace, method), rtol=1e-9)
    for method in ("mean", "sd"):
        expected = abs(scale / 8) * mcse(trace, method)
        np.testing.assert_allclose(mcse(moved, method), expected, rtol=1e-9, atol=1e-12)


@examples
@given(traces, st.randoms(use_true_random=False))
def test_order_of_chains_does_not_matter(trace: Array, random: Any) -> None:
    order = list(range(len(trace)))
    random.shuffle(order)
    for diagnostic, method in ALL:
        found, expected = diagnostic(trace[order], method), diagnostic(trace, method)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@examples
@given(traces)
def test_ranks_see_the_order_only(trace: Array) -> None:
    assert ess(trace**3, "bulk") == ess(trace, "bulk")


@examples
@given(traces)
def test_ranges(trace: Array) -> None:
    chains, draws = trace.shape
    for method in ("mean", "bulk", "tail"):
        most = max(chains * draws * np.log10(max(chains * draws, 10)), chains)
        assert 0.0 < ess(trace, method) <= most * (1.0 + 1e-12)  # processors round differently
    for method in ("rank", "split"):
        assert rhat(trace, method) > 0.5
    for method in ("mean", "sd"):
        assert mcse(trace, method) >= 0.0


@examples
@given(traces)
def test_two_states_have_one_effective_size(trace: Array) -> None:
    # Scores of two states are an affine map of the states, even where Geyer's rule ties exactly.
    binary = indicate(trace > 0.0)
    np.testing.assert_allclose(ess(binary, "bulk"), ess(binary, "mean"), rtol=1e-9)
