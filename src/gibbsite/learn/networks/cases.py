"""Cases: the states of some sites, a row a case, where cells may be missing."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_list, checked, is_number, is_path
from gibbsite._common.arrays import Bools, Floats, Ints, Ints16
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, escaped, nearest
from gibbsite.errors import ArgumentError
from gibbsite.learn.networks.files import number_values, read_columns
from gibbsite.models.domain import MOST_STATES, Label

#: Texts of cells that are missing, unless a given state is called so.
MISSING = ("", "NA", "N/A", "NaN", "nan", "?", "*", "None", "<NA>")
_MOST_NUMBERS = 50  # different numbers that are not whole, above which a column is a measurement


@dataclass(frozen=True, eq=False)
class Cases:
    """States of some sites, a row a case.

    Attributes
    ----------
    names : tuple of str
        The sites, one for each column.
    states : tuple of tuples
        The state labels of each site.
    codes : int16 array (sites, rows)
        Numbers of states, -1 where a cell is missing.
    weights : float array (rows,)
        How often each case counts.

    Examples
    --------
    >>> read_cases({"rain": ["no", "yes", ""], "grass": ["dry", "wet", "wet"]})
    Cases(3 cases of 2 sites, 1 missing cell)
    """

    names: tuple[str, ...]
    states: tuple[tuple[Label, ...], ...]
    codes: Ints16
    weights: Floats

    @property
    def cards(self) -> Ints:
        """Numbers of states."""
        return np.array([len(labels) for labels in self.states], np.int64)

    @property
    def n_cases(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return int((self.codes < 0).sum()) if self.codes.size and self.codes.min() < 0 else 0

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def rows(self, chosen: Bools | Ints) -> Cases:
        """Return some of the cases."""
        return Cases(self.names, self.states, np.ascontiguousarray(self.codes[:, chosen]), self.weights[chosen])

    def joined(self) -> Cases:
        """Return each different case once, with the sum of its weights, if that is much shorter."""
        sizes = self.cards + 1
        if not len(sizes) or float(np.log2(sizes).sum()) > 62.0:
            return self
        keys = np.zeros(self.n_cases, np.int64)
        for code, size in zip(self.codes, sizes.tolist(), strict=True):
            keys *= size
            keys += code
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        if 2 * len(first) > self.n_cases:
            return self
        weights = np.asarray(np.bincount(which, self.weights, len(first)), np.float64)
        return Cases(self.names, self.states, np.ascontiguousarray(self.codes[:, first]), weights)

    def __repr__(self) -> str:
        missing = f", {self.n_missing:,} missing cell{'s' * (self.n_missing != 1)}" if self.n_missing else ""
        return f"Cases({self.n_cases:,} cases of {len(self.names)} sites{missing})"


@checked
def read_cases(data: Any, *, states: Mapping[str, Any] | None = None, weights: Any = None) -> Cases:
    """Read cases from a data frame, columns by name, or a CSV file.

    Parameters
    ----------
    data : pandas.DataFrame, mapping of str to columns, path, or Cases
        Texts, whole numbers or categories, a row a case. A file has names of columns in its first row, and commas,
        semicolons or tabs between cells; it may be packed (.gz). Empty cells, NA, NaN, ?, * and None are missing.
    states : mapping of str to sequence of labels, optional
        The states of some columns, in order; other columns have the states that occur, numbers in their order and
        texts by the alphabet. Sites that have no column are hidden: all their cells are missing.
    weights : str or array (rows,), optional
        How often each case counts: the name of a column, or numbers.

    Returns
    -------
    Cases

    Examples
    --------
    >>> cases = read_cases({"rain": ["no", "yes", "?"], "n": [10, 2, 1]}, weights="n")
    >>> cases.states, cases.codes.tolist(), cases.weights.tolist()
    ((('no', 'yes'),), [[0, 1, -1]], [10.0, 2.0, 1.0])
    """
    if isinstance(data, Cases):
        return _relabelled(data, states, weights)
    names, columns = _columns(data)
    repeated = [name for k, name in enumerate(names) if name in names[:k]]
    if repeated:
        raise ArgumentError(f"{argument('data')} has two columns of the name {repeated[0]!r}; rename one of them.")
    if "" in names:
        raise ArgumentError(
            f"column {names.index('') + 1} of {argument('data')} has no name; name it, or leave it out."
        )
    rows = len(columns[0][1]) if columns else 0
    if not rows:
        raise ArgumentError(f"{argument('data')} has no cases.")
    found, kept, wanted = [], [], []
    weight = _read_weights(weights, names, columns, rows)
    given = {} if states is None else {name: _labels(name, labels) for name, labels in states.items()}
    for name, (values, numbers) in zip(names, columns, strict=True):
        if isinstance(weights, str) and name == weights:
            continue
        labels, codes = _code(name, values, numbers, given.get(name))
        found.append(codes)
        kept.append(name)
        wanted.append(labels)
    for name, labels in given.items():
        if name not in kept:
            found.append(np.full(rows, -1, np.int16))
            kept.append(name)
            wanted.append(labels)
    return Cases(tuple(kept), tuple(wanted), np.stack(found), weight)


def _relabelled(cases: Cases, states: Mapping[str, Any] | None, weights: Any) -> Cases:
    """Return cases that were read before, with other states or weights."""
    if weights is not None:
        taken = _read_weights(weights, [], [], cases.n_cases)
        cases = Cases(cases.names, cases.states, cases.codes, taken)
    if states is None:
        return cases
    known, codes, names = list(cases.states), [*cases.codes], list(cases.names)
    for name, given in states.items():
        labels = _labels(name, given)
        if name not in names:
            names.append(name)
            known.append(labels)
            codes.append(np.full(cases.n_cases, -1, np.int16))
        elif known[k := names.index(name)] != labels:
            values = {label: number for number, label in enumerate((*known[k], None))}
            numbers = np.where(codes[k] < 0, len(known[k]), codes[k]).astype(np.int64)
            known[k], codes[k] = _code(name, values, numbers, labels)
    return Cases(tuple(names), tuple(known), np.stack(codes), cases.weights)


def _columns(data: Any) -> tuple[list[str], list[tuple[Mapping[Any, int], Ints]]]:
    """Return names of columns, and the different values and the numbers of each."""
    if is_path(data):
        path = Path(os.fspath(data))
        return read_columns(path)
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        names = [str(name) for name in data.columns]
        return names, [_number(data.iloc[:, k]) for k in range(len(names))]
    if isinstance(data, Mapping):
        names = [str(name) for name in data]
        columns = [_number(_listed(name, column)) for name, column in data.items()]
        lengths = {len(numbers): name for name, (_, numbers) in zip(names, columns, strict=True)}
        if len(lengths) > 1:
            (short, one), (long, other) = list(lengths.items())[:2]
            raise ArgumentError(
                f"the columns of {argument('data')} have different lengths: {one!r} {short}, {other!r} {long}."
            )
        return names, columns
    raise ArgumentError(
        f"{argument('data')} must be a data frame, a mapping of names to columns, or the path of a CSV file, got "
        f"{type(data).__name__}."
    )


def _listed(name: str, column: Any) -> Any:
    if hasattr(column, "iloc") or isinstance(column, np.ndarray):
        if np.ndim(column) == 1:
            return column
    elif isinstance(column, Iterable) and not isinstance(column, str | bytes | Mapping):
        return list(column)
    raise ArgumentError(f"the column {name!r} must be a list of states, got {type(column).__name__}.")


def _number(column: Any) -> tuple[Mapping[Any, int], Ints]:
    """Return the different values of a column and their numbers; missing ones are None."""
    if hasattr(column, "cat"):  # categories keep their order, also those that do not occur
        values = {label: k for k, label in enumerate([*column.cat.categories.tolist(), None])}
        codes = np.asarray(column.cat.codes, np.int64)
        return _Ordered(values), np.where(codes < 0, len(values) - 1, codes)
    array = np.asarray(column)
    if array.dtype.kind in "iufb":
        found, numbers = np.unique(array, return_inverse=True)
        return {value: k for k, value in enumerate(found.tolist())}, numbers.astype(np.int64)
    return number_values(array.tolist())


class _Ordered(dict[Any, int]):
    """Values whose order is that of the states."""


def _labels(name: str, given: Any) -> tuple[Label, ...]:
    """Return given states."""
    if is_number(given) and int(given) == given and given > 0:
        return tuple(range(int(given)))
    labels = tuple(check_list("states", given, "labels"))
    texts = [str(label) for label in labels]
    if not labels or len(set(texts)) < len(texts):
        raise ArgumentError(f"the states of {name!r} must be different labels, got {given!r}.")
    return tuple(label if isinstance(label, str | int) else str(label) for label in labels)


def _code(
    name: str, values: Mapping[Any, int], numbers: Ints, given: tuple[Label, ...] | None
) -> tuple[tuple[Label, ...], Ints16]:
    """Return the states of a column, and the codes of its cells."""
    allowed = set() if given is None else {str(label) for label in given}
    texts = {value: _text(value) for value in values}
    lost = {value for value, text in texts.items() if text is None or (text in MISSING and text not in allowed)}
    if given is None:
        labels = _order(name, [value for value in values if value not in lost], isinstance(values, _Ordered))
    else:
        labels = given
    code = {str(label): k for k, label in enumerate(labels)}
    table = np.full(len(values) + 1, -1, np.int64)
    for value, number in values.items():
        if value in lost:
            continue
        text = str(texts[value])
        if isinstance(value, bool) and text not in code:  # data frames read TRUE and true as truth values
            text = next((label for label in code if label.casefold() == text.casefold()), text)
        if text not in code:
            row = int(np.argmax(numbers == number)) + 1
            if isinstance(values, _Ordered) and not (numbers == number).any():
                continue  # a category that does not occur
            near = nearest(text, list(code))
            raise ArgumentError(
                f"row {row} of the column {escaped(name)!r} has the state {escaped(text)!r}, and its states are "
                f"{', '.join(map(escaped, list(code)[:20]))}{f'; did you mean {near!r}?' if near else '.'}"
            )
        table[number] = code[text]
    if len(labels) > MOST_STATES:
        raise ArgumentError(
            f"the column {name!r} has {len(labels):,} different states, more than {MOST_STATES:,}; leave it out."
        )
    return labels, table[numbers].astype(np.int16)


def _text(value: Any) -> str | None:
    """Return a value as text, None if it is missing; whole numbers are written without a decimal point."""
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _order(name: str, values: Sequence[Any], ordered: bool) -> tuple[Label, ...]:
    """Return the states of a column that occur, in order."""
    if not values:
        raise ArgumentError(
            f"all cells of the column {escaped(name)!r} are missing; give its states (states=), or leave it out."
        )
    if all(isinstance(value, float | int) and not isinstance(value, bool) for value in values):
        broken = [value for value in values if not float(value).is_integer()]
        if broken and len(values) > _MOST_NUMBERS:
            raise ArgumentError(
                f"the column {name!r} has {len(values):,} different numbers such as {broken[0]:g}; cut it into "
                "intervals first."
            )
        if not broken:
            return tuple(sorted({int(value) for value in values}))
    texts = list(dict.fromkeys(str(_text(value)) for value in values))
    return tuple(texts) if ordered else tuple(sorted(texts, key=_sorting))


def _sorting(text: Label) -> tuple[int, float, str]:
    """Sort numbers before texts."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    return (1, 0.0, str(text)) if math.isnan(value) else (0, value, str(text))


def _read_weights(
    weights: Any, names: Sequence[str], columns: Sequence[tuple[Mapping[Any, int], Ints]], rows: int
) -> Floats:
    if weights is None:
        return np.ones(rows)
    if isinstance(weights, str):
        if weights not in names:
            raise ArgumentError(f"there is no column {weights!r}, which {argument('weights')} names.")
        values, numbers = columns[names.index(weights)]
        try:
            known = np.array([float(value) for value in values])
        except (TypeError, ValueError):
            raise ArgumentError(f"the column {weights!r} of weights must hold numbers.") from None
        found = known[numbers]
    else:
        found = read_reals(weights, "weights", dimensions=1)
        if len(found) != rows:
            raise ArgumentError(f"{argument('weights')} must have a number per case, {rows:,}, got {len(found):,}.")
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if wrong.size:
        raise ArgumentError(f"the weight of row {wrong[0] + 1} is {found[wrong[0]]:g}; weights are at least 0.")
    if not found.sum() > 0.0:
        raise ArgumentError(f"the {argument('weights')} are all zero.")
    return found
