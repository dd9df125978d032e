"""Completely uniformly distributed sequences: bit by bit, exactly even, and worth while."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

import gibbsite as gs
from gibbsite.kernels.gibbs.lfsr import TABLES, next_word, open_source, power_of_x, variates
from tests.proofs import naive

ENTRIES = [(table, m) for table, entries in TABLES.items() for m in entries]


def words_of(u: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(u * 2.0**32).astype(np.int64)


def prime_factors(n: int) -> set[int]:
    found, q = set(), 2
    while q * q <= n:
        while n % q == 0:
            found.add(q)
            n //= q
        q += 1
    return found | ({n} if n > 1 else set())


# ---- the registers


def test_both_tables_are_complete() -> None:
    assert set(TABLES["harase"]) == set(range(8, 33))
    assert set(TABLES["chen"]) == set(range(3, 33))


@pytest.mark.parametrize(("table", "m"), ENTRIES)
def test_polynomials_are_primitive_and_strides_prime_to_the_period(table: str, m: int) -> None:
    polynomial, stride = TABLES[table][m]
    period = 2**m - 1
    assert polynomial.bit_length() == m + 1
    assert power_of_x(period, polynomial) == 1
    assert all(power_of_x(period // q, polynomial) != 1 for q in prime_factors(period))
    assert math.gcd(stride, period) == 1


@pytest.mark.parametrize(("table", "m"), [entry for entry in ENTRIES if entry[1] <= 12])
def test_numbers_are_those_of_the_recurrence(table: str, m: int) -> None:
    register = TABLES[table][m]
    numbers = words_of(variates(m, 1, table=table)[:, 0]).tolist()
    assert numbers == [0, *naive.register_numbers(*register)]
    assert len(set(numbers)) == 2**m  # the whole period, and zero


def companion_power(polynomial: int, exponent: int) -> NDArray[np.int64]:
    """The map from a state b[j], ..., b[j + m - 1] to the one ``exponent`` bits later, as a matrix."""
    m = polynomial.bit_length() - 1
    one = np.eye(m, k=1, dtype=np.int64)
    one[-1] = [polynomial >> e & 1 for e in range(m)]
    power = np.eye(m, dtype=np.int64)
    for digit in bin(exponent)[2:]:
        power = power @ power % 2
        if digit == "1":
            power = power @ one % 2
    return power


@pytest.mark.parametrize(("table", "m"), [entry for entry in ENTRIES if entry[1] >= 13])
def test_long_jumps_are_powers_of_the_companion_matrix(table: str, m: int) -> None:
    polynomial, stride = TABLES[table][m]
    one, jump = companion_power(polynomial, 1), companion_power(polynomial, stride)
    source = open_source(m, 1, table)
    word, state = source.first, np.eye(m, dtype=np.int64)[0]
    for _ in range(50):
        later, bits = state, []
        for _ in range(32):
            bits.append(str(later[0]))
            later = one @ later % 2
        assert int(word) == int("".join(bits), 2)
        word, state = next_word(source.jump, word), jump @ state % 2


# ---- equidistribution


def overlapping(m: int, d: int, table: str) -> NDArray[np.int64]:
    """All blocks of d successive numbers of the period, and the block of zeros."""
    numbers = words_of(variates(m, 1, table=table)[1:, 0])
    blocks = np.stack([np.roll(numbers, -k) for k in range(d)], axis=1)
    return np.concatenate([np.zeros((1, d), np.int64), blocks])


def count_boxes(points: NDArray[np.int64], bits: tuple[int, ...]) -> NDArray[np.intp]:
    """How many points are in each box of 2^-bits[k] along axis k."""
    box = np.zeros(len(points), np.int64)
    for k, number in enumerate(bits):
        box = box << number | points[:, k] >> 32 - number
    return np.bincount(box, minlength=2 ** sum(bits))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("m", [10, 12])
def test_blocks_are_exactly_even(m: int, d: int) -> None:
    """The zero box is one short without the block of zeros, no other one."""
    points = overlapping(m, d, "chen")
    counts = count_boxes(points[1:], (m // d,) * d)
    expected = np.full(counts.size, 2 ** (m - m // d * d))
    expected[0] -= 1
    assert np.array_equal(counts, expected)


@pytest.mark.parametrize("m", [8, 9, 10, 11, 12, 13, 14])
def test_pairs_of_the_better_table_are_a_net_with_t_zero(m: int) -> None:
    points = overlapping(m, 2, "harase")
    for a in range(m + 1):
        assert (count_boxes(points, (a, m - a)) == 1).all()


@pytest.mark.parametrize("table", TABLES)
def test_digital_shifts_keep_boxes_even(table: str) -> None:
    shift = np.random.default_rng(1).integers(2**32, size=2, dtype=np.uint32)
    counts = count_boxes(words_of(variates(10, 2, shift, table)), (5, 5))
    assert (counts == 1).all()


# ---- the matrix


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("m", [8, 10])
def test_rows_are_those_of_the_reference(m: int, table: str) -> None:
    rng = np.random.default_rng(m)
    for d in (*range(1, 14), 33, 85, 255):
        shift = rng.integers(2**32, size=d, dtype=np.uint32)
        assert variates(m, d, shift, table).tolist() == naive.driving_rows(*TABLES[table][m], shift)


def test_rows_of_lengths_prime_to_the_period_are_all_blocks() -> None:
    for m, d in [(8, 2), (8, 4), (8, 7), (10, 5), (10, 254)]:
        assert math.gcd(d, 2**m - 1) == 1
        rows, blocks = words_of(variates(m, d)), overlapping(m, d, "harase")
        assert sorted(rows.tolist()) == sorted(blocks.tolist())


def test_rows_of_other_lengths_are_blocks_without_their_end() -> None:
    for m, d, wider in [(8, 3, 4), (8, 5, 7), (8, 15, 16), (8, 255, 256), (10, 3, 4), (12, 5, 8)]:
        assert math.gcd(d, 2**m - 1) > 1
        assert all(math.gcd(k, 2**m - 1) > 1 for k in range(d, wider))
        rows = words_of(variates(m, d))
        assert len(set(map(tuple, rows.tolist()))) == 2**m  # no row twice
        assert all(len(set(column)) == 2**m for column in rows.T.tolist())
        if wider < 2**m:
            assert np.array_equal(rows, words_of(variates(m, wider))[:, :d])


def test_the_first_row_is_zero_and_no_number_is() -> None:
    u = variates(9, 3)
    assert (u[0] == 2.0**-33).all()
    assert u.min() == 2.0**-33
    assert u.max() < 1.0
    shifted = variates(9, 3, [0, 1, 2**32 - 1])
    assert shifted[0].tolist() == [2.0**-33, 3 * 2.0**-33, 1.0 - 2.0**-33]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"m": 7}, ["m = 7", "'harase'", "8 to 32"]),
        ({"m": 2, "table": "chen"}, ["m = 2", "'chen'", "3 to 32"]),
        ({"m": 33}, ["m = 33", "8 to 32"]),
        ({"m": 10.0}, ["m = 10.0"]),
        ({"m": "ten"}, ["m = 'ten'"]),
        ({"table": "sobol"}, ["'sobol'", "harase, chen"]),
        ({"columns": 0}, ["columns", "got 0"]),
        ({"columns": 2.0}, ["columns", "2.0"]),
        ({"columns": 256}, ["256 numbers", "period 255", "m = 9"]),
        ({"shift": [1, 2, 3]}, ["shift", "2 columns"]),
        ({"shift": [0.5, 0.5]}, ["shift", "0.5"]),
        ({"shift": [2**32, 0]}, ["shift", "32-bit"]),
        ({"shift": [-1, 0]}, ["shift", "32-bit"]),
    ],
)
def test_bad_arguments_are_named(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(gs.errors.ModelError) as error:
        variates(**{"m": 8, "columns": 2, **given})
    for word in words:
        assert word in str(error.value)


# ---- what it gains

REPLICATES = 60


def means_of_chains(u: NDArray[np.float64], rho: float) -> NDArray[np.float64]:
    """E[x1] in chains that draw x1 given x2 and x2 given x1, standard normal with correlation rho.

    ``u`` has the shape (chains, sweeps, 2).
    """
    noise = ndtri(u) * math.sqrt(1.0 - rho**2)
    x2, total = np.zeros(len(u)), np.zeros(len(u))
    for t in range(u.shape[1]):
        x1 = rho * x2 + noise[:, t, 0]
        x2 = rho * x1 + noise[:, t, 1]
        total += x1
    return total / u.shape[1]


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("table", TABLES)
def test_normal_chains_are_five_times_as_accurate(table: str, rho: float) -> None:
    """Root mean square errors over 60 shifts, against 60 runs with independent random numbers.

    Their ratio is 37 or more in truth (measured apart from this). Two mean squares of 60 numbers each scatter
    as F(60, 60) does: a false alarm needs an F below (5 / 37)^2 = 0.018, of probability 1e-34.
    """
    m = 12
    rng = np.random.default_rng(20120)
    shifts = rng.integers(2**32, size=(REPLICATES, 2), dtype=np.uint32)
    even = means_of_chains(np.stack([variates(m, 2, shift, table) for shift in shifts]), rho)
    random = means_of_chains(rng.random((REPLICATES, 2**m, 2)), rho)
    gain = math.sqrt(np.mean(random**2) / np.mean(even**2))
    assert gain >= 5.0


def test_there_is_no_gain_before_the_period_is_complete() -> None:
    """Errors of half a period are about those of random numbers.

    The mean of n sweeps with independent random numbers has the variance (1 + rho^2) / (1 - rho^2) / n. That
    of half a period has 0.775^2 of it, that of a whole one 0.024^2 (measured with 1000 shifts). Mean squares
    of 60 numbers scatter as chi^2 / 60 does: too small by a factor of four with probability 5e-10, too large
    by one of seventeen with less.
    """
    m, rho = 12, 0.9
    rng = np.random.default_rng(20121)
    shifts = rng.integers(2**32, size=(REPLICATES, 2), dtype=np.uint32)
    u = np.stack([variates(m, 2, shift) for shift in shifts])
    ratio = {}
    for rows in (2**m // 2, 2**m):
        found = np.mean(means_of_chains(u[:, :rows], rho) ** 2)
        ratio[rows] = math.sqrt(found * rows * (1.0 - rho**2) / (1.0 + rho**2))
    assert ratio[2**m // 2] > 0.3875
    assert ratio[2**m] < 0.1
