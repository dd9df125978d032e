"""Statistical tests of the keyed generator: ``python -m tests.campaigns.random_battery``.

Six *sources* put the numbers of Philox4x32 into an order in which gibbsite, or the literature, reads them.
Every source goes through the same tests of equidistribution, independence, runs, gaps, poker hands and
birthday spacings. Two more parts look at the function itself: pairs of neighbouring keys, and the avalanche
of a single changed input bit. The names of all tests, and with them the threshold, are fixed before a number
is drawn.

Options
    --draws N       numbers for each test of each source (default 1e9)
    --only PART     a source, ``neighbours`` or ``avalanche``; may be repeated
    --tests FAMILY  one family of the tests of sources; may be repeated
    --rounds N      test a generator of N rounds instead (to learn what the battery can see)
    --json FILE     write all results there
    --write SOURCE  write the numbers of a source to standard output, without end, for other batteries
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from gibbsite._numba import random as _random
from gibbsite._numba.jit import compiled_loop, inlined
from gibbsite._numba.random.generators import (
    BLOCK,
    BYTES,
    LANES,
    WORDS,
    chain_key,
    fill_keyed,
    philox,
    single_word,
    stream,
)

FALSE_ALARM = 1e-6  # of the whole battery, shared equally among its tests
SIZE = 1 << 16  # numbers handed to the tests at once; one sweep of the source "chain"
ENTROPY = 20111112  # the seed; changed never, so that a repetition gives the same p-values

Numbers = NDArray[np.uint32]
Verdict = tuple[float, float]  # statistic and p-value

_U, _U32 = np.uint64, np.uint32


# --- sources ----------------------------------------------------------------------------------------------


@compiled_loop
def _fill_sweep(out, key_0, key_1, sweep):
    for block in range(out.size // BLOCK):
        first = block * BLOCK
        fill_keyed(out[first : first + BLOCK], key_0, key_1, sweep, first, LANES, WORDS)


@compiled_loop
def _fill_bytes(out, words, quarters, key_0, key_1, sweep):
    for p in range(out.size):
        if p % quarters.size == 0:
            fill_keyed(words, key_0, key_1, sweep, p, LANES, BYTES)
        rest = single_word(key_0, key_1, sweep, p) >> _U32(8)
        out[p] = (_U32(quarters[p % quarters.size]) << _U32(24)) | rest


@compiled_loop
def _fill_words(out, keys, at, sweep, next_at, next_sweep, next_key, far, near):
    """Word w of step i goes to ``out[near * i + far * w]``."""
    for i in range(out.size // 4):
        a, t = _U(at + i * next_at), _U(sweep + i * next_sweep)
        low, high = _U32(a & _U(0xFFFFFFFF)), _U32(a >> _U(32))
        first, second = _U32(t & _U(0xFFFFFFFF)), _U32(t >> _U(32))
        k = i * next_key
        out[near * i], out[near * i + far], out[near * i + 2 * far], out[near * i + 3 * far] = philox(
            low, high, first, second, keys[k, 0], keys[k, 1]
        )


STEPS = SIZE // 4


def keys_of_chains(count: int) -> NDArray[np.uint32]:
    return np.array([chain_key(stream(ENTROPY, number)) for number in range(count)])


Fill = Callable[[int, Numbers], None]


def chain() -> Fill:
    """Sweep after sweep of one chain, in the order of its positions."""
    key = keys_of_chains(1)[0]
    return lambda index, out: _fill_sweep(out, key[0], key[1], index)


def bytes_first() -> Fill:
    """Sweep after sweep in numbers made of one byte for each position, completed by a word of its own."""
    key, words = keys_of_chains(1)[0], np.zeros(BLOCK, np.uint32)
    return lambda index, out: _fill_bytes(out, words, words.view(np.uint8), key[0], key[1], index)


def counter() -> Fill:
    """One sweep without end, the four words of a counter together: the plain order of the generator."""
    keys = keys_of_chains(1)
    return lambda index, out: _fill_words(out, keys, index * STEPS, 0, 1, 0, 0, 1, 4)


def position() -> Fill:
    """The four numbers of one counter, in sweep after sweep of one chain."""
    keys = keys_of_chains(1)
    return lambda index, out: _fill_words(out, keys, 0, index * STEPS, 0, 1, 0, 1, 4)


def counted_keys() -> Fill:
    """One counter under the keys 0, 1, 2, ...; then the next counter."""
    keys = np.zeros((STEPS, 2), np.uint32)
    keys[:, 0] = np.arange(STEPS)
    return lambda index, out: _fill_words(out, keys, index, 0, 0, 0, 1, STEPS, 1)


def replicas() -> Fill:
    """One counter under the keys of 16384 chains; then the next counter."""
    keys = keys_of_chains(STEPS)
    return lambda index, out: _fill_words(out, keys, index, 0, 0, 0, 1, STEPS, 1)


SOURCES: dict[str, Callable[[], Fill]] = {
    "chain": chain,
    "counter": counter,
    "position": position,
    "keys": counted_keys,
    "replicas": replicas,
    "bytes": bytes_first,
}


# --- p-values ---------------------------------------------------------------------------------------------


def fit(counts: NDArray[np.int64], probabilities: NDArray[np.float64] | None = None) -> Verdict:
    """Chi-square of counts, on both sides: a fit that is too good is as suspect as a bad one."""
    if probabilities is None:
        probabilities = np.full(counts.size, 1.0 / counts.size)
    expected = probabilities * counts.sum()
    rare = expected < 10.0
    if rare.any():  # rare cells are one cell; where even that is rare it joins the smallest of the others
        if expected[rare].sum() < 10.0:
            rare[np.where(rare, np.inf, expected).argmin()] = True
        expected = np.append(expected[~rare], expected[rare].sum())
        counts = np.append(counts[~rare], counts[rare].sum())
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic, both_sides(stats.chi2(counts.size - 1), statistic)


def both_sides(law: Any, statistic: float) -> float:
    return min(1.0, 2.0 * min(float(law.cdf(statistic)), float(law.sf(statistic))))


def normal(z: float) -> Verdict:
    return z, 2.0 * float(stats.norm.sf(abs(z)))


def largest(z: NDArray[np.float64]) -> Verdict:
    """Judge the largest of many independent normal deviates, in absolute value (Sidak)."""
    worst = float(np.abs(z).max())
    return worst, float(-np.expm1(z.size * np.log1p(-2.0 * stats.norm.sf(worst))))


def together(z: NDArray[np.float64]) -> Verdict:
    """Sum of squares of many normal deviates."""
    statistic = float((z**2).sum())
    return statistic, both_sides(stats.chi2(z.size), statistic)


# --- tests of a source ------------------------------------------------------------------------------------


@compiled_loop
def _count_cells(numbers, size, bits, shift, counts):
    mask = (_U32(1) << _U32(bits)) - _U32(1)
    for group in range(np.uintp(numbers.size // size)):
        cell = _U32(0)
        for j in range(np.uintp(size)):
            number = numbers[group * np.uintp(size) + j]
            cell = (cell << _U32(bits)) | ((number >> _U32(shift)) & mask)
        counts[cell] += _U32(1)


class Halves:
    """Equidistribution of one number: its halves, its outer bytes, its bits."""

    names = ("top 16 bits", "low 16 bits", "top 8 bits", "low 8 bits", "each of 32 bits")

    def __init__(self) -> None:
        self.top, self.low = np.zeros(1 << 16, np.uint32), np.zeros(1 << 16, np.uint32)

    def take(self, numbers: Numbers, before: Numbers) -> None:
        _count_cells(numbers, 1, 16, 16, self.top)
        _count_cells(numbers, 1, 16, 0, self.low)

    def verdicts(self) -> list[Verdict]:
        bit = (np.arange(1 << 16)[:, None] >> np.arange(16)) & 1
        ones = np.concatenate([self.low @ bit, self.top @ bit])
        draws = self.top.sum()
        return [
            fit(self.top),
            fit(self.low),
            fit(self.top.reshape(256, 256).sum(axis=1)),
            fit(self.low.reshape(256, 256).sum(axis=0)),
            largest((ones - draws / 2) / math.sqrt(draws / 4)),
        ]


class Cells:
    """Equidistribution of successive numbers in the cells of a square or a cube, without overlap."""

    names = ("pairs, 256 x 256 cells", "pairs of low bytes", "triples, 32 x 32 x 32 cells")
    shapes = ((2, 8, 24), (2, 8, 0), (3, 5, 27))

    def __init__(self) -> None:
        self.counts = [np.zeros(1 << (size * bits), np.uint32) for size, bits, _ in self.shapes]

    def take(self, numbers: Numbers, before: Numbers) -> None:
        for shape, counts in zip(self.shapes, self.counts, strict=True):
            _count_cells(numbers, *shape, counts)

    def verdicts(self) -> list[Verdict]:
        return [fit(counts) for counts in self.counts]


@inlined
def _ones(word):
    """Count the ones of a 32-bit word."""
    word = word - ((word >> _U32(1)) & _U32(0x55555555))
    word = (word & _U32(0x33333333)) + ((word >> _U32(2)) & _U32(0x33333333))
    word = (word + (word >> _U32(4))) & _U32(0x0F0F0F0F)
    return _U32(word * _U32(0x01010101)) >> _U32(24)


@inlined
def _centred(number):
    """Return the top 16 bits as an odd integer with mean zero and variance (2^32 - 1) / 3."""
    return 2 * np.int64(number >> _U32(16)) - 65535


@compiled_loop
def _compare(first, second, lag):
    """Sum of products, and of bits that differ, of first[i] and second[i + lag]."""
    products, different = np.int64(0), np.int64(0)
    for i in range(np.uintp(first.size - lag)):
        x, y = first[i], second[i + np.uintp(lag)]
        products += _centred(x) * _centred(y)
        different += np.int64(_ones(x ^ y))
    return products, different


def deviates(products: float, different: float, n: int) -> tuple[float, float]:
    """Standard normal under independence, for n pairs."""
    return products * 3.0 / (2.0**32 - 1) / math.sqrt(n), (different - 16.0 * n) / math.sqrt(8.0 * n)


LAGS = (1, 2, 3, 4, 5, 6, 7, 8, LANES, BLOCK)


class Lags:
    """Correlation, of values and of bits, of numbers some way apart; the last is one sweep apart."""

    names = tuple(f"{kind}, lag {lag}" for kind in ("product", "XOR") for lag in (*LAGS, SIZE))

    def __init__(self) -> None:
        self.sums = [[0, 0] for _ in range(len(LAGS) + 1)]
        self.rounds = 0

    def take(self, numbers: Numbers, before: Numbers) -> None:
        self.rounds += 1
        compared = [_compare(numbers, numbers, lag) for lag in LAGS] + [_compare(before, numbers, 0)]
        for sums, (products, different) in zip(self.sums, compared, strict=True):
            sums[0] += products
            sums[1] += different

    def verdicts(self) -> list[Verdict]:
        pairs = [self.rounds * (SIZE - lag) for lag in (*LAGS, 0)]
        z = [deviates(*sums, n) for sums, n in zip(self.sums, pairs, strict=True)]
        return [normal(product) for product, _ in z] + [normal(different) for _, different in z]


@compiled_loop
def _count_runs(numbers, state, counts):
    last, length = state[0], state[1]
    for i in range(numbers.size):
        x = np.int64(numbers[i])
        up = np.int64(x >= last)  # without branches, which would be mispredicted half of the time
        counts[min(length, counts.size - 1)] += 1 - up
        length = (length + 1) * up
        last = x * up  # the number that ends a run is dropped, so that runs are independent
    state[0], state[1] = last, length


@compiled_loop
def _count_gaps(numbers, state, counts):
    gap = state[0]
    for i in range(numbers.size):
        hit = np.int64((numbers[i] >> _U32(28)) == 0)
        counts[min(gap, counts.size - 1)] += hit
        gap = (gap + 1) * (1 - hit)
    state[0] = gap


class Runs:
    """Lengths of runs upwards, and of the gaps between visits to [0, 1/16)."""

    names = ("runs up", "gaps of [0, 1/16)")

    def __init__(self) -> None:
        self.state = np.zeros((2, 2), np.int64)
        self.runs, self.gaps = np.zeros(13, np.int64), np.zeros(257, np.int64)

    def take(self, numbers: Numbers, before: Numbers) -> None:
        _count_runs(numbers, self.state[0], self.runs)
        _count_gaps(numbers, self.state[1], self.gaps)

    def verdicts(self) -> list[Verdict]:
        # a run has length r or more with probability 1 / r!, a gap with (15 / 16)^r
        run_tail = 1.0 / special.factorial(np.arange(1, self.runs.size + 1))
        gap_tail = (15.0 / 16.0) ** np.arange(self.gaps.size + 1)
        run_tail[-1] = gap_tail[-1] = 0.0
        return [fit(self.runs[1:], -np.diff(run_tail)), fit(self.gaps, -np.diff(gap_tail))]


@compiled_loop
def _count_hands(numbers, bits, shift, counts):
    size = 1 << bits
    for first in range(0, numbers.size, size):
        seen = _U32(0)
        for j in range(size):
            seen |= _U32(1) << ((numbers[first + j] >> _U32(shift)) & _U32(size - 1))
        counts[_ones(seen)] += 1


def hand_probabilities(size: int) -> NDArray[np.float64]:
    """Return the law of the number of different values among ``size`` uniform draws of ``size`` values."""
    law = np.zeros(size + 1)
    law[0] = 1.0
    values = np.arange(size + 1)
    for _ in range(size):
        law = law * values / size + np.append(0.0, (law * (size - values) / size)[:-1])
    return law


class Poker:
    """Different values in hands of 8 (three bits of each number) and of 32 (five bits), as in BigCrush."""

    names = ("poker 8, top bits", "poker 8, low bits", "poker 32, top bits", "poker 32, low bits")
    shapes = ((3, 29), (3, 0), (5, 27), (5, 0))

    def __init__(self) -> None:
        self.counts = [np.zeros((1 << bits) + 1, np.int64) for bits, _ in self.shapes]

    def take(self, numbers: Numbers, before: Numbers) -> None:
        for shape, counts in zip(self.shapes, self.counts, strict=True):
            _count_hands(numbers, *shape, counts)

    def verdicts(self) -> list[Verdict]:
        return [fit(counts, hand_probabilities(counts.size - 1)) for counts in self.counts]


class Spacings:
    """Birthday spacings (Marsaglia): equal distances among 2^18 birthdays in a year of 2^52 days.

    One birthday has 26 bits of each of two numbers. The number of equal distances is Poisson with mean
    n^3 / 4d = 1. Sorting is slow: a quarter of the numbers is used.
    """

    names = ("birthday spacings",)
    birthdays, days, share = 1 << 18, 1 << 52, 4

    def __init__(self) -> None:
        self.parts = 2 * self.birthdays // SIZE
        self.pool = np.zeros((self.parts, SIZE), np.uint32)
        self.seen = self.trials = self.equal = 0

    def take(self, numbers: Numbers, before: Numbers) -> None:
        place = self.seen % (self.parts * self.share)
        self.seen += 1
        if place < self.parts:
            self.pool[place] = numbers
        if place != self.parts - 1:
            return
        pairs = self.pool.reshape(-1, 2).astype(np.uint64) >> _U(6)
        distances = np.diff(np.sort((pairs[:, 0] << _U(26)) | pairs[:, 1]))
        self.equal += int((np.diff(np.sort(distances)) == 0).sum())
        self.trials += 1

    def verdicts(self) -> list[Verdict]:
        mean = self.trials * self.birthdays**3 / (4 * self.days)
        law = stats.poisson(mean)
        at_most, at_least = float(law.cdf(self.equal)), float(law.sf(self.equal - 1))
        return [(float(self.equal), min(1.0, 2.0 * min(at_most, at_least)))]


FAMILIES: dict[str, Any] = {
    "halves": Halves,
    "cells": Cells,
    "lags": Lags,
    "runs": Runs,
    "poker": Poker,
    "spacings": Spacings,
}


def try_source(name: str, draws: int, families: list[str]) -> list[Verdict]:
    """Put one source through the families of tests."""
    fill, tests = SOURCES[name](), [FAMILIES[family]() for family in families]
    before, numbers = np.zeros(SIZE, np.uint32), np.zeros(SIZE, np.uint32)
    fill(0, before)
    for index in range(1, 1 + math.ceil(draws / SIZE)):
        fill(index, numbers)
        for test in tests:
            test.take(numbers, before)
        numbers, before = before, numbers
    return [verdict for test in tests for verdict in test.verdicts()]


# --- neighbouring keys ------------------------------------------------------------------------------------


def key_pairs() -> dict[str, tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """64 pairs of keys each: one bit apart, one apart as 64-bit integers, and of successive chains."""
    keys = keys_of_chains(65)
    whole = keys[:64].copy().view(np.uint64).ravel()

    def halves(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
        return words.view(np.uint32).reshape(-1, 2)

    first = np.repeat(whole[:1], 64)
    return {
        "keys one bit apart": (halves(first), halves(first ^ (_U(1) << np.arange(64, dtype=np.uint64)))),
        "keys one apart": (halves(whole), halves(whole + _U(1))),
        "successive chains": (keys[:64], keys[1:]),
    }


@compiled_loop
def _count_different(first, second, counts):
    for i in range(first.size):
        counts[_ones(first[i] ^ second[i])] += 1


LOOKS = ("product, largest", "product, together", "XOR, largest", "XOR, together", "XOR, law of the ones")


def neighbour_names() -> list[str]:
    return [f"{kind}: {look}" for kind in key_pairs() for look in LOOKS]


def try_neighbours(draws: int) -> list[Verdict]:
    """Compare chains with neighbouring keys, number by number."""
    verdicts = []
    x, y = np.zeros(SIZE, np.uint32), np.zeros(SIZE, np.uint32)
    ones = stats.binom(32, 0.5).pmf(np.arange(33))
    for firsts, seconds in key_pairs().values():
        sweeps = math.ceil(draws / SIZE / len(firsts))
        counts, z = np.zeros(33, np.int64), []
        for first, second in zip(firsts, seconds, strict=True):
            sums = np.zeros(2)
            for sweep in range(sweeps):
                _fill_sweep(x, first[0], first[1], sweep)
                _fill_sweep(y, second[0], second[1], sweep)
                sums += _compare(x, y, 0)
                _count_different(x, y, counts)
            z.append(deviates(*sums, sweeps * SIZE))
        products, different = np.array(z).T
        verdicts += [largest(products), together(products), largest(different), together(different)]
        verdicts.append(fit(counts, ones))
    return verdicts


# --- avalanche --------------------------------------------------------------------------------------------


@compiled_loop
def _count_flips(inputs, masks, plain, changed, counts):
    """Change the inputs by the masks; count for each of 128 output bits how often it changes."""
    for i in range(np.uintp(inputs.shape[1])):
        a, b, c, d = philox(
            inputs[0, i] ^ masks[0],
            inputs[1, i] ^ masks[1],
            inputs[2, i] ^ masks[2],
            inputs[3, i] ^ masks[3],
            inputs[4, i] ^ masks[4],
            inputs[5, i] ^ masks[5],
        )
        changed[0, i] = a ^ plain[0, i]
        changed[1, i] = b ^ plain[1, i]
        changed[2, i] = c ^ plain[2, i]
        changed[3, i] = d ^ plain[3, i]
    for word in range(4):
        for bit in range(32):
            ones = _U32(0)
            for i in range(np.uintp(inputs.shape[1])):
                ones += (changed[word, i] >> _U32(bit)) & _U32(1)
            counts[32 * word + bit] += ones


def random_inputs(rng: np.random.Generator, n: int) -> NDArray[np.uint32]:
    return rng.integers(0, 1 << 32, (6, n), np.uint32)


def small_inputs(rng: np.random.Generator, n: int) -> NDArray[np.uint32]:
    """Draw positions and sweeps below 2^20, under the key of one chain: few of the bits are ever set.

    They are drawn, not counted through: a set closed under changing a bit would hold every pair twice.
    """
    inputs = np.zeros((6, n), np.uint32)
    inputs[[0, 2]] = rng.integers(0, 1 << 20, (2, n), np.uint32)
    inputs[4:] = keys_of_chains(1).T
    return inputs


INPUTS = {"random inputs": random_inputs, "small counters": small_inputs}
AVALANCHE_LOOKS = ("largest of 24576", "together")


def avalanche_names() -> list[str]:
    return [f"{kind}: {look}" for kind in INPUTS for look in AVALANCHE_LOOKS]


def try_avalanche(draws: int) -> list[Verdict]:
    """Change each of 192 input bits: each of 128 output bits must change half of the time."""
    verdicts, size = [], 1024
    plain, changed = np.zeros((4, size), np.uint32), np.zeros((4, size), np.uint32)
    nothing, masks = np.zeros((4, size), np.uint32), np.zeros((192, 6), np.uint32)
    masks[np.arange(192), np.arange(192) // 32] = _U32(1) << (np.arange(192, dtype=np.uint32) % _U32(32))
    unused = np.zeros(128, np.int64)
    for draw_inputs in INPUTS.values():
        rng, counts = np.random.default_rng(ENTROPY), np.zeros((192, 128), np.int64)
        batches = math.ceil(draws / (4 * 192 * size))
        for _ in range(batches):
            inputs = draw_inputs(rng, size)
            _count_flips(inputs, np.zeros(6, np.uint32), nothing, plain, unused)
            for mask, row in zip(masks, counts, strict=True):
                _count_flips(inputs, mask, plain, changed, row)
        n = batches * size
        z = ((counts - n / 2) / math.sqrt(n / 4)).ravel()
        verdicts += [largest(z), together(z)]
    return verdicts


# --- the command ------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Something to try, and the names of the tests it will report."""

    name: str
    tests: list[str]
    run: Callable[[int], list[Verdict]]


def plan(only: list[str], families: list[str]) -> list[Part]:
    """List the parts of the battery, before anything is drawn."""
    names = [name for family in families for name in FAMILIES[family].names]
    parts = [
        Part(source, names, lambda draws, source=source: try_source(source, draws, families)) for source in SOURCES
    ]
    parts.append(Part("neighbours", neighbour_names(), try_neighbours))
    parts.append(Part("avalanche", avalanche_names(), try_avalanche))
    return [part for part in parts if not only or part.name in only]


def write_forever(source: str) -> None:
    """Write the numbers of a source to standard output until the reader has enough."""
    fill, numbers = SOURCES[source](), np.zeros(SIZE, np.uint32)
    index = 0
    try:
        while True:
            fill(index, numbers)
            sys.stdout.buffer.write(numbers.astype("<u4", copy=False).data)
            index += 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def results(parts: list[Part], draws: int) -> Iterator[dict[str, Any]]:
    for part in parts:
        start = time.perf_counter()
        for test, (statistic, p) in zip(part.tests, part.run(draws), strict=True):
            yield {"part": part.name, "test": test, "statistic": statistic, "p": p}
        print(f"# {part.name}: {time.perf_counter() - start:.0f} s", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the battery and print its p-values; return 1 if a test failed."""
    parts = [*SOURCES, "neighbours", "avalanche"]
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.random_battery", description="Test the keyed generator."
    )
    parser.add_argument("--draws", type=float, default=1e9, help="numbers for each test (1e9)")
    parser.add_argument("--only", action="append", default=[], choices=parts, help="a part; may be repeated")
    parser.add_argument("--tests", action="append", choices=list(FAMILIES), help="a family of tests")
    parser.add_argument("--rounds", type=int, default=_random.ROUNDS, help="rounds of Philox")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    parser.add_argument("--write", choices=list(SOURCES), help="write numbers to standard output")
    options = parser.parse_args(arguments)
    if options.rounds != _random.ROUNDS:
        os.environ["GIBBSITE_CACHE_DIR"] = "off"  # code for another number of rounds must not be kept
        _random.ROUNDS = options.rounds
    if options.write:
        write_forever(options.write)
        return 0
    draws = int(options.draws)
    chosen = plan(options.only, options.tests or list(FAMILIES))
    total = sum(len(part.tests) for part in chosen)
    threshold = FALSE_ALARM / total
    print(f"# Philox4x32-{options.rounds}, {draws:.3g} draws; {total} tests, threshold {threshold:.2g}")
    found = []
    for result in results(chosen, draws):
        found.append(result)
        part, test, statistic, p = result.draws()
        print(f"{part:12}{test:42}{statistic:16.6g}{p:12.3g}{'  FAILED' * (p < threshold)}")
    failed = sum(result["p"] < threshold for result in found)
    print(f"# {failed} of {total} failed; smallest p {min(result['p'] for result in found):.2g}")
    if options.json is not None:
        record = {"rounds": options.rounds, "draws": draws, "threshold": threshold, "results": found}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
