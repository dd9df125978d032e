"""Models of any states and factors: the set of states that a site can be in, from any past.

A site tries states one after another, each drawn with probabilities that bound its weights, and takes the
first that is accepted: with probability weight / bound. Given sets for the other sites there are a smallest
and a largest weight, hence states that may be accepted, up to one that surely is: its new set (a bounding
chain, [1]_). Sets of single states everywhere are the draw.

References
----------
.. [1] Huber, M. (2004). Perfect sampling using bounding chains. Annals of Applied Probability 14.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.jit import Integer, compiled, inlined
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.kernels.perfect.past import two_numbers

#: States of a site, at most: a set is a word of 64 bits.
MOST_STATES = 64
# After so many trials, every state that is possible is taken to be: bounds may be loose, not wrong.
_MOST_TRIALS = 256
_ONE = np.uint64(1)


class SetBounds(NamedTuple):
    """The set of each site as bits, and room for the bounds of a site's log-weights and a factor's states.

    ``bound`` are logarithms of the largest weight of each state, whatever the other sites are in.
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
    """Let every site be in any state."""
    for i in range(bounds.inside.size):
        bounds.inside[i] = _every(model.card[i])


@compiled
def find_bounds(model: TableGraph, bounds: SetBounds) -> None:
    """Compute the largest weights."""
    fill_sets(model, bounds)
    for i in range(bounds.inside.size):
        bound_weights(model, bounds, i)
        for a in range(model.card[i]):
            bounds.bound[model.offset[i] + a] = bounds.most[a]


@inlined
def bound_weights(model: TableGraph, bounds: SetBounds, i: Integer) -> None:
    """Bound the log-weights of the states of a site, given the sets of the others."""
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
    """Go on to the next state of a member's set; return whether there was one, or it began again."""
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
    """Make sweeps from ``span`` sweeps ago until now; return how many sites have several states now."""
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
