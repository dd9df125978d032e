"""Rules that draw a new value from the weights of a site, and functions that write its conditional.

* ``heat-bath`` draws independently of the old value (the textbook sampler);
* ``metropolised`` proposes one of the *other* values in proportion to its weight and accepts it with probability
  min(1, (1 - p_old) / (1 - p_new)); its asymptotic variance is never larger than that of the heat bath [1]_;
* ``suwa-todo`` satisfies global but not detailed balance, and minimises rejection [2]_.

For two states, the last two are equivalent (Metropolis flip).

References
----------
.. [1] Liu, J. S. (1996). Peskun's theorem and a modified discrete-state Gibbs sampler. Biometrika 83.
.. [2] Suwa, H. and Todo, S. (2010). Markov chain Monte Carlo method without detailed balance. PRL 105.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints8
from gibbsite._numba.jit import Integer, generic, implement, inlined
from gibbsite.graphs.local import log_odds

RULES = ("heat-bath", "metropolised", "suwa-todo")
HEAT_BATH, METROPOLISED, SUWA_TODO = range(3)


class HeatBath(NamedTuple):
    """The heat bath, with a type of its own, so that the other rules are not compiled with it."""

    number: int


class OtherRule(NamedTuple):
    """One of the other rules, by its number."""

    number: int


@generic
def apply_rule(rule: Any, w: Floats, size: Integer, total: float, now: Integer) -> float:
    """Replace weights by those of the next value given the current state ``now``; return their sum."""
    raise NotImplementedError


@implement(apply_rule, HeatBath)
def _apply_heat_bath(rule: HeatBath, w: Floats, size: Integer, total: float, now: Integer) -> float:
    return total


@implement(apply_rule, OtherRule)
def _apply_other(rule: OtherRule, w: Floats, size: Integer, total: float, now: Integer) -> float:
    if rule.number == METROPOLISED:
        metropolised_row(w, size, total, now)
    else:
        suwa_todo_row(w, size, now)
    return 1.0


@inlined
def pick(w: Floats, size: Integer, level: float) -> Integer:
    """Return the state at which the running sum of ``w`` exceeds ``level``, never a state of weight zero."""
    passed = 0.0
    chosen = 0
    for a in range(size):  # no early exit, because the branch could not be predicted
        passed += w[a]
        chosen += level >= passed
    if chosen == size:  # the level equals the total because of rounding
        chosen = 0
        for a in range(size):
            if w[a] > 0.0:
                chosen = a
    return chosen


@inlined
def metropolised_row(w: Floats, size: Integer, total: float, now: Integer) -> None:
    """Replace weights by the transition row of Liu's rule from state ``now``.

    P(now -> v) = p_v / (1 - p_now) * min(1, (1 - p_now) / (1 - p_v)) = p_v / max(1 - p_now, 1 - p_v).
    """
    rest = 0.0  # 1 - p_now as a sum, to avoid cancellation if p_now is close to one
    for a in range(size):
        if a != now:
            rest += w[a]
    stay = total
    for a in range(size):
        if a != now:
            others = total - w[a]
            w[a] = w[a] / max(rest, others) if w[a] > 0.0 else 0.0
            stay -= w[a] * total
    w[now] = max(stay / total, 0.0)


@inlined
def suwa_todo_row(w: Floats, size: Integer, now: Integer) -> None:
    """Replace weights by the transition row of the Suwa-Todo rule from state ``now``.

    Place the weights end to end on a circle, the largest first, and rotate the circle by the largest weight: the
    interval of state i then overlaps those of the states it moves to. These overlaps are the
    v_ij = max(0, min(D, w_i + w_j - D, w_i, w_j)), D = S_i - S_{j-1} + w_1, of the paper. The states after the largest
    keep their order.
    """
    first = 0
    for a in range(size):
        if w[a] > w[first]:
            first = a
    total = 0.0
    low = 0.0
    for k in range(size):
        a = (first + k) % size
        if a == now:
            low = total
        total += w[a]
    low += w[first]
    high = low + w[now]
    begin = 0.0
    landed = first  # state at the lower end of the interval, in case the interval is empty because of rounding
    length = 0.0
    for k in range(size):
        a = (first + k) % size
        end = begin + w[a]
        if w[a] > 0.0 and (begin <= low < end or begin <= low - total < end):
            landed = a
        straight = min(high, end) - max(low, begin)
        around = min(high - total, end) - max(low - total, begin)
        w[a] = max(0.0, straight) + max(0.0, around)
        length += w[a]
        begin = end
    for a in range(size):
        if length > 0.0:
            w[a] = w[a] / length
        else:
            w[a] = 1.0 if a == landed else 0.0


_ONE = np.uintp(1)
_BINS = 1024
# logit(k / 1024) for k = 0 .. 1024, both ends infinite
_LOGITS = np.array([-np.inf, *(math.log(k / (_BINS - k)) for k in range(1, _BINS)), np.inf])


@inlined
def kept_odds(arrays: Any, x: Ints8, i: Integer, cond: Floats, keep: bool) -> float:
    """Return the log-odds of a two-state site, which are also written to ``cond`` if ``keep`` is set."""
    odds = log_odds(arrays, x, i)
    if keep:
        cond[i] = odds
    return odds


@inlined
def is_up(odds: float, u: float) -> bool:
    """Return whether u < P(1) = 1 / (1 + exp(-odds)), that is odds > logit(u).

    A table of logits brackets logit(u) so closely that the logarithm itself is needed in one update of a thousand.
    """
    k = np.uintp(u * _BINS)
    up: bool = odds >= _LOGITS[k + _ONE]
    if up != (odds >= _LOGITS[k]):  # a branch that is almost never taken, unlike one on ``up``
        up = odds > math.log(u / (1.0 - u))
    return up


@inlined
def put_cells(arrays: Any, w: Floats, size: Integer, total: float, i: Integer, cond: Floats) -> None:
    """Write the conditional of a site to ``cond``."""
    cell = np.uintp(arrays.offset[i])
    scale = 1.0 / total
    for a in range(np.uintp(size)):
        cond[cell + a] = w[a] * scale
