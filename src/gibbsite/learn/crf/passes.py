"""Compiled forward and backward passes over chains, best sequences, and probabilities of spans.

Probabilities are scaled at every position (Rabiner 1989) to avoid underflow and overflow: ``alpha``
sums to one, ``scale`` has the sums before scaling, and the log-partition function is the sum of their logarithms.
``beta`` is scaled such that alpha * beta is the probability of a state.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Bytes, Floats, Ints, Ints16, Ints32
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.learn.crf.structure import Moves

_LEAST = -600.0  # smaller exponents are replaced by this one, so that labels with low scores remain possible


class Rows(NamedTuple):
    """Features of all positions, and the weights of every feature, one for each label with which it was seen."""

    begin: Ints  # as in :class:`gibbsite.learn.crf.sequences.Sequences`
    first: Ints
    feature: Ints32
    value: Floats
    start: Ints  # (features + 1,): where the weights of a feature begin
    label: Bytes  # the label of every weight


class Scratch(NamedTuple):
    """Buffers for one sequence."""

    emission: Floats
    alpha: Floats
    beta: Floats
    ahead: Floats
    scale: Floats


def make_scratch(longest: int, moves: Moves) -> Scratch:
    """Allocate buffers for sequences of at most ``longest`` positions; beta has one spare row."""
    states = len(moves.first)
    return Scratch(
        np.zeros((longest, moves.width)),
        np.zeros((longest, states)),
        np.zeros((longest + 1, states)),
        np.zeros(states),
        np.zeros(longest),
    )


@inlined
def _score(rows: Rows, weight: Floats, begin: Integer, t: Integer, emission: Floats) -> None:
    """Compute the scores of all labels at position t of the sequence that begins at ``begin``."""
    width = emission.shape[1]
    for y in range(width):
        emission[t, y] = 0.0
    plain = rows.value.size == 0
    for j in range(np.uintp(rows.first[begin + t]), np.uintp(rows.first[begin + t + 1])):
        f = np.uintp(rows.feature[j])
        v = 1.0 if plain else rows.value[j]
        for k in range(np.uintp(rows.start[f]), np.uintp(rows.start[f + np.uintp(1)])):
            emission[t, rows.label[k]] += v * weight[k]


@inlined
def _exponentiate(emission: Floats, t: Integer, labels: Integer) -> float:
    """Replace scores by exponentials whose largest is 1; return the largest score."""
    top = emission[t, 0]
    for y in range(1, labels):
        top = max(top, emission[t, y])
    for y in range(labels):
        emission[t, y] = math.exp(max(emission[t, y] - top, _LEAST))
    for y in range(labels, emission.shape[1]):
        emission[t, y] = 0.0
    return top  # type: ignore[no-any-return]


@inlined
def _forward(scratch: Scratch, moves: Moves, n: Integer) -> float:
    """Compute alpha and scale from emissions; return the sum of the logarithms of the scales."""
    emission, alpha, scale, width = scratch.emission, scratch.alpha, scratch.scale, moves.width
    states = alpha.shape[1]
    log_z = 0.0
    for t in range(n):
        if t == 0:
            for s in range(states):
                alpha[0, s] = moves.first[s]
        else:
            for s in range(states):
                alpha[t, s] = 0.0
            for s in range(states):
                a = alpha[t - 1, s]
                if a > 0.0:
                    to = moves.to[s]
                    for y in range(width):
                        alpha[t, to + y] += a * moves.row[s, y]
        total = 0.0
        for h in range(0, states, width):
            for y in range(width):
                alpha[t, h + y] *= emission[t, y]
                total += alpha[t, h + y]
        scale[t] = total
        share = 1.0 / total if total > 0.0 else 0.0
        for s in range(states):
            alpha[t, s] *= share
        log_z += math.log(total) if total > 0.0 else -np.inf
    total = 0.0
    for s in range(states):
        total += alpha[n - 1, s] * moves.last[s]
    share = 1.0 / total if total > 0.0 else 0.0
    for s in range(states):
        scratch.beta[n - 1, s] = moves.last[s] * share
    return log_z + (math.log(total) if total > 0.0 else -np.inf)


@inlined
def _look_ahead(scratch: Scratch, moves: Moves, t: Integer) -> None:
    """Compute the weights of states at position t, for the backward step to the position before."""
    share = 1.0 / scratch.scale[t] if scratch.scale[t] > 0.0 else 0.0
    for h in range(0, scratch.ahead.size, moves.width):
        for y in range(moves.width):
            scratch.ahead[h + y] = scratch.emission[t, y] * scratch.beta[t, h + y] * share


@inlined
def _step_back(scratch: Scratch, moves: Moves, t: Integer) -> None:
    """Compute beta at position t from the weights of states at the next position."""
    ahead = scratch.ahead
    for s in range(ahead.size):
        to = moves.to[s]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for y in range(0, moves.width, 4):
            a += moves.row[s, y] * ahead[to + y]
            b += moves.row[s, y + 1] * ahead[to + y + 1]
            c += moves.row[s, y + 2] * ahead[to + y + 2]
            d += moves.row[s, y + 3] * ahead[to + y + 3]
        scratch.beta[t, s] = (a + b) + (c + d)


@inlined
def _prepare(
    rows: Rows, weight: Floats, moves: Moves, scratch: Scratch, begin: Integer, n: Integer, labels: Integer
) -> float:
    """Compute the scores of a sequence and make the forward pass; return its log-partition function."""
    log_z = 0.0
    for t in range(n):
        _score(rows, weight, begin, t, scratch.emission)
        log_z += _exponentiate(scratch.emission, t, labels)
    return log_z + _forward(scratch, moves, n)


@compiled_loop
def see_labels(first: Ints, feature: Ints32, label: Bytes, seen: Bools) -> None:
    """Mark the labels with which each feature occurs (features, labels)."""
    for t in range(label.size):
        for j in range(first[t], first[t + 1]):
            seen[feature[j], label[t]] = True


@compiled_loop
def count_features(rows: Rows, label: Bytes, found: Floats) -> None:
    """Add the values of all features to the weights of their position's label."""
    plain = rows.value.size == 0
    for t in range(label.size):
        for j in range(rows.first[t], rows.first[t + 1]):
            f = rows.feature[j]
            for k in range(rows.start[f], rows.start[f + 1]):
                if rows.label[k] == label[t]:
                    found[k] += 1.0 if plain else rows.value[j]


@compiled_loop
def expect(
    rows: Rows,
    weight: Floats,
    moves: Moves,
    labels: int,
    low: int,
    high: int,
    scratch: Scratch,
    gradient: Floats,
    expected: Moves,
) -> float:
    """Add the expected counts of features and moves in sequences low, ..., high - 1; return the sum of log Z.

    Moves are counted without their own weight: ``expected.row`` has to be multiplied by ``moves.row``.
    """
    total = 0.0
    emission, alpha, beta, ahead = scratch.emission, scratch.alpha, scratch.beta, scratch.ahead
    width, states, plain = moves.width, alpha.shape[1], rows.value.size == 0
    for sequence in range(low, high):
        begin = rows.begin[sequence]
        n = rows.begin[sequence + 1] - begin
        if n == 0:
            continue
        total += _prepare(rows, weight, moves, scratch, begin, n, labels)
        for s in range(states):
            expected.last[s] += alpha[n - 1, s] * beta[n - 1, s]
        for back in range(1, n):
            t = n - 1 - back
            _look_ahead(scratch, moves, t + 1)
            _step_back(scratch, moves, t)
            for s in range(states):
                a = alpha[t, s]
                if a > 0.0:
                    to = moves.to[s]
                    for y in range(width):
                        expected.row[s, y] += a * ahead[to + y]
        for s in range(states):
            expected.first[s] += alpha[0, s] * beta[0, s]
        for t in range(n):
            for y in range(width):
                emission[t, y] = 0.0
            for h in range(0, states, width):
                for y in range(width):
                    emission[t, y] += alpha[t, h + y] * beta[t, h + y]
            for j in range(np.uintp(rows.first[begin + t]), np.uintp(rows.first[begin + t + 1])):
                f = np.uintp(rows.feature[j])
                v = 1.0 if plain else rows.value[j]
                for k in range(np.uintp(rows.start[f]), np.uintp(rows.start[f + np.uintp(1)])):
                    gradient[k] += v * emission[t, rows.label[k]]
    return total


@compiled_loop
def marginals(
    rows: Rows,
    weight: Floats,
    moves: Moves,
    labels: int,
    low: int,
    high: int,
    scratch: Scratch,
    found: Floats,
    log_z: Floats,
) -> None:
    """Write the probabilities of all labels at all positions of some sequences, and log-partition functions."""
    alpha, beta, width = scratch.alpha, scratch.beta, moves.width
    for sequence in range(low, high):
        begin = rows.begin[sequence]
        n = rows.begin[sequence + 1] - begin
        if n == 0:
            continue
        log_z[sequence] = _prepare(rows, weight, moves, scratch, begin, n, labels)
        for back in range(n):
            t = n - 1 - back
            if back:
                _look_ahead(scratch, moves, t + 1)
                _step_back(scratch, moves, t)
            total = 0.0
            for y in range(labels):
                p = 0.0
                for h in range(0, alpha.shape[1], width):
                    p += alpha[t, h + y] * beta[t, h + y]
                found[begin + t, y] = p
                total += p
            for y in range(labels):
                found[begin + t, y] /= total


@compiled_loop
def score_labels(rows: Rows, weight: Floats, low: int, high: int, found: Floats) -> None:
    """Write the scores of all labels at positions low, ..., high - 1 (positions, padded labels)."""
    for t in range(low, high):
        _score(rows, weight, 0, t, found)


@compiled_loop
def best_labels(
    rows: Rows,
    weight: Floats,
    moves: Moves,
    labels: int,
    low: int,
    high: int,
    scratch: Scratch,
    came: Ints16,
    found: Bytes,
    score: Floats,
) -> None:
    """Write the labels with the highest score of some sequences, and the scores (Viterbi); moves are logarithms."""
    emission, best = scratch.emission, scratch.alpha
    width, states = moves.width, best.shape[1]
    for sequence in range(low, high):
        begin = rows.begin[sequence]
        n = rows.begin[sequence + 1] - begin
        if n == 0:
            continue
        for t in range(n):
            _score(rows, weight, begin, t, emission)
            if t == 0:
                for s in range(states):
                    best[0, s] = moves.first[s]
            else:
                for s in range(states):
                    best[t, s] = -np.inf
                    came[t, s] = -1
                for s in range(states):
                    a = best[t - 1, s]
                    if a > -np.inf:
                        to = moves.to[s]
                        for y in range(labels):
                            here = a + moves.row[s, y]
                            if here > best[t, to + y]:
                                best[t, to + y] = here
                                came[t, to + y] = s
            for h in range(0, states, width):
                for y in range(labels):
                    best[t, h + y] += emission[t, y]
        at, top = 0, -np.inf
        for s in range(states):
            here = best[n - 1, s] + moves.last[s]
            if here > top:
                top, at = here, s
        score[sequence] = top
        for back in range(n):
            t = n - 1 - back
            found[begin + t] = at % width
            at = came[t, at]


@compiled_loop
def several_best(
    emission: Floats, moves: Moves, labels: int, best: Floats, came: Ints, found: Bytes, score: Floats
) -> None:
    """Write the k sequences with the highest scores in order, given scores of labels; -inf if there are fewer.

    ``best`` (positions, states, k) and ``came`` are scratch space: the scores of the k best paths to every state, and
    state * k + rank of their predecessors.
    """
    n, states, many = best.shape
    width = moves.width
    best[:] = -np.inf
    for s in range(states):
        if s % width < labels:
            best[0, s, 0] = moves.first[s] + emission[0, s % width]
    for t in range(1, n):
        for s in range(states):
            to = moves.to[s]
            for y in range(labels):
                step = moves.row[s, y] + emission[t, y]
                if step == -np.inf:
                    continue
                for r in range(many):
                    _insert(best[t, to + y], came[t, to + y], best[t - 1, s, r] + step, s * many + r)
    ends, where = score, came[0, 0]  # this row is free, because the first position has no predecessors
    ends[:] = -np.inf
    for s in range(states):
        for r in range(many):
            _insert(ends, where, best[n - 1, s, r] + moves.last[s], s * many + r)
    for k in range(many):
        if ends[k] == -np.inf:
            continue
        at = where[k]
        for back in range(n):
            t = n - 1 - back
            found[k, t] = (at // many) % width
            if t:
                at = came[t, at // many, at % many]


@inlined
def _insert(best: Floats, came: Ints, score: float, source: Integer) -> None:
    """Insert a path into the sorted list of the best ones, if it is one of them, after equal ones."""
    many = best.size
    if score > best[many - 1]:
        r = many - 1
        while r > 0 and score > best[r - 1]:
            best[r] = best[r - 1]
            came[r] = came[r - 1]
            r -= 1
        best[r] = score
        came[r] = source


@compiled_loop
def pattern_probabilities(
    rows: Rows,
    weight: Floats,
    moves: Moves,
    labels: int,
    sequence: Ints,
    start: Ints,
    length: Ints,
    pattern: Ints,
    allowed: Bools,
    scratch: Scratch,
    found: Floats,
) -> None:
    """Write the probabilities that labels are in given sets from position start - 1 to start + length.

    Spans are sorted by sequence. ``allowed`` (patterns, 6, labels) has the sets of a pattern: before the
    span, at its only position, at its first, inside, at its last, and after it.
    """
    alpha, beta, width, ahead = scratch.alpha, scratch.beta, moves.width, scratch.ahead
    states, passed = alpha.shape[1], -1
    for span in range(sequence.size):
        begin = rows.begin[sequence[span]]
        n = rows.begin[sequence[span] + 1] - begin
        if sequence[span] != passed:
            passed = sequence[span]
            _prepare(rows, weight, moves, scratch, begin, n, labels)
            for back in range(1, n):
                _look_ahead(scratch, moves, n - back)
                _step_back(scratch, moves, n - 1 - back)
        low, high, sets = start[span], start[span] + length[span], allowed[pattern[span]]
        now, nxt = ahead, scratch.beta[n]  # the spare row
        entry = max(low - 1, 0)
        for s in range(states):
            now[s] = alpha[entry, s]
        for t in range(entry, min(high, n - 1) + 1):
            if t > entry:
                for s in range(states):
                    nxt[s] = 0.0
                for s in range(states):
                    if now[s] > 0.0:
                        to = moves.to[s]
                        for y in range(width):
                            nxt[to + y] += now[s] * moves.row[s, y]
                for h in range(0, states, width):
                    for y in range(width):
                        now[h + y] = nxt[h + y] * scratch.emission[t, y] / scratch.scale[t]
            for h in range(0, states, width):
                for y in range(labels):
                    if t < low:
                        good = sets[0, y]
                    elif t >= high:
                        good = sets[5, y]
                    elif high - low == 1:
                        good = sets[1, y]
                    elif t == low:
                        good = sets[2, y]
                    elif t < high - 1:
                        good = sets[3, y]
                    else:
                        good = sets[4, y]
                    if not good:
                        now[h + y] = 0.0
        end, total = min(high, n - 1), 0.0
        for s in range(states):
            total += now[s] * beta[end, s]
        found[span] = total
