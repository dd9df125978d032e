"""Files of cases: text separated by commas, semicolons or tabs, with names of columns in the first row."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._common.wording import escaped
from gibbsite.errors import FormatError

_TOGETHER = 1 << 9  # rows that are held as text at the same time; more would leave the cache of the processor
_SEPARATORS = ",;\t"


class _Numbers(dict[Any, int]):
    """Numbers of values, in the order in which they were first seen."""

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self)
        return number


def number_values(values: Any, seen: dict[Any, int] | None = None) -> tuple[Mapping[Any, int], Ints]:
    """Return the different values with their numbers, and the number of each item.

    Examples
    --------
    >>> found, numbers = number_values(["b", "a", "b"])
    >>> list(found), numbers.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    known = _Numbers() if seen is None else seen
    return known, np.fromiter(map(known.__getitem__, values), np.int64, length_hint(values))


def read_columns(path: Path) -> tuple[list[str], list[tuple[Mapping[str, int], Ints]]]:
    """Return the names of the columns of a file, and the values and numbers of each column."""
    with _opened(path) as file:
        try:
            first = file.readline()
            rows = csv.reader(_after(first, file), delimiter=max(_SEPARATORS, key=first.count), strict=True)
            names = [name.strip() for name in next(rows, [])]
            seen: list[_Numbers] = [_Numbers() for _ in names]
            parts: list[list[Ints]] = [[] for _ in names]
            done = 0
            while block := list(islice(rows, _TOGETHER)):
                kept = [row for row in block if row]
                _check_widths(path, kept, len(names), done)
                for column, known, part in zip(zip(*kept, strict=True), seen, parts, strict=False):
                    part.append(number_values(column, known)[1])
                done += len(kept)
        except csv.Error as error:
            raise FormatError(f"{escaped(path)}: line {rows.line_num} is not readable ({error}).") from None
        except UnicodeDecodeError:
            raise FormatError(f"{escaped(path)} is not text in UTF-8; store it as CSV in UTF-8.") from None
        except (gzip.BadGzipFile, EOFError):
            raise FormatError(f"{escaped(path)} is not a complete gzip file.") from None
    if not names or not done:
        raise FormatError(f"{escaped(path)} has no cases; give names of columns in the first row, and a row per case.")
    return names, [(known, np.concatenate(part)) for known, part in zip(seen, parts, strict=True)]


def _after(first: str, file: Iterator[str]) -> Iterator[str]:
    yield first
    yield from file


def _check_widths(path: Path, rows: list[list[str]], width: int, done: int) -> None:
    if set(map(len, rows)) - {width}:
        k = next(k for k, row in enumerate(rows) if len(row) != width)
        raise FormatError(
            f"{escaped(path)}: row {done + k + 1} after the names has {len(rows[k])} cells, and there are {width} "
            "columns; write a cell per column, empty where it is missing."
        )


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a file as text, unpacked if its name ends in .gz."""
    how: Any = gzip.open if path.name.endswith(".gz") else open
    try:
        file = how(path, "rt", encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        raise FormatError(f"{escaped(path)}: there is no such file.") from None
    except OSError as error:
        raise FormatError(f"{escaped(path)} cannot be read: {error.strerror}.") from None
    with file:
        yield file
