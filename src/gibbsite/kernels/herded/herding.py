"""Herding: deterministic choices whose counts follow given probabilities with a bounded error.

A weight remembers by how much the choices made so far fall short of the probabilities they were made with.
Each rule adds the new probabilities, chooses, and subtracts one from what was chosen, so after T choices with
probabilities p a count is T p plus a bounded error:

* ``threshold``, two values: below 1 whatever T is;
* ``argmax``, any number of values: take the largest weight (about 1.5 in practice, no sharp bound known);
* ``tijdeman`` [1]_, K values: at most 1 - 1 / (2 K - 2), the best bound possible.

A value of probability zero is never chosen. Two values are chosen alike by ``threshold`` and ``argmax``.

References
----------
.. [1] Tijdeman, R. (1980). The chairman assignment problem. Discrete Mathematics 32.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, inlined

_HIGH, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@inlined
def herd_threshold(weight: float, p: float) -> tuple[float, bool]:
    """Choose between two values; ``weight`` is in [0, 1), ``p`` the probability of the second.

    In the notation of the paper the weight is w + 1 - p: x = [w > 0], w <- w + p - x.
    """
    weight += p
    up = weight >= 1.0
    if up:
        weight -= 1.0
    return weight, up


@inlined
def herd_entry(entry: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Choose between two values, in whole numbers: weight and probability in units of 2^-32.

    The weight is the upper half of a number, the probability the lower: their sum reaches one where it
    carries. Return the entry with its new weight, and the choice.
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
    """Choose the value that would be first to fall behind its share (Tijdeman's rule).

    Of the values with a weight of at least 1 / (2 K - 2) it is the one whose weight would first grow beyond
    1 - 1 / (2 K - 2). With weights that start at zero there always is one; otherwise, or if rounding has
    taken the last one away, the largest weight decides.
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

    If some value is behind by more than ``band``, the one furthest behind is taken; so it is if the drawn
    value is ahead by more than ``band`` (bounded-error Gibbs).
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
