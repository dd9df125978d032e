"""Scores of families: how well some parents explain a site, for scores of structures that are sums over sites.

BIC and AIC are the largest log-likelihood less a penalty for each free parameter; BDeu and K2 are logarithms of the
probability of the cases with tables integrated over a Dirichlet prior [1]_.

References
----------
.. [1] Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of knowledge
   and statistical data. Machine Learning 20, 197-243.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import is_number
from gibbsite._common.arrays import Floats, Ints, Ints16, Ints32, Words64
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.intrinsic import count_bits
from gibbsite._numba.jit import called, compiled_loop
from gibbsite.errors import ArgumentError
from gibbsite.graphs.rows import row_starts
from gibbsite.learn.networks.cases import Cases
from gibbsite.learn.networks.priors import read_size

SCORES = ("bic", "aic", "bdeu", "k2")
_PENALTY, _BDEU, _K2 = 0, 1, 2
_FEWEST = 1 << 12  # states of parents that need not be numbered anew
_MANY = 1 << 15  # cases above which equal ones are looked for
_JOINED = 16  # cases for each different one above which these are counted instead of bits
MOST_MASKS = 96  # joint states of a site and its parents up to which bits are counted


class Data(NamedTuple):
    """Complete cases: codes (sites, rows), numbers of states, and weights.

    If all weights are one, ``bit[first[i] + s]`` has a bit for each case in which site i has state s.
    """

    code: Ints16
    card: Ints
    weight: Floats
    bit: Words64
    first: Ints


class Scoring(NamedTuple):
    """A score: its kind, and the penalty of a parameter or the equivalent sample size."""

    kind: int
    value: float


class Scratch(NamedTuple):
    """Memory: states of parents of each row for sets that grow, counts, new and old numbers of states, and bits."""

    config: Ints32
    counts: Floats
    number: Ints32
    old: Ints32
    mask: Words64


def read_score(score: Any, cases: Cases) -> tuple[Scoring, str]:
    """Return a score, and what it is called.

    ``score`` is "bic", "aic", "k2", "bdeu" (equivalent sample size 1), "bdeu:10", or a number, which means BDeu.
    """
    if is_number(score):
        score = f"bdeu:{float(score)!r}"
    if not isinstance(score, str):
        raise ArgumentError(f"{argument('score')} must be a name or a number, got {score!r}.")
    name, colon, number = score.lower().partition(":")
    if name not in SCORES:
        raise ArgumentError(unknown("the score", score, SCORES, ', or "bdeu:10" for an equivalent sample size'))
    if colon and name != "bdeu":
        raise ArgumentError(f"the score {name!r} has no equivalent sample size, got {score!r}.")
    if name == "bic":
        return Scoring(_PENALTY, 0.5 * math.log(max(cases.total, 1.0))), "BIC"
    if name == "aic":
        return Scoring(_PENALTY, 1.0), "AIC"
    if name == "k2":
        return Scoring(_K2, 1.0), "K2"
    size = read_size(number) if colon else 1.0
    return Scoring(_BDEU, size), f"BDeu, equivalent sample size {size:g}"


def make_data(cases: Cases) -> Data:
    """Return cases as arrays of compiled code; equal cases are joined if there are many."""
    first, weighted = row_starts(cases.cards), bool((cases.weights != 1.0).any())
    joined = cases.joined() if weighted or cases.n_cases > _MANY else cases
    if weighted or joined.n_cases * _JOINED < cases.n_cases:
        return Data(joined.codes, joined.cards, joined.weights, np.zeros((0, 0), np.uint64), first)
    words = -(-cases.n_cases // 64)
    packed = np.zeros((int(first[-1]), words * 8), np.uint8)
    for i, code in enumerate(cases.codes):
        states = np.packbits(code == np.arange(cases.cards[i])[:, None], axis=1, bitorder="little")
        packed[first[i] : first[i + 1], : states.shape[1]] = states
    return Data(cases.codes, cases.cards, cases.weights, packed.view(np.uint64), first)


def make_scratch(data: Data, depth: int) -> Scratch:
    """Allocate memory for sets of at most ``depth`` parents."""
    rows, widest = data.weight.size, int(data.card.max(initial=1))
    most = max(_FEWEST, rows)
    return Scratch(
        np.zeros((depth + 2, rows), np.int32),
        np.zeros(most * widest),
        np.full(most * widest, -1, np.int32),
        np.zeros(rows, np.int32),
        np.zeros((MOST_MASKS, data.bit.shape[1]), np.uint64),
    )


@called
def extend(data: Data, scratch: Scratch, source: int, size: int, x: int, target: int) -> int:
    """Add a parent to those whose states are in row ``source``; return the number of states in row ``target``.

    If the states are too many for a table, those that occur are numbered anew.
    """
    rows, card = data.weight.size, data.card[x]
    before, after, code = scratch.config[source], scratch.config[target], data.code[x]
    for row in range(rows):
        after[row] = before[row] * card + code[row]
    size *= card
    if size <= max(_FEWEST, rows):
        return size
    found = 0
    for row in range(rows):
        old = after[row]
        if scratch.number[old] < 0:
            scratch.number[old] = found
            scratch.old[found] = old
            found += 1
        after[row] = scratch.number[old]
    for k in range(found):
        scratch.number[scratch.old[k]] = -1
    return found


@called
def score_family(
    data: Data, scoring: Scoring, scratch: Scratch, source: int, size: int, states: float, child: int
) -> float:
    """Return the score of a site given parents whose states are in a row of the scratch memory.

    ``size`` is the number of their states there, ``states`` the number of all their joint states.
    """
    card, config, code, count = data.card[child], scratch.config[source], data.code[child], scratch.counts
    for k in range(size * card):
        count[k] = 0.0
    for row in range(data.weight.size):
        count[config[row] * card + code[row]] += data.weight[row]
    return _sum_up(scoring, count, size, card, states)


@called
def score_with(
    data: Data, scoring: Scoring, scratch: Scratch, source: int, size: int, states: float, x: int, child: int
) -> float:
    """Return the score of a site given the parents in a row of the scratch memory and one more parent."""
    card, wide = data.card[child], data.card[x]
    if size * wide > max(_FEWEST, data.weight.size):
        last = scratch.config.shape[0] - 1
        return score_family(
            data, scoring, scratch, last, extend(data, scratch, source, size, x, last), states * wide, child
        )
    config, code, other, count = scratch.config[source], data.code[child], data.code[x], scratch.counts
    for k in range(size * wide * card):
        count[k] = 0.0
    for row in range(data.weight.size):
        count[(config[row] * wide + other[row]) * card + code[row]] += data.weight[row]
    return _sum_up(scoring, count, size * wide, card, states * wide)


@called
def mask_cases(data: Data, scratch: Scratch, site: int, size: int) -> int:
    """Split the masks of cases by the states of one more site; return their number.

    Start with one mask of all cases, ``size`` 0.
    """
    if size == 0:
        size = 1
        for w in range(data.bit.shape[1]):
            scratch.mask[0, w] = ~np.uint64(0)
    card = data.card[site]
    for j in range(size - 1, -1, -1):
        for s in range(card - 1, -1, -1):  # the first mask is overwritten last
            bit = data.bit[data.first[site] + s]
            source, target = scratch.mask[j], scratch.mask[j * card + s]
            for w in range(bit.size):
                target[w] = source[w] & bit[w]
    return int(size * card)


@called
def score_masks(data: Data, scoring: Scoring, scratch: Scratch, size: int, child: int) -> float:
    """Return the score of a site from masks of cases by its parents and, fastest, itself."""
    for j in range(size):
        total = 0
        for word in scratch.mask[j]:
            total += count_bits(word)
        scratch.counts[j] = total
    card = data.card[child]
    return _sum_up(scoring, scratch.counts, size // card, card, size // card)


@called
def score_masks_with(data: Data, scoring: Scoring, scratch: Scratch, size: int, x: int, child: int) -> float:
    """Return the same with one more parent."""
    card, wide, count = data.card[child], data.card[x], scratch.counts
    for j in range(size):
        mask, left = scratch.mask[j], 0
        place = j // card * wide * card + j % card
        for word in mask:
            left += count_bits(word)
        for s in range(wide):
            total = 0
            if s == wide - 1 or left == 0:
                total = left
            else:
                bit = data.bit[data.first[x] + s]
                for w in range(bit.size):
                    total += count_bits(mask[w] & bit[w])
                left -= total
            count[place + s * card] = total
    return _sum_up(scoring, count, size // card * wide, card, size // card * wide)


@called
def _log_gamma(x: float) -> float:
    """Return the logarithm of the gamma function of a positive number, by Stirling's series above 10.

    It is some times faster than that of the library of C.
    """
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    y = 1.0 / x
    z = y * y
    series = y * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0))))
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series - math.log(product)


@called
def _sum_up(scoring: Scoring, count: Floats, size: int, card: int, states: float) -> float:
    """Return the score of counts (states of parents, states of the site)."""
    found = 0.0
    if scoring.kind == _PENALTY:
        for j in range(size):
            total = 0.0
            for k in range(j * card, (j + 1) * card):
                n = count[k]
                if n > 0.0:
                    total += n
                    found += n * math.log(n)
            if total > 0.0:
                found -= total * math.log(total)
        return found - scoring.value * states * (card - 1)
    cell = scoring.value / (states * card) if scoring.kind == _BDEU else 1.0
    row = cell * card
    start, begin = _log_gamma(cell), _log_gamma(row)
    for j in range(size):
        total = 0.0
        for k in range(j * card, (j + 1) * card):
            n = count[k]
            if n > 0.0:
                total += n
                found += _log_gamma(cell + n) - start
        if total > 0.0:
            found -= _log_gamma(row + total) - begin
    return found


@compiled_loop
def score_sets(
    data: Data,
    scoring: Scoring,
    scratch: Scratch,
    child: int,
    candidate: Ints,
    needed: int,
    most: int,
    member: Ints,
    size: Ints,
    mask: Ints,
    score: Floats,
) -> int:
    """Score all sets of at most ``most`` candidates that contain the parents ``needed``; return their number.

    Sets are listed as bits in ``mask``, scores in ``score``; ``member`` and ``size`` are memory for all levels.
    """
    found, depth, bits, states = 0, 0, 0, 1.0
    scratch.config[0, :] = 0
    size[0] = 1
    if needed == 0:
        mask[0], score[0] = 0, score_family(data, scoring, scratch, 0, 1, 1.0, child)
        found = 1
    member[0] = 0  # the next candidate at each level
    while depth >= 0:
        at = member[depth]
        if at >= candidate.size or depth >= most:
            depth -= 1
            if depth >= 0:
                x = candidate[member[depth] - 1]
                bits ^= 1 << x
                states /= data.card[x]
            continue
        x = candidate[at]
        member[depth] = at + 1
        bits |= 1 << x
        if bits & needed == needed:
            mask[found] = bits
            score[found] = score_with(data, scoring, scratch, depth, size[depth], states, x, child)
            found += 1
        states *= data.card[x]
        if depth + 1 < most:
            size[depth + 1] = extend(data, scratch, depth, size[depth], x, depth + 1)
            member[depth + 1] = at + 1
            depth += 1
        else:
            bits ^= 1 << x
            states /= data.card[x]
    return found


def count_sets(candidates: int, most: int) -> int:
    """Return the number of sets of at most ``most`` candidates.

    Examples
    --------
    >>> count_sets(4, 2)
    11
    """
    return sum(math.comb(candidates, size) for size in range(min(most, candidates) + 1))
