"""Bounds of the states that a chain can be in after starting from any state, for coupling from the past.

The random numbers of a site at a time in the past are a function of the draw's key, the time and the site, so
they are the same when a longer past is tried [1]_.

For two-state models of pairs, the bounds are the lowest and the highest state. A site is set to its second state if
logistic noise is below its log-odds, and bounds of the log-odds follow from those of its neighbours, for couplings of
either sign. This is monotone coupling from the past for models without frustration, and that of anti-monotone systems
[2]_ for others.

For other models, the bound is the set of states that a site can be in. A site tries states one after another, each
drawn with probabilities in proportion to bounds of its weights, and takes the first one that is accepted, with
probability weight / bound. Given the sets of the other sites, each state has a smallest and a largest weight. The new
set has the states that may be accepted, up to the first one that is accepted for certain (a bounding chain, [3]_). If
all sets have a single state, they are the draw.

References
----------
.. [1] Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and applications to
       statistical mechanics. Random Structures and Algorithms 9.
.. [2] Häggström, O. and Nelander, K. (1998). Exact sampling from anti-monotone systems. Statistica
       Neerlandica 52.
.. [3] Huber, M. (2004). Perfect sampling using bounding chains. Annals of Applied Probability 14.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints8, Words64
from gibbsite._numba.jit import Integer, compiled, inlined
from gibbsite._numba.random.generators import philox
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.table import TableGraph

_U, _U32 = np.uint64, np.uint32
_LOW, _HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)
_HALF = 0.5
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@inlined
def between(low: np.uint32, high: np.uint32) -> float:
    """Return a number strictly between 0 and 1 from two words."""
    word = (_U(high) << _HIGH) | _U(low)
    return (np.int64(word >> _U(12)) + _HALF) * (2.0 * _TO_UNIT)


@inlined
def two_numbers(key: np.uint64, time: Integer, place: Integer, trial: Integer) -> tuple[float, float]:
    """Return two numbers between 0 and 1 for a time in the past, a place and a trial."""
    a, b, c, d = philox(
        _U32(_U(place) & _LOW),
        _U32(_U(trial) & _LOW),
        _U32(_U(time) & _LOW),
        _U32(_U(time) >> _HIGH),
        _U32(key & _LOW),
        _U32(key >> _HIGH),
    )
    return between(a, b), between(c, d)


class PairBounds(NamedTuple):
    """The lowest and the highest state of every site."""

    low: Ints8
    high: Ints8


@inlined
def come_from(model: IsingGraph, bounds: PairBounds, key: np.uint64, span: Integer) -> Integer:
    """Make sweeps from ``span`` sweeps ago until now; return the number of sites whose bounds still differ."""
    n, apart = bounds.low.size, np.int64(bounds.low.size)
    for i in range(n):
        bounds.low[i] = 0
        bounds.high[i] = 1
    for back in range(span):
        time = span - back
        if apart > 0:
            apart = _sweep_both(model, bounds, key, time)
        else:
            _sweep_one(model, bounds.low, key, time)
    if n > 0 and apart == 0:
        for i in range(n):
            bounds.high[i] = bounds.low[i]
    return apart


@inlined
def _noise(u: float) -> float:
    return math.log(u / (1.0 - u))


@inlined
def _sweep_both(model: IsingGraph, bounds: PairBounds, key: np.uint64, time: Integer) -> Integer:
    """Make a sweep of the lowest and the highest state; return the number of sites at which they differ."""
    low, high, apart = bounds.low, bounds.high, np.int64(0)
    spare = 0.0
    for site in range(low.size):
        i = np.intp(site)
        if site % 2 == 0:
            u, spare = two_numbers(key, time, site // 2, 0)
        else:
            u = spare
        noise = _noise(u)
        least: Any = model.field[i]
        most: Any = model.field[i]
        for k in range(np.uintp(model.start[i]), np.uintp(model.start[i + 1])):
            j, c = np.intp(model.neighbour[k]), model.coupling[k]
            if c >= 0.0:
                least += c * low[j]
                most += c * high[j]
            else:
                least += c * high[j]
                most += c * low[j]
        low[i] = noise < least
        high[i] = noise < most
        apart += low[i] != high[i]
    return apart


@inlined
def _sweep_one(model: IsingGraph, x: Ints8, key: np.uint64, time: Integer) -> None:
    """Make a sweep of a single state."""
    spare = 0.0
    for site in range(x.size):
        i = np.intp(site)
        if site % 2 == 0:
            u, spare = two_numbers(key, time, site // 2, 0)
        else:
            u = spare
        odds: Any = model.field[i]
        for k in range(np.uintp(model.start[i]), np.uintp(model.start[i + 1])):
            odds += model.coupling[k] * x[np.intp(model.neighbour[k])]
        x[i] = _noise(u) < odds


#: Largest number of states of a site: a set is a word of 64 bits.
MOST_STATES = 64
# After this many trials, every possible state is included in a set: bounds may be loose, but not wrong.
_MOST_TRIALS = 256
_ONE = np.uint64(1)


class SetBounds(NamedTuple):
    """The set of each site as bits, and buffers for the bounds of a site's log-weights and a factor's states.

    ``bound`` has the logarithms of the largest weight of each state over all states of the other sites.
    """

    inside: Words64
    bound: Floats
    least: Floats
    most: Floats
    digit: Ints


@inlined
def _every(card: Integer) -> np.uint64:
    return ~np.uint64(0) if card == 64 else (_ONE << np.uint64(card)) - _ONE


@inlined
def fill_sets(model: TableGraph, bounds: SetBounds) -> None:
    """Set every site's set to all of its states."""
    for i in range(bounds.inside.size):
        bounds.inside[i] = _every(model.card[i])


@compiled
def find_bounds(model: TableGraph, bounds: SetBounds) -> None:
    """Compute the largest weight of each state."""
    fill_sets(model, bounds)
    for i in range(bounds.inside.size):
        bound_weights(model, bounds, i)
        for a in range(model.card[i]):
            bounds.bound[model.offset[i] + a] = bounds.most[a]


@inlined
def bound_weights(model: TableGraph, bounds: SetBounds, i: Integer) -> None:
    """Bound the log-weights of the states of a site, given the sets of the other sites."""
    least, most, digit, size = bounds.least, bounds.most, bounds.digit, np.int64(model.card[i])
    for a in range(size):
        least[a] = most[a] = model.log_unary[model.offset[i] + a]
    for row in range(np.int64(model.start[i]), np.int64(model.start[i + 1])):
        f, own = np.int64(model.factor[row]), model.own_stride[row]
        begin, end = np.int64(model.member_start[f]), np.int64(model.member_start[f + 1])
        for a in range(size):
            at = model.table[f] + a * own
            low, high = np.inf, -np.inf
            for m in range(begin, end):  # the first state of each set
                digit[m - begin] = -1
                if np.int64(model.member[m]) != i:
                    _next(model, bounds, m, begin)
                    at += digit[m - begin] * model.stride[m]
            going = True
            while going:
                low, high = min(low, model.log_value[at]), max(high, model.log_value[at])
                going = False
                for back in range(end - begin):  # an odometer over the sets of the other members
                    last = end - 1 - back
                    if not going and np.int64(model.member[last]) != i:
                        before = digit[last - begin]
                        going = _next(model, bounds, last, begin)
                        at += (digit[last - begin] - before) * model.stride[last]
            least[a] += low
            most[a] += high


@inlined
def _next(model: TableGraph, bounds: SetBounds, m: Integer, begin: Integer) -> bool:
    """Advance to the next state of a member's set; after the last one, return to the first and return False."""
    j = np.int64(model.member[m])
    for b in range(bounds.digit[m - begin] + 1, np.int64(model.card[j])):
        if (bounds.inside[j] >> np.uint64(b)) & _ONE:
            bounds.digit[m - begin] = b
            return True
    for b in range(np.int64(model.card[j])):
        if (bounds.inside[j] >> np.uint64(b)) & _ONE:
            bounds.digit[m - begin] = b
            break
    return False


@inlined
def come_from_sets(model: TableGraph, bounds: SetBounds, key: np.uint64, span: Integer) -> Integer:
    """Make sweeps from ``span`` sweeps ago until now; return the number of sites that still have several states."""
    apart = np.int64(0)
    fill_sets(model, bounds)
    for back in range(span):
        apart = np.int64(0)
        for i in range(bounds.inside.size):
            _draw_set(model, bounds, i, key, span - back)
            apart += (bounds.inside[i] & (bounds.inside[i] - _ONE)) != 0
    return apart


@inlined
def _draw_set(model: TableGraph, bounds: SetBounds, i: Integer, key: np.uint64, time: Integer) -> None:
    """Update the set of a site, given the sets of the other sites."""
    size, first = np.int64(model.card[i]), model.offset[i]
    bound_weights(model, bounds, i)
    possible, top = np.uint64(0), -np.inf
    for a in range(size):
        if bounds.bound[first + a] > top:
            top = float(bounds.bound[first + a])
        if bounds.most[a] > -np.inf:
            possible |= _ONE << np.uint64(a)
    total = 0.0
    for a in range(size):
        total += math.exp(bounds.bound[first + a] - top)
    found, trial, sure = np.uint64(0), 0, False
    if (possible & (possible - _ONE)) == 0:
        found = possible
    while not sure and found != possible:
        if trial == _MOST_TRIALS:
            found = possible
            break
        u, v = two_numbers(key, time, i, trial)
        trial += 1
        level, passed, a = u * total, 0.0, -1
        for b in range(size):
            weight = math.exp(bounds.bound[first + b] - top)
            if weight > 0.0 and (a < 0 or level >= passed):
                a = b
            passed += weight
        height: Any = math.log(v) + bounds.bound[first + a]
        if height < bounds.most[a]:
            found |= _ONE << np.uint64(a)
            sure = height < bounds.least[a]
    bounds.inside[i] = found
