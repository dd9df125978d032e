"""Influence through agreements, from numbers of neighbours in each state instead of their configurations.

Let every factor of site i, besides its own, depend only on whether a neighbour agrees with it: Potts models, and
proper colorings, whose agreements are excluded. The conditional distribution of i is then a function of how many
neighbours of each weight are in each state. States with the same weight of their own are interchangeable as well, so
that their numbers need not be tried in every order: on a torus with nine colors, three cases (all three other
neighbours alike, two of them, none) replace 9 ** 4 configurations.

*Repulsion.* If no agreement of i has a positive weight, a bound needs no enumeration. Let W_a be the weights of the
states of i without neighbour j, in shares that sum to 1, t = exp(weight of j) and s = 1 - t. If j moves from state c to
state d, the probabilities are W_a t^[a = c] / (1 - s u) and W_a t^[a = d] / (1 - s v), where u = W_c and v = W_d. Let u
>= v. Then only the probability of c rises, and the total variation is u / (1 - s v) - t u / (1 - s u), which grows with
v. For u <= 1/2 it is at most its value s u / (1 - s u) at v = u, which grows with u; for u = 1/2 that is tanh(abs(log
t) / 2), the bound of theorem 10, which holds for all u. The largest share u is that of the state with the largest
weight of its own, when no neighbour is in it and the others lower the sum of the remaining weights as far as possible;
since each further neighbour in a state takes less away than the one before, that is found by always lowering the
largest. For a proper coloring with q colors and D neighbours u = 1 / (q - D + 1), and the influence is 1 / (q - D).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Words32
from gibbsite._numba.jit import Integer, called, compiled, inlined
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths

_MOST_STATES = 1024  # the work grows with the square of the number of states


@called
def _agreement(arrays: TableGraph, f: Integer) -> Any:
    """Return the weight of a factor that depends on the agreement of two sites alone, otherwise NaN."""
    first = arrays.member_start[f]
    if arrays.member_start[f + 1] - first != 2:
        return np.nan
    states = np.int64(arrays.card[arrays.member[first]])
    if arrays.card[arrays.member[first + 1]] != states or states < 2:
        return np.nan
    table, one, other = arrays.table[f], arrays.stride[first], arrays.stride[first + 1]
    same, apart = arrays.log_value[table], arrays.log_value[table + one]
    if not np.abs(apart) < np.inf:
        return np.nan
    for a in range(states):
        for b in range(states):
            if arrays.log_value[table + a * one + b * other] != (same if a == b else apart):
                return np.nan
    return same - apart


@compiled
def table_agreements(arrays: TableGraph, start: Words32, neighbour: Words32, weight: Floats) -> None:
    """Write the weights of agreement of pairs of sites, NaN for pairs with any other factor."""
    found = np.empty(arrays.table.size)
    for f in range(found.size):
        found[f] = _agreement(arrays, f)
    for i in range(start.size - 1):
        for entry in range(start[i], start[i + 1]):
            weight[entry] = 0.0
            for k in range(arrays.start[i], arrays.start[i + 1]):
                f = arrays.factor[k]
                for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
                    if arrays.member[m] == neighbour[entry]:
                        weight[entry] += found[f]


class _Workspace(NamedTuple):
    """Work arrays of one site.

    ``own`` has the log-weights of its states, ascending; ``every`` the weights of its agreements, ascending; ``given``
    those with all neighbours but one, of which the k-th is in state ``chosen[k]``. ``taken`` counts the neighbours of
    the first weight in each state, ``logs`` adds all weights to ``own``, ``laws`` has conditional distributions.
    """

    own: Floats
    every: Floats
    given: Floats
    chosen: Ints
    taken: Ints
    logs: Floats
    laws: Floats


@called
def _largest_variation(work: _Workspace, states: Integer, weight: float) -> Any:
    """Return the largest total variation that a neighbour causes by moving from one state to another.

    ``work.logs`` has the log-weights without that neighbour, whose agreement has the weight ``weight``.
    """
    logs, laws = work.logs, work.laws
    many = 0
    for c in range(states):
        if c >= 2 and logs[c] == logs[c - 1] and logs[c] == logs[c - 2]:
            continue  # two of several interchangeable states suffice
        top = -np.inf
        for a in range(states):
            laws[many, a] = logs[a] + weight if a == c else logs[a]
            top = max(top, laws[many, a])
        total = 0.0
        for a in range(states):
            laws[many, a] = np.exp(laws[many, a] - top) if top > -np.inf else 1.0
            total += laws[many, a]
        for a in range(states):
            laws[many, a] /= total
        many += 1
    largest = 0.0
    for c in range(many):
        for d in range(c):
            distance = 0.0
            for a in range(states):
                distance += abs(laws[c, a] - laws[d, a])
            largest = max(largest, 0.5 * distance)
    return largest


@called
def _try_numbers(
    work: _Workspace, states: Integer, others: Integer, weight: float, most: Integer, only_count: bool
) -> tuple[Integer, Any]:
    """Try all numbers of neighbours in each state; return how many there are, up to ``most`` + 1, and the influence.

    Neighbours of equal weight take states in ascending order. Of states with equal weights of their own, an earlier one
    has at least as many neighbours of the first weight. ``weight`` is that of the neighbour that moves.
    """
    own, given, chosen, taken = work.own, work.given, work.chosen, work.taken
    for state in range(states):
        taken[state] = 0
    for k in range(others + 1):
        chosen[k] = -1
    tried: Integer = np.int64(0)
    largest = 0.0
    depth: Integer = np.int64(0)
    while depth >= 0:
        if depth == others:  # all have a state
            tried += 1
            if tried > most:
                break
            if not only_count:
                for state in range(states):
                    work.logs[state] = own[state]
                for k in range(others):
                    work.logs[chosen[k]] += given[k]
                largest = max(largest, _largest_variation(work, states, weight))
            depth -= 1
            continue
        a: Integer = chosen[depth]
        first = np.int64(given[depth] == given[0])
        if a >= 0:  # take it away again
            taken[a] -= first
        elif depth > 0 and given[depth] == given[depth - 1]:
            a = chosen[depth - 1] - 1
        a += 1
        while a < states:
            if own[a] == -np.inf:
                if a == 0:
                    break  # the same as in any other excluded state
            elif not (first == 1 and a > 0 and own[a] == own[a - 1] and taken[a] == taken[a - 1]):
                break
            a += 1
        if a < states:
            chosen[depth] = a
            taken[a] += first
            depth += 1
        else:
            chosen[depth] = -1
            depth -= 1
    return tried, largest


@called
def _bound_repulsion(work: _Workspace, states: Integer, others: Integer, weight: float) -> Any:
    """Return the bound for repulsion between a site and a neighbour, if no weight is positive."""
    own, rest = work.own, work.logs
    for a in range(states - 1):
        rest[a] = np.exp(own[a] - own[states - 1])
    for _ in range(others):
        largest = 0
        for a in range(1, states - 1):
            if rest[a] > rest[largest]:
                largest = a
        rest[largest] *= np.exp(work.every[0])
    total = 1.0
    for a in range(states - 1):
        total += rest[a]
    share, s = min(0.5, 1.0 / total), -np.expm1(weight)
    return s * share / (1.0 - s * share)


@inlined
def _same(values: Floats, a: Integer, b: Integer, many: Integer) -> Any:
    """Return whether the values from ``a`` and from ``b`` on are equal."""
    equal = True
    for k in range(many):
        equal = equal and values[a + k] == values[b + k]
    return equal


@compiled
def _bound_sites(
    start: Words32,
    weight: Floats,
    offset: Ints,
    log_unary: Floats,
    most: Integer,
    work: _Workspace,
    value: Floats,
    exact: Bools,
) -> None:
    before = np.int64(-1)
    for i in range(start.size - 1):
        first, degree = np.int64(start[i]), np.int64(start[i + 1]) - np.int64(start[i])
        states = np.int64(offset[i + 1] - offset[i])
        row = weight[first : first + degree]
        own = log_unary[offset[i] : offset[i + 1]]
        if degree == 0 or states < 2 or np.isnan(row).any() or own.max() == -np.inf:
            continue
        if before >= 0:
            again = np.int64(start[before])
            if (
                degree == np.int64(start[before + 1]) - again
                and states == offset[before + 1] - offset[before]
                and _same(weight, first, again, degree)
                and _same(log_unary, offset[i], offset[before], states)
            ):  # as on a lattice without fields
                value[first : first + degree] = value[again : again + degree]
                exact[i] = exact[before]
                continue
        before = np.int64(i)
        work.own[:states] = np.sort(own)
        work.every[:degree] = np.sort(row)
        exact[i] = most > 0
        for turn in range(2):  # count before trying, so that no work is wasted
            for k in range(degree):
                moving = work.every[k]
                if not exact[i] or (k > 0 and moving == work.every[k - 1]):
                    continue
                for other in range(degree - 1):
                    work.given[other] = work.every[other + (other >= k)]
                tried, found = _try_numbers(work, states, degree - 1, moving, most, turn == 0)
                if tried > most:
                    exact[i] = False
                elif turn == 1:
                    for entry in range(first, first + degree):
                        if weight[entry] == moving:
                            value[entry] = min(found, 1.0)
        if not exact[i] and work.every[degree - 1] <= 0.0:
            for entry in range(first, first + degree):
                value[entry] = min(value[entry], _bound_repulsion(work, states, degree - 1, weight[entry]))


def bound_agreements(
    start: Words32, weight: Floats, offset: Ints, log_unary: Floats, most: int, value: Floats, exact: Bools
) -> None:
    """Improve the rows of sites all of whose pairs are agreements.

    The row of a site is exact if there are at most ``most`` numbers of neighbours to try for each weight; otherwise the
    bound for repulsion is used where it is smaller. Entries of ``weight`` are NaN for pairs that are no agreements.
    """
    if most > 0:
        exact[row_lengths(start) == 0] = True
    agree = ~np.isnan(weight)
    if not agree.any():
        return
    # no other rows need space
    row = np.repeat(np.arange(start.size - 1), row_lengths(start))
    sites = np.unique(row[agree])
    degree, states = int(row_lengths(start)[sites].max()), int(np.diff(offset)[sites].max())
    if states > _MOST_STATES:
        return
    work = _Workspace(
        own=np.empty(states),
        every=np.empty(degree),
        given=np.empty(degree),
        chosen=np.empty(degree + 1, np.int64),
        taken=np.empty(states, np.int64),
        logs=np.empty(states),
        laws=np.empty((states, states)),
    )
    _bound_sites(start, weight, offset, log_unary, most, work, value, exact)
