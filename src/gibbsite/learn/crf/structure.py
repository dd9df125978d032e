"""The transitions between labels and their weights.

A chain of order 1 scores pairs of neighbouring labels; one of order 2 also scores triples. Compiled code handles both
in the same way: its states are pairs (history, label), where the history is the label before in chains of order 2, and
every state leads to a row of labels. Labels are padded to a multiple of four, for vector instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Integers, Ints
from gibbsite.errors import ModelError


class Moves(NamedTuple):
    """Scores of the moves between states, for compiled code."""

    row: Floats  # (states, width): score, or its exponential, of moving from a state to a label
    # first, last: (states,): the same for the first and the last position
    first: Floats
    last: Floats
    to: Ints  # (states,): the first of the states to which a state leads
    width: int  # number of labels, padded


@dataclass(frozen=True)
class Structure:
    """The allowed transitions between labels, and the layout of their weights.

    There are ``size`` weights: those of pairs, then of triples, then of first and last labels.
    """

    pairs: Bools  # (labels, labels): whether a label may follow another
    # begins, ends: (labels,): whether a label may be the first one, and the last one
    begins: Bools
    ends: Bools
    order: int = 1  # {1, 2}: whether a weight belongs to pairs of labels, or to triples as well
    boundaries: bool = True  # whether there are weights for the first and the last label
    seen: Bools | None = None  # pairs that have a weight; others score 0

    @property
    def labels(self) -> int:
        """Number of labels."""
        return len(self.begins)

    @property
    def width(self) -> int:
        """Number of labels, padded."""
        return -(-self.labels // 4) * 4

    @property
    def histories(self) -> int:
        """Number of histories; the last one of order 2 belongs to the first position."""
        return 1 if self.order == 1 else self.labels + 1

    @property
    def states(self) -> int:
        """Number of states of compiled code."""
        return self.histories * self.width

    @property
    def n_pairs(self) -> int:
        """Number of weights of pairs."""
        return int(self._weighted.sum())

    @property
    def _weighted(self) -> Bools:
        return self.pairs if self.seen is None else self.pairs & self.seen

    @property
    def _triples(self) -> Bools:
        weighted = self._weighted
        return weighted[:, :, None] & weighted[None, :, :]

    @property
    def size(self) -> int:
        """Number of weights."""
        triples = int(self._triples.sum()) if self.order == 2 else 0
        return self.n_pairs + triples + (2 * self.labels if self.boundaries else 0)

    def tables(self, weights: Floats) -> tuple[Floats, Floats | None, Floats, Floats]:
        """Return the scores of pairs, of triples (order 2), and of the first and the last label; -inf if forbidden."""
        n, pairs, triples = self.n_pairs, np.zeros(self.pairs.shape), None
        pairs[self._weighted] = weights[:n]
        pairs[~self.pairs] = -np.inf
        if self.order == 2:
            here = self._triples
            triples = np.zeros(here.shape)
            triples[here] = weights[n : n + int(here.sum())]
            n += int(here.sum())
        first, last = np.zeros(self.labels), np.zeros(self.labels)
        if self.boundaries:
            first, last = weights[n : n + self.labels].copy(), weights[n + self.labels :].copy()
        first[~self.begins], last[~self.ends] = -np.inf, -np.inf
        return pairs, triples, first, last

    def moves(self, weights: Floats, exponentials: bool) -> Moves:
        """Return the scores of all moves, or their exponentials."""
        pairs, triples, first, last = self.tables(weights)
        k, width = self.labels, self.width
        rows = np.full((self.histories, width, width), -np.inf)
        if triples is None:
            rows[0, :k, :k] = pairs
            to = np.zeros(self.states, np.int64)
        else:
            rows[:k, :k, :k] = np.where(self.pairs[:, :, None], pairs[None] + triples, -np.inf)
            rows[k, :k, :k] = pairs
            to = np.tile(np.minimum(np.arange(width), k - 1) * width, self.histories)
        begin, end = np.full((2, self.histories, width), -np.inf)
        begin[-1, :k] = first
        end[:, :k] = last
        scores = Moves(rows.reshape(self.states, width), begin.ravel(), end.ravel(), to, width)
        if not exponentials:
            return scores
        return scores._replace(row=np.exp(scores.row), first=np.exp(scores.first), last=np.exp(scores.last))

    def gather(self, rows: Floats, first: Floats, last: Floats) -> Floats:
        """Return the expected statistics that belong to the weights, given the expected counts of moves."""
        k, width = self.labels, self.width
        cube = rows.reshape(self.histories, width, width)[:, :k, :k]
        found = [cube.sum(axis=0)[self._weighted]]
        if self.order == 2:
            found.append(cube[:k][self._triples])
        if self.boundaries:
            found += [one.reshape(self.histories, width)[:, :k].sum(axis=0) for one in (first, last)]
        return np.concatenate(found)

    def count(self, labels: Integers, begin: Ints) -> Floats:
        """Return the statistics that belong to the weights in labelled sequences."""
        k, width = self.labels, self.width
        rows, first, last = np.zeros((self.states, width)), np.zeros(self.states), np.zeros(self.states)
        is_first = np.zeros(len(labels), bool)
        is_first[begin[:-1]] = True
        history = np.zeros(len(labels), np.int64)
        if self.order == 2:
            history[1:] = labels[:-1]
            history[is_first] = k
        state = history * width + labels
        inner = np.flatnonzero(~is_first)
        np.add.at(rows, (state[inner - 1], labels[inner]), 1.0)
        np.add.at(first, state[begin[:-1]], 1.0)
        np.add.at(last, state[begin[1:] - 1], 1.0)
        return self.gather(rows, first, last)

    def check(self, labels: Integers, begin: Ints, names: list[str]) -> None:
        """Refuse labelled sequences with transitions that are not allowed."""
        inner = np.ones(len(labels), bool)
        inner[begin[:-1]] = False
        at = np.flatnonzero(inner)
        wrong = at[~self.pairs[labels[at - 1], labels[at]]]
        if wrong.size:
            t = int(wrong[0])
            raise ModelError(
                f"{names[labels[t]]!r} follows {names[labels[t - 1]]!r} in sequence "
                f"{int(np.searchsorted(begin, t, 'right')) - 1}, which is not allowed; correct the labels."
            )
        for flags, at, where in ((self.begins, begin[:-1], "first"), (self.ends, begin[1:] - 1, "last")):
            bad = np.flatnonzero(~flags[labels[at]])
            if bad.size:
                raise ModelError(
                    f"{names[labels[at[bad[0]]]]!r} is the {where} label of sequence {int(bad[0])}, which is "
                    "not allowed; correct the labels."
                )
