"""The negative log-likelihood of labelled sequences with its gradient, on threads.

Sequences are cut into a fixed number of parts, each with a gradient of its own that are added up in order:
the numbers are the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gibbsite._common.arrays import Bytes, Floats, Ints
from gibbsite.errors import ModelError
from gibbsite.learn.crf.passes import Rows, Scratch, count_features, expect, make_scratch
from gibbsite.learn.crf.sequences import Sequences
from gibbsite.learn.crf.structure import Moves, Structure
from gibbsite.sampling.executor import Threads

PARTS = 4  # of the data; more threads than that are not used


@dataclass(frozen=True)
class Weights:
    """Which weights there are: of features with labels, and of labels in a row."""

    start: Ints  # (features + 1,): where the weights of a feature begin
    label: Bytes  # the label of each
    structure: Structure  # labels in a row; their weights come last

    @property
    def size(self) -> int:
        """Number of all weights."""
        return len(self.label) + self.structure.size

    def rows(self, sequences: Sequences) -> Rows:
        """Return sequences and weights together, for compiled code."""
        return Rows(sequences.begin, sequences.first, sequences.feature, sequences.value, self.start, self.label)

    def split(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the weights of features, and those of labels in a row."""
        n = len(self.label)
        return x[:n], x[n:]


@dataclass
class _Part:
    """Sequences that one thread passes over, and its sums."""

    low: int
    high: int
    scratch: Scratch
    gradient: Floats
    expected: Moves


@dataclass
class Objective:
    """Function of all weights: minus the log-likelihood, plus l2 times the squared norm."""

    weights: Weights  # which there are
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
        """Count what the weights score in the labelled data."""
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
            raise ModelError("the labels that are allowed leave no labelling of some sequence; allow more.")
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
