"""Influence between sites, with a sharper bound for sites of two states.

*Two states.* If log-odds lie between ``low`` and ``high`` and one neighbour can change them by at most 2 u, the
conditional probability changes by at most sinh(u) / (cosh(u) + cosh(m)), m being the point nearest to zero in [low + u,
high - u]: This is the value of sigma(m + u) - sigma(m - u), which grows with u and falls with |m|.

*Any number of states.* Let p and q be the conditional distributions of site i under two conditions that differ at site
j alone, o the states of all others. Only factors f that hold both sites change, so log p(a) - log q(a) = sum_f [f(a,
x_j, o) - f(a, y_j, o)] + constant =: g(a) + constant. Let w be the range of g over a. For any event A, p(A) / (1 -
p(A)) is at most e^w times q(A) / (1 - q(A)), as each ratio p(a) q(b) / (p(b) q(a)) is e^(g(a) - g(b)) <= e^w. So the
log-odds of A differ by at most w, and the largest difference of two probabilities whose log-odds differ by w is sigma(w
/ 2) - sigma(-w / 2) = tanh(w / 4). The range is at most

    w <= max over a, b of sum_f max over o, x_j, y_j of
         [f(a, x_j, o) - f(b, x_j, o)] - [f(a, y_j, o) - f(b, y_j, o)],

which for a single factor of two sites is theorem 10 of Mitliagkas and Mackey (2017). If i has two states, A is one of
them, and its log-odds lie between the sums over all factors of their smallest and largest: the sharper bound for two
states holds, which for products of spins is theorem 12 in its tightened form.

*Few configurations.* If the neighbours of a site have few configurations, all of them are enumerated, which gives the
exact influence. For agreements, numbers of neighbours suffice (``agreements``).

*Zeros.* A state of i that o excludes for every x_j belongs to neither distribution and is left out. A state that is
excluded only for some x_j makes w infinite and the bound 1. If all states are excluded, the conditional distribution is
arbitrary and taken as uniform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Words32
from gibbsite._numba.jit import Integer, called, compiled, inlined
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths, row_starts


@inlined
def influence_at(u: Any, m: Any) -> Any:
    """Return sinh(u) / (cosh(u) + cosh(m)) for u >= 0, without overflow."""
    e = np.exp(-u)
    if m == 0.0:
        return (1.0 - e) / (1.0 + e)
    m = abs(m)
    # numerator and denominator times 2 exp(-u)
    return (1.0 - e * e) / (1.0 + e * e + np.exp(m - u) + np.exp(-m - u))


@inlined
def nearest_to_zero(low: float, high: float) -> float:
    """Return the point of [low, high] nearest to zero."""
    return min(max(low, 0.0), max(high, 0.0)) if low > 0.0 else min(high, 0.0)


@compiled
def _rows_to_influence(start: Words32, value: Floats, centre: Floats, most: Integer, exact: Bools) -> None:
    """Turn halves of log-odds changes, row by row and in place, into influence.

    The log-odds of site i are ``centre[i]`` plus the sum of its halves, each with either sign. With up to ``most``
    neighbours, the signs of the others that bring the log-odds closest to zero are found, which gives the exact
    influence; with more, every point of the range is assumed to be attained (theorem 11).
    """
    longest: Integer = np.int64(0)
    for i in range(start.size - 1):
        longest = max(longest, np.int64(start[i + 1]) - np.int64(start[i]))
    half = np.empty(max(longest, 1))
    for i in range(start.size - 1):
        first = np.int64(start[i])
        degree = np.int64(start[i + 1]) - first
        total = 0.0
        for k in range(degree):
            half[k] = abs(value[first + k])
            total += half[k]
        exact[i] = True
        for k in range(degree):
            u = half[k]
            rest = total - u
            if centre[i] - rest >= 0.0 or centre[i] + rest <= 0.0:  # an end of the range: attained
                value[first + k] = influence_at(u, max(abs(centre[i]) - rest, 0.0))
                continue
            if degree > most:
                exact[i] = False
                value[first + k] = influence_at(u, 0.0)
                continue
            half[k] = half[degree - 1]
            # signs in the order of a Gray code: one changes at a time
            now = centre[i]
            for n in range(degree - 1):
                now += half[n]
            best = abs(now)
            signs = np.int64(0)
            for step in range(1, np.int64(1) << (degree - 1)):
                bit = np.int64(0)
                while (step >> bit) & 1 == 0:
                    bit += 1
                if (signs >> bit) & 1:
                    now += 2.0 * half[bit]
                else:
                    now -= 2.0 * half[bit]
                signs ^= np.int64(1) << bit
                best = min(best, abs(now))
            half[k] = u
            # a margin for rounding of the running sum, so that the bound stays valid
            value[first + k] = influence_at(u, max(best - 1e-13 * (total + abs(centre[i])), 0.0))


def _lattice_rows(arrays: LatticeGraph) -> tuple[Words32, Words32, Floats]:
    """Return starts, ascending neighbours and halves of log-odds changes of the rows of a lattice."""
    shape = (arrays.size_0, arrays.size_1, arrays.size_2)
    wraps = (arrays.wrap_0, arrays.wrap_1, arrays.wrap_2)
    sites = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint32).reshape(shape)
    near, far, halves = [], [], []
    for axis, coupling in enumerate((arrays.coupling_0, arrays.coupling_1, arrays.coupling_2)):
        linked = np.ones(shape, bool)
        np.moveaxis(linked, axis, 0)[-1] = wraps[axis]
        near.append(sites[linked])
        far.append(np.roll(sites, -1, axis)[linked])
        halves.append(2.0 * np.broadcast_to(coupling, sites.size)[near[-1]])
    row, neighbour = np.concatenate(far + near), np.concatenate(near + far)
    del near, far
    start = row_starts(np.bincount(row, minlength=sites.size), np.uint32)
    key = row.astype(np.int64)
    key *= sites.size
    key += neighbour
    del row
    order = np.argsort(key, kind="stable")
    del key
    return start, neighbour[order], np.concatenate(halves * 2)[order]


@compiled
def sort_rows(
    start: Words32, neighbour: Words32, weight: Floats, step: Integer, new_start: Words32, new: Words32, total: Floats
) -> None:
    """Sort symmetric rows and sum the weights of repeated neighbours, in linear time.

    Every pair occurs in both rows, so appending site i to the rows of its neighbours, i ascending, fills each row in
    order. Entry k has the weight ``weight[step * k]``.
    """
    n = start.size - 1
    last = np.full(n, -1, np.int64)
    length = np.zeros(n, np.uint32)
    for i in range(n):
        for k in range(start[i], start[i + 1]):
            if last[neighbour[k]] != i:
                last[neighbour[k]] = i
                length[neighbour[k]] += np.uint32(1)
    for i in range(n):
        new_start[i + 1] = new_start[i] + length[i]
        length[i] = new_start[i]
        last[i] = -1
    for i in range(n):
        for k in range(start[i], start[i + 1]):
            j = neighbour[k]
            if last[j] != i:
                last[j] = i
                new[length[j]] = i
                total[length[j]] = 0.0
                length[j] += np.uint32(1)
            total[length[j] - np.uint32(1)] += weight[step * k]


def merged_rows(start: Words32, neighbour: Words32, weight: Floats, step: int = 1) -> tuple[Words32, Words32, Floats]:
    """Return starts, ascending neighbours and summed weights of symmetric rows."""
    new_start = np.zeros(start.size, np.uint32)
    new, total = np.empty(neighbour.size, np.uint32), np.empty(neighbour.size)
    sort_rows(start, neighbour, weight, step, new_start, new, total)
    size = int(new_start[-1])
    return new_start, new[:size], total[:size]


def binary_rows(arrays: IsingGraph | LatticeGraph, n_sites: int, most: int) -> tuple[Words32, Words32, Floats, Bools]:
    """Return starts, neighbours, influence and exactness (up to ``most`` neighbours) of rows of a binary graph."""
    if isinstance(arrays, LatticeGraph):
        start, neighbour, value = _lattice_rows(arrays)
        centre = 2.0 * np.broadcast_to(arrays.field, n_sites)
    else:
        start, neighbour, value = merged_rows(arrays.start, arrays.neighbour, arrays.coupling)
        value *= 0.5
        row = np.repeat(np.arange(n_sites), row_lengths(start))
        centre = arrays.field + np.bincount(row, value, n_sites)
    exact = np.zeros(n_sites, bool)
    _rows_to_influence(start, value, centre, most, exact)
    return start, neighbour, value, exact


@called
def _conditional(arrays: TableGraph, i: Integer, x: Ints, law: Floats) -> None:
    """Write the conditional distribution of site i; uniform where every state is excluded."""
    top = -np.inf
    for a in range(law.size):
        law[a] = arrays.log_unary[arrays.offset[i] + a]
    for k in range(arrays.start[i], arrays.start[i + 1]):
        f = arrays.factor[k]
        at = arrays.table[f]
        for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
            if arrays.member[m] != i:
                at += arrays.stride[m] * x[arrays.member[m]]
        for a in range(law.size):
            law[a] += arrays.log_value[at + a * arrays.own_stride[k]]
    for a in range(law.size):
        top = max(top, law[a])
    if top == -np.inf:
        for a in range(law.size):
            law[a] = 1.0 / law.size
        return
    total = 0.0
    for a in range(law.size):
        law[a] = np.exp(law[a] - top)
        total += law[a]
    for a in range(law.size):
        law[a] /= total


@compiled
def enumerate_blankets(
    arrays: TableGraph, start: Words32, neighbour: Words32, most: Integer, value: Floats, exact: Bools
) -> None:
    """Replace rows that are not exact by exact influence, where neighbours have at most ``most`` configurations."""
    x = np.zeros(start.size - 1, np.int64)
    for i in range(start.size - 1):
        if exact[i]:
            continue
        first, degree = np.int64(start[i]), np.int64(start[i + 1]) - np.int64(start[i])
        count = np.int64(1)
        for k in range(degree):
            count *= arrays.card[neighbour[first + k]]
            if count > most:
                break
        states = np.int64(arrays.card[i])
        if count > most or count * states > 1024 * most:
            continue
        exact[i] = True
        law = np.empty((count, states))
        for number in range(count):
            rest = number
            for k in range(degree):
                j = neighbour[first + k]
                x[j] = rest % arrays.card[j]
                rest //= arrays.card[j]
            _conditional(arrays, i, x, law[number])
        stride = np.int64(1)
        for k in range(degree):
            card = np.int64(arrays.card[neighbour[first + k]])
            largest = 0.0
            for number in range(count):
                own = (number // stride) % card
                for other in range(own + 1, card):
                    partner = number + (other - own) * stride
                    distance = 0.0
                    for a in range(states):
                        distance += abs(law[number, a] - law[partner, a])
                    largest = max(largest, 0.5 * distance)
            value[first + k] = min(largest, 1.0)
            stride *= card


_MOST_STATES = 1024  # sites with more states get the bound 1, because the work grows with the square


def potts_rows(arrays: PottsGraph) -> tuple[Words32, Words32, Floats, Floats]:
    """Return starts, neighbours, couplings and bounds tanh(abs(coupling) / 2), zero where one state is possible."""
    start, neighbour, coupling = merged_rows(arrays.start, arrays.neighbour, arrays.coupling, arrays.step)
    value = np.tanh(np.abs(coupling) / 2.0)
    if arrays.offset.size > 1:
        states = np.add.reduceat(arrays.unary > 0.0, arrays.offset[:-1])
        value[np.repeat(states == 1, row_lengths(start))] = 0.0
    return start, neighbour, coupling, value


@inlined
def _possible(arrays: TableGraph, i: Integer, a: Integer) -> Any:
    return arrays.log_unary[arrays.offset[i] + a] > -np.inf


@called
def _shared_range(
    arrays: TableGraph, i: Integer, j: Integer, f: Integer, own: Integer, other: Integer, here: Bools, worst: Floats
) -> bool:
    """Raise ``worst`` (K x K) to the ranges of one factor; return whether it changes which states are possible."""
    states, changes = np.int64(arrays.card[i]), np.int64(arrays.card[j])
    size = np.int64(1)
    for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
        size *= arrays.card[arrays.member[m]]
    table = arrays.table[f]
    hard = False
    for base in range(size):
        if (base // own) % states != 0 or (base // other) % changes != 0:
            continue
        for a in range(states):
            zeros = 0
            for x in range(changes):
                zeros += arrays.log_value[table + base + a * own + x * other] == -np.inf
            here[a] = zeros == 0 and _possible(arrays, i, a)
            if 0 < zeros < changes and _possible(arrays, i, a):
                hard = True
        for a in range(states):
            for b in range(a):
                if not (here[a] and here[b]):
                    continue
                low, high = np.inf, -np.inf
                for x in range(changes):
                    at = table + base + x * other
                    gap = arrays.log_value[at + a * own] - arrays.log_value[at + b * own]
                    low, high = min(low, gap), max(high, gap)
                worst[a, b] = max(worst[a, b], high - low)
    return hard


@called
def _odds_range(arrays: TableGraph, i: Integer) -> tuple[Any, Any]:
    """Return the sums of the smallest and of the largest log-odds each factor gives a two-state site."""
    at = arrays.offset[i]
    low = arrays.log_unary[at + 1] - arrays.log_unary[at]
    high = low
    for k in range(arrays.start[i], arrays.start[i + 1]):
        f, own = arrays.factor[k], arrays.own_stride[k]
        size = np.int64(1)
        for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
            size *= arrays.card[arrays.member[m]]
        least, most = np.inf, -np.inf
        for base in range(size):
            if (base // own) % 2 == 0:
                no = arrays.log_value[arrays.table[f] + base]
                yes = arrays.log_value[arrays.table[f] + base + own]
                if no > -np.inf or yes > -np.inf:
                    least, most = min(least, yes - no), max(most, yes - no)
        low += least
        high += most
    if not (low < np.inf and high > -np.inf):  # a state is never possible, or factors contradict each other
        return -np.inf, np.inf
    return low, high


@called
def _may_exclude(arrays: TableGraph, i: Integer) -> bool:
    """Return whether a table may exclude a state of site i that is possible without it."""
    for k in range(arrays.start[i], arrays.start[i + 1]):
        f, own = arrays.factor[k], arrays.own_stride[k]
        size = np.int64(1)
        for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
            size *= arrays.card[arrays.member[m]]
        for entry in range(size):
            if arrays.log_value[arrays.table[f] + entry] == -np.inf and _possible(
                arrays, i, (entry // own) % arrays.card[i]
            ):
                return True
    return False


@compiled
def _fill(arrays: TableGraph, start: Words32, neighbour: Words32, value: Floats, most_states: Integer) -> None:
    for i in range(start.size - 1):
        states = np.int64(arrays.card[i])
        possible = 0
        for a in range(states):
            possible += _possible(arrays, i, a)
        if possible <= 1:
            value[start[i] : start[i + 1]] = 1.0 if possible and _may_exclude(arrays, i) else 0.0
            continue
        if states > most_states:
            value[start[i] : start[i + 1]] = 1.0
            continue
        total, worst = np.empty((states, states)), np.empty((states, states))
        here = np.empty(states, np.bool_)
        low, high = -np.inf, np.inf
        if states == 2:
            low, high = _odds_range(arrays, i)
        for entry in range(start[i], start[i + 1]):
            j = neighbour[entry]
            total[:] = 0.0
            hard = False
            for k in range(arrays.start[i], arrays.start[i + 1]):
                f = arrays.factor[k]
                for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
                    if arrays.member[m] == j:
                        worst[:] = 0.0
                        own, other = arrays.own_stride[k], arrays.stride[m]
                        hard |= _shared_range(arrays, i, j, f, own, other, here, worst)
                        total += worst
            if hard:
                value[entry] = 1.0
                continue
            width = total.max()
            if states == 2:
                u = min(0.5 * width, max(0.5 * (high - low), 0.0))
                m_best = nearest_to_zero(low + u, high - u)
                slack = 0.0  # the sums are rounded
                if low > -np.inf and high < np.inf:
                    slack = 1e-13 * (abs(low) + abs(high))
                value[entry] = influence_at(u, max(abs(m_best) - slack, 0.0))
            else:
                value[entry] = np.tanh(0.25 * width)


def table_rows(graph: TableGraph, start: Words32, neighbour: Words32) -> Floats:
    """Return the bounds of all pairs of sites that share a table."""
    value = np.empty(neighbour.size)
    _fill(graph, start, neighbour, value, _MOST_STATES)
    return value
