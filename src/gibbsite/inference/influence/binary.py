"""Influence between two-state sites: the theorems, and rows of a whole model.

If log-odds lie between ``low`` and ``high`` and one neighbour can change them by at most 2 u, the conditional
probability changes by at most sinh(u) / (cosh(u) + cosh(m)), m being the point nearest to zero in [low + u, high - u]:
sigma(m + u) - sigma(m - u) has this value, grows with u and falls with |m|.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Words32
from gibbsite._numba.jit import Integer, compiled, compiled_loop, inlined
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.rows import row_lengths


def theorem_11(coupling: Any, field: Any, others: Any) -> Any:
    """Bound the influence between two spins of a pairwise model exp(theta_ij s_i s_j + theta_i s_i).

    ``coupling`` is theta_ij, ``field`` theta_i of the influenced spin, ``others`` the sum of abs(theta_ik) over its
    other neighbours. This is theorem 11 of Mitliagkas and Mackey (2017), which is exact unless the other neighbours
    cannot bring the log-odds as close to zero as their range allows.
    """
    u = 2.0 * np.abs(coupling)
    m = np.maximum(2.0 * np.abs(field) - 2.0 * np.asarray(others, np.float64), 0.0)
    return -np.expm1(-2.0 * u) / (1.0 + np.exp(-2.0 * u) + np.exp(m - u) + np.exp(-m - u))


def theorem_12(shared: Any, field: Any, others: Any) -> Any:
    """Bound the influence between two spins of a model with products of any number of spins.

    ``shared`` is the sum of abs(theta_S) over the products with both spins, ``others`` that over the products with i
    but without j, ``field`` theta_i of the influenced spin. This is theorem 12 as printed, which may exceed 1;
    :func:`theorem_11` with ``shared`` in place of the coupling holds as well and is never larger, since the influence
    grows with the coupling.
    """
    b = np.exp(-np.maximum(2.0 * np.abs(field) - 2.0 * np.asarray(others, np.float64), 0.0))
    return 2.0 * np.sinh(2.0 * np.abs(shared)) * b / (1.0 + b) ** 2


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

    The log-odds of site i are ``centre[i]`` plus the sum of its halves, each with either sign. For up to ``most``
    neighbours, all signs of the others are tried to bring them closest to zero (the exact influence); for more, every
    point of their range is assumed to be attained (theorem 11).
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
            # rounding of the running sum must not make the bound too small
            value[first + k] = influence_at(u, max(best - 1e-13 * (total + abs(centre[i])), 0.0))


@compiled_loop
def _count_lattice(arrays: LatticeGraph, start: Words32) -> None:
    """Write the row starts of a lattice."""
    at = np.uint32(0)
    i = 0
    for z in range(arrays.size_0):
        for y in range(arrays.size_1):
            for x in range(arrays.size_2):
                start[i] = at
                at += np.uint32(_ends(z, arrays.size_0, arrays.wrap_0))
                at += np.uint32(_ends(y, arrays.size_1, arrays.wrap_1))
                at += np.uint32(_ends(x, arrays.size_2, arrays.wrap_2))
                i += 1
    start[i] = at


@inlined
def _ends(x: Integer, size: Integer, wrap: Integer) -> Integer:
    """Return the number of neighbours along an axis."""
    if wrap:
        return 2
    return (x > 0) + (x < size - 1)


@inlined
def _put(neighbour: Words32, value: Floats, first: Integer, at: Integer, j: Integer, coupling: float) -> None:
    """Insert an entry into a row that is kept ascending."""
    while at > first and neighbour[at - 1] > j:
        neighbour[at] = neighbour[at - 1]
        value[at] = value[at - 1]
        at -= 1
    neighbour[at] = j
    value[at] = coupling


@inlined
def _put_axis(
    neighbour: Words32,
    value: Floats,
    first: Integer,
    at: Integer,
    i: Integer,
    place: tuple[Integer, Integer, Integer, Integer],
    weight: Floats,
    weight_step: Integer,
) -> Integer:
    """Insert both neighbours along an axis; return the end of the row."""
    x, size, wrap, stride = place
    if x > 0 or wrap:
        j = i - stride if x > 0 else i + (size - 1) * stride
        _put(neighbour, value, first, at, j, 2.0 * weight[j * weight_step])
        at += 1
    if x < size - 1 or wrap:
        j = i + stride if x < size - 1 else i - (size - 1) * stride
        _put(neighbour, value, first, at, j, 2.0 * weight[i * weight_step])
        at += 1
    return at


@compiled_loop
def _fill_lattice(arrays: LatticeGraph, start: Words32, neighbour: Words32, value: Floats) -> None:
    i = 0
    for z in range(arrays.size_0):
        for y in range(arrays.size_1):
            for x in range(arrays.size_2):
                first = np.int64(start[i])
                a = (z, arrays.size_0, arrays.wrap_0, arrays.size_1 * arrays.size_2)
                b = (y, arrays.size_1, arrays.wrap_1, arrays.size_2)
                c = (x, arrays.size_2, arrays.wrap_2, 1)
                at = _put_axis(neighbour, value, first, first, i, a, arrays.coupling_0, arrays.step_0)
                at = _put_axis(neighbour, value, first, at, i, b, arrays.coupling_1, arrays.step_1)
                _put_axis(neighbour, value, first, at, i, c, arrays.coupling_2, arrays.step_2)
                i += 1


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
    """Return starts, neighbours, influence and exactness of the rows of a binary pairwise graph.

    Rows of up to ``most`` neighbours get the exact influence.
    """
    if isinstance(arrays, LatticeGraph):
        start = np.zeros(n_sites + 1, np.uint32)
        _count_lattice(arrays, start)
        neighbour, value = np.empty(int(start[-1]), np.uint32), np.empty(int(start[-1]))
        _fill_lattice(arrays, start, neighbour, value)
        centre = 2.0 * np.broadcast_to(arrays.field, n_sites)
    else:
        start, neighbour, value = merged_rows(arrays.start, arrays.neighbour, arrays.coupling)
        value *= 0.5
        centre = arrays.field + _row_sums(start, value)
    exact = np.zeros(n_sites, bool)
    _rows_to_influence(start, value, centre, most, exact)
    return start, neighbour, value, exact


def _row_sums(start: Words32, value: Floats) -> Floats:
    row = np.repeat(np.arange(start.size - 1), row_lengths(start))
    sums: Floats = np.bincount(row, value, start.size - 1).astype(np.float64)
    return sums
