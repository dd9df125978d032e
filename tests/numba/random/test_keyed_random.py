"""The keyed generator: the published function, the documented layout, and no counter used twice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import (
    BLOCK,
    BYTES,
    LANES,
    ROUNDS,
    SINGLE,
    WORDS,
    chain_key,
    fill_keyed,
    philox,
    single_word,
    stream,
)
from gibbsite.kernels.batched.colored import UNIT, counters
from tests.campaigns.random_battery import fit, hand_probabilities, largest

MASK = 0xFFFFFFFF
MULTIPLY = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)


def round_keys(key):
    return [tuple((k + r * w) & MASK for k, w in zip(key, WEYL, strict=True)) for r in range(ROUNDS)]


def naive(counter, key):
    """Philox4x32 with Python integers, from the paper."""
    a, b, c, d = counter
    for key_0, key_1 in round_keys(key):
        first, second = a * MULTIPLY[0], c * MULTIPLY[1]
        a, b, c, d = (second >> 32) ^ b ^ key_0, second & MASK, (first >> 32) ^ d ^ key_1, first & MASK
    return a, b, c, d


def undone(words, key):
    """Return the counter whose words these are: each round is a bijection."""
    a, b, c, d = words
    inverse = [pow(m, -1, 2**32) for m in MULTIPLY]
    for key_0, key_1 in reversed(round_keys(key)):
        was_a, was_c = (d * inverse[0]) & MASK, (b * inverse[1]) & MASK
        first, second = was_a * MULTIPLY[0], was_c * MULTIPLY[1]
        a, b, c, d = was_a, a ^ (second >> 32) ^ key_0, was_c, c ^ (first >> 32) ^ key_1
    return a, b, c, d


@compiled
def draw(inputs, out):
    for i in range(inputs.shape[0]):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = philox(
            inputs[i, 0], inputs[i, 1], inputs[i, 2], inputs[i, 3], inputs[i, 4], inputs[i, 5]
        )


@compiled
def fill(out, key_0, key_1, sweep, first, lanes, branch):
    fill_keyed(out, key_0, key_1, sweep, first, lanes, branch)


@compiled
def fill_singles(out, key_0, key_1, sweep, first):
    for p in range(out.size):
        out[p] = single_word(key_0, key_1, sweep, first + p)


def drawn(inputs, run=draw):
    inputs = np.array(inputs, np.uint32)
    out = np.zeros((len(inputs), 4), np.uint32)
    with np.errstate(over="ignore"):  # words wrap around by design
        run(inputs, out)
    return out


def filled(key, sweep, first, lanes=LANES, run=fill, branch=WORDS):
    out = np.zeros(4 * lanes, np.uint32)
    with np.errstate(over="ignore"):
        run(out, key[0], key[1], sweep, first, lanes, branch)
    return out


# Random123, tests/kat_vectors: philox4x32 7
KNOWN = [
    ([0] * 6, "5f6fb709 0d893f64 4f121f81 4f730a48"),
    ([MASK] * 6, "5207ddc2 45165e59 4d8ee751 8c52f662"),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0], "4dfccaba 190a87f0 c47362ba b6b5242a"),
]
PLACES = [(0, 0), (0, 1), (1, 0), (17, 12345), (2**32 - 1, 2**25 - 1), (2**32, 2**25), (2**40 + 3, 2**33 + 5)]


@pytest.mark.parametrize("run", [draw, draw.plain], ids=["compiled", "plain"])
def test_known_answers(run) -> None:
    assert ROUNDS == 7
    for inputs, answer in KNOWN:
        assert " ".join(f"{word:08x}" for word in drawn([inputs], run)[0]) == answer


def test_compiled_plain_and_naive_agree_and_can_be_undone() -> None:
    inputs = np.random.default_rng(1).integers(0, 2**32, (200, 6), np.uint32)
    out = drawn(inputs)
    assert (out == drawn(inputs, draw.plain)).all()
    for row, words in zip(inputs.tolist(), out.tolist(), strict=True):
        assert naive(row[:4], row[4:]) == tuple(words)
        assert undone(words, row[4:]) == tuple(row[:4])


@pytest.mark.parametrize("branch", [WORDS, BYTES])
@pytest.mark.parametrize("lanes", [1, 7, LANES])
@pytest.mark.parametrize(("sweep", "first"), PLACES)
def test_numbers_stand_where_documented(sweep, first, lanes, branch) -> None:
    key = chain_key(stream(1, 0))
    out = filled(key, sweep, first, lanes, branch=branch)
    assert (out == filled(key, sweep, first, lanes, fill.plain, branch)).all()
    for lane in range(0, lanes, 9):
        at = first + lane
        words = naive((at & MASK, (at >> 32) | int(branch), sweep & MASK, sweep >> 32), key.tolist())
        assert tuple(out[lane::lanes].tolist()) == words


@pytest.mark.parametrize(("sweep", "position"), PLACES)
def test_single_words_are_first_words_of_their_own_branch(sweep, position) -> None:
    key, out = chain_key(stream(1, 0)), np.zeros(3, np.uint32)
    fill_singles(out, key[0], key[1], sweep, position)
    with np.errstate(over="ignore"):
        assert out[0] == single_word(key[0], key[1], sweep, position)
    for at, word in enumerate(out.tolist(), position):
        counter = (at & MASK, (at >> 32) | int(SINGLE), sweep & MASK, sweep >> 32)
        assert word == naive(counter, key.tolist())[0]


def pieces(start, end, most, each):
    """Cut a part of a color as the kernels do: first position, counters, positions of each piece."""
    for base in range(start, end, most):
        yield base, int(counters(np.uintp(base), np.uintp(end), most, each)), min(most, end - base)


@pytest.mark.parametrize(("most", "each"), [(BLOCK, 4), (UNIT, 16)])
def test_no_two_positions_of_a_sweep_share_a_number(most, each) -> None:
    # parts of colors one behind the other, some of them shorter than what one counter holds
    sizes = [1, 2, 3, 15, 16, 17, 1, 511, 512, 513, 2047, 2048, 2049, 5000, 4]
    ends = np.cumsum(sizes).tolist()
    used = set()
    for start, end in zip([0, *ends], ends, strict=False):
        for base, lanes, count in pieces(start, end, most, each):
            assert lanes * each >= count
            assert 4 * lanes <= BLOCK
            found = {
                (base + (k // (each // 4)) % lanes, k // (each // 4) // lanes, k % (each // 4)) for k in range(count)
            }
            assert len(found) == count
            assert not found & used
            used |= found
    assert len(used) == sum(sizes)


def test_counters_sweeps_and_branches_do_not_run_into_each_other() -> None:
    # the counters are read back from the numbers: equal ones would give equal numbers
    key = chain_key(stream(3, 1))
    sweeps, firsts, branches = (0, 1, MASK, MASK + 1), (0, LANES, 2**32 - LANES, 2**32, 2**40), (WORDS, BYTES)
    seen = set()
    for sweep, first, branch in product(sweeps, firsts, branches):
        out = filled(key, sweep, first, branch=branch)
        found = [undone(out[lane::LANES].tolist(), key.tolist()) for lane in range(LANES)]
        expected = range(first, first + LANES)
        assert [a + (b << 32) for a, b, _, _ in found] == [at + (int(branch) << 32) for at in expected]
        assert {c + (d << 32) for _, _, c, d in found} == {sweep}
        seen.update(found)
    assert len(seen) == len(sweeps) * len(firsts) * len(branches) * LANES
    # branches differ in two bits that no position below 2^62 reaches
    assert len({int(branch) >> 30 for branch in (WORDS, BYTES, SINGLE)}) == 3


def test_chains_have_keys_of_their_own() -> None:
    # among 6000 random keys of 64 bits two are equal with probability 1e-12
    keys = {tuple(chain_key(stream(seed, c)).tolist()) for seed in range(3) for c in range(2000)}
    assert len(keys) == 6000
    words = stream(9, 4)
    low, high = chain_key(words).tolist()
    assert low + (high << 32) == int(words[0])


def test_laws_of_the_battery() -> None:
    hands = [len(set(hand)) for hand in product(range(4), repeat=4)]
    assert hand_probabilities(4) == pytest.approx(np.bincount(hands) / len(hands))
    counts = np.array([90, 120, 110, 80])
    bad = stats.chisquare(counts).pvalue
    assert fit(counts)[1] == pytest.approx(2 * min(bad, 1 - bad))
    # rare cells are judged as one, together with the smallest of the others if need be
    statistic, _ = fit(np.array([60, 35, 3, 2]), np.array([0.5, 0.44, 0.03, 0.03]))
    assert statistic == pytest.approx((60 - 50) ** 2 / 50 + (35 + 3 + 2 - 50) ** 2 / 50)
    assert largest(np.array([0.1, -3.0, 1.0]))[1] == pytest.approx(1 - (1 - 2 * stats.norm.sf(3.0)) ** 3)
