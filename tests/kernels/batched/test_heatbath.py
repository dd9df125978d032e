"""Drawing many sites at once from their weights: the right share of random words for every state."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import BLOCK
from gibbsite.kernels.batched.heatbath import draw_states_at_once

UNIT = 2**31  # a random word has so many values that count


@compiled_loop
def _settle(
    weight: NDArray[np.float32],
    room: NDArray[np.float64],
    words: NDArray[np.uint32],
    x: NDArray[np.int16],
    sums: NDArray[np.float32],
    keep: bool,
) -> None:
    draw_states_at_once(weight, room[0], room[1], words, 0, x, 0, words.size, sums, keep)


def settle(weight: Any, words: Any, keep: bool = False) -> tuple[Any, Any]:
    """Return the states of up to BLOCK sites with the given weights (states, sites), and their sums."""
    count = len(words)
    x, sums = np.full(count, -1, np.int16), np.zeros(weight.size, np.float32)
    _settle(weight, np.zeros((2, BLOCK)), np.asarray(words, np.uint32), x, sums, keep)
    return x, sums.reshape(weight.shape)


def weights(states: int, spread: float) -> NDArray[np.float32]:
    """Return weights that differ by up to exp(spread), every fourth of them zero, in any order."""
    rng = np.random.default_rng(states)
    found = np.exp(rng.uniform(-spread, 0.0, (states, BLOCK)))
    found[rng.random(found.shape) < 0.25] = 0.0
    found[rng.integers(0, states, BLOCK), np.arange(BLOCK)] = 1.0
    scale: NDArray[np.float64] = np.exp(rng.uniform(-spread, spread, BLOCK))
    return (found * scale).astype(np.float32)


@pytest.mark.parametrize("states", [1, 2, 3, 4, 7, 40])
@pytest.mark.parametrize("spread", [0.5, 10.0, 32.0])
def test_impossible_states_are_never_drawn(states: int, spread: float) -> None:
    weight = weights(states, spread)
    rng = np.random.default_rng(1)
    edges = (0, 1, UNIT - 1, UNIT, 2 * UNIT - 2, 2 * UNIT - 1)
    for words in [*(np.full(BLOCK, e) for e in edges), *rng.integers(0, 2 * UNIT, (20, BLOCK))]:
        x, sums = settle(weight, words, keep=True)
        assert (x >= 0).all() and (x < states).all()
        assert (weight[x, np.arange(BLOCK)] > 0).all()
        # each is rounded to a 32-bit float
        assert np.abs(sums.astype(np.float64).sum(axis=0) - 1.0).max() <= states * 2.0**-25


@pytest.mark.parametrize("states", [2, 3, 7])
@pytest.mark.parametrize("spread", [0.5, 10.0, 32.0])
def test_every_state_gets_its_share_of_the_words(states: int, spread: float) -> None:
    """Up to state q end all words v with v W < w_0 + ... + w_q, give or take one."""
    weight = weights(states, spread)[:, :60]
    exact = [[Fraction(float(w)) for w in site] for site in weight.T]
    for q in range(states):
        ends = [sum(site[: q + 1]) / sum(site) * UNIT - Fraction(1, 2) for site in exact]
        for shift in (-2, -1, 1, 2):
            number = [int(end // 1) + (shift if shift < 0 else shift + 1) for end in ends]
            inside = np.array([0 <= v < UNIT for v in number])
            x, _ = settle(weight, [2 * v if ok else 0 for v, ok in zip(number, inside, strict=True)])
            assert ((x <= q) == (shift < 0))[inside].all()


def test_sums_are_the_probabilities() -> None:
    weight = weights(5, 10.0)
    _, sums = settle(weight, np.zeros(BLOCK), keep=True)
    exact = weight.astype(float) / weight.astype(float).sum(axis=0)
    assert (sums == exact.astype(np.float32)).all()
