"""One site of 32 chains at once: vector instructions and going through the chains do the same."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite._numba.intrinsic import WIDTH
from gibbsite._numba.jit import compiled
from gibbsite.kernels.batched.replicated import Near, add_lanes, draw_lanes


@compiled
def settle(x, here, near, upper, table, words, at, shift, place, k):
    return draw_lanes(x, here, near, upper, table, words, at, shift, place, k)


@compiled
def add(sums, here, threshold, table, place, k):
    add_lanes(sums, here, threshold, table, place, k)


@pytest.mark.parametrize("degree", range(5))
@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_settling_agrees_with_going_through_the_chains(degree, shift) -> None:
    rng = np.random.default_rng(10 * degree + shift)
    for _ in range(20):
        x = rng.integers(0, 2, 8 * WIDTH).astype(np.int8)
        upper = rng.integers(0, 256, 40).astype(np.uint8)
        words = rng.integers(0, 2**32, 3 * WIDTH, np.uint32)
        words[:9] = 0xFFFFFFFF
        upper[7] = 0
        near = Near(*(np.uintp(v) for v in (0, 3 * WIDTH, WIDTH + 1, 5, (1 << degree) - 1)))
        found = []
        for run in (settle, settle.plain):
            own, place = x.copy(), np.full(2 * WIDTH, 99, np.uint8)
            with np.errstate(over="ignore"):
                ties = run(own, 6 * WIDTH, near, upper, 7, words, 4, shift, place, WIDTH)
            found.append((int(ties), own.tobytes(), place.tobytes()))
        assert found[0] == found[1]
        # and with the definition
        code = x[:WIDTH] + 2 * x[3 * WIDTH : 4 * WIDTH] + 4 * x[WIDTH + 1 : 2 * WIDTH + 1] + 8 * x[5 : 5 + WIDTH]
        limit = upper[7 + (code & ((1 << degree) - 1))]
        byte = (words[4 : 4 + WIDTH] >> shift) & 255
        x[6 * WIDTH : 7 * WIDTH] = byte < limit
        assert found[0][0] == sum(1 << r for r in np.flatnonzero(byte == limit).tolist())
        assert found[0][1] == x.tobytes()


def test_sums_agree_with_going_through_the_chains() -> None:
    rng = np.random.default_rng(5)
    threshold = rng.integers(0, 2**32, 30, np.uint32)
    threshold[8:12] = 0, 1, 2**31, 2**32 - 1
    place = rng.integers(0, 16, 2 * WIDTH).astype(np.uint8)
    sums = rng.random(4 * WIDTH).astype(np.float32)
    expected = sums.copy()
    expected[5 : 5 + WIDTH] += threshold[7 + place[3 : 3 + WIDTH]].astype(np.float32) / np.float32(2**32)
    for run in (add, add.plain):
        own = sums.copy()
        run(own, 5, threshold, 7, place, 3)
        assert (own == expected).all()
