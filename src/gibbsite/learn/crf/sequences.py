"""Sequences as arrays: which features every position has, and where sequences end."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32


@dataclass(frozen=True)
class Sequences:
    """Positions of all sequences, one after the other, with their features."""

    begin: Ints  # (sequences + 1,): position at which every sequence begins, and the number of positions
    first: Ints  # (positions + 1,): where the features of every position begin
    feature: Ints32  # numbers of the features
    value: Floats  # their values; empty where all are 1

    def __len__(self) -> int:
        return len(self.begin) - 1

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences."""
        return int(self.begin[-1])

    @property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return int(np.diff(self.begin).max(initial=0))

    def parts(self, many: int) -> list[tuple[int, int]]:
        """Cut the sequences into at most so many ranges of about equally many positions."""
        wanted = np.arange(1, many) * self.n_positions / many
        cuts = np.unique([0, *np.searchsorted(self.begin, wanted), len(self)]).tolist()
        return list(pairwise(cuts))

    def take(self, from_sequence: int, to_sequence: int) -> Sequences:
        """Return some sequences in a row."""
        begin = self.begin[from_sequence : to_sequence + 1]
        first = self.first[begin[0] : begin[-1] + 1]
        inside = slice(int(first[0]), int(first[-1]))
        value = self.value[inside] if self.value.size else self.value
        return Sequences(begin - begin[0], first - first[0], self.feature[inside], value)
