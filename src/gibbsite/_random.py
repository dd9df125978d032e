"""Random numbers: seeds to streams, and the generator compiled code uses.

xoshiro256++ (Blackman and Vigna, 2021): its state is a tuple of four 64-bit words that compiled loops keep in
registers, ``rng, u = uniform(rng)``. Streams for chains come from NumPy's ``SeedSequence.spawn``: chain
``c`` of a run always gets the same stream, whatever else runs beside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, inlined

Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

_U = np.uint64
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


def stream(entropy: int, chain: int) -> NDArray[np.uint64]:
    """Return the start words of the generator of one chain.

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
    words: NDArray[np.uint64] = sequence.generate_state(4, np.uint64).astype(np.uint64)
    if not words.any():  # the one state xoshiro cannot leave
        words[0] = _U(0x9E3779B97F4A7C15)
    return words


@inlined
def load(words: NDArray[np.uint64]) -> Words:
    """Take the generator state out of an array."""
    return words[0], words[1], words[2], words[3]


@inlined
def store(words: NDArray[np.uint64], rng: Words) -> None:
    """Put the generator state back into its array."""
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
    """Advance the generator; return it and an integer in 0..n-1, n < 2^32.

    The high part of a 32 x 32-bit product (Lemire, 2019), with his rejection step, so that every
    value is exactly equally likely.
    """
    m = _U(n)
    mask = _U(0xFFFFFFFF)
    rng, word = bits(rng)
    product = (word >> _U(32)) * m
    if (product & mask) < m:  # rare: only then is the remainder worth a division
        threshold = (_U(0x100000000) - m) % m
        while (product & mask) < threshold:
            rng, word = bits(rng)
            product = (word >> _U(32)) * m
    return rng, np.int64(product >> _U(32))
