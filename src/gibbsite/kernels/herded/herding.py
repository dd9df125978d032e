"""Herding: deterministic choices whose counts follow given probabilities with a bounded error, and the step of a site.

A weight is the sum of a value's probabilities so far minus the number of times that it was chosen.
Each rule adds the new probabilities, chooses a value, and subtracts one from its weight. So after T choices with
probability p, the count of a value is T p plus a bounded error:

* ``threshold``, for two values: below 1 for every T;
* ``argmax``, for any number of values, takes the largest weight: about 1.5 in practice, but no sharp bound is known;
* ``tijdeman`` [1]_, for K values: at most 1 - 1 / (2 K - 2), the best possible bound.

A value of probability zero is never chosen. ``threshold`` and ``argmax`` make the same choices between two values.

In a step of herded Gibbs, the weight of the current key determines the state of a site. With two states, a key has one
number: the weight in the upper half, in units of 2^-32, and in the lower half the probability of state 1 once it is
known. With more states, a key has a weight for each.

References
----------
.. [1] Tijdeman, R. (1980). The chairman assignment problem. Discrete Mathematics 32.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints8, Ints16, Words32, Words64
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import Words, single_word, uniform
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.local import log_odds, weights
from gibbsite.kernels.base import step
from gibbsite.kernels.herded.keys import CODED, RANDOM, SHARED, Hashed, Table, expect, find
from gibbsite.kernels.rules import pick

_HIGH, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@inlined
def herd_entry(entry: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Choose between two values by the rule ``threshold``; return the entry with its new weight, and the choice.

    The weight is the upper half of an entry, the probability of the second value the lower half, both in units of
    2^-32. In the notation of the paper the weight is w + 1 - p: x = [w > 0], w <- w + p - x.
    """
    share = entry & _LOW
    total = (entry >> _HIGH) + share
    return (total << _HIGH) | share, total >> _HIGH


@inlined
def herd_argmax(v: Floats, at: Integer, p: Floats, size: Integer) -> Integer:
    """Choose the value of largest weight; weights are ``v[at]``, ``v[at + 1]``, ..."""
    best, largest = np.uintp(0), -np.inf
    for a in range(np.uintp(size)):
        v[at + a] += p[a]
        if p[a] > 0.0 and v[at + a] > largest:
            best, largest = np.uintp(a), v[at + a]
    v[at + best] -= 1.0
    return best


@inlined
def herd_tijdeman(v: Floats, at: Integer, p: Floats, size: Integer) -> Integer:
    """Choose the value whose count would be the first to fall too far behind (Tijdeman's rule).

    Among the values with a weight of at least 1 / (2 K - 2), it is the one whose weight would first exceed
    1 - 1 / (2 K - 2). There always is such a value if weights start at zero; otherwise, or if there is none because of
    rounding, the largest weight decides.
    """
    slack = 1.0 / (2.0 * size - 2.0) if size > 1 else 0.0
    best, first = np.uintp(0), np.inf
    other, largest = np.uintp(0), -np.inf
    for a in range(np.uintp(size)):
        v[at + a] += p[a]
        if p[a] > 0.0:
            if v[at + a] > largest:
                other, largest = np.uintp(a), v[at + a]
            due = (1.0 - slack - v[at + a]) / p[a]
            if v[at + a] >= slack and due < first:
                best, first = np.uintp(a), due
    if first == np.inf:
        best = other
    v[at + best] -= 1.0
    return best


@inlined
def herd_bounded(v: Floats, at: Integer, p: Floats, size: Integer, band: float, drawn: Integer) -> Integer:
    """Keep a random choice unless counts have left a band around their expectation.

    If some value is behind by more than ``band``, or the drawn value is ahead by more than ``band``, the value that is
    furthest behind is taken (bounded-error Gibbs).
    """
    best, largest = np.uintp(drawn), -np.inf
    for a in range(np.uintp(size)):
        if p[a] > 0.0 and v[at + a] > largest:
            best, largest = np.uintp(a), v[at + a]
    if largest <= band and v[at + np.uintp(drawn)] >= -band:
        best = np.uintp(drawn)
    for a in range(np.uintp(size)):
        v[at + a] += p[a]
    v[at + best] -= 1.0
    return best


RULES = ("argmax", "threshold", "tijdeman", "bounded")
_ARGMAX, _THRESHOLD, _TIJDEMAN, _BOUNDED = range(4)

_U, _ONE, _U64 = np.uintp, np.uintp(1), np.uint64
_GOLDEN = _U64(0x9E3779B97F4A7C15)
_SCALE, _TO_UNIT = 2.0**32, 2.0**-32
_ALIKE_ODDS, _ALIKE = 2.0**30, 2.0**40  # log-odds or probabilities are equal if rounded to multiples of the inverse
_AHEAD = _U(8)  # number of positions by which weights are prefetched


class HerdedParameters(NamedTuple):
    """Parameters for compiled code; a negative ``start`` stands for random first weights."""

    rule: int
    keys: int
    remember: int
    bins: int
    band: float
    start: float
    span: float


class HerdedMemory(NamedTuple):
    """The weights of a chain, and the numbering of their keys.

    The key of site i is ``place[i]`` plus the sum of ``stride[k] * x[member[k]]``, k from ``start[i]`` to
    ``start[i + 1]``, plus the number of its conditional if keys depend on it.
    """

    work: Floats
    start: Words32
    member: Words32
    stride: Words64
    place: Words64
    ledger: Table | Hashed
    seed: Words32

    @property
    def constant(self) -> tuple[str, ...]:
        """Arrays that never change."""
        return ("start", "member", "stride", "place")


@inlined
def _code(memory: HerdedMemory, x: Codes, i: Integer) -> np.uint64:
    """Return the key that the states of other sites select."""
    code: Any = memory.place[i]
    for k in range(_U(memory.start[i]), _U(memory.start[i + _ONE])):
        code += memory.stride[k] * _U64(x[_U(memory.member[k])])
    return code  # type: ignore[no-any-return]


@inlined
def _first(parameters: HerdedParameters, memory: HerdedMemory, key: Any, a: Integer) -> float:
    """Return the first weight of a key, in [0, 1): a function of the key, not of the time of its first visit."""
    if parameters.start >= 0.0:
        return parameters.start
    return single_word(memory.seed[0], memory.seed[1], a, key & _U64(2**62 - 1)) * _TO_UNIT


@implement(step, HerdedParameters, IsingGraph)
@implement(step, HerdedParameters, LatticeGraph)
def _step_binary(
    params: Any, arrays: Any, memory: HerdedMemory, x: Ints8, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Set a two-state site by the weight of its current key."""
    ledger = memory.ledger.weight
    ahead = i + _AHEAD
    if ahead + _ONE < _U(memory.place.size):
        expect(memory.ledger, memory.place[ahead], memory.place[ahead + _ONE])
    key = _code(memory, x, i)
    at, entry, odds = _U(0), _U64(0), 0.0
    if params.keys == CODED:
        at = _U(find(memory.ledger, key))
        entry = ledger[at]
    known = params.remember and entry != _U64(0)
    if keep or not known:
        odds = log_odds(arrays, x, i)
        if keep:
            cond[i] = odds
    if not known:
        tail = math.exp(-abs(odds))
        p = 1.0 / (1.0 + tail) if odds >= 0.0 else tail / (1.0 + tail)
        if params.keys != CODED:
            level = p * params.bins
            if params.keys == SHARED:
                level = np.rint(min(max(odds, -700.0), 700.0) * _ALIKE_ODDS)
            elif params.keys == RANDOM:
                rng, u = uniform(rng)
                level = math.floor(level + u)
                p = level / params.bins
            key += _U64(np.int64(level))
            at = _U(find(memory.ledger, key))
            entry = ledger[at]
        if entry == _U64(0):
            entry = _U64(_first(params, memory, key, 0) * _SCALE) << _HIGH
        share = _U64(min(max(np.rint(p / params.span * _SCALE), 1.0), _SCALE - 1.0))
        entry = (entry & ~_LOW) | share
    if params.rule == _BOUNDED:
        rng, up = _draw_within(params, entry, rng)
        entry += ((entry & _LOW) << _HIGH) - up * (_U64(_SCALE / params.span) << _HIGH)
    else:
        entry, up = herd_entry(entry)
    ledger[at] = entry
    x[i] = up
    return rng


@inlined
def _draw_within(parameters: HerdedParameters, entry: Any, rng: Words) -> tuple[Words, np.uint64]:
    """Draw a state at random unless the weight, stored in units of ``span``, is outside the band."""
    weight = ((entry >> _HIGH) * _TO_UNIT - 0.5) * parameters.span
    rng, u = uniform(rng)
    up = u < (entry & _LOW) * _TO_UNIT * parameters.span
    if abs(weight) > parameters.band:
        up = weight > 0.0
    return rng, _U64(up)


@implement(step, HerdedParameters)
def _step_categorical(
    params: Any, arrays: Any, memory: HerdedMemory, x: Ints16, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Set a site with any number of states by the weights of its current key."""
    p, weight = memory.work, memory.ledger.weight
    size, total = weights(arrays, x, i, p)
    if total <= 0.0:  # no state is possible: the site does not move
        return rng
    cell = _U(arrays.offset[i])
    for a in range(_U(size)):
        p[a] /= total
        if keep:
            cond[cell + a] = p[a]
    key = _code(memory, x, i)
    if params.keys != CODED:
        rng, code = _number(params, p, size, rng)
        key += code
    at = _U(find(memory.ledger, key))
    if weight[at] == 0.0:
        weight[at] = 1.0
        mean = 0.0
        for a in range(_U(size)):
            weight[at + _ONE + a] = _first(params, memory, key, a)
            mean += weight[at + _ONE + a] / size
        for a in range(_U(size)):
            weight[at + _ONE + a] -= mean
    if params.rule == _BOUNDED:
        rng, u = uniform(rng)
        x[i] = herd_bounded(weight, at + _ONE, p, size, params.band, pick(p, size, u))
    elif params.rule == _TIJDEMAN:
        x[i] = herd_tijdeman(weight, at + _ONE, p, size)
    else:
        x[i] = herd_argmax(weight, at + _ONE, p, size)
    return rng


@inlined
def _number(parameters: HerdedParameters, p: Floats, size: Integer, rng: Words) -> tuple[Words, np.uint64]:
    """Return the number of a conditional, or of its bins; random bins replace the conditional.

    With one random number u, the share of state a becomes floor(C_a + u) - floor(C_(a-1) + u) bins, where C are the
    cumulative probabilities times the number of bins. This is unbiased, and the shares sum to the number of bins.
    """
    code, u, passed, before, last = _U64(0), 0.0, 0.0, 0.0, _U(0)
    if parameters.keys == RANDOM:
        rng, u = uniform(rng)
        for a in range(_U(size)):
            last = _U(a) if p[a] > 0.0 else last
    for a in range(_U(size)):
        if parameters.keys == SHARED:
            code = code * _GOLDEN + _U64(np.int64(np.rint(p[a] * _ALIKE)))
            continue
        level = math.floor(p[a] * parameters.bins)
        if parameters.keys == RANDOM:
            passed += p[a] * parameters.bins
            if a >= last:  # remove the rounding error of the last sum, which is the number of bins
                passed = 1.0 * parameters.bins
            now = 1.0 * math.floor(passed + u)
            level = now - before
            before = now
            p[a] = level / parameters.bins
        code = code * _U64(parameters.bins + 1) + _U64(np.int64(level))
    return rng, code
