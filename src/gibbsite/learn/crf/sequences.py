"""Sequences as arrays of numbered features, and the vocabulary that numbers the names of features."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32
from gibbsite.errors import ModelError


@dataclass(frozen=True)
class Sequences:
    """Positions of all sequences, one sequence after another, with their features."""

    begin: Ints  # (sequences + 1,): position at which every sequence begins, and the number of positions
    first: Ints  # (positions + 1,): where the features of every position begin
    feature: Ints32  # numbers of the features
    value: Floats  # their values; empty if all are 1

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
        """Cut the sequences into at most ``many`` ranges with about equally many positions."""
        wanted = np.arange(1, many) * self.n_positions / many
        cuts = np.unique([0, *np.searchsorted(self.begin, wanted), len(self)]).tolist()
        return list(pairwise(cuts))

    def take(self, from_sequence: int, to_sequence: int) -> Sequences:
        """Return a range of sequences."""
        begin = self.begin[from_sequence : to_sequence + 1]
        first = self.first[begin[0] : begin[-1] + 1]
        inside = slice(int(first[0]), int(first[-1]))
        value = self.value[inside] if self.value.size else self.value
        return Sequences(begin - begin[0], first - first[0], self.feature[inside], value)


BIAS = "(bias)"


class Vocabulary:
    """The names of features with their numbers, and a reader of sequences.

    ``names`` are the known names; others are ignored unless the vocabulary grows. ``joint`` stands between the name and
    the value of a feature whose value is a text.
    """

    def __init__(self, names: Iterable[str] = (), joint: str = "=") -> None:
        self.numbers: dict[str, int] = {name: k for k, name in enumerate(names)}
        self.joint = joint

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def names(self) -> list[str]:
        """All names, by number."""
        return list(self.numbers)

    def read(self, given: Any, *, grow: bool = False, bias: bool = False) -> Sequences:
        """Return sequences as arrays.

        A sequence is an array (positions, features) of numbers, or a list of positions, each with its features: names,
        or a mapping from names to numbers (the value), flags, or texts (the feature "name=text"). If ``grow`` is set,
        unknown names are added; otherwise they are ignored. With ``bias``, every position gets the feature "(bias)".
        """
        begin, first = array("q", [0]), array("q", [0])  # lists would take far more memory
        features, values = array("i"), array("d")
        for s, sequence in enumerate(_iterate(given, "X must be a list of sequences")):
            rows = _dense_rows(sequence) if isinstance(sequence, np.ndarray) else sequence
            for t, position in enumerate(_iterate(rows, f"sequence {s} must be a list of positions")):
                for name, number_given in _name_values(position, s, t, self.joint):
                    number = self._number(name, grow)
                    if number is not None:
                        features.append(number)
                        values.append(number_given)
                if bias and (number := self._number(BIAS, grow)) is not None:
                    features.append(number)
                    values.append(1.0)
                first.append(len(features))
            begin.append(len(first) - 1)
        value: Floats = np.frombuffer(values) if len(values) else np.zeros(0)
        if (value == 1.0).all():
            value = np.zeros(0)
        return Sequences(np.array(begin, np.int64), np.array(first, np.int64), np.array(features, np.int32), value)

    def _number(self, name: str, grow: bool) -> int | None:
        return self.numbers.setdefault(name, len(self.numbers)) if grow else self.numbers.get(name)


def _iterate(given: Any, otherwise: str) -> Iterable[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"{otherwise}, got {given!r:.80}.")
    return given


def _dense_rows(table: Array) -> list[dict[str, float]]:
    if table.ndim != 2:
        raise ModelError(f"a sequence of numbers must have shape (positions, features), got {table.shape}.")
    names = [str(k) for k in range(table.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in table.tolist()]


def _name_values(position: Any, s: int, t: int, joint: str) -> Iterable[tuple[str, float]]:
    if isinstance(position, Mapping):
        for name, value in position.items():
            if isinstance(value, str):
                yield f"{name}{joint}{value}", 1.0
            elif isinstance(value, bool | np.bool_):
                if value:
                    yield str(name), 1.0
            else:
                yield str(name), _number(name, value, s, t)
        return
    where = f"position {t} of sequence {s} must be a mapping or a list of names of features"
    for name in _iterate(position, where):
        if not isinstance(name, str):
            raise ModelError(f"{where}, but one is {name!r:.80}.")
        yield name, 1.0


def _number(name: Any, value: Any, s: int, t: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(
            f"the feature {name!r} of position {t} of sequence {s} is {value!r:.80}; "
            "values must be finite numbers, flags or texts."
        )
    return number


def read_labels(given: Any, sequences: Sequences) -> list[list[str]]:
    """Return the labels of sequences; refuse lists of labels of the wrong length."""
    rows = [list(_iterate(row, f"labels {s} must be a list")) for s, row in enumerate(given)]
    if len(rows) != len(sequences):
        raise ModelError(f"there are {len(sequences)} sequences and {len(rows)} rows of labels.")
    lengths: Sequence[int] = np.diff(sequences.begin).tolist()
    for s, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if len(row) != length:
            raise ModelError(f"sequence {s} has {length} positions and {len(row)} labels.")
    return rows
