"""The two random number generators of compiled code, and their streams.

Sequential: xoshiro256++ (Blackman and Vigna, 2021). Its state is a tuple of four 64-bit words that compiled loops keep
in registers, ``rng, u = uniform(rng)``. Streams for chains come from NumPy's ``SeedSequence.spawn``: chain ``c`` of a
run always gets the same stream, whatever runs in parallel.

Keyed: Philox4x32 (Salmon et al., 2011), a function of a key (the chain) and a counter (sweep and position). When many
sites are updated at once, each gets its own numbers, independent of order and thread, and a loop over counters compiles
to vector instructions. Tests of quality are in ``docs/random.md``.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Words32, Words64
from gibbsite._numba.jit import Integer, called, inlined

Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

_U = np.uint64
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


def stream(entropy: int, chain: int) -> Words64:
    """Return the initial words of the generator of a chain.

    Parameters
    ----------
    entropy : int
        The seed of the whole run.
    chain : int
        Number of the chain.

    Examples
    --------
    >>> stream(1, 0).shape
    (4,)
    >>> bool((stream(1, 0) == stream(1, 1)).any())
    False
    """
    sequence = np.random.SeedSequence(entropy, spawn_key=(chain,))
    words: Words64 = sequence.generate_state(4, np.uint64).astype(np.uint64)
    if not words.any():  # the one state xoshiro cannot leave
        words[0] = _U(0x9E3779B97F4A7C15)
    return words


@inlined
def load(words: Words64) -> Words:
    """Read the state of a generator from an array."""
    return words[0], words[1], words[2], words[3]


@inlined
def store(words: Words64, rng: Words) -> None:
    """Write the state of a generator to its array."""
    words[0], words[1], words[2], words[3] = rng


@inlined
def bits(rng: Words) -> tuple[Words, np.uint64]:
    """Advance the generator; return it and 64 random bits (xoshiro256++)."""
    a, b, c, d = rng
    s = a + d
    out = ((s << _U(23)) | (s >> _U(41))) + a
    t = b << _U(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = (d << _U(45)) | (d >> _U(19))
    return (a, b, c, d), out


@inlined
def uniform(rng: Words) -> tuple[Words, float]:
    """Advance the generator; return it and a number in [0, 1) with 53 random bits."""
    rng, word = bits(rng)
    return rng, np.int64(word >> _U(11)) * _TO_UNIT


@inlined
def below(rng: Words, n: Integer) -> tuple[Words, Integer]:
    """Advance the generator; return it and an integer in 0..n-1, for n < 2^32.

    The integer is the high part of a 32 x 32-bit product, with the rejection step of Lemire (2019), so that every value
    is exactly equally likely.
    """
    m = _U(n)
    mask = _U(0xFFFFFFFF)
    rng, word = bits(rng)
    product = (word >> _U(32)) * m
    if (product & mask) < m:  # rare, so that the division below is rare, too
        threshold = (_U(0x100000000) - m) % m
        while (product & mask) < threshold:
            rng, word = bits(rng)
            product = (word >> _U(32)) * m
    return rng, np.int64(product >> _U(32))


_U32 = np.uint32
_HIGH, _LOW = _U(32), _U(0xFFFFFFFF)
# Seven rounds are the fewest that pass every test of BigCrush (Salmon et al., table 2); docs/random.md has the
# alternatives that were tried, and what the authors say about seven and eight rounds.
ROUNDS = 7
_MULTIPLY_0, _MULTIPLY_1 = _U(0xD2511F53), _U(0xCD9E8D57)
_WEYL_0, _WEYL_1 = _U32(0x9E3779B9), _U32(0xBB67AE85)
# The largest number of words that are made at once, and the number of counters for them.
BLOCK = 512
LANES = BLOCK // 4
# Three disjoint branches of the counters: whole words, words that are split into bytes, single words.
WORDS, BYTES, SINGLE = (np.uint32(branch << 30) for branch in range(3))

Four = tuple[np.uint32, np.uint32, np.uint32, np.uint32]


def chain_key(words: Words64) -> Words32:
    """Return the key of the keyed generator of a chain, from the initial words of its stream.

    Examples
    --------
    >>> chain_key(stream(1, 0)).dtype, chain_key(stream(1, 0)).size
    (dtype('uint32'), 2)
    """
    return np.array([words[0] & _LOW, words[0] >> _HIGH]).astype(np.uint32)


@inlined
def philox(a: np.uint32, b: np.uint32, c: np.uint32, d: np.uint32, key_0: np.uint32, key_1: np.uint32) -> Four:
    """Return four random words for the counter (a, b, c, d) under a key."""
    for _ in range(ROUNDS):
        first, second = _U(a) * _MULTIPLY_0, _U(c) * _MULTIPLY_1
        a = _U32(second >> _HIGH) ^ b ^ key_0
        b = _U32(second & _LOW)
        c = _U32(first >> _HIGH) ^ d ^ key_1
        d = _U32(first & _LOW)
        key_0 = _U32(key_0 + _WEYL_0)
        key_1 = _U32(key_1 + _WEYL_1)
    return a, b, c, d


@called
def fill_keyed(
    out: Words32, key_0: np.uint32, key_1: np.uint32, sweep: Integer, first: Integer, lanes: Integer, branch: np.uint32
) -> None:
    """Write the words of the counters ``first``, ``first + 1``, ... of a sweep to ``out``.

    Word w of counter ``first + i`` is number ``w * lanes + i``, so that a loop over counters writes four contiguous
    runs without shuffling. The branch is in the top bits of the first half of a counter.
    """
    low, high = _U32(_U(sweep) & _LOW), _U32(_U(sweep) >> _HIGH)
    lanes = np.uintp(lanes)
    for i in range(lanes):
        at = _U(first) + _U(i)
        a, b, c, d = philox(_U32(at & _LOW), _U32(at >> _HIGH) | branch, low, high, key_0, key_1)
        out[i] = a
        out[i + lanes] = b
        out[i + np.uintp(2) * lanes] = c
        out[i + np.uintp(3) * lanes] = d


@called
def single_word(key_0: np.uint32, key_1: np.uint32, sweep: Integer, position: Integer) -> np.uint32:
    """Return a random word for a position in a sweep, from the branch of single words."""
    low, high = _U32(_U(sweep) & _LOW), _U32(_U(sweep) >> _HIGH)
    at = _U(position)
    return philox(_U32(at & _LOW), _U32(at >> _HIGH) | SINGLE, low, high, key_0, key_1)[0]
