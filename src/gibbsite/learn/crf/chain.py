"""A conditional random field on chains: its distribution over labels given features, and its likelihood.

    p(labels | features) is proportional to exp(sum of the weights of (feature, label) and of successive labels).

References
----------
.. [1] Lafferty, J., McCallum, A. and Pereira, F. (2001). Conditional random fields. ICML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gibbsite._common.arrays import Bools, Bytes, Floats, Ints
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.learn.crf import passes
from gibbsite.learn.crf.labels import allowed_moves
from gibbsite.learn.crf.passes import Rows, Scratch, count_features, expect, make_scratch
from gibbsite.learn.crf.quasi_newton import Minimum, minimise
from gibbsite.learn.crf.sequences import Sequences
from gibbsite.learn.crf.structure import Moves, Structure
from gibbsite.models import FactorGraph, TableFactors
from gibbsite.sampling.executor import Threads

PARTS = 4  # parts of the data, which is the largest number of threads


@dataclass(frozen=True)
class Weights:
    """The layout of the weights: those of features with labels, and those of successive labels."""

    start: Ints  # (features + 1,): where the weights of a feature begin
    label: Bytes  # the label of each weight
    structure: Structure  # successive labels; their weights come last

    @property
    def size(self) -> int:
        """Number of all weights."""
        return len(self.label) + self.structure.size

    def rows(self, sequences: Sequences) -> Rows:
        """Return sequences and weights together, for compiled code."""
        return Rows(sequences.begin, sequences.first, sequences.feature, sequences.value, self.start, self.label)

    def split(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the weights of features, and those of successive labels."""
        n = len(self.label)
        return x[:n], x[n:]


@dataclass
class _Part:
    """The sequences that one thread processes, and its sums."""

    low: int
    high: int
    scratch: Scratch
    gradient: Floats
    expected: Moves


@dataclass
class Objective:
    """The objective as a function of all weights: minus the log-likelihood plus l2 times the squared norm."""

    weights: Weights  # their layout
    sequences: Sequences  # the data
    labels: Bytes  # (positions,): their labels
    l2: float  # weight of the squared norm
    executor: Threads  # threads
    _parts: list[_Part] = field(init=False)

    def __post_init__(self) -> None:
        structure, n = self.weights.structure, len(self.weights.label)
        moves = structure.moves(np.zeros(structure.size), exponentials=True)
        self._rows = self.weights.rows(self.sequences)
        self._observed = self._count()
        self._parts = []
        for low, high in self.sequences.parts(PARTS):
            longest = self.sequences.take(low, high).longest
            empty = (np.zeros_like(each) for each in (moves.row, moves.first, moves.last))
            expected = Moves(next(empty), next(empty), next(empty), moves.to, moves.width)
            self._parts.append(_Part(low, high, make_scratch(longest, moves), np.zeros(n), expected))

    def _count(self) -> Floats:
        """Return the sufficient statistics of all weights in the labelled data."""
        found = np.zeros(len(self.weights.label))
        count_features(self._rows, self.labels, found)
        return np.concatenate([found, self.weights.structure.count(self.labels, self.sequences.begin)])

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        structure = self.weights.structure
        weight, chain = self.weights.split(x)
        moves = structure.moves(chain, exponentials=True)

        def one(part: _Part) -> float:
            part.gradient[:] = 0.0
            for each in part.expected[:3]:
                each[:] = 0.0
            return float(
                expect(
                    self._rows,
                    weight,
                    moves,
                    structure.labels,
                    part.low,
                    part.high,
                    part.scratch,
                    part.gradient,
                    part.expected,
                )
            )

        log_z = sum(self.executor.map(one, self._parts))
        if not np.isfinite(log_z):
            raise ModelError("no labelling of some sequence is allowed; allow more transitions.")
        rows = np.sum([part.expected.row for part in self._parts], axis=0)
        first = np.sum([part.expected.first for part in self._parts], axis=0)
        last = np.sum([part.expected.last for part in self._parts], axis=0)
        n = len(weight)
        gradient = np.empty(x.size)
        np.subtract(self._parts[0].gradient, self._observed[:n], out=gradient[:n])
        for part in self._parts[1:]:
            gradient[:n] += part.gradient
        gradient[n:] = structure.gather(rows * moves.row, first, last) - self._observed[n:]
        penalised = self.l2 * x
        value = log_z + float(np.einsum("i,i->", x, penalised - self._observed))
        gradient += 2.0 * penalised
        return value, gradient


MOST_LABELS = 255


@dataclass(frozen=True)
class Chain:
    """A conditional random field with its weights."""

    labels: tuple[str, ...]  # names of the labels
    weights: Weights  # the layout of the weights
    x: Floats  # their values: of features, then of successive labels

    @property
    def n_features(self) -> int:
        """Number of features that have weights."""
        return len(self.weights.start) - 1

    @cached_property
    def log_moves(self) -> Moves:
        """Scores of successive labels."""
        return self.weights.structure.moves(self.weights.split(self.x)[1], exponentials=False)

    @cached_property
    def moves(self) -> Moves:
        """Exponentials of the scores of successive labels."""
        return self.weights.structure.moves(self.weights.split(self.x)[1], exponentials=True)

    @property
    def weight(self) -> Floats:
        """Weights of features."""
        return self.weights.split(self.x)[0]

    def best(self, sequences: Sequences, threads: int = 1) -> tuple[Bytes, Floats]:
        """Return the most probable labels of all positions (Viterbi), and the score of every sequence."""
        rows, moves = self.weights.rows(sequences), self.log_moves
        found, score = np.zeros(sequences.n_positions, np.uint8), np.zeros(len(sequences))

        def one(part: tuple[int, int]) -> None:
            longest = sequences.take(*part).longest
            came = np.zeros((longest, len(moves.first)), np.int16)
            scratch = passes.make_scratch(longest, moves)
            passes.best_labels(rows, self.weight, moves, len(self.labels), *part, scratch, came, found, score)

        _on_threads(one, sequences, threads)
        _refuse_impossible(score)
        return found, score

    def marginals(self, sequences: Sequences, threads: int = 1) -> tuple[Floats, Floats]:
        """Return the probabilities of labels (positions, labels), and log-partition functions."""
        rows, moves = self.weights.rows(sequences), self.moves
        found, log_z = np.zeros((sequences.n_positions, len(self.labels))), np.zeros(len(sequences))

        def one(part: tuple[int, int]) -> None:
            scratch = passes.make_scratch(sequences.take(*part).longest, moves)
            passes.marginals(rows, self.weight, moves, len(self.labels), *part, scratch, found, log_z)

        _on_threads(one, sequences, threads)
        _refuse_impossible(log_z)
        return found, log_z

    def scores(self, sequences: Sequences) -> Floats:
        """Return the scores of labels from the features of each position alone (positions, labels)."""
        found = np.zeros((sequences.n_positions, self.weights.structure.width))
        passes.score_labels(self.weights.rows(sequences), self.weight, 0, sequences.n_positions, found)
        return found[:, : len(self.labels)]

    def score(self, sequences: Sequences, codes: Bytes) -> Floats:
        """Return the score (log-potential) of given labels of every sequence; -inf if they are forbidden."""
        structure = self.weights.structure
        pairs, triples, first, last = structure.tables(self.weights.split(self.x)[1])
        at = self.scores(sequences)[np.arange(len(codes)), codes]
        begin = sequences.begin
        inner = np.ones(len(codes), bool)
        inner[begin[:-1][np.diff(begin) > 0]] = False
        late = np.flatnonzero(inner)
        at[late] += pairs[codes[late - 1], codes[late]]
        if triples is not None:
            inner[late[~inner[late - 1]]] = False
            late = np.flatnonzero(inner)
            at[late] += triples[codes[late - 2], codes[late - 1], codes[late]]
        full = np.flatnonzero(np.diff(begin))
        at[begin[full]] += first[codes[begin[full]]]
        at[begin[full + 1] - 1] += last[codes[begin[full + 1] - 1]]
        whole = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(at), at, 0.0))])
        forbidden = np.concatenate([[0], np.cumsum(~np.isfinite(at))])
        total: Floats = whole[begin[1:]] - whole[begin[:-1]]
        total[forbidden[begin[1:]] > forbidden[begin[:-1]]] = -np.inf
        return total

    def several_best(self, sequences: Sequences, many: int) -> list[tuple[Bytes, Floats]]:
        """Return the most probable labellings of each sequence in order, with their scores."""
        moves, scores = self.log_moves, self.scores(sequences)
        padded = np.zeros((sequences.n_positions, moves.width))
        padded[:, : len(self.labels)] = scores
        answers = []
        for low, high in zip(sequences.begin[:-1].tolist(), sequences.begin[1:].tolist(), strict=True):
            n, states = high - low, len(moves.first)
            if n == 0:
                answers.append((np.zeros((1, 0), np.uint8), np.zeros(1)))
                continue
            found, score = np.zeros((many, n), np.uint8), np.zeros(many)
            best, came = np.zeros((n, states, many)), np.zeros((n, states, many), np.int64)
            passes.several_best(padded[low:high], moves, len(self.labels), best, came, found, score)
            there = int((score > -np.inf).sum())
            answers.append((found[:there], score[:there]))
        return answers

    def probabilities_of(
        self, sequences: Sequences, sequence: Ints, start: Ints, length: Ints, pattern: Ints, sets: Bools
    ) -> Floats:
        """Return the probabilities that the labels of spans are in the sets of a pattern.

        ``sequence``, ``start``, ``length`` and ``pattern`` (spans,) have the place of each span within its sequence,
        and the pattern of its labels. ``sets`` (patterns, 6, labels) marks the labels that a pattern allows before a
        span, at its only position, at its first one, inside, at its last one, and after it.
        """
        order = np.argsort(sequence, kind="stable")
        found = np.zeros(len(order))
        scratch = passes.make_scratch(sequences.longest, self.moves)
        arrays: Any = [np.ascontiguousarray(each[order], np.int64) for each in (sequence, start, length, pattern)]
        arguments: Any = (self.weights.rows(sequences), self.weight, self.moves, len(self.labels), *arrays)
        compute: Any = passes.pattern_probabilities
        compute(*arguments, sets, scratch, found)
        answer = np.empty(len(order))
        answer[order] = np.clip(found, 0.0, 1.0)
        return answer

    def log_likelihood(self, sequences: Sequences, codes: Bytes) -> float:
        """Return the logarithm of the probability of given labels."""
        return float(self.score(sequences, codes).sum() - self.marginals(sequences)[1].sum())

    def factor_graph(self, sequences: Sequences) -> FactorGraph:
        """Return the distribution of all labels as a model, with a site for each position."""
        return FactorGraph(sequences.n_positions, groups=self.factors(sequences), states=self.labels)

    def factors(self, sequences: Sequences) -> list[TableFactors]:
        """Return the factors of all positions: "labels" has their scores, "pairs" those of neighbours."""
        pairs, triples, first, last = self.weights.structure.tables(self.weights.split(self.x)[1])
        own, begin = self.scores(sequences), sequences.begin
        full = np.flatnonzero(np.diff(begin))
        own[begin[full]] += first
        own[begin[full + 1] - 1] += last
        groups = [TableFactors(np.arange(len(own))[:, None], own, name="labels")]
        is_first = np.zeros(len(own), bool)
        is_first[begin[full]] = True
        late = np.flatnonzero(~is_first)
        if late.size:
            groups.append(TableFactors(np.stack([late - 1, late], axis=1), pairs[None], name="pairs"))
        if triples is not None and (later := late[~is_first[late - 1]]).size:
            scopes = np.stack([later - 2, later - 1, later], axis=1)
            groups.append(TableFactors(scopes, triples[None], name="triples"))
        return groups


def _on_threads(one: Callable[[tuple[int, int]], None], sequences: Sequences, threads: int) -> None:
    """Apply a function to parts of the sequences on some threads."""
    with Threads(threads) as executor:
        executor.map(one, sequences.parts(PARTS if threads > 1 else 1))


def _refuse_impossible(score: Floats) -> None:
    """Raise an error if a sequence has no allowed labelling."""
    if not np.isfinite(score).all():
        raise ModelError(
            f"no labelling of sequence {int(np.argmin(np.isfinite(score)))} is allowed; allow more pairs of labels."
        )


@dataclass(frozen=True)
class Training:
    """A trained chain and the result of the optimiser."""

    chain: Chain
    minimum: Minimum


def fit_chain(
    sequences: Sequences,
    codes: Bytes,
    labels: Sequence[str],
    n_features: int,
    *,
    scheme: str | None = None,
    order: int = 1,
    l1: float = 0.0,
    l2: float = 1.0,
    all_states: bool = False,
    all_pairs: bool = True,
    boundaries: bool = True,
    iterations: int = 100,
    tolerance: float = 1e-5,
    flatness: float = 1e-5,
    threads: int = 1,
    watch: Callable[[int, float], bool] | None = None,
    allowed: tuple[Any, Any, Any] | None = None,
) -> Training:
    """Train the weights of a chain on labelled sequences by maximum likelihood.

    ``codes`` (positions,) are the labels as numbers, and ``labels`` are their names. ``scheme`` is "bio", "bioes" or
    "io" and determines the allowed transitions, by default all; ``allowed`` has Boolean arrays instead (pairs, first
    and last labels). ``order`` is 1 or 2, the length of the memory of the chain. The penalties are l1 times the sum of
    absolute weights and l2 times the sum of their squares. With ``all_states`` and ``all_pairs``, features have weights
    for all labels, and all allowed pairs of labels have weights, instead of only those that occur. With ``boundaries``,
    the first and the last label of a sequence have weights. ``iterations``, ``tolerance``, ``flatness`` and ``watch``
    are those of :func:`gibbsite.learn.crf.quasi_newton.minimise`; at most four threads are used.

    Returns
    -------
    Training
        The chain, and the result of the optimiser.
    """
    if order not in (1, 2):
        raise ArgumentError(f"order must be 1 or 2, got {order!r}.")
    if not 1 <= len(labels) <= MOST_LABELS:
        raise ArgumentError(f"a chain has 1 to {MOST_LABELS} labels, got {len(labels)}.")
    pairs, begins, ends = allowed_moves(labels, scheme) if allowed is None else allowed
    seen = None
    if not all_pairs:
        seen = np.zeros(pairs.shape, bool)
        inner = np.ones(len(codes), bool)
        inner[sequences.begin[:-1]] = False
        at = np.flatnonzero(inner)
        seen[codes[at - 1], codes[at]] = True
    structure = Structure(pairs, begins, ends, order, boundaries, seen)
    structure.check(codes, sequences.begin, list(labels))
    weights = _lay_out_weights(sequences, codes, len(labels), n_features, structure, all_states)
    with Threads(threads) as executor:
        objective = Objective(weights, sequences, codes, l2, executor)
        minimum = minimise(
            objective,
            np.zeros(weights.size),
            l1=l1,
            iterations=iterations,
            tolerance=tolerance,
            flatness=flatness,
            watch=watch,
        )
    return Training(Chain(tuple(labels), weights, minimum.x), minimum)


def _lay_out_weights(
    sequences: Sequences, codes: Bytes, labels: int, n_features: int, structure: Structure, all_states: bool
) -> Weights:
    """Give each feature a weight for every label or, without ``all_states``, for the labels that it occurs with."""
    seen = np.full((n_features, labels), all_states)
    if not all_states:
        passes.see_labels(sequences.first, sequences.feature, codes, seen)
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    return Weights(start, np.nonzero(seen)[1].astype(np.uint8), structure)


def prune(chain: Chain) -> tuple[Chain, Ints]:
    """Return a chain without zero weights of features, and the remaining features."""
    weight, rest = chain.weights.split(chain.x)
    keep = weight != 0.0
    features = np.repeat(np.arange(chain.n_features), np.diff(chain.weights.start))[keep]
    left, many = np.unique(features, return_counts=True)
    start = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
    weights = Weights(start, chain.weights.label[keep], chain.weights.structure)
    return Chain(chain.labels, weights, np.concatenate([weight[keep], rest])), left
