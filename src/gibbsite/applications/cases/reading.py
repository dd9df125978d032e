"""Cells of cases as codes of the states of a model; cells that are none are named, and their rows left out."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arguments import is_path
from gibbsite._common.arrays import Ints, Ints16
from gibbsite._common.wording import argument, escaped, missing, nearest
from gibbsite.errors import ArgumentError
from gibbsite.learn.networks.cases import MISSING, _columns
from gibbsite.models import FactorGraph

_MOST_SHOWN = 60  # characters of a cell in a message


@dataclass(frozen=True, eq=False)
class CaseTable:
    """Cases as codes of a model.

    Attributes
    ----------
    codes : int16 array (rows, sites)
        Codes of the free sites of the model, -1 where a cell is empty.
    problems : dict
        Row -> what is wrong with it; its codes are -1.
    ignored : tuple of str
        Columns that are no sites.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = read_case_table(gs.example("asia"), {"smoke": ["yes", "", "maybe"], "age": [1, 2, 3]})
    >>> found.codes[:, 2].tolist(), found.ignored
    ([0, -1, -1], ('age',))
    >>> found.problems
    {2: "row 3, column 'smoke': there is no state 'maybe'; the states are yes, no"}
    """

    codes: Ints16
    problems: dict[int, str]
    ignored: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)


def read_case_table(model: FactorGraph, data: Any) -> CaseTable:
    """Read cases from a data frame, columns by name, or a CSV or Parquet file; see :class:`CaseTable`."""
    if is_path(data) and str(data).lower().endswith((".parquet", ".pq")):
        data = _read_parquet(Path(os.fspath(data)))
    names, columns = _columns(data)
    repeated = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if repeated is not None:
        raise ArgumentError(f"{argument('cases')} has two columns of the name {repeated!r}; rename one of them.")
    rows = len(columns[0][1]) if columns else 0
    if not rows:
        raise ArgumentError(f"{argument('cases')} has no rows.")
    codes = np.full((rows, model.n_sites), -1, np.int16)
    problems: dict[int, str] = {}
    ignored = []
    for name, (values, numbers) in zip(names, columns, strict=True):
        observed = name in model.evidence
        at = model.domains.names.find(name)
        if at is None and not observed:
            ignored.append(name)
            continue
        labels = model.evidence_labels[name] if observed else model.labels(name)
        found, wrong = _match(labels, list(values))
        of_rows = found[np.asarray(numbers)]
        for row in np.flatnonzero(of_rows == -2).tolist():
            text = str(wrong[int(numbers[row])])[:_MOST_SHOWN]
            shown = ", ".join(str(label) for label in labels[:8]) + (", ..." if len(labels) > 8 else "")
            said = f"row {row + 1}, column {name!r}: there is no state {text!r}; the states are {shown}"
            problems.setdefault(row, said)
        if observed:
            fixed = [str(label) for label in labels].index(str(model.evidence[name]))
            for row in np.flatnonzero((of_rows >= 0) & (of_rows != fixed)).tolist():
                said = f"row {row + 1}, column {name!r}: the site is observed as {model.evidence[name]!r} for all cases"
                problems.setdefault(row, said)
        else:
            codes[:, at] = np.maximum(of_rows, -1)
    if len(ignored) == len(names):
        near = nearest(ignored[0], model.sites)
        hint = f"; did you mean {near!r} by {ignored[0]!r}?" if near else f"; the first is {escaped(ignored[0])!r}."
        raise ArgumentError(f"No column of {argument('cases')} is a site of the model{hint}")
    codes[list(problems)] = -1
    return CaseTable(codes, dict(sorted(problems.items())), tuple(ignored))


def _match(labels: tuple[Any, ...], values: list[Any]) -> tuple[Ints, dict[int, Any]]:
    """Return the codes of different values, -1 for missing ones and -2 for wrong ones, and the wrong ones."""
    known = {str(label): code for code, label in enumerate(labels)}
    numbers = _by_number(labels)
    truths = {str(label).lower(): code for code, label in enumerate(labels)}
    found = np.full(max(len(values), 1), -1, np.int64)
    wrong: dict[int, Any] = {}
    for k, value in enumerate(values):
        text = "" if value is None else str(value).strip()
        if text in known:
            found[k] = known[text]
        elif isinstance(value, bool | np.bool_) and text.lower() in truths:  # what pandas makes of TRUE and FALSE
            found[k] = truths[text.lower()]
        elif text not in MISSING:
            found[k] = numbers.get(_number(text), -2)
            if found[k] < 0:
                wrong[k] = value
    return found, wrong


def _by_number(labels: tuple[Any, ...]) -> dict[float, int]:
    """Return the codes of labels that are different numbers, as 1, 1.0 and "1.0" are the same one."""
    found = {_number(str(label)): code for code, label in enumerate(labels)}
    return found if len(found) == len(labels) and all(map(math.isfinite, found)) else {}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read_parquet(path: Path) -> Any:
    try:
        import pandas

        return pandas.read_parquet(path)
    except ImportError:
        raise ArgumentError(missing("Parquet files need", "pandas with pyarrow", "pandas")) from None
    except FileNotFoundError:
        raise
    except Exception as error:  # what a damaged file raises depends on the engine
        raise ArgumentError(f"{escaped(path)} cannot be read as Parquet: {escaped(error)}") from None
