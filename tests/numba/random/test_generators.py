"""The generator: equal to its twin, uniform, and unbiased on ranges."""

from __future__ import annotations

import numpy as np
from scipy import stats

from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import below, bits, load, store, stream, uniform
from tests.proofs.naive import Xoshiro


@compiled
def fill_bits(words, out):
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = bits(rng)
    store(words, rng)


@compiled
def fill_uniform(words, out):
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = uniform(rng)
    store(words, rng)


@compiled
def fill_below(words, n, out):
    rng = load(words)
    for k in range(out.size):
        rng, out[k] = below(rng, n)
    store(words, rng)


def test_bits_equal_the_published_algorithm() -> None:
    words, out = stream(1, 0), np.zeros(1000, np.uint64)
    twin = Xoshiro(words)
    fill_bits(words, out)
    assert out.tolist() == [twin.bits() for _ in range(1000)]
    assert words.tolist() == twin.s


def test_published_vector() -> None:
    # first outputs of xoshiro256++ from the state 1, 2, 3, 4, worked out by hand for the first:
    # rotl(1 + 4, 23) + 1 = 5 * 2^23 + 1
    words, out = np.array([1, 2, 3, 4], np.uint64), np.zeros(2, np.uint64)
    fill_bits(words, out)
    assert int(out[0]) == 5 * 2**23 + 1


def test_uniform_is_uniform() -> None:
    out = np.zeros(2_000_000)
    fill_uniform(stream(7, 0), out)
    assert out.min() >= 0.0
    assert out.max() < 1.0
    # exact Kolmogorov-Smirnov bound, false alarm below 1e-6
    assert stats.kstest(out[:200_000], "uniform").pvalue > 1e-6
    counts = np.bincount((out * 4096).astype(int), minlength=4096)
    assert stats.chisquare(counts).pvalue > 1e-6
    lag = np.corrcoef(out[:-1], out[1:])[0, 1]
    assert abs(lag) < 5 / np.sqrt(out.size)  # five standard deviations, 6e-7


def test_below_is_unbiased_and_equals_its_twin() -> None:
    for n in (1, 2, 3, 7, 1000, 2**31 - 1):
        words, out = stream(3, n), np.zeros(500, np.int64)
        twin = Xoshiro(words)
        fill_below(words, n, out)
        assert out.tolist() == [twin.below(n) for _ in range(500)]
    out = np.zeros(700_000, np.int64)
    fill_below(stream(5, 0), 7, out)
    assert stats.chisquare(np.bincount(out, minlength=7)).pvalue > 1e-6


def test_streams_of_chains_differ_and_repeat() -> None:
    starts = {tuple(stream(1, chain).tolist()) for chain in range(1000)}
    assert len(starts) == 1000
    assert stream(2, 5).tolist() == stream(2, 5).tolist()
    first, second = np.zeros(100_000), np.zeros(100_000)
    fill_uniform(stream(1, 0), first)
    fill_uniform(stream(1, 1), second)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(first.size)
