"""Completely uniformly distributed sequences: whole periods of linear feedback shift registers.

Quasi-Monte Carlo points fill space more evenly than random ones, but a Markov chain needs numbers that are even *in
order*: all blocks of d successive numbers must fill the d-dimensional cube, for every d. The whole period of a small
random number generator does that. A register of m bits obeys the recurrence of a primitive polynomial,

    b[j + m] = XOR of b[j + e] over the exponents e < m of the polynomial,

and number i is made of the 32 bits from position i s on. N = 2^m - 1 is the period, and the stride s is
prime to it. Polynomials and strides were searched for even low-dimensional blocks [1]_ [2]_.

A chain that takes d numbers per sweep reads the sequence row by row into a matrix of d columns and passes through the
period d times. If d and N have no common divisor, the rows are all blocks of d numbers, each once. Otherwise, the next
larger d without a common divisor is used, and the last columns are dropped. A row of zeros, the only block that the
register never produces, completes the 2^m rows. Every column is XORed with a separate random word, its *digital shift*:
each number is then uniform, rows are as evenly distributed as before, and replicates show the error.

References
----------
.. [1] Chen, S., Matsumoto, M., Nishimura, T. and Owen, A. B. (2012). New inputs and methods for Markov chain
   quasi-Monte Carlo. Monte Carlo and Quasi-Monte Carlo Methods 2010, 313-327.
.. [2] Harase, S. (2021). A table of short-period Tausworthe generators for Markov chain quasi-Monte Carlo.
   Journal of Computational and Applied Mathematics 384.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gibbsite._common.arrays import Array, Floats, Ints, Words32
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import Integer, compiled, inlined
from gibbsite.errors import ArgumentError

__all__ = ["variates"]

_BITS = 32  # of a number
_TO_UNIT = 2.0**-32
_U = np.uintp
_BYTE = np.uint32(255)


class Register(NamedTuple):
    """A polynomial (bit j is the coefficient of x^j) and the number of bits from one output to the next."""

    polynomial: int
    stride: int


def _chen(m: int, exponents: tuple[int, ...], stride: int) -> Register:
    return Register(1 << m | 1 | sum(1 << e for e in exponents), stride)


# Chen et al.: exponents besides m and 0, and the stride; those of 3 to 9 bits are Gruenschloss's.
_CHEN = {
    3: ((1,), 1),
    4: ((1,), 2),
    5: ((2,), 15),
    6: ((1,), 8),
    7: ((1,), 4),
    8: ((4, 3, 2), 41),
    9: ((4,), 113),
    10: ((3,), 115),
    11: ((2,), 291),
    12: ((6, 4, 1), 172),
    13: ((4, 3, 1), 267),
    14: ((5, 3, 1), 332),
    15: ((1,), 388),
    16: ((5, 3, 2), 283),
    17: ((3,), 514),
    18: ((7,), 698),
    19: ((5, 2, 1), 706),
    20: ((3,), 1304),
    21: ((2,), 920),
    22: ((1,), 1336),
    23: ((5,), 1236),
    24: ((4, 3, 1), 1511),
    25: ((3,), 1445),
    26: ((6, 2, 1), 1906),
    27: ((5, 2, 1), 1875),
    28: ((3,), 2573),
    29: ((2,), 2633),
    30: ((6, 4, 1), 2423),
    31: ((3,), 3573),
    32: ((7, 6, 2), 3632),
}
# Harase: generators with small t-values.
_HARASE = {
    8: (0x11D, 97),
    9: (0x3E9, 145),
    10: (0x6C1, 70),
    11: (0xD93, 179),
    12: (0x1C9F, 146),
    13: (0x3D17, 139),
    14: (0x77B5, 5192),
    15: (0xEB9B, 1028),
    16: (0x193EB, 12749),
    17: (0x31A1D, 20984),
    18: (0x6C56B, 72349),
    19: (0x931ED, 92609),
    20: (0x14E757, 226826),
    21: (0x2753BF, 1127911),
    22: (0x6C5313, 629680),
    23: (0x8E6A67, 1796311),
    24: (0x17A358F, 7017398),
    25: (0x3DA6CD7, 2947446),
    26: (0x7C1DAD7, 19101221),
    27: (0xAEC5123, 4397933),
    28: (0x1E9958D1, 167713336),
    29: (0x359DAA05, 83189117),
    30: (0x483E51A1, 315800840),
    31: (0xDBDC21DD, 36109125),
    32: (0x16283FB51, 686019401),
}
#: The registers of both publications, by the name of the table and m.
TABLES: dict[str, dict[int, Register]] = {
    "harase": {m: Register(*entry) for m, entry in _HARASE.items()},
    "chen": {m: _chen(m, *entry) for m, entry in _CHEN.items()},
}


def find_register(m: int, table: str = "harase") -> Register:
    """Return a published register of m bits; raise an error if the table has none.

    Examples
    --------
    >>> find_register(10, "chen")
    Register(polynomial=1033, stride=115)
    """
    if table not in TABLES:
        raise ArgumentError(unknown("The table of registers", table, TABLES))
    entries = TABLES[table]
    if not isinstance(m, int | np.integer) or m not in entries:
        raise ArgumentError(
            f"There is no register of m = {m!r} bits in the table {table!r}; m goes from {min(entries)} to "
            f"{max(entries)}."
        )
    return entries[int(m)]


def power_of_x(exponent: int, polynomial: int) -> int:
    """Return x^exponent modulo a polynomial over GF(2), bit j being the coefficient of x^j.

    Bit ``exponent`` of a register is the parity of those of its first m bits at which the result has ones.
    """
    m = polynomial.bit_length() - 1
    power = 1
    for digit in bin(exponent)[2:]:
        square = 0
        for j in range(m):
            square |= (power >> j & 1) << 2 * j
        power = square << int(digit)
        for j in range(power.bit_length() - 1, m - 1, -1):
            if power >> j & 1:
                power ^= polynomial << j - m
    return power


class Source(NamedTuple):
    """A sequence, for compiled code."""

    # (4 * 256,): the contribution of each byte of a number to the next number; the first m of its 32 bits are the state
    # of the register, and the map from one state to the next is linear
    jump: Words32
    first: np.uint32  # the number that follows the row of zeros
    rows: int  # 2^m
    skip: int  # numbers dropped at the end of each row


class Reader(NamedTuple):
    """The position of a reader of a sequence."""

    shift: Words32  # (columns,): the digital shift of each column
    word: Words32  # (1,): the next number, before the shift
    place: Ints  # (2,): its column and row; rows are counted modulo 2^m, and row 0 is the row of zeros

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        return {"place": (0, np.array([self.shift.size - 1, (1 << 32) - 1]))}


def open_source(m: int, columns: int, table: str = "harase") -> Source:
    """Prepare a sequence of a register of m bits for rows of ``columns`` numbers, at most its period."""
    polynomial, stride = find_register(m, table)
    period = (1 << m) - 1
    if columns > period:
        raise ArgumentError(
            f"Rows of {columns:,} numbers are longer than the period {period:,} of a register of m = {m} "
            f"bits; take m = {int(columns).bit_length()} or more."
        )
    width = max(columns, 1)
    while math.gcd(width, period) != 1:
        width += 1
    return Source(_jump_table(polynomial, stride), _first_word(polynomial), period + 1, width - columns)


def _jump_table(polynomial: int, stride: int) -> Words32:
    """Return what each byte of a number contributes to the number that begins ``stride`` bits later."""
    m = polynomial.bit_length() - 1
    # Bit k of the next number, counted from the top, is the parity of the state under this mask.
    masks = [power_of_x(stride + k, polynomial) for k in range(_BITS)]
    unit = [0] * _BITS  # contribution of bit j of a number, counted from the top; only the first m contribute
    for j in range(m):
        unit[j] = sum((mask >> j & 1) << _BITS - 1 - k for k, mask in enumerate(masks))
    jump = np.zeros((4, 256), np.uint32)
    for j in range(_BITS):
        at, bit = divmod(_BITS - 1 - j, 8)
        jump[at, (np.arange(256) >> bit & 1) == 1] ^= np.uint32(unit[j])
    return jump.ravel()


def _first_word(polynomial: int) -> np.uint32:
    """Return the number that begins with the state 1, 0, 0, ..."""
    return np.uint32(sum((power_of_x(k, polynomial) & 1) << _BITS - 1 - k for k in range(_BITS)))


def start_reading(shift: ArrayLike) -> Reader:
    """Return a reader at the first row, the row of zeros."""
    words = np.array(shift, np.uint32)
    return Reader(words, np.zeros(1, np.uint32), np.zeros(2, np.int64))


@inlined
def next_word(jump: Words32, word: np.uint32) -> np.uint32:
    """Return the number that follows ``word``; zero follows zero."""
    return np.uint32(
        jump[_U(word & _BYTE)]
        ^ jump[_U(256) + _U(word >> np.uint32(8) & _BYTE)]
        ^ jump[_U(512) + _U(word >> np.uint32(16) & _BYTE)]
        ^ jump[_U(768) + _U(word >> np.uint32(24))]
    )


@inlined
def read_uniform(source: Source, reader: Reader) -> float:
    """Return the next number of the matrix, row by row, in (0, 1); the last row is followed by the first."""
    column, word = _U(reader.place[0]), reader.word[0]
    # half a unit is added, so that the result is never 0
    u: float = (np.float64(word ^ reader.shift[column]) + 0.5) * _TO_UNIT
    word = next_word(source.jump, word)
    column += _U(1)
    if column == _U(reader.shift.size):
        column = _U(0)
        row = reader.place[1] + 1
        for _ in range(source.skip):
            word = next_word(source.jump, word)
        if row == 1:
            word = source.first
        elif row == source.rows:  # the register is back at its first state; the zeros come before it
            row = 0
            word = np.uint32(0)
        reader.place[1] = row
    reader.place[0], reader.word[0] = column, word
    return u


@compiled
def _read_all(source: Source, reader: Reader, out: Floats) -> None:
    for k in range(out.size):
        out[k] = read_uniform(source, reader)


def variates(m: int, columns: Integer, shift: ArrayLike | None = None, table: str = "harase") -> Floats:
    """Return the numbers that drive a chain through 2^m sweeps, a row for each.

    Parameters
    ----------
    m : int
        Number of bits of the register: 8 to 32, or 3 to 32 with the table "chen".
    columns : int
        Number of uniform numbers per sweep.
    shift : array of 32-bit words (columns,), optional
        Digital shift of each column; none by default. Replicates with random shifts show the error.
    table : {"harase", "chen"}
        The publication from which the register is taken.

    Returns
    -------
    numpy.ndarray, shape (2^m, columns)
        Numbers in (0, 1).

    Raises
    ------
    ModelError
        If there is no such register, or a row is longer than its period.

    Examples
    --------
    A chain that draws x1 given x2 and x2 given x1, both standard normal with correlation 0.5:

    >>> from scipy.special import ndtri
    >>> shift = np.random.default_rng(1).integers(2**32, size=2, dtype=np.uint32)
    >>> noise = np.sqrt(0.75) * ndtri(variates(10, 2, shift))
    >>> x2, total = 0.0, 0.0
    >>> for first, second in noise.tolist():
    ...     x1 = 0.5 * x2 + first
    ...     x2 = 0.5 * x1 + second
    ...     total += x1 / len(noise)
    >>> abs(total) < 0.01  # independent random numbers give 0.04
    True
    """
    source = open_source(m, _count(columns), table)
    words: Any = np.zeros(columns, np.uint32) if shift is None else np.asarray(shift)
    if words.shape != (columns,) or words.dtype.kind not in "iu" or (words < 0).any() or (words >> 32).any():
        raise ArgumentError(
            f"{argument('shift')} must have a 32-bit word for each of {columns} columns, got {shift!r}."
        )
    out = np.empty((source.rows, columns))
    _read_all(source, start_reading(words), out.reshape(-1))
    return out


def _count(columns: Any) -> int:
    if not isinstance(columns, int | np.integer) or isinstance(columns, bool) or columns < 1:
        raise ArgumentError(f"{argument('columns')} must be a whole number of at least 1, got {columns!r}.")
    return int(columns)
